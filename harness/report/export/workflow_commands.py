"""GitHub's workflow commands, to be printed in a step: at most five, because ten of a kind are shown and one
reader has one screen."""

from __future__ import annotations

from harness.outcomes.result import Result
from harness.text import counted, one_line

MOST = 5
WORST = 2
"""The gravest changes, which stand directly behind the verdict."""


def files(result: Result) -> dict[str, str]:
    """Returns `annotations.txt`, a workflow command in each line."""
    return {"annotations.txt": "".join(f"{line}\n" for line in lines(result))}


def lines(result: Result) -> list[str]:
    """Returns `::error title=...::text` for what fails the gate, `::warning` for what is worse without a gate
    and, where there is neither, `::notice` for failed cases, but for those of controls."""
    level = "error" if result.gate.verdict == "failed" else "warning"
    reasons = [
        _command(level, f"GrammarBench {result.gate.verdict}", reason) for reason in result.gate.reasons
    ]
    worse = [_command(level, change.arm, change.what) for change in result.changes if change.kind == "worse"]
    # The reasons behind the verdict may be so many that they would leave no room for what is worst.
    commands = [*reasons[:1], *worse[:WORST], *reasons[1:], *worse[WORST:]]
    if not commands:
        arms: dict[str, int] = {}
        for count in result.counts:
            arms[count.arm] = arms.get(count.arm, 0) + count.failed
        commands = [
            _command("notice", arm, "; ".join(filter(None, [counted(count, "failed case"), result.sample])))
            for arm, count in arms.items()
            if count and arm not in result.controls
        ]
    return (
        commands
        if len(commands) <= MOST
        else [*commands[: MOST - 1], _command(level, "GrammarBench", f"and {len(commands) - MOST + 1} more")]
    )


def _command(level: str, title: str, text: str) -> str:
    short_title = one_line(title, 100, spelled=True)
    return f"::{level} title={_property(short_title)}::{_data(one_line(text, 300, spelled=True))}"


def _data(text: str) -> str:
    """Escapes the text as the runner's own toolkit does, so that a name from outside becomes no command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
