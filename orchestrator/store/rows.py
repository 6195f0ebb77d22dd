"""The rows of the trial database as frozen records, JSON columns decoded.

A *sweep* is what one launch creates, a *study* one space x task x backbone in it, a *trial* one
assignment trained in a study, a *run* one seed of a trial.
"""

from dataclasses import dataclass, field
from typing import Any

from orchestrator.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """What one launch creates."""

    id: str
    """The sweep's name, unique in the database."""
    state: str = "pending"
    """pending, running, finished, stopped (asked to), interrupted, out_of_budget."""
    options: dict[str, Any]
    """The options that define it: the same name with others is refused."""
    execution: dict[str, Any] = field(default_factory=dict)
    """The options of the last launch that may change: workers, address, budgets."""
    versions: dict[str, Any] = field(default_factory=dict)
    """Packages, Python, git state and hardware of the last launch."""
    profile: str
    created_at: float
    """Seconds since 1970, as every time in the database."""
    finished_at: float | None = None
    stop_requested: bool = False
    """Set by `orchestrate stop`, the one column that another process may write."""
    wall_seconds: float = 0.0
    tracking_run: str | None = None
    """Id of the MLflow run."""


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """One space x task x backbone: the unit in which scores compare."""

    id: str
    """`<sweep>/<space>-<task>`."""
    sweep_id: str
    position: int
    space: str
    """Space and section, `aot_fc@demo`."""
    method: str
    task: str
    backbone: str
    metric: str
    maximize: bool
    worst: float
    ceiling: float
    num_trials: int
    seeds: list[int]
    max_epochs: int
    searcher: str
    """random, grid or tpe."""
    search_seed: int
    grid_size: int | None = None
    scheduler: str
    """asha or none."""
    grace: int | None = None
    eta: int | None = None
    space_definition: dict[str, Any]
    """The resolved space and training protocol of this study."""
    data: dict[str, Any] = field(default_factory=dict)
    """Source, limits, sizes, fingerprint, majority score."""
    tracking_run: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """One assignment in one study."""

    id: str
    """`<study>/<k>`."""
    study_id: str
    k: int
    """Number of the assignment in its study, from 0."""
    hyperparameters: dict[str, Any] | None = None
    """None until a searcher that learns from results has chosen them."""
    hash: str | None = None
    """Of the hyperparameters without the seed: an index, not unique."""
    outcome: Outcome = Outcome.PENDING
    attempts: int = 0
    score: float | None = None
    """Median over seeds of the best value so far."""
    epochs: int = 0
    device_seconds: float = 0.0
    random_startup: bool = False
    """Whether a model-based searcher drew it at random."""
    claimed_at: float | None = None
    finished_at: float | None = None
    worker: str | None = None
    error: str | None = None
    """What went wrong and the end of the log, for a trial that failed."""
    tracking_run: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One seed of a trial."""

    trial_id: str
    seed: int
    outcome: Outcome = Outcome.PENDING
    score: float | None = None
    best_epoch: int | None = None


@dataclass(frozen=True, kw_only=True)
class ReportRow:
    """One evaluation of one run: unique by (trial, seed, epoch), written once."""

    trial_id: str
    seed: int
    epoch: int
    attempt: int
    value: float
    score: float
    loss: float | None
    train_loss: float | None
    metrics: dict[str, float]
    seconds: float
    created_at: float


@dataclass(frozen=True, kw_only=True)
class DecisionRow:
    """What ASHA decided about a trial at a rung: unique by (trial, rung), in order of `id`."""

    trial_id: str
    study_id: str
    rung: int
    """Epoch budget of the rung."""
    value: float
    """The trial's score so far."""
    loss: float | None
    """Its validation loss, which tells equal scores apart."""
    threshold: float | None
    """The score it had to reach; None: nothing to compare with."""
    count: int
    """How many trials were recorded at the rung before."""
    stop: bool
    created_at: float
    id: int | None = None


@dataclass(frozen=True, kw_only=True)
class OutboxRow:
    """One message for the experiment tracker, kept until it is delivered."""

    id: int
    sweep_id: str
    kind: str
    payload: dict[str, Any]
    created_at: float


@dataclass(frozen=True, kw_only=True)
class CheckpointRow:
    """One saved state of a trial."""

    trial_id: str
    epoch: int
    path: str
    num_bytes: int
    created_at: float
