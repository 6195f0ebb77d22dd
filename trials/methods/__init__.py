"""Methods, one file each, found by name in `METHODS`."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trials.methods.method import Method

METHODS = {
    "aot_fc": "AotFC",
    "fine_tuning": "FineTuning",
    "head_only": "HeadOnly",
    "prompt_tuning": "PromptTuning",
}
"""Name of each method, which is also its file's and its search space's, and its class."""


def find(name: str) -> "type[Method]":
    """The class of a method.

    Raises:
        ValueError: if there is no method of that name.
    """
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; known: {', '.join(METHODS)}")
    found: type[Method] = getattr(importlib.import_module(f"trials.methods.{name}"), METHODS[name])
    return found
