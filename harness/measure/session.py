"""A measurement from what the user asked for to its last line: scouted as a run, planned, measured in forks, confirmed, finished."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import BadInput
from harness.machine import hardware, hardware_key
from harness.measure.engine import Engine
from harness.measure.estimate import ALL, Comparison, Figures, compare, confirmation, flagged, undecided
from harness.measure.protocol import PROFILES, PROTOCOL, MeasuredArm, Profile
from harness.measure.record import Measurement, Recorder, Trace, has_measurement, read_measurement
from harness.row import Arm, Row, RunInfo, arm, arm_names, verdict
from harness.session import Request as RunRequest
from harness.session import now, run
from harness.store import locked, read_cases, read_info, read_rows
from harness.suite import MEASURED, walked_by_default

AGAIN = " (again)"
"""Behind the name of the A/A arm."""

SUITES = {"quick": (MEASURED,), "default": (MEASURED, "json_schema", "regex", "ebnf"), "full": (MEASURED, *walked_by_default())}
"""What is measured if nothing is named."""


@dataclass(frozen=True)
class Request:
    """What `grammarbench measure` was told; None stands for the profile's own."""

    suites: tuple[str, ...]
    backends: str
    reference: str | None
    vocabulary: str
    profile: str
    out: Path | None
    forks: int | None
    timeout_s: float | None
    memory_gb: float
    argv: tuple[str, ...]
    case: str | None = None
    """No case but that one, by its name or id."""


def measure(request: Request, say: Callable[[str], None]) -> tuple[Path, list[Comparison]]:
    """Do it; the run's folder, and what was concluded. Raises BadInput."""
    profile = PROFILES[request.profile]
    if request.forks is not None:
        profile = replace(profile, forks=request.forks, most_forks=request.forks)
    if request.timeout_s is not None:
        profile = replace(profile, timeout_s=request.timeout_s)
    if request.out is not None and has_measurement(request.out):
        raise BadInput(f"{request.out} holds a measurement already; give another --out")
    folder = run(_scouting(request, profile), say, lambda _: None).folder
    with locked(folder):
        return folder, _measure_in(folder, request, profile, say)


def _scouting(request: Request, profile: Profile) -> RunRequest:
    """One walk of every case by every arm: what each solves is what it is measured on."""
    return RunRequest(
        suites=request.suites or SUITES[request.profile],
        backends=request.backends,
        vocabularies=(request.vocabulary,),
        profile="full",
        out=request.out,
        resume=False,
        jobs=2 if (os.cpu_count() or 1) > 1 else 1,
        timeout_s=profile.timeout_s,
        memory_gb=request.memory_gb,
        effort=0,
        spellings=False,
        argv=request.argv,
        cases_of_ours=None if request.case else profile.cases_of_ours,
        only=(request.case,) if request.case else (),
    )


def _measure_in(folder: Path, request: Request, profile: Profile, say: Callable[[str], None]) -> list[Comparison]:
    info, rows = read_info(folder), list(read_rows(folder))
    arms = measured_arms(info.arms, request.reference)
    traces, unsolved = plan_traces(folder, info, rows, arms)
    if not any(each.solved_by for each in traces):
        raise BadInput(f"no backend solves any of these cases with a valid instance; see `grammarbench table {folder}`")
    machine = hardware()
    measurement = Measurement(
        run=info.run,
        started=now(),
        profile=request.profile,
        vocabulary=next(iter(info.vocabularies)),
        arms=tuple(arms),
        traces=tuple(traces),
        unsolved=unsolved,
        hardware=hardware_key(machine),
        workload=workload_key(info, traces, profile),
        software={"python": platform.python_version(), **info.machine.get("packages", {})},
        cpu=max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    )
    names = {(each.backend, each.version, each.options): each.name for each in arms if each.role != "a/a"}
    compile_ns = {
        (names[row.backend, row.backend_version, row.options], row.case_id): row.compile_ns for row in rows if row.compile_ns is not None
    }
    again = next(each for each in arms if each.role == "a/a")
    reference = next(each for each in arms if each.role == "reference")
    compile_ns |= {(again.name, case): value for (name, case), value in compile_ns.items() if name == reference.name}
    with Recorder(folder, measurement) as recorder:
        engine = Engine(measurement, profile, info.memory_bytes, folder / "cases.jsonl", recorder, say, compile_ns)
        say(f"{len(traces)} cases x {len(arms)} arms, at least {profile.forks} forks of {profile.rounds} rounds")
        for _ in range(profile.forks):
            engine.fork(traces, arms)
        while engine.next_fork < profile.most_forks and (open_arms := _undecided(folder)):
            say(f"not decided yet: one fork more of {', '.join(sorted(open_arms))}")
            engine.fork(traces, [each for each in arms if each.name in open_arms])
        comparisons = _confirm(engine, folder, arms, profile, say)
        recorder.finish(now(), remade=engine.remade)
    return comparisons


