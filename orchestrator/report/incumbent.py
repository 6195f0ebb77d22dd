"""The best score so far of a study against the epochs spent on it."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One trial at one evaluation."""

    assignment: int
    epoch: int
    """Epochs this trial has trained."""
    score: float
    """Its best so far, the median over its seeds."""


def incumbent(
    evaluations: Iterable[Evaluation], *, maximize: bool
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Epochs spent by all trials together, and the best score by then, after each evaluation.

    Args:
        evaluations: in order of reporting time.
        maximize: whether the highest score is the best one.
    """
    trained: dict[int, int] = {}
    epochs: list[int] = []
    scores: list[float] = []
    better = max if maximize else min
    for point in evaluations:
        trained[point.assignment] = point.epoch
        epochs.append(sum(trained.values()))
        scores.append(better(scores[-1], point.score) if scores else point.score)
    return tuple(epochs), tuple(scores)
