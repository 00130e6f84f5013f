"""What the harness costs: its wall time, its recorded fill times, and its recovery after a kill, beside a plain loop in the same run.

    python benchmarks/overhead.py [FOLDER]         a folder of MaskBench files (default: ../shared/corpora/maskbench)

Prints three things, each against what we promise:
  1. wall time of a run (one worker, without start-up) over that of a plain loop with the same backend calls in one process;
  2. the median of the recorded fills over that of the plain loop, per backend: each fill's minimum over the rounds, then the
     median over fills, because one process differs from the next by more than what is to be seen (research: A/A ±1 % and more);
  3. the time from a child's kill to the moment when the next case is sent.
The plain loop makes the same library calls as the adapters, in their barest form; it tokenizes too, because any loop must.
Rounds alternate between the two; of wall times the fastest round counts.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import process
from harness.booking import Work
from harness.describe import describe
from harness.plan import Plan, Profile, write_plan
from harness.row import RunInfo
from harness.run import Limits, run_all
from harness.store import Writer, read_rows, read_samples
from harness.suite import find_suite

Fills = dict[str, NDArray[np.int64]]
"""Nanoseconds of every fill, by case, in the order of the walks."""

FOLDER = Path(__file__).parents[2] / "shared" / "corpora" / "maskbench"
VOCABULARY = "tekken"
ROUNDS = 3
SLOW_BACKENDS = ("xgrammar", "outlines-core")
SLOW_CASES = 40  # these two compile for a second and more: a sample is enough for a median of fills
LIMITS = Limits(1.5, 8_000_000_000)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    if not folder.is_dir():
        sys.exit(f"{folder} is no folder; give one with MaskBench files")
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        walls: dict[str, list[float]] = {"plain": [], "harness": []}
        lines = []
        for backend in ("llguidance", *SLOW_BACKENDS):
            corpus = quick_cases(base / f"{backend}-quick", folder, backend) if backend in SLOW_BACKENDS else folder
            fills: dict[str, list[Fills]] = {"plain": [], "harness": []}
            for number in range(ROUNDS):
                run = base / f"{backend}{number}"
                wall, cases, mine = harness_run(run, corpus, backend, None)
                plain_wall, theirs = plain_run(run, backend)
                fills["harness"].append(mine)
                fills["plain"].append(theirs)
                if backend == "llguidance":
                    walls["harness"].append(wall)
                    walls["plain"].append(plain_wall)
                    what = f"{cases} cases, {sum(map(len, mine.values()))} tokens"
            lines.append(compared(backend, fills))
        print(f"wall time, llguidance, {what}, best of {ROUNDS} rounds:")
        best, loop = min(walls["harness"]), min(walls["plain"])
        print(f"  harness {best:.3f} s, plain loop {loop:.3f} s, ratio {best / loop:.2f} (promised: at most 1.50)")
        print(f"median fill over {ROUNDS} rounds (promised: within 5 %):", *lines, sep="\n  ")
        gaps = recovery(base / "recovery", folder)
        print(f"from a kill to the next case (xgrammar with {VOCABULARY}), {len(gaps)} kills (promised: within 0.5 s):")
        print(f"  median {statistics.median(gaps) * 1e3:.0f} ms, slowest {max(gaps) * 1e3:.0f} ms")


def quick_cases(folder: Path, corpus: Path, backend: str) -> Path:
    """A folder with those cases of a sample that the backend compiles before the deadline.

    After a kill the next fills are slower, in a child whose memory is not warm: that is the price of the kill, not of the harness.
    """
    harness_run(folder.with_suffix(".scout"), corpus, backend, SLOW_CASES)
    folder.mkdir()
    for row in read_rows(folder.with_suffix(".scout")):
        if row.compile_ns is not None and row.compile_ns < 0.7e9 * LIMITS.timeout_s and row.status == "ok":
            shutil.copy(corpus / f"{row.case}.json", folder)
    return folder


def compared(backend: str, fills: dict[str, list[Fills]]) -> str:
    """Of the cases that every round walked alike: one may compile just before the deadline in one round and after it in the next."""
    rounds = [*fills["harness"], *fills["plain"]]
    alike = [case for case in rounds[0] if len({len(each.get(case, ())) for each in rounds}) == 1]
    harness, plain = (
        float(np.median(np.min([np.concatenate([each[case] for case in alike]) for each in fills[who]], axis=0)))
        for who in ("harness", "plain")
    )
    counted = f"{len(alike)} cases, {sum(len(rounds[0][case]) for case in alike)} fills"
    return f"{backend:14} harness {harness:9.0f} ns, plain loop {plain:9.0f} ns, ratio {harness / plain:.3f} ({counted})"


def planned(folder: Path, corpus: Path, backend: str, cases: int | None) -> tuple[RunInfo, Plan]:
    folder.mkdir()
    plan = write_plan([find_suite(str(corpus))], Profile(cases, LIMITS.timeout_s, (VOCABULARY,)), 0, folder / "cases.jsonl")
    described = describe([backend], [VOCABULARY])
    return RunInfo(
        "overhead", "", "", (), 0, "", LIMITS.timeout_s, LIMITS.memory_bytes, 1, described.arms, described.vocabularies, plan.suites, {}
    ), plan


def harness_run(folder: Path, corpus: Path, backend: str, cases: int | None) -> tuple[float, int, Fills]:
    """One run of the real coordinator and worker: seconds from the first case sent, cases, and the recorded fills."""
    info, plan = planned(folder, corpus, backend, cases)
    sent: list[float] = []
    with Spy("send_case", lambda: sent.append(time.perf_counter())), Writer(folder, info) as writer:
        works = [Work(info.arms[0], VOCABULARY, deque(range(len(plan.offsets))))]
        run_all(plan, works, LIMITS, 1, writer, folder / "cases.jsonl", lambda _: None)
        wall = time.perf_counter() - sent[0]
        writer.finish("")
    samples = read_samples(folder)
    walks: dict[str, list[NDArray[np.int64]]] = {}
    for row in read_rows(folder):
        if row.samples:
            walks.setdefault(row.case_id, []).append(samples[row.samples[0] : sum(row.samples) : 2])
    return wall, len(plan.offsets), {case: np.concatenate(each) for case, each in walks.items()}


class Spy:
    """Calls back before each call of a function of `harness.process`."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self.name, self.call, self.original = name, call, getattr(process, name)

    def __enter__(self) -> None:
        def spied(*arguments: Any, **options: Any) -> Any:
            self.call()
            return self.original(*arguments, **options)

        setattr(process, self.name, spied)

    def __exit__(self, *_: object) -> None:
        setattr(process, self.name, self.original)


