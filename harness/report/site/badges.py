"""Badges per backend, as the endpoint of shields.io reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.outcomes.history.alert_rule import State
from harness.outcomes.history.conformance import NO_CHECKS, WORKS, judged
from harness.report.values import percent, short
from harness.rows.sample import SAMPLE

COLOURS = ((0.99, "brightgreen"), (0.9, "green"), (0.75, "yellow"), (0.0, "orange"))
"""The colours of shares of cases that work, each with its least share: the first one that is reached
counts."""


def badge(label: str, message: str, color: str) -> str:
    """Returns the file's text."""
    value: dict[str, Any] = {
        "schemaVersion": 1,
        "label": short(label, 60),
        "message": short(message, 60),
        "color": color,
    }
    return json.dumps(value) + "\n"


def conformance_badge(label: str, counts: Mapping[str, int], samples: Sequence[str] = ()) -> str:
    """Returns on which share of the judged cases the backend works; `samples` say of what the runs behind the
    counts are a part."""
    known = judged(counts)
    if not known:
        return badge(label, "not judged", "lightgrey")
    works = counts.get(WORKS, 0)
    return badge(
        label,
        f"works on {percent(works / known)} of {known:,} judged{_part(samples)}",
        next(colour for bound, colour in COLOURS if works / known >= bound),
    )


def _part(samples: Sequence[str]) -> str:
    """Returns, for the end of a message, that not all cases were walked, or else that not all checks or
    none were made; empty where all were."""
    if any(sample.startswith(SAMPLE) for sample in samples):
        return f" ({SAMPLE})"
    if set(samples) == {NO_CHECKS}:
        return " (no checks)"
    return " (some checks)" if any(samples) else ""


def speed_badge(label: str, states: Sequence[State], *, is_reference: bool = False) -> str:
    """Returns what the alert rule says of all series together; of a backend that is only what others are held
    against, it says nothing."""
    if is_reference and not states:
        return badge(label, "reference", "lightgrey")
    slower = states.count("alert")
    if slower:
        return badge(label, f"{slower} slower", "red")
    if "better" in states:
        return badge(label, f"{states.count('better')} faster", "brightgreen")
    return badge(label, "steady", "green") if "quiet" in states else badge(label, "no baseline", "lightgrey")
