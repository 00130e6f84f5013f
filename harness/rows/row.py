"""Defines a row: what was observed on one walk, flat and raw. Conclusions are functions of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import MISSING, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Literal

from harness.backend.arm import Arm
from harness.text import counted, some

Status = Literal[
    "ok", "unsupported", "invalid", "backend_error", "crash", "timeout", "oom", "harness_error", "skipped"
]
Verdict = Literal["pass", "over_constrained", "under_constrained", "declined", "broken", "unjudged"]

DECLINED: tuple[Status, ...] = ("unsupported", "invalid")
BROKEN: tuple[Status, ...] = ("backend_error", "crash", "timeout", "oom")
OURS: tuple[Status, ...] = ("harness_error", "skipped")
VERDICTS: tuple[Verdict, ...] = (
    "pass",
    "over_constrained",
    "under_constrained",
    "declined",
    "broken",
    "unjudged",
)

FORMAT = 1
"""The version of the format of a run's files; it is raised by a change that an older reader would misread."""


@dataclass(frozen=True)
class Finding:
    """What one check saw. A check gives position, text, cause and counts; `run_check` adds the check's name
    and `documented`."""

    check: str = ""
    """The name of the check that saw it."""
    position: int | None = None
    """The index of the token before which it was seen; None if it was not seen at one."""
    text: str = ""
    """A sentence that says what was seen."""
    cause: str = ""
    """The name of the cause, where it is known, e.g. `partial_utf8`."""
    documented: bool = False
    """The backend documents this behaviour; it is a finding all the same."""
    instance: int | None = None
    """The index of the instance along which it was found, where the row is that of the whole case."""
    over: int = 0
    """The number of tokens that are forbidden although the grammar allows them."""
    under: int = 0
    """The number of tokens that are allowed although the grammar forbids them."""
    examples: tuple[str, ...] = ()
    """The bytes of a few of these tokens, or of a witness, as hex."""
    walk: tuple[int, ...] = ()
    """The tokens that lead there, and the one in question. Accepting them one by one from the start shows the
    finding again."""


@dataclass(frozen=True)
class Before:
    """A case that a process had served before it got another one."""

    suite: str
    case_id: str
    case: str
    """The case's name, cut at 120 characters."""


@dataclass(frozen=True)
class Row:
    """One walk of one instance through one backend (or one compile, where a case has no instance: `instance`
    is None).

    Times are nanoseconds of `time.perf_counter_ns` around the one call that they name; None where the call
    was not made.
    """

    backend: str
    backend_version: str
    options: str
    """The options given, `name=value` joined by `:`; empty for the defaults."""
    vocabulary: str
    suite: str
    suite_version: str
    case: str
    case_id: str
    dialect: str
    tags: tuple[str, ...]
    instance: int | None
    instance_name: str
    mode: str
    jump_forward: bool
    repeat: int
    status: Status
    phase: str
    """Where a status other than ok arose: `compile`, `start`, `fill`, `accept`, `end`, ...; empty when ok."""
    signal: str
    """The signal that ended the child, e.g. `SIGSEGV`; empty if none did."""
    text: str
    """What the backend (or we) said about it, cut at 2,000 characters."""
    valid: bool | None
    """What the grammar says of the instance; None if nobody does."""
    accepted: bool | None
    """Did mask and accept let the whole instance through, end-of-sequence included? None if the walk did not
    get to tell."""
    stopped_at: int | None
    """Index of the first refused token; `tokens` if it was end-of-sequence; where the child was lost, the
    token that it was at; None if nothing was refused."""
    tokens: int
    bytes: int
    grammar_bytes: int
    compile_ns: int | None
    matcher_new_ns: int | None
    first_fill_ns: int | None
    wall_ns: int | None
    peak_rss_bytes: int | None
    """Peak of the child's resident set from the start of the case to the end of this walk."""
    samples: tuple[int, int] | None
    """Offset and count of this walk's values in `samples.i64`: fill, accept, fill, accept, ..., the last pair
    end-of-sequence's."""
    findings: tuple[Finding, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)
    """In mode `checks`, where a row is of a whole case: what came of each check, `passed`, `failed` or
    `skipped: why`."""
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    """What some of the checks counted, by check: of a strategy's decoding, where the ids of the texts that it
    wrote come from."""
    allowed: int | None = None
    """How many tokens the mask allows where the walk was refused; None where nothing was refused, and in runs
    from before this field."""
    contested: bool | None = None
    """The `valid` that the case says, where it is not believed (both validators contradict it, for one); then
    `valid` is None."""
    delayed: str = ""
    """In the first row of a case: what befell a first walk of it, behind other cases in one process, and not
    a second one in a process of its own. It is a fault of the cases before it, or of the machine, and not
    counted against this one."""
    behind: tuple[Before, ...] = ()
    """With `delayed`, the last cases that the process had served by then, in their order. Without it: what is
    wrong in this row was seen behind these cases, and not when its case was walked once more in a process of
    its own. It counts against the backend."""
    checking: str = ""
    """The check that was at work when the child was lost; empty where none was, and in runs from before this
    field."""

    @property
    def version_key(self) -> tuple[str, str, str]:
        """Returns whose row it is, as `harness.backend.arm.version_key` has it of an arm."""
        return self.backend, self.backend_version, self.options


