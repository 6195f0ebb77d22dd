"""What methods have in common that move the text's word embeddings and put a prompt before them.

The prompt has one learning rate, and what the offsets are computed from another.
"""

# S lanes, N = S x b rows, T tokens, P prompt rows, D width

import dataclasses
import math
from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.methods.prompts import PromptAdapter, PromptMethod


@dataclass(frozen=True, kw_only=True)
class OffsetMethod(PromptMethod):
    """A prompt at `learning_rate`, offsets to the word embeddings at a rate of their own."""

    network_learning_rate: float
    """Rate of all but the prompt: also of the head, where the training protocol names none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        finite = 0 < self.network_learning_rate < math.inf
        self.require(finite, "network_learning_rate", "greater than 0 and finite")

    @property
    def head_learning_rate(self) -> float:
        """That of the network: a prompt's rate of 0.3 is far more than a head bears."""
        return self.network_learning_rate


class OffsetAdapter(PromptAdapter):
    """Puts rows before the text and moves its word embeddings."""

    prompt_SPD: Tensor

    def rows(self) -> Tensor:
        """The prompt."""
        return self.prompt_SPD

    def edits(self, *, train: bool) -> Edits:
        """Moved words, and rows before them if there are any."""
        edits = dataclasses.replace(super().edits(train=train), words=partial(self.moved, train))
        return edits if self.prompt_SPD.shape[1] else dataclasses.replace(edits, rows={})

    def moved(self, train: bool, words_NTD: Tensor, text: Text) -> Tensor:
        """The word embeddings with their offsets [N, T, D]."""
        raise NotImplementedError


class TrainedOffsets(OffsetAdapter):
    """A trained prompt; whatever other parameters there are make the offsets."""

    def __init__(self, method: OffsetMethod, first_SPD: Tensor) -> None:
        super().__init__()
        self.network_learning_rate = method.network_learning_rate
        self.prompt_SPD = nn.Parameter(first_SPD)

    def rates(self, learning_rate: float) -> list[tuple[list[nn.Parameter], float]]:
        """The prompt at the method's rate, the network at its own."""
        parameters = dict(self.named_parameters())
        prompt = parameters.pop("prompt_SPD")
        network = list(parameters.values())
        return [([prompt], learning_rate), (network, self.network_learning_rate)]


class FusedOffsets(OffsetAdapter):
    """After training: the prompt, and a table in place of the network."""

    table: Tensor
    """[S, ...] a lane's rows of width D."""

    def __init__(self, prompt_SPD: Tensor, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("prompt_SPD", prompt_SPD.detach().clone())
        self.register_buffer("table", table)
