"""The table of tool calls: from rows of known verdicts."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from harness.report.tables.tools import _cell, tool_counts


def row(family: str, valid: bool | None, accepted: bool | None, status: str = "ok", tools: str = "10") -> Any:
    return SimpleNamespace(
        tags=(f"family:{family}", "choice:auto", f"tools:{tools}"),
        valid=valid,
        accepted=accepted,
        status=status,
        version_key=("one", "1", ""),
    )


def test_outputs_are_counted_by_family_choice_and_tools() -> None:
    rows = [
        row("qwen", True, True),
        row("qwen", True, False),
        row("qwen", False, True),
        row("qwen", False, False),
        row("qwen", None, True),
        row("llama", True, None, "unsupported"),
        row("llama", True, None, "harness_error"),
        row("llama", True, True, tools="many"),
    ]
    counts = tool_counts(rows)
    assert list(counts) == [("qwen", "auto", 10), ("llama", "auto", 10)]
    qwen, llama = (of_line["one", "1", ""] for of_line in counts.values())
    assert qwen == Counter({"pass": 2, "over_constrained": 1, "under_constrained": 1})
    assert llama == Counter({"declined": 1, "unjudged": 1})
    assert _cell(qwen) == "2/4 right: refuses 1 valid, takes 1 wrong"
    assert _cell(llama) == "0/2 right: declines 1, 1 not judged"
    assert _cell(Counter(declined=3)) == "declines all" and _cell(Counter(broken=2)) == "breaks on all"
    assert _cell(Counter()) == "not run"


def test_other_cases_are_passed_over() -> None:
    other = row("qwen", True, True)
    other.tags = ("choice",)
    assert tool_counts([other]) == {}
