"""What goes into a trial and what comes out of it: frozen records that travel as JSON.

The only module of `trials` that the rest of the project imports freely: standard library only.
"""

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

Scalar = int | float | str | bool

RunState = Literal["running", "completed", "completed_by_patience", "diverged"]


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """Where a task's rows come from and how many of them are used."""

    source: Literal["demo", "hub"]
    """`demo`: the project's own generated tasks; `hub`: the Hub's rows, or `data_dir`'s."""
    data_dir: str | None = None
    """Folder laid out as the Hub's dataset repositories are; None: the Hub itself."""
    limit_train: int | None = None
    """At most so many training rows, a stratified subset by a fixed seed; None: all."""
    limit_eval: int | None = None
    """The same for every evaluation split."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The training protocol of a trial, apart from its method's hyperparameters."""

    optimizer: Literal["adam", "adamw"] = "adam"
    schedule: Literal["constant", "linear"] = "constant"
    warmup_ratio: float = 0.0
    """Share of all steps, in [0, 1), over which the learning rate rises from 0."""
    warmup_steps: int = 0
    """The same as a number of steps."""
    weight_decay: float = 0.0
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-8
    head_learning_rate: float | None = None
    """Rate of the head; None: the method's, or that of its networks if it has one for them."""
    batch_size: int = 16
    epochs: int = 10
    """At most so many epochs, one evaluation after each."""
    eval_every: int | None = None
    """An epoch is so many steps; None: it is one pass over the data."""
    patience: int | None = None
    """A run ends after so many evaluations in a row without a better score; None: never."""
    max_length: int = 128
    """Texts are cut to so many tokens, special ones included."""
    backbone_dropout: bool = False
    """Whether the frozen backbone's own dropout is active while training."""
    precision: Literal["fp32", "bf16"] = "fp32"

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("patience", "eval_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        for name in ("warmup_ratio", "adam_beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        if self.warmup_steps and self.warmup_ratio:
            raise ValueError("give warmup_steps or warmup_ratio, not both")
        for name in ("weight_decay", "warmup_steps"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        rates = (self.adam_epsilon, self.head_learning_rate)
        if not all(rate is None or 0 < rate < math.inf for rate in rates):
            raise ValueError(
                "adam_epsilon and head_learning_rate must be greater than 0 and finite"
            )
        for field in dataclasses.fields(self):
            known = get_args(field.type)
            value = getattr(self, field.name)
            if known and isinstance(known[0], str) and value not in known:
                raise ValueError(f"{field.name} must be one of {', '.join(known)}, got {value!r}")


TRAINING_FIELDS = frozenset(field.name for field in dataclasses.fields(Training))


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """Everything a worker needs to train one assignment with all its seeds."""

    trial: str
    """Id of the trial, for messages only."""
    task: str
    backbone: str
    """A known name, a Hub id or a folder."""
    method: str
    hyperparameters: dict[str, Scalar]
    """Values of the method's fields."""
    training: Training
    seeds: tuple[int, ...]
    data: DataSpec

    def to_json(self) -> str:
        """This record as one JSON object."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        return cls(
            **{
                **fields,
                "training": Training(**fields["training"]),
                "seeds": tuple(fields["seeds"]),
                "data": DataSpec(**fields["data"]),
            }
        )


@dataclass(frozen=True, kw_only=True)
class RunPoint:
    """One run (one seed) after one evaluation. Every number is finite."""

    seed: int
    value: float
    """The selection metric at this evaluation; the metric's worst value if it diverged."""
    score: float
    """The best value so far (best-checkpoint protocol): never falls."""
    loss: float | None
    """Mean validation loss at this evaluation; None if not finite."""
    train_loss: float | None
    metrics: dict[str, float]
    """Every metric of this evaluation by name, `validation/accuracy` for one."""
    state: RunState


@dataclass(frozen=True, kw_only=True)
class EvalPoint:
    """A trial after one epoch: one point for each of its runs that trained in it."""

    epoch: int
    """Epochs trained so far, from 1."""
    runs: tuple[RunPoint, ...]
    seconds: float
    """Wall time of this epoch with its evaluation."""
    last: bool
    """Whether no run goes on."""

    def to_json(self) -> str:
        """This record as one JSON object."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        return cls(**{**fields, "runs": tuple(RunPoint(**run) for run in fields["runs"])})
