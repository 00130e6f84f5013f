"""What the harness costs: its wall time, its recorded fill times, and its recovery after a kill, beside a
plain loop in the same run.

    python benchmarks/overhead.py [FOLDER [BACKEND ...]]

FOLDER holds MaskBench files (default: ../shared/corpora/maskbench). For each backend (default: all that
are installed) it prints two things, each against what we promise, and at last a third:

  1. the wall time of a run (one worker, without start-up and end) over that of a plain loop with the same
     backend calls in one process: of each case the fastest of the rounds, then the sum over cases;
  2. the median of the recorded fills over that of the plain loop: each fill's minimum over the rounds, then
     the median over fills;
  3. the time from a child's kill to the moment when the next case is sent.

The plain loop makes the same library calls as the adapters, in their barest form; it tokenizes too, because
any loop must. The two take turns case by case and are pinned to the same processor: on a shared machine one
core is at times half as fast as the other, and as itself a second later. Only one of them computes at a time.
xgrammar, llguidance and outlines-core take about five minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script
from plain_loops import PLAIN, POINTERS, installed

from harness.backend.describe import describe
from harness.backend.process.system import ENVIRONMENT
from harness.cases.plan import Plan, Profile, write_plan
from harness.cases.suite import find_suite
from harness.errors import OK, BadInput
from harness.rows.row import Row, RunInfo
from harness.rows.store import read_rows, read_samples
from harness.rows.writer import Writer
from harness.running import worker_process as process
from harness.running.coordinator import run_all
from harness.running.limits import Limits
from harness.running.work import Assignment, Work

Fills = dict[str, NDArray[np.int64]]
"""Nanoseconds of every fill, by case, in the order of the walks."""


Walls = dict[int, float]
"""Seconds of every case, by its place in the file of cases."""


@dataclass(frozen=True)
class Round:
    """The times of both, from one run in which they took turns."""

    harness_s: Walls
    plain_s: Walls
    harness: Fills
    plain: Fills


FOLDER = Path(__file__).parents[2] / "shared" / "corpora" / "maskbench"
VOCABULARY = "tekken"
ROUNDS = 5
CASES = 100
"""The number of cases of the folder in the sample."""
SLOW_CASES = 40
LIMITS = Limits(5.0, 8_000_000_000)
FASTEST = 12
SLOW_LIMITS = Limits(1.5, 8_000_000_000)
SLOW_BACKENDS = ("xgrammar", "outlines-core", "lm-format-enforcer", "llama-cpp")
"""These take a second and more for a compile or a walk: of a sample of `SLOW_CASES` they get the `FASTEST` to
compile. A slower compile would only hide what the harness takes."""


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    known = installed()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, metavar="FOLDER")
    parser.add_argument("backends", nargs="*", default=known, metavar="BACKEND")
    options = parser.parse_args(arguments)
    folder, backends = options.folder, options.backends
    if not any(folder.glob("*.json")):
        raise BadInput(f"{folder} holds no MaskBench files; name a folder that does")
    if unknown := set(backends) - set(known):
        raise BadInput(f"no plain loop of {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        for loop_name in PLAIN:
            backend = loop_name.removesuffix(POINTERS)
            if backend not in backends:
                continue
            corpus = base / f"{backend}-quick"
            if not corpus.exists():
                quick_cases(corpus, folder, backend)
            rounds = [
                paired_run(base / f"{loop_name}{number}", corpus, backend, loop_name)
                for number in range(ROUNDS)
            ]
            print(f"{loop_name}:\n  {compared_walls(rounds)}\n  {compared_fills(rounds)}", flush=True)
        gaps = recovery(base / "recovery", folder)
        print(
            f"from a kill to the next case (xgrammar with {VOCABULARY}), {len(gaps)} kills (promised: "
            "within 0.1 s):"
        )
        print(f"  median {statistics.median(gaps) * 1e3:.0f} ms, slowest {max(gaps) * 1e3:.0f} ms")
    return OK


def quick_cases(folder: Path, corpus: Path, backend: str) -> None:
    """Fills a folder with those cases of a sample that the backend compiles well before the deadline.

    After a kill the next fills are slower, in a child whose memory is not warm: that is the price of the
    kill, not of the harness.
    """
    scout = folder.with_suffix(".scout")
    is_slow = backend in SLOW_BACKENDS
    limits = SLOW_LIMITS if is_slow else LIMITS
    info, plan = planned(scout, corpus, backend, SLOW_CASES if is_slow else CASES)
    with Writer(scout, info) as writer:
        run_plan(info, plan, writer, scout, limits)
        writer.finish("")
    folder.mkdir()
    rows = list(read_rows(scout))
    broken = {row.case for row in rows if row.status != "ok"}
    compile_ns = {
        row.case: row.compile_ns
        for row in rows
        if row.compile_ns is not None and row.compile_ns < 0.7e9 * limits.timeout_s and row.case not in broken
    }
    for case in sorted(compile_ns, key=lambda name: compile_ns[name])[: FASTEST if is_slow else CASES]:
        shutil.copy(corpus / f"{case}.json", folder)


def compared_walls(rounds: list[Round]) -> str:
    """Returns a line about the wall times: of each case the fastest round, summed over cases."""

    def fastest(walls: list[Walls]) -> float:
        return sum(min(wall[case] for wall in walls) for case in walls[0])

    ours, theirs = fastest([one.harness_s for one in rounds]), fastest([one.plain_s for one in rounds])
    cases, tokens = len(rounds[0].plain_s), sum(map(len, rounds[0].harness.values()))
    return (
        f"wall time: harness {ours:.3f} s, plain loop {theirs:.3f} s, ratio {ours / theirs:.2f} (promised "
        f"for llguidance: at most 1.20); {(ours - theirs) / cases * 1e3:+.2f} ms a case ({cases} cases, "
        f"{tokens} tokens, {len(rounds)} rounds)"
    )


def compared_fills(rounds: list[Round]) -> str:
    """Returns a line about the cases that every round walked alike: the medians of fills, and the median
    ratio of the same fill in both, over all fills and over each tenth of them.

    Where fills are of two kinds, short and long, a median lies in the gap between them and moves with a few
    of either kind; the ratio of the same fill does not. The tenths go from the shortest fills to the longest.
    """
    every = [fills for one in rounds for fills in (one.harness, one.plain)]
    alike = [case for case in every[0] if len({len(fills.get(case, ())) for fills in every}) == 1]

    def fastest(fills: list[Fills]) -> NDArray[np.int64]:
        least: NDArray[np.int64] = np.min(
            [np.concatenate([fill[case] for case in alike]) for fill in fills], axis=0
        )
        return least

    ours, theirs = fastest([one.harness for one in rounds]), fastest([one.plain for one in rounds])
    harness, plain, apart = float(np.median(ours)), float(np.median(theirs)), float(np.median(ours - theirs))
    ratios = (ours / theirs)[np.argsort(theirs)]
    tenths = [float(np.median(part)) for part in np.array_split(ratios, 10)]
    return (
        f"fill (promised: within 5 %): harness {harness:.0f} ns, plain loop {plain:.0f} ns, ratio "
        f"{harness / plain:.3f}; the same fill: {apart:+.0f} ns, ratio {np.median(ratios):.3f}, in the "
        f"tenths {min(tenths):.3f} to {max(tenths):.3f} ({len(alike)} cases, {len(ours)} fills)"
    )


described = cache(describe)


def planned(folder: Path, corpus: Path, backend: str, cases: int | None) -> tuple[RunInfo, Plan]:
    folder.mkdir()
    # Bare: how many documents are made for a schema depends on how busy the machine is, and every round is
    # to walk the same.
    suites, profile = [find_suite(str(corpus))], Profile(cases, LIMITS.timeout_s, (VOCABULARY,))
    plan = write_plan(suites, profile, 0, folder / "cases.jsonl", bare=True)
    about = described((backend,), (VOCABULARY,))
    return RunInfo(
        "overhead",
        "",
        "",
        (),
        0,
        "",
        LIMITS.timeout_s,
        LIMITS.memory_bytes,
        1,
        about.arms,
        about.vocabularies,
        plan.suites,
        {},
    ), plan


def run_plan(info: RunInfo, plan: Plan, writer: Writer, folder: Path, limits: Limits = LIMITS) -> None:
    works = [Work(info.arms[0], VOCABULARY, deque(range(len(plan.offsets))))]
    run_all(Assignment(plan, folder / "cases.jsonl", works, limits, writer, lambda _: None), 1)


class Clocked(Writer):
    """A run's file, which notes when each case was written."""

    written = 0.0

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        super().append(walks)
        self.written = time.perf_counter()


