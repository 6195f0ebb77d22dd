"""Constant activations: kept once, shared between trials, capped, and the same as recomputed."""

import dataclasses
import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from trial_specs import demo_spec, points_of, runs_of, stack_of, trainer_of

from trials.activations import Activations
from trials.backbones.backbone import Backbone
from trials.backbones.load import load
from trials.batching import to_text
from trials.run import Bench
from trials.spec import TrialSpec
from trials.tasks.features import Features

CPU = torch.device("cpu")
ROWS = 32
"""Of every split."""


def spec_of(method: str, folder: Path, layer: int, **changed: Any) -> TrialSpec:
    return demo_spec(method, folder, hyperparameters={"insertion_layer": layer}, **changed)


@contextmanager
def counted_rows(bench: Bench, spec: TrialSpec) -> Iterator[Counter[int]]:
    """Rows that went through each block meanwhile."""
    rows: Counter[int] = Counter()

    def count(index: int) -> Any:
        def hook(_: object, args: tuple[torch.Tensor, ...], __: object) -> None:
            rows[index] += len(args[0])

        return hook

    blocks = enumerate(bench.backbone(spec.backbone).backbone.blocks)
    handles = [block.register_forward_hook(count(index)) for index, block in blocks]
    yield rows
    for handle in handles:
        handle.remove()


def some_features(*lengths: int) -> Features:
    num_tokens = sum(lengths)
    ids = torch.randint(5, 400, (num_tokens,), generator=torch.Generator().manual_seed(num_tokens))
    return Features(
        token_ids=ids.numpy().astype(np.int32),
        type_ids=None,
        offsets=np.cumsum([0, *lengths]),
        labels=np.zeros(len(lengths), np.int64),
        pad_id=0,
    )


@pytest.fixture
def bert(tiny_bert: Path) -> Backbone:
    return load(str(tiny_bert), CPU)


def states(kept: Activations, block: int, features: Features) -> torch.Tensor | None:
    return kept.entering(block, features, np.arange(len(features)))


def passes(backbone: Backbone, kept: Activations, block: int, features: Features) -> int:
    """Passes of a whole split through the first block that asking for its states takes."""
    seen: list[int] = []
    handle = backbone.blocks[0].register_forward_hook(lambda *_: seen.append(1))
    states(kept, block, features)
    handle.remove()
    return len(seen)


@pytest.mark.parametrize("method", ["lpt", "id_spam"])
def test_a_trial_gives_the_same_numbers_with_and_without_them(
    method: str, folder: Path, ragged_data: Path, bench: Bench
) -> None:
    changed: dict[str, Any] = {"data_dir": ragged_data, "batch_size": 8, "epochs": 1}
    spec = spec_of(method, folder, 2, seeds=(0, 1), **changed)
    kept = points_of(spec, bench)
    trainer = trainer_of(spec, bench)
    (stack,) = trainer.stacks
    stack._activations = None
    with counted_rows(bench, spec) as rows:
        recomputed = list(trainer.points())
    assert rows == dict.fromkeys(range(3), 2 * (ROWS + ROWS))
    for seed in (0, 1):
        pairs = zip(runs_of(kept, seed), runs_of(recomputed, seed), strict=True)
        for ours, theirs in pairs:
            assert ours.score == theirs.score
            assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)
            assert ours.train_loss == pytest.approx(theirs.train_loss, abs=1e-5)
    elsewhere = points_of(spec_of(method, folder, 1, **changed), bench)
    assert runs_of(elsewhere, 0)[-1].loss != pytest.approx(runs_of(kept, 0)[-1].loss, abs=1e-4)


@pytest.mark.parametrize("method", ["lpt", "id_spam"])
def test_predictions_are_the_same_with_and_without_them(
    method: str, folder: Path, ragged_data: Path, bench: Bench
) -> None:
    spec = spec_of(method, folder, 1, data_dir=ragged_data)
    stack = stack_of(spec, bench)
    validation = bench.features(spec)["validation"]
    kept = stack.predict(validation)
    stack._activations = None
    assert np.abs(stack.predict(validation) - kept).max() <= 1e-5
    assert np.ptp(kept, axis=1).min() > 1e-3


@pytest.mark.parametrize("method", ["lpt", "id_spam"])
def test_each_example_goes_once_through_the_blocks_below_for_all_trials_of_a_layer(
    method: str, tiny_bert: Path, bench: Bench
) -> None:
    spec = spec_of(method, tiny_bert, 2, seeds=(0, 1))
    above = 2 * 2 * (ROWS + ROWS)
    with counted_rows(bench, spec) as rows:
        points_of(spec, bench)
    assert rows == {0: 2 * ROWS, 1: 2 * ROWS, 2: above}
    other_method = "id_spam" if method == "lpt" else "lpt"
    with counted_rows(bench, spec) as rows:
        points_of(spec_of(method, tiny_bert, 2, seeds=(5, 6)), bench)
        points_of(spec_of(other_method, tiny_bert, 2, seeds=(0, 1)), bench)
    assert rows == {2: 2 * above}
    with counted_rows(bench, spec) as rows:
        points_of(spec_of(method, tiny_bert, 1, seeds=(0, 1)), bench)
    assert rows == {0: 2 * ROWS, 1: above, 2: above}


