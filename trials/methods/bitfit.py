"""BitFit (Ben Zaken et al. 2022): only the biases that the backbone has are trained.

Each is trained as a bias added to it. AoT, EPT and ADePT compare with it.
"""

# S lanes, N = S x b rows, T tokens, L blocks, X width of a bias

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import EMBEDDINGS, Role, Shape
from trials.methods.fused_weights import FusedWeights, require_one_lane
from trials.methods.lanes import Lanes, spread
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone


@dataclass(frozen=True, kw_only=True)
class BitFit(Method):
    """As many parameters as the backbone has biases: in its blocks and of the first LayerNorm."""

    summary: ClassVar[str] = "the biases that the backbone has"
    paper: ClassVar[str] = "aot"
    zero_cost: ClassVar[bool] = True
    multi_task: ClassVar[bool] = True

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "BitFitAdapter":
        """Zero: the backbone's own biases are the start."""
        return BitFitAdapter(shape, lanes)


class BitFitAdapter(Adapter):
    """What is added to the biases, by role."""

    first_block = 0

    def __init__(self, shape: Shape, lanes: Lanes) -> None:
        super().__init__()
        blocks = list(range(shape.num_blocks))
        self.places: dict[Role, list[int]] = {
            "embedding_norm": [EMBEDDINGS],
            **{role: blocks for role in shape.biases},
        }
        widths = {"embedding_norm": shape.width, **shape.biases}
        self.biases_SLX = nn.ParameterDict(
            {
                role: nn.Parameter(lanes.zeros(len(of), widths[role]))
                for role, of in self.places.items()
            }
        )

    def edits(self, *, train: bool) -> Edits:
        """A bias on every output that has one."""
        return Edits(
            outputs={
                (block, role): partial(self._add, bias_SX)
                for (block, role), bias_SX in self._biases().items()
            }
        )

    def _biases(self) -> dict[tuple[int, Role], Tensor]:
        return {
            (block, role): self.biases_SLX[role][:, i]
            for role, blocks in self.places.items()
            for i, block in enumerate(blocks)
        }

    def _add(self, bias_SX: Tensor, _: Tensor, y_NTX: Tensor, text: Text) -> Tensor:
        return y_NTX + spread(bias_SX, len(text)).unsqueeze(1)

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> FusedWeights:
        """The biases of one lane in the place of the backbone's.

        Raises:
            ValueError: if there are more lanes.
        """
        require_one_lane(len(self.biases_SLX["embedding_norm"]))
        changes = {place: bias_SX[0].clone() for place, bias_SX in self._biases().items()}
        return FusedWeights(backbone, weights={}, biases=changes)
