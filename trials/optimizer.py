"""The optimiser and learning-rate schedule of a training protocol, and lanes leaving them."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from trials.spec import Training

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def build_optimizer(
    groups: Iterable[tuple[list[nn.Parameter], float]], training: Training
) -> Optimizer:
    """The protocol's optimiser over parameters with their learning rates.

    It works elementwise, so that stacked lanes stay independent.
    """
    optimizer: Optimizer = OPTIMIZERS[training.optimizer](
        [{"params": parameters, "lr": rate} for parameters, rate in groups if parameters],
        betas=(0.9, training.adam_beta2),
        eps=training.adam_epsilon,
        weight_decay=training.weight_decay,
    )
    return optimizer


def build_schedule(optimizer: Optimizer, training: Training, steps_per_epoch: int) -> LambdaLR:
    """Linear warm-up, then a constant rate or a linear fall to 0 at the last step."""
    steps = steps_per_epoch * training.epochs
    warmup = training.warmup_steps or round(training.warmup_ratio * steps)

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
