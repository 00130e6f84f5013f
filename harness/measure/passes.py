"""The timed calls: one pass over a text, one compile, one operation.

Nothing of ours stands between two readings of the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.backend.grammar import Adapter, Bitmask, CompiledGrammar, GrammarObject, allocate_bitmask

Nanoseconds = NDArray[np.int64]


class Diverged(Exception):
    """The backend refuses what it accepted when the case was scouted."""


class Pass(NamedTuple):
    """One traversal. `steps` is int64 `[tokens + 1, 2]` in nanoseconds: fill and accept of every token,
    end-of-sequence last."""

    matcher_new_ns: int
    steps: Nanoseconds


class Mask:
    """The memory into which every fill of a process goes, as in an engine; fresh memory would be cold."""

    def __init__(self, adapter: Adapter) -> None:
        size = adapter.vocabulary.size
        self.is_bool = adapter.mask_format == "bool"
        self.cells: Any = np.zeros(size, np.bool_) if self.is_bool else allocate_bitmask(size)

    def filler(self, grammar_object: GrammarObject) -> Callable[[], object]:
        """Returns the fill in the adapter's own format."""
        if self.is_bool:
            return partial(grammar_object.fill_bool_mask, self.cells)
        return grammar_object.filler(self.cells)


Stamped = tuple[int, list[tuple[int, int, int, bool]]]
"""One traversal: `matcher_new_ns`, then for each token the clock before the fill, after it and after the
accept, and the accept's answer."""


def traverse(compiled: CompiledGrammar, tokens: Sequence[int], mask: Mask, count: int = 1) -> list[Pass]:
    """Makes and returns `count` passes: a new object, then fill and accept for every token (the last is
    end-of-sequence). Raises Diverged if one is refused.

    The stamps become arrays after the last pass: between two passes that work would cool what the next one's
    first fill finds warm.
    """
    return [_as_pass(stamped) for stamped in [_stamped(compiled, tokens, mask) for _ in range(count)]]


def _stamped(compiled: CompiledGrammar, tokens: Sequence[int], mask: Mask) -> Stamped:
    clock = time.perf_counter_ns
    stamps: list[tuple[int, int, int, bool]] = []
    push = stamps.append
    start = clock()
    grammar_object = compiled.start()
    matcher_new_ns = clock() - start
    fill, accept = mask.filler(grammar_object), grammar_object.accept_token
    for token in tokens:
        start = clock()
        fill()
        filled = clock()
        accepted = accept(token)
        push((start, filled, clock(), accepted))
    return matcher_new_ns, stamps


def _as_pass(stamped: Stamped) -> Pass:
    matcher_new_ns, stamps = stamped
    table = np.array(stamps, np.int64)
    if not table[:, 3].all():
        raise Diverged(f"token {int(np.argmin(table[:, 3]))} of {len(stamps)} is refused")
    return Pass(matcher_new_ns, np.diff(table[:, :3], axis=1))


def timed(call: Callable[[], object]) -> tuple[int, Any]:
    """Returns the nanoseconds of one call, and its result."""
    clock = time.perf_counter_ns
    start = clock()
    result = call()
    return clock() - start, result


def clock_cost_ns() -> int:
    """Returns the median nanoseconds between two readings of the clock with nothing in between; they are part
    of every figure, and not subtracted."""
    clock = time.perf_counter_ns
    return int(np.median([-(clock() - clock()) for _ in range(20_001)]))


# ----------------------------------------------------------------------------- operations other than the walk


def rollbacks(compiled: CompiledGrammar, tokens: Sequence[int], passes: int) -> Nanoseconds:
    """Returns, for each token but the last, the minimum over the passes of taking it back (it is accepted
    again); int64 `[tokens - 1]`."""

    clock = time.perf_counter_ns

    def one_pass() -> list[int]:
        grammar_object, times = compiled.start(), []
        take_back = grammar_object.rollback
        for token in tokens[:-1]:
            grammar_object.accept_token(token)
            start = clock()
            take_back(1)
            times.append(clock() - start)
            grammar_object.accept_token(token)
        return times

    return _least(one_pass, passes)


def asked(
    compiled: CompiledGrammar, tokens: Sequence[int], question: Literal["copy", "jump_forward"], passes: int
) -> Nanoseconds:
    """Returns, for each token, the minimum of copying the object before it, or of asking that object for
    forced text; int64 `[tokens]`."""

    def one_pass() -> list[int]:
        grammar_object, times = compiled.start(), []
        for token in tokens:
            spent, _answer = timed(getattr(grammar_object, question))
            times.append(spent)
            grammar_object.accept_token(token)
        return times

    return _least(one_pass, passes)


def batches(
    adapter: Adapter, compiled: CompiledGrammar, tokens: Sequence[int], size: int, repeats: int
) -> Nanoseconds:
    """Returns the nanoseconds of filling a batch of `size` objects at evenly spread places of the text; int64
    `[repeats]`."""
    objects = []
    for number in range(size):
        grammar_object = compiled.start()
        for token in tokens[: number * len(tokens) // size]:
            grammar_object.accept_token(token)
        objects.append(grammar_object)
    masks: Bitmask = np.zeros((size, (adapter.vocabulary.size + 31) // 32), np.int32)
    clock, fill = time.perf_counter_ns, adapter.fill_bitmasks
    fill(objects, masks)  # threads are started, caches filled
    times = []
    for _ in range(repeats):
        start = clock()
        fill(objects, masks)
        times.append(clock() - start)
    return np.array(times, np.int64)


def _least(one_pass: Callable[[], list[int]], passes: int) -> Nanoseconds:
    least: Nanoseconds = np.min(np.array([one_pass() for _ in range(passes)], np.int64), axis=0)
    return least
