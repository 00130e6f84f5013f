"""Writes cases into the lines of a run's `cases.jsonl`, and reads them back."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from harness.backend.grammar import Dialect, Grammar
from harness.cases.case import Case, Instance
from harness.errors import damaged
from harness.shape import LONGEST_LINE, bounded_lines, json_line, shaped

CASES_FILE = "cases.jsonl"
"""The file of a run that holds every case once."""

LONGEST_CASE = 4 * LONGEST_LINE
"""Most bytes of a case in `cases.jsonl`. A suite's line of `LONGEST_LINE` fits: what is longer here are the
escapes of the grammar (at most three times its bytes) and the base64 of the instances."""


def case_to_line(suite: str, suite_version: str, case: Case) -> bytes:
    """Returns the case as one line of a run's `cases.jsonl`, grammar as text and contents in base64."""
    line = {
        "suite": suite,
        "suite_version": suite_version,
        "id": case.id,
        "name": case.name,
        "dialect": case.grammar.dialect,
        "grammar": case.grammar.text,
        "instances": [
            [instance.name, base64.b64encode(instance.content).decode(), instance.valid, *_flags(instance)]
            for instance in case.instances
        ],
        "tags": case.tags,
        "options": case.options,
    }
    # ASCII escapes: a lone surrogate in a name or a grammar must survive the file.
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _flags(instance: Instance) -> list[Any]:
    """Returns the values behind `valid` in an instance's line; most instances have none."""
    flags: list[Any] = [instance.contested, list(instance.contrary), list(instance.made_for)]
    if instance.tokens:
        return [*flags, list(instance.tokens)]
    if instance.made_for:
        return flags
    return flags[:2] if instance.contrary else flags[:1] if instance.contested is not None else []


def case_from_line(line: bytes) -> tuple[str, str, Case]:
    """Returns the suite, the suite's version and the case from one line of `cases.jsonl`.

    Raises BadInput for any other line."""
    value = json_line(line, CASES_FILE)
    try:
        stored = shaped(_Line, value)
        if not _ID.fullmatch(stored.id):
            raise ValueError(f"{stored.id[:80]!r} is no id of a case")
        instances = tuple(map(_instance_of, stored.instances))
    except ValueError as error:
        raise damaged(f"cases.jsonl: a line that is no case ({error})") from error
    return (
        stored.suite,
        stored.suite_version,
        Case(
            stored.id,
            stored.name,
            Grammar(stored.dialect, stored.grammar),
            instances,
            stored.tags,
            stored.options,
        ),
    )


@dataclass(frozen=True)
class _Line:
    """A line of `cases.jsonl`; each of its instances has the parts of `_InstanceParts`, in their order."""

    suite: str
    suite_version: str
    id: str
    name: str
    dialect: Dialect
    grammar: str
    instances: tuple[tuple[Any, ...], ...]
    tags: tuple[str, ...]
    options: dict[str, str]


@dataclass(frozen=True)
class _InstanceParts:
    """An instance in a line of `cases.jsonl`, its content in base64; what `_flags` adds need not be there."""

    name: str
    content: str
    valid: bool | None
    contested: bool | None = None
    contrary: tuple[str, ...] = ()
    made_for: tuple[str, ...] = ()
    tokens: tuple[int | str, ...] = ()


_ID = re.compile(r"[0-9a-f]{12}(-[0-9]+)?")
_PARTS = tuple(part.name for part in fields(_InstanceParts))


def _instance_of(parts: tuple[Any, ...]) -> Instance:
    """Returns the instance from its parts. Raises ValueError."""
    if len(parts) > len(_PARTS):
        raise ValueError(f"an instance of {len(parts)} parts")
    stored = shaped(_InstanceParts, dict(zip(_PARTS, parts, strict=False)))
    return Instance(
        stored.name,
        base64.b64decode(stored.content, validate=True),
        stored.valid,
        stored.contested,
        stored.contrary,
        stored.made_for,
        stored.tokens,
    )


def cases_in(path: Path) -> Iterator[tuple[int, str, str, Case]]:
    """Yields, for each case of a run's `cases.jsonl` or of a draft of it, the offset at which it begins, the
    suite, the suite's version and the case. Raises BadInput, and OSError where the file cannot be read."""
    offset = 0
    with open(path, "rb") as file:
        for line in bounded_lines(file, CASES_FILE, LONGEST_CASE):
            yield offset, *case_from_line(line)
            offset += len(line)


def case_at(cases: str, offset: int) -> Case:
    """Returns the case that begins at this offset of a run's `cases.jsonl`. Raises BadInput."""
    with open(cases, "rb") as file:
        file.seek(offset)
        _, _, case = case_from_line(file.readline(LONGEST_CASE))
    return case
