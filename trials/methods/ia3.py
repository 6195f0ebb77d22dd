"""(IA)3 (Liu et al. 2022): learned vectors scale keys, values and what enters the FF's last layer.

ADePT quotes it (Table 15).
"""

# S lanes, N = S x b rows, T tokens, L blocks, D width, F width inside the FF, X either,
# G groups, W width of a group

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor, nn

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Role, Shape
from trials.methods.fused_weights import FusedWeights, require_one_lane
from trials.methods.lanes import Lanes, spread
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone

SCALED_OUTPUTS: tuple[Role, ...] = ("key", "value")


@dataclass(frozen=True, kw_only=True)
class IA3(Method):
    """2 D + F parameters a block.

    Fused it costs nothing and serves one task; vectors apart, those of several tasks stack.
    """

    summary: ClassVar[str] = "vectors that scale keys, values and the FF's activations"
    paper: ClassVar[str] = "adept"
    zero_cost: ClassVar[bool] = False
    multi_task: ClassVar[bool] = True
    joins_weights: ClassVar[bool] = True

    targets: Literal["key_value_ff", "key_value"] = "key_value_ff"
    """What is scaled; the count that ADePT prints is without the FF."""

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> "IA3Adapter":
        """Every vector starts at one."""
        return IA3Adapter(self, shape, lanes)


class IA3Adapter(Adapter):
    """The vectors of every block by role.

    On DeBERTa values are scaled before their bias, which it adds after the layer.
    """

    first_block = 0

    def __init__(self, method: IA3, shape: Shape, lanes: Lanes) -> None:
        super().__init__()
        self.num_blocks = shape.num_blocks
        widths = {role: shape.linear(role)[1] for role in SCALED_OUTPUTS}
        if method.targets == "key_value_ff":
            widths["ff_output"] = shape.linear("ff_output")[0]
        self.scales_SLX = nn.ParameterDict(
            {role: nn.Parameter(1 + lanes.zeros(self.num_blocks, widths[role])) for role in widths}
        )

    def edits(self, *, train: bool) -> Edits:
        """Two outputs and an input of every block scaled."""
        blocks = range(self.num_blocks)
        inputs: list[Role] = ["ff_output"] if "ff_output" in self.scales_SLX else []
        return Edits(
            outputs={
                (i, role): partial(self._scale_output, i, role)
                for i in blocks
                for role in SCALED_OUTPUTS
            },
            inputs={(i, role): partial(self._scale, i, role) for i in blocks for role in inputs},
        )

    def _scale(self, block: int, role: Role, x_NTX: Tensor, text: Text) -> Tensor:
        return x_NTX * spread(self.scales_SLX[role][:, block], len(text)).unsqueeze(1)

    def _scale_output(self, block: int, role: Role, _: Tensor, y_NTD: Tensor, text: Text) -> Tensor:
        return self._scale(block, role, y_NTD, text)

    @torch.no_grad()
    def fuse(self, backbone: "Backbone") -> FusedWeights:
        """Rows of weights and entries of biases scaled, columns where an input is; of one lane.

        Raises:
            ValueError: if there are more lanes.
        """
        require_one_lane(len(self.scales_SLX["key"]))
        weights: dict[tuple[int, Role], Tensor] = {}
        biases: dict[tuple[int, Role], Tensor] = {}
        for block in range(self.num_blocks):
            for role in SCALED_OUTPUTS:
                part = backbone.part(block, role)
                gain_GW = self.scales_SLX[role][0, block].unflatten(0, (part.groups, -1)) - 1
                weights[block, role] = gain_GW.unsqueeze(-1) * part.weight
                if part.late_bias is None and part.bias is not None:
                    biases[block, role] = gain_GW * part.bias
            if "ff_output" in self.scales_SLX:
                gain_F = self.scales_SLX["ff_output"][0, block] - 1
                weights[block, "ff_output"] = gain_F * backbone.part(block, "ff_output").weight
        return FusedWeights(backbone, weights=weights, biases=biases)
