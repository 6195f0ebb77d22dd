"""The words that a curve carries: what it estimates, from what, and what to beware of."""

from orchestrator.evp.estimators import Estimator
from orchestrator.evp.records import StudyRecord
from orchestrator.evp.scores import Counts

_SMALL = 10
_SEARCHERS = {"random": "random search", "grid": "grid search", "tpe": "TPE"}
_SCHEDULERS = {"asha": "ASHA", "none": "no scheduler"}
_ESTIMATORS = {"U": "U-statistic", "V": "V estimator (Dodge et al. 2019)"}

TRACE = (
    "best score so far after n trials in order of assignment: one sweep's incumbent trace, "
    "not an expectation"
)


def estimand(study: StudyRecord, estimator: Estimator) -> str:
    """What an expected-best curve of this study estimates."""
    if study.searcher == "grid":
        drawn = "n distinct cells of this grid in random order"
    elif estimator == "V":
        drawn = "n random assignments, drawn with replacement from those observed"
    else:
        drawn = "n distinct random assignments"
    return f"expected best score of {drawn}, each trained to its end"


def label(
    study: StudyRecord,
    counts: Counts,
    last_n: int,
    what: str,
    how: str,
    estimator: Estimator | None,
) -> str:
    """Every fact that the numbers of a curve depend on, as clauses joined by `; `."""
    seeds = (
        "1 seed per assignment"
        if study.num_seeds == 1
        else f"median over {study.num_seeds} seeds per assignment"
    )
    clauses = [
        what,
        how,
        _ESTIMATORS[estimator] if estimator else "",
        "unit: assignments",
        f"N = {counts.planned}, n = 1..{last_n}",
        _SEARCHERS[study.searcher],
        _SCHEDULERS[study.scheduler],
        seeds,
        "best checkpoint",
        f"score: {study.metric}",
        f"{counts.stopped} stopped, {counts.failed} failed, {counts.unknown} unknown",
        study.note,
    ]
    return "; ".join(clause for clause in clauses if clause)


def common_warnings(study: StudyRecord, counts: Counts) -> list[str]:
    """What holds for a curve of any kind."""
    warnings = []
    if counts.planned < _SMALL:
        warnings.append(
            f"N = {counts.planned} is small: read the table of the scores beside the curve."
        )
    worst_failures = counts.failed - counts.salvaged
    if worst_failures:
        warnings.append(
            f"{_of(worst_failures, counts)} failed: each counts with the worst value, "
            f"{study.worst:g}."
        )
    if counts.salvaged:
        warnings.append(
            f"{_of(counts.salvaged, counts)} diverged after a finite evaluation: each counts with "
            "its best one."
        )
    return warnings


def point_warnings(counts: Counts, estimator: Estimator) -> list[str]:
    """What to beware of in an estimate without a band."""
    fifth = counts.planned // 5
    where = f"Beyond n = {fifth} (N/5)" if fifth else "With N below 5, at every n,"
    warnings = [f"{where} the estimate is thin: it rests on the few highest of these scores."]
    if estimator == "V":
        warnings.append(
            "V is biased low: with replacement, n draws hold fewer than n distinct assignments."
        )
    return warnings


def bounds_warnings(study: StudyRecord, counts: Counts) -> list[str]:
    """Why only bounds are given."""
    warnings = []
    if counts.stopped:
        warnings.append(
            f"The scheduler stopped {_of(counts.stopped, counts)}: a final score is unknown, at "
            "least the best so far."
        )
    if counts.lost:
        warnings.append(f"Lost or cancelled: {_of(counts.lost, counts)}; the score is unknown.")
    if counts.open:
        what = "cells of the grid" if study.searcher == "grid" else "planned trials"
        warnings.append(
            f"Interim: {counts.open} of {counts.planned} {what} not finished; the bounds close as "
            "they finish."
        )
    return warnings


def trace_warnings(counts: Counts, last_n: int) -> list[str]:
    """What an incumbent trace does not say."""
    warnings = [
        "TPE draws each assignment from earlier results: one sweep gives neither an expectation "
        "nor a band."
    ]
    if counts.stopped:
        warnings.append(
            f"The scheduler stopped {_of(counts.stopped, counts)}: each counts with its best so "
            "far."
        )
    if last_n < counts.planned:
        warnings.append(
            f"The trace ends after {last_n} of {counts.planned} trials: the score of "
            f"assignment {last_n} is unknown."
        )
    return warnings


def _of(number: int, counts: Counts) -> str:
    return f"{number} of {counts.planned} trials"