def paired_run(folder: Path, corpus: Path, backend: str, loop_name: str) -> Round:
    """One run of the real coordinator and worker; before each case is sent, the plain loop walks it in a
    process of its own.

    The harness's time of a case runs from the end of the plain loop's turn to the begin of its next one, and
    so counts all that the coordinator does between two cases; that of the last case runs until its rows are
    written.
    """
    info, plan = planned(folder, corpus, backend, None)
    turns: list[tuple[int, float, float]] = []
    with PlainLoop(folder, loop_name) as loop, Clocked(folder, info) as writer:

        def after_a_turn(send_case: Any) -> Any:
            def send(worker: process.Worker, offset: int) -> None:
                start = time.perf_counter()
                loop.walk(offset)
                turns.append((offset, start, time.perf_counter()))
                send_case(worker, offset)

            return send

        def pinned(start_worker: Any) -> Any:
            def start(*arguments: Any, **options: Any) -> process.Worker:
                worker: process.Worker = start_worker(*arguments, **options)
                pin(worker.process.popen.pid)  # it is still loading: its children will be born there
                return worker

            return start

        with replaced("send_case", after_a_turn), replaced("start_worker", pinned):
            run_plan(info, plan, writer, folder)
        writer.finish("")
    ends = [start for _, start, _ in turns[1:]] + [writer.written]
    walls = {offset: end - start for (offset, _, start), end in zip(turns, ends, strict=True)}
    samples = read_samples(folder)
    walks: dict[str, list[NDArray[np.int64]]] = {}
    for row in read_rows(folder):
        if row.samples:
            walks.setdefault(row.case_id, []).append(samples[row.samples[0] : sum(row.samples) : 2])
    with np.load(folder / "plain.npz") as plain_fills:
        return Round(
            walls,
            loop.seconds,
            {case: np.concatenate(parts) for case, parts in walks.items()},
            dict(plain_fills),
        )


