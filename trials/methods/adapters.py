"""Adapters (Houlsby et al. 2019): small networks h + W2 f(h W1 + b1) + b2 inside every block.

One stands after the attention sublayer, one after the FF sublayer, before the residual is added.
AoT and EPT compare with them.
"""

# S lanes, N = S x b rows, T tokens, L blocks, K 2: the sublayers, D width, R bottleneck

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Role, Shape
from trials.methods.activation_functions import ACTIVATIONS
from trials.methods.lanes import Lanes, linear
from trials.methods.method import Adapter, Method

SUBLAYERS: tuple[Role, ...] = ("attention_output", "ff_output")


@dataclass(frozen=True, kw_only=True)
class Adapters(Method):
    """2 (2 D R + R + D) parameters a block.

    AoT says nothing on f, the start or LayerNorm. The start is that of HyperFormer's code, f its
    like; the LayerNorms, which the T5 codes train besides, stay frozen here. The bottleneck must
    be one and the same for several tasks to share a batch.
    """

    summary: ClassVar[str] = "small networks after both sublayers of every block"
    paper: ClassVar[str] = "aot"
    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    identity_at_start: ClassVar[bool] = False

    bottleneck: int
    """R, the width between W1 and W2."""
    activation: Literal["gelu", "relu"] = "gelu"
    """f."""
    init_std: float = 0.01
    """Deviation of the normal first values of W1 and W2: near 0, near the identity."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.bottleneck >= 1, "bottleneck", "at least 1")
        self.require(0 < self.init_std < math.inf, "init_std", "greater than 0 and finite")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "BottleneckAdapter":
        """W1 and W2 normal, b1 and b2 zero."""
        return BottleneckAdapter(self, shape, lanes)


class BottleneckAdapter(Adapter):
    """W1, b1, W2, b2 of both sublayers of every block from `first_block` on."""

    def __init__(self, method: Adapters, shape: Shape, lanes: Lanes, first_block: int = 0) -> None:
        super().__init__()
        self.method, self.first_block = method, first_block
        self.blocks = range(first_block, shape.num_blocks)
        width, inside, std = shape.width, method.bottleneck, method.init_std
        networks = (len(self.blocks), len(SUBLAYERS))
        self.down_SLKDR = nn.Parameter(lanes.normal(*networks, width, inside, std=std))
        self.down_bias_SLKR = nn.Parameter(lanes.zeros(*networks, inside))
        self.up_SLKRD = nn.Parameter(lanes.normal(*networks, inside, width, std=std))
        self.up_bias_SLKD = nn.Parameter(lanes.zeros(*networks, width))

    def edits(self, *, train: bool) -> Edits:
        """A network on what both sublayers of a block give."""
        return Edits(
            outputs={
                (block, role): partial(self._pass, i, k)
                for i, block in enumerate(self.blocks)
                for k, role in enumerate(SUBLAYERS)
            }
        )

    def _pass(self, i: int, k: int, _: Tensor, h_NTD: Tensor, text: Text) -> Tensor:
        inside_NTR = linear(h_NTD, self.down_SLKDR[:, i, k], self.down_bias_SLKR[:, i, k])
        inside_NTR = ACTIVATIONS[self.method.activation](inside_NTR)
        return h_NTD + linear(inside_NTR, self.up_SLKRD[:, i, k], self.up_bias_SLKD[:, i, k])