def recovery(folder: Path, corpus: Path) -> list[float]:
    """Seconds from SIGKILL of the child, in the middle of a case, to the next case's sending."""
    info, plan = planned(folder, corpus, "xgrammar", 12)
    gaps: list[float] = []
    killed: list[float] = []

    def note_next() -> None:
        if killed:
            gaps.append(time.perf_counter() - killed.pop())

    original = process.send_case

    def send_and_kill(worker: process.Worker, offset: int) -> None:
        note_next()
        original(worker, offset)
        time.sleep(0.05)  # the child is in the middle of the case
        if worker.child is not None:
            killed.append(time.perf_counter())
            os.kill(worker.child, signal.SIGKILL)

    process.send_case = send_and_kill
    try:
        with Writer(folder, info) as writer:
            works = [Work(info.arms[0], VOCABULARY, deque(range(len(plan.offsets))))]
            run_all(plan, works, LIMITS, 1, writer, folder / "cases.jsonl", lambda _: None)
    finally:
        process.send_case = original
    return gaps


# The plain loop, in a process of its own


def plain_run(folder: Path, backend: str) -> tuple[float, Fills]:
    """The same cases and instances (those that the harness's run compiled), in one process: seconds, and every fill."""
    environment = {**os.environ, **process.ENVIRONMENT}
    told = subprocess.run([sys.executable, __file__, "--plain", str(folder), backend], check=True, stdout=subprocess.PIPE, env=environment)
    with np.load(folder / "plain.npz") as fills:
        return float(told.stdout.split()[-1]), dict(fills)