class PlainLoop:
    """The plain loop's process, told case by case when it is its turn."""

    def __init__(self, folder: Path, backend: str) -> None:
        environment = {**os.environ, **ENVIRONMENT}
        self.command = [sys.executable, __file__, "--plain", str(folder), backend]
        self.child = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        pin(self.child.pid)
        self.seconds: Walls = {}

    def __enter__(self) -> PlainLoop:
        self._answer()
        return self

    def walk(self, offset: int) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(f"{offset}\n")
        self.child.stdin.flush()
        self.seconds[offset] = float(self._answer())

    def _answer(self) -> str:
        assert self.child.stdout is not None
        answer = self.child.stdout.readline()
        if not answer:
            raise RuntimeError("the plain loop has ended")
        return answer

    def __exit__(self, *_: object) -> None:
        self.child.communicate()


@contextmanager
def replaced(name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Meanwhile a function of `harness.running.worker_process` is what `wrap` makes of it."""
    original = getattr(process, name)
    setattr(process, name, wrap(original))
    try:
        yield
    finally:
        setattr(process, name, original)


def pin(pid: int) -> None:
    """To one processor, the same for all, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {max(os.sched_getaffinity(0))})


def recovery(folder: Path, corpus: Path) -> list[float]:
    """Seconds from SIGKILL of the child, in the middle of a case, to the next case's sending."""
    info, plan = planned(folder, corpus, "xgrammar", 12)
    gaps: list[float] = []
    killed: list[float] = []

    def note_next() -> None:
        if killed:
            gaps.append(time.perf_counter() - killed.pop())

    def then_kill(send_case: Any) -> Any:
        def send(worker: process.Worker, offset: int) -> None:
            note_next()
            send_case(worker, offset)
            time.sleep(0.05)  # the child is in the middle of the case
            began = time.perf_counter()
            # The last child may have been killed when its quick case was done: then this one goes to nobody.
            with suppress(ProcessLookupError):
                if (child := worker.process.child) is not None:
                    os.kill(child, signal.SIGKILL)
                    killed.append(began)

        return send

    with replaced("send_case", then_kill), Writer(folder, info) as writer:
        run_plan(info, plan, writer, folder)
    return gaps


# The plain loop, in a process of its own


def plain(folder: Path, backend: str) -> None:
    """Walks the cases whose offsets come in, one by one, and stores the fills' times."""
    import gc

    from harness.backend.vocabulary import load_vocabulary
    from harness.cases.case_line import case_from_line

    vocabulary = load_vocabulary(VOCABULARY)
    compile_schema, walk = PLAIN[backend](vocabulary)
    fills: dict[str, list[int]] = {}
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    with open(folder / "cases.jsonl", "rb") as cases:
        for line in sys.stdin:
            cases.seek(int(line))
            _, _, case = case_from_line(cases.readline())
            start = time.perf_counter()
            grammar = compile_schema(case.grammar.text)
            if grammar is not None:
                for instance in case.instances:
                    walk(grammar, vocabulary.encode(instance.content), fills.setdefault(case.id, []))
            print(time.perf_counter() - start, flush=True)
    np.savez(folder / "plain.npz", **{case: np.array(times) for case, times in fills.items()})  # type: ignore[arg-type]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plain"]:
        plain(Path(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main(sys.argv[1:]))
