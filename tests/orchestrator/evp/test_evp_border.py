from dataclasses import replace
from typing import Any

import pytest
from evp_studies import completed, study

from orchestrator.evp import evp
from orchestrator.outcome import Outcome


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.01, 71.0])
@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.STOPPED, Outcome.RUNNING])
def test_a_score_outside_its_range_is_bad_input(score: float, outcome: Outcome) -> None:
    with pytest.raises(ValueError, match=rf"demo/aot_fc-rte, assignment 1: accuracy .* {score}"):
        evp(study(*completed(0.5), (outcome, score)))


def test_a_completed_trial_without_a_score_is_bad_input() -> None:
    with pytest.raises(ValueError, match="assignment 0: completed without a score"):
        evp(study((Outcome.COMPLETED, None)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"searcher": "bohb"}, "searcher must be one of random, grid, tpe, got 'bohb'"),
        ({"scheduler": "median"}, "scheduler must be one of asha, none, got 'median'"),
        ({"maximize": False}, "worst must lie above the ceiling, got worst 0, ceiling 1"),
        ({"num_trials": 1}, "2 trials, but 1 were planned"),
        ({"searcher": "grid"}, "needs its grid_size"),
    ],
)
def test_records_that_contradict_themselves_are_bad_input(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        evp(study(*completed(0.5, 0.6), **changes))


def test_an_assignment_that_occurs_twice_is_bad_input() -> None:
    record = study(*completed(0.5, 0.6))
    with pytest.raises(ValueError, match="occurs twice"):
        evp(replace(record, trials=(record.trials[0], record.trials[0])))
