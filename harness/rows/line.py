"""Holds a line of `rows.jsonl` against the published schema, before it is written and when it is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

NOT_WHOLE = ("timeout_s", "check_timeout_s", "machine")
"""The fields of a line in which a number may be a fraction; no row has one."""
NOT_PLAIN = frozenset({float, dict, list})
"""The types of a value that is a fraction, or may hold one."""


@cache
def _validators() -> dict[str, Any]:
    import jsonschema_rs

    schema = json.loads((files("harness.results") / "row.schema.json").read_text("utf-8"))
    kinds: dict[str, Any] = {
        kind: jsonschema_rs.validator_for({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})
        for kind in ("run", "row", "end")
    }
    return kinds


def problem_with(line: object) -> str:
    """Returns what the published schema (results/row.schema.json) has against the line; empty if nothing."""
    kind = line.get("kind") if isinstance(line, dict) else None
    validator = _validators().get(str(kind))
    if validator is None:
        return f"its kind is {str(kind)[:40]!r}, not run, row or end"
    try:
        error = None if validator.is_valid(line) else next(validator.iter_errors(line))
    except UnicodeEncodeError:  # in a name, or in a value that is refused; in a value that fits it may stand
        return "it holds a lone surrogate where none may be"
    if error is not None:
        return f"{'/'.join(map(str, error.instance_path)) or kind}: {error.message}"[:200]
    path = _fraction_in(line, NOT_WHOLE)
    return f"{path}: a fraction where a whole number is expected"[:200] if path else ""


def _fraction_in(value: Any, but: Sequence[str] = ()) -> str:
    """Returns the path to a number that is written as a fraction, outside the fields `but`; nothing if there
    is none. JSON Schema takes 0.0 for a whole number, but nothing can be counted with it."""
    if NOT_PLAIN.isdisjoint(map(type, value.values() if type(value) is dict else value)):
        return ""  # as nearly everywhere, and this is asked of every row that is read
    for name, member in value.items() if type(value) is dict else enumerate(value):
        kind = type(member)
        if kind is float and name not in but:
            return str(name)
        if member and (kind is dict or kind is list) and name not in but and (path := _fraction_in(member)):
            return f"{name}/{path}"
    return ""
