"""Strings from outside, made fit for each kind of file."""

from __future__ import annotations

import re

from harness.table import visible

LONGEST = 300


def cut(text: str, longest: int = LONGEST) -> str:
    """On one line, with what cannot be seen spelled out, at most so many characters."""
    shown = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def markdown(text: str, longest: int = 120) -> str:
    """For a cell of a Markdown table: no markup, link, mention or HTML comes of it."""
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~@:$&])", r"\\\1", cut(text, longest)).replace("\\<", "&lt;").replace("\\>", "&gt;")


def number(value: float) -> str:
    """Four digits that count, without an exponent where people read."""
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e5 else f"{value:,.0f}"


def spreadsheet(text: str) -> str:
    """A cell that a spreadsheet does not run as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
