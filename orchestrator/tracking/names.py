"""Names and values in the form that MLflow takes."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

_REFUSED = re.compile(r"[^/\w.\- ]")
_MAX_NAME = 250
_MAX_PARAM = 6000
_MAX_TAG = 8000


def name(text: str) -> str:
    """The nearest name that MLflow takes for a metric, parameter or tag."""
    cleaned = _REFUSED.sub("_", text)[:_MAX_NAME]
    # a name must be a path in normal form, which stays below its folder
    if posixpath.normpath(cleaned) != cleaned or cleaned.startswith(("/", "..")) or cleaned == ".":
        cleaned = cleaned.replace("/", "_").lstrip(".") or "_"
    return cleaned


def params(values: Mapping[str, Any]) -> dict[str, str]:
    """Nested values as flat parameters, `outer.inner`; those that are None are left out."""
    return {name(key): _cut(_text(value), _MAX_PARAM) for key, value in _flat(values)}


def tags(values: Mapping[str, Any]) -> dict[str, str]:
    """Tags of ours; those that are None are left out."""
    return {
        f"orchestrate.{key}": _cut(_text(value), _MAX_TAG)
        for key, value in values.items()
        if value is not None
    }


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"
