"""Explosive Prompt Tuning (EPT, section 3.3): a row through a bare network of one hidden unit.

P' = (P W_down) W_up is put before the text, without biases, activation, norm or residual, so that
gradients multiply and the norm of P' can grow; after training P' alone is kept.
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
class Ept(PromptMethod):
    """P x D + 2 x D x R parameters, with P = R = 1 in the paper.

    How W_down and W_up start is not said: as torch's own linear layers do.
    """

    summary: ClassVar[str] = "a row before the text, through a bare narrow network while training"
    paper: ClassVar[str] = "ept"

    prompt_length: int = 1
    """How many rows are trained: one in the paper."""
    init: Literal["sampled", "uniform", "normal"] = "uniform"
    """First values of P; Table 6 compares uniform with sampled."""
    bottleneck: int = 1
    """R, the width between W_down and W_up: 1 to 1000 in Figures 5 and 12."""
    activation: Literal["none", "relu", "tanh", "sigmoid"] = "none"
    """Between W_down and W_up (Figure 9, which names relu alone)."""
    layer_norm: bool = False
    """A LayerNorm, with scale and shift, on what W_up gives (Figure 9)."""
    residual: bool = False
    """P added to what the network gives (Figure 9)."""
    num_passes: int = 1
    """How often P passes through the network: 2 for the further layer of Table 4, whose count of
    parameters leaves it no weights of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("bottleneck", "num_passes"):
            self.require(getattr(self, field) >= 1, field, "at least 1")
        for field in ("layer_norm", "residual"):
            self.require(type(getattr(self, field)) is bool, field, "true or false")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> EncodedPrompt:
        """First rows, and a network with torch's own first values."""
        first_SPD = self.first_rows(lanes, words_VD, self.prompt_length)
        return EncodedPrompt(first_SPD, self.network(shape, lanes))

    def network(self, shape: Shape, lanes: Lanes) -> Bottleneck:
        """W_down, W_up and whatever of Figure 9 is on."""
        return Bottleneck(
            lanes,
            shape.width,
            self.bottleneck,
            biases=False,
            activation=self.activation,
            layer_norm=self.layer_norm,
            residual=self.residual,
            num_passes=self.num_passes,
        )
