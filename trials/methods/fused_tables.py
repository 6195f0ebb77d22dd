"""AoT after training: whatever the biases were made from, a table is left to look them up in."""

# S lanes, N = S x b rows, T tokens, L blocks, V vocabulary, D width

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from trials.backbones.edits import Edits, Text
from trials.methods.method import Adapter


class FusedTables(Adapter):
    """One lookup and one addition before each block; the tables stay in host memory."""

    first_block = 0
    tables_SLVD: Tensor

    def __init__(self, tables_SLVD: Tensor) -> None:
        super().__init__()
        self.register_buffer("tables_SLVD", tables_SLVD)

    def edits(self, *, train: bool) -> Edits:
        """The bias of each token, looked up."""
        return Edits(hidden={i: partial(self._add, i) for i in range(self.tables_SLVD.shape[1])})

    def _add(self, block: int, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        tables_SVD = self.tables_SLVD[:, block]
        ids_SM = text.ids_NT.to(tables_SVD.device).view(len(tables_SVD), -1)
        rows = [table[ids] for table, ids in zip(tables_SVD, ids_SM, strict=True)]
        return h_NTD + torch.cat(rows).view_as(h_NTD).to(h_NTD)


@torch.no_grad()
def fused(
    bias: Callable[[int, Tensor], Tensor],
    num_lanes: int,
    num_blocks: int,
    ids_V: Tensor,
    rows_at_once: int = 8192,
) -> FusedTables:
    """The tables of every lane: S x L x V x D numbers.

    Args:
        bias: (block, token ids [S, .]) -> each lane's biases for its tokens [S, ., D].
        num_lanes: S.
        num_blocks: L.
        ids_V: every token id from 0, on the device of the biases.
        rows_at_once: tokens whose biases are computed together.
    """
    chunks = []
    for some_V in ids_V.split(rows_at_once):
        some_SV = some_V.expand(num_lanes, -1)
        biases = [bias(block, some_SV).cpu() for block in range(num_blocks)]
        chunks.append(torch.stack(biases, 1))
    return FusedTables(torch.cat(chunks, 2))
