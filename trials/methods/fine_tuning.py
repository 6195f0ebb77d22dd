"""Full fine-tuning: every weight of the backbone is trained.

The backbone is shared by all trials of a worker, so each lane keeps its weights in host memory
and puts them into the backbone while it trains or is evaluated.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn

from trials.backbones.edits import Edits
from trials.backbones.shape import Shape
from trials.methods.lanes import Lanes
from trials.methods.method import Adapter, Method

if TYPE_CHECKING:
    from trials.backbones.backbone import Backbone


@dataclass(frozen=True, kw_only=True)
class FineTuning(Method):
    """No hyperparameter but the learning rate."""

    summary: ClassVar[str] = "every weight of the backbone (reference)"
    paper: ClassVar[str] = "aot"
    parameter_efficient: ClassVar[bool] = False
    zero_cost: ClassVar[bool] = True
    multi_task: ClassVar[bool] = False
    only_words: ClassVar[bool] = True  # its count needs no edit point
    trains_backbone: ClassVar[bool] = True

    def build(self, shape: Shape, lanes: Lanes, words_VD: Tensor) -> Adapter:
        """Not possible without the weights: see `attach`."""
        raise TypeError("fine-tuning needs the backbone itself")

    def attach(self, backbone: "Backbone", lanes: Lanes) -> "FineTunedWeights":
        """The backbone's own weights, to be trained by one lane."""
        return FineTunedWeights(backbone)


class FineTunedWeights(Adapter):
    """One lane's copy of all weights of the backbone."""

    first_block = 0

    def __init__(self, backbone: "Backbone") -> None:
        super().__init__()
        self._backbone = backbone
        self._weights = [weight.clone() for weight in backbone.pretrained()]

    def edits(self, *, train: bool) -> Edits:
        """None: the weights themselves change."""
        return Edits()

    def trainable(self) -> Iterator[nn.Parameter]:
        """Every parameter of the backbone."""
        return self._backbone.model.parameters()

    def state(self) -> dict[str, Tensor]:
        """This lane's weights, by their names in the backbone's model."""
        names = [name for name, _ in self._backbone.model.named_parameters()]
        return dict(zip(names, self._weights, strict=True))

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from such weights."""
        for name, weight in self.state().items():
            weight.copy_(state[name])

    def activate(self) -> None:
        """Put this lane's weights into the backbone."""
        self._backbone.load_weights(self._weights)
        self._backbone.thaw()

    def release(self) -> None:
        """Take this lane's weights out again and restore the pretrained ones."""
        parameters = self._backbone.model.parameters()
        for weight, trained in zip(self._weights, parameters, strict=True):
            weight.copy_(trained.detach())
        self._backbone.freeze()
        self._backbone.load_weights(self._backbone.pretrained())
