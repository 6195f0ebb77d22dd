"""From the rows of a study to the record that its EVP curve is computed from."""

from orchestrator.evp.records import StudyRecord, TrialRecord
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


def note_of(study: StudyRow) -> str:
    """What every number of a study must be read with: backbone, data, limits."""
    if study.data.get("source") == "demo":
        data = "demo data: generated tasks, scores say nothing about GLUE"
    else:
        words = study.data.get("words") or study.data.get("data_dir")
        data = f"data: {words}" if words else ""
    limits = ", ".join(
        f"{option} {study.data[key]}"
        for option, key in (("limit-train", "limit_train"), ("limit-eval", "limit_eval"))
        if study.data.get(key) is not None
    )
    return "; ".join(part for part in (f"backbone {study.backbone}", data, limits) if part)
