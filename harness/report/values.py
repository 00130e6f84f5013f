"""Values, and whose they are, as people read them in tables and pages."""

from __future__ import annotations

import math
from typing import Any

from harness.outcomes.metrics import Value
from harness.text import duration, one_line


def heading(line: dict[Any, Any]) -> str:
    """Returns the head of an arm's column: backend, options, version and vocabulary, each on a line."""
    version = str(line["backend_version"])
    return "\n".join(
        one_line(str(part), spelled=True)[:60]
        for part in (line["backend"], line["options"], version, line["vocabulary"])
        if part
    )


def short(text: str, length: int) -> str:
    """Returns a text from outside on one line of bounded length, with invisible characters spelled out."""
    return one_line(text, length, spelled=True)


def number(value: Value, unit: str) -> str:
    """Returns the value for people: a time (of microseconds or nanoseconds) and a ratio with three digits, a
    share in per cent, bytes in MiB, counts as they are, and a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if unit == "share":
        return percent(float(value))
    if unit == "bytes":
        return f"{value / 2**20:,.0f} MiB"
    if unit in ("us", "ns"):
        return duration(value * 1e3 if unit == "us" else value)
    if unit == "ratio":
        return f"{value:.3g}"
    return f"{value:,}"


def percent(share: float) -> str:
    """Returns the share in per cent with one decimal; it is never 100 % or 0 % for what is only close to
    it."""
    shown = min(max(share * 100, 0.1), 99.9) if 0 < share < 1 else share * 100
    return f"{shown:.1f} %"


def percents(bounds: tuple[float, float]) -> tuple[str, str]:
    """Returns the two shares without the sign, rounded as `percent` does, so that an interval holds the share
    that it is of."""
    low, high = (percent(bound).removesuffix(" %") for bound in bounds)
    return low, high
