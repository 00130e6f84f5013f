"""A row: what was seen on one walk, flat and raw. What is concluded from it are functions of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

Status = Literal["ok", "unsupported", "invalid", "backend_error", "crash", "timeout", "oom", "harness_error", "skipped"]
Verdict = Literal["pass", "over_constrained", "under_constrained", "declined", "broken", "unjudged"]

DECLINED: tuple[Status, ...] = ("unsupported", "invalid")
BROKEN: tuple[Status, ...] = ("backend_error", "crash", "timeout", "oom")
OURS: tuple[Status, ...] = ("harness_error", "skipped")
VERDICTS: tuple[Verdict, ...] = ("pass", "over_constrained", "under_constrained", "declined", "broken", "unjudged")

FORMAT = 1
"""Of a run's files; a change that an older reader would misread raises it."""


@dataclass(frozen=True)
class Finding:
    """What one check saw: its name, the index of the token before which it saw it (None: not at one), and a sentence."""

    check: str
    position: int | None
    text: str
    cause: str = ""
    """A class of causes, where one is known, e.g. `partial_utf8`."""
    documented: bool = False
    """The backend says of itself that it does so; still a finding."""
    instance: int | None = None
    """The instance along which it was seen, where the row is of the whole case."""
    over: int = 0
    """How many tokens are forbidden that the grammar allows."""
    under: int = 0
    """How many tokens are allowed that the grammar forbids."""
    examples: tuple[str, ...] = ()
    """Bytes of a few of these tokens, or of a witness, as hex."""
    walk: tuple[int, ...] = ()
    """The tokens that lead there, and the one in question; accepted one by one from the start they show it again."""


@dataclass(frozen=True)
class Row:
    """One walk of one instance through one backend (or one compile, where a case has no instance: `instance` is None).

    Times are nanoseconds of `time.perf_counter_ns` around the one call that they name; None where the call was not made.
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
    """Did mask and accept let the whole instance through, end-of-sequence included? None if the walk did not get to tell."""
    stopped_at: int | None
    """Index of the first refused token; `tokens` if it was end-of-sequence; where the child was lost, the token that it was at;
    None if nothing was refused."""
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
    """Offset and count of this walk's values in `samples.i64`: fill, accept, fill, accept, ..., the last pair end-of-sequence's."""
    findings: tuple[Finding, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)
    """In mode `conformance`, where a row is of a whole case: what came of each check, `passed`, `failed` or `skipped: why`."""
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    """What some of the checks counted, by check: of a strategy's decoding, where the ids of the texts that it wrote come from."""
    allowed: int | None = None
    """How many tokens the mask allows where the walk was refused; None where nothing was refused, and in runs from before this field."""


IDENTITY = ("backend", "backend_version", "options", "vocabulary", "suite", "case_id", "instance", "mode", "jump_forward", "repeat")
"""The fields that tell two rows of one run apart."""

TIMINGS = ("compile_ns", "matcher_new_ns", "first_fill_ns", "wall_ns", "peak_rss_bytes", "samples")
"""The fields in which two runs of the same thing differ."""


def untimed(row: Row) -> Row:
    """The row without what differs between two runs of the same thing."""
    return replace(row, **_NO_TIMES)


_NO_TIMES: dict[str, Any] = dict.fromkeys(TIMINGS)


def identity(row: Row) -> tuple[object, ...]:
    """The row's key within its run."""
    return tuple(getattr(row, name) for name in IDENTITY)


CONFORMANCE = "conformance"
"""The mode of the row of a whole case: what the checks found."""

OUT_OF_TIME = "skipped: the checks of this case had taken their time"
"""What a check says that was not begun any more."""


class OfABackend(Protocol):
    """What has a backend's name and its options as text: a row, an arm."""

    @property
    def backend(self) -> str: ...

    @property
    def options(self) -> str: ...


def arm(of: OfABackend) -> str:
    """The backend as people call it: name and options."""
    return f"{of.backend}:{of.options}" if of.options else of.backend


def arm_names(arms: Iterable[Arm]) -> dict[tuple[str, str, str], str]:
    """By backend, version and options: the arm as people call it, with `==version` where a backend has more than one in the run."""
    arms = list(arms)
    versions = {each.backend: {other.version for other in arms if other.backend == each.backend} for each in arms}
    return {
        (each.backend, each.version, each.options): f"{each.backend}=={each.version}{':' if each.options else ''}{each.options}"
        if len(versions[each.backend]) > 1
        else arm(each)
        for each in arms
    }


def verdict(status: str, valid: bool | None, accepted: bool | None) -> Verdict:
    """What one row says of the backend (DESIGN.md, section 4).

    `unjudged` where nobody said whether the instance is valid, and for our own failures, which never count against a backend.
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
    """The row as a line of `rows.jsonl` holds it."""
    # Not `asdict`, which copies every value: this is most of what the coordinator does.
    return {"kind": "row", **vars(row), "findings": [vars(each) for each in row.findings]}


def finding_from_json(value: dict[str, Any]) -> Finding:
    """The finding of a row's line."""
    lists: dict[str, Any] = {name: tuple(value[name]) for name in ("examples", "walk") if name in value}
    return Finding(**{**value, **lists})


def row_from_json(value: dict[str, Any]) -> Row:
    """The row that such a line holds."""
    fields = {name: each for name, each in value.items() if name != "kind"}
    fields["tags"] = tuple(fields["tags"])
    fields["samples"] = tuple(fields["samples"]) if fields["samples"] else None
    fields["findings"] = tuple(map(finding_from_json, fields["findings"]))
    return Row(**fields)


@dataclass(frozen=True)
class Arm:
    """One backend of a run, as its worker described it."""

    backend: str
    version: str
    options: str
    distribution: str
    dialects: tuple[str, ...]
    mask_format: str
    documented: tuple[str, ...] = ()
    """The causes of divergences that the backend states of itself."""
    python: str = field(default="", compare=False)
    """The interpreter of the environment that holds this version; empty for the run's own."""

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Arm:
        """The arm of a run's first line."""
        return cls(**fields | {name: tuple(fields[name]) for name in ("dialects", "documented") if name in fields})


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
    """By name: `size`, `sha256`."""
    suites: dict[str, dict[str, Any]]
    """By name: `version`, `sha256` of its cases, `cases`, `instances`."""
    machine: dict[str, Any]
    effort: int = 0
    """How many places of a case each check looked at; 0: no checks, -1: every place."""
    decode: bool = False
    """Were the checks made that decode?"""
    shard: str = ""
    """`i/n` if only that share of the cases was walked; `suites` tells of all of them."""
    executor: str = ""
    """`ray` if tasks of a cluster walked it, each time on whatever machine; empty: all on `machine`."""
    format: int = FORMAT


@dataclass(frozen=True)
class End:
    """The last line of a run; a run without it is incomplete and never gates."""

    rows: int
    finished: str
    statuses: dict[str, int] = field(default_factory=dict)
