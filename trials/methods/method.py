"""What a method is: hyperparameters, and the adapter they stand for."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, get_args

from torch import Tensor, nn

from trials.backbones.edits import Edits
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone

LEAST_TOKENS = 8
"""A text shorter than this is none: prompts must leave it so many positions."""


class Adapter(nn.Module):
    """What a method adds to a backbone.

    Its parameters and buffers have a leading axis for the lanes.
    """

    first_block: int
    """The lowest block whose input or inside is changed; the number of blocks: none is."""

    def edits(self, *, train: bool) -> Edits:
        """Where it reaches into a pass; `train` says whether its dropout is active."""
        raise NotImplementedError

    def trainable(self) -> Iterator[nn.Parameter]:
        """The parameters to train."""
        return self.parameters()

    def rates(self, learning_rate: float) -> list[tuple[list[nn.Parameter], float]]:
        """The parameters in groups, each with its rate; `learning_rate` is the method's."""
        return [(list(self.trainable()), learning_rate)]

    def fuse(self, backbone: "Backbone") -> "Adapter":
        """What gives the same outputs after training, with all discarded that can be."""
        return self

    def activate(self) -> None:
        """Called before the backbone is used for this adapter."""

    def release(self) -> None:
        """Called after; leaves the backbone as it was loaded."""

    def state(self) -> dict[str, Tensor]:
        """Everything that was trained or drawn, by name: what `load_state` takes."""
        return self.state_dict()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        self.load_state_dict(state)

    def keep(self, lanes: Sequence[int]) -> None:
        """Forget every lane but these."""
        for parameter in self.parameters():
            parameter.data = parameter.data[list(lanes)]
        for module in self.modules():
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer[list(lanes)])


@dataclass(frozen=True, kw_only=True)
class Method:
    """Hyperparameters of a method: its fields are the keys of its search space."""

    summary: ClassVar[str]
    """One phrase that says what it does."""
    paper: ClassVar[str]
    """Short name of the paper that proposes it, or whose baseline it is."""
    parameter_efficient: ClassVar[bool] = True
    """Whether it trains a small part of what the backbone has (AoT, Table 1)."""
    zero_cost: ClassVar[bool]
    """Whether inference costs what the plain backbone's does (AoT, Table 1)."""
    multi_task: ClassVar[bool]
    """Whether one batch can serve several tasks on one backbone (AoT, Table 1)."""
    joins_weights: ClassVar[bool] = False
    """Whether `fuse` can put it into the weights: then it is free, and the backbone one task's."""
    only_words: ClassVar[bool] = False
    """Whether it stays at the word embeddings and never reaches into a block."""
    identity_at_start: ClassVar[bool] = True
    """Whether a fresh adapter leaves the backbone's outputs as they are."""
    trains_backbone: ClassVar[bool] = False
    """Whether the backbone's own weights change; its lanes then train one after the other."""

    learning_rate: float

    def __post_init__(self) -> None:
        for field in fields(self):
            kind, value = field.type, getattr(self, field.name)
            if kind is int:
                self.require(type(value) is int, field.name, "a whole number")
            elif kind is float:
                self.require(type(value) in (int, float), field.name, "a number")
            elif choices := get_args(kind):
                self.require(value in choices, field.name, " or ".join(choices))
        finite = 0 < self.learning_rate < math.inf
        self.require(finite, "learning_rate", "greater than 0 and finite")

    def require(self, holds: bool, field: str, domain: str) -> None:
        """Refuse a value outside its domain.

        Raises:
            ValueError: naming method, field, domain and value.
        """
        if not holds:
            value = getattr(self, field)
            raise ValueError(f"{type(self).__name__}: {field} must be {domain}, got {value!r}")

    @property
    def num_positions(self) -> int:
        """How many of the backbone's positions prompts take from the text."""
        return 0

    @property
    def head_learning_rate(self) -> float:
        """Rate of the head, where the training protocol names none."""
        return self.learning_rate

    def check(self, shape: Shape) -> None:
        """Refuse a backbone on which these hyperparameters cannot be used.

        Raises:
            ValueError: naming method, field, allowed range and value.
        """
        if shape.only_words and not self.only_words:
            raise ValueError(
                f"{type(self).__name__} reaches into the blocks, which have no edit points on "
                f"{shape.family} yet; methods at the word embeddings can be counted there"
            )
        self.require_room(shape, "prompt_length")

    def require_room(self, shape: Shape, field: str) -> None:
        """Refuse prompts that leave a text no position."""
        most = shape.max_tokens - LEAST_TOKENS
        if self.num_positions > most:
            self.require(False, field, f"at most {most} on this {shape.family}")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> Adapter:
        """A fresh adapter for a backbone of this shape with these word embeddings."""
        raise NotImplementedError

    def attach(self, backbone: "Backbone", lanes: Lanes) -> Adapter:
        """A fresh adapter on a backbone."""
        return self.build(backbone.shape, lanes, backbone.words.weight)
