import itertools
import json
import time
from collections import Counter
from pathlib import Path

import datasets
import huggingface_hub.constants
import numpy as np
import pytest

from trials.spec import DataSpec
from trials.tasks.errors import DataError
from trials.tasks.load import load_task
from trials.tasks.subset import subset_rows
from trials.tasks.table import TASKS

RTE, STSB, SST2 = TASKS["rte"], TASKS["stsb"], TASKS["sst2"]
NAMES = RTE.labels
DEMO = DataSpec(source="demo")


def pairs(count: int, labels: list[object]) -> list[dict[str, object]]:
    return [
        {"sentence1": f"one {i}", "sentence2": f"two {i}", "label": label, "idx": i}
        for i, label in zip(range(count), itertools.cycle(labels), strict=False)
    ]


GOOD = {"train": pairs(8, [0, 1]), "validation": pairs(4, [1, 0])}


def hub(folder: Path | None, **limits: int) -> DataSpec:
    return DataSpec(source="hub", data_dir=None if folder is None else str(folder), **limits)


def line(error: pytest.ExceptionInfo[DataError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("place", ["nyu-mll/glue", "glue"])
def test_a_folder_is_read_under_the_owner_or_the_bare_name(write_hub, place: str) -> None:
    folder = write_hub(RTE, GOOD, place=place, label_names=NAMES)
    rows = load_task(RTE, hub(folder))
    assert list(rows.splits) == ["train", "validation"]
    assert rows.splits["train"]["label"][:] == [0, 1] * 4
    assert rows.source == str(folder / place)


def test_the_owner_comes_before_the_bare_name(write_hub) -> None:
    write_hub(RTE, GOOD, place="glue", label_names=NAMES)
    folder = write_hub(RTE, GOOD, label_names=NAMES)
    assert load_task(RTE, hub(folder)).source == str(folder / "nyu-mll/glue")


def test_demo_rows_say_what_they_are() -> None:
    rows = load_task(TASKS["mnli"], DEMO)
    assert list(rows.splits) == ["train", "validation", "mismatched"]
    assert rows.source == "generated demo task"
    assert rows.splits["train"].features["label"].names == list(TASKS["mnli"].labels)


def test_unlabelled_rows_are_left_out(write_hub) -> None:
    splits = {**GOOD, "train": pairs(9, [0, -1, 1])}
    folder = write_hub(RTE, splits, label_names=NAMES)
    assert load_task(RTE, hub(folder)).splits["train"]["idx"][:] == [0, 2, 3, 5, 6, 8]


def test_a_missing_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(tmp_path / "nowhere"))
    assert line(error) == f"no data folder {tmp_path / 'nowhere'} (asked for task rte)"


def test_a_folder_without_the_dataset_names_both_places(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(tmp_path))
    assert line(error) == (
        f"no dataset nyu-mll/glue for task rte; "
        f"looked at {tmp_path / 'nyu-mll/glue'} and {tmp_path / 'glue'}"
    )


def test_a_missing_config_lists_what_there_is(write_hub) -> None:
    folder = write_hub(RTE, GOOD, config="other", label_names=NAMES)
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == (
        f"no config 'rte' in {folder / 'nyu-mll/glue'} (asked for task rte); known: other"
    )


def test_a_folder_without_data_says_so(tmp_path: Path) -> None:
    (tmp_path / "glue").mkdir()
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(tmp_path))
    assert f"cannot read task rte from {tmp_path / 'glue'}: " in line(error)


@pytest.mark.parametrize("content", [b"", b"not parquet at all"])
def test_a_damaged_file_is_one_line(write_hub, content: bytes) -> None:
    folder = write_hub(RTE, GOOD, label_names=NAMES)
    (folder / "nyu-mll/glue/rte/train-00000-of-00001.parquet").write_bytes(content)
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert "cannot read task rte from" in line(error)


def test_a_damaged_card_is_one_line(write_hub) -> None:
    folder = write_hub(RTE, GOOD, label_names=NAMES)
    (folder / "nyu-mll/glue/README.md").write_text("---\nconfigs: [:\n---\n")
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert "cannot read task rte from" in line(error)


def test_a_missing_split_lists_what_there_is(write_hub) -> None:
    folder = write_hub(RTE, {"train": GOOD["train"]}, label_names=NAMES)
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == (
        f"no split 'validation' for task rte in {folder / 'nyu-mll/glue'}; known: train"
    )


def test_wrong_columns_are_compared(write_hub) -> None:
    rows = [{"premise": "a", "hypothesis": "b", "label": 0}]
    folder = write_hub(RTE, {"train": rows, "validation": rows}, label_names=NAMES)
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == (
        "task rte, split train: asked for sentence1, sentence2, label; "
        "the data has premise, hypothesis, label"
    )


def test_label_names_in_another_order_are_refused(write_hub) -> None:
    folder = write_hub(RTE, GOOD, label_names=reversed(NAMES))
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == (
        "task rte, split train: asked for label = entailment, not_entailment; "
        "the data has not_entailment, entailment"
    )


@pytest.mark.parametrize("label", [2, -2, None])
def test_a_label_outside_the_list_is_located(write_hub, label: object) -> None:
    folder = write_hub(RTE, {**GOOD, "validation": pairs(4, [label])})
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == f"task rte, split validation, row 0: label {label!r} is none of 0 to 1"


