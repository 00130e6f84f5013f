"""What is measured at one size, in a child of its own: a cold compile, the first mask, memory, the same
compile again, and masks along an output. It draws no conclusions."""

from __future__ import annotations

import gc
import math
import resource
import time
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from harness.backend.garbage import no_garbage_collection
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Dialect,
    Grammar,
    InvalidGrammar,
    UnsupportedGrammar,
)
from harness.backend.loading import load_adapter
from harness.backend.process.child import Answer, Handler, Page
from harness.backend.registry import BackendSpec
from harness.errors import error_text
from harness.measure.child import resident_bytes, with_option
from harness.measure.growth.axes import TINY, GrownCase, axes, different_schema
from harness.measure.growth.record import SHORT_NS
from harness.measure.passes import Mask, timed

PLACES = 32
"""The most places of an output at which masks are timed."""

WINDOW = 16
"""The number of masks that are timed from a position on, where the axis is the output's length. All before it
are filled too, as an engine does; a cost that grows with the fills so far is not seen otherwise."""

WALK_SECONDS = 0.5
"""Seconds of processor time after which no further pass over an output begins; a warm one is always made."""

ABOUT = ("op", "cpu_s", "axis", "size")
"""The fields of a message that are no arguments of its operation."""

FINE = {"status": "ok", "text": ""}

T = TypeVar("T")


def cpu_timed(call: Callable[[], T]) -> tuple[int, int, T]:
    """Returns the nanoseconds of processor time and of wall time of one call, and its result.

    A long call on a busy machine is interrupted and a short one is not, so wall times would look like growth;
    processor time does not.
    """
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    result = call()
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    return cpu, wall, result


EARLY = 5
"""The number of the first schemas that are compiled once more after each block."""


def cost_of(call: Callable[[], T]) -> tuple[int, T]:
    """Returns the cost of one call that is made once, and its result: its wall time if it is short, else its
    processor time."""
    cpu, wall, result = cpu_timed(call)
    return wall if wall < SHORT_NS else cpu, result


def load_growth(spec: str, vocabulary: str, page: Page | None = None) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler around the backend's adapter, loaded for this vocabulary."""
    return GrowthHandler(*load_adapter(spec, vocabulary, page)), {}


