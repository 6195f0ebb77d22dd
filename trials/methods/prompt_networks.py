"""Prompts that a small network computes while training, and that are stored without it.

The rows before the text are g(P): P are trained rows, g is trained with them.
"""

# S lanes, P prompt rows, D width, R bottleneck, I inputs, O outputs

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from trials.methods.activation_functions import ACTIVATIONS
from trials.methods.lanes import Lanes
from trials.methods.prompts import PromptAdapter

Activation = Literal["none", "relu", "tanh", "sigmoid"]


class EncodedPrompt(PromptAdapter):
    """Trained rows and the network that they go through; a fused one is the rows that come out."""

    def __init__(self, first_SPD: Tensor, network: nn.Module) -> None:
        super().__init__()
        self.prompt_SPD = nn.Parameter(first_SPD)
        self.network = network

    def rows(self) -> Tensor:
        """g(P)."""
        encoded_SPD: Tensor = self.network(self.prompt_SPD)
        return encoded_SPD


class LaneLinear(nn.Module):
    """A linear layer of each lane, with torch's own first values."""

    def __init__(self, lanes: Lanes, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight_SIO = nn.Parameter(lanes.kaiming(inputs, outputs, inputs=inputs))
        self.bias_SO = nn.Parameter(lanes.kaiming(outputs, inputs=inputs)) if bias else None

    def forward(self, x_SPI: Tensor) -> Tensor:
        """[S, P, O]: x W, and b if there is one."""
        y_SPO = x_SPI @ self.weight_SIO
        return y_SPO if self.bias_SO is None else y_SPO + self.bias_SO.unsqueeze(1)


class LaneNorm(nn.Module):
    """A LayerNorm of each lane, with torch's own first values."""

    def __init__(self, lanes: Lanes, width: int) -> None:
        super().__init__()
        self.scale_SD = nn.Parameter(lanes.zeros(width) + 1)
        self.shift_SD = nn.Parameter(lanes.zeros(width))

    def forward(self, x_SPD: Tensor) -> Tensor:
        """Rows of mean 0 and variance 1, then scaled and shifted."""
        normal_SPD = F.layer_norm(x_SPD, x_SPD.shape[-1:])
        return normal_SPD * self.scale_SD.unsqueeze(1) + self.shift_SD.unsqueeze(1)


class Bottleneck(nn.Module):
    """x -> LN(f(x W_down) W_up) so many times over with one set of weights, and x added at last."""

    def __init__(
        self,
        lanes: Lanes,
        width: int,
        bottleneck: int,
        *,
        biases: bool,
        activation: Activation,
        layer_norm: bool,
        residual: bool,
        num_passes: int,
    ) -> None:
        super().__init__()
        self.down = LaneLinear(lanes, width, bottleneck, bias=biases)
        self.up = LaneLinear(lanes, bottleneck, width, bias=biases)
        self.norm = LaneNorm(lanes, width) if layer_norm else None
        self.activation, self.residual, self.num_passes = activation, residual, num_passes

    def forward(self, x_SPD: Tensor) -> Tensor:
        """The rows of every lane through its own network."""
        y_SPD = x_SPD
        for _ in range(self.num_passes):
            y_SPD = self.up(ACTIVATIONS[self.activation](self.down(y_SPD)))
            y_SPD = y_SPD if self.norm is None else self.norm(y_SPD)
        return x_SPD + y_SPD if self.residual else y_SPD
