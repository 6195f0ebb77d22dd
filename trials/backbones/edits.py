"""The points at which a method can reach into a frozen backbone."""

# N rows (lanes x batch), T tokens, D width

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Text:
    """A padded batch of token ids."""

    ids_NT: Tensor
    mask_NT: Tensor
    """1 for tokens, 0 for padding."""
    types_NT: Tensor | None = None
    """Segment of each token, for tokenizers that tell pairs apart so."""

    def repeat(self, times: int) -> "Text":
        """The same rows for each of `times` lanes."""
        if times == 1:
            return self
        return Text(
            self.ids_NT.repeat(times, 1),
            self.mask_NT.repeat(times, 1),
            None if self.types_NT is None else self.types_NT.repeat(times, 1),
        )

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.ids_NT.device


HiddenEdit = Callable[[Tensor, Text, Tensor], Tensor]
"""(hidden states [N, T, D], text, its frozen word embeddings [N, T, D]) -> hidden states."""


@dataclass(frozen=True)
class Edits:
    """What a method changes in a pass; empty: the pass is Hugging Face's own."""

    hidden: Mapping[int, HiddenEdit] = field(default_factory=dict)
    """By block: replaces the hidden states that enter it."""
