"""Badges per backend, as the endpoint of shields.io reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.alert_rule import State
from harness.report.trend import short

COLOURS = ((0.99, "brightgreen"), (0.9, "green"), (0.75, "yellow"), (0.0, "orange"))
"""Of a share of cases that pass: the first whose bound it reaches."""


def badge(label: str, message: str, color: str) -> str:
    """The file's text."""
    value: dict[str, Any] = {"schemaVersion": 1, "label": short(label, 60), "message": short(message, 60), "color": color}
    return json.dumps(value) + "\n"


def conformance_badge(label: str, counts: Mapping[str, int]) -> str:
    """How many cases pass, of those of which it is known."""
    known = sum(number for name, number in counts.items() if name != "unmeasured")
    if not known:
        return badge(label, "not measured", "lightgrey")
    passed = counts.get("pass", 0)
    # 1,999 of 2,000 are not all.
    share = f"{min(100 * passed / known, 100 if passed == known else 99.9):.1f}"
    return badge(label, f"{share} % of {known:,} cases", next(colour for bound, colour in COLOURS if passed / known >= bound))


def speed_badge(label: str, states: Sequence[State]) -> str:
    """What the alert rule says of all series together."""
    slower = states.count("alert")
    if slower:
        return badge(label, f"{slower} slower", "red")
    if "better" in states:
        return badge(label, f"{states.count('better')} faster", "brightgreen")
    return badge(label, "steady", "green") if "quiet" in states else badge(label, "no baseline", "lightgrey")
