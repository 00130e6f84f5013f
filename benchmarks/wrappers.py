"""What each engine's wrapper breaks that the library behind it does not: a run in which both walked the same
cases, as tables.

    python benchmarks/wrappers.py RUN [RUN ...] [--cases N]

RUN is the folder of a `grammarbench run` with wrappers (`vllm:wrapper=NAME`) and the libraries behind them
among its backends. A wrapper's recorded version names its library (`0.33.0+inner-0.2.8`); where that version
of it is in a RUN too, on the same vocabulary, the two are compared case by case. The first table counts
instances, the second the cases in which a check found something. Then, for each pair, what came out
differently: how often, in which dialects, what the wrapper said, and N of the cases (default: 3).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.arm import Arm, arm
from harness.cli.values import whole
from harness.errors import OK
from harness.outcomes.differences import CHECKS, Changed, differences, part_of
from harness.rows.row import CHECKS_MODE, OURS, Row, verdict
from harness.rows.store import read_info, read_rows
from harness.text import one_line

VERDICTS = ("pass", "over_constrained", "under_constrained", "declined", "broken", "unjudged")


@dataclass
class Side:
    """One arm on one vocabulary, and its rows."""

    arm: Arm
    vocabulary: str
    rows: list[Row] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{arm(self.arm)} {self.arm.version}"

    def verdicts(self) -> Counter[str]:
        """Returns how many instances came to each verdict; our own failures are not among them."""
        walked = (row for row in self.rows if row.mode != CHECKS_MODE and row.status not in OURS)
        return Counter(verdict(one.status, one.valid, one.accepted) for one in walked)

    def findings(self) -> Counter[str]:
        """Returns in how many cases each check found something, by its name."""
        return Counter(
            check
            for check, _ in {(finding.check, row.case_id) for row in self.rows for finding in row.findings}
        )

    def messages(self) -> dict[tuple[str, str], str]:
        """Returns, by case and part, the first line of its rows' text."""
        return {(row.case_id, part_of(row)): row.text.partition("\n")[0] for row in self.rows}


def sides(runs: Iterable[Path]) -> list[Side]:
    """Returns every arm and vocabulary of the runs, in their order. Raises BadInput if a folder holds no
    run."""
    by_arm: dict[tuple[Path, str, str, str, str], Side] = {}
    for run in runs:
        info = read_info(run)
        for one in info.arms:
            for vocabulary in info.vocabularies:
                by_arm[run, one.backend, one.version, one.options, vocabulary] = Side(one, vocabulary)
        for row in read_rows(run):
            by_arm[run, row.backend, row.backend_version, row.options, row.vocabulary].rows.append(row)
    return [one for one in by_arm.values() if one.rows]


def pairs(all_sides: Sequence[Side]) -> Iterator[tuple[Side, Side]]:
    """Yields each library with each of its wrappers."""
    for wrapper in all_sides:
        for library in all_sides:
            behind = f"{library.arm.distribution}-{library.arm.version}"
            if wrapper.vocabulary == library.vocabulary and wrapper.arm.version.partition("+")[2] == behind:
                yield library, wrapper


def text(all_sides: Sequence[Side], cases: int) -> str:
    """Returns the whole comparison, in Markdown."""
    lines = [
        "| backend | vocabulary | instances | " + " | ".join(VERDICTS) + " |",
        "| --- " * (3 + len(VERDICTS)) + "|",
    ]
    for side in all_sides:
        counts = side.verdicts()
        cells = [side.name, side.vocabulary, counts.total(), *(counts[name] for name in VERDICTS)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "| backend | cases with findings, by check |", "| --- | --- |"]
    for side in all_sides:
        lines.append(
            f"| {side.name} | "
            f"{', '.join(f'{check} {count}' for check, count in side.findings().most_common()) or 'none'} |"
        )
    for library, wrapper in pairs(all_sides):
        lines += ["", *changed(library, wrapper, cases)]
    return "\n".join(lines)


@dataclass
class _Group:
    """Parts of cases that changed in the same way."""

    parts: int = 0
    cases: dict[str, None] = field(default_factory=dict)
    dialects: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)


def changed(library: Side, wrapper: Side, cases: int) -> Iterator[str]:
    """Yields what came out differently through the wrapper, most often first: verdicts on instances, then
    what checks found."""
    compared, messages = differences(library.rows, wrapper.rows), wrapper.messages()
    groups: defaultdict[tuple[bool, str], _Group] = defaultdict(_Group)
    for case in compared.cases:
        for part in case.parts:
            checks = part.part == CHECKS
            for change in ways(part):
                group = groups[checks, change]
                group.parts += 1
                group.cases[
                    f"{case.name} ({case.key[1]}/{case.key[2]}{'' if checks else ', ' + part.part})"
                ] = None
                group.dialects[case.dialect] += 1
                group.messages[messages.get((case.key[2], part.part), "")] += 1
    yield f"## {library.name} -> {wrapper.name}"
    yield ""
    yield f"{compared.compared} cases compared, {len(compared.cases)} came out differently."
    for (checks, change), group in sorted(
        groups.items(), key=lambda group_of: (group_of[0][0], -group_of[1].parts)
    ):
        dialects = ", ".join(f"{name} {count}" for name, count in group.dialects.most_common())
        yield f"- {'checks' if checks else 'instances'}, {change}: {group.parts} ({dialects})"
        for line, count in group.messages.most_common(cases):
            if line:
                yield f"  - said {count} times: {one_line(line[:160], spelled=True)}"
        for name in list(group.cases)[:cases]:
            yield f"  - {one_line(name, spelled=True)}"


def ways(part: Changed) -> list[str]:
    """Returns how a part changed: from one verdict to another, or each finding that came or went."""
    if part.part == CHECKS:
        return [f"+{name}" for name in sorted(part.new)] + [f"-{name}" for name in sorted(part.gone)]
    return [f"{' '.join(sorted(part.before)) or 'right'} -> {' '.join(sorted(part.after)) or 'right'}"]


@script
def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument(
        "--cases",
        type=whole,
        default=3,
        metavar="N",
        help="cases that are named of each kind of difference (default: 3)",
    )
    options = parser.parse_args(argv)
    print(text(sides(options.runs), options.cases))
    return OK


if __name__ == "__main__":
    sys.exit(main())
