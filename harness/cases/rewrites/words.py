"""A rewrite in a sentence for people, told by what differs between two subschemas."""

from __future__ import annotations

from typing import Any

from harness.cases.case import json_text
from harness.cases.rewrites.json_values import is_same
from harness.text import listed

LONGEST = 70
"""Characters of a keyword's value that are shown; the rest is cut off."""


def keyword_text(keyword: str, value: Any) -> str:
    """Returns a keyword with its value, e.g. `minimum: 1`, between backticks."""
    text = json_text(value)
    text = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return f"`{keyword}: {text}`".replace("``", "`")


def sentence_of(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Returns what has to be written instead of what."""
    gone = [
        keyword_text(keyword, value)
        for keyword, value in before.items()
        if keyword not in after or not is_same(after[keyword], value)
    ]
    new = [
        keyword_text(keyword, value)
        for keyword, value in after.items()
        if keyword not in before or not is_same(before[keyword], value)
    ]
    if not new:
        return f"leave out {listed(gone)}, which asks nothing here"
    if not gone:
        return f"add {listed(new)}, which says what holds already"
    return f"write {listed(new)} instead of {listed(gone)}"
