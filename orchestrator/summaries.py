"""From the rows of a sweep to what its table and its picture are made of."""

import statistics
from collections import Counter
from pathlib import Path
from typing import Literal

from orchestrator.evp import evp
from orchestrator.notes import note_of
from orchestrator.report.figures import Panel, draw
from orchestrator.report.incumbent import Evaluation, incumbent
from orchestrator.report.tables import StudySummary
from orchestrator.store.reading import Reader
from orchestrator.store.rows import StudyRow, SweepRow, TrialRow
from orchestrator.study_records import study_record


def study_summary(reader: Reader, study: StudyRow) -> StudySummary:
    """One row of the table: the best assignment of a study by its median score."""
    trials = reader.trials(study.id)
    best = best_trial(study, trials)
    runs = reader.runs(best.id) if best else []
    return StudySummary(
        name=study.id,
        space=study.space,
        task=study.task,
        backbone=study.backbone,
        metric=study.metric,
        maximize=study.maximize,
        majority=study.data.get("majority"),
        best_hyperparameters=best.hyperparameters if best else None,
        best_scores={run.seed: run.score for run in runs if run.score is not None},
        outcomes=Counter(trial.outcome for trial in trials),
        epochs=sum(trial.epochs for trial in trials),
        num_trials=study.num_trials,
        note=note_of(study),
    )


def best_trial(study: StudyRow, trials: list[TrialRow]) -> TrialRow | None:
    """The trial with the best score; the first of equals, None while there is no score."""
    sign = 1 if study.maximize else -1
    scored = [trial for trial in trials if trial.score is not None]
    return max(scored, key=lambda trial: (sign * (trial.score or 0.0), -trial.k), default=None)


def evaluations(reader: Reader, study: StudyRow) -> list[Evaluation]:
    """Every evaluation of every trial of a study, in order of reporting time."""
    number = {trial.id: trial.k for trial in reader.trials(study.id)}
    reports = sorted(reader.study_reports(study.id), key=lambda report: report.created_at)
    better = max if study.maximize else min
    best: dict[str, dict[int, float]] = {}
    found: dict[tuple[str, int], float] = {}
    for report in reports:
        scores = best.setdefault(report.trial_id, {})
        scores[report.seed] = better(scores.get(report.seed, report.value), report.value)
        found[report.trial_id, report.epoch] = statistics.median(scores.values())
    return [
        Evaluation(assignment=number[trial], epoch=epoch, score=score)
        for (trial, epoch), score in found.items()
    ]


def panel(reader: Reader, study: StudyRow, estimator: Literal["U", "V"] = "U") -> Panel:
    """One study in the picture."""
    epochs, scores = incumbent(evaluations(reader, study), maximize=study.maximize)
    return Panel(
        task=study.task,
        space=study.space,
        metric=study.metric,
        result=evp(study_record(study, reader.trials(study.id)), estimator=estimator),
        incumbent_epochs=epochs,
        incumbent_scores=scores,
        maximize=study.maximize,
    )


def draw_studies(
    reader: Reader,
    sweep: SweepRow,
    studies: list[StudyRow],
    path: Path,
    estimator: Literal["U", "V"] = "U",
) -> None:
    """The picture of some studies of a sweep: EVP and incumbent of each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(
        [panel(reader, study, estimator) for study in studies],
        title=f"{sweep.id}: profile {sweep.profile}, {studies[0].backbone}",
        note=note_of(studies[0]),
        path=path,
    )