IDENTITY = (
    "backend",
    "backend_version",
    "options",
    "vocabulary",
    "suite",
    "case_id",
    "instance",
    "mode",
    "jump_forward",
    "repeat",
)
"""The fields that tell two rows of one run apart."""

TIMINGS = ("compile_ns", "matcher_new_ns", "first_fill_ns", "wall_ns", "peak_rss_bytes", "samples")
"""The fields in which two runs of the same thing differ."""


def untimed(row: Row) -> Row:
    """Returns the row without what differs between two runs of the same thing."""
    return replace(row, **_NO_TIMES)


_NO_TIMES: dict[str, Any] = dict.fromkeys(TIMINGS)


def identity(row: Row) -> tuple[object, ...]:
    """Returns the row's key within its run."""
    values: tuple[object, ...] = _identity(row)
    return values


_identity = attrgetter(*IDENTITY)


VERDICT = "verdict"
"""The check of a finding that says by which other reading of the regular expression a row's wrong verdict is
right.

It is a documented finding where the backend states that reading as its own; the verdict stays visible, and
costs nothing."""

CHECKS_MODE = "checks"
"""The mode of a row that is of a whole case and holds what the checks found."""

OUT_OF_TIME = "skipped: the checks of this case had taken their time"
"""What a check says that was not begun any more."""


def checks_named(row: Row) -> frozenset[str]:
    """Returns the checks that a row tells of, also one at which the backend was lost, and those that were
    skipped."""
    return frozenset((*row.checks, row.checking)) - {""} if row.mode == CHECKS_MODE else frozenset()


def names_every_check(row: Row) -> bool:
    """Does the row tell of every check that was to be made in its case?"""
    return row.mode == CHECKS_MODE and row.status == "ok" and bool(row.checks)


def verdict(status: str, valid: bool | None, accepted: bool | None) -> Verdict:
    """Returns what one row says of the backend.

    `unjudged` where nobody said whether the instance is valid, and for our own failures, which never count
    against a backend.
    """
    if status in DECLINED:
        return "declined"
    if status in BROKEN:
        return "broken"
    if status in OURS or valid is None or accepted is None:
        return "unjudged"
    if valid == accepted:
        return "pass"
    return "over_constrained" if valid else "under_constrained"


def row_to_json(row: Row) -> dict[str, Any]:
    """Returns the row as the object that a line of `rows.jsonl` holds."""
    # Not `asdict`, which copies every value: this is most of what the coordinator does.
    lists = {
        "findings": [vars(finding) for finding in row.findings],
        "behind": [vars(before) for before in row.behind],
    }
    return {"kind": "row", **vars(row), **lists}


def finding_from_json(value: dict[str, Any]) -> Finding:
    """Returns the finding from the object in a row's line."""
    lists: dict[str, Any] = {name: tuple(value[name]) for name in ("examples", "walk") if name in value}
    return Finding(**{**value, **lists})


def row_from_json(value: dict[str, Any]) -> Row:
    """Returns the row from the object that a line of `rows.jsonl` holds."""
    # Not `Row(**value)`, which sets each field of a frozen class by a call of its own: that takes longer than
    # to parse the line.
    row = object.__new__(Row)
    held = vars(row)
    held.update(_LATER_FIELDS, checks={}, counted={})
    held.update(value)
    del held["kind"]
    held["tags"] = tuple(held["tags"])
    held["samples"] = tuple(held["samples"]) if held["samples"] else None
    held["findings"] = tuple(map(finding_from_json, held["findings"]))
    held["behind"] = tuple(Before(**before) for before in held["behind"])
    return row


