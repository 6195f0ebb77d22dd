"""The key to a picture: the spaces, and what its kinds of line mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.evp.records import Curve
from orchestrator.report.panels import CROWD, FILL, Panel, Style

if TYPE_CHECKING:
    from matplotlib.artist import Artist

_GREY = "#555555"


def handles(panels: Sequence[Panel], styles: Mapping[str, Style]) -> list[Artist]:
    """An entry for each space, then one for each kind of line that occurs."""
    from matplotlib.lines import Line2D

    spaces: list[Artist] = [
        Line2D([], [], color=style.color, marker=style.marker, label=space)
        for space, style in styles.items()
    ]
    kinds = {panel.result.kind for panel in panels if isinstance(panel.result, Curve)}
    crowded = len(styles) > CROWD
    return spaces + _kinds(kinds, all(panel.maximize for panel in panels), crowded)


def _kinds(kinds: set[str], maximize: bool, crowded: bool) -> list[Artist]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[Artist] = []
    if "bounds" in kinds:
        near, far = ("lower", "upper") if maximize else ("pessimistic", "optimistic")
        entries.append(Line2D([], [], color=_GREY, label=f"EVP: {near} bound"))
        label = f"{far} bounds left out" if crowded else f"up to the {far} bound"
        alpha = 0 if crowded else FILL
        entries.append(Patch(color=_GREY, alpha=alpha, linewidth=0, label=label))
    if "point" in kinds:
        entries.append(Line2D([], [], color=_GREY, label="EVP, n \N{LESS-THAN OR EQUAL TO} N/5"))
        entries.append(
            Line2D([], [], color=_GREY, linestyle="--", label="EVP, n > N/5: thin evidence")
        )
    if "census" in kinds:
        entries.append(Line2D([], [], color=_GREY, label="EVP: every cell of the grid"))
    if "trace" in kinds:
        entries.append(
            Line2D([], [], color=_GREY, drawstyle="steps-post", label="trace of one sweep")
        )
    return entries
