import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from trials.spec import DataSpec
from trials.tasks.demo import demo_rows
from trials.tasks.load import load_task
from trials.tasks.metrics import majority_score
from trials.tasks.table import TASKS, Task

DEMO = DataSpec(source="demo")


def texts(task: Task, split: str) -> list[tuple[object, ...]]:
    return [tuple(row[field] for field in task.fields) for row in demo_rows(task.name, split)]


def splits(task: Task) -> tuple[str, ...]:
    return (task.train, task.validation, *task.extra_splits.values())


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_no_evaluation_row_is_a_training_row(task: Task) -> None:
    train = set(texts(task, task.train))
    for split in splits(task)[1:]:
        assert not train & set(texts(task, split))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_no_split_repeats_a_row(task: Task) -> None:
    for split in splits(task):
        assert len(set(texts(task, split))) == len(texts(task, split))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_texts_are_short(task: Task) -> None:
    for row in texts(task, task.train):
        assert sum(len(str(text).split()) for text in row) <= 17


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_classes_are_balanced(task: Task) -> None:
    for split in splits(task):
        labels = [row["label"] for row in demo_rows(task.name, split)]
        if task.labels is None:
            assert all(0 <= label <= 5 for label in labels)
            assert 1.5 < sum(labels) / len(labels) < 3.5
        else:
            shares = [count / len(labels) for count in Counter(labels).values()]
            assert len(shares) == len(task.labels)
            assert max(shares) - min(shares) <= 0.1


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_majority_class_scores_little(task: Task) -> None:
    splits = load_task(task, DEMO).splits
    assert majority_score(task, splits["train"]["label"], splits["validation"]["label"]) <= 0.6


def test_rows_are_the_same_in_another_process() -> None:
    code = "from trials.tasks.demo import demo_rows; print(demo_rows('mnli', 'train'))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == str(demo_rows("mnli", "train"))


def test_another_seed_gives_other_rows() -> None:
    assert demo_rows("rte", "train") != demo_rows("rte", "train", seed=1)


def test_mismatched_rows_use_other_people_and_things() -> None:
    matched, mismatched = (
        {word for row in texts(TASKS["mnli"], split) for text in row for word in str(text).split()}
        for split in ("train", "validation_mismatched")
    )
    assert len(mismatched - matched) > 20


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_columns_and_labels_are_those_of_glue(task: Task) -> None:
    folder = os.environ.get("ORCHESTRATE_TEST_DATA")
    if folder is None:
        pytest.skip("ORCHESTRATE_TEST_DATA names no folder with the Hub's rows")
    real = load_task(task, DataSpec(source="hub", data_dir=folder, limit_train=8, limit_eval=8))
    demo = load_task(task, DEMO)
    assert list(real.splits) == list(demo.splits)
    for split, rows in real.splits.items():
        assert rows.features == demo.splits[split].features
    assert real.source == str(Path(folder) / "glue")
