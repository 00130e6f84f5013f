"""A backend as our own code calls it outside of timed loops: each call is noted for the process that keeps
the deadline, and each answer is checked.

What the backend raises comes out of a frame of this module, so that it is recognised as the backend's.
Between two calls the phase is `oracle`: then code of ours is at work, and no deadline runs against the
backend.
"""

from __future__ import annotations

import gc
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from time import perf_counter
from typing import Any, NoReturn, TypeAlias

from harness.backend.contract.place import NotApplicable, kind_of
from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    is_bool,
    is_count,
)
from harness.errors import BackendRaised, OutOfTime, error_text
from harness.oracle.automaton import NoOracle

PHASES = ("compile", "start", "fill", "accept", "end", "encode", "check", "oracle")
"""What a child is doing; the index goes into `progress`. All phases but those of OURS are calls of the
backend."""

OURS = ("encode", "oracle")
"""The phases in which code of ours is at work: a tokenizer, a reference automaton, a judge, or a check
between two calls."""

Progress: TypeAlias = "memoryview[int]"
"""Cells shared with the coordinator, so that it knows the position of a lost child, and whether a child gets
on: `[phase, instance, token, tokens, calls begun, IS_OURS, LOADS, COLLECTION,
OURS_BYTES]`."""

IS_OURS = 5
"""The cell that is 1 if the backend's code is ours."""
LOADS = 6
"""The cell that is 1 from when on the backend itself is loaded, and no longer code of ours."""
COLLECTION = 7
"""The cell with the number of the collection of cycles that Python is making; 0 while it makes none. Objects
of a backend may be destroyed in it wherever code of ours is at work."""
OURS_BYTES = 8
"""The cell with the resident bytes that are ours once the backend is loaded: the interpreter, the vocabulary
and what the checks need of it; 0 where the system does not tell."""
CELLS = 9

_CHECK, _ORACLE = PHASES.index("check"), PHASES.index("oracle")


def unwatched() -> Progress:
    """Progress cells that no process looks at."""
    return memoryview(array("q", [0] * CELLS))


def note_collections(cells: Progress) -> None:
    """Note from now on each collection of cycles in this process."""
    count = 0

    def note(moment: str, _: dict[str, int]) -> None:
        nonlocal count
        count += moment == "start"
        cells[COLLECTION] = count if moment == "start" else 0

    cells[COLLECTION] = 0  # a child before this one may have died in one
    gc.callbacks.append(note)


class BrokenAnswer(TypeError):
    """A method of the backend gave an `answer` that is not what the contract says."""

    def __init__(self, message: str, answer: object = None) -> None:
        super().__init__(message)
        self.answer = answer


@dataclass
class Cut:
    """What ended a check while it collected, such as that its time was up; None if nothing did."""

    error: BaseException | None = None

    def again(self) -> None:
        """Raises what it was."""
        if self.error is not None:
            raise self.error


@contextmanager
def collecting() -> Iterator[Cut]:
    """Ends its block where the time of the check is up or the backend raises, so that what was collected by
    then can be told; then comes `again`."""
    cut = Cut()
    try:
        yield cut
    except BaseException as error:
        cut.error = error


SHOWN = 80
"""The most characters of a backend's answer that a message has."""

MEANT = (StopIteration, StopAsyncIteration, GeneratorExit, NotApplicable, NoOracle, OutOfTime)
"""Exceptions that tell loops and checks of ours to end. Coming from a backend, they would end ours
silently."""


def shown(answer: object) -> str:
    """Returns the first SHOWN characters of what a backend gave, whatever it is."""
    try:
        return str(answer)[:SHOWN]
    except BaseException:  # a hostile `__str__` may raise anything
        return kind_of(answer)


def as_bool(answer: object, method: str) -> bool:
    """Returns the answer, which must be a bool. Raises BrokenAnswer."""
    if is_bool(answer):
        return bool(answer)
    raise BrokenAnswer(f"{method} gives {kind_of(answer)}, not bool", answer)


def as_instance(answer: object, wanted: type, method: str) -> Any:
    """Returns the answer, which must be of the class `wanted` (which may be abstract). Raises
    BrokenAnswer."""
    if isinstance(answer, wanted):
        return answer
    raise BrokenAnswer(f"{method} gives {kind_of(answer)}, not a {wanted.__name__}", answer)


