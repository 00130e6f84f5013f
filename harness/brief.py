"""What a run ends with: per backend the figures that matter most, its gravest failure, and the commands to go on with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.metrics import METRICS, few, summary
from harness.row import OURS, Row, RunInfo, verdict
from harness.seen import ArmSeen, fold
from harness.shard import note
from harness.store import read_end, read_info, read_rows, read_samples
from harness.table import grid, heading, number
from harness.terminal import Paper, command

ALWAYS = ("schemas", "passing")
IF_ANY = ("compile_error", "crash", "out_of_memory", "timeout", "validation_error", "invalidation_error", "not_measured")
"""Rows that are left out where they are 0 of every arm shown."""
SHARES = ("declared_coverage", "instance_coverage", "compliance")
TIMES = (("ttfm", "p50"), ("ttfm", "p99"), ("tbm", "p50"), ("tbm", "p99"))

GRAVITY = ("crash", "under_constrained", "over_constrained", "backend_error", "oom", "timeout", "finding")
"""The gravest first: what takes a server down, then what is wrong without a word, then what fails with one."""


@dataclass(frozen=True)
class Brief:
    """A run in short."""

    folder: Path
    info: RunInfo
    rows: int | None
    """None: the run is incomplete."""
    statuses: dict[str, int]
    arms: tuple[ArmSeen, ...]
    gravest: Gravest | None


@dataclass(frozen=True)
class Gravest:
    """The first of the gravest failures in the order of the run."""

    kind: str
    """One of GRAVITY."""
    case: str
    suite: str
    backend: str
    said: str
    repro: tuple[str, ...]
    """The words of the command that shows it."""


def brief(run: Path) -> Brief:
    """The run in short. Raises BadInput."""
    info, end = read_info(run), read_end(run)
    worst: list[tuple[int, str, Row]] = []
    arms = fold(_noting(read_rows(run), worst), read_samples(run), info)
    found = _gravest(run, info, worst[0][1], worst[0][2]) if worst else None
    return Brief(run, info, end.rows if end else None, end.statuses if end else {}, tuple(arms), found)


def kind_of(row: Row) -> str | None:
    """Which of GRAVITY the row is; None if it is none, or our own fault."""
    if row.status in OURS:
        return None
    kind = verdict(row.status, row.valid, row.accepted)
    if kind == "broken":
        return row.status
    if kind in GRAVITY:
        return kind
    return "finding" if not all(each.documented for each in row.findings) else None


def _noting(rows: Iterable[Row], worst: list[tuple[int, str, Row]]) -> Iterator[Row]:
    """The rows, unchanged; the worst so far stays in the list."""
    for row in rows:
        kind = kind_of(row)
        if kind is not None and (not worst or GRAVITY.index(kind) < worst[0][0]):
            worst[:] = [(GRAVITY.index(kind), kind, row)]
        yield row


def _gravest(run: Path, info: RunInfo, kind: str, row: Row) -> Gravest:
    versions = {each.version for each in info.arms if each.backend == row.backend}
    backend = row.backend + (f"=={row.backend_version}" if len(versions) > 1 else "") + (f":{row.options}" if row.options else "")
    words = ["grammarbench", "repro", str(run), row.case_id, "--backend", backend, "--vocabulary", row.vocabulary]
    finding = next((each for each in row.findings if not each.documented), None)
    if kind == "finding" and finding is not None:
        words += ["--check", finding.check]
    elif row.instance is not None:
        words += ["--instance", str(row.instance)]
    said = finding.text if kind == "finding" and finding is not None else row.text
    return Gravest(kind, row.case, row.suite, f"{backend} {row.backend_version}".strip(), said, tuple(words))


def next_commands(found: Brief) -> dict[str, list[str]]:
    """What to do with the run, as words of commands."""
    run = str(found.folder)
    commands = {"table": ["grammarbench", "table", run], "report": ["grammarbench", "report", run]}
    if found.gravest:
        commands["repro"] = list(found.gravest.repro)
    return commands | {"export": ["grammarbench", "export", run, "--out", str(found.folder / "export")]}


def text(found: Brief, on: Paper) -> str:
    """At most 25 lines for each group of backends side by side, then the gravest failure and the commands."""
    parts = []
    fit = max(1, (on.width - 25) // 13)
    columns = [_column(each) for each in found.arms]
    for start in range(0, len(columns), fit):
        chosen = columns[start : start + fit]
        parts.append(grid("", [heading(each) for each in chosen], _sections(chosen), on.width, on.styled))
    if any(cell.startswith("~") for section in _sections(columns) for _, cells in section for cell in cells):
        parts[-1] += "\n~ fewer than ten values lie beyond this percentile"
    return "\n\n".join([*parts, "\n".join([*_share(found, on), *_failure(found, on), "next:", *_commands(found, on)])])


def _share(found: Brief, on: Paper) -> list[str]:
    return on.fold(note(found.info)) if found.info.shard else []


def _failure(found: Brief, on: Paper) -> list[str]:
    if found.rows is None:
        return [on.paint("INCOMPLETE", "bad") + " (no end): it gates nothing"]
    if found.gravest is None:
        return [on.paint("no failure", "good")]
    each = found.gravest
    kind = each.kind.replace("_", "-" if each.kind.endswith("constrained") else " ")
    # The words are painted once they fit: colour must not count as columns.
    first, *more = on.fold(f"gravest failure: {kind} of {each.backend} in {each.case} ({each.suite})")
    said = on.fold(f"  {each.said}", most=2) if each.said else []
    return [first.replace(kind, on.paint(kind, "bad"), 1), *more, *said]


def _commands(found: Brief, on: Paper) -> list[str]:
    return [f"  {line}" for words in next_commands(found).values() for line in command(words, on.width - 2).split("\n")]


def _column(arm: ArmSeen) -> dict[str, Any]:
    who = {"backend": arm.backend, "options": arm.options, "backend_version": arm.version, "vocabulary": arm.vocabulary}
    checks = [each for each in arm.checks.values() if each.looked]
    failing = sum(each.failed > each.documented for each in checks)
    return who | {"checks": f"{failing}/{len(checks)}" if checks else ""} | summary(arm)


def _sections(columns: Sequence[dict[str, Any]]) -> list[list[tuple[str, list[str]]]]:
    """Cases, shares, walks and times, as rows of cells."""

    def rows(names: Iterable[str]) -> list[tuple[str, list[str]]]:
        return [(METRICS[name].title, [number(each[name], METRICS[name].unit) for each in columns]) for name in names]

    cases = rows([*ALWAYS, *(name for name in IF_ANY if any(each[name] for each in columns))])
    if any(each["checks"] for each in columns):
        cases.append(("Checks failing", [each["checks"] or "-" for each in columns]))
    times = [(f"{name.upper()} {level} (µs)", [_time(each, name, level) for each in columns]) for name, level in TIMES]
    return [cases, rows(SHARES), [*times, *rows(["peak_rss"])]]


def _time(column: dict[str, Any], name: str, level: str) -> str:
    value = number(column[f"{name}_{level}_us"], "us")
    return f"~{value}" if value != "-" and few(level, int(column[f"{name}_n"])) else value


def to_json(found: Brief) -> dict[str, Any]:
    """Folder, rows by status, every metric and check of every backend, the gravest failure and the next commands."""
    return {
        "run": found.info.run,
        "folder": found.folder,
        "complete": found.rows is not None,
        "shard": found.info.shard,
        "rows": found.rows,
        "statuses": found.statuses,
        "backends": [
            {
                "backend": arm.backend,
                "version": arm.version,
                "options": arm.options,
                "vocabulary": arm.vocabulary,
                "metrics": summary(arm),
                "checks": arm.checks,
            }
            for arm in found.arms
        ],
        "gravest": found.gravest,
        "next": next_commands(found),
    }
