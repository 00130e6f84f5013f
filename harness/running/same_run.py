"""Whether two runs are parts of one: what their first lines must share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

from harness.rows.row import RunInfo
from harness.text import one_line

FREE = {"run", "started", "argv", "machine", "jobs", "executor", "asked", "readings"}
"""The fields of a run's first line in which two parts of one run may differ."""


def first_difference(one: RunInfo, two: RunInfo, free: Collection[str] = ()) -> tuple[str, str] | None:
    """Returns the first field, but for FREE and those that are `free` too, in which two runs differ: with the
    value in one and the value in the other, both short. None if they may be parts of one run."""
    for field in fields(RunInfo):
        before, after = getattr(one, field.name), getattr(two, field.name)
        if field.name not in {*FREE, *free} and before != after:
            return _shortened(field.name, before, after)
    return None


def _shortened(name: str, before: Any, after: Any) -> tuple[str, str]:
    """Returns a field with its value before, and its value after, both short: of a table only what
    differs."""
    if name == "arms":
        before, after = (
            [f"{arm.backend} {arm.version} {arm.options}".strip() for arm in arms] for arms in (before, after)
        )
    if isinstance(before, dict):
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        before, after = {key: before.get(key) for key in changed}, {key: after.get(key) for key in changed}
    return f"{name} {one_line(str(before), 160)}", one_line(str(after), 160)
