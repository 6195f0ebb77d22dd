"""What a run is told: a description when it is made, updates afterwards. Knows no MLflow."""

from dataclasses import dataclass, field
from typing import Literal

Level = Literal["sweep", "study", "trial"]
Status = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, kw_only=True)
class Description:
    """A run as it is when it is made."""

    id: str
    """Of the sweep, study or trial that it mirrors."""
    name: str
    level: Level
    tags: dict[str, str]
    params: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value of a metric."""

    key: str
    value: float
    step: int
    at: int
    """Milliseconds since 1970, as every time that MLflow is told."""


@dataclass(kw_only=True)
class Update:
    """What some messages add to a run."""

    points: list[Point] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    status: Status | None = None
    at: int = 0
    """When it got that status."""


def milliseconds(seconds: float) -> int:
    """A time of the database as MLflow wants it."""
    return int(seconds * 1000)
