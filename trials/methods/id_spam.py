"""ID-SPAM (Muppidi, Nandy and Bandyopadhyay 2025, arXiv 2506.05629, section 2).

A = mean over the tokens of softmax(E Wq (E Wk)^T / sqrt(D)) E Wv, attention with one head over the
text's frozen word embeddings E; the prompt is W_up relu(W_down A), resized to P rows and put before
what enters one block.
"""

# S lanes, N = S x b rows, T tokens (queries, then keys), P prompt rows, D width

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from trials.backbones.edits import Text
from trials.backbones.shape import Shape
from trials.methods.generated_prompts import (
    Bottleneck,
    GeneratedPromptAdapter,
    GeneratedPromptMethod,
)
from trials.methods.lanes import Lanes, linear

PAPER_BOTTLENECK = 192
"""The width with which two maps D -> R -> D have the 384 x D parameters of Table 12."""


@dataclass(frozen=True, kw_only=True)
class IdSpam(GeneratedPromptMethod):
    """3 x D x D parameters of the attention, and those of the two maps.

    First values, which the paper leaves open, are those of torch's linear layers.
    """

    summary: ClassVar[str] = "rows before a block, from attention over the text's words"
    paper: ClassVar[str] = "id_spam"

    bottleneck: int = 32
    """c, the width between W_down and W_up; the paper does not give it."""
    pooling: Literal["attention", "mean"] = "attention"
    """What gives A; `mean`: the plain mean of E, the ablation of Table 3."""
    outer_relu: bool = False
    """Whether there is a relu after W_up too: in equation 2, not in the text."""
    count_mode: Literal["written", "paper_count"] = "written"
    """`written`: W_up gives P x D numbers, as the text says; `paper_count`: two maps of 192 give
    one row, which all P repeat, the reading that has the printed 3 D D + 384 D parameters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.bottleneck >= 1, "bottleneck", "at least 1")
        own = self.count_mode == "written" or self.bottleneck == type(self).bottleneck
        self.require(own, "bottleneck", f"left out with paper_count, which has {PAPER_BOTTLENECK}")
        self.require(isinstance(self.outer_relu, bool), "outer_relu", "true or false")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "IdSpamAdapter":
        """Every map at random."""
        return IdSpamAdapter(self, shape, lanes)


class IdSpamAdapter(GeneratedPromptAdapter):
    """Attention and the two maps."""

    def __init__(self, method: IdSpam, shape: Shape, lanes: Lanes) -> None:
        super().__init__(method, lanes)
        self.method, width = method, shape.width
        if method.pooling == "attention":
            self.query_SDD, self.key_SDD, self.value_SDD = (
                nn.Parameter(lanes.kaiming(width, width, inputs=width)) for _ in range(3)
            )
        written = method.count_mode == "written"
        inner = method.bottleneck if written else PAPER_BOTTLENECK
        num_rows = method.prompt_length if written else 1
        self.network = Bottleneck(lanes, width, inner, num_rows * width, method.bias)

    def generate(self, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        """The rows, from the word embeddings alone."""
        mask_NT = text.mask_NT.to(words_NTD.dtype)
        mean_NT = mask_NT / mask_NT.sum(1, keepdim=True)
        attends = self.method.pooling == "attention"
        context_ND = self._attend(words_NTD, mean_NT) if attends else _sum(mean_NT, words_NTD)
        rows_NO = self.network.up(self.network.down(context_ND))
        rows_NO = rows_NO.relu() if self.method.outer_relu else rows_NO
        rows_NPD = rows_NO.unflatten(1, (-1, words_NTD.shape[2]))
        return rows_NPD.expand(-1, self.prompt_length, -1)

    def _attend(self, words_NTD: Tensor, mean_NT: Tensor) -> Tensor:
        """A: the mean over the queries, taken before the values are, which is the same for less."""
        query_NTD, key_NTD = linear(words_NTD, self.query_SDD), linear(words_NTD, self.key_SDD)
        scores_NTT = query_NTD @ key_NTD.mT / math.sqrt(words_NTD.shape[2])
        padding_N1T = (mean_NT == 0).unsqueeze(1)
        weights_NTT = torch.softmax(scores_NTT.masked_fill(padding_N1T, -torch.inf), 2)
        share_NT = _sum(mean_NT, weights_NTT)
        return linear(_sum(share_NT, words_NTD), self.value_SDD)


def _sum(weights_NT: Tensor, x_NTD: Tensor) -> Tensor:
    """[N, D] the weighted sum over the tokens."""
    return (weights_NT.unsqueeze(1) @ x_NTD).squeeze(1)
