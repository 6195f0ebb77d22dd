"""Ahead-of-Time P-Tuning with its tables trained as they are (AoT, section 3.3).

Before block i, H <- H + P_i[x], every entry of every P_i a parameter: what the factorisations
`aot_kron` and `aot_fc` stand for, at the size that makes them necessary (L x V x D numbers). The
paper measures neither its scores nor its speed; here it is what the others are tested against.
"""

# S lanes, N = S x b rows, T tokens, V vocabulary, D width

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Shape
from trials.methods.fused_tables import FusedTables
from trials.methods.lanes import Lanes, lookup
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone


@dataclass(frozen=True, kw_only=True)
class AotFull(Method):
    """Nothing to choose but the learning rate."""

    summary: ClassVar[str] = "token biases before every block, a whole table each"
    paper: ClassVar[str] = "aot"
    parameter_efficient: ClassVar[bool] = False
    zero_cost: ClassVar[bool] = True
    multi_task: ClassVar[bool] = True

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "AotFullAdapter":
        """Zeros."""
        return AotFullAdapter(shape, lanes)


class AotFullAdapter(Adapter):
    """A table [S, V, D] for every block."""

    first_block = 0

    def __init__(self, shape: Shape, lanes: Lanes) -> None:
        super().__init__()
        # one parameter for each block: a lookup's gradient is as large as what it looks up in
        self.tables = nn.ParameterList(
            lanes.zeros(shape.vocabulary, shape.width) for _ in range(shape.num_blocks)
        )

    def edits(self, *, train: bool) -> Edits:
        """A bias on the input of every block."""
        return Edits(hidden={i: partial(self._add, table) for i, table in enumerate(self.tables)})

    @staticmethod
    def _add(table_SVD: Tensor, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        return h_NTD + lookup(table_SVD, text.ids_NT)

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> FusedTables:
        """The tables themselves, in host memory."""
        return FusedTables(torch.stack([table.cpu() for table in self.tables], 1))
