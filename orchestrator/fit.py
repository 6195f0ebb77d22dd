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

    from trials.backbones.files import shape_of
    from trials.head import Head
    from trials.methods.lanes import Lanes

    with as_refusal():
        shape = shape_of(backbone)
        method = method_class(name)(**hyperparameters)
        method.check(shape)
        lanes = Lanes([0], torch.device("meta"))
        head = sum(p.numel() for p in Head(shape.width, num_outputs, lanes).parameters())
        if method.trains_backbone:
            from trials.backbones.load import count_parameters

            return count_parameters(backbone), head
        adapter = method.build(
            shape, lanes, torch.empty(shape.vocabulary, shape.width, device="meta")
        )
        return sum(p.numel() for p in adapter.parameters()), head


def check_fit(method: str, hyperparameters: Mapping[str, Any], backbone: str) -> None:
    """Refuse hyperparameters that a backbone's sizes do not allow, before anything is loaded."""
    from trials.backbones.files import shape_of

    with as_refusal():
        method_class(method)(**hyperparameters).check(shape_of(backbone))
