"""A measurement from what the user asked for to its last line: cases are scouted by a run, planned, measured
in forks, and changes confirmed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.backend.arm import Arm, arm, arm_names, version_key
from harness.backend.describe import Description
from harness.backend.registry import parse_specs
from harness.backend.vocabulary import prepare_vocabulary
from harness.backend.vocabulary.fetched import with_all
from harness.cases.case_line import CASES_FILE
from harness.cases.plan import check_named
from harness.cases.suite import MEASURED, find_suite, refuse_unreadable, walked_by_default
from harness.errors import BadInput
from harness.measure.engine import MeasureEngine
from harness.measure.estimate import Comparison, compare, conclude, confirmation, flagged, undecided
from harness.measure.figures import ALL, Figures
from harness.measure.protocol import PROFILES, PROTOCOL, MeasuredArm, MeasureProfile, with_again
from harness.measure.record import (
    FIGURES,
    Measurement,
    MeasureRecorder,
    Trace,
    digest_of,
    has_measurement,
    read_measurement,
)
from harness.rows.folder import locked, named_by_errors, now
from harness.rows.machine import hardware, hardware_key, usable_processors
from harness.rows.row import Row, RunInfo, verdict
from harness.rows.store import has_begun, read_cases, read_cases_at, read_info, read_rows
from harness.running.leftovers import refuse_strangers
from harness.running.looking import look_at
from harness.running.session import Request as RunRequest
from harness.running.session import run
from harness.text import counted, our_command

SUITES = {
    "quick": (MEASURED,),
    "default": (MEASURED, "json_schema", "regex", "ebnf"),
    "full": (MEASURED, *walked_by_default()),
}
"""The suites that each profile measures if none is named."""


@dataclass(frozen=True)
class MeasureRequest:
    """The arguments of `grammarbench measure`; None stands for the profile's own."""

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
    """The name or id of the only case to measure."""


def measure(request: MeasureRequest, say: Callable[[str], None]) -> tuple[Path, list[Comparison]]:
    """Runs the measurement, and returns the run's folder and the comparisons. Raises BadInput."""
    profile = PROFILES[request.profile]
    if request.forks is not None:
        profile = replace(profile, forks=request.forks, most_forks=request.forks)
    if request.timeout_s is not None:
        profile = replace(profile, timeout_s=request.timeout_s)
    if request.out is not None and has_measurement(request.out):
        raise BadInput(f"{request.out} holds a measurement already; give another --out")
    if request.out is not None and has_begun(request.out):
        raise BadInput(f"{request.out} holds a run already; give another --out")
    if request.out is not None:
        refuse_strangers(request.out, (FIGURES,))
    scouting = _scouting(request, profile)
    described = None if request.reference is None else _with_reference(scouting, request.reference, say)
    folder = run(scouting, say, lambda _: None, described).folder
    with locked(folder), named_by_errors(folder, request.out is None):
        return folder, _measure_in(folder, request, profile, say)


def _with_reference(scouting: RunRequest, reference: str, say: Callable[[str], None]) -> Description:
    """Returns what the run's arms are, one of which is the reference. Raises BadInput if none is, before
    minutes were spent on scouting: which arms a text means is known once their versions are."""
    suites = [find_suite(name) for name in scouting.suites]
    check_named(suites, scouting.only)
    refuse_unreadable(suites)
    vocabularies = tuple(map(prepare_vocabulary, with_all(scouting.vocabularies or ())))
    described = look_at(parse_specs(scouting.backends), vocabularies, say)
    measured_arms(described.arms, reference)
    return described


def _scouting(request: MeasureRequest, profile: MeasureProfile) -> RunRequest:
    """Returns the run that walks every case once with every arm: an arm is measured on the cases that it
    solves."""
    return RunRequest(
        suites=request.suites or SUITES[request.profile],
        backends=request.backends,
        vocabularies=(request.vocabulary,),
        out=request.out,
        jobs=2 if usable_processors() > 1 else 1,
        timeout_s=profile.timeout_s,
        memory_gb=request.memory_gb,
        effort=0,
        argv=request.argv,
        cases_of_ours=None if request.case else profile.cases_of_ours,
        only=(request.case,) if request.case else (),
    )


