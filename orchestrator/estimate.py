"""What a plan will cost, before anything is spent: epochs, time, disk."""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.asha import Asha, rungs, tie_key
from orchestrator.plan import Study

SIMULATIONS = 100
_BYTES_PER_REPORT = 2_000
"""One report in the trial database and in MLflow's, measured."""
_BYTES_PER_TRIAL = 6_000
_TRIAL_OVERHEAD_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a study will take."""

    epochs_at_most: int
    epochs_expected: float
    """Under early stopping, if a trial's rank stays the same from rung to rung; patience aside."""
    seconds: float | None
    """Of one device; None if nothing is known of the data."""
    num_bytes: int


def study_cost(
    study: Study, *, grace: int, eta: int, asha: bool, epoch_seconds: float | None
) -> Cost:
    """The cost of one study at so many seconds an epoch, if that is known."""
    most = study.num_trials * study.training.epochs
    expected = expected_epochs(study, grace, eta) if asha else float(most)
    return Cost(
        epochs_at_most=most,
        epochs_expected=expected,
        seconds=None
        if epoch_seconds is None
        else round(expected * epoch_seconds + study.num_trials * _TRIAL_OVERHEAD_SECONDS, 1),
        num_bytes=round(
            expected * study.num_seeds * _BYTES_PER_REPORT + study.num_trials * _BYTES_PER_TRIAL
        ),
    )


def expected_epochs(study: Study, grace: int, eta: int) -> float:
    """Mean epochs of a study under ASHA over random orders of its trials."""
    budgets = rungs(grace, eta, study.training.epochs)
    source = random.Random(0)
    total = 0
    for _ in range(SIMULATIONS):
        ladder = Asha(budgets, eta)
        ranks = list(range(study.num_trials))
        source.shuffle(ranks)
        for trial, rank in enumerate(ranks):
            total += _epochs_of(ladder, trial, float(rank), study.training.epochs)
    return total / SIMULATIONS


def _epochs_of(ladder: Asha, trial: int, score: float, epochs: int) -> int:
    key = tie_key(score, None)
    for budget in ladder.budgets:
        decision = ladder.judge(trial, budget, key)
        assert decision is not None
        ladder.record(trial, decision, key)
        if decision.stop:
            return budget
    return epochs


def epoch_seconds(
    study: Study, data: Mapping[str, Any], weights: int, passes: int, operations_per_second: float
) -> float:
    """Seconds of one epoch with its evaluation, from the number of operations.

    Args:
        study: says how many seeds go through the backbone.
        data: what is known of the task's rows: their numbers, and tokens on average.
        weights: of the blocks, each of which costs a token two operations forwards.
        passes: how often training computes as much as a forward pass: 2 for activations and
            their gradient, 3 with the gradient of the weights.
        operations_per_second: of the device.
    """
    rows, training = data["rows"], study.training
    steps = training.eval_every
    trained = rows["train"] if steps is None else steps * training.batch_size
    tokens = data["mean_tokens"] * (trained * passes + rows["validation"])
    return float(2 * weights * tokens * study.num_seeds / operations_per_second)


def local_speed(seconds: float = 0.2) -> float:
    """Operations a second of one CPU thread here, from matrix products of a model's size."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a, b = torch.randn(256, 512), torch.randn(512, 1024)
        a @ b
        count, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            a @ b
            count += 1
        return 2 * 256 * 512 * 1024 * count / (time.perf_counter() - started)
    finally:
        torch.set_num_threads(threads)