@pytest.mark.parametrize("label", ["entailment", 0.5])
def test_a_label_that_is_no_class_number_is_refused(write_hub, label: object) -> None:
    folder = write_hub(RTE, {"train": pairs(4, [label]), "validation": pairs(4, [label])})
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == f"task rte, split train, row 0: label {label!r} is none of 0 to 1"


@pytest.mark.parametrize("label", [5.5, -0.1, float("nan"), None])
def test_a_similarity_outside_the_range_is_located(write_hub, label: object) -> None:
    splits = {"train": pairs(4, [2.5]), "validation": [*pairs(3, [1.0]), *pairs(1, [label])]}
    folder = write_hub(STSB, splits)
    with pytest.raises(DataError) as error:
        load_task(STSB, hub(folder))
    assert line(error) == (
        f"task stsb, split validation, row 3: label {label!r} lies outside [0, 5]"
    )


def test_a_missing_text_is_located(write_hub) -> None:
    rows = pairs(4, [0, 1])
    rows[2]["sentence2"] = None
    folder = write_hub(RTE, {**GOOD, "train": rows}, label_names=NAMES)
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == "task rte, split train, row 2: sentence2 is None"


def test_a_split_without_labels_is_empty(write_hub) -> None:
    folder = write_hub(RTE, {**GOOD, "validation": pairs(4, [-1])}, label_names=NAMES)
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(folder))
    assert line(error) == "task rte, split validation: no labelled row among 4"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")


@pytest.mark.usefixtures("no_network")
def test_without_network_the_hub_is_given_up_within_seconds() -> None:
    start = time.monotonic()
    with pytest.raises(DataError) as error:
        load_task(RTE, hub(None))
    assert line(error).startswith("cannot reach the Hub for nyu-mll/glue: give --data-dir DIR with")
    assert time.monotonic() - start < 5
    assert not datasets.config.HF_HUB_OFFLINE


@pytest.mark.usefixtures("no_network")
def test_without_network_a_warm_cache_is_used(write_hub, datasets_cache: Path) -> None:
    folder = write_hub(RTE, GOOD, label_names=NAMES)
    first = load_task(RTE, hub(folder))
    versions = (datasets_cache / "glue/rte/0.0.0").iterdir()
    (revision,) = (version for version in versions if version.is_dir())
    (datasets_cache / "glue").rename(datasets_cache / "nyu-mll___glue")
    rows = load_task(RTE, hub(None))
    assert rows.fingerprint == first.fingerprint
    assert rows.source == (
        f"nyu-mll/glue rte, revision {revision.name}, from the cache (the Hub cannot be reached)"
    )


def test_limits_keep_the_proportions_of_the_classes() -> None:
    labels = np.array([0] * 60 + [1] * 30 + [2] * 10)
    np.random.default_rng(1).shuffle(labels)
    kept = subset_rows(labels, 25, stratified=True)
    assert Counter(labels[kept].tolist()) == {0: 15, 1: 8, 2: 2}
    assert (np.diff(kept) > 0).all()


def test_remainders_fill_up_the_limit_exactly() -> None:
    for limit in range(1, 100):
        assert len(subset_rows(np.arange(100) % 7, limit, stratified=True)) == limit


def test_limits_cut_training_and_evaluation_rows_apart() -> None:
    rows = load_task(TASKS["mnli"], DataSpec(source="demo", limit_train=30, limit_eval=12))
    assert {name: len(split) for name, split in rows.splits.items()} == {
        "train": 30,
        "validation": 12,
        "mismatched": 12,
    }


def test_a_subset_depends_on_nothing_else() -> None:
    some = load_task(RTE, DataSpec(source="demo", limit_train=20))
    more = load_task(RTE, DataSpec(source="demo", limit_train=20, limit_eval=10))
    assert some.splits["train"].to_list() == more.splits["train"].to_list()
    assert some.fingerprint != more.fingerprint


def test_a_limit_above_the_number_of_rows_keeps_all() -> None:
    limited = load_task(STSB, DataSpec(source="demo", limit_train=9999))
    assert limited.fingerprint == load_task(STSB, DEMO).fingerprint


def test_a_regression_task_is_cut_at_random() -> None:
    rows = load_task(STSB, DataSpec(source="demo", limit_train=20)).splits["train"]
    idx = rows["idx"][:]
    assert len(idx) == 20
    assert idx == sorted(idx)
    assert idx != list(range(20))


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="a limit must be at least 1, got 0"):
        load_task(RTE, DataSpec(source="demo", limit_train=0))


def test_equal_rows_have_equal_fingerprints_whatever_their_source(write_hub) -> None:
    demo = load_task(SST2, DEMO)
    splits = {name: rows.to_list() for name, rows in demo.splits.items()}
    folder = write_hub(SST2, json.loads(json.dumps(splits)), label_names=SST2.labels)
    assert load_task(SST2, hub(folder)).fingerprint == demo.fingerprint


def test_loading_prints_nothing(write_hub, capfd: pytest.CaptureFixture[str]) -> None:
    folder = write_hub(RTE, GOOD, label_names=NAMES)
    capfd.readouterr()
    load_task(RTE, hub(folder))
    assert capfd.readouterr() == ("", "")
