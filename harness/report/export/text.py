"""Numbers as people read them in an export."""

from __future__ import annotations


def number(value: float) -> str:
    """Returns the number with four digits that count, and without an exponent where people read it."""
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