@dataclass(eq=False)
class Watch:
    """Notes the calls of the backend in `cells`."""

    cells: Progress = field(default_factory=unwatched)
    phase: int = _CHECK
    """The phase that is noted during a call."""
    until: float = math.inf
    """No call of the backend begins after this time of `perf_counter`, in seconds."""
    is_ours: bool = False
    """Whether the backend's code is ours: its exceptions then keep the meaning that they have in our code."""

    def begin(self) -> None:
        """Notes that a call begins. Raises OutOfTime."""
        if perf_counter() > self.until:
            raise OutOfTime
        self.cells[4] += 1
        self.cells[0] = self.phase

    def end(self) -> None:
        """Notes that the call has returned or raised."""
        self.cells[0] = _ORACLE

    def raised(self, error: BaseException) -> NoReturn:
        """Raises what the backend raised, wrapped in BackendRaised if it would end a loop of ours."""
        if isinstance(error, MEANT) and not self.is_ours:
            raise BackendRaised(error_text(error)) from error
        raise error

    def asked(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Returns the call's result."""
        self.begin()
        try:
            return call(*arguments)
        except BaseException as error:  # a panic in Rust and a backend's sys.exit() are no Exception
            self.raised(error)
        finally:
            self.end()


class Held:
    """Something of the backend, which works when it is given up too; `stands_for` is the original."""

    stands_for: Any
    _watch: Watch

    def __del__(self) -> None:
        watch: Watch | None = getattr(self, "_watch", None)
        if watch is None:  # a constructor that was interrupted
            return
        cells = watch.cells
        before = cells[0]
        cells[0] = watch.phase
        self.stands_for = None
        cells[0] = before


class WatchedObject(Held, GrammarObject):
    """An object of the backend."""

    def __init__(self, original: GrammarObject, watch: Watch) -> None:
        self._watch = watch
        self.stands_for = original

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self._watch.asked(self.stands_for.fill_bitmask, bitmask)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        self._watch.asked(self.stands_for.fill_bool_mask, mask)

    def accept_token(self, token: int) -> bool:
        # Written out, because checks ask it thousands of times.
        watch = self._watch
        watch.begin()
        try:
            answer: object = self.stands_for.accept_token(token)
        except BaseException as error:
            watch.raised(error)
        finally:
            watch.cells[0] = _ORACLE
        return answer if type(answer) is bool else as_bool(answer, "accept_token")

    def is_accepting(self) -> bool:
        return as_bool(self._watch.asked(self.stands_for.is_accepting), "is_accepting")

    def is_terminated(self) -> bool:
        return as_bool(self._watch.asked(self.stands_for.is_terminated), "is_terminated")

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        fill: object = self._watch.asked(self.stands_for.filler, bitmask)
        if not callable(fill):
            raise BrokenAnswer(f"filler gives {kind_of(fill)}, which cannot be called")
        return lambda: self._watch.asked(fill)

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        count: object = self._watch.asked(self.stands_for.accept_tokens, tokens)
        if not is_count(count, len(tokens)):
            raise BrokenAnswer(
                f"accept_tokens gives {kind_of(count)}, not how many of {len(tokens)} it takes"
            )
        return int(count)  # type: ignore[call-overload, no-any-return]

    def rollback(self, count: int) -> None:
        self._watch.asked(self.stands_for.rollback, count)

    def fill_draft(self, tokens: Sequence[int], bitmasks: Bitmask) -> int:
        count: object = self._watch.asked(self.stands_for.fill_draft, tokens, bitmasks)
        if not is_count(count, len(tokens)):
            raise BrokenAnswer(f"fill_draft gives {kind_of(count)}, not how many of {len(tokens)} may come")
        return int(count)  # type: ignore[call-overload, no-any-return]

    def copy(self) -> WatchedObject:
        return WatchedObject(
            as_instance(self._watch.asked(self.stands_for.copy), GrammarObject, "copy"), self._watch
        )

    def jump_forward(self) -> bytes:
        text: bytes = as_instance(self._watch.asked(self.stands_for.jump_forward), bytes, "jump_forward")
        return text

    def fast_forward_tokens(self) -> list[int]:
        tokens: list[int] = as_instance(
            self._watch.asked(self.stands_for.fast_forward_tokens), list, "fast_forward_tokens"
        )
        return tokens


class WatchedGrammar(Held, CompiledGrammar):
    """A compiled grammar of the backend."""

    def __init__(self, original: CompiledGrammar, watch: Watch) -> None:
        self._watch = watch
        self.stands_for = original

    def start(self) -> GrammarObject:
        return WatchedObject(
            as_instance(self._watch.asked(self.stands_for.start), GrammarObject, "start"), self._watch
        )

    def serialize(self) -> bytes:
        content: bytes = as_instance(self._watch.asked(self.stands_for.serialize), bytes, "serialize")
        return content


@lru_cache(maxsize=2)
def _token_bytes(adapter: Adapter) -> list[bytes] | None:
    """Returns what the adapter gives: reading 200,000 ids takes a tenth of a second, and every case asks."""
    return adapter.token_bytes()


class WatchedAdapter(Adapter):
    """A backend's adapter."""

    def __init__(self, original: Adapter, watch: Watch) -> None:
        super().__init__(original.vocabulary)
        self.stands_for = original
        self._watch = watch
        described = ("distribution", "wraps", "dialects", "documented", "mask_format", "is_ours")
        for name in (*described, "knows_one_end", "layout", "layout_in_tags"):
            vars(self)[name] = getattr(original, name)

    @property
    def threads(self) -> int | None:
        """Returns the number of threads that the original uses."""
        return self.stands_for.threads

    @threads.setter
    def threads(self, threads: int | None) -> None:
        self.stands_for.threads = threads

    def token_bytes(self) -> list[bytes] | None:
        tokens: list[bytes] | None = self._watch.asked(_token_bytes, self.stands_for)
        return tokens

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        return WatchedGrammar(
            as_instance(self._watch.asked(self.stands_for.compile, grammar), CompiledGrammar, "compile"),
            self._watch,
        )

    def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
        inner = getattr(compiled, "stands_for", compiled)
        found: object = self._watch.asked(self.stands_for.reasoning, inner, end)
        return WatchedGrammar(as_instance(found, CompiledGrammar, "reasoning"), self._watch)

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        self._watch.asked(
            self.stands_for.fill_bitmasks,
            [getattr(watched, "stands_for", watched) for watched in objects],
            bitmasks,
        )


def watched_grammar(original: CompiledGrammar, watch: Watch) -> CompiledGrammar:
    """Returns the watched grammar; the grammar itself if it is watched already."""
    return original if isinstance(original, WatchedGrammar) else WatchedGrammar(original, watch)


def watched_adapter(original: Adapter, watch: Watch) -> Adapter:
    """Returns the watched adapter; the adapter itself if it is watched already."""
    return original if isinstance(original, WatchedAdapter) else WatchedAdapter(original, watch)
