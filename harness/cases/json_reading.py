"""Reads JSON that people write, in files and as text in other JSON, and refuses what would be lost."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from harness.cases.bare_schema import SCHEMA_KEYWORDS, SILENT, is_schema
from harness.cases.case import CASE_KEYS, GRAMMAR_KEYS, Literal, as_written
from harness.errors import BadInput

MOST_DIGITS = 4300
OF_REQUESTS = frozenset(
    ("tools", "functions", "response_format", "parameters", "input_schema", "inputSchema")
)
"""The keys of a request and of a tool under which schemas stand."""
TOO_LONG = "a number of more than 4,300 digits is not read"
"""The words for a number in a file that is too long for Python's `int`, whose own words advise a
call of Python."""


def parse_json(text: str, file: str, line: int = 1) -> Any:
    """Returns the JSON value that begins in this line of the file. Raises BadInput with file, line and column
    if it is none, and for a case, a schema or a request that has a key several times, of which all but one
    would be lost.
    """
    try:
        return _parsed(text, f"{file}:{line}" if line > 1 else file)
    except json.JSONDecodeError as error:
        several = error.msg == "Extra data" and error.lineno > 1 and error.colno == 1
        advice = "; one JSON value per line belongs in a .jsonl file" if several else ""
        if file.lower().endswith(".jsonl") and text.strip() in ("{", "["):
            advice = "; each line of a .jsonl file is a whole JSON value"
        raise BadInput(
            f"{file}:{line + error.lineno - 1}:{error.colno}: malformed JSON: {error.msg}{advice}"
        ) from error


def parse_if_text(value: Any, what: str) -> Any:
    """Returns the value of JSON that stands as text in other JSON, and any other value as it is. Raises
    BadInput as `parse_json` does, its text starting with `what`."""
    if not isinstance(value, str):
        return value
    try:
        return _parsed(value, what)
    except json.JSONDecodeError as error:
        raise BadInput(f"{what} is text that is no JSON ({error})") from error


def _refuse_repeated(members: list[tuple[str, Any]], made: dict[str, Any], where: str) -> None:
    """Raises BadInput for an object that has a key several times, of which all but one would be lost: in a
    case of ours, and in a schema or a request where they differ."""
    counts = Counter(key for key, _ in members)
    key, count = counts.most_common(1)[0]
    if GRAMMAR_KEYS.keys() & made.keys() and key in CASE_KEYS:
        raise BadInput(f'{where}: a case has "{key}" {count} times; keep one')
    asking = OF_REQUESTS | (SCHEMA_KEYWORDS - SILENT if is_schema(made) else frozenset())
    for key in sorted(asking & made.keys()):
        if counts[key] > 1 and any(held != made[key] for name, held in members if name == key):
            raise BadInput(f'{where}: an object has "{key}" {counts[key]} times; keep one')


def _parsed(text: str, where: str) -> Any:
    """Returns the value of JSON text. Raises JSONDecodeError if it is none, and BadInput for what has no
    value."""

    def refuse_constant(name: str) -> float:
        raise BadInput(f"{where}: {name} is no JSON number")

    def read_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(members)
        if len(made) < len(members):
            _refuse_repeated(members, made, where)
        return made

    def read(number: str) -> float | Literal:
        value = float(number)
        if value in (0, float("inf"), -float("inf")) and number.lower().partition("e")[0].strip("-0."):
            raise BadInput(f"{where}: the number {number[:40]} is beyond a double's range")
        if len(number) > MOST_DIGITS:
            raise BadInput(f"{where}: {TOO_LONG}")
        return as_written(number)

    try:
        return json.loads(
            text, parse_constant=refuse_constant, parse_float=read, object_pairs_hook=read_object
        )
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise BadInput(f"{where}: {TOO_LONG}") from error
