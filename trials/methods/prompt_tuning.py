"""Prompt tuning (Lester et al. 2021): trained rows before the word embeddings of the text.

EPT, ID-SPAM, ADePT and SuperPos compare with it ("PT", "Simple PT").
"""

# S lanes, P prompt rows, V vocabulary, D width

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.prompts import PromptAdapter, PromptMethod


@dataclass(frozen=True, kw_only=True)
class PromptTuning(PromptMethod):
    """P x D parameters."""

    summary: ClassVar[str] = "rows before the text's word embeddings"
    paper: ClassVar[str] = "ept"

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "Prompt":
        """Rows of the vocabulary, or uniform."""
        return Prompt(self.first_rows(lanes, words_VD, self.prompt_length))


class Prompt(PromptAdapter):
    """The rows, trained as they are."""

    def __init__(self, first_SPD: Tensor) -> None:
        super().__init__()
        self.prompt_SPD = nn.Parameter(first_SPD)

    def rows(self) -> Tensor:
        """The rows themselves."""
        return self.prompt_SPD
