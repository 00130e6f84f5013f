"""What a chart of the page is to its template: the drawing, and the same as a table."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class Chart:
    """A chart and the same as a table."""

    title: str
    svg: Markup
    """Empty where there is nothing to draw."""
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_off: int = 0
    """Rows of the table that are not shown."""