def _measure_in(
    folder: Path, request: MeasureRequest, profile: MeasureProfile, say: Callable[[str], None]
) -> list[Comparison]:
    info, rows = read_info(folder), list(read_rows(folder))
    arms = measured_arms(info.arms, request.reference)
    traces, unsolved = plan_traces(folder, rows, arms)
    if not any(trace.solved_by for trace in traces):
        raise BadInput(
            "no backend solves any of these cases with a valid instance; see "
            f"{our_command('table', str(folder))}"
        )
    if repeated := _in_a_further_suite(folder, traces):
        stand = "stands in two suites, and is" if repeated == 1 else "stand in two suites, and are"
        say(f"{counted(repeated, 'case')} {stand} measured in the first of them only")
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
        forks=profile.forks,
    )
    names: dict[tuple[str, str, str], list[str]] = {}
    for one in arms:  # the A/A arm has the compiles of the reference
        names.setdefault(version_key(one), []).append(one.name)
    compile_ns = {
        (name, row.case_id): row.compile_ns
        for row in rows
        if row.compile_ns is not None
        for name in names[row.version_key]
    }
    with MeasureRecorder(folder, measurement) as recorder:
        engine = MeasureEngine(
            measurement, profile, info.memory_bytes, folder / CASES_FILE, recorder, say, compile_ns
        )
        say(
            f"{counted(len(traces), 'case')} x {counted(len(arms), 'arm')}, at least "
            f"{counted(profile.forks, 'fork')} of {counted(profile.rounds, 'round')}"
        )
        for _ in range(profile.forks):
            engine.fork(traces, arms)
        while engine.next_fork < profile.most_forks and (open_arms := _undecided(folder)):
            say(f"not decided yet: one fork more of {', '.join(sorted(open_arms))}")
            engine.fork(traces, [arm for arm in arms if arm.name in open_arms])
        comparisons = _confirm(engine, folder, arms, profile, say)
        recorder.finish(now(), remade=engine.remade)
    return comparisons


def _confirm(
    engine: MeasureEngine,
    folder: Path,
    arms: Sequence[MeasuredArm],
    profile: MeasureProfile,
    say: Callable[[str], None],
) -> list[Comparison]:
    """Measures once more what changed between arms of one backend, in fresh forks and with those families and
    arms alone."""
    figures = Figures(read_measurement(folder))
    comparisons = compare(figures)
    doubtful = flagged(comparisons, figures)
    if not doubtful:
        return comparisons
    families, names = (
        {comparison.family for comparison in doubtful},
        {name for comparison in doubtful for name in (comparison.base, comparison.head)},
    )
    say(
        f"to be confirmed in fresh forks: {counted(len(doubtful), 'change')} in {', '.join(sorted(families))}"
    )
    traces = [trace for trace in engine.measurement.traces if ALL in families or trace.family in families]
    for made in range(1, profile.most_forks + 1):
        engine.fork(traces, [arm for arm in arms if arm.name in names], confirming=True)
        confirming = Figures(read_measurement(folder), confirming=True)
        seconds = [confirmation(comparison, confirming) for comparison in doubtful]
        # What these forks have no figure of, because an arm was lost, further ones would have none of either.
        if made >= profile.forks and all(
            found is None or judgement != "inconclusive" for found, judgement in seconds
        ):
            break
    return conclude(Figures(read_measurement(folder)))


def _undecided(folder: Path) -> set[str]:
    figures = Figures(read_measurement(folder))
    return undecided(compare(figures), figures)


def measured_arms(arms: Iterable[Arm], reference: str | None) -> list[MeasuredArm]:
    """Returns the run's arms, and the reference (the first unless named) once more as A/A arm. Raises
    BadInput."""
    arms = list(arms)
    names = arm_names(arms)
    measured = []
    for walked in arms:
        name = names[version_key(walked)]
        measured.append(
            MeasuredArm(
                name,
                arm(walked),
                walked.backend,
                walked.version,
                walked.options,
                "arm",
                walked.python or sys.executable,
            )
        )
    chosen = measured[0]
    if reference is not None:
        chosen = _named(measured, reference)
    return with_again(measured, chosen)


