"""What prompts made from the text itself have in common: where they enter, how they are made.

A two-layer network gives the rows, which are put before what enters one block: the blocks below it
run on the text alone, and their output never changes.
"""

# S lanes, N = S x b rows, T tokens, P prompt rows, D width, R bottleneck, I inputs, O outputs

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes, linear
from trials.methods.method import Adapter, Method


@dataclass(frozen=True, kw_only=True)
class GeneratedPromptMethod(Method):
    """A method whose prompt depends on the text."""

    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    identity_at_start: ClassVar[bool] = False

    insertion_layer: int
    """The block before which the rows are put, from 0: before the word embeddings."""
    prompt_length: int = 10
    """How many rows."""
    dropout: float = 0.1
    """On the rows, in training: where LPT's code has it; ID-SPAM does not say its place."""
    bias: bool = False
    """Whether the two maps have biases; the papers' counts leave them out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.insertion_layer >= 0, "insertion_layer", "at least 0")
        self.require(self.prompt_length >= 1, "prompt_length", "at least 1")
        self.require(0 <= self.dropout < 1, "dropout", "in [0, 1)")
        self.require(isinstance(self.bias, bool), "bias", "true or false")

    @property
    def num_positions(self) -> int:
        """Only before the word embeddings do rows take positions."""
        return self.prompt_length if self.insertion_layer == 0 else 0

    def check(self, shape: Shape) -> None:
        """The rows need a block to enter."""
        super().check(shape)
        last = shape.num_blocks - 1
        fits = self.insertion_layer <= last
        self.require(fits, "insertion_layer", f"in [0, {last}] on this {shape.family}")


class Bottleneck(nn.Module):
    """Each lane's W_up relu(W_down x), with first values as torch's own linear layers have them."""

    def __init__(self, lanes: Lanes, inputs: int, inner: int, outputs: int, bias: bool) -> None:
        super().__init__()
        self.down_SIR = nn.Parameter(lanes.kaiming(inputs, inner, inputs=inputs))
        self.up_SRO = nn.Parameter(lanes.kaiming(inner, outputs, inputs=inner))
        self.down_bias_SR: nn.Parameter | None = None
        self.up_bias_SO: nn.Parameter | None = None
        if bias:
            self.down_bias_SR = nn.Parameter(lanes.kaiming(inner, inputs=inputs))
            self.up_bias_SO = nn.Parameter(lanes.kaiming(outputs, inputs=inner))

    def down(self, x: Tensor) -> Tensor:
        """[N, ..., I] -> [N, ..., R], before the relu."""
        return linear(x, self.down_SIR, self.down_bias_SR)

    def up(self, h: Tensor) -> Tensor:
        """[N, ..., R] -> [N, ..., O], after the relu."""
        return linear(F.relu(h), self.up_SRO, self.up_bias_SO)


class GeneratedPromptAdapter(Adapter):
    """Puts rows made from each text before what enters the insertion layer."""

    def __init__(self, method: GeneratedPromptMethod, lanes: Lanes) -> None:
        super().__init__()
        self.lanes, self.first_block = lanes, method.insertion_layer
        self.prompt_length, self.dropout = method.prompt_length, method.dropout

    def generate(self, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        """The rows [N, P, D] before dropout, from the states entering the block and from E(x)."""
        raise NotImplementedError

    def edits(self, *, train: bool) -> Edits:
        """Rows before one block."""
        return Edits(rows={self.first_block: partial(self._rows, train)})

    def _rows(self, train: bool, h_NTD: Tensor, text: Text, words_NTD: Tensor) -> Tensor:
        rows_NPD = self.generate(h_NTD, text, words_NTD)
        return self.lanes.dropout(rows_NPD, self.dropout) if train else rows_NPD
