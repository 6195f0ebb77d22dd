"""Residual prompt tuning (Razdaibiedina et al. 2023, arXiv 2305.03937): rows through a skip MLP.

g(P) = P + LN(relu(P W_down + b1) W_up + b2), one network for all rows, is put before the text;
after training g(P) alone is kept. EPT and SuperPos compare with it ("ResPrompt", "Residual PT").
"""

# S lanes, P prompt rows, V vocabulary, D width, R bottleneck

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.prompt_networks import Bottleneck, EncodedPrompt
from trials.methods.prompts import PromptMethod


@dataclass(frozen=True, kw_only=True)
class ResPrompt(PromptMethod):
    """P x D + 2 x D x R + R + 3 x D parameters; rows start as vocabulary rows, uniform in EPT."""

    summary: ClassVar[str] = "rows before the text, through a residual bottleneck while training"
    paper: ClassVar[str] = "ept"

    bottleneck: int
    """R, the width between W_down and W_up."""
    activation: Literal["relu", "tanh", "sigmoid"] = "relu"
    """Between W_down and W_up: the authors' code has these."""
    num_passes: int = 1
    """How often the rows pass through the network before P is added, with one set of weights each
    time: 1 by the authors' default and in SuperPos, 2 in EPT."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("bottleneck", "num_passes"):
            self.require(getattr(self, field) >= 1, field, "at least 1")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> EncodedPrompt:
        """First rows, and a network with torch's own first values."""
        first_SPD = self.first_rows(lanes, words_VD, self.prompt_length)
        network = Bottleneck(
            lanes,
            shape.width,
            self.bottleneck,
            biases=True,
            activation=self.activation,
            layer_norm=True,
            residual=True,
            num_passes=self.num_passes,
        )
        return EncodedPrompt(first_SPD, network)
