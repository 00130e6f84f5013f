"""Forks and rounds: starts the arms, lets one of them run at a time, and writes down each answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.measure.protocol import (
    MOST_AGAIN,
    MOST_PASSES,
    SLOW_COMPILE_NS,
    SLOW_PASS_NS,
    VERY_SLOW_COMPILE_NS,
    VERY_SLOW_COMPILES_NS,
    MeasuredArm,
    MeasureProfile,
    is_disturbed,
    order,
)
from harness.measure.record import Measurement, MeasureRecorder, Slot, Trace
from harness.rows.machine import usable_processors
from harness.text import one_line

Say = Callable[[str], None]

SHARE_AGAIN = 0.25
"""The largest share of a fork's rounds that is made again: under a steady load it would not help."""

PATIENCE_SECONDS = 10.0
"""Seconds beyond three times what scouting allowed for a compile or a walk, after which an arm without an
answer is lost."""

MECHANISM_PASSES = 5
BATCH_REPEATS = 9
VARIANT_REPEATS = 3


@dataclass(eq=False)
class MeasuringArm:
    """One arm in one fork."""

    arm: MeasuredArm
    service: Service
    warm: set[str] = field(default_factory=set)
    """The cases that the arm's child has prepared; a lost child loses them."""


@dataclass(eq=False)
class MeasureEngine:
    """Measures one plan; `fork` may be called repeatedly."""

    measurement: Measurement
    profile: MeasureProfile
    memory_bytes: int
    cases: Path
    recorder: MeasureRecorder
    say: Say
    compile_ns: dict[tuple[str, str], int]
    """Compile time by arm and case, from scouting. It decides how often a compile is repeated."""
    passes: dict[tuple[str, str], int] = field(default_factory=dict)
    """The number of warm passes in a round, by backend and case. Arms of one backend make equally many,
    because more passes make the smaller minimum more likely."""
    slow: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of backend and case in which a pass is slow."""
    dead: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of arm and case that were lost while they were measured; they are not measured again."""
    next_fork: int = 0
    is_extra: bool = False
    """Whether the fork is beyond the profile's: it leaves out slow cases, so that nobody waits for them."""
    remade: int = 0
    clocks: dict[str, int] = field(default_factory=dict)

    def fork(self, traces: Sequence[Trace], arms: Sequence[MeasuredArm], *, confirming: bool = False) -> None:
        """Runs all rounds over these cases, in fresh processes for these arms. An arm that was lost in every
        case is not loaded again: one that hangs as it loads would be waited for in each fork."""
        number, self.next_fork = self.next_fork, self.next_fork + 1
        self.is_extra = number >= self.profile.forks and not confirming
        began = time.monotonic()
        asked = [self._start(arm, number) for arm in arms]
        running = [one for one in asked if any(self._owes(one, trace) for trace in traces)]
        try:
            for running_arm in running:
                running_arm.service.start()
            for running_arm in running:
                self._load(running_arm)
            loaded = time.monotonic()
            with elsewhere(self.measurement.cpu):
                self._rounds(number, running, traces)
            measured = time.monotonic()
            took = {"load_s": loaded - began, "measure_s": measured - loaded}
            line = {"fork": number, "confirming": confirming, **took, "clock_ns": self.clocks}
            self.recorder.append("fork", line)
            self.say(
                f"fork {number + 1}: {loaded - began:.0f} s to load, {measured - loaded:.0f} s to measure"
            )
        finally:
            for running_arm in running:
                running_arm.service.close()

    def _rounds(self, number: int, running: Sequence[MeasuringArm], traces: Sequence[Trace]) -> None:
        self._warm_up(running, traces)
        budget = int(SHARE_AGAIN * len(traces) * self.profile.rounds)
        for round_number in range(self.profile.rounds):
            for trace in traces:
                taking_part = [
                    running_arm
                    for running_arm in running
                    if round_number < 2 or not self._is_slow(running_arm, trace)
                ]
                budget -= self._round(number, round_number, trace, taking_part, budget)
        if number == 0:
            self._once(running, traces)

    def _start(self, arm: MeasuredArm, number: int) -> MeasuringArm:
        arguments = {
            "spec": arm.spec,
            "vocabulary": self.measurement.vocabulary,
            "cases": str(self.cases.absolute()),  # a backend may change folder while it loads
            "cpu": self.measurement.cpu,
        }
        service = Service(
            "harness.measure.arm:load_arm",
            arguments,
            self.memory_bytes,
            arm.python,
            {"PYTHONHASHSEED": str(number)},
        )
        return MeasuringArm(arm, service)

    def _load(self, running_arm: MeasuringArm) -> None:
        try:
            running_arm.service.wait()
        except Lost as why:
            for trace in self.measurement.traces:
                if self._owes(running_arm, trace):
                    self._lose(running_arm, trace, why)
            return
        self.clocks[running_arm.arm.name] = running_arm.service.description["clock_ns"]

    def _is_slow(self, running_arm: MeasuringArm, trace: Trace) -> bool:
        return (running_arm.arm.backend, trace.case_id) in self.slow

    @cached_property
    def affordable(self) -> set[str]:
        """Returns the cases whose very slow compiles are made in every fork: as many as VERY_SLOW_COMPILES_NS
        allows, the quickest first. A case has either all its arms in it or none."""
        costs = {
            trace.case_id: sum(
                taken
                for arm in trace.solved_by
                if (taken := self.compile_ns.get((arm, trace.case_id), 0)) >= VERY_SLOW_COMPILE_NS
            )
            for trace in self.measurement.traces
        }
        cases = sorted(costs, key=lambda case: costs[case])
        spent = accumulate(costs[case] for case in cases)
        return {case for case, total in zip(cases, spent, strict=True) if total <= VERY_SLOW_COMPILES_NS}

    def _owes(self, running_arm: MeasuringArm, trace: Trace) -> bool:
        """Returns whether this case is measured on this arm in this fork."""
        if self.is_extra and self._is_slow(running_arm, trace):
            return False
        return (
            running_arm.arm.name in trace.solved_by and (running_arm.arm.name, trace.case_id) not in self.dead
        )

    def _warm_up(self, running: Sequence[MeasuringArm], traces: Sequence[Trace]) -> None:
        """Prepares every case on every arm. The time of a pass decides, once for all forks, how many make a
        round."""
        slowest: dict[tuple[str, str], int] = {}
        for trace in traces:
            for running_arm in running:
                pass_ns = self._prepare(running_arm, trace)
                key = (running_arm.arm.backend, trace.case_id)
                if pass_ns is not None:
                    slowest[key] = max(pass_ns, slowest.get(key, 0))
        for key, pass_ns in slowest.items():
            self.passes.setdefault(
                key, min(MOST_PASSES, max(1, round(self.profile.pass_seconds * 1e9 / pass_ns)))
            )
            if pass_ns > SLOW_PASS_NS:
                self.slow.add(key)

    def _prepare(self, running_arm: MeasuringArm, trace: Trace) -> int | None:
        """Returns the nanoseconds of a warm pass; None if the case is not measured on this arm, or was lost
        just now."""
        if not self._owes(running_arm, trace):
            return None
        try:
            answer, _ = self._ask(
                running_arm, {"op": "warm_up", "offset": trace.offset, "instance": trace.instance}
            )
        except Lost as why:
            self._lose(running_arm, trace, why)
            return None
        running_arm.warm.add(trace.case_id)
        line = {
            "arm": running_arm.arm.name,
            "case_id": trace.case_id,
            "fork": self.next_fork - 1,
            "timed_ns": answer["timed_ns"],
        }
        self.recorder.append("warm_up", line)
        return int(answer["pass_ns"])

    def _ask(self, running_arm: MeasuringArm, message: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        try:
            return running_arm.service.ask(message, seconds=3 * self.profile.timeout_s + PATIENCE_SECONDS)
        except Lost:
            running_arm.warm.clear()
            raise

    def _lose(self, running_arm: MeasuringArm, trace: Trace, why: Lost) -> None:
        self.dead.add((running_arm.arm.name, trace.case_id))
        self.recorder.append(
            "lost",
            {
                "arm": running_arm.arm.name,
                "case_id": trace.case_id,
                "fork": self.next_fork - 1,
                "text": str(why)[:500],
            },
        )
        self.say(f"{running_arm.arm.name} is not measured on {trace.case} any more: {one_line(str(why))}")

    def _round(
        self, fork: int, number: int, trace: Trace, running: Sequence[MeasuringArm], budget: int
    ) -> int:
        """Gives every arm a turn on one case, again if a turn was disturbed and the budget allows it. Returns
        how often the round was made again."""
        turns = order([running_arm for running_arm in running if self._owes(running_arm, trace)], number)
        most = (
            0 if any(self._is_slow(running_arm, trace) for running_arm in turns) else min(MOST_AGAIN, budget)
        )
        for again in range(MOST_AGAIN + 1):
            disturbed = False
            for place, running_arm in enumerate(turns):
                if self._owes(running_arm, trace):
                    disturbed |= self._turn(fork, number, again, place, trace, running_arm)
            if not disturbed or again >= most:
                self.remade += again
                return again
        return MOST_AGAIN

    def _turn(
        self, fork: int, number: int, again: int, place: int, trace: Trace, running_arm: MeasuringArm
    ) -> bool:
        """Measures and records one arm's slot; returns whether it was disturbed."""
        if trace.case_id not in running_arm.warm and self._prepare(running_arm, trace) is None:
            return False
        compile_ns = self.compile_ns.get((running_arm.arm.name, trace.case_id), 0)
        is_quick = compile_ns < SLOW_COMPILE_NS and not self._is_slow(running_arm, trace)
        in_every_fork = compile_ns < VERY_SLOW_COMPILE_NS or trace.case_id in self.affordable
        fresh = is_quick or (number == 0 and (fork == 0 or in_every_fork))
        repeats = self.passes[running_arm.arm.backend, trace.case_id]
        stolen = stolen_seconds(self.measurement.cpu)
        try:
            answer, figures = self._ask(
                running_arm, {"op": "round", "offset": trace.offset, "repeats": repeats, "fresh": fresh}
            )
        except Lost as why:
            self._lose(running_arm, trace, why)
            return False
        stolen = stolen_seconds(self.measurement.cpu) - stolen
        slot = Slot(
            fork=fork,
            round=number,
            again=again,
            place=place,
            arm=running_arm.arm.name,
            case_id=trace.case_id,
            fresh=fresh,
            passes=repeats,
            tokens=int(answer["tokens"]),
            wall_ns=answer["wall_ns"],
            cpu_ns=answer["cpu_ns"],
            switches=answer["switches"],
            stolen_s=stolen,
            load=os.getloadavg()[0],
            figures=(0, 0),
        )
        line = asdict(slot)
        del line["figures"]
        self.recorder.append("slot", line, figures)
        return is_disturbed(slot.wall_ns, slot.switches, stolen)

    # ---------------------------------------------------------------- what is measured in the first fork only

    def _once(self, running: Sequence[MeasuringArm], traces: Sequence[Trace]) -> None:
        """Measures counts and mechanisms of every case, and batches, a cache and threads on some of each
        family."""
        arms = [running_arm for running_arm in running if running_arm.arm.role != "a/a"]
        for trace in traces:
            for running_arm in arms:
                self._record(running_arm, trace, "counts", {})
                if not self._is_slow(running_arm, trace):
                    self._record(
                        running_arm,
                        trace,
                        "mechanisms",
                        {"repeats": self._repeats(running_arm, trace, MECHANISM_PASSES)},
                    )
        threads = max(2, usable_processors())
        for trace in self._some_of_each_family(traces):
            for size in self.profile.batch_sizes:
                for count in (1, threads):
                    for running_arm in arms:
                        self._record(
                            running_arm,
                            trace,
                            "batch",
                            {
                                "size": size,
                                "threads": count,
                                "repeats": self._repeats(running_arm, trace, BATCH_REPEATS),
                            },
                        )
            for option, value in (("cache", "true"), ("threads", str(threads))):
                for running_arm in arms:
                    if self.compile_ns.get((running_arm.arm.name, trace.case_id), 0) < VERY_SLOW_COMPILE_NS:
                        self._record(
                            running_arm,
                            trace,
                            "variant",
                            {"option": option, "value": value, "repeats": VARIANT_REPEATS},
                        )

    def _repeats(self, running_arm: MeasuringArm, trace: Trace, usual: int) -> int:
        """Returns the number of repetitions: `usual`, or fewer if a pass takes long."""
        return min(usual, self.passes.get((running_arm.arm.backend, trace.case_id), usual))

    def _some_of_each_family(self, traces: Sequence[Trace]) -> Iterable[Trace]:
        """Returns the cases that most arms solve, as many of each family as the profile says."""
        taken: dict[str, int] = {}
        for trace in sorted(traces, key=lambda trace: -len(trace.solved_by)):
            taken[trace.family] = taken.get(trace.family, 0) + 1
            if taken[trace.family] <= self.profile.batch_cases:
                yield trace

    def _record(self, running_arm: MeasuringArm, trace: Trace, kind: str, arguments: dict[str, Any]) -> None:
        """Measures one thing and writes it down. What raises here becomes a line too, and costs nothing
        else."""
        if not self._owes(running_arm, trace) or (
            trace.case_id not in running_arm.warm and self._prepare(running_arm, trace) is None
        ):
            return
        line: dict[str, Any] = {"arm": running_arm.arm.name, "case_id": trace.case_id, **arguments}
        try:
            answer, figures = self._ask(running_arm, {"op": kind, "offset": trace.offset, **arguments})
        except Lost as why:
            self.recorder.append(kind, {**line, "error": str(why)[:500], "cause": why.cause})
            return
        self.recorder.append(
            kind, {**line, **{name: value for name, value in answer.items() if name != "number"}}, figures
        )


@contextmanager
def elsewhere(cpu: int | None) -> Iterator[None]:
    """Returns a context in which our own process leaves this processor to the arms, if there is another
    one."""
    if cpu is None:
        yield
        return
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine - {cpu} or mine)
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def stolen_seconds(cpu: int | None, stat: Path = Path("/proc/stat")) -> float:
    """Returns the seconds that the hypervisor has taken from this processor since the start (None: from all
    of them); 0 if the system does not report it.

    Of a machine of 64 processors, of which each loses half a percent, all together lose a third of the time
    of one: what the others lost says nothing of the one on which an arm ran.
    """
    wanted = b"cpu" if cpu is None else b"cpu%d" % cpu
    try:
        with open(stat, "rb") as file:
            for line in file:
                name, *ticks = line.split()
                if name == wanted:
                    return int(ticks[7]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        pass
    return 0.0
