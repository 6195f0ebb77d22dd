"""The sizes of a backbone; imports nothing, so that methods can be looked at quickly."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes that a method needs to know of a backbone."""

    family: str
    width: int
    num_blocks: int
    vocabulary: int
    max_tokens: int
    """How many tokens a text may have, special ones included."""
