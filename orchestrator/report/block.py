"""One task on the page: its name, two axes side by side, and the caption below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.evp.records import Refusal
from orchestrator.report.captions import wrap
from orchestrator.report.page import Page, text_height
from orchestrator.report.panels import CROWD, Panel, Style, draw_curves, draw_incumbents, write

# Inches; points for sizes of type.
_LEFT_OF_AXES, _RIGHT_OF_AXES = 0.5, 0.06
_BELOW_AXES = 0.42
_AFTER = 0.16
_NAME, _CAPTION = 9.0, 7.0


@dataclass(frozen=True, kw_only=True)
class Block:
    """The studies of one task, in a column of the page."""

    panels: tuple[Panel, ...]
    captions: tuple[str, ...]
    """By panel."""
    styles: Mapping[str, Style]
    """By space, of the whole picture."""
    width: float
    axes_height: float

    @property
    def height(self) -> float:
        """Inches from its name to the end of its caption."""
        text = text_height([""], _NAME) + text_height(self._lines(), _CAPTION)
        return text + self.axes_height + _BELOW_AXES + _AFTER

    def draw(self, page: Page, left: float, top: float) -> None:
        """Place it with its upper left corner here."""
        metrics = ", ".join(dict.fromkeys(panel.metric for panel in self.panels))
        name = f"{self.panels[0].task} ({metrics})"
        page.text(left, top, [name], _NAME, fontweight="bold")
        axes_top = top + text_height([""], _NAME) + 0.04
        width = self.width / 2 - _LEFT_OF_AXES - _RIGHT_OF_AXES
        curves, incumbents = (
            page.axes(
                left + _LEFT_OF_AXES + side * self.width / 2, axes_top, width, self.axes_height
            )
            for side in (0, 1)
        )
        styles = [self.styles[panel.space] for panel in self.panels]
        if self._refused:
            reason = self.captions[0] if len(self.panels) == 1 else "no curve: see below"
            write(curves, wrap(reason, width, _CAPTION + 1))
        else:
            draw_curves(curves, self.panels, styles, crowded=len(self.styles) > CROWD)
        draw_incumbents(incumbents, self.panels, styles)
        below = axes_top + self.axes_height + _BELOW_AXES
        page.text(left, below, self._lines(), _CAPTION, color="#333333")

    @property
    def _refused(self) -> bool:
        return all(isinstance(panel.result, Refusal) for panel in self.panels)

    def _lines(self) -> list[str]:
        if self._refused and len(self.panels) == 1:
            return []
        several = len(self.styles) > 1
        texts = [
            f"{panel.space}: {caption}" if several else caption
            for panel, caption in zip(self.panels, self.captions, strict=True)
        ]
        return [line for text in texts for line in wrap(text, self.width, _CAPTION)]
