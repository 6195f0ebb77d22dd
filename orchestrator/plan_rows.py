"""From a plan to rows, and from rows to what a worker is given. Pure and deterministic."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from orchestrator import catalogue
from orchestrator.outcome import Outcome
from orchestrator.plan import Plan, assignment
from orchestrator.store.rows import StudyRow, SweepRow, TrialRow
from searchspaces.space import Assignment
from trials.spec import TRAINING_FIELDS, DataSpec, Training, TrialSpec


def sweep_row(plan: Plan, versions: dict[str, Any], now: float) -> SweepRow:
    """The row of the sweep."""
    return SweepRow(
        id=plan.name,
        options=plan.identity,
        execution=plan.options.execution,
        versions=versions,
        profile=plan.profile.name,
        created_at=now,
    )


def study_row(plan: Plan, position: int, data: dict[str, Any]) -> StudyRow:
    """The row of a study; `data` says what its task's rows are."""
    study, options = plan.studies[position], plan.options
    metric = catalogue.metric(study.task)
    return StudyRow(
        id=f"{plan.name}/{study.label}",
        sweep_id=plan.name,
        position=position,
        space=study.space.name,
        method=study.space.method,
        task=study.task,
        backbone=study.backbone,
        metric=metric.name,
        maximize=metric.maximize,
        worst=metric.worst,
        ceiling=metric.ceiling,
        num_trials=study.num_trials,
        seeds=list(range(study.num_seeds)),
        max_epochs=study.training.epochs,
        searcher=options.search,
        search_seed=options.search_seed,
        grid_size=study.grid_size,
        scheduler=options.scheduler,
        grace=options.grace if options.scheduler == "asha" else None,
        eta=options.eta if options.scheduler == "asha" else None,
        space_definition=study.space.describe() | {"training": dataclasses.asdict(study.training)},
        data=data,
    )


def trial_rows(plan: Plan, position: int, first: int = 0) -> Iterator[TrialRow]:
    """The rows of a study's trials from number `first`; TPE chooses their values later."""
    study, study_id = plan.studies[position], f"{plan.name}/{plan.studies[position].label}"
    for k in range(first, study.num_trials):
        values = None if plan.options.search == "tpe" else assignment(study, plan.options, k)
        yield TrialRow(
            id=f"{study_id}/{k}",
            study_id=study_id,
            k=k,
            hyperparameters=values,
            hash=None if values is None else assignment_hash(values),
            outcome=Outcome.PENDING,
        )


def assignment_hash(values: Assignment) -> str:
    """What two trials of a space have in common if their hyperparameters are equal."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def trial_spec(study: StudyRow, trial_id: str, values: Assignment) -> TrialSpec:
    """What a worker is given to train an assignment of a study."""
    training = Training(**study.space_definition["training"])
    protocol: dict[str, Any] = {k: v for k, v in values.items() if k in TRAINING_FIELDS}
    return TrialSpec(
        trial=trial_id,
        task=study.task,
        backbone=study.backbone,
        method=study.method,
        hyperparameters={k: v for k, v in values.items() if k not in TRAINING_FIELDS},
        training=dataclasses.replace(training, **protocol),
        seeds=tuple(study.seeds),
        data=data_spec(study),
    )


def data_spec(study: StudyRow) -> DataSpec:
    """Where the rows of a study come from, out of all that is recorded of them."""
    fields = {field.name for field in dataclasses.fields(DataSpec)}
    return DataSpec(**{k: v for k, v in study.data.items() if k in fields})
