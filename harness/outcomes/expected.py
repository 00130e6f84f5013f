"""Expected outcomes: what every case came to on the day it was recorded, and what has changed since, for the
worse or for the better.

A case's outcome is the set of its faults: the verdicts of its walks other than `pass`, and the findings by
check and cause. Faults that are not recorded fail; recorded faults that are gone fail too, so that the record
stays true. Whether a case passes is another question, which harness/outcomes/outcome.py answers: a fault that
the backend documents is recorded too, and costs no pass. A timeout, and checks that were not begun because
the case had taken too long, depend on the machine: they are told, and fail nothing.

A run that is held against a record takes its settings from it. Where they differ all the same, only verdicts
are compared, which do not depend on them. A run that walked a sample of what is recorded proves nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from harness.backend.arm import arm as arm_of
from harness.backend.environments.releases import release
from harness.errors import BadInput, Incomplete
from harness.outcomes import outcome
from harness.outcomes.gate import EXIT_CODES
from harness.rows.row import BROKEN, OURS, OUT_OF_TIME, VERDICTS, Row, RunInfo, note
from harness.rows.sample import sample, sample_of
from harness.rows.store import read_end, read_info, read_rows
from harness.shape import json_line, read_bytes, shaped
from harness.text import one_line

FORMAT = 1
TIMEOUT = "timeout"

COUNTS = ("cases", "cases_in_all")
"""What a record keeps of each suite: how many cases were walked, and how many it held."""

LOSSES = frozenset({*BROKEN, *(f"{each}_in_a_check" for each in BROKEN)})
"""The faults after which the rest of a case is not walked."""

OF_A_VERDICT = frozenset({*VERDICTS, *BROKEN})
"""The faults that a walk shows without any check."""

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
    not_walked: int = 0
    """Recorded cases of the run's arms and suites of which the run has no row, because it walked a sample."""
    notes: tuple[str, ...] = ()
    """What a reader must know first: of what sample run and record are, and what therefore was
    not compared."""

    @property
    def word(self) -> Literal["ok", "failed", "unproven"]:
        """`unproven` where nothing is recorded, or where the run left out a part of what is."""
        if self.changes:
            return "failed"
        return "ok" if self.compared and not self.not_walked else "unproven"

    @property
    def holds(self) -> bool:
        return self.word == "ok"

    @property
    def exit_code(self) -> int:
        """0 as recorded, 1 not as recorded, 4 unproven."""
        return EXIT_CODES[self.word]


def faults(row: Row) -> set[str]:
    """What is wrong with one row, in words that do not depend on the machine, but for `timeout`."""
    found = {name_of(fault) for fault in outcome.faults(row)}
    return found | {TIMEOUT} if OUT_OF_TIME in row.checks.values() else found


def name_of(fault: outcome.Fault) -> str:
    """The name of a fault as one word, because a record joins the names with spaces."""
    return "_".join(fault.name.split()) or "_"


def name_of_arm(row: Row) -> str:
    """`backend:options version vocabulary`, `-` where there is no version."""
    return f"{arm_of(row)} {row.backend_version or '-'} {row.vocabulary}"


def seen(rows: Iterable[Row]) -> Seen:
    """The outcome of every case."""
    outcomes: dict[str, dict[str, set[str]]] = {}
    names: dict[str, str] = {}
    unmeasured: set[tuple[str, str]] = set()
    left_out: set[tuple[str, str]] = set()
    for row in rows:
        name = name_of_arm(row)
        case = f"{row.suite}/{row.case_id}"
        names[case] = row.case
        found = outcomes.setdefault(name, {}).setdefault(case, set())
        if row.status in OURS:
            (unmeasured if row.status == "harness_error" else left_out).add((name, case))
        found |= faults(row)
    # What was left out because the backend was lost before is the backend's: a crash must not hide from a
    # gate.
    unmeasured |= {(name, case) for name, case in left_out if not outcomes[name][case] & LOSSES}
    frozen = {arm: {case: frozenset(each) for case, each in cases.items()} for arm, cases in outcomes.items()}
    return Seen(frozen, names, frozenset(unmeasured))


