"""Tables of whole runs in docs/llama_cpp.md and docs/more_backends.md: what became of the instances of each
suite, and in how many cases each check failed; by backend."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from harness.outcomes.summary import ArmSummary, CheckSummary, read_arms
from harness.report.tables.instances import check_cell
from harness.text import markdown_table

VERDICTS = {
    "pass": "right",
    "over_constrained": "valid, refused",
    "under_constrained": "invalid, accepted",
    "declined": "declined",
    "broken": "lost",
}
"""What becomes of an instance, and what its column is called."""


def instances_by_suite(run: Path, _: str) -> str:
    """Returns the verdicts of instances, with a line for each suite and backend. In brackets stand the
    instances that were skipped behind one that was lost."""
    arms = read_arms(run)
    lines = [
        f"| suite | backend | {' | '.join(VERDICTS.values())} |",
        "| --- | --- " + "| ---: " * len(VERDICTS) + "|",
    ]
    for suite in dict.fromkeys(suite for arm in arms for suite in arm.by_suite):
        for place, arm in enumerate(arms):
            count = arm.by_suite.get(suite, Counter())
            cells = [f"{count[verdict]:,}" for verdict in VERDICTS]
            if count["skipped"]:
                cells[-1] += f" ({count['skipped']:,})"
            lines.append(f"| {suite if place == 0 else ''} | {titled(arm)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def failed_checks(run: Path, _: str) -> str:
    """Returns in how many of the cases looked at each check failed, by backend, for the checks that failed
    with any. In brackets stand the failures that the backend documents, where they are some and not all."""
    arms = read_arms(run)
    lines = []
    for name in dict.fromkeys(name for arm in arms for name in arm.checks):
        found = [arm.checks.get(name, CheckSummary()) for arm in arms]
        if any(one.failed for one in found):
            lines.append([name.replace("_", " "), *(cell(name, one) for one in found)])
    return markdown_table(["check", *map(titled, arms)], lines, numbers=True).rstrip("\n")


def titled(arm: ArmSummary) -> str:
    """Returns the backend with its version."""
    return f"{arm.backend} {arm.version}"


def cell(name: str, check: CheckSummary) -> str:
    """Returns what a check said of a backend, and how many of its failures are documented where some are and
    others are not."""
    return check_cell(name, check) + (
        f" ({check.documented:,})" if 0 < check.documented < check.failed else ""
    )
