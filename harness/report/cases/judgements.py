"""Lines that judge an instance without us and without the backend: written for what a failing case's page
asks about, and run before they are shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from harness.backend.grammar import Grammar
from harness.diagnose.repro.evidence import trials
from harness.report.cases.cases import first_note
from harness.report.cases.data import Explored

LONGEST = 20_000
"""The most characters of a grammar and an instance together; nobody reads a longer script."""
SECONDS = 2.0
"""The time that a trial of them may take, because a pattern may take for ever."""
ALL_SECONDS = 120.0
"""The time for all of a page; what is left then has no such lines."""


def add_judgements(explored: Explored) -> None:
    """Adds to the details of failing cases `judgements`: by the number of an instance, the lines that print
    whether it is valid, given `grammar`, a string, and `instance`, bytes. Instances of which no validator
    says in time what the case says have none."""
    until = time.monotonic() + ALL_SECONDS
    failing = zip(explored.cases[: explored.failing], explored.details, strict=False)
    with trials(SECONDS) as tried:
        for case, detail in failing:
            if "grammar" not in detail or "grammar_left_off" in detail:
                continue
            grammar = Grammar(case.dialect, detail["grammar"])  # type: ignore[arg-type]
            options = detail.get("options", {})
            formats = options.get("format") == "assert"
            for instance in _asked_about(detail):
                if len(grammar.text) + len(instance["content"]) > LONGEST:
                    continue
                if time.monotonic() > until:
                    return
                content, valid = instance["content"].encode(), instance["valid"]
                found = tried.evidence(grammar, content, valid, options.get("draft"), formats)
                if found is not None and found.agrees:
                    detail.setdefault("judgements", {})[str(instance["number"])] = "\n".join(found.lines)


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
