"""The replay of one output: fill a mask, look at the reference token's bit, accept the token; then the end of
the output.

The result is an Observation. Only the backend's call stands between two readings of the clock.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from time import (
    perf_counter_ns,
)  # bound before a backend is imported, which may put something else in its place
from typing import Any

import numpy as np

from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Grammar,
    InvalidGrammar,
    UnsupportedGrammar,
    allocate_bitmask,
    allowed_tokens,
    forced_token,
    unpack_mask,
)
from harness.backend.vocabulary import Vocabulary
from harness.errors import error_text, innermost_frame, is_slip_of_ours
from harness.rows.row import Finding, Status
from harness.walk.watched import PHASES as PHASES
from harness.walk.watched import Progress as Progress
from harness.walk.watched import Watch, as_bool, as_instance, watched_grammar

TEXT_LIMIT = 2000


@dataclass(frozen=True)
class Compiled:
    """The result of one compile."""

    status: Status
    text: str
    compile_ns: int
    grammar: CompiledGrammar | None


@dataclass(frozen=True)
class Observation:
    """What one walk showed; the fields are those of a row."""

    status: Status = "ok"
    phase: str = ""
    text: str = ""
    accepted: bool | None = None
    stopped_at: int | None = None
    tokens: int = 0
    matcher_new_ns: int | None = None
    first_fill_ns: int | None = None
    wall_ns: int | None = None
    findings: tuple[Finding, ...] = ()
    samples: bytes = b""
    allowed: int | None = None


def compile_grammar(adapter: Adapter, grammar: Grammar, progress: Progress) -> Compiled:
    """Compiles the grammar and times it. Every way in which a backend can fail is a status."""
    progress[0] = 0
    compiled: CompiledGrammar | None = None
    refusal: BaseException | None = None
    start = perf_counter_ns()
    try:
        compiled = adapter.compile(grammar)
    except BaseException as error:  # a panic of a Rust extension and a backend's sys.exit() are no Exception
        refusal = error
    spent = perf_counter_ns() - start
    if refusal is None:
        try:
            return Compiled("ok", "", spent, as_instance(compiled, CompiledGrammar, "compile"))
        except BaseException as error:
            refusal = error
    return Compiled(_status_of(refusal), error_text(refusal), spent, None)


def _status_of(refusal: BaseException) -> Status:
    match refusal:
        case UnsupportedGrammar():
            return "unsupported"
        case InvalidGrammar():
            return "invalid"
        case MemoryError():
            return "oom"
        case _:
            return "harness_error" if is_slip_of_ours(refusal) else "backend_error"


def walk(
    compiled: CompiledGrammar,
    vocabulary: Vocabulary,
    tokens: Sequence[int],
    mask_format: str,
    progress: Progress,
    most_ns: float = math.inf,
) -> Observation:
    """Replays the tokens, then end-of-sequence, up to the first refusal, and returns what was observed.

    Whoever sets a deadline for each call keeps it from outside. Calls of which none is late, but which
    together take more than `most_ns` nanoseconds, end the walk here as a `timeout` in the phase `walk`.
    """
    replay = _Replay(compiled, vocabulary, tokens, progress)
    try:
        replay.start(mask_format)
        return replay.walk_tokens(most_ns) or replay.walk_end()
    except BaseException as error:
        status: Status = "oom" if isinstance(error, MemoryError) else "backend_error"
        if not _is_backends(error) or is_slip_of_ours(error):
            status = "harness_error"
        return replay.observation(status, PHASES[progress[0]], error_text(error))


class _Replay:
    """One walk, as far as it has come: its object, its mask, its samples and its findings.

    `start`, `walk_tokens`, `walk_end` and `is_accepting` hold the calls of the backend (see `_is_backends`).
    """

    def __init__(
        self, compiled: CompiledGrammar, vocabulary: Vocabulary, tokens: Sequence[int], progress: Progress
    ) -> None:
        self.compiled = compiled
        self.vocabulary = vocabulary
        self.tokens = tokens
        self.progress = progress
        self.samples = array("q")
        self.findings: list[Finding] = []
        self.matcher_new_ns: int | None = None
        self.began = perf_counter_ns()

    def start(self, mask_format: str) -> None:
        """Makes and times the object, and binds its calls and the mask."""
        clock, progress = perf_counter_ns, self.progress
        progress[2], progress[3] = 0, len(self.tokens)
        progress[0] = 1
        start = clock()
        grammar_object = self.compiled.start()
        self.matcher_new_ns = clock() - start
        self.mask = _unchanged_mask(mask_format, self.vocabulary.size)
        is_bool = mask_format == "bool"
        cells = self.mask.cells
        cells.fill(is_bool)  # nothing is allowed yet, whatever was walked before
        progress[0] = 2
        self.grammar_object = grammar_object
        self.fill: Callable[[], object] = (
            partial(grammar_object.fill_bool_mask, cells) if is_bool else grammar_object.filler(cells)
        )
        self.accept = grammar_object.accept_token

    def walk_tokens(self, most_ns: float) -> Observation | None:
        """Fills before each token and accepts it. Returns the observation if the walk ends there: a token is
        refused, or the calls take too long; None if all tokens are accepted."""
        # Written so that little is done between two calls: there are thousands of them in a case.
        clock, progress, add_sample = perf_counter_ns, self.progress, self.samples.append
        fill, accept, is_allowed = self.fill, self.accept, self.mask.is_allowed
        spent = 0
        for index, token in enumerate(self.tokens):
            progress[2] = index
            progress[0] = 2
            start = clock()
            fill()
            fill_ns = clock() - start
            add_sample(fill_ns)
            allowed = is_allowed(token)
            progress[0] = 3
            start = clock()
            accepted = accept(token)
            accept_ns = clock() - start
            add_sample(accept_ns)
            spent += fill_ns + accept_ns
            if spent > most_ns:
                return self.too_slow(spent, index)
            if not (allowed and accepted is True):
                accepted = as_bool(accepted, "accept_token")
                if not (allowed and accepted):
                    return self.refused_token(index, allowed, accepted)
        return None

    def walk_end(self) -> Observation:
        """Fills behind the last token, asks whether the output may end, and accepts end-of-sequence."""
        clock, progress, samples = perf_counter_ns, self.progress, self.samples
        fill, accept, eos_token = self.fill, self.accept, self.vocabulary.eos_token
        progress[2] = len(self.tokens)
        progress[0] = 4
        start = clock()
        fill()
        end = clock()
        samples.append(end - start)
        allowed = self.mask.is_allowed(eos_token)
        others = [(end, self.mask.is_allowed(end)) for end in self.vocabulary.eos_tokens[1:]]
        accepting = self.is_accepting()
        progress[4] += 1
        start = clock()
        accepted = accept(eos_token)
        end = clock()
        samples.append(end - start)
        self.compare_other_ends(others, accepting)
        return self.ended(allowed, accepting, as_bool(accepted, "accept_token"))

    def compare_other_ends(self, others: Sequence[tuple[int, bool]], accepting: bool) -> None:
        """Finds each further id of end-of-sequence of which the mask says another thing than `is_accepting`;
        the walk ends with the first id."""
        for end, allowed in others:
            if allowed != accepting:
                name = self.vocabulary.special_tokens[end]
                text = f"end-of-sequence {name}: mask {_verb(allowed)}, is_accepting {accepting}"
                self.findings.append(Finding("end_of_sequence_mismatch", len(self.tokens), text))

    def is_accepting(self) -> bool:
        self.progress[4] += 1
        return as_bool(self.grammar_object.is_accepting(), "is_accepting")

    def too_slow(self, spent: int, index: int) -> Observation:
        return self.observation("timeout", "walk", too_slow_text(spent, index, len(self.tokens)))

    def refused_token(self, index: int, allowed: bool, accepted: bool) -> Observation:
        """Returns the observation of a token that the mask, `accept_token` or both refuse."""
        if allowed != accepted:
            token = self.tokens[index]
            cause = "canonical_only" if accepted and self.forces_another(index) else ""
            text = f"token {token}: mask {_verb(allowed)}, accept_token {_verb(accepted)}"
            self.findings.append(Finding("mask_accept_mismatch", index, text, cause=cause))
        # An object that took the token has moved, and cannot be asked about this place any more.
        return self.stopped(index, may_end=True if accepted else None)

    def ended(self, allowed: bool, accepting: bool, accepted: bool) -> Observation:
        """Returns the observation of a walk to the end, of which the mask, `is_accepting` and `accept_token`
        have answered whether it may be here."""
        if not allowed == accepting == accepted:
            text = (
                f"end-of-sequence: mask {_verb(allowed)}, is_accepting {accepting}, accept_token "
                f"{_verb(accepted)}"
            )
            self.findings.append(Finding("end_of_sequence_mismatch", len(self.tokens), text))
        return (
            self.observation("ok", accepted=True)
            if allowed and accepted
            else self.stopped(len(self.tokens), may_end=accepting)
        )

    def stopped(self, index: int, may_end: bool | None) -> Observation:
        """Returns the observation of a walk that was refused there. `may_end` is whether the output may end
        there; where it is None, the object, which has not moved, is asked if no token is allowed.

        Where no token is allowed a vocabulary may lack the byte with which every output goes on. A check that
        knows the outputs tells that from a fault (`walks_end_and_validate`)."""
        allowed_here = self.mask.count()
        is_dead_end = not allowed_here and not (self.is_accepting() if may_end is None else may_end)
        if is_dead_end and self.vocabulary.spells_every_text:
            text = "no token is allowed here, and the output may not end"
            self.findings.append(Finding("cannot_terminate", index, text))
        return replace(self.observation("ok", accepted=False, stopped_at=index), allowed=allowed_here)

    def forces_another(self, index: int) -> bool:
        """Returns whether the mask allows one token only, which the backend says it forces and which is
        another spelling of the token here."""
        progress, phase = self.progress, self.progress[0]
        try:
            watched = watched_grammar(self.compiled, Watch(progress, phase))
            only = forced_token(watched, self.tokens[:index], self.mask.allowed())
        except Exception:  # a fault of the backend's, which other walks and checks tell
            return False
        finally:
            progress[0] = phase
        texts = self.vocabulary.tokens
        forced, text = b"" if only is None else texts[only], texts[self.tokens[index]]
        return bool(forced and text) and (forced.startswith(text) or text.startswith(forced))

    def observation(
        self,
        status: Status,
        phase: str = "",
        text: str = "",
        accepted: bool | None = None,
        stopped_at: int | None = None,
    ) -> Observation:
        return Observation(
            status,
            phase,
            text,
            accepted,
            stopped_at,
            len(self.tokens),
            matcher_new_ns=self.matcher_new_ns,
            first_fill_ns=self.samples[0] if self.samples else None,
            wall_ns=perf_counter_ns() - self.began,
            findings=tuple(self.findings),
            samples=self.samples.tobytes(),
        )


def too_slow_text(spent_ns: int, index: int, tokens: int) -> str:
    """Returns what is said of a walk that ends because its calls take too long together."""
    return f"its calls had taken {spent_ns / 1e9:.3g} s together after token {index} of {tokens}"


CALLS_OF_THE_BACKEND = {
    method.__code__ for method in (_Replay.start, _Replay.walk_tokens, _Replay.walk_end, _Replay.is_accepting)
}
"""The code whose lines call the backend."""


def first_mask(
    compiled: CompiledGrammar, vocabulary: Vocabulary, mask_format: str, progress: Progress
) -> Observation:
    """Returns the observation of a grammar without an instance: a new object and its first mask."""
    return replace(
        walk(compiled, vocabulary, (), mask_format, progress), accepted=None, stopped_at=None, allowed=None
    )


def _unchanged_mask(mask_format: str, size: int) -> _Mask:
    """Returns the mask of every walk; another one where a backend has changed the form of its array."""
    mask = _mask(mask_format, size)
    if _form(mask.cells) != mask.form:
        _mask.cache_clear()
        mask = _mask(mask_format, size)
    return mask


def _form(cells: Any) -> tuple[object, ...]:
    return cells.dtype, cells.shape, cells.strides, cells.flags.writeable


@lru_cache(maxsize=2)
def _mask(mask_format: str, size: int) -> _Mask:
    """Returns a mask whose memory is the same for every walk, as in an engine. Fresh memory is cold, and that
    would count as time of the fills."""
    return _Mask(mask_format, size)


class _Mask:
    """One mask in either format, and the questions that the walk asks of it.

    How many tokens it `allowed` is counted without making them, which takes milliseconds for a large
    vocabulary, at each refusal.
    """

    def __init__(self, mask_format: str, size: int) -> None:
        if mask_format == "bool":
            forbidden: Any = np.ones(size, dtype=np.bool_)
            self.cells: Any = forbidden
            flags = memoryview(forbidden)
            self.is_allowed: Callable[[int], bool] = lambda token: not flags[token]
            self.allowed: Callable[[], list[int]] = lambda: np.flatnonzero(~self.cells).tolist()
            self.count: Callable[[], int] = lambda: (
                size
                - int(
                    np.count_nonzero(forbidden.view(np.uint8))  # a backend may write any byte for True
                )
            )
        else:
            self.cells = allocate_bitmask(size)
            words: Any = memoryview(self.cells.data)
            self.is_allowed = lambda token: words[token >> 5] >> (token & 31) & 1 == 1
            self.allowed = lambda: allowed_tokens(self.cells, size).tolist()
            self.count = lambda: int(np.count_nonzero(unpack_mask(self.cells, size)))
        self.form = _form(self.cells)


def _verb(allowed: bool) -> str:
    return "allows" if allowed else "refuses"


def _is_backends(error: BaseException) -> bool:
    """Returns whether the error arose behind a call into the adapter, rather than in a line of ours.

    A native method that an adapter hands out has no frame of its own. So an error of a function that calls
    the backend is the backend's; whatever else this file does is in functions of its own.
    """
    innermost = innermost_frame(error)
    if innermost is None:
        return True
    return innermost.f_code in CALLS_OF_THE_BACKEND or innermost.f_globals.get("__name__") != __name__