def plain(folder: Path, backend: str) -> None:
    """The loop that anyone would write: compile, new matcher, fill, accept; the library's own calls and nothing else."""
    import gc

    from harness.store import read_cases
    from harness.vocabulary import load_vocabulary

    compiled = {row.case_id for row in read_rows(folder) if row.status == "ok"}
    broken = {row.case_id for row in read_rows(folder) if row.status in ("timeout", "crash", "oom")}
    vocabulary = load_vocabulary(VOCABULARY)
    compile_schema, walk = PLAIN[backend](vocabulary)
    cases = [case for _, _, case in read_cases(folder) if case.id not in broken]
    fills: dict[str, list[int]] = {}
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    for case in cases:
        grammar = compile_schema(case.grammar.text)
        if grammar is None or case.id not in compiled:
            continue
        for instance in case.instances:
            walk(grammar, vocabulary.encode(instance.content), fills.setdefault(case.id, []))
    wall = time.perf_counter() - start
    np.savez(folder / "plain.npz", **{case: np.array(each) for case, each in fills.items()})  # type: ignore[arg-type]
    print(wall)


def plain_llguidance(vocabulary: Any) -> Any:
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

    class Tokenizer:
        def __init__(self) -> None:
            self.eos_token_id, self.bos_token_id = vocabulary.eos_token, None
            self.special_token_ids = list(vocabulary.special_tokens)
            self.tokens = list(vocabulary.tokens)
            for token, name in vocabulary.special_tokens.items():
                self.tokens[token] = name.encode()

        def __call__(self, text: Any) -> list[int]:
            return list(vocabulary.encode(text.encode() if isinstance(text, str) else text))

    tokenizer = LLTokenizer(TokenizerWrapper(Tokenizer()))
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    address, size = mask.ctypes.data, mask.nbytes
    eos = vocabulary.eos_token

    def compile_schema(text: str) -> Any:
        matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(text), log_level=0)
        return None if matcher.is_error() else matcher

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> None:
        matcher = grammar.deep_copy()
        for token in [*tokens, eos]:
            start = time.perf_counter_ns()
            matcher.unsafe_compute_mask_ptr(address, size)
            fills.append(time.perf_counter_ns() - start)
            if not (int(mask[token // 32]) >> token % 32 & 1 and matcher.try_consume_tokens([token])):
                return

    return compile_schema, walk


def plain_xgrammar(vocabulary: Any) -> Any:
    import xgrammar

    info = xgrammar.TokenizerInfo(
        list(vocabulary.tokens), xgrammar.VocabType.RAW, vocab_size=vocabulary.size, stop_token_ids=[vocabulary.eos_token]
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    mask = xgrammar.allocate_token_bitmask(1, vocabulary.size)
    eos = vocabulary.eos_token

    def compile_schema(text: str) -> Any:
        try:
            return compiler.compile_json_schema(text, strict_mode=False)
        except RuntimeError:
            return None

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> None:
        matcher = xgrammar.GrammarMatcher(grammar)
        for token in [*tokens, eos]:
            start = time.perf_counter_ns()
            matcher.fill_next_token_bitmask(mask)
            fills.append(time.perf_counter_ns() - start)
            if not (int(mask[0, token // 32]) >> token % 32 & 1 and matcher.accept_token(token)):
                return

    return compile_schema, walk


def plain_outlines_core(vocabulary: Any) -> Any:
    from outlines_core import Guide, Index, json_schema
    from outlines_core import Vocabulary as TokenMap

    ids: dict[bytes, list[int]] = {}
    for token, text in enumerate(vocabulary.tokens):
        if text and token not in vocabulary.special_tokens:
            ids.setdefault(text, []).append(token)
    token_map = TokenMap(vocabulary.eos_token, ids)
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    address, words = mask.ctypes.data, mask.size
    eos = vocabulary.eos_token

    def compile_schema(text: str) -> Any:
        try:
            return Index(json_schema.build_regex_from_schema(text, r"[\n\t\r ]*"), token_map)
        except (ValueError, TypeError):
            return None

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> None:
        guide = Guide(grammar)
        for token in [*tokens, eos]:
            start = time.perf_counter_ns()
            guide.write_mask_into(address, words, 4)
            fills.append(time.perf_counter_ns() - start)
            if token == eos or not int(mask[token // 32]) >> token % 32 & 1:
                return
            guide.advance(token, False)

    return compile_schema, walk


PLAIN = {"llguidance": plain_llguidance, "xgrammar": plain_xgrammar, "outlines-core": plain_outlines_core}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plain"]:
        plain(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