def allow_cpu_seconds(seconds: float) -> None:
    """Lets the system end this process by SIGXCPU once it has used so many more seconds of processor time,
    rounded up to whole seconds."""
    most = math.ceil(time.process_time() + seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _ended(error: BaseException) -> dict[str, str]:
    """Returns what is answered where a compile ended by this error: `refused` where the backend says that it
    cannot, or that the grammar is wrong."""
    is_refusal = isinstance(error, UnsupportedGrammar | InvalidGrammar)
    return {"status": "refused" if is_refusal else "error", "text": error_text(error, 300)}


class GrowthHandler:
    """Answers `compile`, then `walk` and `again` about what was compiled, and `schemas`."""

    def __init__(self, adapter: Adapter, spec: BackendSpec) -> None:
        self.adapter = adapter
        self.spec = spec
        self.mask = Mask(adapter)
        self.case: GrownCase | None = None
        self.compiled: CompiledGrammar | None = None

    def __call__(self, message: dict[str, Any], _: bytes) -> Answer:
        operations: dict[str, Callable[..., dict[str, Any]]] = {
            "compile": self.compile,
            "walk": self.walk,
            "again": self.again,
            "schemas": self.schemas,
        }
        arguments = {name: value for name, value in message.items() if name not in ABOUT}
        if "axis" in message:  # grown before the limit is set: it is our work, and not the backend's
            self.case = axes()[message["axis"]].grow(message["size"])
        if "cpu_s" in message:
            allow_cpu_seconds(message["cpu_s"])
        gc.collect()
        with no_garbage_collection():
            return operations[message["op"]](**arguments), b""

    def compile(self) -> dict[str, Any]:
        """Compiles the grown grammar for the first time in this process, and fills the first mask.

        The answer has `status`: `ok`, `refused` (the backend says that it cannot, or that the grammar is
        wrong) or `error` (it raised something else), with its `text`.
        """
        assert self.case is not None
        case = self.case
        self._warm_up(case.grammar.dialect)
        before = resident_bytes()
        try:
            compile_ns, wall_ns, compiled = cpu_timed(partial(self.adapter.compile, case.grammar))
            after = resident_bytes()
            start_ns, grammar_object = timed(compiled.start)
            fill_ns, _ = timed(self.mask.filler(grammar_object))
        except BaseException as error:  # a panic in Rust is no Exception
            return _ended(error)
        self.compiled = compiled
        return {
            **FINE,
            "compile_ns": compile_ns,
            "wall_ns": wall_ns,
            "first_fill_ns": start_ns + fill_ns,
            "memory_bytes": max(0, after - before),
            "grammar_bytes": len(case.grammar.text.encode()),
        }

    def _warm_up(self, dialect: Dialect) -> None:
        """Compiles and fills once with a grammar that has nothing to do with the axis. What the backend says
        of it does not matter here: it says the same of the grammar that is measured."""
        with suppress(BaseException):
            grammar_object = self.adapter.compile(Grammar(dialect, TINY[dialect])).start()
            self.mask.filler(grammar_object)()

    def walk(self, passes: int) -> dict[str, Any]:
        """Times the fill at each place of the output, `passes` times each in fresh objects, and returns the
        minimum of each place, without the first pass, which is cold.

        `refused_at` is the number of the token that the backend refuses, where it does; places before it
        count. `raised` is what the backend raised.
        """
        assert self.case is not None and self.compiled is not None
        tokens = self.adapter.vocabulary.encode(self.case.text)
        first = self.case.position
        if first is None:
            places = {index * len(tokens) // PLACES for index in range(PLACES)}
        else:
            places = set(range(first, first + WINDOW))
            tokens = tokens[: first + WINDOW]
        filled = places if first is None else set(range(len(tokens)))
        least: dict[int, int] = {}
        answer: dict[str, Any] = {"refused_at": None, "raised": ""}
        try:
            until = time.process_time() + WALK_SECONDS
            for number in range(passes + 1):
                if number > 1 and time.process_time() > until:
                    break
                times, refused_at = self._one_pass(self.compiled, tokens, filled)
                if refused_at is not None:
                    answer["refused_at"] = refused_at
                for place in places & times.keys() if number else ():
                    least[place] = min(times[place], least.get(place, times[place]))
        except BaseException as error:
            answer["raised"] = error_text(error, 300)
        return {"mask_ns": [least[place] for place in sorted(least)], **answer}

    def _one_pass(
        self, compiled: CompiledGrammar, tokens: Sequence[int], filled: Set[int]
    ) -> tuple[dict[int, int], int | None]:
        """Returns the nanoseconds of the fill at each place that is to be filled, and the place of the token
        that the backend refuses, where it does."""
        grammar_object = compiled.start()
        fill, accept = self.mask.filler(grammar_object), grammar_object.accept_token
        times = {}
        for place, token in enumerate(tokens):
            if place in filled:
                times[place], _ = timed(fill)
            if not accept(token):
                return times, place
        return times, None

    def again(self) -> dict[str, Any]:
        """Compiles the same grammar once more: by the same adapter, and twice by one with its cache on, where
        it has such an option (the second time counts). `raised` is what the backend raised."""
        assert self.case is not None
        answer: dict[str, Any] = {"again_ns": None, "cached_ns": None, "raised": ""}
        try:
            answer["again_ns"], _ = cost_of(partial(self.adapter.compile, self.case.grammar))
            caching = with_option(self.adapter, self.spec, "cache", "true")
            if caching is not None:
                caching.compile(self.case.grammar)
                answer["cached_ns"], _ = cost_of(partial(caching.compile, self.case.grammar))
        except BaseException as error:
            answer["raised"] = error_text(error, 300)
        return answer

    def schemas(self, first: int, count: int, seconds: float) -> dict[str, Any]:
        """Compiles `count` different schemas and fills a mask of each, dropping each before the next, until
        the time is up.

        The answer has `done`, `rss_bytes` afterwards, `cpu_s` that all took, `compile_ns` (the median),
        `first_again_ns` (what one of the very first schemas costs once more, the median of EARLY), and
        `status` with `text`, as for one size; what the backend refuses or raises ends it.
        """
        until = time.process_time() + seconds
        spent: list[int] = []
        answer: dict[str, Any] = {"compile_ns": None, "first_again_ns": None, **FINE}
        try:
            for number in range(first, first + count):
                compile_ns, compiled = cost_of(partial(self.adapter.compile, different_schema(number)))
                self.mask.filler(compiled.start())()
                del compiled
                spent.append(compile_ns)
                if time.process_time() > until:
                    break
            gc.collect()
            answer["compile_ns"] = sorted(spent)[len(spent) // 2]
            resident = resident_bytes()
            early = [cost_of(partial(self.adapter.compile, different_schema(n)))[0] for n in range(EARLY)]
            answer["first_again_ns"] = sorted(early)[EARLY // 2]
        except BaseException as error:
            answer |= _ended(error)
            resident = resident_bytes()
        used = time.process_time() - until + seconds
        return {"done": len(spent), "rss_bytes": resident, "cpu_s": used, **answer}