def test_at_the_word_embeddings_and_with_backbone_dropout_nothing_is_constant(
    tiny_bert: Path, bench: Bench
) -> None:
    whole = dict.fromkeys(range(3), 2 * (ROWS + ROWS))
    for spec in (
        spec_of("lpt", tiny_bert, 0),
        spec_of("lpt", tiny_bert, 2, backbone_dropout=True),
        demo_spec("head_only", tiny_bert, backbone_dropout=True),
    ):
        for _ in range(2):
            with counted_rows(bench, spec) as rows:
                points_of(spec, bench)
            assert rows == whole
    with counted_rows(bench, spec) as rows:
        points_of(spec_of("lpt", tiny_bert, 2), bench)
    assert rows[0] == 2 * ROWS  # the control


def test_other_texts_or_another_length_are_kept_apart(tiny_bert: Path, bench: Bench) -> None:
    spec = spec_of("lpt", tiny_bert, 2)
    points_of(spec, bench)
    for other in (
        spec_of("lpt", tiny_bert, 2, max_length=6),
        spec_of("lpt", tiny_bert, 2, task="rte"),
    ):
        fresh = points_of(other, Bench(CPU))
        with counted_rows(bench, spec) as rows:
            assert runs_of(points_of(other, bench), 0) == runs_of(fresh, 0)
        assert rows[0] == 2 * ROWS


@pytest.mark.parametrize("block", [1, 2])
@torch.no_grad()
def test_they_are_hugging_face_s_hidden_states_padded_with_zeros(
    bert: Backbone, block: int
) -> None:
    features, asked = some_features(7, 12, 3, 9), np.array([3, 0, 2, 0])
    text = to_text(features.batch(asked), CPU)
    found = Activations(bert).entering(block, features, asked)
    own = bert.model(
        input_ids=text.ids_NT, attention_mask=text.mask_NT, output_hidden_states=True
    ).hidden_states
    kept = text.mask_NT.bool()
    assert found.shape == own[block].shape == (4, 9, 32)
    assert (found - own[block])[kept].abs().max() <= 1e-5
    assert (found - own[block - 1])[kept].abs().max() > 0.1
    assert not found[~kept].any()
    assert own[block][~kept].any()


@torch.no_grad()
def test_after_the_last_block_only_the_first_token_is_kept(bert: Backbone) -> None:
    features = some_features(7, 12, 3)
    kept = Activations(bert, max_bytes=3 * 32 * 4)
    found = states(kept, 3, features)
    text = to_text(features.batch(np.arange(3)), CPU)
    own = bert.model(input_ids=text.ids_NT, attention_mask=text.mask_NT).last_hidden_state
    assert found.shape == (3, 1, 32)
    assert (found[:, 0] - own[:, 0]).abs().max() <= 1e-5
    assert states(kept, 2, features) is None


def test_the_cap_drops_what_was_longest_unused(bert: Backbone) -> None:
    first, second, third = some_features(10), some_features(6, 4), some_features(3, 3, 4)
    kept = Activations(bert, max_bytes=20 * 32 * 4)
    for features in (first, second, first, third):
        kept.begin_trial()
        assert states(kept, 1, features) is not None
    kept.begin_trial()
    assert passes(bert, kept, 1, first) == 0
    assert passes(bert, kept, 1, third) == 0
    kept.begin_trial()
    assert passes(bert, kept, 1, second) == 1
    assert passes(bert, kept, 2, second) == 1  # the other block's drives out what is left


def test_the_running_trial_s_own_stay(bert: Backbone) -> None:
    train, validation, old = some_features(10), some_features(6, 4), some_features(5)
    kept = Activations(bert, max_bytes=15 * 32 * 4)
    assert states(kept, 1, old) is not None
    kept.begin_trial()
    assert states(kept, 1, train) is not None
    for _ in range(2):
        assert states(kept, 1, validation) is None
        assert passes(bert, kept, 1, train) == 0
    assert passes(bert, kept, 1, old) == 0  # nothing goes where it does not help
    kept.begin_trial()
    assert states(kept, 1, validation) is not None


def test_a_split_that_is_too_large_alone_is_not_kept(bert: Backbone) -> None:
    features, small = some_features(10, 11), some_features(20)
    kept = Activations(bert, max_bytes=20 * 32 * 4)
    assert states(kept, 1, small) is not None
    kept.begin_trial()
    assert states(kept, 1, features) is None
    assert passes(bert, kept, 1, small) == 0


def test_states_go_with_their_texts(bert: Backbone) -> None:
    kept = Activations(bert, max_bytes=10 * 32 * 4)
    features, other = some_features(10), some_features(4, 6)
    assert states(kept, 1, features) is not None
    assert states(kept, 1, other) is None
    del features
    gc.collect()
    assert states(kept, 1, other) is not None


def test_a_stack_that_may_not_keep_them_trains_all_the_same(tiny_bert: Path, bench: Bench) -> None:
    spec = spec_of("lpt", tiny_bert, 2)
    kept = points_of(spec, bench)
    trainer = trainer_of(spec, bench)
    trainer.stacks[0]._activations = Activations(trainer.stacks[0].backbone, max_bytes=100)
    for ours, theirs in zip(kept, trainer.points(), strict=True):
        assert ours.runs[0].train_loss == pytest.approx(theirs.runs[0].train_loss, abs=1e-5)
        assert dataclasses.replace(ours.runs[0], train_loss=0, loss=0) == dataclasses.replace(
            theirs.runs[0], train_loss=0, loss=0
        )
