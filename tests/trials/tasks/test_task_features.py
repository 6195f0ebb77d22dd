import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset

from trials.spec import DataSpec
from trials.tasks.errors import DataError
from trials.tasks.feature_cache import read_arrays, tokenizer_fingerprint, write_arrays
from trials.tasks.features import Features, featurize
from trials.tasks.load import TaskRows, load_task
from trials.tasks.table import TASKS

TASK = TASKS["mnli"]


@pytest.fixture(scope="module")
def rows() -> TaskRows:
    return load_task(TASK, DataSpec(source="demo", limit_train=24, limit_eval=12))


def same(a: dict[str, Features], b: dict[str, Features]) -> bool:
    names = ("token_ids", "type_ids", "offsets", "labels")
    pairs = [(getattr(a[split], name), getattr(b[split], name)) for split in a for name in names]
    return list(a) == list(b) and all(
        x is y is None or (np.array_equal(x, y) and x.dtype == y.dtype) for x, y in pairs
    )


def test_a_batch_is_what_the_tokenizer_pads(rows: TaskRows, tokenizer) -> None:
    features = featurize(rows, TASK, tokenizer, 64, None)["validation"]
    indices = np.array([7, 0, 3])
    batch = features.batch(indices)
    chosen = rows.splits["validation"].select(indices)
    expected = tokenizer(
        chosen["premise"][:], chosen["hypothesis"][:], padding=True, return_tensors="np"
    )
    assert np.array_equal(batch["token_ids"], expected["input_ids"])
    assert np.array_equal(batch["mask"], expected["attention_mask"])
    assert np.array_equal(batch["type_ids"], expected["token_type_ids"])
    assert batch["labels"].tolist() == chosen["label"][:]
    assert [batch[name].dtype for name in ("token_ids", "mask", "labels")] == [
        np.int64,
        np.bool_,
        np.int64,
    ]


def test_lengths_count_the_tokens(rows: TaskRows, tokenizer) -> None:
    features = featurize(rows, TASK, tokenizer, 64, None)["train"]
    assert len(features) == 24
    assert features.lengths[5] == features.batch(np.array([5]))["mask"].sum()


def test_long_texts_are_cut(rows: TaskRows, tokenizer) -> None:
    features = featurize(rows, TASK, tokenizer, 9, None)["train"]
    assert features.lengths.max() == 9


def test_there_are_no_type_ids_where_the_tokenizer_gives_none(
    rows: TaskRows, tokenizer_without_types
) -> None:
    features = featurize(rows, TASK, tokenizer_without_types, 64, None)["train"]
    assert features.type_ids is None
    assert features.batch(np.arange(3))["type_ids"] is None


def test_regression_labels_are_floats(tokenizer) -> None:
    task = TASKS["stsb"]
    rows = load_task(task, DataSpec(source="demo", limit_train=8, limit_eval=8))
    assert featurize(rows, task, tokenizer, 64, None)["train"].labels.dtype == np.float32


def test_a_text_without_tokens_is_named(rows: TaskRows, tokenizer) -> None:
    task = TASKS["sst2"]
    empty = Dataset.from_dict({"sentence": ["a", ""], "label": [0, 1]})
    bare = TaskRows(splits={"train": empty}, source="", fingerprint="")
    backend_without_special_tokens = type(tokenizer)(
        tokenizer_object=type(tokenizer.backend_tokenizer)(tokenizer.backend_tokenizer.model)
    )
    with pytest.raises(DataError, match="task sst2, split train, row 1: no token in the text"):
        featurize(bare, task, backend_without_special_tokens, 64, None)


@pytest.mark.parametrize("kind", ["tokenizer", "tokenizer_without_types"])
def test_cached_features_equal_fresh_ones(
    rows: TaskRows, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    tokenizer = request.getfixturevalue(kind)
    fresh = featurize(rows, TASK, tokenizer, 64, tmp_path)
    (file,) = tmp_path.iterdir()
    before = file.stat().st_mtime_ns
    cached = featurize(rows, TASK, tokenizer, 64, tmp_path)
    assert same(fresh, cached)
    assert file.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [file]


def test_another_length_tokenizer_or_data_has_its_own_file(
    rows: TaskRows, tokenizer, tokenizer_without_types, tmp_path: Path
) -> None:
    other = load_task(TASK, DataSpec(source="demo", limit_train=12, limit_eval=12))
    featurize(rows, TASK, tokenizer, 64, tmp_path)
    featurize(rows, TASK, tokenizer, 8, tmp_path)
    featurize(rows, TASK, tokenizer_without_types, 64, tmp_path)
    featurize(other, TASK, tokenizer, 64, tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "flipped", "other"])
def test_a_damaged_file_is_rebuilt(rows: TaskRows, tokenizer, tmp_path: Path, damage: str) -> None:
    fresh = featurize(rows, TASK, tokenizer, 64, tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    middle = len(whole) // 2
    if damage == "other":
        write_arrays(file, {"something": np.zeros(3)})
    else:
        flipped = bytes([whole[middle] ^ 0xFF])
        file.write_bytes(
            {
                "cut": whole[:middle],
                "garbage": b"not a zip file",
                "empty": b"",
                "flipped": whole[:middle] + flipped + whole[middle + 1 :],
            }[damage]
        )
    assert same(fresh, featurize(rows, TASK, tokenizer, 64, tmp_path))
    assert file.read_bytes() == whole


def test_many_writers_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "features.npz"

    def write(value: int) -> None:
        write_arrays(path, {"value": np.full(1000, value)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(60)))
    assert list(tmp_path.iterdir()) == [path]
    arrays = read_arrays(path, ["value"])
    assert arrays is not None
    assert len(set(arrays["value"])) == 1


def test_a_folder_that_cannot_be_written_costs_only_the_cache(
    rows: TaskRows, tokenizer, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert len(featurize(rows, TASK, tokenizer, 64, blocked / "cache")["train"]) == 24


def test_using_a_tokenizer_leaves_its_fingerprint(tokenizer) -> None:
    before = tokenizer_fingerprint(tokenizer)
    tokenizer("some text", truncation=True, max_length=4, padding="max_length")
    assert tokenizer_fingerprint(tokenizer) == before


def test_a_saved_tokenizer_has_the_same_fingerprint_in_another_process(
    tokenizer, tmp_path: Path
) -> None:
    tokenizer.save_pretrained(tmp_path)
    code = (
        "import sys; from transformers import AutoTokenizer; "
        "from trials.tasks.feature_cache import tokenizer_fingerprint; "
        "print(tokenizer_fingerprint(AutoTokenizer.from_pretrained(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "11"},
    )
    assert done.stdout.strip() == tokenizer_fingerprint(tokenizer)
