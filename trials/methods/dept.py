"""DePT (Shi and Lipani 2024): a short prompt, and a low-rank offset for each place in the text.

The backbone reads [P; E(x) + c A B]: row t of A B moves whatever token stands at place t. ADePT and
ID-SPAM compare with it.
"""

# S lanes, N = S x b rows, T tokens, P prompt rows, O places with an offset, R rank, D width

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trials.backbones.edits import Text
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.word_offsets import FusedOffsets, OffsetMethod, TrainedOffsets

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone


@dataclass(frozen=True, kw_only=True)
class DePT(OffsetMethod):
    """P D + R (O + D) parameters; start and `scale` are the released code's.

    Places are counted from the first token of the padded text, special ones included, as padding
    is on the right.
    """

    summary: ClassVar[str] = "a prompt, and low-rank offsets to the word embeddings by place"
    paper: ClassVar[str] = "adept"

    rank: int
    """r, between A and B."""
    offset_length: int = 256
    """s, how many places have an offset: the papers' padded length. A longer text's later tokens
    get none, and rows for places that no text reaches never train: take training's max_length."""
    scale: Literal["none", "8/sqrt(r)"] = "none"
    """c: 1 as in the paper's formula, or the released code's factor."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.rank >= 1, "rank", "at least 1")
        self.require(self.offset_length >= 1, "offset_length", "at least 1")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "DePTAdapter":
        """A uniform in 1 / sqrt(r); B zero, so that the offsets start at zero."""
        return DePTAdapter(self, shape, lanes, self.first_rows(lanes, words_VD, self.prompt_length))


def with_offsets(words_NTD: Tensor, table_SOD: Tensor) -> Tensor:
    """Word embeddings [N, T, D] moved by the row of their place; past the table, left alone."""
    num_lanes, num_places = table_SOD.shape[:2]
    num_tokens = words_NTD.shape[1]
    table_STD = F.pad(table_SOD[:, :num_tokens], (0, 0, 0, max(0, num_tokens - num_places)))
    return (words_NTD.unflatten(0, (num_lanes, -1)) + table_STD.unsqueeze(1)).flatten(0, 1)


class DePTAdapter(TrainedOffsets):
    """P, A and B."""

    def __init__(self, method: DePT, shape: Shape, lanes: Lanes, first_SPD: Tensor) -> None:
        super().__init__(method, first_SPD)
        self.scale = 1.0 if method.scale == "none" else 8 / math.sqrt(method.rank)
        places = (method.offset_length, method.rank)
        self.places_SOR = nn.Parameter(lanes.kaiming(*places, inputs=method.rank))
        self.up_SRD = nn.Parameter(lanes.zeros(method.rank, shape.width))

    def table(self) -> Tensor:
        """[S, O, D] the offset of each place."""
        return self.scale * torch.bmm(self.places_SOR, self.up_SRD)

    def moved(self, train: bool, words_NTD: Tensor, text: Text) -> Tensor:
        """The words, each with the offset of its place."""
        return with_offsets(words_NTD, self.table())

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> "FusedPlaces":
        """The prompt and the offsets themselves, of every lane."""
        return FusedPlaces(self.prompt_SPD, self.table())


class FusedPlaces(FusedOffsets):
    """DePT after training: S x O x D offsets."""

    def moved(self, train: bool, words_NTD: Tensor, text: Text) -> Tensor:
        """The words, each with the offset of its place."""
        return with_offsets(words_NTD, self.table)
