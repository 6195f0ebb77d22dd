"""Prefixes: keys and values that stand before the text's in every block."""

# S lanes, N = S x b rows, L blocks, C 2: keys and values, P prefix length, D width

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.methods.lanes import spread
from trials.methods.method import Adapter

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone

Drop = Callable[[Tensor], Tensor]
"""Rows of all lanes -> the same with entries dropped."""


class PrefixAdapter(Adapter):
    """Gives each block keys and values, the same for every text of a lane."""

    first_block = 0

    def __init__(self, num_heads: int, drop: Drop | None) -> None:
        super().__init__()
        self.num_heads, self.drop = num_heads, drop

    def prefixes(self) -> Tensor:
        """[S, L, C, P, D] keys and values of every block."""
        raise NotImplementedError

    def edits(self, *, train: bool) -> Edits:
        """A prefix in every block."""
        blocks = enumerate(self.prefixes().unbind(1))
        return Edits(prefix={i: partial(self._give, own, train) for i, own in blocks})

    def _give(self, prefix_SCPD: Tensor, train: bool, text: Text) -> tuple[Tensor, Tensor]:
        prefix_NCPD = spread(prefix_SCPD, len(text))
        if train and self.drop:
            prefix_NCPD = self.drop(prefix_NCPD)
        keys, values = prefix_NCPD.unflatten(-1, (self.num_heads, -1)).transpose(2, 3).unbind(1)
        return keys, values

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> "Prefixes":
        """The keys and values themselves."""
        return Prefixes(self.prefixes().clone(), self.num_heads).requires_grad_(False)


class Prefixes(PrefixAdapter):
    """Keys and values, trained as they are."""

    def __init__(self, first_SLCPD: Tensor, num_heads: int, drop: Drop | None = None) -> None:
        super().__init__(num_heads, drop)
        self.prefix_SLCPD = nn.Parameter(first_SLCPD)

    def prefixes(self) -> Tensor:
        """The parameters themselves."""
        return self.prefix_SLCPD
