"""One trial from spec to points, and what stays on the bench between trials."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from trial_specs import demo_spec, numbers, points_of, runs_of

from trials.run import Bench, run_trial


def test_a_bench_loads_a_backbone_once_and_again_only_for_another(
    tiny_folders: dict[str, Path], bench: Bench
) -> None:
    bert, roberta = (demo_spec("aot_fc", tiny_folders[name]) for name in ("bert", "roberta"))
    points_of(bert, bench)
    resident = bench.backbone(bert.backbone)
    points_of(
        dataclasses.replace(bert, method="head_only", hyperparameters={"learning_rate": 1e-3}),
        bench,
    )
    assert bench.backbone(bert.backbone) is resident
    assert bench.num_loads == 1
    after_bert = points_of(roberta, bench)
    assert bench.num_loads == 2
    # with its own tokens: the other backbone's would be numbers that it knows too
    alone = points_of(roberta, Bench(bench.device))
    assert numbers(runs_of(after_bert, 0)) == numbers(runs_of(alone, 0))
    points_of(bert, bench)
    assert bench.num_loads == 3


def test_a_bench_tokenises_a_task_once(tiny_bert: Path, bench: Bench) -> None:
    spec = demo_spec("aot_fc", tiny_bert)
    features = bench.features(spec)
    assert bench.features(dataclasses.replace(spec, seeds=(5,))) is features
    shorter = dataclasses.replace(spec.training, max_length=6)
    cut = bench.features(dataclasses.replace(spec, training=shorter))
    assert cut["train"].lengths.max() == 6
    assert features["train"].lengths.max() > 6


def test_texts_are_cut_to_what_the_backbone_can_take(
    tiny_folders: dict[str, Path], ragged_data: Path, bench: Bench
) -> None:
    for name, folder in tiny_folders.items():
        spec = demo_spec("aot_fc", folder, data_dir=ragged_data, max_length=500, epochs=1)
        limit = bench.backbone(spec.backbone).backbone.shape.max_tokens
        spec = dataclasses.replace(spec, data=dataclasses.replace(spec.data, limit_train=None))
        assert bench.features(spec)["train"].lengths.max() <= limit
        if name == "roberta":
            assert bench.features(spec)["train"].lengths.max() == limit
            points_of(spec, bench)


def test_prompts_take_their_positions_from_the_text(
    tiny_folders: dict[str, Path], ragged_data: Path, bench: Bench
) -> None:
    rows = {"data_dir": ragged_data, "max_length": 500, "epochs": 1, "limit_train": 200}
    for length in (1, 50):
        values = {"prompt_length": length, "learning_rate": 1e-3}
        folder = tiny_folders["roberta"]
        spec = demo_spec("prompt_tuning", folder, hyperparameters=values, **rows)
        room = bench.backbone(spec.backbone).backbone.shape.max_tokens - length
        assert bench.features(spec)["train"].lengths.max() == room
        points_of(spec, bench)  # the positions last for the longest text and its prompt
    too_long = dataclasses.replace(spec, hyperparameters=values | {"prompt_length": 71})
    with pytest.raises(ValueError, match="PromptTuning: prompt_length must be at most 70"):
        points_of(too_long, bench)


def test_trials_in_turn_do_not_touch_each_other(tiny_bert: Path, bench: Bench) -> None:
    specs = [demo_spec(method, tiny_bert) for method in ("head_only", "fine_tuning", "aot_fc")]
    fresh = [numbers(runs_of(points_of(spec, Bench(bench.device)), 0)) for spec in specs]
    for _ in range(2):
        assert [numbers(runs_of(points_of(spec, bench), 0)) for spec in specs] == fresh
    assert len({str(values) for values in fresh}) == 3


def test_an_abandoned_trial_leaves_nothing_behind(tiny_bert: Path, bench: Bench) -> None:
    spec = demo_spec("fine_tuning", tiny_bert)
    points = run_trial(spec, bench)
    next(points)
    points.close()
    assert numbers(runs_of(points_of(spec, bench), 0)) == numbers(
        runs_of(points_of(spec, Bench(bench.device)), 0)
    )


def test_a_bench_survives_a_backbone_that_cannot_be_loaded(tiny_bert: Path, bench: Bench) -> None:
    spec = demo_spec("head_only", tiny_bert)
    first = points_of(spec, bench)
    with pytest.raises(ValueError, match="no backbone"):
        points_of(dataclasses.replace(spec, backbone="/no/such/folder"), bench)
    assert numbers(points_of(spec, bench)[-1].runs) == numbers(first[-1].runs)


def test_a_check_notices_a_backbone_that_no_longer_works(tiny_bert: Path, tmp_path: Path) -> None:
    bench = Bench()
    bench.check()  # nothing resident, nothing to find
    folder = shutil.copytree(tiny_bert, tmp_path / "copied")
    resident = bench.backbone(str(folder)).backbone
    bench.check()
    del resident.model.embeddings.word_embeddings
    with pytest.raises(AttributeError):
        bench.check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "aot_fd"}, "no method 'aot_fd'; known: "),
        ({"task": "sst3"}, "no task 'sst3'; known: cola, "),
        ({"hyperparameters": {"learning_rate": 1e-3, "rank": 0}}, "rank must be at least 1, got 0"),
        ({"hyperparameters": {"learning_rate": 1e-3}}, "method aot_fc: .*rank"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused_before_anything_is_loaded(
    change: dict[str, object], message: str, tiny_bert: Path, bench: Bench
) -> None:
    spec = dataclasses.replace(demo_spec("aot_fc", tiny_bert), **change)
    with pytest.raises(ValueError, match=message):
        next(run_trial(spec, bench))
    assert bench.num_loads == 0


def test_features_are_kept_on_disk_for_the_next_bench(tiny_bert: Path, tmp_path: Path) -> None:
    spec = demo_spec("head_only", tiny_bert)
    first = points_of(spec, Bench(cache_dir=tmp_path))
    files = list(tmp_path.iterdir())
    assert len(files) == 1
    again = points_of(spec, Bench(cache_dir=tmp_path))
    assert numbers(again[-1].runs) == numbers(first[-1].runs)
    assert list(tmp_path.iterdir()) == files
