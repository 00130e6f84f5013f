"""What the backends take the tokens for, where one of them has its own loader, or reads one wrongly."""

from __future__ import annotations

from harness.report.page.content import Content
from harness.report.page.section import Section, Values
from harness.report.tables.tokens import LOADERS, token_lines


def values(page: Content) -> Values | None:
    """Returns the lines of all runs; None where every backend was handed the bytes, and has them."""
    lines = [line for run in page.inputs.runs for line in token_lines(run.info)]
    tells = any(line.wrong != 0 or line.loader == LOADERS["library"] for line in lines)
    return {"lines": lines} if tells else None


SECTION = Section("tokens", "Tokens", 57, values, "right")
