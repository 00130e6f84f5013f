"""The ratchet: what every case came to on the day it was recorded, and what has changed since, for the worse or for the better.

A case's outcome is the set of its faults: the verdicts of its walks other than `pass`, and the findings by check and cause. Faults
that are not recorded fail; recorded faults that are gone fail too, so that the record stays true. A timeout, and checks that were not begun
because the case had taken too long, depend on the machine: they are told, and fail nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import BadInput, Incomplete
from harness.row import BROKEN, CONFORMANCE, OURS, OUT_OF_TIME, Row, verdict
from harness.row import arm as arm_of
from harness.seen import NOT_COMPILED
from harness.store import read_end, read_info, read_rows

FORMAT = 1
TIMEOUT = "timeout"

Faults = frozenset[str]
Outcomes = dict[str, dict[str, Faults]]
"""By arm (`backend:options version vocabulary`) and case (`suite/id`)."""


@dataclass(frozen=True)
class Seen:
    """The outcomes of one run, and the names of its cases."""

    outcomes: Outcomes
    names: Mapping[str, str]
    unmeasured: frozenset[tuple[str, str]]
    """Arm and case where something is missing through our fault: nothing is concluded from these."""


@dataclass(frozen=True)
class Change:
    """One case that is not as recorded."""

    arm: str
    case: str
    name: str
    new: Faults
    gone: Faults


@dataclass(frozen=True)
class Verdict:
    """A run against the record."""

    changes: tuple[Change, ...]
    slow: int
    """Cases that differ by a timeout."""
    compared: int
    unrecorded: int
    """Cases of which the record knows nothing."""
    against: Mapping[str, str] = field(default_factory=dict)
    """Arms whose version is not recorded, and the version that stood in for it."""

    @property
    def holds(self) -> bool:
        return not self.changes and self.compared > 0


def faults(row: Row) -> set[str]:
    """What is wrong with one row, in words that do not depend on the machine, but for `timeout`."""
    found = {f"{each.check}:{each.cause}" if each.cause else each.check for each in row.findings if each.cause != "more"}
    if OUT_OF_TIME in row.checks.values():
        found.add(TIMEOUT)
    if row.status in BROKEN:
        found.add(row.status if row.mode != CONFORMANCE or row.status == TIMEOUT else f"{row.status}_in_a_check")
    elif row.mode != CONFORMANCE or row.phase in NOT_COMPILED:
        kind = verdict(row.status, row.valid, row.accepted)
        if kind not in ("pass", "unjudged"):
            found.add(kind)
    return found


def name_of_arm(row: Row) -> str:
    """`backend:options version vocabulary`, `-` where there is no version."""
    return f"{arm_of(row)} {row.backend_version or '-'} {row.vocabulary}"


def seen(rows: Iterable[Row]) -> Seen:
    """The outcome of every case."""
    outcomes: dict[str, dict[str, set[str]]] = {}
    names: dict[str, str] = {}
    unmeasured: set[tuple[str, str]] = set()
    for row in rows:
        name = name_of_arm(row)
        case = f"{row.suite}/{row.case_id}"
        names[case] = row.case
        found = outcomes.setdefault(name, {}).setdefault(case, set())
        if row.status in OURS:
            unmeasured.add((name, case))
        found |= faults(row)
    frozen = {arm: {case: frozenset(each) for case, each in cases.items()} for arm, cases in outcomes.items()}
    return Seen(frozen, names, frozenset(unmeasured))


def record(folder: Path, path: Path) -> int:
    """Write what the cases of a run came to; returns how many. Raises BadInput for an incomplete run."""
    now = _of_run(folder)
    info = read_info(folder)
    if info.shard:
        raise BadInput(f"{folder}: shard {info.shard} of a run makes no record; put the shards together first (grammarbench merge)")
    value = {
        "format": FORMAT,
        "profile": info.profile,
        "effort": info.effort,
        "decode": info.decode,
        "seed": info.seed,
        "timeout_s": info.timeout_s,
        "outcomes": {
            arm: {case: " ".join(sorted(each)) for case, each in sorted(cases.items()) if (arm, case) not in now.unmeasured}
            for arm, cases in sorted(now.outcomes.items())
        },
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=0, ensure_ascii=True) + "\n", "utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    return sum(map(len, now.outcomes.values()))


def expect(folder: Path, path: Path) -> Verdict:
    """Compare a run with the record. Raises BadInput."""
    recorded = read(path)
    info = read_info(folder)
    for name in ("effort", "decode", "seed"):
        then, now = getattr(recorded, name), getattr(info, name)
        if then != now:
            raise BadInput(f"{path} was recorded with {name} {then}, the run has {now}; run with the same, or record anew")
    return compare(recorded.outcomes, _of_run(folder))


def compare(recorded: Outcomes, now: Seen) -> Verdict:
    """Case by case; an arm whose version is not recorded is compared with the newest version that is."""
    changes: list[Change] = []
    against: dict[str, str] = {}
    slow = compared = unrecorded = 0
    for arm, cases in now.outcomes.items():
        known, other = known_of(arm, recorded)
        if other and other != arm:
            against[arm] = other
        for case, found in cases.items():
            if (arm, case) in now.unmeasured:
                continue
            if known is None or case not in known:
                unrecorded += 1
                continue
            compared += 1
            then = known[case]
            if found == then:
                continue
            if TIMEOUT in found | then:
                slow += 1
            else:
                changes.append(Change(arm, case, now.names[case], found - then, then - found))
    return Verdict(tuple(changes), slow, compared, unrecorded, against)


def known_of(arm: str, recorded: Outcomes) -> tuple[Mapping[str, Faults] | None, str]:
    """What is recorded of an arm, and the name under which: its own, or the newest recorded version of it; None and empty if neither."""
    if arm in recorded:
        return recorded[arm], arm
    other = _other_version(arm, recorded)
    return (None, "") if other is None else (recorded[other], other)


def text(result: Verdict, most: int = 40) -> str:
    """The verdict for people."""
    worse = [each for each in result.changes if each.new]
    better = [each for each in result.changes if not each.new]
    lines = [f"{arm}: not recorded; compared with {other}" for arm, other in result.against.items()]
    for title, chosen in (("new failures", worse), ("fixed, but still recorded as failing", better)):
        if chosen:
            lines.append(f"{title}: {len(chosen)}")
            lines += [f"  {each.arm}: {each.name} ({each.case}): {difference(each)}" for each in chosen[:most]]
            lines += [f"  ... and {len(chosen) - most} more"] if len(chosen) > most else []
    if result.slow:
        lines.append(f"{result.slow} case(s) differ by a timeout, which depends on the machine")
    if result.unrecorded:
        lines.append(f"{result.unrecorded} case(s) are not recorded")
    said = "as recorded" if result.holds else "nothing of this run is recorded" if not result.compared else "not as recorded"
    return "\n".join([*lines, f"{result.compared} case(s) compared: {said}"])


def to_json(result: Verdict) -> dict[str, Any]:
    """The verdict for machines."""
    return {"holds": result.holds, **asdict(result)}


def difference(change: Change) -> str:
    """New faults with a plus, gone ones with a minus."""
    return " ".join([*(f"+{each}" for each in sorted(change.new)), *(f"-{each}" for each in sorted(change.gone))])


def _other_version(arm: str, recorded: Outcomes) -> str | None:
    backend, version, vocabulary = arm.rsplit(" ", 2)
    others = [each for each in recorded if (each.rsplit(" ", 2)[0], each.rsplit(" ", 2)[2]) == (backend, vocabulary)]
    return max(others, key=lambda each: _version_key(each.rsplit(" ", 2)[1]), default=None) if version else None


def _version_key(version: str) -> list[int]:
    return [int("".join(filter(str.isdigit, part)) or 0) for part in version.split(".")]


def _of_run(folder: Path) -> Seen:
    if read_end(folder) is None:
        raise Incomplete(f"{folder}: the run is incomplete, and never gates; `grammarbench run --resume` completes it")
    return seen(read_rows(folder))


@dataclass(frozen=True)
class Recorded:
    """A record of outcomes, and how they came about."""

    outcomes: Outcomes
    effort: int
    seed: int
    decode: bool = False


def read(path: Path) -> Recorded:
    """The record in a file. Raises BadInput."""
    try:
        value = json.loads(path.read_text("utf-8"))
        if value["format"] != FORMAT:
            raise BadInput(f"{path}: written in format {value['format']}, this version reads {FORMAT}")
        outcomes = {arm: {case: frozenset(each.split()) for case, each in cases.items()} for arm, cases in value["outcomes"].items()}
        return Recorded(outcomes, int(value["effort"]), int(value["seed"]), bool(value.get("decode")))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: not a record of outcomes (`--record` writes one): {error!r}") from error
