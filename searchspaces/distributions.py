"""What a hyperparameter may be: a choice, or a range of numbers."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Scalar = int | float | str | bool


class Distribution(Protocol):
    """A set of values with a probability for each."""

    def draw(self, generator: np.random.Generator) -> Scalar:
        """One value at random."""
        ...

    def cells(self) -> tuple[Scalar, ...] | None:
        """Every value, in the file's order; None for a continuous range."""
        ...


@dataclass(frozen=True)
class Choice:
    """Finitely many values, equally likely."""

    values: tuple[Scalar, ...]

    def draw(self, generator: np.random.Generator) -> Scalar:
        """One of the values."""
        return self.values[int(generator.integers(len(self.values)))]

    def cells(self) -> tuple[Scalar, ...]:
        """The values."""
        return self.values


@dataclass(frozen=True)
class Range:
    """Real numbers in [low, high], uniform in the value or in its logarithm."""

    low: float
    high: float
    log: bool = False

    def draw(self, generator: np.random.Generator) -> float:
        """A number of the range."""
        if self.log:
            return float(math.exp(generator.uniform(math.log(self.low), math.log(self.high))))
        return float(generator.uniform(self.low, self.high))

    def cells(self) -> None:
        """None: there are infinitely many."""
        return


@dataclass(frozen=True)
class Integer:
    """Whole numbers from low to high, both included."""

    low: int
    high: int

    def draw(self, generator: np.random.Generator) -> int:
        """A whole number of the range."""
        return int(generator.integers(self.low, self.high + 1))

    def cells(self) -> tuple[int, ...]:
        """Every whole number of the range."""
        return tuple(range(self.low, self.high + 1))


KINDS = ("choice", "uniform", "log_uniform", "integer")


def parse(definition: object) -> Distribution:
    """The distribution that a YAML value describes; a bare value is a choice of one.

    Raises:
        ValueError: with the reason, if it describes none.
    """
    if not isinstance(definition, dict):
        return Choice((_scalar(definition),))
    if len(definition) != 1 or next(iter(definition)) not in KINDS:
        raise ValueError(f"needs exactly one of {', '.join(KINDS)}, got {definition}")
    ((kind, value),) = definition.items()
    if kind == "choice":
        if not isinstance(value, list) or not value:
            raise ValueError(f"choice needs a list of values, got {value!r}")
        return Choice(tuple(_scalar(item) for item in value))
    low, high = _bounds(kind, value)
    if kind == "integer":
        if not (isinstance(low, int) and isinstance(high, int)):
            raise ValueError(f"integer needs whole numbers, got {value}")
        return Integer(low, high)
    if kind == "log_uniform" and low <= 0:
        raise ValueError(f"log_uniform needs 0 < low < high, got {value}")
    return Range(float(low), float(high), log=kind == "log_uniform")


def _bounds(kind: str, value: Any) -> tuple[int | float, int | float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{kind} needs [low, high], got {value!r}")
    low, high = (_scalar(item) for item in value)
    if isinstance(low, str | bool) or isinstance(high, str | bool) or not low < high:
        raise ValueError(f"{kind} needs numbers with low < high, got {value}")
    return low, high


def _scalar(value: object) -> Scalar:
    if isinstance(value, bool | int | str):
        if isinstance(value, str) and _reads_as_number(value):
            raise ValueError(f"{value!r} is text in YAML; write it with a dot, as in 1.0e-4")
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"a value must be a finite number, a text or true/false, got {value!r}")


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
