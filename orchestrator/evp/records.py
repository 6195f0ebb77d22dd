"""What the statistics are computed from, and what they give: records in, a labelled result out."""

from dataclasses import dataclass

from orchestrator.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """One assignment of a study; its score is already the median over its seeds."""

    assignment: int
    """Its number k in the study, from 0, in the order of drawing."""
    outcome: Outcome
    score: float | None
    """Best value so far, in the metric's own direction; None if it never reported."""
    epochs: int = 0
    device_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StudyRecord:
    """Every trial of one study with what is needed to say what their scores mean."""

    name: str
    metric: str
    maximize: bool
    worst: float
    """The value that a failed trial counts with; above `ceiling` for a minimised metric."""
    ceiling: float
    """The best value there is."""
    searcher: str
    """random, grid or tpe."""
    scheduler: str
    """asha or none."""
    num_trials: int
    """How many assignments the study was planned with."""
    num_seeds: int
    grid_size: int | None = None
    note: str = ""
    """What every label must say besides: profile, data, limits."""
    trials: tuple[TrialRecord, ...]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A labelled result. `n`, `value`, `lo`, `hi` have equal lengths; None where undefined.

    Values are in the metric's own direction and scale, and lo <= hi whatever the direction.
    """

    study: str
    estimand: str
    kind: str
    """point, bounds, trace or census."""
    n: tuple[int, ...]
    value: tuple[float, ...] | None
    lo: tuple[float, ...] | None
    hi: tuple[float, ...] | None
    label: str
    """What the curve is, as clauses joined by `; `."""
    warnings: tuple[str, ...] = ()
    """Sentences that belong beside the curve."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """No curve, and why."""

    study: str
    reason: str
