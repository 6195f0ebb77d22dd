"""Weights after training: what a method amounts to, added into the backbone while it is used."""

# S lanes, G groups, W width of a group, I inputs

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trials.backbones.edits import Edits
from trials.backbones.shape import Role
from trials.methods.method import Adapter

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone

Changes = Mapping[tuple[int, Role], Tensor]
"""By block (or `EMBEDDINGS`) and role: what is added to a weight or to a bias."""


class FusedWeights(Adapter):
    """Changes of a backbone's weights and biases: a pass then costs what the plain one does."""

    first_block = 0

    def __init__(self, backbone: "Backbone", *, weights: Changes, biases: Changes) -> None:
        """Keep the changes.

        Args:
            backbone: what they are changes of.
            weights: for each of these roles a tensor with as many numbers as `Part.weight`.
            biases: the same for `Part.bias`.
        """
        super().__init__()
        self._backbone = backbone
        self._weights, self._biases = dict(weights), dict(biases)
        self._replaced: list[tuple[Tensor, Tensor]] = []

    def edits(self, *, train: bool) -> Edits:
        """None: the weights themselves differ."""
        return Edits()

    @torch.no_grad()
    def activate(self) -> None:
        """Add the changes to the backbone's weights."""
        assert not self._replaced
        part = self._backbone.part
        for place, change in self._weights.items():
            self._add(part(*place).weight, change)
        for place, change in self._biases.items():
            bias = part(*place).bias
            assert bias is not None
            self._add(bias, change)

    def _add(self, weight: Tensor, change: Tensor) -> None:
        self._replaced.append((weight, weight.clone()))
        weight += change.view_as(weight)

    @torch.no_grad()
    def release(self) -> None:
        """Put back what was there, to the bit."""
        for weight, before in self._replaced:
            weight.copy_(before)
        self._replaced = []


def require_one_lane(num_lanes: int) -> None:
    """Refuse to put several lanes into one backbone.

    Raises:
        ValueError: if there is not exactly one.
    """
    if num_lanes != 1:
        raise ValueError(
            f"one backbone holds the weights of one lane, got {num_lanes}; keep one and fuse it"
        )