def _named(arms: Sequence[MeasuredArm], text: str) -> MeasuredArm:
    """Returns the arm that the text means: the one of this name, else the only one of this backend and
    version, or of this backend. Raises BadInput if there is none, or if there are several."""
    for names in (
        [one.name for one in arms],
        [f"{one.backend}=={one.version}" for one in arms],
        [one.backend for one in arms],
    ):
        meant = [one for one, name in zip(arms, names, strict=True) if name == text]
        if len(meant) == 1:
            return meant[0]
        if meant:
            fits = ", ".join(one.name for one in meant)
            raise BadInput(f'--base "{text}" fits several arms ({fits}); name one of them')
    raise BadInput(f'--base "{text}" is none of the arms ({", ".join(one.name for one in arms)})')


def plan_traces(
    folder: Path, rows: Sequence[Row], arms: Sequence[MeasuredArm]
) -> tuple[list[Trace], dict[str, dict[str, str]]]:
    """Returns the longest instance of every case with a valid one, with the arms that solved the case; and
    why the others did not, by arm and case.

    An arm solves a case if it compiles it and judges every judged instance rightly: one of which nobody knows
    whether it is valid, because it is contested or nothing is said of it, is held against no arm.
    """
    names = {version_key(arm): arm.name for arm in arms if arm.role != "a/a"}
    again = [arm.name for arm in arms if arm.role == "a/a"]
    copies = {arm.name: name for arm in arms if arm.role == "reference" for name in again}
    problems: dict[tuple[str, str], dict[str, str]] = {}
    tokens: dict[tuple[str, str, int], int] = {}
    dialects: dict[str, set[str]] = {}
    for row in rows:
        dialects.setdefault(row.suite, set()).add(row.dialect)
        arm = names[row.version_key]
        if row.instance is not None and row.valid and row.tokens:
            tokens[row.suite, row.case_id, row.instance] = row.tokens
        judged = verdict(row.status, row.valid, row.accepted)
        is_walked_unjudged = row.status == "ok" and row.valid is None
        if judged != "pass" and not is_walked_unjudged:
            why: str = row.status if row.status != "ok" else judged
            problems.setdefault((row.suite, row.case_id), {}).setdefault(arm, why)
    traces: dict[str, Trace] = {}
    unsolved: dict[str, dict[str, str]] = {}
    for offset, suite, _, case in read_cases_at(folder):
        lengths = {number: tokens.get((suite, case.id, number), 0) for number in range(len(case.instances))}
        longest = max(lengths, key=lambda number: lengths[number], default=None)
        failed = problems.get((suite, case.id), {})
        if longest is None or not lengths[longest] or case.id in traces:
            # Where an instance is valid, there is something to measure, but nobody walked it.
            if any(instance.valid for instance in case.instances):
                for name, why in failed.items():
                    unsolved.setdefault(name, {}).setdefault(case.id, why)
            continue
        solved = [name for name in names.values() if name not in failed]
        solved += [copies[name] for name in solved if name in copies]
        family = suite if len(dialects[suite]) == 1 else f"{suite} {case.grammar.dialect}"
        digest = digest_of(case, longest)
        traces[case.id] = Trace(offset, suite, family, case.id, case.name, longest, tuple(solved), digest)
        for name, why in failed.items():
            unsolved.setdefault(name, {})[case.id] = why
    return list(traces.values()), unsolved


def _in_a_further_suite(folder: Path, traces: Sequence[Trace]) -> int:
    """Returns how many of the cases that are measured stand in a further suite, to whose family they then do
    not count."""
    suites = {trace.case_id: trace.suite for trace in traces}
    return len({case.id for suite, _, case in read_cases(folder) if suites.get(case.id, suite) != suite})


def workload_key(info: RunInfo, traces: Sequence[Trace], profile: MeasureProfile) -> str:
    """Returns a hash, in 12 hex digits, of everything but machine, software and arms that decides what a
    figure means: the vocabulary, the grammars, the texts that are measured, and how often they are."""
    vocabularies = {name: vocabulary["sha256"] for name, vocabulary in info.vocabularies.items()}
    measured = [(trace.suite, trace.case_id, trace.sha256) for trace in traces]
    parts = [PROTOCOL, vocabularies, measured, profile.rounds, profile.pass_seconds]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
