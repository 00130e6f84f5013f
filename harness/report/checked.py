"""What the checks found, as a table of checks by arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.checks import checks
from harness.seen import ArmSeen, CheckSeen

CAUSES = 4


@dataclass(frozen=True)
class CheckCell:
    """One check on one arm."""

    seen: CheckSeen
    causes: list[tuple[str, int]]
    """The most frequent, with the number of cases; `unknown` where no class of causes is known."""

    @property
    def shade(self) -> int:
        """0 to 4, from more than a third of the cases failing to none."""
        undocumented = self.seen.failed - self.seen.documented
        if not self.seen.failed:
            return 4
        return 3 if not undocumented else 2 if undocumented * 20 <= self.seen.looked else 1 if undocumented * 3 <= self.seen.looked else 0


@dataclass(frozen=True)
class CheckLine:
    """One check on every arm."""

    name: str
    fact: str
    cells: list[CheckCell]


def check_lines(arms: Sequence[ArmSeen]) -> list[CheckLine]:
    """Every check that some arm has something of, in the order in which they ran."""
    names = dict.fromkeys(name for arm in arms for name in arm.checks)
    known = checks()
    return [
        CheckLine(
            name[:80].replace("_", " "), _fact(known[name].__doc__) if name in known else "", [_cell(arm.checks.get(name)) for arm in arms]
        )
        for name in names
    ]


def _fact(doc: str | None) -> str:
    return " ".join((doc or "").split())[:400]


def _cell(seen: CheckSeen | None) -> CheckCell:
    seen = seen or CheckSeen()
    causes = [(cause.replace("_", " ")[:40] or "unknown", count) for cause, count in seen.causes.most_common() if cause != "more"]
    return CheckCell(seen, causes[:CAUSES])