def _confirm(engine: Engine, folder: Path, arms: Sequence[MeasuredArm], profile: Profile, say: Callable[[str], None]) -> list[Comparison]:
    """What changed between arms of one backend is measured once more in fresh forks, those families and arms alone."""
    figures = Figures(read_measurement(folder))
    comparisons = compare(figures)
    doubtful = flagged(comparisons, figures)
    if not doubtful:
        return comparisons
    families, names = {each.family for each in doubtful}, {name for each in doubtful for name in (each.base, each.head)}
    say(f"to be confirmed in fresh forks: {len(doubtful)} changes in {', '.join(sorted(families))}")
    traces = [each for each in engine.measurement.traces if ALL in families or each.family in families]
    for made in range(1, profile.most_forks + 1):
        engine.fork(traces, [each for each in arms if each.name in names], confirming=True)
        confirming = Figures(read_measurement(folder), confirming=True)
        if made >= profile.forks and all(confirmation(each, confirming)[1] != "inconclusive" for each in doubtful):
            break
    return conclude(folder)


def conclude(folder: Path) -> list[Comparison]:
    """What a stored measurement says. Raises BadInput."""
    recorded = read_measurement(folder)
    confirming = Figures(recorded, confirming=True)
    return compare(Figures(recorded), confirming if confirming.slots else None)


def _undecided(folder: Path) -> set[str]:
    figures = Figures(read_measurement(folder))
    return undecided(compare(figures), figures)


def measured_arms(arms: Iterable[Arm], reference: str | None) -> list[MeasuredArm]:
    """The run's arms, the reference (the first unless named) once more as A/A arm. Raises BadInput."""
    arms = list(arms)
    names = arm_names(arms)
    found = []
    for each in arms:
        name = names[each.backend, each.version, each.options]
        found.append(MeasuredArm(name, arm(each), each.backend, each.version, each.options, "arm", each.python or sys.executable))
    chosen = found[0]
    if reference is not None:
        named = [each for each in found if reference in (each.name, f"{each.backend}=={each.version}", each.backend)]
        if not named:
            raise BadInput(f'the reference "{reference}" is none of the arms ({", ".join(each.name for each in found)})')
        chosen = named[0]
    found = [replace(each, role="reference") if each is chosen else each for each in found]
    return [*found, replace(chosen, name=chosen.name + AGAIN, role="a/a")]


def plan_traces(
    folder: Path, info: RunInfo, rows: Sequence[Row], arms: Sequence[MeasuredArm]
) -> tuple[list[Trace], dict[str, dict[str, str]]]:
    """Of every case with a valid instance its longest one, and which arms solved the case; why the others did not, by arm and case.

    An arm solves a case if it judges every instance rightly.
    """
    names = {(each.backend, each.version, each.options): each.name for each in arms if each.role != "a/a"}
    copies = {each.name.removesuffix(AGAIN): each.name for each in arms if each.role == "a/a"}
    problems: dict[tuple[str, str], dict[str, str]] = {}
    tokens: dict[tuple[str, str, int], int] = {}
    for row in rows:
        arm = names[row.backend, row.backend_version, row.options]
        if row.instance is not None and row.valid and row.tokens:
            tokens[row.suite, row.case_id, row.instance] = row.tokens
        said = verdict(row.status, row.valid, row.accepted)
        if said != "pass":
            why: str = row.status if row.status != "ok" else said
            problems.setdefault((row.suite, row.case_id), {}).setdefault(arm, why)
    dialects: dict[str, set[str]] = {}
    for row in rows:
        dialects.setdefault(row.suite, set()).add(row.dialect)
    traces: list[Trace] = []
    unsolved: dict[str, dict[str, str]] = {}
    for offset, (suite, _, case) in zip(_offsets(folder), read_cases(folder), strict=True):
        lengths = {number: tokens.get((suite, case.id, number), 0) for number in range(len(case.instances))}
        longest = max(lengths, key=lambda number: lengths[number], default=None)
        failed = problems.get((suite, case.id), {})
        if longest is None or not lengths[longest] or any(each.case_id == case.id for each in traces):
            if any(each.valid for each in case.instances):  # there is something to measure, but nobody walked it
                for name, why in failed.items():
                    unsolved.setdefault(name, {}).setdefault(case.id, why)
            continue
        solved = [name for name in names.values() if name not in failed]
        solved += [copies[name] for name in solved if name in copies]
        family = suite if len(dialects[suite]) == 1 else f"{suite} {case.grammar.dialect}"
        traces.append(Trace(offset, suite, family, case.id, case.name, longest, tuple(solved)))
        for name, why in failed.items():
            unsolved.setdefault(name, {})[case.id] = why
    return traces, unsolved


def _offsets(folder: Path) -> Iterator[int]:
    with open(folder / "cases.jsonl", "rb") as file:
        while True:
            here = file.tell()
            if not file.readline():
                return
            yield here


def workload_key(info: RunInfo, traces: Sequence[Trace], profile: Profile) -> str:
    """12 hex digits of everything but machine, software and arms that decides what a figure means."""
    vocabularies = {name: each["sha256"] for name, each in info.vocabularies.items()}
    measured = [(each.suite, each.case_id, each.instance) for each in traces]
    said = [PROTOCOL, vocabularies, measured, profile.rounds, profile.pass_seconds]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:12]
