"""What each outcome of a trial means for its score: known, or only known to lie in a range."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.evp.records import StudyRecord, TrialRecord
from orchestrator.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How the planned trials of a study ended."""

    planned: int
    stopped: int
    failed: int
    salvaged: int
    """Of the failed ones: diverged after a finite evaluation, which is their score."""
    lost: int
    """Lost or cancelled."""
    open: int
    """Pending, running or not drawn yet."""

    @property
    def unknown(self) -> int:
        """Trials whose final score nobody knows, apart from the stopped ones."""
        return self.lost + self.open


def known(trial: TrialRecord) -> bool:
    """Whether its final score is decided: it completed, or the assignment is to blame."""
    return trial.outcome.completed or trial.outcome.failure


def ended(trial: TrialRecord) -> bool:
    """Whether the sweep has nothing more to learn from it: decided, or stopped by ASHA."""
    return known(trial) or trial.outcome is Outcome.STOPPED


def pessimistic(study: StudyRecord, trial: TrialRecord) -> float:
    """The least its final score can be; its score if that is known.

    Best checkpoint: the score never falls, so the best so far is a bound. Of the failures only a
    divergence keeps its best evaluation; the others count with the worst value.
    """
    if trial.score is None or (trial.outcome.failure and trial.outcome is not Outcome.DIVERGED):
        return study.worst
    return trial.score


def optimistic(study: StudyRecord, trial: TrialRecord) -> float:
    """The most its final score can be; its score if that is known."""
    return pessimistic(study, trial) if known(trial) else study.ceiling


def num_planned(study: StudyRecord) -> int:
    """N: all cells of a grid, however many were asked for; else the planned assignments."""
    if study.searcher == "grid" and study.grid_size is not None:
        return study.grid_size
    return study.num_trials


def count(study: StudyRecord) -> Counts:
    """The outcomes of a study's trials; those without a record are open."""
    trials, planned = study.trials, num_planned(study)
    failed = [trial for trial in trials if trial.outcome.failure]
    return Counts(
        planned=planned,
        stopped=_number(trials, {Outcome.STOPPED}),
        failed=len(failed),
        salvaged=sum(pessimistic(study, trial) != study.worst for trial in failed),
        lost=_number(trials, {Outcome.LOST, Outcome.CANCELLED}),
        open=_number(trials, {Outcome.PENDING, Outcome.RUNNING}) + planned - len(trials),
    )


def check(study: StudyRecord) -> None:
    """Refuse records that contradict themselves.

    Raises:
        ValueError: naming the study, the assignment and the value.
    """
    for name, value, allowed in (
        ("searcher", study.searcher, ("random", "grid", "tpe")),
        ("scheduler", study.scheduler, ("asha", "none")),
    ):
        if value not in allowed:
            raise ValueError(
                f"study {study.name}: {name} must be one of {', '.join(allowed)}, got {value!r}"
            )
    if study.worst == study.ceiling or (study.worst < study.ceiling) != study.maximize:
        direction = "below" if study.maximize else "above"
        raise ValueError(
            f"study {study.name}: worst must lie {direction} the ceiling, "
            f"got worst {study.worst:g}, ceiling {study.ceiling:g}"
        )
    if study.searcher == "grid" and study.grid_size is None:
        raise ValueError(f"study {study.name}: a grid needs its grid_size, got None")
    numbers = {trial.assignment for trial in study.trials}
    if len(numbers) < len(study.trials):
        raise ValueError(f"study {study.name}: an assignment occurs twice in its trials")
    if len(numbers) > num_planned(study):
        raise ValueError(
            f"study {study.name}: {len(numbers)} trials, but {num_planned(study)} were planned"
        )
    for trial in study.trials:
        _check_score(study, trial)


def _check_score(study: StudyRecord, trial: TrialRecord) -> None:
    place = f"study {study.name}, assignment {trial.assignment}"
    if trial.score is None:
        if trial.outcome.completed:
            raise ValueError(f"{place}: {trial.outcome} without a score")
        return
    low, high = sorted((study.worst, study.ceiling))
    if not (math.isfinite(trial.score) and low <= trial.score <= high):
        raise ValueError(
            f"{place}: {study.metric} must be finite and lie in [{low:g}, {high:g}], "
            f"got {trial.score}"
        )


def _number(trials: Iterable[TrialRecord], outcomes: set[Outcome]) -> int:
    return sum(trial.outcome in outcomes for trial in trials)
