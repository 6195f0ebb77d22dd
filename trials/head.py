"""The classification or regression head on the backbone's first text token."""

# S lanes, N = S x b rows, D width, C outputs

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trials.methods.lanes import Lanes, linear

DROPOUT = 0.1


class Head(nn.Module):
    """Linear, tanh, linear, with dropout before each: RoBERTa's own head, one per lane.

    D * D + D + D * C + C parameters a lane: 592,130 for RoBERTa-base and two classes.
    """

    def __init__(self, width: int, outputs: int, lanes: Lanes) -> None:
        super().__init__()
        self.lanes = lanes
        bound = 1 / math.sqrt(width)
        self.dense_SDD = nn.Parameter(lanes.uniform(width, width, bound=bound))
        self.dense_bias_SD = nn.Parameter(lanes.zeros(width))
        self.out_SDC = nn.Parameter(lanes.uniform(width, outputs, bound=bound))
        self.out_bias_SC = nn.Parameter(lanes.zeros(outputs))

    def forward(self, first_ND: Tensor, *, train: bool) -> Tensor:
        """Logits of every row [N, C]."""
        dropout = DROPOUT if train else 0.0
        h_ND = self.lanes.dropout(first_ND, dropout)
        h_ND = torch.tanh(linear(h_ND, self.dense_SDD, self.dense_bias_SD))
        return linear(self.lanes.dropout(h_ND, dropout), self.out_SDC, self.out_bias_SC)

    def keep(self, lanes: Sequence[int]) -> None:
        """Forget every lane but these."""
        for parameter in self.parameters():
            parameter.data = parameter.data[list(lanes)]
