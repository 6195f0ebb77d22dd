from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from evp_studies import completed, curve, refusal, study
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evp import Refusal, evp
from orchestrator.evp.estimators import expected_best
from orchestrator.outcome import Outcome

FAILURES = [outcome for outcome in Outcome if outcome.failure]
UNKNOWN = [Outcome.LOST, Outcome.CANCELLED, Outcome.PENDING, Outcome.RUNNING]


def test_completed_random_trials_give_a_point_estimate() -> None:
    result = curve(study(*completed(0.2, 0.5), (Outcome.COMPLETED_BY_PATIENCE, 0.8)))
    assert result.kind == "point"
    assert result.n == (1, 2, 3)
    assert result.value == pytest.approx((0.5, 0.7, 0.8))
    assert result.lo is None
    assert result.hi is None


@pytest.mark.parametrize("outcome", FAILURES)
def test_a_failure_without_a_score_counts_as_the_worst_value(outcome: Outcome) -> None:
    result = curve(study(*completed(0.6), (outcome, None)))
    assert result.value == pytest.approx((0.3, 0.6))
    assert "1 failed" in result.label
    assert any("counts with the worst value, 0." in warning for warning in result.warnings)


@pytest.mark.parametrize("outcome", FAILURES)
def test_only_a_divergence_keeps_its_best_evaluation(outcome: Outcome) -> None:
    result = curve(study(*completed(0.6), (outcome, 0.4)))
    first = 0.5 if outcome is Outcome.DIVERGED else 0.3
    assert result.value == pytest.approx((first, 0.6))


def test_a_sweep_of_failures_has_a_curve_at_the_worst_value() -> None:
    assert curve(study((Outcome.FAILED, None), (Outcome.INVALID, None))).value == (0, 0)


def test_stopped_trials_give_bounds_and_no_value() -> None:
    result = curve(study(*completed(0.9), (Outcome.STOPPED, 0.5)))
    assert (result.kind, result.value) == ("bounds", None)
    assert result.lo == pytest.approx((0.7, 0.9))
    assert result.hi == pytest.approx((0.95, 1.0))
    assert any("stopped 1 of 2 trials" in warning for warning in result.warnings)


@pytest.mark.parametrize("outcome", UNKNOWN)
@pytest.mark.parametrize(("score", "least"), [(None, 0.0), (0.4, 0.4)])
def test_unknown_trials_lie_between_best_so_far_and_ceiling(
    outcome: Outcome, score: float | None, least: float
) -> None:
    result = curve(study(*completed(0.6), (outcome, score)))
    assert result.kind == "bounds"
    assert result.lo == pytest.approx(((0.6 + least) / 2, 0.6))
    assert result.hi == pytest.approx((0.8, 1.0))
    assert "1 unknown" in result.label


def test_bounds_of_a_minimised_metric_are_mirrored() -> None:
    trials = [*completed(0.2), (Outcome.STOPPED, 0.6), (Outcome.LOST, None)]
    result = curve(study(*trials, metric="loss", maximize=False, worst=3.0, ceiling=0.0))
    assert result.hi == pytest.approx(((0.2 + 0.6 + 3.0) / 3, (0.2 + 0.2 + 0.6) / 3, 0.2))
    assert result.lo == pytest.approx((0.2 / 3, 0.0, 0.0))


def test_planned_trials_without_a_record_are_unknown() -> None:
    result = curve(study(*completed(0.6, 0.8), num_trials=4))
    assert result.n == (1, 2, 3, 4)
    assert result.lo is not None
    assert result.lo[0] == pytest.approx(0.35)
    assert any(warning.startswith("Interim: 2 of 4 planned trials") for warning in result.warnings)


def test_asha_that_stopped_nothing_gives_a_point() -> None:
    assert curve(study(*completed(0.6, 0.8), scheduler="asha")).kind == "point"


def test_an_incomplete_grid_gives_bounds_over_all_its_cells() -> None:
    result = curve(study(*completed(0.6, 0.8), searcher="grid", grid_size=3, num_trials=2))
    assert (result.kind, result.n) == ("bounds", (1, 2, 3))
    assert result.hi is not None
    assert result.hi[-1] == 1.0


