"""P-Tuning v2 (Liu et al. 2022), deep prefixes: trained keys and values in every block.

Block i attends with the text's queries to [P_K; K] and [P_V; V]. AoT compares with it. Prefixes
have no positions and the text keeps its own; in the released code, as in Hugging Face's models
given a cache, the positions of RoBERTa's and BERT's texts move on by the length of the prefix.
"""

# S lanes, L blocks, C 2: keys and values, P prefix length,
# D width, R width inside, M = L C D

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor, nn

from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes, linear
from trials.methods.method import Method
from trials.methods.prefixes import PrefixAdapter, Prefixes


@dataclass(frozen=True, kw_only=True)
class PTuningV2(Method):
    """2 L P D parameters, or those of a network that makes as many numbers and is then dropped.

    The start, the rate of dropout and the network are the released code's.
    """

    summary: ClassVar[str] = "keys and values before the text's in every block"
    paper: ClassVar[str] = "aot"
    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    identity_at_start: ClassVar[bool] = False

    prompt_length: int
    """How many keys and values a block gets."""
    init_std: float = 1.0
    """Deviation of the normal first values: torch's for embeddings."""
    dropout: float = 0.1
    """On keys and values, drawn anew for each text."""
    reparametrisation_width: int = 0
    """Width inside the network D -> R -> 2 L D with a tanh; 0: there is none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.prompt_length >= 1, "prompt_length", "at least 1")
        self.require(0 < self.init_std < math.inf, "init_std", "greater than 0 and finite")
        self.require(0 <= self.dropout < 1, "dropout", "in [0, 1)")
        self.require(self.reparametrisation_width >= 0, "reparametrisation_width", "at least 0")

    def check(self, shape: Shape) -> None:
        """The backbone's attention must take what is not the text's."""
        super().check(shape)
        if not shape.takes_prefixes:
            raise ValueError(
                f"{type(self).__name__}: prompt_length {self.prompt_length} needs attention that "
                f"takes extra keys and values, which {shape.family}'s does not"
            )

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> PrefixAdapter:
        """Normal numbers; the network as torch starts linear layers."""
        if self.reparametrisation_width:
            return Reparametrised(self, shape, lanes)
        sizes = (shape.num_blocks, 2, self.prompt_length, shape.width)
        first_SLCPD = lanes.normal(*sizes, std=self.init_std)
        drop = partial(lanes.dropout, probability=self.dropout)
        return Prefixes(first_SLCPD, shape.num_heads, drop)


class Reparametrised(PrefixAdapter):
    """A row for each of the P, and a network that makes of it the keys and values of all blocks."""

    def __init__(self, method: PTuningV2, shape: Shape, lanes: Lanes) -> None:
        super().__init__(shape.num_heads, partial(lanes.dropout, probability=method.dropout))
        width, inside = shape.width, method.reparametrisation_width
        self.sizes = (shape.num_blocks, 2, width)
        made = 2 * shape.num_blocks * width
        self.rows_SPD = nn.Parameter(lanes.normal(method.prompt_length, width, std=method.init_std))
        self.in_SDR = nn.Parameter(lanes.kaiming(width, inside, inputs=width))
        self.in_bias_SR = nn.Parameter(lanes.kaiming(inside, inputs=width))
        self.out_SRM = nn.Parameter(lanes.kaiming(inside, made, inputs=inside))
        self.out_bias_SM = nn.Parameter(lanes.kaiming(made, inputs=inside))

    def prefixes(self) -> Tensor:
        """What the network makes of the rows."""
        inside_SPR = linear(self.rows_SPD, self.in_SDR, self.in_bias_SR).tanh()
        made_SPM = linear(inside_SPR, self.out_SRM, self.out_bias_SM)
        return made_SPM.unflatten(-1, self.sizes).movedim(1, 3)
