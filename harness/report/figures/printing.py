"""Charts as files for a paper: while `printing` is on, every chart that is drawn is kept as a file.

A printed chart is the one that the page has. The page has one legend for all of them; a printed chart has its
own below it, so that it can stand alone.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple

SETTINGS: Any = {
    "svg.fonttype": "path",  # looks the same where the font is not installed
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
}

NOTHING_OF_TODAY: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
}
"""What is left out of each form's metadata, so that the same run gives the same bytes."""

LINE = 0.19
"""The inches that a line of a legend is high."""

WALKED = re.compile(r"(compile|fill)\d*")
"""The names of charts of times that a walk took: a measurement beside them tells other ones."""

MARGIN = 0.04
"""The inches of white around what is drawn."""


@dataclass(frozen=True)
class Printed:
    """One chart as files."""

    name: str
    title: str
    files: dict[str, bytes]
    """What stands in its file, by form (`svg`, `pdf`)."""


@dataclass(frozen=True)
class Press:
    """Keeps every chart in the forms that are wanted."""

    forms: Sequence[str]
    printed: list[Printed] = field(default_factory=list)

    def take(self, figure: Figure, name: str, title: str) -> None:
        """Keeps a chart that was drawn, with a legend and with its title where the axis to the right has no
        name."""
        _add_legend(figure)
        if len(figure.axes) == 1 and not figure.axes[0].get_xlabel():
            once = ", walked once" if WALKED.fullmatch(name) else ""
            figure.axes[0].set_xlabel(title.partition(":")[0] + once)
        with matplotlib.rc_context(SETTINGS):
            files = {form: _saved(figure, form, title) for form in self.forms}
        self.printed.append(Printed(name, title, files))


_press: ContextVar[Press | None] = ContextVar("press", default=None)


def press() -> Press | None:
    """Returns what keeps the charts that are drawn now; None where they are for a page."""
    return _press.get()


@contextmanager
def printing(forms: Sequence[str]) -> Iterator[list[Printed]]:
    """Keeps every chart that is drawn meanwhile, in these forms, in the list that it yields."""
    keeping = Press(forms)
    token = _press.set(keeping)
    try:
        yield keeping.printed
    finally:
        _press.reset(token)


def _saved(figure: Figure, form: str, title: str) -> bytes:
    """Returns the file of a figure, around which nothing is cut off."""
    file = io.BytesIO()
    metadata = {**NOTHING_OF_TODAY[form], "Title": title}
    figure.savefig(file, format=form, metadata=metadata, bbox_inches="tight", pad_inches=MARGIN)
    return file.getvalue()


def _add_legend(figure: Figure) -> None:
    """Adds a legend of the lines that have a name; their markers may be a line of their own, called
    `...-marks`."""
    handles: list[Any] = []
    labels: list[str] = []
    for axes in figure.axes:
        marks = {line.get_gid(): line for line in axes.lines}
        for line in axes.lines:
            label = str(line.get_label())
            if label and not label.startswith("_"):
                own = marks.get(f"{line.get_gid()}-marks")
                handles.append((line,) if own is None else (line, own))
                labels.append(label)
    if handles:
        longest = max(map(len, labels))
        columns = max(1, min(len(labels), 3, int(figure.get_figwidth() / (0.45 + 0.062 * longest))))
        # The legend stands below the chart and takes nothing from it.
        figure.set_figheight(figure.get_figheight() + LINE * math.ceil(len(labels) / columns))
        figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8,
            handlelength=3, handler_map={tuple: HandlerTuple(ndivide=1)},
        )  # fmt: skip
