"""Whether a method fits a backbone, and what it trains there, from the backbone's sizes alone."""

from collections.abc import Mapping
from typing import Any

from orchestrator.catalogue import as_refusal, method_class


def parameters(
    name: str, hyperparameters: Mapping[str, Any], backbone: str, num_outputs: int
) -> tuple[int, int]:
    """Trainable parameters of one lane, adapter and head apart, counted without allocating.

    Raises:
        Refused: for an unknown method, value or backbone.
    """
    import torch

    from trials.methods.lanes import Lanes

    with as_refusal():
        sizes = shape(backbone)
        method = method_class(name)(**hyperparameters)
        method.check(sizes)
        lanes = Lanes([0], torch.device("meta"))
        head = _head(sizes.width, num_outputs, lanes) if sizes.has_head else 0
        if method.trains_backbone:
            from trials.backbones.load import count_parameters

            return count_parameters(backbone), head
        words_VD = torch.empty(sizes.vocabulary, sizes.width, device="meta")
        adapter = method.build(sizes, lanes, words_VD)
        return sum(p.numel() for p in adapter.parameters()), head


def _head(width: int, num_outputs: int, lanes: Any) -> int:
    from trials.head import Head

    return sum(p.numel() for p in Head(width, num_outputs, lanes).parameters())


def shape(backbone: str) -> Any:
    """The sizes of a backbone.

    Raises:
        Refused: if it cannot be found or has none that we know.
    """
    from trials.backbones.files import shape_of

    with as_refusal():
        return shape_of(backbone)
