"""From options to a plan: what a sweep's studies and their trials are. Pure and deterministic."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator import asha, catalogue, fit
from orchestrator.errors import Refused
from orchestrator.names import check_name, generated
from orchestrator.options import LaunchOptions
from orchestrator.profiles import Profile
from orchestrator.space_checks import check_assignment, check_space, make_training, probes
from searchspaces import files
from searchspaces.space import Assignment, Space
from trials.spec import DataSpec, Training


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
    data = DataSpec(
        source="demo" if options.data_dir is None and profile.source == "demo" else "hub",
        data_dir=options.data_dir,
        limit_train=options.limit_train,
        limit_eval=options.limit_eval,
    )
    tasks = catalogue.expand_tasks(options.tasks)
    spaces = _spaces(options, profile)
    studies = tuple(
        _study(options, file, section, label, task)
        for label, (file, section) in spaces.items()
        for task in tasks
    )
    name = options.name or generated(list(spaces), options.tasks, _identity(options, studies))
    return Plan(name=check_name(name), options=options, profile=profile, data=data, studies=studies)


def _with_defaults(options: LaunchOptions, profile: Profile) -> LaunchOptions:
    """The options with what the profile says; None is left where the space decides."""
    folder = options.data_dir and str(Path(options.data_dir).expanduser().resolve())
    trials = options.trials or (None if options.search == "grid" else profile.trials)
    return dataclasses.replace(
        options,
        profile=profile.name,
        backbone=catalogue.local_path(options.backbone or profile.backbone),
        data_dir=folder,
        trials=trials,
        seeds=options.seeds or profile.seeds,
        max_epochs=options.max_epochs or profile.epochs,
    )


def _spaces(options: LaunchOptions, profile: Profile) -> dict[str, tuple[files.SpaceFile, str]]:
    """The label of its studies -> space file and section, for each space asked for."""
    chosen = [_section(entry, profile) for entry in options.space]
    stems = [file.name for file, _ in chosen]
    labels = [
        file.name if stems.count(file.name) == 1 else f"{file.name}@{section}"
        for file, section in chosen
    ]
    for label in labels:
        if labels.count(label) > 1:
            raise Refused(
                f"--space {','.join(options.space)}: more than one is {label}; "
                f"name each once, and rename a file that is called like another"
            )
    return dict(zip(labels, chosen, strict=True))


def _section(entry: str, profile: Profile) -> tuple[files.SpaceFile, str]:
    name, _, wanted = entry.partition("@")
    file = files.load(name)
    paper = catalogue.method_info(file.method).paper
    preferred = [profile.section] if profile.section else []
    return file, file.section(wanted or None, [*preferred, paper])


def _study(
    options: LaunchOptions, file: files.SpaceFile, section: str, label: str, task: str
) -> Study:
    assert options.backbone is not None
    family = catalogue.family(options.backbone)
    space = file.space(section, task=task, family=family, backbone=options.backbone)
    check_space(space)
    training = _training(space, options)
    grid_size = _grid_size(space) if options.search == "grid" else None
    # a second trial of the only assignment would give the same numbers
    most = 1 if space.is_single else grid_size
    sizes = [size for size in (options.trials, most) if size is not None]
    study = Study(
        space=space,
        task=task,
        backbone=options.backbone,
        training=training,
        num_trials=min(sizes),
        num_seeds=options.seeds or space.seeds or 1,
        grid_size=grid_size,
        label=check_name(f"{label}-{task}", f"search space {file.path.name}: {label}-{task}"),
    )
    shape = fit.shape(options.backbone)
    for values in _assignments(study, options):
        check_assignment(space, values, shape)
    if options.scheduler == "asha":
        asha.rungs(options.grace, options.eta, training.epochs)
    return study


def _assignments(study: Study, options: LaunchOptions) -> Iterator[Assignment]:
    """What trials may be given, as far as it is known before they run."""
    if options.search == "tpe":
        return probes(study.space)
    return (assignment(study, options, k) for k in range(study.num_trials))


def _training(space: Space, options: LaunchOptions) -> Training:
    asked = {"epochs": options.max_epochs, "patience": options.patience}
    return make_training(space, **{k: v for k, v in asked.items() if v is not None})


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
    changed = {key for key in known.keys() | asked.keys() if known.get(key) != asked.get(key)}
    if "trials" in changed and _num_trials(asked) > _num_trials(known):
        changed.remove("trials")
    if changed & {"space", "tasks", "backbone"}:
        changed.discard("space_definitions")  # follows from them
    return sorted(changed)


def _num_trials(identity: dict[str, Any]) -> float:
    return math.inf if identity["trials"] is None else int(identity["trials"])  # None: a whole grid
