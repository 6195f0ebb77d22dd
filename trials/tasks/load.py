"""A task's rows, checked and cut to size."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import datasets
import numpy as np

from trials.spec import DataSpec
from trials.tasks.checks import labelled_split
from trials.tasks.errors import DataError
from trials.tasks.sources import open_source
from trials.tasks.subset import subset_rows
from trials.tasks.table import Task


@dataclass(frozen=True, kw_only=True)
class TaskRows:
    """The rows that a trial on one task uses."""

    splits: Mapping[str, datasets.Dataset]
    """`train`, `validation` and the task's extra splits by their short names."""
    source: str
    """Where the rows came from, in words for people."""
    fingerprint: str
    """SHA-256 of texts and labels: equal for equal rows, whatever their source."""


def load_task(task: Task, data: DataSpec) -> TaskRows:
    """The task's labelled rows from the place that `data` names.

    Raises:
        DataError: the rows cannot be had or are not what the task needs.
    """
    opened, source = open_source(task, data)
    names = {"train": task.train, "validation": task.validation, **task.extra_splits}
    splits = {}
    for short, name in names.items():
        if name not in opened:
            raise DataError(
                f"no split '{name}' for task {task.name} in {source}; known: {', '.join(opened)}"
            )
        rows = labelled_split(task, name, opened[name])
        limit = data.limit_train if short == "train" else data.limit_eval
        splits[short] = rows if limit is None else _limited(task, rows, limit)
    return TaskRows(splits=splits, source=source, fingerprint=_fingerprint(task, splits))


def _limited(task: Task, rows: datasets.Dataset, limit: int) -> datasets.Dataset:
    kept = subset_rows(np.asarray(rows["label"][:]), limit, stratified=task.labels is not None)
    return rows.select(kept)


def _fingerprint(task: Task, splits: Mapping[str, datasets.Dataset]) -> str:
    digest = hashlib.sha256()
    for name, rows in splits.items():
        columns = [rows[column][:] for column in (*task.fields, "label")]
        digest.update(f"{name} {len(rows)}\n".encode())
        for row in zip(*columns, strict=True):
            digest.update(json.dumps(row).encode())
    return digest.hexdigest()