_LATER_FIELDS = {each.name: each.default for each in fields(Row) if each.default is not MISSING}
"""The fields that runs from before them lack, with what they hold there."""


NAMED = 3
"""The most contested instances that a line names."""


def contested_lines(suites: dict[str, dict[str, Any]]) -> list[str]:
    """Returns one sentence for each reason for which what cases say of their instances was not believed, by a
    run's `suites`; few names each."""
    by_reason: dict[str, list[str]] = {}
    more: Counter[str] = Counter()
    for suite in suites.values():
        more.update(suite.get("contested_more", {}))
        for why, names in suite.get("contested", {}).items():
            by_reason.setdefault(why, []).extend(names)
    lines = []
    for why, names in by_reason.items():
        count = len(names) + more[why]
        named, it = some(names, NAMED, "; ", more[why]), "it" if count == 1 else "them"
        lines.append(f"{counted(count, 'instance')} {why}: {named}; no backend is judged by {it}")
    return lines


def makes_checks(effort: int, decode: bool) -> bool:
    """Has a run of this effort a row for each whole case?"""
    return effort != 0 or decode


@dataclass(frozen=True)
class RunInfo:
    """The first line of a run: everything that the rows share."""

    run: str
    started: str
    harness: str
    argv: tuple[str, ...]
    seed: int
    profile: str
    timeout_s: float
    memory_bytes: int
    jobs: int
    arms: tuple[Arm, ...]
    vocabularies: dict[str, dict[str, Any]]
    """The `size` and `sha256` of each vocabulary, by its name, and its `eos_tokens`: each id with which an
    output may end, as text, and its printed form. Records from before 0.1.0 lack these. `tokenizer_sha256` is
    of the names of special tokens and of the ids that the tokenizer writes; many runs lack it."""
    suites: dict[str, dict[str, Any]]
    """For each suite by name: `version`, `sha256` of the cases walked, `cases` and `instances` of those, and
    `cases_in_all`, how many the suite holds (runs from before this field lack it); `generated`, how many of
    the instances we made; `contested`, by reason, names instances that are not judged, 100 at most
    for each, and `contested_more` has the number of the others."""
    machine: dict[str, Any]
    effort: int = 0
    """How many places of a case each check looked at; 0: no checks, -1: every place."""
    decode: bool = False
    """Were the checks made that decode?"""
    checks: tuple[str, ...] = ()
    """The names of the only checks that were made; empty: all of the effort."""
    check_timeout_s: float | None = None
    """The processor time of all checks of a case, after which no further one was begun; None: timeout_s."""
    shard: str = ""
    """`i/n` if only that share of the cases was walked; `suites` tells of all of them."""
    executor: str = ""
    """`ray` if tasks of a cluster walked it, each time on whatever machine; empty: all on `machine`."""
    readings: tuple[dict[str, Any], ...] = ()
    """What each backend that shows it takes the tokens of each vocabulary for: `backend`, `version`,
    `options`, `vocabulary`; `loader`, `refused`, `stated`, `wrong`, `kinds`, `examples`, `ends` and
    `knows_one_end` (`harness.backend.token_bytes.look.Reading`), or `problem`. Runs from before
    this field have none."""
    asked: tuple[str, ...] = ()
    """The suites as the command named them: names of ours, or paths. Empty where it named none, and in runs
    from before this field."""
    format: int = FORMAT

    @property
    def vocabulary_sizes(self) -> dict[str, int]:
        """Returns how many tokens each vocabulary has, by its name; 0 where the record does not say."""
        return {name: int(about.get("size", 0)) for name, about in self.vocabularies.items()}


@dataclass(frozen=True)
class End:
    """The last line of a run; a run without it is incomplete and never gates."""

    rows: int
    finished: str
    statuses: dict[str, int] = field(default_factory=dict)


def note(info: RunInfo) -> str:
    """Returns the sentence that a reader of a shard must know; empty for a whole run."""
    return (
        f"shard {info.shard} of a run: a share of its cases; grammarbench merge puts the shards together"
        if info.shard
        else ""
    )
