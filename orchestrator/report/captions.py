"""The words of a picture: what all its curves share is said once, the rest under each task."""

import textwrap
from collections.abc import Sequence

from orchestrator.evp.records import Curve, Refusal
from orchestrator.report.panels import Panel

_SEPARATOR = "; "
# Mean width of a character of DejaVu Sans in ems, with some room.
_EMS_PER_CHARACTER = 0.56


def split(panels: Sequence[Panel]) -> tuple[str, list[str]]:
    """The clauses that all labels share, and by panel its other clauses or its refusal."""
    labels = [
        panel.result.label.split(_SEPARATOR) for panel in panels if isinstance(panel.result, Curve)
    ]
    first, *others = labels or [[]]
    shared = [clause for clause in first if all(clause in other for other in others)]
    return _SEPARATOR.join(shared), [_own(panel.result, shared) for panel in panels]


def full_text(panels: Sequence[Panel], title: str, note: str) -> str:
    """Every label, warning and refusal in full, for the metadata of the file."""
    lines = [title, note]
    for panel in panels:
        place = f"{panel.task}, {panel.space}"
        if isinstance(panel.result, Curve):
            lines += [f"{place}: {panel.result.label}", *panel.result.warnings]
        else:
            lines.append(f"{place}: no curve: {panel.result.reason}")
    return "\n".join(line for line in lines if line)


def wrap(text: str, inches: float, points: float) -> list[str]:
    """Lines no wider than so many inches at a font size."""
    return textwrap.wrap(text, max(10, int(inches * 72 / (points * _EMS_PER_CHARACTER))))


def _own(result: Curve | Refusal, shared: Sequence[str]) -> str:
    if isinstance(result, Refusal):
        return f"no curve: {result.reason}"
    clauses = result.label.split(_SEPARATOR)
    return _SEPARATOR.join(clause for clause in clauses if clause not in shared)
