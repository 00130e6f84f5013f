"""The settings in which two runs, or a run and a record, must agree before their outcomes are compared."""

from __future__ import annotations

from collections.abc import Iterable


def differing(then: str, now: str, settings: Iterable[tuple[str, object, object]]) -> list[str]:
    """Returns a sentence for each setting that is not the same: its name, and what it was then and now."""
    return [
        f"{then} with {name} {_in_words(before)}, {now} with {_in_words(after)}"
        for name, before, after in settings
        if before != after
    ]


def _in_words(value: object) -> str:
    """Returns a setting as a command takes it; the effort -1 is that of all places."""
    return "all" if value == -1 else str(value).lower() if isinstance(value, bool) else str(value)
