"""ADePT (Tang, Hu and Liu, ICLR 2025): a short prompt, and an offset for each token.

The backbone reads [P; E(x) + f(E(x))] with f(e) = relu(e W1 + b1) W2 + b2, one small network for
all tokens. The offset goes with the token and not, as in DePT, with its place.
"""

# S lanes, N = S x b rows, T tokens, P prompt rows, R bottleneck, V vocabulary, D width

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from trials.backbones.edits import Text
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes, linear, lookup
from trials.methods.word_offsets import FusedOffsets, OffsetMethod, TrainedOffsets

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone


@dataclass(frozen=True, kw_only=True)
class ADePT(OffsetMethod):
    """P D + 2 D R + R + D parameters; the prompt starts from sampled words, as in the text."""

    summary: ClassVar[str] = "a prompt, and a small network's offset to each word embedding"
    paper: ClassVar[str] = "adept"
    least_rows: ClassVar[int] = 0  # Table 14 trains the network alone

    bottleneck: int
    """r, the width inside the network."""
    dropout: float = 0.0
    """Inside the network, before the relu: 0.1 in the released code, not in the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.bottleneck >= 1, "bottleneck", "at least 1")
        self.require(0 <= self.dropout < 1, "dropout", "in [0, 1)")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "ADePTAdapter":
        """W1 uniform in 1 / sqrt(r); the others zero, so that the offsets start at zero."""
        first_SPD = self.first_rows(lanes, words_VD, self.prompt_length)
        return ADePTAdapter(self, shape, lanes, first_SPD)


class ADePTAdapter(TrainedOffsets):
    """P, W1, b1, W2 and b2."""

    def __init__(self, method: ADePT, shape: Shape, lanes: Lanes, first_SPD: Tensor) -> None:
        super().__init__(method, first_SPD)
        self.lanes, self.dropout = lanes, method.dropout
        width, bottleneck = shape.width, method.bottleneck
        # the released code stores W1 as D x R, and torch takes the columns for the inputs
        self.down_SDR = nn.Parameter(lanes.kaiming(width, bottleneck, inputs=bottleneck))
        self.down_bias_SR = nn.Parameter(lanes.zeros(bottleneck))
        self.up_SRD = nn.Parameter(lanes.zeros(bottleneck, width))
        self.up_bias_SD = nn.Parameter(lanes.zeros(width))

    def moved(self, train: bool, words_NTD: Tensor, text: Text) -> Tensor:
        """E + f(E)."""
        inner_NTR = linear(words_NTD, self.down_SDR, self.down_bias_SR)
        if train:
            inner_NTR = self.lanes.dropout(inner_NTR, self.dropout, text.lengths_N)
        return words_NTD + linear(inner_NTR.relu(), self.up_SRD, self.up_bias_SD)

    @torch.no_grad()
    def fuse(self, backbone: "Backbone", rows_at_once: int = 8192) -> "FusedWords":
        """The prompt and, in host memory, every lane's word embeddings: S x V x D numbers."""
        ids_V = torch.arange(backbone.shape.vocabulary, device=backbone.device)
        chunks = []
        for some_V in ids_V.split(rows_at_once):
            some_SV = some_V.expand(len(self.lanes), -1)
            text = Text(some_SV, torch.ones_like(some_SV))
            chunks.append(self.moved(False, backbone.words(some_SV), text).cpu())
        return FusedWords(self.prompt_SPD, torch.cat(chunks, 1))


class FusedWords(FusedOffsets):
    """ADePT after training: word embeddings of its own for each lane."""

    def moved(self, train: bool, words_NTD: Tensor, text: Text) -> Tensor:
        """The lane's embeddings of the tokens, looked up."""
        return lookup(self.table, text.ids_NT.to(self.table.device)).to(words_NTD)
