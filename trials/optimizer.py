"""The optimiser and learning-rate schedule of a training protocol, and lanes leaving them."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from trials.spec import Training

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def build_optimizer(
    parameters: Iterable[nn.Parameter], learning_rate: float, training: Training
) -> Optimizer:
    """The protocol's optimiser, elementwise, so that stacked lanes stay independent."""
    optimizer: Optimizer = OPTIMIZERS[training.optimizer](
        list(parameters), lr=learning_rate, weight_decay=training.weight_decay
    )
    return optimizer


def build_schedule(optimizer: Optimizer, training: Training, steps_per_epoch: int) -> LambdaLR:
    """Linear warm-up, then a constant rate or a linear fall to 0 at the last step."""
    steps = steps_per_epoch * training.epochs
    warmup = round(training.warmup_ratio * steps)

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        if training.schedule == "constant":
            return 1.0
        return max(0.0, (steps - step) / max(1, steps - warmup))

    return LambdaLR(optimizer, factor)


def keep_lanes(optimizer: Optimizer, lanes: Sequence[int]) -> None:
    """Cut the running averages of stacked parameters down to these lanes."""
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                state[name] = value[list(lanes)]


def move_state(optimizer: Optimizer, device: torch.device | str) -> None:
    """Move the running averages to a device."""
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.dim():
                state[name] = value.to(device)
