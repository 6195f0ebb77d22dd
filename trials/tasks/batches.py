"""Orders of examples in batches of like length.

Every lane shuffles with its own generator, so its batches do not depend on the other lanes; all
lanes draw from the same bucket of lengths at each step, so a stacked batch has little padding.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

# S lanes, N examples, b examples in a batch

Indices = NDArray[np.int64]

BATCHES_PER_BUCKET = 8


def epoch_batches(
    lengths: NDArray[np.integer],
    batch_size: int,
    epoch: int,
    generators: Sequence[torch.Generator],
) -> list[Indices]:
    """The batches of one epoch, [S, b] each, with every example once per lane.

    Args:
        lengths: [N] tokens of each example.
        batch_size: examples of a batch; the last one of the longest bucket may have fewer.
        epoch: number of the epoch; decides, with the number of batches, the order of buckets.
        generators: one per lane; each gives one shuffle per bucket.
    """
    order = np.argsort(lengths, kind="stable")
    size = BATCHES_PER_BUCKET * batch_size
    batches: list[Indices] = []
    for start in range(0, len(order), size):
        bucket = order[start : start + size]
        shuffled = np.stack([bucket[_shuffle(len(bucket), lane)] for lane in generators])
        batches += [shuffled[:, i : i + batch_size] for i in range(0, len(bucket), batch_size)]
    slots = np.random.default_rng([epoch, len(batches)]).permutation(len(batches))
    return [batches[slot] for slot in slots]


def eval_batches(lengths: NDArray[np.integer], batch_size: int) -> list[Indices]:
    """Batches [b] that hold every example once, from the shortest to the longest."""
    order = np.argsort(lengths, kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def _shuffle(count: int, generator: torch.Generator) -> Indices:
    return torch.randperm(count, generator=generator).numpy()
