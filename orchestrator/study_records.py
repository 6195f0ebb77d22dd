"""From the rows of a study to the record that its EVP curve is computed from."""

from orchestrator.evp.records import StudyRecord, TrialRecord
from orchestrator.notes import note_of
from orchestrator.store.rows import StudyRow, TrialRow


def study_record(study: StudyRow, trials: list[TrialRow]) -> StudyRecord:
    """The record of a study with these trials."""
    return StudyRecord(
        name=study.id,
        metric=study.metric,
        maximize=study.maximize,
        worst=study.worst,
        ceiling=study.ceiling,
        searcher=study.searcher,
        scheduler=study.scheduler,
        num_trials=study.num_trials,
        num_seeds=len(study.seeds),
        grid_size=study.grid_size,
        note=note_of(study),
        trials=tuple(
            TrialRecord(
                assignment=trial.k,
                outcome=trial.outcome,
                score=trial.score,
                epochs=trial.epochs,
                device_seconds=trial.device_seconds,
            )
            for trial in trials
        ),
    )
