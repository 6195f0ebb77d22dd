"""The picture of a sweep: for each task its EVP curves and, beside them, its incumbents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.report.block import Block
from orchestrator.report.captions import full_text, split, wrap
from orchestrator.report.legend import handles
from orchestrator.report.page import Page, text_height
from orchestrator.report.panels import CROWD, STYLES, Panel, Style

__all__ = ["Panel", "draw"]

_FORMATS = ("png", "svg")
_SETTINGS: dict[Any, object] = {  # Any: matplotlib's key type lists every setting there is
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 3.5,
    "axes.formatter.useoffset": False,
    "text.parse_math": False,
    "svg.hashsalt": "orchestrate",
}

# Inches; points for sizes of type.
_WIDTH, _DPI = 10.0, 160
_MARGIN, _GAP = 0.12, 0.3
_AXES_HEIGHT = {1: 2.4, 2: 1.3}  # by number of columns
_CROWDED_HEIGHT = 3.0
_LEGEND_ROW, _LEGEND_COLUMNS = 0.19, 4
_TITLE, _NOTE, _FOOT = 11.0, 8.0, 7.0


def draw(panels: Sequence[Panel], title: str, note: str, path: Path) -> None:
    """Write the picture of a sweep, 1600 pixels wide, in the format that the suffix names.

    Every label and warning in full goes into the file's metadata.

    Args:
        panels: the studies; those of one task share their axes.
        title: sweep, profile and backbone.
        note: what must be said of the data.
        path: replaced in one step.

    Raises:
        ValueError: if there is no panel, or the suffix is neither png nor svg.
    """
    import matplotlib as mpl

    suffix = path.suffix.lstrip(".").lower()
    if suffix not in _FORMATS:
        raise ValueError(f"no picture format {suffix!r}; known: {', '.join(_FORMATS)}")
    if not panels:
        raise ValueError("nothing to draw: no studies")
    metadata: dict[str, str | None] = {
        "Title": title,
        "Description": full_text(panels, title, note),
    }
    if suffix == "svg":
        metadata["Date"] = None  # by default the time of drawing: no two files would be equal
    with mpl.rc_context(_SETTINGS):
        _compose(panels, title, note).save(path, suffix, metadata)


def _compose(panels: Sequence[Panel], title: str, note: str) -> Page:
    spaces = dict.fromkeys(panel.space for panel in panels)
    styles = {space: STYLES[k % len(STYLES)] for k, space in enumerate(spaces)}
    shared, own = split(panels)
    rows = _rows(panels, own, styles)
    key = handles(panels, styles)

    inner = _WIDTH - 2 * _MARGIN
    head, data = wrap(title, inner, _TITLE), wrap(note, inner, _NOTE)
    foot = wrap(shared, inner, _FOOT)
    data_top = _MARGIN + text_height(head, _TITLE)
    key_top = data_top + text_height(data, _NOTE) + _MARGIN
    top = key_top + -(-len(key) // _LEGEND_COLUMNS) * _LEGEND_ROW + _MARGIN
    heights = [max(block.height for block in row) for row in rows]

    page = Page(_WIDTH, top + sum(heights) + text_height(foot, _FOOT) + _MARGIN, _DPI)
    page.text(_MARGIN, _MARGIN, head, _TITLE, fontweight="bold")
    page.text(_MARGIN, data_top, data, _NOTE)
    page.legend(_MARGIN, key_top, key, _LEGEND_COLUMNS)
    for row, height in zip(rows, heights, strict=True):
        for column, block in enumerate(row):
            block.draw(page, _MARGIN + column * (block.width + _GAP), top)
        top += height
    page.text(_MARGIN, top, foot, _FOOT, color="#333333")
    return page


def _rows(
    panels: Sequence[Panel], own: Sequence[str], styles: dict[str, Style]
) -> list[list[Block]]:
    """The tasks in reading order, two in a row unless there is but one."""
    tasks = list(dict.fromkeys(panel.task for panel in panels))
    columns = min(2, len(tasks))
    blocks = []
    for task in tasks:
        chosen = [k for k, panel in enumerate(panels) if panel.task == task]
        blocks.append(
            Block(
                panels=tuple(panels[k] for k in chosen),
                captions=tuple(own[k] for k in chosen),
                styles=styles,
                width=(_WIDTH - 2 * _MARGIN - (columns - 1) * _GAP) / columns,
                axes_height=_CROWDED_HEIGHT if len(styles) > CROWD else _AXES_HEIGHT[columns],
            )
        )
    return [blocks[start : start + columns] for start in range(0, len(blocks), columns)]