def test_a_complete_grid_is_a_census_that_refuses_v() -> None:
    grid = study(*completed(0.61, 0.70, 0.66, 0.74, 0.58, 0.71), searcher="grid", grid_size=6)
    result = curve(grid)
    assert result.kind == "census"
    assert result.value is not None
    assert result.value[-1] == 0.74
    assert "4.0 distinct cells; ask for U" in refusal(grid, estimator="V")


def test_a_failed_cell_is_known_so_that_the_grid_is_complete() -> None:
    grid = study(*completed(0.6), (Outcome.OUT_OF_MEMORY, None), searcher="grid", grid_size=2)
    assert curve(grid).kind == "census"


def test_a_tpe_trace_follows_the_order_of_assignment() -> None:
    record = study(*completed(0.5, 0.7, 0.6), searcher="tpe")
    assert curve(record).value == (0.5, 0.7, 0.7)
    assert curve(replace(record, trials=record.trials[::-1])).value == (0.5, 0.7, 0.7)
    assert "not an expectation" in curve(record).label
    assert "U-statistic" not in curve(record).label


def test_a_tpe_trace_ends_at_the_first_unknown_trial() -> None:
    trials = [*completed(0.5), (Outcome.STOPPED, 0.6), (Outcome.RUNNING, 0.9), *completed(0.8)]
    result = curve(study(*trials, searcher="tpe"))
    assert (result.n, result.value) == ((1, 2), (0.5, 0.6))
    assert any("ends after 2 of 4 trials" in warning for warning in result.warnings)


def test_a_tpe_trace_does_not_jump_a_missing_trial() -> None:
    record = study(*completed(0.5, 0.6, 0.7), searcher="tpe")
    assert curve(replace(record, trials=record.trials[::2])).value == (0.5,)


def test_a_tpe_trace_needs_its_first_trial() -> None:
    reason = refusal(study((Outcome.RUNNING, 0.4), *completed(0.5), searcher="tpe"))
    assert "assignment 0" in reason


def test_no_assignments_are_refused() -> None:
    assert "no assignments" in refusal(study())


@pytest.mark.parametrize("outcome", UNKNOWN)
def test_a_study_without_any_score_is_refused(outcome: Outcome) -> None:
    assert "none of the 3 trials" in refusal(study(*[(outcome, None)] * 3))


TRIALS = st.lists(
    st.tuples(st.sampled_from(list(Outcome)), st.floats(0, 1), st.floats(0, 1), st.booleans()),
    min_size=1,
    max_size=15,
)


@given(drawn=TRIALS, maximize=st.booleans(), estimator=st.sampled_from(["U", "V"]))
def test_bounds_hold_whatever_the_unknown_trials_would_have_scored(
    drawn: list[tuple[Outcome, float, float, bool]], maximize: bool, estimator: Any
) -> None:
    worst, ceiling = (0.0, 1.0) if maximize else (1.0, 0.0)
    trials: list[tuple[Outcome, float | None]] = []
    finals = []
    for outcome, score, share, reported in drawn:
        seen = score if reported or outcome.completed else None
        trials.append((outcome, seen))
        least = worst if seen is None else seen
        if outcome.failure:
            finals.append(least if outcome is Outcome.DIVERGED else worst)
        elif outcome.completed:
            finals.append(score)
        else:
            finals.append(least + share * (ceiling - least))
    result = evp(
        study(*trials, maximize=maximize, worst=worst, ceiling=ceiling), estimator=estimator
    )
    if isinstance(result, Refusal):
        return
    truth = expected_best(finals, result.n, maximize=maximize, estimator=estimator)
    low, high = (result.value or side for side in (result.lo, result.hi))
    assert low is not None
    assert high is not None
    assert np.isfinite([low, high]).all()
    assert (np.array(low) <= truth + 1e-12).all()
    assert (truth <= np.array(high) + 1e-12).all()


@given(st.permutations(range(6)))
def test_the_order_of_records_does_not_matter(order: list[int]) -> None:
    record = study(*completed(0.5, 0.9), (Outcome.STOPPED, 0.3), *completed(0.1, 0.2, 0.3))
    assert evp(replace(record, trials=tuple(record.trials[k] for k in order))) == evp(record)


def test_the_package_exports_records_and_the_one_function() -> None:
    import orchestrator.evp

    assert set(orchestrator.evp.__all__) == {
        "Curve",
        "Refusal",
        "StudyRecord",
        "TrialRecord",
        "evp",
    }
