"""Figures and tables as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu_anchors import NOT
from gpu_figures import Estimate

WIDE = 100
"""An interval whose ends are so many times apart says nothing; the file has it."""


def titled(title: str, text: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields a section with one table."""
    yield from (f"## {title}", "", text.strip(), "")
    yield from table(names, rows)


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields a table; a line says so where it has no rows."""
    if not rows:
        yield from ("Nothing yet.", "")
        return
    yield f"| {' | '.join(names)} |"
    yield f"|{' --- |' * len(names)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def shown(estimate: Estimate | None) -> str:
    """Returns a ratio with its interval."""
    if estimate is None:
        return NOT
    text = f"{estimate.value:.3g}"
    if estimate.low is None or estimate.high is None:
        return text
    return (
        f"{text} [wide]"
        if estimate.high > WIDE * estimate.low
        else f"{text} [{estimate.low:.3g}, {estimate.high:.3g}]"
    )


def ms(nanoseconds: float | None) -> str:
    return f"{nanoseconds / 1e6:.2f} ms" if nanoseconds is not None else ""


def us(nanoseconds: float | None) -> str:
    return f"{nanoseconds / 1e3:.1f} us" if nanoseconds is not None else ""


def plain(text: str) -> str:
    """Returns foreign text on one line of a table, without what Markdown reads."""
    return " ".join(text.replace("|", "/").replace("`", "'").replace("<", "(").replace(">", ")").split())[
        :300
    ]


def noise(estimate: Estimate | None) -> str:
    """Returns by how much identical arms differ, in percent; empty where that is not known."""
    return f"{(estimate.value - 1) * 100:.1f} %" if estimate else ""
