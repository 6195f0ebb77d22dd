"""The points at which a method can reach into a frozen backbone."""

# N rows (lanes x batch), T tokens, D width

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor


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


HiddenEdit = Callable[[Tensor, Text, Tensor], Tensor]
"""(hidden states [N, T, D], text, its frozen word embeddings [N, T, D]) -> hidden states."""


@dataclass(frozen=True)
class Edits:
    """What a method changes in a pass; empty: the pass is Hugging Face's own."""

    hidden: Mapping[int, HiddenEdit] = field(default_factory=dict)
    """By block: replaces the hidden states that enter it."""
