"""One arm of a measurement, in a service's child: it measures what and when it is asked, and draws no
conclusions."""

from __future__ import annotations

import gc
import hashlib
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from harness.backend.garbage import no_garbage_collection
from harness.backend.grammar import Adapter, CompiledGrammar, Grammar, GrammarObject, overrides, unpack_mask
from harness.backend.process.child import Answer, Handler
from harness.backend.process.fork import peak_rss, reset_peak_rss
from harness.backend.registry import BackendSpec, make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case_line import case_at
from harness.measure import passes
from harness.measure.child import resident_bytes, with_option

MOST_PASSES = 10
MOST_SECONDS = 1.0
SETTLED = 0.02
"""Warm-up ends when two passes in a row differ by less than this share, or after so many passes
or seconds."""


def load_arm(spec: str, vocabulary: str, cases: str, cpu: int | None) -> tuple[Handler, dict[str, Any]]:
    """Returns the backend's adapter, loaded and from then on bound to the processor `cpu`; `cases` is the
    path of the run's `cases.jsonl`."""
    (backend,) = parse_specs(spec)
    adapter = make(backend, load_vocabulary(vocabulary))
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})
    return MeasureHandler(adapter, backend, cases, cpu, frozenset(processors)), {
        "clock_ns": passes.clock_cost_ns()
    }


@dataclass(eq=False)
class Prepared:
    """One case in this process: the tokens of its text, end-of-sequence last, and the grammar that was
    compiled last."""

    grammar: Grammar
    tokens: Sequence[int]
    compiled: CompiledGrammar


