"""The points at which a method can reach into a frozen backbone."""

# N rows (lanes x batch), T tokens, P prompt rows, D width, H heads

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from trials.backbones.shape import Role


@dataclass(frozen=True)
class Text:
    """A padded batch of token ids."""

    ids_NT: Tensor
    mask_NT: Tensor
    """1 for tokens, 0 for padding."""
    types_NT: Tensor | None = None
    """Segment of each token, for tokenizers that tell pairs apart so."""
    lengths_N: Tensor | None = None
    """Tokens of each row, in host memory; None: no row is padded."""

    def __len__(self) -> int:
        return len(self.ids_NT)


HiddenEdit = Callable[[Tensor, Text, Tensor], Tensor]
"""(hidden states [N, T, D], text, its frozen word embeddings [N, T, D]) -> hidden states."""

RowsEdit = Callable[[Tensor, Text, Tensor], Tensor]
"""(the text's hidden states [N, T, D], text, its frozen word embeddings) -> rows [N, P, D]."""

WordsEdit = Callable[[Tensor, Text], Tensor]
"""(word embeddings [N, T, D], text) -> word embeddings."""

InputEdit = Callable[[Tensor, Text], Tensor]
"""(input [N, ., I] of a module, text) -> input; prompt rows come before the text's."""

OutputEdit = Callable[[Tensor, Tensor, Text], Tensor]
"""(input [N, ., I], output [N, ., O] of a module, text) -> output. A `position_query` sees all
distances once, [1, ., O], and may give them for each row of the text, [N, ., O]."""

PrefixEdit = Callable[[Text], tuple[Tensor, Tensor]]
"""text -> keys and values to put before the text's own, [N, H, P, D / H] each."""


@dataclass(frozen=True)
class Edits:
    """What a method changes in a pass; empty: the pass is Hugging Face's own."""

    hidden: Mapping[int, HiddenEdit] = field(default_factory=dict)
    """By block: replaces the text's hidden states that enter it."""
    words: WordsEdit | None = None
    """Replaces the word embeddings, before positions are added."""
    rows: Mapping[int, RowsEdit] = field(default_factory=dict)
    """By block: puts rows before what enters it; at block 0 word embeddings, which take the first
    positions, so that the text's move on; rows at a later block have no absolute position."""
    outputs: Mapping[tuple[int, Role], OutputEdit] = field(default_factory=dict)
    """By block (or `EMBEDDINGS`) and role: replaces the output of a linear layer or norm, or the
    role's share of it where one layer computes several."""
    inputs: Mapping[tuple[int, Role], InputEdit] = field(default_factory=dict)
    """By block and role: replaces the input of a linear layer that computes this role alone."""
    prefix: Mapping[int, PrefixEdit] = field(default_factory=dict)
    """By block: extra keys and values, which every token attends to."""


@dataclass(frozen=True)
class Stream:
    """What enters a block: prompt rows, if any, then the text."""

    h_NTD: Tensor
    mask_NT: Tensor
    num_rows: int = 0
    """How many rows stand before the text's."""

    @property
    def text_NTD(self) -> Tensor:
        """The hidden states of the text."""
        return self.h_NTD[:, self.num_rows :]

    def with_states(self, h_NTD: Tensor) -> Self:
        """This stream with all its hidden states replaced."""
        return dataclasses.replace(self, h_NTD=h_NTD)

    def with_rows(self, rows_NPD: Tensor) -> Self:
        """This stream with rows put before it."""
        num_rows = rows_NPD.shape[1]
        return dataclasses.replace(
            self,
            h_NTD=torch.cat([rows_NPD.to(self.h_NTD.dtype), self.h_NTD], 1),
            mask_NT=torch.cat(
                [self.mask_NT.new_ones(len(self.mask_NT), num_rows), self.mask_NT], 1
            ),
            num_rows=self.num_rows + num_rows,
        )

    def with_text(self, text_NTD: Tensor) -> Self:
        """This stream with the text's hidden states replaced."""
        rows_NPD = self.h_NTD[:, : self.num_rows]
        return self.with_states(torch.cat([rows_NPD, text_NTD], 1) if self.num_rows else text_NTD)
