"""Rows as a task needs them, or one line that says what is wrong."""

import datasets
import numpy as np

from trials.tasks.errors import DataError
from trials.tasks.table import Task

UNLABELLED = -1


def labelled_split(task: Task, split: str, rows: datasets.Dataset) -> datasets.Dataset:
    """The labelled rows of one split, every column and label as the task declares it.

    Raises:
        DataError: columns, label names, a label or a text are not the task's; no row is left.
    """
    _check_columns(task, split, rows)
    columns = {name: rows[name][:] for name in (*task.fields, "label")}
    labels = columns["label"]
    keep = [i for i, label in enumerate(labels) if label != UNLABELLED]
    for i in keep:
        _check_label(task, split, i, labels[i])
        for field in task.fields:
            if not isinstance(text := columns[field][i], str):
                raise DataError(f"task {task.name}, split {split}, row {i}: {field} is {text!r}")
    if not keep:
        raise DataError(f"task {task.name}, split {split}: no labelled row among {len(labels)}")
    return rows if len(keep) == len(labels) else rows.select(keep)


def _check_columns(task: Task, split: str, rows: datasets.Dataset) -> None:
    missing = [name for name in (*task.fields, "label") if name not in rows.column_names]
    if missing:
        raise DataError(
            f"task {task.name}, split {split}: asked for {', '.join((*task.fields, 'label'))}; "
            f"the data has {', '.join(rows.column_names)}"
        )
    feature = rows.features["label"]
    # a folder's classes in another order would train without a complaint and score wrongly
    if isinstance(feature, datasets.ClassLabel) and tuple(feature.names) != task.labels:
        asked = "a number" if task.labels is None else ", ".join(task.labels)
        raise DataError(
            f"task {task.name}, split {split}: asked for label = {asked}; "
            f"the data has {', '.join(feature.names)}"
        )


def _check_label(task: Task, split: str, row: int, label: object) -> None:
    place = f"task {task.name}, split {split}, row {row}"
    if task.labels is not None:
        if not isinstance(label, int) or not 0 <= label < len(task.labels):
            raise DataError(f"{place}: label {label!r} is none of 0 to {len(task.labels) - 1}")
    elif task.label_range is not None:
        low, high = task.label_range
        if not isinstance(label, int | float) or not np.isfinite(label) or not low <= label <= high:
            raise DataError(f"{place}: label {label!r} lies outside [{low:g}, {high:g}]")
