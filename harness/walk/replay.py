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
)
from harness.backend.vocabulary import Vocabulary
from harness.errors import describe as describe
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
    """Compile the grammar and time it. Every way in which a backend can fail is a status."""
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
    return Compiled(_status_of(refusal), describe(refusal), spent, None)


def _status_of(refusal: BaseException) -> Status:
    match refusal:
        case UnsupportedGrammar():
            return "unsupported"
        case InvalidGrammar():
            return "invalid"
        case MemoryError():
            return "oom"
        case _:
            return "backend_error"


def walk(
    compiled: CompiledGrammar,
    vocabulary: Vocabulary,
    tokens: Sequence[int],
    mask_format: str,
    progress: Progress,
    most_ns: float = math.inf,
) -> Observation:
    """Replay the tokens, then end-of-sequence, up to the first refusal.

    Whoever sets a deadline for each call keeps it from outside. Calls of which none is late, but which
    together take more than `most_ns` nanoseconds, end the walk here as a `timeout` in the phase `walk`.
    """
    clock = perf_counter_ns
    samples = array("q")
    findings: list[Finding] = []
    matcher_new_ns: int | None = None
    spent = 0
    began = clock()

    def seen(
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
            len(tokens),
            matcher_new_ns=matcher_new_ns,
            first_fill_ns=samples[0] if samples else None,
            wall_ns=clock() - began,
            findings=tuple(findings),
            samples=samples.tobytes(),
        )

    def refused(index: int) -> Observation:
        allowed_here = len(mask.allowed())
        progress[4] += 1
        if not allowed_here and not as_bool(grammar_object.is_accepting(), "is_accepting"):
            findings.append(
                Finding("cannot_terminate", index, "no token is allowed here, and the output may not end")
            )
        return replace(seen("ok", accepted=False, stopped_at=index), allowed=allowed_here)

    try:
        progress[2], progress[3] = 0, len(tokens)
        progress[0] = 1
        start = clock()
        grammar_object = compiled.start()
        matcher_new_ns = clock() - start
        mask = _mask(mask_format, vocabulary.size)
        mask.cells.fill(mask_format == "bool")  # nothing is allowed yet, whatever was walked before
        progress[0] = 2
        bools = mask_format == "bool"
        fill = (
            partial(grammar_object.fill_bool_mask, mask.cells) if bools else grammar_object.filler(mask.cells)
        )
        accept, is_allowed = grammar_object.accept_token, mask.is_allowed
        for index, token in enumerate(tokens):
            progress[2] = index
            progress[0] = 2
            start = clock()
            fill()
            end = clock()
            samples.append(end - start)
            allowed = is_allowed(token)
            progress[0] = 3
            start = clock()
            accepted = accept(token)
            end = clock()
            samples.append(end - start)
            spent += samples[-2] + samples[-1]
            if spent > most_ns:
                return seen(
                    "timeout",
                    "walk",
                    f"its calls had taken {spent / 1e9:.3g} s together after token {index} of {len(tokens)}",
                )
            if not (allowed and accepted is True):
                accepted = as_bool(accepted, "accept_token")
                if allowed and accepted:
                    continue
                if allowed != accepted:
                    forces = accepted and _forces_another(
                        compiled, tokens[:index], mask, vocabulary, token, progress
                    )
                    findings.append(_mismatch(index, token, allowed, "canonical_only" if forces else ""))
                return refused(index)

        progress[2] = len(tokens)
        progress[0] = 4
        start = clock()
        fill()
        end = clock()
        samples.append(end - start)
        allowed = is_allowed(vocabulary.eos_token)
        progress[4] += 1
        accepting = as_bool(grammar_object.is_accepting(), "is_accepting")
        progress[4] += 1
        start = clock()
        accepted = accept(vocabulary.eos_token)
        end = clock()
        samples.append(end - start)
        accepted = as_bool(accepted, "accept_token")
        if not allowed == accepting == accepted:
            said = (
                f"end-of-sequence: mask {_says(allowed)}, is_accepting {accepting}, accept_token "
                f"{_says(accepted)}"
            )
            findings.append(Finding("end_of_sequence_mismatch", len(tokens), said))
        return seen("ok", accepted=True) if allowed and accepted else refused(len(tokens))
    except BaseException as error:
        status: Status = "oom" if isinstance(error, MemoryError) else "backend_error"
        if not _is_backends(error):
            status = "harness_error"
        return seen(status, PHASES[progress[0]], describe(error))


def first_mask(
    compiled: CompiledGrammar, vocabulary: Vocabulary, mask_format: str, progress: Progress
) -> Observation:
    """The observation of a grammar without an instance: a new object and its first mask."""
    return replace(
        walk(compiled, vocabulary, (), mask_format, progress), accepted=None, stopped_at=None, allowed=None
    )


@lru_cache(maxsize=2)
def _mask(mask_format: str, size: int) -> _Mask:
    """A mask whose memory is the same for every walk, as in an engine. Fresh memory is cold, and that would
    count as time of the fills."""
    return _Mask(mask_format, size)


class _Mask:
    """One mask in either format, and the questions that the walk asks of it."""

    def __init__(self, mask_format: str, size: int) -> None:
        self.size = size
        if mask_format == "bool":
            forbidden: Any = np.ones(size, dtype=np.bool_)
            self.cells: Any = forbidden
            flags = memoryview(forbidden)
            self.is_allowed: Callable[[int], bool] = lambda token: not flags[token]
            self.allowed: Callable[[], list[int]] = lambda: np.flatnonzero(~self.cells).tolist()
        else:
            self.cells = allocate_bitmask(size)
            words: Any = memoryview(self.cells.data)
            self.is_allowed = lambda token: bool(words[token >> 5] >> (token & 31) & 1)
            self.allowed = lambda: allowed_tokens(self.cells, size).tolist()


def _says(allowed: bool) -> str:
    return "allows" if allowed else "refuses"


def _mismatch(index: int, token: int, allowed: bool, cause: str) -> Finding:
    said = f"token {token}: mask {_says(allowed)}, accept_token {_says(not allowed)}"
    return Finding("mask_accept_mismatch", index, said, cause=cause)


def _forces_another(
    compiled: CompiledGrammar,
    tokens: Sequence[int],
    mask: _Mask,
    vocabulary: Vocabulary,
    token: int,
    progress: Progress,
) -> bool:
    """Whether the mask allows one token only, which the backend says it forces and which is another spelling
    of the given one."""
    phase = progress[0]
    try:
        only = forced_token(watched_grammar(compiled, Watch(progress, phase)), tokens, mask.allowed())
    except Exception:  # a fault of the backend's, which other walks and checks tell
        return False
    finally:
        progress[0] = phase
    forced, text = b"" if only is None else vocabulary.tokens[only], vocabulary.tokens[token]
    return bool(forced and text) and (forced.startswith(text) or text.startswith(forced))


def _is_backends(error: BaseException) -> bool:
    """Whether the error arose behind a call into the adapter, rather than in a line of ours.

    A native method that an adapter hands out has no frame of its own. So an error of `walk` itself, whose
    lines are calls of the backend, is the backend's; whatever else this file does is in functions of its own.
    """
    trace = error.__traceback__
    innermost = trace
    while trace is not None:
        innermost, trace = trace, trace.tb_next
    if innermost is None:
        return True
    code = innermost.tb_frame.f_code
    return code is walk.__code__ or innermost.tb_frame.f_globals.get("__name__") != __name__
