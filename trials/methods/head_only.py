"""Head only: the control in which a classifier is trained on the frozen backbone's output."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from trials.backbones.edits import Edits
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.method import Adapter, Method


@dataclass(frozen=True, kw_only=True)
class HeadOnly(Method):
    """No hyperparameter but the learning rate of the head."""

    summary: ClassVar[str] = "nothing but the head (control)"
    paper: ClassVar[str] = "control"
    zero_cost: ClassVar[bool] = True
    multi_task: ClassVar[bool] = True
    only_words: ClassVar[bool] = True

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "HeadOnlyAdapter":
        """An adapter without parameters."""
        return HeadOnlyAdapter(shape)


class HeadOnlyAdapter(Adapter):
    """Changes no block, so that the backbone's output is constant and can be kept."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.first_block = shape.num_blocks

    def edits(self, *, train: bool) -> Edits:
        """None."""
        return Edits()
