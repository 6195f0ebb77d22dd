"""From options to rows: the sweep, its studies and their trials. Pure and deterministic."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator import asha, catalogue
from orchestrator.errors import Refused
from orchestrator.names import check_name, generated
from orchestrator.options import LaunchOptions
from orchestrator.outcome import Outcome
from orchestrator.profiles import Profile
from orchestrator.store.rows import StudyRow, SweepRow, TrialRow
from searchspaces import files
from searchspaces.space import Assignment, Space
from trials.spec import TRAINING_FIELDS, DataSpec, Training, TrialSpec


@dataclass(frozen=True, kw_only=True)
class Study:
    """One study before it is a row: what will be varied, and what is fixed."""

    space: Space
    task: str
    backbone: str
    training: Training
    num_trials: int
    num_seeds: int
    grid_size: int | None
    label: str
    """`<space>-<task>`, unique in the sweep."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep before anything of it is spent."""

    name: str
    options: LaunchOptions
    profile: Profile
    data: DataSpec
    studies: tuple[Study, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that defines the sweep; two launches with equal ones are one sweep."""
        return _identity(self.options, self.studies)


def make_plan(options: LaunchOptions, profile: Profile) -> Plan:
    """The plan of a launch.

    Raises:
        Refused: for what is unknown or does not fit together.
        SpaceError: for a search space file that cannot be used.
    """
    options = _with_defaults(options, profile)
    if not options.space or not options.tasks:
        missing = "--space" if not options.space else "--tasks"
        raise Refused(f"launch needs {missing}; see: orchestrate spaces, orchestrate tasks")
    if options.data_dir is None and profile.source == "demo":
        data = DataSpec(
            source="demo", limit_train=options.limit_train, limit_eval=options.limit_eval
        )
    else:
        data = DataSpec(
            source="hub",
            data_dir=options.data_dir,
            limit_train=options.limit_train,
            limit_eval=options.limit_eval,
        )
    tasks = catalogue.expand_tasks(options.tasks)
    studies = tuple(
        _study(options, profile, file, section, label, task)
        for file, section, label in _sections(options, profile)
        for task in tasks
    )
    spaces = [label for _, _, label in _sections(options, profile)]
    name = (
        check_name(options.name)
        if options.name
        else check_name(generated(spaces, options.tasks, _identity(options, studies)))
    )
    return Plan(name=name, options=options, profile=profile, data=data, studies=studies)


def _with_defaults(options: LaunchOptions, profile: Profile) -> LaunchOptions:
    backbone = options.backbone or profile.backbone
    return dataclasses.replace(
        options,
        profile=profile.name,
        backbone=catalogue.local_path(backbone),
        seeds=options.seeds or profile.seeds,
        max_epochs=options.max_epochs or profile.epochs,
    )


def _sections(
    options: LaunchOptions, profile: Profile
) -> Iterator[tuple[files.SpaceFile, str, str]]:
    """Each space file with the section to use and the label of its studies."""
    wanted = [entry.partition("@") for entry in options.space]
    stems = [files.load(name).name for name, _, _ in wanted]
    for (name, _, section), stem in zip(wanted, stems, strict=True):
        file = files.load(name)
        paper = catalogue.method_info(file.method).paper
        preferred = [profile.section] if profile.section else []
        chosen = file.section(section or None, [*preferred, paper])
        yield file, chosen, stem if stems.count(stem) == 1 else f"{stem}@{chosen}"


def _study(
    options: LaunchOptions,
    profile: Profile,
    file: files.SpaceFile,
    section: str,
    label: str,
    task: str,
) -> Study:
    assert options.backbone is not None
    space = file.space(section, task=task, family=catalogue.family(options.backbone))
    catalogue.check_space(space)
    training = _training(space, options)
    grid_size = _grid_size(space) if options.search == "grid" else None
    asked = options.trials or (grid_size if grid_size else profile.trials)
    study = Study(
        space=space,
        task=task,
        backbone=options.backbone,
        training=training,
        num_trials=min(asked, grid_size) if grid_size else asked,
        num_seeds=options.seeds or space.seeds or 1,
        grid_size=grid_size,
        label=check_name(f"{label}-{task}"),
    )
    if options.search != "tpe":
        for k in range(study.num_trials):
            catalogue.check_assignment(space, assignment(study, options, k), training)
    if options.scheduler == "asha":
        asha.rungs(options.grace, options.eta, training.epochs)
    return study


def _training(space: Space, options: LaunchOptions) -> Training:
    values = dict(space.training)
    if options.max_epochs is not None:
        values["epochs"] = options.max_epochs
    if options.patience is not None:
        values["patience"] = options.patience
    try:
        return Training(**values)  # type: ignore[arg-type]  # Training checks what YAML gave
    except (TypeError, ValueError) as error:
        raise Refused(f"space {space.name}, training: {error}") from error


def _grid_size(space: Space) -> int:
    try:
        return space.grid_size
    except ValueError as error:
        raise Refused(str(error)) from error


def assignment(study: Study, options: LaunchOptions, k: int) -> Assignment:
    """Assignment k of a random or grid study."""
    draw = study.space.grid_cell if options.search == "grid" else study.space.draw
    return draw(options.search_seed, k)


def _identity(options: LaunchOptions, studies: tuple[Study, ...]) -> dict[str, Any]:
    definitions = [study.space.describe() for study in studies]
    digest = hashlib.sha256(json.dumps(definitions, sort_keys=True).encode()).hexdigest()
    as_json: dict[str, Any] = json.loads(json.dumps(options.identity, sort_keys=True))
    return as_json | {"space_definitions": digest[:16]}


def difference(known: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """The options in which two launches of one name differ, `--trials` growing left aside."""
    changed = [key for key in known.keys() | asked.keys() if known.get(key) != asked.get(key)]
    if "trials" in changed and (asked["trials"] or 0) > (known["trials"] or 0):
        changed.remove("trials")
    return sorted(changed)


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
    data_fields = {field.name for field in dataclasses.fields(DataSpec)}
    return TrialSpec(
        trial=trial_id,
        task=study.task,
        backbone=study.backbone,
        method=study.method,
        hyperparameters={k: v for k, v in values.items() if k not in TRAINING_FIELDS},
        training=dataclasses.replace(training, **protocol),
        seeds=tuple(study.seeds),
        data=DataSpec(**{k: v for k, v in study.data.items() if k in data_fields}),
    )
