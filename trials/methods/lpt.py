"""Late prompt tuning (Liu et al. 2022): a prompt generated inside the model, put in there.

From what enters block k a small network makes rows that are put before it, for the blocks from k
on. ID-SPAM's main baseline (Tables 2 to 15, Figure 2), with the naive generator.
"""

# S lanes, N = S x b rows, T tokens, P prompt rows, W tokens of a span, D width, R bottleneck

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from trials.backbones.edits import Text
from trials.backbones.shape import Shape
from trials.methods.generated_prompts import (
    Bottleneck,
    GeneratedPromptAdapter,
    GeneratedPromptMethod,
)
from trials.methods.lanes import Lanes


@dataclass(frozen=True, kw_only=True)
class LPT(GeneratedPromptMethod):
    """(1 + P) x D x R parameters with the naive generator, 2 x D x R with pooling.

    At layer 0 the naive generator sees the first token's word embedding alone, the same for every
    text. The first values, which the paper leaves open, are those of torch's linear layers.
    """

    summary: ClassVar[str] = "rows before a middle block, from the first token's state there"
    paper: ClassVar[str] = "id_spam"

    bottleneck: int
    """Width between the two maps; 256 in ID-SPAM's count."""
    generator: Literal["naive", "pooling"] = "naive"
    """`naive`: the first token's state, mapped down and up to all rows at once; `pooling`: every
    token's, mapped down, pooled to as many as there are rows, and each of these mapped up."""
    pooling: Literal["max", "average"] = "max"
    """How `pooling` pools the spans into which a text's tokens are cut."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.bottleneck >= 1, "bottleneck", "at least 1")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "LPTAdapter":
        """Both maps at random."""
        return LPTAdapter(self, shape, lanes)


class LPTAdapter(GeneratedPromptAdapter):
    """The generator."""

    def __init__(self, method: LPT, shape: Shape, lanes: Lanes) -> None:
        super().__init__(method, lanes)
        self.method = method
        num_rows = method.prompt_length if method.generator == "naive" else 1
        sizes = (shape.width, method.bottleneck, num_rows * shape.width)
        self.network = Bottleneck(lanes, *sizes, method.bias)

    def generate(self, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        """The rows, from the states entering the block."""
        if self.method.generator == "naive":
            rows_NO = self.network.up(self.network.down(h_NTD[:, 0]))
            return rows_NO.unflatten(1, (self.prompt_length, -1))
        h_NTR = self.network.down(h_NTD)
        return self.network.up(pooled(h_NTR, text.mask_NT, self.prompt_length, self.method.pooling))


def pooled(
    h_NTR: Tensor, mask_NT: Tensor, num_spans: int, pooling: Literal["max", "average"]
) -> Tensor:
    """[N, P, R] of the tokens of each text, cut into P spans as torch's adaptive pooling does.

    The spans of n tokens go from floor(i n / P) to ceil((i + 1) n / P); they overlap where P does
    not divide n. Padding, which stands on the right, is in none of them.
    """
    num_rows, num_columns, _ = h_NTR.shape
    lengths_N1 = mask_NT.sum(1, keepdim=True)
    spans_P = torch.arange(num_spans, device=h_NTR.device)
    starts_NP = spans_P * lengths_N1 // num_spans
    ends_NP = ((spans_P + 1) * lengths_N1 + num_spans - 1) // num_spans
    longest = num_columns // num_spans + 2
    places_NPW = starts_NP.unsqueeze(2) + torch.arange(longest, device=h_NTR.device)
    outside_NPW1 = (places_NPW >= ends_NP.unsqueeze(2)).unsqueeze(3)
    rows_N11 = torch.arange(num_rows, device=h_NTR.device).view(-1, 1, 1)
    h_NPWR = h_NTR[rows_N11, places_NPW.clamp(max=num_columns - 1)]
    if pooling == "max":
        return h_NPWR.masked_fill(outside_NPW1, -torch.inf).amax(2)
    return h_NPWR.masked_fill(outside_NPW1, 0).sum(2) / (ends_NP - starts_NP).unsqueeze(2)
