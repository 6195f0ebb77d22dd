"""One task of a sweep in two axes: the EVP curves of its spaces, and their incumbents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.evp.records import Curve, Refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILL = 0.18
"""Opacity of the area between two bounds, shared by the spaces that overlap."""

_LOG_FROM = 60
# Of a score: less would magnify rounding.
_SMALLEST_RANGE = 0.01
# Between two markers of a line, in diagonals of the axes.
_MARK_EVERY = 0.12


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One study in the picture."""

    task: str
    space: str
    metric: str
    result: Curve | Refusal
    incumbent_epochs: Sequence[float]
    """Epochs spent by all trials of the study, in order of reporting time."""
    incumbent_scores: Sequence[float]
    """Best score by then."""
    maximize: bool = True


@dataclass(frozen=True, kw_only=True)
class Style:
    """What tells a space from the others, in colour and in grey."""

    color: str
    marker: str


# Okabe and Ito's colours without yellow, which is too light for a line.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLES = tuple(
    Style(color=_COLORS[k % len(_COLORS)], marker=_MARKERS[k % len(_MARKERS)])
    for k in range(len(_COLORS) * len(_MARKERS))
)
"""All different, since the two numbers have no common divisor."""

CROWD = len(_COLORS)
"""With more spaces than this, areas up to the far bounds would hide each other: none is drawn."""


def draw_curves(
    axes: Axes, panels: Sequence[Panel], styles: Sequence[Style], *, crowded: bool = False
) -> None:
    """The EVP curves of one task's spaces, over n; in a crowd of bounds the near ones alone."""
    last_n = 1
    for panel, style in zip(panels, styles, strict=True):
        if isinstance(panel.result, Curve):
            fill = None if crowded else FILL / len(panels)
            _draw_curve(axes, panel.result, panel.maximize, style, fill)
            last_n = max(last_n, panel.result.n[-1])
    _set_axes(axes, "assignments n", _quantity(panels), panels[0])
    if last_n > _LOG_FROM:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    else:
        axes.set_xlim(1 - 0.04 * last_n, 1.04 * last_n)
        axes.set_xticks([1, *(n for n in axes.get_xticks() if 1 < n <= last_n)])


def draw_incumbents(axes: Axes, panels: Sequence[Panel], styles: Sequence[Style]) -> None:
    """The best score so far of each space over the epochs spent on it."""
    if not any(len(panel.incumbent_scores) for panel in panels):
        write(axes, ["no evaluation yet"])
        return
    for panel, style in zip(panels, styles, strict=True):
        scores = [_scale(panel.maximize) * score for score in panel.incumbent_scores]
        _line(axes, panel.incumbent_epochs, scores, style, "-", steps=True)
    _set_axes(axes, "epochs spent", "best so far", panels[0])


def write(axes: Axes, lines: Sequence[str]) -> None:
    """Words in place of a curve."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, "\n".join(lines), transform=axes.transAxes, ha="center", va="center")


def _draw_curve(axes: Axes, curve: Curve, maximize: bool, style: Style, fill: float | None) -> None:
    factor = _scale(maximize)
    if curve.lo is not None and curve.hi is not None:
        low, high = ([factor * y for y in side] for side in (curve.lo, curve.hi))
        near, far = (low, high) if maximize else (high, low)
        if fill is not None:
            axes.fill_between(curve.n, low, high, color=style.color, alpha=fill, linewidth=0)
            axes.plot(curve.n, far, color=style.color, linewidth=0.8, linestyle=":")
            if len(curve.n) == 1:  # an area over one point has no width
                axes.vlines(curve.n, low, high, color=style.color, linewidth=0.8, linestyle=":")
        _line(axes, curve.n, near, style, "-")
    elif curve.value is not None:
        value = [factor * y for y in curve.value]
        solid = sum(n <= curve.n[-1] / 5 for n in curve.n) if curve.kind == "point" else len(value)
        _line(axes, curve.n[:solid], value[:solid], style, "-", steps=curve.kind == "trace")
        if solid < len(value):
            joint = max(solid - 1, 0)
            _line(axes, curve.n[joint:], value[joint:], style, "--")


def _line(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    style: Style,
    dash: str,
    *,
    steps: bool = False,
) -> None:
    axes.plot(
        x,
        y,
        color=style.color,
        marker=style.marker,
        markevery=_MARK_EVERY,
        linestyle=dash,
        drawstyle="steps-post" if steps else "default",
    )
    axes.plot(x[-1:], y[-1:], color=style.color, marker=style.marker, linestyle="none")


def _set_axes(axes: Axes, x: str, y: str, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel(x)
    axes.set_ylabel(f"{y} ({'points' if panel.maximize else panel.metric})")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    low, high = axes.get_ylim()
    missing = _SMALLEST_RANGE * _scale(panel.maximize) - (high - low)
    if missing > 0:
        axes.set_ylim(low - missing / 2, high + missing / 2)


def _quantity(panels: Sequence[Panel]) -> str:
    """What the curves are: a trace is no expectation and must not be called one."""
    kinds = {panel.result.kind for panel in panels if isinstance(panel.result, Curve)}
    if kinds == {"trace"}:
        return "best so far"
    return "EVP, trace" if "trace" in kinds else "EVP"


def _scale(maximize: bool) -> float:
    """A score to be maximised is a fraction, shown in points; a loss is shown as it is."""
    return 100.0 if maximize else 1.0
