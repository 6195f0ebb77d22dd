"""FC Ahead-of-Time P-Tuning (Gavrilov and Balagansky 2023, arXiv 2305.10835, section 3.3).

Before block i, H <- H + P_i[x] with P_i = f(E W1_i + b1_i) W2_i + b2_i: a bias for each token of
the vocabulary and each block, computed from the frozen word embeddings E. Nothing is added to the
sequence, and after training P is a table from which rows are looked up.
"""

# S lanes, N = S x b rows, T tokens, L blocks, V vocabulary, D width, R rank

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Shape
from trials.methods.activation_functions import ACTIVATIONS
from trials.methods.fused_tables import FusedTables, fused
from trials.methods.lanes import Lanes, linear
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone


@dataclass(frozen=True, kw_only=True)
class AotFC(Method):
    """Hyperparameters of FC AoT; the paper leaves `activation` and the rate of dropout open."""

    summary: ClassVar[str] = "token biases before every block, from a small network on E"
    paper: ClassVar[str] = "aot"
    zero_cost: ClassVar[bool] = True
    multi_task: ClassVar[bool] = True

    rank: int
    """r, the width between W1 and W2."""
    activation: Literal["gelu", "relu"] = "gelu"
    """f."""
    dropout: float = 0.1
    """On E, before W1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.rank >= 1, "rank", "at least 1")
        self.require(0 <= self.dropout < 1, "dropout", "in [0, 1)")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "AotFCAdapter":
        """W1 normal with deviation 0.02; b1, W2, b2 zero, so that P starts at zero."""
        return AotFCAdapter(self, shape, lanes)


class AotFCAdapter(Adapter):
    """W1, b1, W2, b2 of every block."""

    first_block = 0

    def __init__(self, method: AotFC, shape: Shape, lanes: Lanes) -> None:
        super().__init__()
        self.method, self.lanes, self.num_blocks = method, lanes, shape.num_blocks
        num_blocks, width, rank = shape.num_blocks, shape.width, method.rank
        self.down_SLDR = nn.Parameter(lanes.normal(num_blocks, width, rank, std=0.02))
        self.down_bias_SLR = nn.Parameter(lanes.zeros(num_blocks, rank))
        self.up_SLRD = nn.Parameter(lanes.zeros(num_blocks, rank, width))
        self.up_bias_SLD = nn.Parameter(lanes.zeros(num_blocks, width))

    def edits(self, *, train: bool) -> Edits:
        """A bias on the input of every block."""
        blocks = range(self.num_blocks)
        return Edits(hidden={block: partial(self._add, block, train) for block in blocks})

    def _add(self, block: int, train: bool, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        if train:
            words_NTD = self.lanes.dropout(words_NTD, self.method.dropout, text.lengths_N)
        return h_NTD + self.bias(block, words_NTD)

    def bias(self, block: int, words_NTD: Tensor) -> Tensor:
        """Rows of P for word embeddings: [N, T, D]."""
        inner_NTR = linear(words_NTD, self.down_SLDR[:, block], self.down_bias_SLR[:, block])
        inner_NTR = ACTIVATIONS[self.method.activation](inner_NTR)
        return linear(inner_NTR, self.up_SLRD[:, block], self.up_bias_SLD[:, block])

    def fuse(self, backbone: "Backbone", rows_at_once: int = 8192) -> FusedTables:
        """The tables P of every lane."""
        ids_V = torch.arange(backbone.shape.vocabulary, device=backbone.device)
        return fused(
            lambda block, ids_SV: self.bias(block, backbone.words(ids_SV)),
            *(len(self.lanes), self.num_blocks, ids_V, rows_at_once),
        )
