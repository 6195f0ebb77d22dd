"""Texts as token numbers: the tokenised splits of a task, and batches out of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import datasets
import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from trials.tasks.errors import DataError
from trials.tasks.feature_cache import Arrays, feature_key, read_arrays, write_arrays
from trials.tasks.load import TaskRows
from trials.tasks.table import Task

# N examples, B examples of a batch, T tokens

Labels = NDArray[np.int64] | NDArray[np.float32]

CHUNK_ROWS = 10_000
"""Rows tokenised at once: bounds the memory of the tokenizer's Python lists."""


class Batch(TypedDict):
    """Some examples, padded on the right to the longest of them."""

    token_ids: NDArray[np.int64]
    """[B, T]"""
    mask: NDArray[np.bool_]
    """[B, T], true at tokens"""
    type_ids: NDArray[np.int64] | None
    """[B, T]; None if the tokenizer gives none."""
    labels: Labels
    """[B]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """One tokenised split, flat: example i has the tokens offsets[i] to offsets[i + 1]."""

    token_ids: NDArray[np.int32]
    type_ids: NDArray[np.uint8] | None
    offsets: NDArray[np.int64]
    """[N + 1]"""
    labels: Labels
    """[N], whole numbers for classes"""
    pad_id: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[N] tokens of each example, special ones included."""
        return np.diff(self.offsets)

    def batch(self, indices: NDArray[np.integer]) -> Batch:
        """The examples with these numbers, [B], in this order."""
        starts = self.offsets[indices]
        lengths = self.offsets[indices + 1] - starts
        columns = np.arange(lengths.max())
        mask = columns < lengths[:, None]
        places = np.where(mask, starts[:, None] + columns, 0)
        token_ids = np.where(mask, self.token_ids[places], self.pad_id).astype(np.int64)
        type_ids = None
        if self.type_ids is not None:
            type_ids = np.where(mask, self.type_ids[places], 0).astype(np.int64)
        return Batch(token_ids=token_ids, mask=mask, type_ids=type_ids, labels=self.labels[indices])


def featurize(
    rows: TaskRows,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    cache_dir: Path | None,
) -> dict[str, Features]:
    """Every split of the task as token numbers, from the cache if it has them.

    Args:
        rows: the task's rows.
        task: says which columns are text.
        tokenizer: a fast tokenizer.
        max_length: tokens kept of an example; of a pair the longer text is cut first.
        cache_dir: folder of one `.npz` file per rows, tokenizer and length; None: no cache.
    """
    # a missing pad token (GPT-2) needs a number all the same; the mask hides it
    pad_id = 0 if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)
    path = None
    if cache_dir is not None:
        path = cache_dir / f"{task.name}-{feature_key(rows.fingerprint, tokenizer, max_length)}.npz"
        arrays = read_arrays(path, [f"{split}.token_ids" for split in rows.splits])
        if arrays is not None:
            return {split: _from_arrays(arrays, split, pad_id) for split in rows.splits}
    features = {
        split: _tokenise(dataset, task, split, tokenizer, max_length, pad_id)
        for split, dataset in rows.splits.items()
    }
    if path is not None:
        write_arrays(path, dict(_to_arrays(features)))
    return features


def _tokenise(
    dataset: datasets.Dataset,
    task: Task,
    split: str,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    pad_id: int,
) -> Features:
    token_ids, type_ids, lengths = [], [], [np.zeros(1, np.int64)]
    for start in range(0, len(dataset), CHUNK_ROWS):
        chunk = dataset[start : start + CHUNK_ROWS]
        encoded = tokenizer(
            *(chunk[field] for field in task.fields),
            truncation=True,
            max_length=max_length,
            return_attention_mask=False,
        )
        token_ids.append(_flat(encoded["input_ids"], np.int32))
        lengths.append(np.array([len(ids) for ids in encoded["input_ids"]], np.int64))
        if "token_type_ids" in encoded:
            type_ids.append(_flat(encoded["token_type_ids"], np.uint8))
    offsets = np.cumsum(np.concatenate(lengths))
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise DataError(f"task {task.name}, split {split}, row {empty[0]}: no token in the text")
    return Features(
        token_ids=np.concatenate(token_ids),
        type_ids=np.concatenate(type_ids) if type_ids else None,
        offsets=offsets,
        labels=_labels(task, dataset),
        pad_id=pad_id,
    )


def _labels(task: Task, dataset: datasets.Dataset) -> Labels:
    if task.labels is None:
        return np.array(dataset["label"][:], np.float32)
    return np.array(dataset["label"][:], np.int64)


def _flat(rows: list[list[int]], dtype: type[np.generic]) -> NDArray[np.generic]:
    return np.fromiter((token for row in rows for token in row), dtype)


def _to_arrays(features: dict[str, Features]) -> Iterator[tuple[str, NDArray[np.generic]]]:
    for split, part in features.items():
        yield f"{split}.token_ids", part.token_ids
        yield f"{split}.offsets", part.offsets
        yield f"{split}.labels", part.labels
        if part.type_ids is not None:
            yield f"{split}.type_ids", part.type_ids


def _from_arrays(arrays: Arrays, split: str, pad_id: int) -> Features:
    return Features(
        token_ids=arrays[f"{split}.token_ids"],
        type_ids=arrays.get(f"{split}.type_ids"),
        offsets=arrays[f"{split}.offsets"],
        labels=arrays[f"{split}.labels"],
        pad_id=pad_id,
    )
