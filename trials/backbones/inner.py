"""Reaching into a block: a module's output replaced by a hook, keys and values put before."""

# N rows (lanes x batch), T tokens, H heads, W width of a head

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trials.backbones.edits import OutputEdit


@dataclass(frozen=True)
class Part:
    """A module that computes a role, alone or merged with others.

    The output of a merged one reads as [..., groups, parts, width]; the role is one of the parts.
    """

    module: nn.Module
    part: int = 0
    parts: int = 1
    groups: int = 1


@contextmanager
def replaced_outputs(edits: Mapping[Part, OutputEdit]) -> Iterator[None]:
    """Meanwhile these modules give the edited outputs."""
    with ExitStack() as stack:
        for part, edit in edits.items():
            stack.callback(_hook(part, edit).remove)
        yield


def _hook(part: Part, edit: OutputEdit) -> Any:
    def replace(_: nn.Module, args: tuple[Tensor, ...], y: Tensor) -> Tensor:
        if part.parts == 1:
            return edit(args[0], y)
        shares = list(y.unflatten(-1, (part.groups, part.parts, -1)).unbind(-2))
        edited = edit(args[0], shares[part.part].flatten(-2))
        shares[part.part] = edited.unflatten(-1, (part.groups, -1))
        return torch.stack(shares, -2).flatten(-3)

    return part.module.register_forward_hook(replace)


class Prefix:
    """Stands where a block expects a cache: gives keys and values that precede the text's."""

    def __init__(self, keys_NHPW: Tensor, values_NHPW: Tensor) -> None:
        self.keys_NHPW, self.values_NHPW = keys_NHPW, values_NHPW

    def update(
        self, keys_NHTW: Tensor, values_NHTW: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of prefix and text."""
        return (
            torch.cat([self.keys_NHPW.to(keys_NHTW.dtype), keys_NHTW], 2),
            torch.cat([self.values_NHPW.to(values_NHTW.dtype), values_NHTW], 2),
        )

    def get_seq_length(self, layer: int = 0) -> int:
        """0: no text was seen before."""
        return 0
