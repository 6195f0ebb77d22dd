"""Reaching into a block: what a module takes or gives replaced, keys and values put before."""

# N rows (lanes x batch), T tokens, H heads, W width of a head, I inputs, G groups

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from trials.backbones.edits import InputEdit, OutputEdit, Text


@dataclass(frozen=True)
class Part:
    """A module that computes a role, alone or merged with others.

    The output of a merged one reads as [..., groups, parts, width]; the role is one of the parts.
    """

    module: nn.Module
    part: int = 0
    parts: int = 1
    groups: int = 1
    late_bias: nn.Parameter | None = field(default=None, compare=False)
    """The role's bias, where the module has none and it is added to what the module gives."""

    @property
    def weight(self) -> Tensor:
        """[G, W, I] the rows of the weight that compute the role: a view into it."""
        return self._share(self.module.get_parameter("weight"))

    @property
    def bias(self) -> Tensor | None:
        """[G, W] the bias of the role, a view into it; None: it has none."""
        if self.late_bias is not None:
            return self.late_bias.unflatten(0, (self.groups, -1))
        own: Tensor | None = getattr(self.module, "bias", None)
        return None if own is None else self._share(own)

    def _share(self, rows: Tensor) -> Tensor:
        return rows.unflatten(0, (self.groups, self.parts, -1))[:, self.part]


@contextmanager
def hooked(
    inputs: Mapping[Part, InputEdit], outputs: Mapping[Part, OutputEdit], text: Text
) -> Iterator[None]:
    """Meanwhile these modules take the edited inputs and give the edited outputs."""
    with ExitStack() as stack:
        for part, edit_input in inputs.items():
            stack.callback(_replace_input(part, edit_input, text).remove)
        for part, edit_output in outputs.items():
            stack.callback(_replace_output(part, edit_output, text).remove)
        yield


def _replace_input(part: Part, edit: InputEdit, text: Text) -> Any:
    assert part.parts == 1  # the other roles would get the edited input too

    def replace(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (edit(args[0], text).to(args[0].dtype), *args[1:])

    return part.module.register_forward_pre_hook(replace)


def _replace_output(part: Part, edit: OutputEdit, text: Text) -> Any:
    def replace(_: nn.Module, args: tuple[Tensor, ...], y: Tensor) -> Tensor:
        if part.parts == 1:
            return edit(args[0], y, text).to(y.dtype)
        shares = list(y.unflatten(-1, (part.groups, part.parts, -1)).unbind(-2))
        edited = edit(args[0], shares[part.part].flatten(-2), text).to(y.dtype)
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
