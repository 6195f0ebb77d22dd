"""A seeded subset of a split's rows, the same in every trial that asks for its size."""

import numpy as np
from numpy.typing import NDArray

SUBSET_SEED = 0


def subset_rows(labels: NDArray[np.generic], limit: int, *, stratified: bool) -> NDArray[np.int64]:
    """Row numbers, ascending, of at most `limit` rows.

    Args:
        labels: [N] label of each row.
        limit: rows to keep, at least 1; N or more keeps all.
        stratified: keep the classes' proportions, exact by largest remainder.
    """
    if limit < 1:
        raise ValueError(f"a limit must be at least 1, got {limit}")
    if limit >= len(labels):
        return np.arange(len(labels))
    generator = np.random.default_rng(SUBSET_SEED)
    if not stratified:
        return np.sort(generator.permutation(len(labels))[:limit])
    classes, counts = np.unique(labels, return_counts=True)
    quotas = _largest_remainder(counts, limit)
    kept = [
        generator.permutation(np.flatnonzero(labels == name))[:quota]
        for name, quota in zip(classes, quotas, strict=True)
    ]
    return np.sort(np.concatenate(kept))


def _largest_remainder(counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """`limit` seats shared in proportion to `counts`; equal remainders go to the first class."""
    seats, remainders = np.divmod(counts * limit, counts.sum())
    first = np.argsort(-remainders, kind="stable")[: limit - seats.sum()]
    seats[first] += 1
    return seats
