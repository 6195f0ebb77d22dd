"""LoRA (Hu et al. 2022): a low-rank change of frozen weights, W' = W + (alpha / r) B A.

AoT, ID-SPAM and ADePT compare with it, each on other weights. Where a backbone computes queries,
keys and values in one layer, each still has factors of its own.
"""

# S lanes, N = S x b rows, T tokens, L blocks, I inputs, O outputs, R rank

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, OutputEdit, Text
from trials.backbones.shape import Role, Shape
from trials.methods.fused_weights import FusedWeights, require_one_lane
from trials.methods.lanes import Lanes, linear
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone

TARGETS: dict[str, tuple[Role, ...]] = {
    "query_value": ("query", "value"),
    "query_key_value": ("query", "key", "value"),
    "attention": ("query", "key", "value", "attention_output"),
    "all_linear": ("query", "key", "value", "attention_output", "ff_input", "ff_output"),
}
"""The weights that are changed; DeBERTa's projections of positions never are."""


@dataclass(frozen=True, kw_only=True)
class LoRA(Method):
    """r (I + O) parameters for each changed weight, I x O.

    No paper states `alpha`, `dropout` or the matrices in words: the counts of ADePT are those of
    `query_value`, of ID-SPAM those of `all_linear` (with the language model's head besides), and
    AoT speaks of the attention's weights, four to a block.
    """

    summary: ClassVar[str] = "a low-rank change of attention or all linear weights"
    paper: ClassVar[str] = "aot"
    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    joins_weights: ClassVar[bool] = True

    rank: int
    """r."""
    alpha: float = 16.0
    """The change is scaled by alpha / r; one constant for every r, as is common."""
    dropout: float = 0.0
    """On the input of A."""
    targets: Literal["query_value", "query_key_value", "attention", "all_linear"] = "query_value"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.rank >= 1, "rank", "at least 1")
        self.require(0 < self.alpha < math.inf, "alpha", "greater than 0 and finite")
        self.require(0 <= self.dropout < 1, "dropout", "in [0, 1)")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "LoRAAdapter":
        """A as torch starts linear layers, B zero."""
        return LoRAAdapter(self, shape, lanes)


class LoRAAdapter(Adapter):
    """A and B, transposed, of every block by role."""

    first_block = 0

    def __init__(self, method: LoRA, shape: Shape, lanes: Lanes) -> None:
        super().__init__()
        self.method, self.lanes, self.num_blocks = method, lanes, shape.num_blocks
        self.scale = method.alpha / method.rank
        self.down_SLIR, self.up_SLRO = nn.ParameterDict(), nn.ParameterDict()
        for role in TARGETS[method.targets]:
            inputs, outputs = shape.linear(role)
            down_SLIR = lanes.kaiming(shape.num_blocks, inputs, method.rank, inputs=inputs)
            self.down_SLIR[role] = nn.Parameter(down_SLIR)
            up_SLRO = lanes.zeros(shape.num_blocks, method.rank, outputs)
            self.up_SLRO[role] = nn.Parameter(up_SLRO)

    def edits(self, *, train: bool) -> Edits:
        """B A x added to the output of every target."""
        return Edits(
            outputs={
                place: cast(OutputEdit, partial(self._add, *place, train))
                for place in self._places()
            }
        )

    def _places(self) -> list[tuple[int, Role]]:
        roles = TARGETS[self.method.targets]
        return [(block, role) for block in range(self.num_blocks) for role in roles]

    def _add(
        self, block: int, role: Role, train: bool, x_NTI: Tensor, y_NTO: Tensor, text: Text
    ) -> Tensor:
        if train:
            x_NTI = self.lanes.dropout(x_NTI, self.method.dropout, text.lengths_N)
        inside_NTR = linear(x_NTI, self.down_SLIR[role][:, block])
        return y_NTO + self.scale * linear(inside_NTR, self.up_SLRO[role][:, block])

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> FusedWeights:
        """The products (alpha / r) B A of one lane.

        Raises:
            ValueError: if there are more lanes.
        """
        roles = TARGETS[self.method.targets]
        require_one_lane(len(self.down_SLIR[roles[0]]))
        changes = {}
        for block, role in self._places():
            change_IO = self.down_SLIR[role][0, block] @ self.up_SLRO[role][0, block]
            changes[block, role] = self.scale * change_IO.T.contiguous()
        return FusedWeights(backbone, weights=changes, biases={})
