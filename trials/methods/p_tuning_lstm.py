"""P-Tuning (Liu et al. 2021, arXiv 2103.10385) with an LSTM: rows through a BiLSTM and an MLP.

P' = relu(BiLSTM(P) W1 + b1) W2 + b2 is put before the text, the BiLSTM with two layers; after
training P' alone is kept. EPT names it beside the MLP that it compares with.
"""

# S lanes, P prompt rows, V vocabulary, D width, K = 2 directions, I inputs, H hidden width,
# G = 4 x H gates

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.prompt_networks import EncodedPrompt, LaneLinear
from trials.methods.prompts import PromptMethod


@dataclass(frozen=True, kw_only=True)
class PTuningLSTM(PromptMethod):
    """Hyperparameters of P-Tuning with a BiLSTM of two layers."""

    summary: ClassVar[str] = "rows before the text, encoded by a BiLSTM while training"
    paper: ClassVar[str] = "ept"

    init: Literal["sampled", "uniform", "normal"] = "normal"
    """First values of P: PEFT's are normal, EPT's uniform."""
    hidden_width: int = 0
    """H, of each direction; 0: half the backbone's width, as in the authors' code."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.hidden_width >= 0, "hidden_width", "at least 0")

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> EncodedPrompt:
        """First rows, and a network with torch's own first values."""
        width, hidden = shape.width, self.hidden_width or shape.width // 2
        first_SPD = self.first_rows(lanes, words_VD, self.prompt_length)
        network = nn.Sequential(
            BiLSTM(lanes, width, hidden),
            BiLSTM(lanes, 2 * hidden, hidden),
            LaneLinear(lanes, 2 * hidden, 2 * hidden),
            nn.ReLU(),
            LaneLinear(lanes, 2 * hidden, width),
        )
        return EncodedPrompt(first_SPD, network)


class BiLSTM(nn.Module):
    """One layer of a bidirectional LSTM for each lane: torch's, which knows no lanes.

    Gates come in torch's order (input, forget, cell, output), each with torch's two biases. Both
    directions take a step together, the second one on the rows in reverse.
    """

    def __init__(self, lanes: Lanes, inputs: int, hidden: int) -> None:
        super().__init__()
        gates = 4 * hidden
        self.input_SKIG = nn.Parameter(lanes.kaiming(2, inputs, gates, inputs=hidden))
        self.hidden_SKHG = nn.Parameter(lanes.kaiming(2, hidden, gates, inputs=hidden))
        self.input_bias_SKG = nn.Parameter(lanes.kaiming(2, gates, inputs=hidden))
        self.hidden_bias_SKG = nn.Parameter(lanes.kaiming(2, gates, inputs=hidden))

    def forward(self, x_SPI: Tensor) -> Tensor:
        """States of both directions at every row: [S, P, 2 x H]."""
        ways_SKPI = torch.stack([x_SPI, x_SPI.flip(1)], 1)
        bias_SK1G = (self.input_bias_SKG + self.hidden_bias_SKG).unsqueeze(2)
        given_SKPG = ways_SKPI @ self.input_SKIG + bias_SK1G
        lanes, ways, hidden, _ = self.hidden_SKHG.shape
        h_SK1H = c_SK1H = given_SKPG.new_zeros(lanes, ways, 1, hidden)
        states = []
        for given_SK1G in given_SKPG.split(1, 2):
            gates_SK1G = given_SK1G + h_SK1H @ self.hidden_SKHG
            enter, forget, cell, leave = gates_SK1G.chunk(4, -1)
            c_SK1H = forget.sigmoid() * c_SK1H + enter.sigmoid() * cell.tanh()
            h_SK1H = leave.sigmoid() * c_SK1H.tanh()
            states.append(h_SK1H)
        forth_SPH, back_SPH = torch.cat(states, 2).unbind(1)
        return torch.cat([forth_SPH, back_SPH.flip(1)], -1)
