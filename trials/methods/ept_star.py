"""EPT* (EPT, section 3.3, Figure 6c): the one row of EPT, repeated before the text.

All copies are tied. Equation 5 has the network after the repetition; on equal rows that is the
same as one pass and then the copies. After training a single row is kept.
"""

# S lanes, P copies, V vocabulary, D width

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from trials.backbones.shape import Shape
from trials.methods.ept import Ept
from trials.methods.lanes import Lanes
from trials.methods.prompt_networks import Bottleneck, EncodedPrompt
from trials.methods.prompts import FusedPrompt

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone


@dataclass(frozen=True, kw_only=True)
class EptStar(Ept):
    """D + 2 x D x R parameters, whatever the length."""

    summary: ClassVar[str] = "EPT's row several times before the text"

    prompt_length: int = 10
    """How many copies: 10 in the paper, 1 to 10 in Figure 7."""

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "Repeated":
        """One first row, and a network with torch's own first values."""
        first_S1D = self.first_rows(lanes, words_VD, 1)
        return Repeated(first_S1D, self.network(shape, lanes), self.prompt_length)


class Repeated(EncodedPrompt):
    """One trained row, its network, and how many copies stand before the text."""

    def __init__(self, first_S1D: Tensor, network: Bottleneck, num_copies: int) -> None:
        super().__init__(first_S1D, network)
        self.num_copies = num_copies

    def rows(self) -> Tensor:
        """The same row in every place."""
        return super().rows().expand(-1, self.num_copies, -1)

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> "FusedRepeated":
        """The one row."""
        return FusedRepeated(super().rows(), self.num_copies)


class FusedRepeated(FusedPrompt):
    """One row after training, and how many copies of it stand before the text."""

    def __init__(self, row_S1D: Tensor, num_copies: int) -> None:
        super().__init__(row_S1D)
        self.num_copies = num_copies

    def rows(self) -> Tensor:
        """The same row in every place."""
        return super().rows().expand(-1, self.num_copies, -1)
