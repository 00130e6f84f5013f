"""Lines that judge an instance without us and without the backend: written for what a failing case's page
asks about, and run before they are shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.oracle.judge.drafts import draft_of, validator_line
from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.report.cases.cases import first_note
from harness.report.cases.data import Explored

LONGEST = 20_000
"""The most characters of a grammar and an instance together; nobody reads a longer script."""
SECONDS = 2.0
"""The time that one of them may take, because a pattern may take for ever."""
ALL_SECONDS = 120.0
"""The time for all of a page; what is left then has no such lines."""
MEMORY_BYTES = 4 << 30
"""The resident memory that one of them may take."""

REGEX = """\
import regex
print("valid" if regex.fullmatch(grammar, text) else "invalid")"""

JSON_SCHEMA = """\
import json, jsonschema, referencing
{validator}
try:
    valid = validator.is_valid(json.loads(text, parse_constant=int))  # NaN and Infinity are no JSON
except ValueError:
    valid = False
print("valid" if valid else "invalid")"""
"""The schema itself is not judged, so that one which its draft forbids raises no SchemaError."""


def add_judgements(explored: Explored) -> None:
    """Adds to the details of failing cases `judgements`: by the number of an instance, the lines that print
    whether it is valid, given `grammar` and `text`. Instances of which they print the opposite of what the
    case says, or nothing in time, have none."""
    until = time.monotonic() + ALL_SECONDS
    loader = f"{__name__}:{open_judgements.__name__}"
    failing = zip(explored.cases[: explored.failing], explored.details, strict=False)
    with Service(loader, memory_bytes=MEMORY_BYTES) as service:
        for case, detail in failing:
            lines = _lines(case.dialect, detail)
            for instance in _asked_about(detail) if lines else ():
                question = {"lines": lines, "grammar": detail["grammar"], "text": instance["content"]}
                if len(question["grammar"]) + len(question["text"]) > LONGEST:
                    continue
                if time.monotonic() > until:
                    return
                try:
                    answer, _ = service.ask(question, seconds=SECONDS)
                except Lost:
                    continue
                if answer["printed"] == ("valid" if instance["valid"] else "invalid"):
                    detail.setdefault("judgements", {})[str(instance["number"])] = lines


def _asked_about(detail: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the instances of which the page says what is right: those of each arm's first note, and of the
    first note that has one; else the first instance. Each must be whole, and its verdict known."""
    firsts = [first_note(detail, arm) for arm in {note["arm"] for note in detail["notes"]}]
    numbers = {note["instance"] for note in firsts if note is not None and "instance" in note}
    numbers |= set([note["instance"] for note in detail["notes"] if "instance" in note][:1])
    shown = {instance["number"]: instance for instance in detail["instances"]}
    wanted = [shown[number] for number in sorted(numbers) if number in shown] or detail["instances"][:1]
    for instance in wanted:
        if instance["valid"] is not None and "left_off" not in instance and "invalid_utf8" not in instance:
            yield instance


def _lines(dialect: str, detail: dict[str, Any]) -> str:
    """Returns the lines for the case's grammar; none where no library says what is right by it."""
    if "grammar" not in detail or "grammar_left_off" in detail:
        return ""
    if dialect == "regex":
        return REGEX
    if dialect != "json_schema":
        return ""
    options = detail.get("options", {})
    try:
        draft = draft_of(json.loads(detail["grammar"]), options.get("draft"))
    except (ValueError, RecursionError, Unjudgeable):
        return ""
    return JSON_SCHEMA.format(validator=validator_line(draft, options.get("format") == "assert", "grammar"))


def open_judgements() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that runs such lines and answers with what they print; nothing where they raise."""
    import jsonschema  # noqa: F401 - imported once, and not for each question
    import referencing  # noqa: F401
    import regex  # noqa: F401

    def answer(question: dict[str, Any], blob: bytes) -> Answer:
        printed: list[str] = []
        names = {"grammar": question["grammar"], "text": question["text"], "print": printed.append}
        try:
            exec(question["lines"], names)  # ours: grammar and text are only names in them
        except Exception:  # whatever a library raises, these lines do not tell what is right
            return {"printed": ""}, b""
        return {"printed": "".join(printed)}, b""

    return answer, {}
