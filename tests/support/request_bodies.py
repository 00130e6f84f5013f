"""Requests to model servers, and the reading of them, for the tests of suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.cases.case import Case
from harness.cases.suite import find_suite, read_cases

CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": CITY}}
UNNAMED = {"type": "json_schema", "schema": CITY}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": CITY}}


def read(folder: Path, value: object, name: str = "request.json") -> list[Case]:
    """Writes a value into a file, and returns the cases that are read from it."""
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return list(read_cases(find_suite(str(path))))