def is_record(path: Path) -> bool:
    """Is this path of a file of expected outcomes, and not of a run's folder?

    A missing file is one if its name ends in `.json`.
    """
    return not path.is_dir() and (path.exists() or path.suffix == ".json")


def record(folder: Path, path: Path) -> int:
    """Write what the cases of a run came to; returns how many. Raises BadInput for an incomplete run."""
    now = _of_run(folder)
    info = read_info(folder)
    if info.shard:
        raise BadInput(
            f"{folder}: shard {info.shard} of a run makes no record; put the shards together "
            "first (grammarbench merge)"
        )
    value = {
        "format": FORMAT,
        "profile": info.profile,
        "effort": info.effort,
        "decode": info.decode,
        "seed": info.seed,
        "timeout_s": info.timeout_s,
        "suites": {
            name: {key: each[key] for key in COUNTS if key in each} for name, each in info.suites.items()
        },
        "outcomes": {
            arm: {
                case: " ".join(sorted(each))
                for case, each in sorted(cases.items())
                if (arm, case) not in now.unmeasured
            }
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
    now = _of_run(folder)
    different = recorded.different(info.effort, info.decode)
    then = recorded.outcomes
    if different:
        then, now = _verdicts(then), replace(now, outcomes=_verdicts(now.outcomes))
    result = compare(then, now)
    missing = _not_walked(then, now, info) if sample_of(info) and not info.shard else 0
    return replace(result, not_walked=missing, notes=tuple(_notes(info, recorded, different, missing)))


def _verdicts(outcomes: Outcomes) -> Outcomes:
    """The outcomes without what checks found."""
    return {
        arm: {case: found & OF_A_VERDICT for case, found in cases.items()} for arm, cases in outcomes.items()
    }


def _not_walked(recorded: Outcomes, now: Seen, info: RunInfo) -> int:
    """How many recorded cases of the run's suites are not among its own, each counted for every arm."""
    missing = 0
    for arm, cases in now.outcomes.items():
        known = known_of(arm, recorded)[0] or {}
        missing += sum(case not in cases and case.rpartition("/")[0] in info.suites for case in known)
    return missing


def _notes(info: RunInfo, recorded: Recorded, different: str, missing: int) -> Iterator[str]:
    walked, of_record = sample_of(info), recorded.sample
    if walked:
        yield walked
    if info.shard:
        yield note(info)
    if of_record and of_record != walked:
        yield f"the record is of {of_record}"
    if missing:
        yield (
            f"{missing} recorded case(s) were not walked: nothing is proven; `run --expect` walks what "
            "the record holds"
        )
    if different:
        yield (
            f"{different}: only verdicts are compared; `run --expect` without --effort and --decode walks "
            "as recorded"
        )


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
    """What is recorded of an arm, and the name under which: its own, or the newest recorded version of it;
    None and empty if neither."""
    if arm in recorded:
        return recorded[arm], arm
    other = _other_version(arm, recorded)
    return (None, "") if other is None else (recorded[other], other)


def text(result: Verdict, most: int = 40) -> str:
    """The verdict for people."""
    worse = [each for each in result.changes if each.new]
    better = [each for each in result.changes if not each.new]
    lines = [
        *result.notes,
        *(f"{arm}: not recorded; compared with {other}" for arm, other in result.against.items()),
    ]
    lines = [one_line(line, spelled=True) for line in lines]
    for title, chosen in (("new failures", worse), ("fixed, but still recorded as failing", better)):
        if chosen:
            lines.append(f"{title}: {len(chosen)}")
            lines += [
                one_line(f"  {each.arm}: {each.name} ({each.case}): {difference(each)}", spelled=True)
                for each in chosen[:most]
            ]
            lines += [f"  ... and {len(chosen) - most} more"] if len(chosen) > most else []
    if result.slow:
        lines.append(f"{result.slow} case(s) differ by a timeout, which depends on the machine")
    if result.unrecorded:
        lines.append(f"{result.unrecorded} case(s) are not recorded")
    said = (
        "not as recorded"
        if result.changes
        else "as recorded"
        if result.compared
        else ("nothing of this run is recorded")
    )
    said += (
        ", but a part of what is recorded was not walked: unproven"
        if result.word == "unproven" and result.compared
        else ""
    )
    return "\n".join([*lines, f"{result.compared} case(s) compared: {said}"])


def to_json(result: Verdict) -> dict[str, Any]:
    """The verdict for machines."""
    return {"holds": result.holds, "verdict": result.word, **asdict(result)}


def difference(change: Change) -> str:
    """New faults with a plus, gone ones with a minus."""
    return " ".join(
        [*(f"+{each}" for each in sorted(change.new)), *(f"-{each}" for each in sorted(change.gone))]
    )


def _other_version(arm: str, recorded: Outcomes) -> str | None:
    backend, version, vocabulary = _parts(arm)
    others = [each for each in recorded if (_parts(each)[0], _parts(each)[2]) == (backend, vocabulary)]
    return max(others, key=lambda each: release(_parts(each)[1]), default=None) if version else None


def _parts(arm: str) -> tuple[str, str, str]:
    """Backend with its options, version, and vocabulary, out of `name_of_arm`'s text. Raises ValueError."""
    backend, version, vocabulary = arm.rsplit(" ", 2)
    return backend, version, vocabulary


def _of_run(folder: Path) -> Seen:
    if read_end(folder) is None:
        raise Incomplete(
            f"{folder}: the run is incomplete, and never gates; `grammarbench run --resume` completes it"
        )
    return seen(read_rows(folder))


@dataclass(frozen=True)
class Recorded:
    """A record of outcomes, and how they came about."""

    outcomes: Outcomes
    effort: int
    seed: int
    decode: bool = False
    profile: str = "gate"
    suites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each suite: `cases` walked, and `cases_in_all`, how many the suite held."""

    @property
    def vocabularies(self) -> tuple[str, ...]:
        """The vocabularies on which the recorded arms walked, each once."""
        return tuple(dict.fromkeys(_parts(arm)[2] for arm in self.outcomes))

    @property
    def sample(self) -> str:
        """The sample of its suites that the record is of; empty if it is of whole suites."""
        return sample(self.suites, self.profile)

    def different(self, effort: int, decode: bool) -> str:
        """In what a run with these settings differs from the record so that its checks found other things;
        empty if in nothing."""
        pairs = (("effort", self.effort, effort), ("decode", self.decode, decode))
        said = [
            f"{name} {_setting(then)}, walked with {_setting(now)}"
            for name, then, now in pairs
            if then != now
        ]
        return f"recorded with {' and with '.join(said)}" if said else ""


def _setting(value: int | bool) -> str:
    return "all" if value == -1 else str(value).lower()


def _counted(outcomes: Outcomes) -> dict[str, dict[str, int]]:
    """Returns the sample of a record that does not name one: how many cases of each suite it holds."""
    most: Counter[str] = Counter()
    for cases in outcomes.values():
        most |= Counter(case.rpartition("/")[0] for case in cases)
    return {name: {"cases": count} for name, count in most.items()}


def read(path: Path) -> Recorded:
    """The record in a file. Raises BadInput."""
    value = json_line(read_bytes(path), str(path))
    try:
        told = shaped(_Record, value)
        if told["format"] != FORMAT:
            raise BadInput(f"{path}: written in format {told['format']}, this version reads {FORMAT}")
        outcomes = {
            " ".join(_parts(arm)): {case: frozenset(faults.split()) for case, faults in cases.items()}
            for arm, cases in told["outcomes"].items()
        }
    except ValueError as error:
        raise BadInput(f"{path}: not a record of outcomes (`--record` writes one): {error}") from error
    suites: Mapping[str, Mapping[str, Any]] = told["suites"] if "suites" in told else _counted(outcomes)
    return Recorded(
        outcomes, told["effort"], told["seed"], told.get("decode", False), told.get("profile", "gate"), suites
    )


class _Suite(TypedDict):
    """How many cases of a suite were walked, and how many it held."""

    cases: int
    cases_in_all: NotRequired[int]


class _Record(TypedDict):
    """What is read of the file."""

    format: int
    effort: int
    seed: int
    decode: NotRequired[bool]
    profile: NotRequired[str]
    suites: NotRequired[dict[str, _Suite]]
    outcomes: dict[str, dict[str, str]]