@dataclass(eq=False)
class MeasureHandler:
    """Holds what was compiled, by the case's place in `cases.jsonl`."""

    adapter: Adapter
    spec: BackendSpec
    cases: str
    cpu: int | None
    processors: frozenset[int] = frozenset()
    """All processors that this process may use."""
    prepared: dict[int, Prepared] = field(default_factory=dict)
    variants: dict[str, Adapter | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mask = passes.Mask(self.adapter)

    def __call__(self, message: dict[str, Any], _: bytes) -> Answer:
        operations: dict[str, Callable[..., Answer]] = {
            "warm_up": self.warm_up,
            "round": self.round,
            "mechanisms": self.mechanisms,
            "batch": self.batch,
            "counts": self.counts,
            "variant": self.variant,
        }
        gc.collect()
        with no_garbage_collection():
            switches, busy, start = _switches(), time.process_time(), time.perf_counter_ns()
            arguments = {name: value for name, value in message.items() if name not in ("op", "number")}
            reply, blob = operations[message["op"]](**arguments)
            wall, busy = time.perf_counter_ns() - start, time.process_time() - busy
            return {
                **reply,
                "wall_ns": wall,
                "cpu_ns": int(busy * 1e9),
                "switches": _switches() - switches,
            }, blob

    def warm_up(self, offset: int, instance: int) -> Answer:
        """Compile the case for the first time in this process, and pass over its text until two passes
        agree."""
        case = case_at(self.cases, offset)
        tokens = [*case.instances[instance].ids(self.adapter.vocabulary), self.adapter.vocabulary.eos_token]
        compile_ns, compiled = passes.timed(partial(self.adapter.compile, case.grammar))
        self.prepared[offset] = Prepared(case.grammar, tokens, compiled)
        sums: list[int] = []
        began = time.perf_counter()
        while len(sums) < MOST_PASSES and time.perf_counter() - began < MOST_SECONDS:
            (one,) = passes.traverse(compiled, tokens, self.mask)
            sums.append(int(one.steps.sum()))
            if len(sums) > 1 and abs(sums[-1] - sums[-2]) < SETTLED * sums[-2]:
                break
        gc.collect()
        gc.freeze()
        return {
            "tokens": len(tokens),
            "passes": len(sums),
            "pass_ns": min(sums),
            "timed_ns": compile_ns + sum(sums),
        }, b""

    def round(self, offset: int, repeats: int, fresh: bool) -> Answer:
        """Make a compile and the first pass after it, if `fresh`, and then `repeats` warm passes.

        The answer has the minimum of every call and the sums of every pass, as int64 nanoseconds: `[compile,
        matcher_new, steps]` if fresh, then `[matcher_new, steps]` of minima, then fills and accepts of each
        pass.
        """
        held, clock = self.prepared[offset], time.perf_counter_ns
        parts: list[Any] = []
        if fresh:
            start = clock()
            compiled = self.adapter.compile(held.grammar)
            compile_ns = clock() - start
            held.compiled = compiled
            (cold,) = passes.traverse(compiled, held.tokens, self.mask)
            parts += [[compile_ns, cold.matcher_new_ns], cold.steps.ravel()]
        warm = passes.traverse(held.compiled, held.tokens, self.mask, repeats)
        steps = np.stack([one_pass.steps for one_pass in warm])
        parts += [
            [min(one_pass.matcher_new_ns for one_pass in warm)],
            steps.min(axis=0).ravel(),
            steps.sum(axis=1).ravel(),
        ]
        return {"tokens": len(held.tokens)}, np.concatenate(parts).astype("<i8").tobytes()

    def mechanisms(self, offset: int, repeats: int) -> Answer:
        """Time rollback by one, copy and forced text at every place of the text. `<name>` is the number of
        int64s in the blob; 0 if the backend does not offer it."""
        held = self.prepared[offset]
        one = held.compiled.start()
        walk = held.compiled, held.tokens
        parts = {
            "rollback": passes.rollbacks(*walk, repeats) if overrides(one, "rollback") else NOTHING,
            "copy": passes.asked(*walk, "copy", repeats) if overrides(one, "copy") else NOTHING,
            "jump_forward": passes.asked(*walk, "jump_forward", repeats)
            if overrides(one, "jump_forward")
            else NOTHING,
        }
        return {name: len(times) for name, times in parts.items()}, np.concatenate(
            list(parts.values())
        ).astype("<i8").tobytes()

    def batch(self, offset: int, size: int, threads: int, repeats: int) -> Answer:
        """Time filling a batch, int64 `[repeats]`, on one thread or on several; empty for several if the
        adapter has no threads."""
        held = self.prepared[offset]
        if self.adapter.mask_format == "bool" or (threads > 1 and self.adapter.threads is None):
            return {}, b""
        before = self.adapter.threads
        try:
            if before is not None:
                self.adapter.threads = threads
            with self._all_processors(threads > 1):
                return {}, passes.batches(self.adapter, held.compiled, held.tokens, size, repeats).astype(
                    "<i8"
                ).tobytes()
        finally:
            self.adapter.threads = before

    def counts(self, offset: int) -> Answer:
        """Returns what does not depend on the machine: a digest of every mask along the text, their sizes,
        forced bytes, and serialized size. Also what compiling took besides time: `compile_peak_bytes`, by how
        much the peak of the resident set rose."""
        held, size = self.prepared[offset], self.adapter.vocabulary.size
        before = resident_bytes()
        reset_peak_rss()
        compiled = self.adapter.compile(held.grammar)
        counted: dict[str, Any] = {"compile_peak_bytes": max(0, peak_rss() - before)}
        try:
            counted["serialized_bytes"] = len(compiled.serialize())
        except BaseException:  # one that it does not offer, or that fails, costs no other count
            counted["serialized_bytes"] = None
        grammar_object, digest, allowed, forced = compiled.start(), hashlib.sha256(), 0, 0
        fill, offers_jumps = self.mask.filler(grammar_object), overrides(grammar_object, "jump_forward")
        for token in held.tokens:
            fill()
            bits = ~self.mask.cells if self.mask.is_bool else unpack_mask(self.mask.cells, size)
            digest.update(np.packbits(bits).tobytes())
            allowed += int(np.count_nonzero(bits))
            if offers_jumps:
                forced += _forced_bytes(grammar_object)
            grammar_object.accept_token(token)
        counted |= {"masks": len(held.tokens), "masks_sha256": digest.hexdigest()[:16], "allowed": allowed}
        return {**counted, "forced_bytes": forced if offers_jumps else None}, b""

    def variant(self, offset: int, option: str, value: str, repeats: int) -> Answer:
        """Compile times of the same backend with one option more, int64 `[repeats]`; empty if there is no
        such option.

        With `cache` the first compile is not among them; with `threads` all processors may be used.
        """
        if option not in self.variants:
            self.variants[option] = with_option(self.adapter, self.spec, option, value)
        adapter = self.variants[option]
        if adapter is None:
            return {}, b""
        clock, times, grammar = time.perf_counter_ns, [], self.prepared[offset].grammar
        with self._all_processors(option == "threads"):
            adapter.compile(grammar)
            for _ in range(repeats):
                start = clock()
                compiled = adapter.compile(grammar)
                times.append(clock() - start)
                del compiled  # freeing it is no part of a compile: it is kept until the clock is read
        return {}, np.array(times, "<i8").tobytes()

    @contextmanager
    def _all_processors(self, wanted: bool) -> Iterator[None]:
        """Returns a context in which all processors may be used if `wanted`, because threads need them."""
        if not (wanted and self.cpu is not None and hasattr(os, "sched_setaffinity")):
            yield
            return
        os.sched_setaffinity(0, self.processors)
        try:
            yield
        finally:
            os.sched_setaffinity(0, {self.cpu})


NOTHING = np.zeros(0, np.int64)


def _forced_bytes(grammar_object: GrammarObject) -> int:
    try:
        return len(grammar_object.jump_forward())
    except BaseException:  # a fault, or a panic in Rust, that the conformance checks tell
        return 0


def _switches() -> int:
    """Returns how often the system took the processor away from this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
