"""A figure measured in inches from its upper left corner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LINE_HEIGHT = 1.35
"""Of a line of text, in ems."""


def text_height(lines: Sequence[str], points: float) -> float:
    """Inches that lines of text take at a font size."""
    return len(lines) * points * LINE_HEIGHT / 72


class Page:
    """A sheet of fixed size on which axes and texts are placed, apart from pyplot's state."""

    def __init__(self, width: float, height: float, dpi: int) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), dpi=dpi)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes whose frame is this rectangle."""
        bottom = self.height - top - height
        return self.figure.add_axes(
            (left / self.width, bottom / self.height, width / self.width, height / self.height)
        )

    def text(
        self, left: float, top: float, lines: Sequence[str], points: float, **font: Any
    ) -> None:
        """Lines of text below this corner."""
        self.figure.text(
            left / self.width,
            1 - top / self.height,
            "\n".join(lines),
            fontsize=points,
            va="top",
            linespacing=LINE_HEIGHT,
            **font,
        )

    def legend(self, left: float, top: float, handles: Sequence[Artist], columns: int) -> None:
        """A frameless legend below this corner, to be read along its rows."""
        by_column = [handle for column in range(columns) for handle in handles[column::columns]]
        self.figure.legend(
            handles=by_column,
            loc="upper left",
            bbox_to_anchor=(left / self.width, 1 - top / self.height),
            ncols=columns,
            frameon=False,
            borderaxespad=0,
            borderpad=0,
        )

    def save(self, path: Path, suffix: str, metadata: dict[str, Any]) -> None:
        """Write the file in one step: a reader sees the old picture or the new one."""
        partial = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            self.figure.savefig(partial, format=suffix, metadata=metadata)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
