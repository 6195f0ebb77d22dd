"""SuperPos (Sadraei Javaheri et al. 2024, arXiv 2406.05279): prompts as sums of word embeddings.

p_i = (E_frz + D_i)^T w_i: m tokens' embeddings E_frz, drawn once and shared by all prompts, never
train; each prompt i has a change D_i to them and weights w_i of its own. Weight decay therefore
shrinks the change and leaves the embeddings (section 3).
"""

# S lanes, P prompt rows, M sampled tokens, V vocabulary, D width

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.method import Method
from trials.methods.prompts import PromptAdapter, sampled_words


@dataclass(frozen=True, kw_only=True)
class SuperPos(Method):
    """P (M D + M) parameters; the paper does not give the first values of the weights.

    The tokens are drawn from the whole vocabulary, for each lane anew.
    """

    summary: ClassVar[str] = "prompt rows as weighted sums of sampled word embeddings"
    paper: ClassVar[str] = "superpos"
    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    only_words: ClassVar[bool] = True
    identity_at_start: ClassVar[bool] = False

    prompt_length: int = 10
    """How many prompts, of one row each."""
    num_sampled_tokens: int = 128
    """m, how many embeddings each prompt sums."""
    weight_init: Literal["normal", "uniform"] = "normal"
    """First values of w: normal with deviation 1 / sqrt(m), or each 1 / m."""
    softmax: bool = False
    """Whether the sum takes softmax(w) for its weights (appendix A.2, which finds it worse)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.prompt_length >= 1, "prompt_length", "at least 1")
        self.require(self.num_sampled_tokens >= 1, "num_sampled_tokens", "at least 1")
        self.require(type(self.softmax) is bool, "softmax", "true or false")

    @property
    def num_positions(self) -> int:
        """One for each prompt."""
        return self.prompt_length

    def check(self, shape: Shape) -> None:
        """No token is sampled twice."""
        super().check(shape)
        most = shape.vocabulary
        fits = self.num_sampled_tokens <= most
        self.require(fits, "num_sampled_tokens", f"at most {most} on this {shape.family}")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "SuperPosAdapter":
        """Prompts that are sums of real embeddings."""
        return SuperPosAdapter(self, shape, lanes, words_VD)


class SuperPosAdapter(PromptAdapter):
    """Frozen embeddings, and of each prompt the change to them and the weights."""

    frozen_SMD: Tensor

    def __init__(self, method: SuperPos, shape: Shape, lanes: Lanes, words_VD: Tensor) -> None:
        super().__init__()
        self.softmax = method.softmax
        num_prompts, num_tokens = method.prompt_length, method.num_sampled_tokens
        frozen_SMD = sampled_words(lanes, words_VD, num_tokens, among=shape.vocabulary)
        self.register_buffer("frozen_SMD", frozen_SMD)
        self.change_SPMD = nn.Parameter(lanes.zeros(num_prompts, num_tokens, shape.width))
        if method.weight_init == "uniform":
            first_SPM = lanes.zeros(num_prompts, num_tokens) + 1 / num_tokens
        else:
            first_SPM = lanes.normal(num_prompts, num_tokens, std=1 / math.sqrt(num_tokens))
        self.weights_SPM = nn.Parameter(first_SPM)

    def rows(self) -> Tensor:
        """E_frz^T w + D^T w: the sum E_frz + D_i of every prompt is never stored."""
        weights_SPM = self.weights_SPM.softmax(-1) if self.softmax else self.weights_SPM
        changes_SPD = (weights_SPM.unsqueeze(-2) @ self.change_SPMD).squeeze(-2)
        return torch.bmm(weights_SPM, self.frozen_SMD) + changes_SPD
