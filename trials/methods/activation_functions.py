"""The functions between two linear maps, by the names that search spaces use."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "gelu": F.gelu,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
