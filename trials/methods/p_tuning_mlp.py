"""P-Tuning (Liu et al. 2021, arXiv 2103.10385) with an MLP: rows through a three-layer network.

P' = relu(relu(P W1 + b1) W2 + b2) W3 + b3 is put before the text; after training P' alone is kept.
EPT and ID-SPAM compare with it ("P-Tuning"), both as Hugging Face's PEFT has it.
"""

# S lanes, P prompt rows, V vocabulary, D width, H hidden width

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.prompt_networks import EncodedPrompt, LaneLinear
from trials.methods.prompts import PromptMethod


@dataclass(frozen=True, kw_only=True)
class PTuningMLP(PromptMethod):
    """P x D + (D + 1) x H + (H + 1) x H + (H + 1) x D parameters."""

    summary: ClassVar[str] = "rows before the text, encoded by an MLP while training"
    paper: ClassVar[str] = "ept"

    init: Literal["sampled", "uniform", "normal"] = "normal"
    """First values of P: PEFT's are normal, EPT's uniform."""
    hidden_width: int = 0
    """H; 0: the backbone's width, as in both papers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.hidden_width >= 0, "hidden_width", "at least 0")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> EncodedPrompt:
        """First rows, and a network with torch's own first values."""
        width, hidden = shape.width, self.hidden_width or shape.width
        first_SPD = self.first_rows(lanes, words_VD, self.prompt_length)
        network = nn.Sequential(
            LaneLinear(lanes, width, hidden),
            nn.ReLU(),
            LaneLinear(lanes, hidden, hidden),
            nn.ReLU(),
            LaneLinear(lanes, hidden, width),
        )
        return EncodedPrompt(first_SPD, network)
