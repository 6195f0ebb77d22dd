"""What a plan will cost."""

import dataclasses
import itertools
import statistics
from dataclasses import replace

import pytest

from orchestrator.asha import Asha, rungs, tie_key
from orchestrator.estimate import epoch_seconds, expected_epochs, local_speed, study_cost
from orchestrator.plan import Study
from searchspaces.distributions import Range
from searchspaces.space import Space
from trials.spec import Training

STUDY = Study(
    space=Space("aot_fc", "mine@own", "", {"learning_rate": Range(0.1, 1.0)}, (), {}),
    task="rte",
    backbone="minilm",
    training=Training(epochs=9),
    num_trials=4,
    num_seeds=2,
    grid_size=None,
    label="mine-rte",
)
DATA = {"rows": {"train": 100, "validation": 50}, "mean_tokens": 10.0}


def epochs_in_order(ranks: tuple[int, ...], budgets: tuple[int, ...], eta: int, most: int) -> int:
    """Epochs of trials that come one after the other and keep their rank at every rung."""
    ladder, total = Asha(budgets, eta), 0
    for trial, rank in enumerate(ranks):
        key = tie_key(rank, None)
        reached = most
        for budget in budgets:
            decision = ladder.judge(trial, budget, key)
            assert decision is not None
            ladder.record(trial, decision, key)
            if decision.stop:
                reached = budget
                break
        total += reached
    return total


@pytest.mark.parametrize("num_trials", [1, 2, 3, 4])
@pytest.mark.parametrize(("grace", "eta"), [(1, 3), (1, 2), (2, 4)])
def test_expected_epochs_are_the_mean_over_every_order(
    num_trials: int, grace: int, eta: int
) -> None:
    study = replace(STUDY, num_trials=num_trials)
    every = [
        epochs_in_order(order, rungs(grace, eta, 9), eta, 9)
        for order in itertools.permutations(range(num_trials))
    ]
    expected = expected_epochs(study, grace, eta)
    assert min(every) <= expected <= max(every) <= 9 * num_trials
    error = 3 * statistics.pstdev(every) / 100**0.5  # of a mean over 100 random orders
    assert expected == pytest.approx(statistics.mean(every), abs=error + 1e-9)
    assert expected_epochs(study, grace, eta) == expected


@pytest.mark.parametrize("num_trials", [1, 5, 40])
def test_early_stopping_costs_no_more_than_training_everything(num_trials: int) -> None:
    study = replace(STUDY, num_trials=num_trials)
    early, full = (
        study_cost(study, grace=1, eta=3, asha=asha, epoch_seconds=2.0) for asha in (True, False)
    )
    assert early.epochs_expected <= early.epochs_at_most == 9 * num_trials
    assert full.epochs_expected == full.epochs_at_most
    assert full.seconds is not None
    assert early.seconds is not None
    assert early.seconds <= full.seconds
    assert full.seconds >= 2.0 * full.epochs_at_most
    assert early.num_bytes <= full.num_bytes


def test_where_no_rung_lies_below_the_last_epoch_nothing_is_stopped() -> None:
    assert expected_epochs(STUDY, grace=9, eta=3) == 36


def test_a_cost_without_data_has_no_time() -> None:
    cost = study_cost(STUDY, grace=1, eta=3, asha=False, epoch_seconds=None)
    assert cost.seconds is None
    assert cost.epochs_at_most == 36


def test_an_epoch_takes_as_long_as_its_operations() -> None:
    seconds = epoch_seconds(STUDY, DATA, weights=1000, passes=2, operations_per_second=1e6)
    tokens = 10 * (100 * 2 + 50)
    assert seconds == pytest.approx(2 * 1000 * tokens * 2 / 1e6)


def test_this_machine_has_a_speed() -> None:
    import torch

    threads = torch.get_num_threads()
    assert local_speed(0.01) > 1e6
    assert torch.get_num_threads() == threads


def test_an_epoch_of_so_many_steps_costs_them_whatever_the_data() -> None:
    study = dataclasses.replace(STUDY, training=Training(epochs=3, eval_every=7, batch_size=4))
    seconds = epoch_seconds(study, DATA, weights=1000, passes=2, operations_per_second=1e6)
    tokens = 10 * (7 * 4 * 2 + 50)
    assert seconds == pytest.approx(2 * 1000 * tokens * 2 / 1e6)
