"""What prompts before the text have in common: length, first values, the rows they add."""

# S lanes, N = S x b rows, P prompt rows, V vocabulary, D width

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes, spread
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone

FREQUENT = 5000
"""Token ids below this are taken for the frequent ones (ATTEMPT's released code)."""

UNIFORM_BOUND = 0.5
"""Virtual tokens start uniform in [-0.5, 0.5] (EPT, appendix)."""


@dataclass(frozen=True, kw_only=True)
class PromptMethod(Method):
    """A method that puts rows before the word embeddings of the text."""

    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    only_words: ClassVar[bool] = True
    identity_at_start: ClassVar[bool] = False
    least_rows: ClassVar[int] = 1
    """The shortest prompt."""

    prompt_length: int
    """How many rows."""
    init: Literal["sampled", "uniform", "normal"] = "sampled"
    """First values: different frequent tokens' embeddings, uniform in [-0.5, 0.5], or normal with
    deviation 1, as torch's own embeddings start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        least = self.least_rows
        self.require(self.prompt_length >= least, "prompt_length", f"at least {least}")

    @property
    def num_positions(self) -> int:
        """The rows take the first positions, so that the text's move on by as many."""
        return self.prompt_length

    def check(self, shape: Shape) -> None:
        """A prompt must leave a text its positions."""
        super().check(shape)
        if self.init == "sampled":
            most = min(FREQUENT, shape.vocabulary)
            self.require(
                self.prompt_length <= most, "prompt_length", f"at most {most} to be sampled"
            )

    def first_rows(self, lanes: Lanes, words_VD: Tensor, num_rows: int) -> Tensor:
        """[S, num_rows, D] first values of prompt rows."""
        if self.init == "uniform":
            return lanes.uniform(num_rows, words_VD.shape[1], bound=UNIFORM_BOUND)
        if self.init == "normal":
            return lanes.normal(num_rows, words_VD.shape[1], std=1.0)
        return sampled_words(lanes, words_VD, num_rows)


def sampled_words(lanes: Lanes, words_VD: Tensor, count: int, among: int = FREQUENT) -> Tensor:
    """[S, count, D] embeddings of different tokens among the first `among` of the vocabulary."""
    if words_VD.is_meta:
        return words_VD.new_empty(len(lanes), count, words_VD.shape[1])
    chosen_SP = lanes.choose(count, min(among, len(words_VD)))
    return words_VD.detach()[chosen_SP].clone()


class PromptAdapter(Adapter):
    """Puts the same rows before every text of a lane."""

    first_block = 0

    def rows(self) -> Tensor:
        """[S, P, D] the rows that stand before the word embeddings."""
        raise NotImplementedError

    def edits(self, *, train: bool) -> Edits:
        """Rows before block 0."""
        return Edits(rows={0: self._spread})

    def _spread(self, words_NTD: Tensor, text: Text, _: Tensor) -> Tensor:
        return spread(self.rows(), len(text))

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> "PromptAdapter":
        """The rows themselves."""
        return FusedPrompt(self.rows())


class FusedPrompt(PromptAdapter):
    """Prompt rows after training."""

    prompt_SPD: Tensor

    def __init__(self, prompt_SPD: Tensor) -> None:
        super().__init__()
        self.register_buffer("prompt_SPD", prompt_SPD.detach().clone())

    def rows(self) -> Tensor:
        """The rows as they were trained."""
        return self.prompt_SPD
