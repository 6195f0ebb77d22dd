"""Questions about methods, tasks and backbones: what there is, what fits, what it counts.

With `fit`, the only module besides the worker that imports `trials`, and only when asked.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.errors import Refused
from trials.spec import DataSpec

if TYPE_CHECKING:
    from trials.tasks.metrics import Metric


@dataclass(frozen=True, kw_only=True)
class MethodInfo:
    """What is known of a method without training it."""

    name: str
    summary: str
    paper: str
    parameter_efficient: bool
    zero_cost: bool
    multi_task: bool
    joins_weights: bool
    hyperparameters: dict[str, str]
    """Field -> its default as text, or "required"."""


def method_names() -> list[str]:
    """Every method."""
    from trials.methods import METHODS

    return list(METHODS)


def method_class(name: str) -> Any:
    """The class whose fields are the hyperparameters of a method.

    Raises:
        Refused: if there is none of that name.
    """
    from trials import methods

    with as_refusal():
        return methods.find(name)


def method_info(name: str) -> MethodInfo:
    """One method; Refused if there is none of that name."""
    cls = method_class(name)
    fields = {
        field.name: "required" if field.default is dataclasses.MISSING else repr(field.default)
        for field in dataclasses.fields(cls)
    }
    own = {"name", "hyperparameters"}
    about = {
        f.name: getattr(cls, f.name) for f in dataclasses.fields(MethodInfo) if f.name not in own
    }
    return MethodInfo(name=name, hyperparameters=fields, **about)


def task_names() -> list[str]:
    """Every task."""
    from trials.tasks.table import TASKS

    return list(TASKS)


def expand_tasks(wanted: tuple[str, ...]) -> list[str]:
    """The tasks that names and groups stand for, each once, in the order asked.

    Raises:
        Refused: for a name that is neither.
    """
    from trials.tasks.table import GROUPS, TASKS

    expanded: dict[str, None] = {}
    for name in wanted:
        if name not in GROUPS and name not in TASKS:
            raise Refused(
                f"no task {name!r}; known: {', '.join(TASKS)}; groups: {', '.join(GROUPS)}"
            )
        expanded |= dict.fromkeys(GROUPS.get(name, (name,)))
    return list(expanded)


def metric(task: str) -> "Metric":
    """The selection metric of a task."""
    from trials.tasks.metrics import METRICS
    from trials.tasks.table import TASKS

    return METRICS[TASKS[task].metric]


def task_info(name: str) -> dict[str, Any]:
    """What a task is, as JSON values."""
    from trials.tasks.table import TASKS

    row = TASKS[name]
    return {
        "task": row.name,
        "group": row.group,
        "hub_id": row.hub_id,
        "config": row.config,
        "fields": list(row.fields),
        "labels": list(row.labels) if row.labels else None,
        "metric": row.metric,
        "splits": [row.train, row.validation, *row.extra_splits.values()],
    }


def num_outputs(task: str) -> int:
    """Width of the head for a task."""
    from trials.tasks.table import TASKS

    return TASKS[task].num_outputs


def look_at_data(task: str, data: DataSpec) -> dict[str, Any]:
    """Load a task's rows and describe them: source, sizes, fingerprint, majority score.

    Raises:
        Refused: if they cannot be had or are not what the task needs.
    """
    from trials.tasks.load import load_task
    from trials.tasks.metrics import majority_score
    from trials.tasks.table import TASKS

    with as_refusal():
        rows = load_task(TASKS[task], data)
    labels = {split: rows.splits[split]["label"][:] for split in ("train", "validation")}
    return {
        **dataclasses.asdict(data),
        "words": rows.source,
        "rows": {split: len(dataset) for split, dataset in rows.splits.items()},
        "fingerprint": rows.fingerprint,
        "majority": majority_score(TASKS[task], labels["train"], labels["validation"]),
        "mean_tokens": _mean_tokens(rows.splits["train"], TASKS[task].fields),
    }


def _mean_tokens(rows: Any, fields: tuple[str, ...]) -> float:
    """About how many tokens an example has: 1.3 a word, and the special ones."""
    sample = rows[:500]
    words = sum(len(text.split()) for field in fields for text in sample[field])
    return 1.3 * words / len(sample[fields[0]]) + 1 + len(fields)


def backbone_names() -> list[str]:
    """Every backbone known by name."""
    from trials.backbones.known import KNOWN

    return list(KNOWN)


def backbone_info(name: str) -> dict[str, Any]:
    """What a backbone is, as JSON values; of a known one without its files.

    Raises:
        Refused: if it cannot be found.
    """
    from trials.backbones.files import shape_of
    from trials.backbones.known import find
    from trials.backbones.load import count_parameters

    with as_refusal():
        known, shape = find(name), shape_of(name)
        return {
            "backbone": name,
            "hub_id": known.hub if known else None,
            "family": shape.family,
            "width": shape.width,
            "num_blocks": shape.num_blocks,
            "vocabulary": shape.vocabulary,
            "max_tokens": shape.max_tokens,
            "parameters": count_parameters(name),
        }


def forward_cost(method: str, backbone: str) -> tuple[int, int]:
    """Weights of the backbone's blocks, and passes that a training step is worth (2 or 3)."""
    about = backbone_info(backbone)
    weights = about["parameters"] - about["vocabulary"] * about["width"]
    return weights, 3 if method_class(method).trains_backbone else 2


def family(backbone: str) -> str:
    """The family of a backbone.

    Raises:
        Refused: if it cannot be found, or its family is not supported.
    """
    from trials.backbones.files import family_of

    with as_refusal():
        return family_of(backbone)


def look_at_backbone(name: str) -> str:
    """The fingerprint of a backbone whose files can be had.

    Raises:
        Refused: if they cannot.
    """
    from trials.backbones.files import fingerprint

    with as_refusal():
        return fingerprint(name)


def local_path(backbone: str) -> str:
    """A backbone given as a folder as its absolute path; any other name as it is."""
    from trials.backbones.known import find, location

    with as_refusal():
        place = location(backbone)
    return backbone if find(backbone) else place


def num_local_gpus() -> int:
    """How many GPUs this machine lets us use."""
    import torch

    return torch.cuda.device_count()


@contextmanager
def as_refusal() -> Iterator[None]:
    """Turns the ValueError of a bad request into the command line's refusal."""
    try:
        yield
    except ValueError as error:
        raise Refused(str(error)) from error
