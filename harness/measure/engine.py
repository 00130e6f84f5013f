"""Forks and rounds: starts the arms, lets one of them run at a time, and writes down what each answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import one_line
from harness.machine import usable_processors
from harness.measure.protocol import (
    MOST_AGAIN,
    MOST_PASSES,
    SLOW_COMPILE_NS,
    SLOW_PASS_NS,
    VERY_SLOW_COMPILE_NS,
    MeasuredArm,
    Profile,
    is_disturbed,
    order,
)
from harness.measure.record import Measurement, Recorder, Slot, Trace
from harness.service.client import Lost, Service

Say = Callable[[str], None]

SHARE_AGAIN = 0.25
"""Of the rounds of a fork, at most so many are made again: under a steady load it would not help."""

PATIENCE_SECONDS = 10.0
"""Beyond three times what the scout allowed for a compile or a walk; an arm that then still has no answer is lost."""

MECHANISM_PASSES = 5
BATCH_REPEATS = 9
VARIANT_REPEATS = 3


@dataclass(eq=False)
class Running:
    """One arm in one fork."""

    arm: MeasuredArm
    service: Service
    warm: set[str] = field(default_factory=set)
    """The cases that its child has prepared; a lost child takes them with it."""


@dataclass(eq=False)
class Engine:
    """Measures one plan; `fork` may be called again and again."""

    measurement: Measurement
    profile: Profile
    memory_bytes: int
    cases: Path
    recorder: Recorder
    say: Say
    compile_ns: dict[tuple[str, str], int]
    """By arm and case, as scouted: how often a compile is repeated depends on it."""
    passes: dict[tuple[str, str], int] = field(default_factory=dict)
    """By backend and case: how many warm passes make a round. Arms of one backend pass alike, or the smaller minimum would be luck."""
    slow: set[tuple[str, str]] = field(default_factory=set)
    """Backend and case, where a pass is slow."""
    dead: set[tuple[str, str]] = field(default_factory=set)
    """Arm and case that were lost while they were measured; nothing more is asked of them."""
    next_fork: int = 0
    is_extra: bool = False
    """The fork is one more than the profile's: slow cases are left out, on which nobody should wait."""
    remade: int = 0
    clocks: dict[str, int] = field(default_factory=dict)

    def fork(self, traces: Sequence[Trace], arms: Sequence[MeasuredArm], *, confirming: bool = False) -> None:
        """Fresh processes for these arms, and all rounds over these cases."""
        number, self.next_fork = self.next_fork, self.next_fork + 1
        self.is_extra = number >= self.profile.forks and not confirming
        began = time.monotonic()
        running = [self._start(arm, number) for arm in arms]
        try:
            for each in running:
                each.service.start()
            for each in running:
                self._load(each)
            loaded = time.monotonic()
            with elsewhere(self.measurement.cpu):
                self._rounds(number, running, traces)
            measured = time.monotonic()
            line = {"fork": number, "confirming": confirming, "load_s": loaded - began, "measure_s": measured - loaded}
            self.recorder.append("fork", {**line, "clock_ns": self.clocks})
            self.say(f"fork {number + 1}: {loaded - began:.0f} s to load, {measured - loaded:.0f} s to measure")
        finally:
            for each in running:
                each.service.close()

    def _rounds(self, number: int, running: Sequence[Running], traces: Sequence[Trace]) -> None:
        self._warm_up(running, traces)
        budget = int(SHARE_AGAIN * len(traces) * self.profile.rounds)
        for round_number in range(self.profile.rounds):
            for trace in traces:
                taking_part = [each for each in running if round_number < 2 or not self._is_slow(each, trace)]
                budget -= self._round(number, round_number, trace, taking_part, budget)
        if number == 0:
            self._once(running, traces)

    def _start(self, arm: MeasuredArm, number: int) -> Running:
        arguments = {
            "spec": arm.spec,
            "vocabulary": self.measurement.vocabulary,
            "cases": str(self.cases),
            "cpu": self.measurement.cpu,
        }
        service = Service("harness.measure.arm:load_arm", arguments, self.memory_bytes, arm.python, {"PYTHONHASHSEED": str(number)})
        return Running(arm, service)

    def _load(self, each: Running) -> None:
        try:
            each.service.wait()
        except Lost as why:
            for trace in self.measurement.traces:
                if self._owes(each, trace):
                    self._lose(each, trace, why)
            return
        self.clocks[each.arm.name] = each.service.said["clock_ns"]

    def _is_slow(self, each: Running, trace: Trace) -> bool:
        return (each.arm.backend, trace.case_id) in self.slow

    def _owes(self, each: Running, trace: Trace) -> bool:
        """Is this case measured on this arm, in this fork?"""
        if self.is_extra and self._is_slow(each, trace):
            return False
        return each.arm.name in trace.solved_by and (each.arm.name, trace.case_id) not in self.dead

    def _warm_up(self, running: Sequence[Running], traces: Sequence[Trace]) -> None:
        """Every case on every arm; what a pass takes decides how many make a round, once for all forks."""
        slowest: dict[tuple[str, str], int] = {}
        for trace in traces:
            for each in running:
                pass_ns = self._prepare(each, trace)
                key = (each.arm.backend, trace.case_id)
                if pass_ns is not None:
                    slowest[key] = max(pass_ns, slowest.get(key, 0))
        for key, pass_ns in slowest.items():
            self.passes.setdefault(key, min(MOST_PASSES, max(1, round(self.profile.pass_seconds * 1e9 / pass_ns))))
            if pass_ns > SLOW_PASS_NS:
                self.slow.add(key)

    def _prepare(self, each: Running, trace: Trace) -> int | None:
        """Nanoseconds of a warm pass; None if the case is not measured on this arm, or was lost just now."""
        if not self._owes(each, trace):
            return None
        try:
            answer, _ = self._ask(each, {"op": "warm_up", "offset": trace.offset, "instance": trace.instance})
        except Lost as why:
            self._lose(each, trace, why)
            return None
        each.warm.add(trace.case_id)
        line = {"arm": each.arm.name, "case_id": trace.case_id, "fork": self.next_fork - 1, "timed_ns": answer["timed_ns"]}
        self.recorder.append("warm_up", line)
        return int(answer["pass_ns"])

    def _ask(self, each: Running, message: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        try:
            return each.service.ask(message, seconds=3 * self.profile.timeout_s + PATIENCE_SECONDS)
        except Lost:
            each.warm.clear()
            raise

    def _lose(self, each: Running, trace: Trace, why: Lost) -> None:
        self.dead.add((each.arm.name, trace.case_id))
        self.recorder.append("lost", {"arm": each.arm.name, "case_id": trace.case_id, "fork": self.next_fork - 1, "text": str(why)[:500]})
        self.say(f"{each.arm.name} is not measured on {trace.case} any more: {one_line(str(why))}")

    def _round(self, fork: int, number: int, trace: Trace, running: Sequence[Running], budget: int) -> int:
        """One turn of every arm on one case; made again if a turn was disturbed and the budget allows it. How often it was made again."""
        turns = order([each for each in running if self._owes(each, trace)], number)
        most = 0 if any(self._is_slow(each, trace) for each in turns) else min(MOST_AGAIN, budget)
        for again in range(MOST_AGAIN + 1):
            disturbed = False
            for place, each in enumerate(turns):
                if self._owes(each, trace):
                    disturbed |= self._turn(fork, number, again, place, trace, each)
            if not disturbed or again >= most:
                self.remade += again
                return again
        return MOST_AGAIN

    def _turn(self, fork: int, number: int, again: int, place: int, trace: Trace, each: Running) -> bool:
        """One arm's slot, recorded; was it disturbed?"""
        if trace.case_id not in each.warm and self._prepare(each, trace) is None:
            return False
        compile_ns = self.compile_ns.get((each.arm.name, trace.case_id), 0)
        is_quick = compile_ns < SLOW_COMPILE_NS and not self._is_slow(each, trace)
        fresh = is_quick or (number == 0 and (fork == 0 or compile_ns < VERY_SLOW_COMPILE_NS))
        repeats = self.passes[each.arm.backend, trace.case_id]
        stolen = stolen_seconds()
        try:
            answer, figures = self._ask(each, {"op": "round", "offset": trace.offset, "repeats": repeats, "fresh": fresh})
        except Lost as why:
            self._lose(each, trace, why)
            return False
        stolen = stolen_seconds() - stolen
        slot = Slot(
            fork=fork,
            round=number,
            again=again,
            place=place,
            arm=each.arm.name,
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

    # ------------------------------------------------------------------------------------ what is measured in the first fork only

    def _once(self, running: Sequence[Running], traces: Sequence[Trace]) -> None:
        """Counts and mechanisms of every case; batches, a cache and threads on some of each family."""
        arms = [each for each in running if each.arm.role != "a/a"]
        for trace in traces:
            for each in arms:
                self._record(each, trace, "counts", {})
                if not self._is_slow(each, trace):
                    self._record(each, trace, "mechanisms", {"repeats": self._repeats(each, trace, MECHANISM_PASSES)})
        threads = max(2, usable_processors())
        for trace in self._some_of_each_family(traces):
            for size in self.profile.batch_sizes:
                for count in (1, threads):
                    for each in arms:
                        self._record(
                            each, trace, "batch", {"size": size, "threads": count, "repeats": self._repeats(each, trace, BATCH_REPEATS)}
                        )
            for option, value in (("cache", "true"), ("threads", str(threads))):
                for each in arms:
                    if self.compile_ns.get((each.arm.name, trace.case_id), 0) < VERY_SLOW_COMPILE_NS:
                        self._record(each, trace, "variant", {"option": option, "value": value, "repeats": VARIANT_REPEATS})

    def _repeats(self, each: Running, trace: Trace, usual: int) -> int:
        """Fewer where a pass takes long."""
        return min(usual, self.passes.get((each.arm.backend, trace.case_id), usual))

    def _some_of_each_family(self, traces: Sequence[Trace]) -> Iterable[Trace]:
        """Those that most arms solve, as many of each family as the profile says."""
        taken: dict[str, int] = {}
        for trace in sorted(traces, key=lambda each: -len(each.solved_by)):
            taken[trace.family] = taken.get(trace.family, 0) + 1
            if taken[trace.family] <= self.profile.batch_cases:
                yield trace

    def _record(self, each: Running, trace: Trace, kind: str, arguments: dict[str, Any]) -> None:
        """Ask and write down; what raises here is a line too, and costs nothing else."""
        if not self._owes(each, trace) or (trace.case_id not in each.warm and self._prepare(each, trace) is None):
            return
        line: dict[str, Any] = {"arm": each.arm.name, "case_id": trace.case_id, **arguments}
        try:
            answer, figures = self._ask(each, {"op": kind, "offset": trace.offset, **arguments})
        except Lost as why:
            self.recorder.append(kind, {**line, "error": str(why)[:500]})
            return
        self.recorder.append(kind, {**line, **{name: value for name, value in answer.items() if name != "number"}}, figures)


@contextmanager
def elsewhere(cpu: int | None) -> Iterator[None]:
    """Meanwhile we leave this processor to the arms, if there is another one."""
    if cpu is None:
        yield
        return
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine - {cpu} or mine)
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def stolen_seconds() -> float:
    """What the hypervisor has taken from all processors since the start, in seconds; 0 where the system does not tell."""
    try:
        with open("/proc/stat", "rb") as file:
            return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0
