"""The golden vectors of evp_golden.json: exact rationals, met to 1e-12."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.evp import Curve, Refusal, StudyRecord, TrialRecord, evp
from orchestrator.evp.estimators import expected_best
from orchestrator.outcome import Outcome

CASES = json.loads((Path(__file__).parent / "evp_golden.json").read_text())["cases"]
COVERED = {
    "point",
    "point_large",
    "failures",
    "grid",
    "identity",
    "asha_bounds",
    "refusal",
    "adaptive",
}
LATER = {
    "median_curve",
    "seeds",
    "asha_dominance",
    "km_diagnostic",
    "two_phase_audit",
    "weighted",
    "budget_axis",
    "replay_budget",
    "selected_test",
    "compare",
    "macro",
    "ij_variance",
    "ld_band",
}
UNREACHABLE = {"O06_unknown_direction"}
"""StudyRecord.maximize has no default and no None: the direction is always declared."""


def cases(group: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["group"] == group]


def case(name: str) -> Any:
    return next(case for case in CASES if case["id"] == name)


def exact(numbers: list[str]) -> list[float]:
    return [float(Fraction(number)) for number in numbers]


def study(trials: list[TrialRecord], **changes: Any) -> StudyRecord:
    fields: dict[str, Any] = {
        "name": "golden",
        "metric": "accuracy",
        "maximize": True,
        "worst": -1.0,
        "ceiling": 10.0,
        "searcher": "random",
        "scheduler": "none",
        "num_trials": len(trials),
        "num_seeds": 1,
        "trials": tuple(trials),
    }
    return StudyRecord(**fields | changes)


def trials(scores: list[str], outcome: Outcome = Outcome.COMPLETED) -> list[TrialRecord]:
    """Words and NaN in the file stand for trials that failed."""
    records = []
    for k, score in enumerate(scores):
        try:
            value = float(Fraction(score))
        except ValueError:
            failed = Outcome.DIVERGED if score in ("nan", "inf") else Outcome.FAILED
            records.append(TrialRecord(assignment=k, outcome=failed, score=None))
        else:
            records.append(TrialRecord(assignment=k, outcome=outcome, score=value))
    return records


def direction(mode: str) -> dict[str, Any]:
    return {"maximize": True} if mode == "max" else {"maximize": False, "worst": 10, "ceiling": 0}


def at(curve: Curve | Refusal, n: list[int]) -> list[float]:
    assert isinstance(curve, Curve)
    assert curve.value is not None
    values = dict(zip(curve.n, curve.value, strict=True))
    return [values[number] for number in n]


def test_every_group_is_covered_or_named_for_later() -> None:
    assert {case["group"] for case in CASES} == COVERED | LATER
    assert not COVERED & LATER


@pytest.mark.parametrize("case", cases("point"))
def test_points(case: Any) -> None:
    scores, mode = case["input"]["scores"], case["input"]["mode"]
    record = study(trials(scores), **direction(mode))
    expected = case["expected"]
    for name, n in (("U", expected["n_U"]), ("V", expected["n"])):
        values = exact(expected[name]["exact"])
        inside = [number for number in n if number <= len(scores)]
        result = evp(record, estimator=name)
        assert at(result, inside) == pytest.approx(values[: len(inside)], abs=1e-12)
        array = expected_best(exact(scores), n, maximize=mode == "max", estimator=name)
        assert array == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("case", cases("point_large"))
def test_large_points(case: Any) -> None:
    scores = np.arange(1, 2001) / 2000
    values = expected_best(scores, case["expected"]["n"], maximize=True)
    assert values == pytest.approx(exact(case["expected"]["U"]["exact"]), rel=1e-12)


@pytest.mark.parametrize("case", cases("failures"))
def test_failures_count_as_the_worst_value(case: Any) -> None:
    maximize = case["input"]["mode"] == "max"
    record = study(
        trials(case["input"]["scores"]),
        maximize=maximize,
        worst=float(case["input"]["worst"]),
        ceiling=1.0 if maximize else 0.0,
    )
    for name in ("U", "V"):
        result = evp(record, estimator=name)
        values = exact(case["expected"][name]["exact"])
        assert at(result, case["expected"]["n"]) == pytest.approx(values, abs=1e-12)
        assert isinstance(result, Curve)
        assert f"{case['expected']['n_failed']} failed" in result.label


@pytest.mark.parametrize("case", cases("grid"))
def test_complete_grids(case: Any) -> None:
    scores = case["input"]["scores"]
    record = study(trials(scores), searcher="grid", grid_size=len(scores))
    result = evp(record)
    assert isinstance(result, Curve)
    assert result.kind == "census"
    values = exact(case["expected"]["mean"]["exact"])
    assert at(result, case["expected"]["n"]) == pytest.approx(values, abs=1e-12)
    assert isinstance(evp(record, estimator="V"), Refusal)


@pytest.mark.parametrize("case", cases("identity"))
def test_v_mixes_u_over_the_number_of_distinct_trials(case: Any) -> None:
    scores, n = exact(case["input"]["scores"]), case["input"]["n"]
    expected = case["expected"]
    shares = exact(expected["P_distinct"]["exact"])
    u = [0.0, *expected_best(scores, range(1, len(shares)), maximize=True)]  # D = 0, 1, ...
    v = expected_best(scores, [n], maximize=True, estimator="V")[0]
    assert v == pytest.approx(float(Fraction(expected["V"]["exact"])), abs=1e-12)
    assert v == pytest.approx(np.dot(shares, u), abs=1e-12)


@pytest.mark.parametrize("case", cases("asha_bounds"))
def test_bounds_of_a_stopped_sweep(case: Any) -> None:
    completed = trials(case["input"]["completed"])
    stopped = trials(case["input"]["stopped_best_so_far"], Outcome.STOPPED)
    records = [
        TrialRecord(assignment=k, outcome=trial.outcome, score=trial.score)
        for k, trial in enumerate(completed + stopped)
    ]
    result = evp(study(records, worst=0.0, ceiling=1.0, scheduler="asha"))
    assert isinstance(result, Curve)
    assert result.kind == "bounds"
    assert result.value is None
    assert result.lo == pytest.approx(exact(case["expected"]["lower"]["exact"]), abs=1e-12)
    assert result.hi == pytest.approx(exact(case["expected"]["upper"]["exact"]), abs=1e-12)


@pytest.mark.parametrize("case", cases("adaptive"))
def test_tpe_gives_traces_and_no_expectation(case: Any) -> None:
    n = case["expected"]["n"]
    sweeps = [
        evp(study(trials(scores), searcher="tpe")) for scores in case["input"]["sweeps_in_order"]
    ]
    assert all(isinstance(sweep, Curve) and sweep.kind == "trace" for sweep in sweeps)
    mean = np.mean([at(sweep, n) for sweep in sweeps], axis=0)
    expected = exact(case["expected"]["mean_incumbent"]["exact"])
    assert mean == pytest.approx(expected, abs=1e-12)
    wrong = exact(case["expected"]["WRONG_EVP_U_of_sweep_0"]["exact"])
    assert at(sweeps[0], n)[0] != pytest.approx(wrong[0], abs=1e-3)


@pytest.mark.parametrize("name", ["O01_u_n_gt_N", "O02_n_zero", "O03_empty"])
def test_estimators_refuse(name: str) -> None:
    golden = case(name)
    scores = exact(golden["input"]["scores"])
    with pytest.raises(ValueError, match=golden["expected"]["error_or_label"]):
        expected_best(scores, [golden["input"]["n"]], maximize=True)


def test_one_tpe_sweep_has_a_trace_without_a_band() -> None:
    assert case("O04_tpe_single_sweep")["input"]["sampler"] == "tpe"
    result = evp(study(trials(["0.5", "0.4"]), searcher="tpe"))
    assert isinstance(result, Curve)
    assert (result.kind, result.value, result.lo, result.hi) == ("trace", (0.5, 0.5), None, None)


def test_an_infinite_worst_value_is_refused() -> None:
    golden = case("O07_infinite_worst")["input"]
    record = study(
        trials(golden["scores"]), maximize=False, worst=float(golden["worst"]), ceiling=0.0
    )
    result = evp(record)
    assert isinstance(result, Refusal)
    assert "finite worst value" in result.reason


def test_every_refusal_is_checked_or_unreachable() -> None:
    checked = {"O01_u_n_gt_N", "O02_n_zero", "O03_empty", "O04_tpe_single_sweep"}
    names = {case["id"] for case in CASES if case["group"] == "refusal"}
    assert names == checked | {"O07_infinite_worst"} | UNREACHABLE
