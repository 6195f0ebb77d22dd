"""AdapterDrop (Rueckle et al. 2021): adapters, but none in the lowest blocks.

EPT compares with it (Table 4). Nothing is trained below the first adapter.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from trials.backbones.shape import Shape
from trials.methods.adapters import Adapters, BottleneckAdapter
from trials.methods.lanes import Lanes


@dataclass(frozen=True, kw_only=True)
class AdapterDrop(Adapters):
    """Adapters with fewer blocks; the same blocks in training and after."""

    summary: ClassVar[str] = "adapters in the upper blocks only"
    paper: ClassVar[str] = "ept"

    num_dropped: int
    """How many of the lowest blocks have none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.num_dropped >= 1, "num_dropped", "at least 1")

    def check(self, shape: Shape) -> None:
        """Some block must keep its adapters."""
        super().check(shape)
        most = shape.num_blocks - 1
        if self.num_dropped > most:
            self.require(False, "num_dropped", f"at most {most} on this {shape.family}")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> BottleneckAdapter:
        """As adapters."""
        return BottleneckAdapter(self, shape, lanes, self.num_dropped)
