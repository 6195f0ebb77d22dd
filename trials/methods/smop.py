"""SMoP (Choi et al. 2023): a router gives each text one of several short prompts.

w = softmax(mean(E(x)) W) over the k prompts; the prompt of the largest weight, times that weight,
stands before the text. No loss balances the choices. ID-SPAM compares with it.
"""

# S lanes, N = S x b rows, T tokens, K prompts, P rows of each, D width

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes, linear
from trials.methods.method import Adapter, Method


@dataclass(frozen=True, kw_only=True)
class SMoP(Method):
    """K P D + D K parameters; start and noise of the router are the released code's.

    The router learns from the scale of its prompt alone. Where a norm follows the word embeddings
    and no positions are added, as in DeBERTa v1, no output shows that scale, and it stays random.
    """

    summary: ClassVar[str] = "one of several prompts, chosen by the text"
    paper: ClassVar[str] = "id_spam"
    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    only_words: ClassVar[bool] = True
    identity_at_start: ClassVar[bool] = False

    num_prompts: int = 4
    """k, how many prompts the router chooses among."""
    prompt_length: int
    """l, how many rows each has."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.num_prompts >= 1, "num_prompts", "at least 1")
        self.require(self.prompt_length >= 1, "prompt_length", "at least 1")

    @property
    def num_positions(self) -> int:
        """Those of the one prompt that is chosen."""
        return self.prompt_length

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "SMoPAdapter":
        """Prompts normal with deviation 1; orthonormal columns of the router, one a prompt."""
        return SMoPAdapter(self, shape, lanes)


class SMoPAdapter(Adapter):
    """Prompts and router; the choice hangs on the text, so there is nothing to fuse."""

    first_block = 0

    def __init__(self, method: SMoP, shape: Shape, lanes: Lanes) -> None:
        super().__init__()
        self.lanes = lanes
        num_prompts, length, width = method.num_prompts, method.prompt_length, shape.width
        self.prompts_SKPD = nn.Parameter(lanes.normal(num_prompts, length, width, std=1.0))
        self.router_SDK = nn.Parameter(lanes.orthogonal(width, num_prompts))

    def edits(self, *, train: bool) -> Edits:
        """The text's own rows before block 0."""
        return Edits(rows={0: partial(self._rows, train)})

    def _rows(self, train: bool, _: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        logits_NK = self.logits(words_NTD, text.mask_NT)
        if train:
            # each logit times 1 + a standard normal number; no gradient runs through the noise
            logits_NK = logits_NK + self.lanes.noise(logits_NK) * logits_NK.detach()
        weight_N, chosen_N = logits_NK.softmax(-1).max(-1)
        num_lanes = len(self.prompts_SKPD)
        lane_N = torch.arange(num_lanes, device=chosen_N.device)
        lane_N = lane_N.repeat_interleave(len(chosen_N) // num_lanes)
        return weight_N[:, None, None] * self.prompts_SKPD[lane_N, chosen_N]

    def logits(self, words_NTD: Tensor, mask_NT: Tensor) -> Tensor:
        """What the router says of each prompt [N, K], from the mean over a text's tokens."""
        mask_NT1 = mask_NT.unsqueeze(-1)
        mean_ND = (words_NTD * mask_NT1).sum(1) / mask_NT1.sum(1)
        return linear(mean_ND, self.router_SDK)
