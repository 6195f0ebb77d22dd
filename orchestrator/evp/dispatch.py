"""The one place where an EVP curve is computed: which estimate a study's trials allow, if any.

| searcher | every final score known | otherwise (stopped, lost, not finished) |
|---|---|---|
| random | point | bounds |
| grid, all cells | census | bounds |
| tpe | trace | trace up to the first unknown trial |

The curve of best-so-far scores over stopped trials has no name here on purpose: it is low by 8 to
21 points at n = 1. Two bounds hold for any way of stopping, since U and V never fall when a score
rises.

Source: shared/reference/evp_spec.md, sections 0, 2.3 and 2.8.
"""

import math

import numpy as np

from orchestrator.evp import labels
from orchestrator.evp.estimators import (
    Estimator,
    Floats,
    Ints,
    expected_best,
    n_grid,
    running_best,
)
from orchestrator.evp.records import Curve, Refusal, StudyRecord
from orchestrator.evp.scores import Counts, check, count, ended, known, optimistic, pessimistic


def evp(study: StudyRecord, *, estimator: Estimator = "U") -> Curve | Refusal:
    """The labelled curve that the trials of a study allow, or why there is none.

    Args:
        study: its trials in any order; a planned trial without a record is unknown.
        estimator: U, or V for comparison with published curves; a trace uses neither.

    Raises:
        ValueError: if the records contradict themselves or a score lies outside its range.
    """
    check(study)
    counts = count(study)
    reason = _reason_against(study, counts, estimator)
    if reason is not None:
        return Refusal(study=study.name, reason=reason)
    if study.searcher == "tpe":
        return _trace(study, counts)
    if counts.stopped or counts.unknown:
        return _bounds(study, counts, estimator)
    return _exact(study, counts, estimator)


def _reason_against(study: StudyRecord, counts: Counts, estimator: Estimator) -> str | None:
    if counts.planned < 1:
        return "no assignments were planned, so there is no best of n"
    if not (math.isfinite(study.worst) and math.isfinite(study.ceiling)):
        return (
            f"a mean needs a finite worst value and ceiling of {study.metric}, "
            f"got {study.worst:g} and {study.ceiling:g}"
        )
    if not any(known(trial) or trial.score is not None for trial in study.trials):
        return f"none of the {counts.planned} trials has reported a score yet"
    if study.searcher == "grid" and estimator == "V":
        distinct = counts.planned * (1 - (1 - 1 / counts.planned) ** counts.planned)
        return (
            f"V draws cells with replacement: at n = {counts.planned} it shows the best of about "
            f"{distinct:.1f} distinct cells; ask for U, which is exact for a complete grid"
        )
    return None


def _exact(study: StudyRecord, counts: Counts, estimator: Estimator) -> Curve:
    """Every final score is known: an estimate for random search, a census of a grid."""
    scores = [pessimistic(study, trial) for trial in study.trials]
    n = n_grid(counts.planned)
    value = expected_best(scores, n, maximize=study.maximize, estimator=estimator)
    warnings = labels.common_warnings(study, counts)
    if study.searcher == "grid":
        kind, how = "census", "census: every cell known, no sampling error"
    else:
        kind, how = "point", "point estimate"
        warnings += labels.point_warnings(counts, estimator)
    what = labels.estimand(study, estimator)
    return Curve(
        study=study.name,
        estimand=what,
        kind=kind,
        n=_ints(n),
        value=_floats(value),
        lo=None,
        hi=None,
        label=labels.label(study, counts, int(n[-1]), what, how, estimator),
        warnings=tuple(warnings),
    )


def _bounds(study: StudyRecord, counts: Counts, estimator: Estimator) -> Curve:
    """Some final scores are unknown: each at its least and at its most."""
    missing = counts.planned - len(study.trials)
    least = [pessimistic(study, trial) for trial in study.trials] + [study.worst] * missing
    most = [optimistic(study, trial) for trial in study.trials] + [study.ceiling] * missing
    n = n_grid(counts.planned)
    both = expected_best([least, most], n, maximize=study.maximize, estimator=estimator)
    lo, hi = both if study.maximize else both[::-1]
    what = labels.estimand(study, estimator)
    how = (
        "bounds: trials without a final score at their best so far (worst value if none) "
        f"and at the ceiling {study.ceiling:g}"
    )
    warnings = labels.common_warnings(study, counts) + labels.bounds_warnings(study, counts)
    return Curve(
        study=study.name,
        estimand=what,
        kind="bounds",
        n=_ints(n),
        value=None,
        lo=_floats(lo),
        hi=_floats(hi),
        label=labels.label(study, counts, int(n[-1]), what, how, estimator),
        warnings=tuple(warnings),
    )


def _trace(study: StudyRecord, counts: Counts) -> Curve | Refusal:
    """The incumbent in order of assignment, as far as every trial has ended."""
    scores: list[float] = []
    for number, trial in enumerate(sorted(study.trials, key=lambda trial: trial.assignment)):
        if trial.assignment != number or not ended(trial):
            break
        scores.append(pessimistic(study, trial))
    if not scores:
        reason = "assignment 0 has no final score, so the trace of TPE's incumbent has no start"
        return Refusal(study=study.name, reason=reason)
    warnings = labels.common_warnings(study, counts) + labels.trace_warnings(counts, len(scores))
    return Curve(
        study=study.name,
        estimand=labels.TRACE,
        kind="trace",
        n=tuple(range(1, len(scores) + 1)),
        value=_floats(running_best(scores, maximize=study.maximize)),
        lo=None,
        hi=None,
        label=labels.label(study, counts, len(scores), labels.TRACE, "", None),
        warnings=tuple(warnings),
    )


def _ints(array: Ints) -> tuple[int, ...]:
    return tuple(array.tolist())


def _floats(array: Floats) -> tuple[float, ...]:
    return tuple(np.asarray(array).tolist())
