import numpy as np
import pytest
import torch

from trials.tasks.batches import BATCHES_PER_BUCKET, epoch_batches, eval_batches

LENGTHS = np.random.default_rng(0).integers(5, 60, size=301)


def lanes(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("count", [1, 7, 8, 63, 64, 65, 301])
def test_every_example_comes_once_per_lane_and_epoch(count: int) -> None:
    batches = epoch_batches(LENGTHS[:count], 8, 0, lanes(1, 2))
    for lane in range(2):
        seen = np.concatenate([batch[lane] for batch in batches])
        assert sorted(seen) == list(range(count))


def test_a_lane_gets_the_batches_that_it_gets_alone() -> None:
    together, alone = lanes(1, 2, 3), lanes(2)
    for epoch in range(3):
        stacked = epoch_batches(LENGTHS, 8, epoch, together)
        single = epoch_batches(LENGTHS, 8, epoch, alone)
        assert all(np.array_equal(a[1:2], b) for a, b in zip(stacked, single, strict=True))


def test_lanes_have_like_lengths_at_each_step() -> None:
    ordered = np.sort(LENGTHS)
    size = 8 * BATCHES_PER_BUCKET
    spans = [np.ptp(ordered[start : start + size]) for start in range(0, len(ordered), size)]
    for batch in epoch_batches(LENGTHS, 8, 0, lanes(1, 2, 3)):
        assert np.ptp(LENGTHS[batch]) <= max(spans)


def test_only_one_batch_is_partial() -> None:
    sizes = sorted(batch.shape for batch in epoch_batches(LENGTHS, 8, 0, lanes(1, 2)))
    assert sizes == [(2, 301 % 8), *[(2, 8)] * (301 // 8)]


def test_few_examples_are_shuffled_whatever_their_length() -> None:
    lengths = np.arange(64)
    orders = [
        tuple(np.concatenate([batch[0] for batch in epoch_batches(lengths, 8, 0, lanes(seed))]))
        for seed in range(20)
    ]
    assert len(set(orders)) == 20
    assert any(max(order[:8]) > 40 for order in orders)


def test_epochs_and_seeds_differ() -> None:
    generators = lanes(1, 2)
    first, second = (epoch_batches(LENGTHS, 8, epoch, generators) for epoch in (0, 1))
    assert not all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0][0], first[0][1])


def test_evaluation_goes_from_short_to_long_and_misses_none() -> None:
    batches = eval_batches(LENGTHS, 32)
    order = np.concatenate(batches)
    assert sorted(order) == list(range(301))
    assert (np.diff(LENGTHS[order]) >= 0).all()
