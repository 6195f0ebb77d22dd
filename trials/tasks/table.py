"""The tasks, one row each: where the rows come from, what they hold, how they are scored."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Task:
    """One text classification or regression task."""

    name: str
    hub_id: str
    config: str
    group: str
    fields: tuple[str, ...]
    """One or two text columns, in the order in which the tokenizer gets them."""
    labels: tuple[str, ...] | None
    """Class names in the order of their numbers; None for regression."""
    label_range: tuple[float, float] | None = None
    """Lowest and highest label of a regression task."""
    metric: str
    """Name of the selection metric in `METRICS`."""
    train: str = "train"
    validation: str = "validation"
    extra_splits: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Further evaluation splits: our short name -> the dataset's."""

    @property
    def num_outputs(self) -> int:
        """Width of the head: the number of classes, 1 for regression."""
        return 1 if self.labels is None else len(self.labels)


def _glue(
    name: str,
    fields: tuple[str, ...],
    labels: tuple[str, ...] | None,
    metric: str = "accuracy",
    *,
    label_range: tuple[float, float] | None = None,
    validation: str = "validation",
    extra_splits: Mapping[str, str] | None = None,
) -> Task:
    return Task(
        name=name,
        hub_id="nyu-mll/glue",
        config=name,
        group="glue",
        fields=fields,
        labels=labels,
        label_range=label_range,
        metric=metric,
        validation=validation,
        extra_splits=extra_splits or {},
    )


_PAIR = ("sentence1", "sentence2")

_ROWS = (
    _glue("cola", ("sentence",), ("unacceptable", "acceptable"), "matthews"),
    _glue("sst2", ("sentence",), ("negative", "positive")),
    _glue("mrpc", _PAIR, ("not_equivalent", "equivalent"), "accuracy_f1"),
    _glue("stsb", _PAIR, None, "pearson_spearman", label_range=(0.0, 5.0)),
    _glue("qqp", ("question1", "question2"), ("not_duplicate", "duplicate"), "accuracy_f1"),
    _glue(
        "mnli",
        ("premise", "hypothesis"),
        ("entailment", "neutral", "contradiction"),
        validation="validation_matched",
        extra_splits={"mismatched": "validation_mismatched"},
    ),
    _glue("qnli", ("question", "sentence"), ("entailment", "not_entailment")),
    _glue("rte", _PAIR, ("entailment", "not_entailment")),
)

TASKS: dict[str, Task] = {task.name: task for task in _ROWS}

GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(task.name for task in _ROWS if task.group == group)
    for group in dict.fromkeys(task.group for task in _ROWS)
}
