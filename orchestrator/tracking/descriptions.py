"""Sweeps, studies and trials as MLflow runs: their names, tags and parameters."""

from typing import Any

from orchestrator.notes import note_of
from orchestrator.store.rows import StudyRow, SweepRow, TrialRow
from orchestrator.tracking import names
from orchestrator.tracking.updates import Description

_DATA = ("source", "data_dir", "limit_train", "limit_eval", "words", "fingerprint")


def describe_sweep(sweep: SweepRow, studies: list[StudyRow]) -> Description:
    """The run of a sweep."""
    return Description(
        id=sweep.id,
        name=sweep.id,
        level="sweep",
        tags=names.tags({"id": sweep.id, "level": "sweep", **_common(sweep, studies)}),
        params=names.params(sweep.options),
    )


def describe_study(sweep: SweepRow, study: StudyRow) -> Description:
    """The run of a study."""
    return Description(
        id=study.id,
        name=_label(study),
        level="study",
        tags=names.tags({"id": study.id, "level": "study", **_common(sweep, [study])}),
        params=names.params(
            {
                "space": study.space,
                "method": study.method,
                "task": study.task,
                "backbone": study.backbone,
                "metric": study.metric,
                "searcher": study.searcher,
                "search_seed": study.search_seed,
                "grid_size": study.grid_size,
                "scheduler": study.scheduler,
                "grace": study.grace,
                "eta": study.eta,
                "num_trials": study.num_trials,
                "seeds": study.seeds,
                "max_epochs": study.max_epochs,
                "data": {key: study.data.get(key) for key in _DATA},
                "training": study.space_definition.get("training", {}),
            }
        ),
    )


def describe_trial(sweep: SweepRow, study: StudyRow, trial: TrialRow) -> Description:
    """The run of a trial."""
    own = {"id": trial.id, "level": "trial", "attempt": trial.attempts}
    return Description(
        id=trial.id,
        name=f"{_label(study)}/{trial.k}",
        level="trial",
        tags=names.tags(own | _common(sweep, [study])),
        params=names.params({"k": trial.k, "seeds": study.seeds} | (trial.hyperparameters or {})),
    )


def _label(study: StudyRow) -> str:
    return study.id.removeprefix(f"{study.sweep_id}/")


def _common(sweep: SweepRow, studies: list[StudyRow]) -> dict[str, Any]:
    def all_of(column: str) -> list[str]:
        return list(dict.fromkeys(getattr(study, column) for study in studies))

    return {
        "sweep": sweep.id,
        "profile": sweep.profile,
        "space": all_of("space"),
        "method": all_of("method"),
        "task": all_of("task"),
        "backbone": all_of("backbone"),
        "note": " | ".join(dict.fromkeys(note_of(study) for study in studies)),
    }
