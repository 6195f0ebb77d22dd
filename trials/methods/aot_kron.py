"""Kronecker Ahead-of-Time P-Tuning (AoT, section 3.3).

Before block i, H <- H + P_i[x] with P_i = (W_L kron W_M) W_R. A token x = B j + k has row j of W_L
and row k of W_M, and only the rows of the tokens at hand are ever multiplied out. Nothing is added
to the sequence, and after training P is a table from which rows are looked up.
"""

# S lanes, N = S x b rows, T tokens, L blocks, V vocabulary, D width, R rank, Q = R^2, A x B >= V

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Shape
from trials.methods.fused_tables import FusedTables, fused
from trials.methods.lanes import Lanes, lookup
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone

FACTORS = {("roberta", 50265): (256, 200)}
"""A and B where the paper names them, by family and vocabulary. Its 360 x 360 for DeBERTa fits a
vocabulary of 128,100, not the 50,265 of the DeBERTa that it describes."""


@dataclass(frozen=True, kw_only=True)
class AotKron(Method):
    """Hyperparameters of Kronecker AoT; the paper leaves the scale of W_L and W_M open."""

    summary: ClassVar[str] = "token biases before every block, from a Kronecker product"
    paper: ClassVar[str] = "aot"
    zero_cost: ClassVar[bool] = True
    multi_task: ClassVar[bool] = True

    rank: int
    """r, the columns of W_L and of W_M; W_R has r^2 rows."""
    left: int = 0
    """A, the rows of W_L; 0: the paper's for this vocabulary, else so many as `right` needs, else
    the root of the vocabulary."""
    right: int = 0
    """B, the rows of W_M; 0: likewise."""
    dropout: float = 0.1
    """On the looked-up rows of P."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.rank >= 1, "rank", "at least 1")
        self.require(self.left >= 0, "left", "at least 0")
        self.require(self.right >= 0, "right", "at least 0")
        self.require(0 <= self.dropout < 1, "dropout", "in [0, 1)")

    def factors(self, shape: Shape) -> tuple[int, int]:
        """A and B for a backbone."""
        vocabulary = shape.vocabulary
        if not self.left and not self.right:
            root = math.isqrt(vocabulary - 1) + 1
            return FACTORS.get((shape.family, vocabulary), (root, root))
        return (
            self.left or math.ceil(vocabulary / self.right),
            self.right or math.ceil(vocabulary / self.left),
        )

    def check(self, shape: Shape) -> None:
        """Every token must have a row."""
        super().check(shape)
        if self.left and self.right:
            least = math.ceil(shape.vocabulary / self.right)
            domain = f"at least {least} for {shape.vocabulary} tokens with right={self.right}"
            self.require(self.left >= least, "left", domain)

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "AotKronAdapter":
        """W_L and W_M as torch's own linear layers of R inputs; W_R zero, so that P is too."""
        return AotKronAdapter(self, shape, lanes)


class AotKronAdapter(Adapter):
    """W_L, W_M, W_R of every block."""

    first_block = 0

    def __init__(self, method: AotKron, shape: Shape, lanes: Lanes) -> None:
        super().__init__()
        self.method, self.lanes, self.num_blocks = method, lanes, shape.num_blocks
        rank, (left, self.num_right) = method.rank, method.factors(shape)
        self.left_SLAR = nn.Parameter(lanes.kaiming(self.num_blocks, left, rank, inputs=rank))
        self.right_SLBR = nn.Parameter(
            lanes.kaiming(self.num_blocks, self.num_right, rank, inputs=rank)
        )
        self.up_SLQD = nn.Parameter(lanes.zeros(self.num_blocks, rank**2, shape.width))

    def edits(self, *, train: bool) -> Edits:
        """A bias on the input of every block."""
        blocks = range(self.num_blocks)
        return Edits(hidden={block: partial(self._add, block, train) for block in blocks})

    def _add(self, block: int, train: bool, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        bias_NTD = self.bias(block, text.ids_NT)
        if train:
            bias_NTD = self.lanes.dropout(bias_NTD, self.method.dropout, text.lengths_N)
        return h_NTD + bias_NTD

    def bias(self, block: int, ids_NT: Tensor) -> Tensor:
        """Rows of P for tokens: [N, T, D]."""
        left_NTR = lookup(self.left_SLAR[:, block], ids_NT // self.num_right)
        right_NTR = lookup(self.right_SLBR[:, block], ids_NT % self.num_right)
        both_NTQ = (left_NTR.unsqueeze(-1) * right_NTR.unsqueeze(-2)).flatten(-2)
        up_SQD = self.up_SLQD[:, block]
        bias_SMD = torch.bmm(both_NTQ.reshape(len(up_SQD), -1, both_NTQ.shape[-1]), up_SQD)
        return bias_SMD.view(*ids_NT.shape, -1)

    def fuse(self, backbone: "Backbone", rows_at_once: int = 8192) -> FusedTables:
        """The tables P of every lane."""
        ids_V = torch.arange(backbone.shape.vocabulary, device=backbone.device)
        return fused(self.bias, len(self.lanes), self.num_blocks, ids_V, rows_at_once)
