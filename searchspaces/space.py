"""One method's space for one task and backbone: draws assignments, enumerates its grid.

Assignment k of a random search is a pure function of (space, seed, k), so a search can be
continued, or repeated elsewhere, from these three alone.
"""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from searchspaces.distributions import Choice, Distribution, Range, Scalar, parse

Assignment = dict[str, Scalar]


@dataclass(frozen=True)
class Space:
    """What may be varied for one method on one task and backbone, and what is fixed."""

    method: str
    name: str
    """`<file>@<section>`."""
    source: str
    """Where the values come from."""
    free: Mapping[str, Distribution]
    """Hyperparameters that vary on their own."""
    tied: tuple[tuple[Assignment, ...], ...]
    """Groups of hyperparameters that vary together: one of the assignments of each."""
    training: Mapping[str, Scalar | None]
    """Fixed values of the training protocol."""
    seeds: int | None = None
    """How many seeds the paper gives each assignment; None: it does not say."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Every hyperparameter that an assignment has."""
        return (*self.free, *(key for group in self.tied for key in group[0]))

    def draw(self, seed: int, k: int) -> Assignment:
        """Assignment k (from 0) of a random search with this seed."""
        generator = np.random.default_rng(np.random.SeedSequence([seed, k, self._entropy]))
        values = {key: distribution.draw(generator) for key, distribution in self.free.items()}
        for group in self.tied:
            values |= group[int(generator.integers(len(group)))]
        return values

    @property
    def grid_size(self) -> int:
        """How many assignments the full grid has.

        Raises:
            ValueError: naming the hyperparameter that is a continuous range.
        """
        return int(np.prod([len(axis) for axis in self._axes()], dtype=np.int64))

    @property
    def is_single(self) -> bool:
        """Whether there is one assignment only."""
        single = all(len(values.cells() or (0, 0)) == 1 for values in self.free.values())
        return single and all(len(group) == 1 for group in self.tied)

    def grid_cell(self, seed: int, k: int) -> Assignment:
        """Cell k of the full grid, its cells in a seeded random order."""
        axes = self._axes()
        order = np.random.default_rng(np.random.SeedSequence([seed, self._entropy]))
        cell = int(order.permutation(self.grid_size)[k])
        values: Assignment = {}
        for axis in reversed(axes):
            cell, index = divmod(cell, len(axis))
            values = axis[index] | values
        return values

    def grid(self) -> list[Assignment]:
        """Every cell, in the file's order."""
        return [
            {key: value for part in parts for key, value in part.items()}
            for parts in itertools.product(*self._axes())
        ]

    def _axes(self) -> list[tuple[Assignment, ...]]:
        axes: list[tuple[Assignment, ...]] = []
        for key, distribution in self.free.items():
            cells = distribution.cells()
            if cells is None:
                raise ValueError(
                    f"a grid needs choices, but {key} of {self.name} is a continuous range; "
                    f"use --search random or tpe"
                )
            axes.append(tuple({key: value} for value in cells))
        return [*axes, *self.tied]

    def describe(self) -> dict[str, Any]:
        """This space as JSON values, equal exactly for equal spaces."""
        return {
            "method": self.method,
            "name": self.name,
            "source": self.source,
            "space": {key: _describe(value) for key, value in self.free.items()},
            "tied": [list(group) for group in self.tied],
            "training": dict(self.training),
            "seeds": self.seeds,
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """The space that `describe` described."""
        return cls(
            method=description["method"],
            name=description["name"],
            source=description["source"],
            free={key: parse(value) for key, value in description["space"].items()},
            tied=tuple(tuple(group) for group in description["tied"]),
            training=description["training"],
            seeds=description["seeds"],
        )

    @cached_property
    def _entropy(self) -> int:
        """Tells spaces apart in the random stream, so that two methods' draws are independent."""
        content = {key: self.describe()[key] for key in ("method", "space", "tied")}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
        return int.from_bytes(digest[:8], "big")


def _describe(distribution: Distribution) -> Any:
    if isinstance(distribution, Choice):
        return {"choice": list(distribution.values)}
    if isinstance(distribution, Range):
        kind = "log_uniform" if distribution.log else "uniform"
        return {kind: [distribution.low, distribution.high]}
    cells = distribution.cells()
    assert cells is not None
    return {"integer": [cells[0], cells[-1]]}
