"""What goes wrong in the middle of a batch ends the request that it belongs to, and leaves nothing behind."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest
from decode_faulty import BAD, GOOD, Faulty, Panic, faulty, finish_beside
from decode_tools import WORDS, Around, AroundAdapter, FakeModel, alone, regex, request, serve

from harness.backend.grammar import (
    CompiledGrammar,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
)
from harness.oracle.reference import Reference
from harness.serve.requests.latency import ttft_from_row
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.compiling import CompileQueue, Ticket
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.strategies.base import Move, Strategy
from harness.walk.loop.strategies.jump_forward import JumpForward

EXACT = Reference(WORDS)


class CannotStart(AroundAdapter):
    """The grammar compiles; its second object cannot be had."""

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        compiled = super().compile(grammar)
        if "boom" in grammar.text:

            def start() -> GrammarObject:
                raise Panic("no start")

            compiled.start = start  # type: ignore[method-assign]
        return compiled


@pytest.mark.parametrize("kind", [RuntimeError, Panic, MemoryError, NotImplementedError])
@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("phase", ["fill", "accept", "jump_forward", "rollback"])
def test_a_fault_in_mid_stream_is_the_requests_alone(
    phase: str, overlap: bool, kind: type[BaseException]
) -> None:
    bad = finish_beside(faulty(phase, kind), JumpForward, overlap=overlap)
    if phase == "rollback" and kind is NotImplementedError:
        assert bad.end == "end_of_sequence", "no fault: an object that cannot go back is replayed"
    else:
        assert (bad.end, bad.phase, bad.why) == ("fault", phase, f"{kind.__name__}: it broke")


def test_a_fault_at_the_start_and_in_a_copy() -> None:
    bad = finish_beside(CannotStart(Around))
    assert (bad.end, bad.phase, bad.why, bad.ids) == ("fault", "start", "Panic: no start", ())
    bad = finish_beside(faulty("copy", Panic, rollback=GrammarObject.rollback), JumpForward)
    assert (bad.end, bad.phase) == ("fault", "copy")


def test_a_batch_that_raises_is_filled_one_by_one() -> None:
    class RaisesTogether(AroundAdapter):
        def fill_bitmasks(self, objects: Any, bitmasks: Any) -> None:
            super().fill_bitmasks(objects[:-1], bitmasks[:-1])
            raise RuntimeError("one of you")

    bad = finish_beside(RaisesTogether(type("Faulty", (Faulty,), {"phase": "fill"})), batch_fill=True)
    assert (bad.end, bad.phase, bad.why) == ("fault", "fill", "RuntimeError: it broke")
    with CompileQueue(RaisesTogether(Around), workers=0) as queue:
        served = Loop(FakeModel(), WORDS, Strategy(WORDS), queue, LoopOptions(batch_fill=True)).serve(GOOD)
    assert [each.ids for each in served.completed] == [alone(each, EXACT) for each in GOOD]
    assert served.counts["batch_fill_faults"] == served.passes


def test_a_mask_that_promises_what_accept_refuses_is_a_fault() -> None:
    class Refuses(Around):
        def accept_token(self, token: int) -> bool:
            return "boom" not in self.compiled.grammar.text and super().accept_token(token)

    bad = finish_beside(AroundAdapter(Refuses))
    assert (bad.end, bad.phase, bad.ids) == ("fault", "accept", ()) and "accept_token refuses it" in bad.why
    bad = finish_beside(AroundAdapter(Refuses), Writes)
    assert (bad.end, bad.phase) == ("fault", "accept") and "text that must come is refused" in bad.why


class Writes(Strategy):
    """Writes a `c` at the start of what may not begin otherwise."""

    def begin(self, active: ActiveRequest) -> Move | None:
        return Move(0, [ord("c")]) if "boom" in getattr(active.request.grammar, "text", "") else None


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_our_own_failure_is_nobody_elses(kind: type[BaseException]) -> None:
    class Ours(Strategy):
        def advance(self, active: ActiveRequest) -> Move | None:
            raise kind("ours")

    model, threads = FakeModel(), threading.active_count()
    with pytest.raises(kind, match="ours"):
        serve(GOOD, None, Ours, model)
    model.assert_is_empty()
    assert threading.active_count() == threads

    def broken() -> None:
        raise kind("the model's")

    model.during = broken
    with pytest.raises(kind, match="the model's"):
        serve(GOOD, None, Strategy, model)
    assert threading.active_count() == threads


@pytest.mark.parametrize("phase", ["fill", "accept", "jump_forward"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_would_end_a_program_ends_the_request_when_a_backend_raises_it(
    kind: type[BaseException], phase: str
) -> None:
    bad = finish_beside(faulty(phase, kind), JumpForward)
    assert (bad.end, bad.phase, bad.why) == ("fault", phase, f"{kind.__name__}: it broke")


def test_an_error_whose_text_cannot_be_had_is_told() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    bad = finish_beside(faulty("fill", Mute))
    assert (bad.end, bad.why) == ("fault", "Mute: (its message cannot be printed)")


class AnswersWrongly(Around):
    """Gives what is no answer, for grammars that contain `boom`."""

    method: ClassVar[str]
    answer: ClassVar[Any]

    def or_wrong(self, method: str, right: Any) -> Any:
        is_wrong = method == self.method and "boom" in self.compiled.grammar.text
        return self.answer if is_wrong else right

    def accept_token(self, token: int) -> bool:
        return self.or_wrong("accept_token", super().accept_token(token))  # type: ignore[no-any-return]

    def accept_tokens(self, tokens: Any) -> int:
        return self.or_wrong("accept_tokens", super().accept_tokens(tokens))  # type: ignore[no-any-return]

    def copy(self) -> GrammarObject:
        return self.or_wrong("copy", super().copy())  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("method", "answer", "phase", "why"),
    [
        ("accept_token", None, "accept", "accept_token gives NoneType, not bool"),
        ("accept_token", np.array([True, True]), "accept", "accept_token gives ndarray, not bool"),
        ("accept_tokens", None, "accept", "accept_tokens gives NoneType, not how many of "),
        ("accept_tokens", -1, "accept", "accept_tokens gives int, not how many of "),
        ("copy", None, "copy", "copy gives NoneType, not a GrammarObject"),
    ],
)
def test_an_answer_that_is_none_is_the_backends_fault(method: str, answer: Any, phase: str, why: str) -> None:
    fields = {"method": method, "answer": answer, "rollback": GrammarObject.rollback}
    wrong = AroundAdapter(type("Wrong", (AnswersWrongly,), fields))
    bad = finish_beside(wrong, JumpForward)
    assert (bad.end, bad.phase, bad.why.startswith(why)) == ("fault", phase, True), bad
    right = AroundAdapter(type("Right", (AnswersWrongly,), {**fields, "method": ""}))
    assert finish_beside(right, JumpForward).end == "end_of_sequence"


@pytest.mark.parametrize("answer", [None, "a text"])
def test_a_start_that_gives_no_object_is_the_backends_fault(answer: Any) -> None:
    class StartsNothing(AroundAdapter):
        def compile(self, grammar: Grammar) -> CompiledGrammar:
            compiled = super().compile(grammar)
            if "boom" in grammar.text:
                compiled.start = lambda: answer  # type: ignore[method-assign]
            return compiled

    bad = finish_beside(StartsNothing(Around))
    wanted = f"start gives {type(answer).__name__}, not a GrammarObject"
    assert (bad.end, bad.phase, bad.why) == ("fault", "start", wanted)


# Clients that leave, and grammars that do not come


class Slow(AroundAdapter):
    """Compiles grammars that contain `boom` when it may, and calls one wrong."""

    def __init__(self) -> None:
        super().__init__(Around)
        self.may = threading.Event()
        self.begun: Counter[str] = Counter()

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        self.begun[grammar.text] += 1
        if "boom" in grammar.text:
            self.may.wait(10)
        if grammar.text == "wrong":
            raise InvalidGrammar("no such grammar")
        return super().compile(grammar)


class Releases(Strategy):
    """Lets the slow compile go on when four requests are done."""

    adapter: ClassVar[Slow]

    def __init__(self, vocabulary: Any) -> None:
        super().__init__(vocabulary)
        self.done = 0

    def finished(self, active: ActiveRequest) -> None:
        self.done += 1
        if self.done == len(GOOD):
            self.adapter.may.set()


def test_a_cold_grammar_keeps_nobody_waiting() -> None:
    Releases.adapter = adapter = Slow()
    model = FakeModel(rows=2)
    with CompileQueue(adapter, workers=2) as queue:
        served = Loop(model, WORDS, Releases(WORDS), queue).serve(
            [request("cold", BAD), *GOOD, request("cold too", BAD, seed=1)]
        )
    model.assert_is_empty()
    done = {each.name: each for each in served.completed}
    cold = done["cold"]
    assert all(done[each.name].done_ns < cold.waited_ns for each in GOOD)
    assert cold.ids == alone(request("cold", BAD), EXACT)
    assert [done[name].compile_state for name in ("cold", "cold too", "good 0", "good 1")] == [
        "miss",
        "shared",
        "miss",
        "shared",
    ]
    assert cold.compile_ns and done["cold too"].compile_ns is None and adapter.begun[BAD.text] == 1
    assert cold.admitted_ns is not None and cold.admitted_ns >= cold.waited_ns
    assert ttft_from_row(cold) <= cold.token_ns[0] - cold.waited_ns, "it has the wait for the grammar in it"
    assert (served.counts["cache_miss"], served.counts["cache_shared"]) == (2, 4)


@pytest.mark.parametrize("fallback", ["unconstrained", "abort"])
def test_what_becomes_of_a_request_without_its_grammar(fallback: Any) -> None:
    unknown = Grammar("structural_tag", "{}")
    with pytest.raises(UnsupportedGrammar):
        EXACT.compile(unknown)  # loads modules the first time, for longer than the timeout below
    wanted = [
        request("late", BAD, limit=9),
        request("wrong", regex("wrong")),
        request("other", unknown, limit=9),
        *GOOD,
    ]
    with CompileQueue(Slow(), timeout_s=0.05) as queue:
        served = Loop(FakeModel(), WORDS, Strategy(WORDS), queue, LoopOptions(fallback=fallback)).serve(
            wanted
        )
        adapter: Any = queue.adapter
        adapter.may.set()
    late, wrong, other, *good = served.completed
    assert [each.compile_state for each in (late, wrong, other)] == ["timeout", "invalid", "unsupported"]
    assert [each.ids for each in good] == [alone(each, EXACT) for each in GOOD]
    if fallback == "abort":
        assert [each.end for each in (late, wrong, other)] == ["aborted"] * 3 and served.counts[
            "aborted"
        ] == 3
        assert late.why.startswith("timeout: ") and late.ids == () and late.admitted_ns is None
    else:
        assert late.ids == alone(request("late", limit=9)) and served.counts["fallback"] == 3
        assert (
            late.fallback.startswith("timeout: ")
            and wrong.fallback.startswith("invalid: ")
            and good[0].fallback == ""
        )


def test_clients_leave_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ms = 1_000_000
    wanted = [
        request("in mid-stream", limit=240, reference=tuple(b"a" * 240), cancel_ns=30 * ms),
        request("in the compile", BAD, cancel_ns=20 * ms),
        request("before it came", BAD, arrival_ns=5 * ms, cancel_ns=5 * ms),
        request("in another compile", regex("boom too"), arrival_ns=1 * ms, cancel_ns=40 * ms),
        request("before its compile", regex("boom three"), arrival_ns=2 * ms, cancel_ns=40 * ms),
        request(
            "without a row", limit=240, reference=tuple(b"a" * 240), arrival_ns=1 * ms, cancel_ns=45 * ms
        ),
        request("with the other row", limit=240, reference=tuple(b"a" * 240), cancel_ns=50 * ms),
        request("stays", None, limit=10, arrival_ns=60 * ms),
    ]
    adapter, model = Slow(), FakeModel(rows=2)
    model.during = lambda: time.sleep(0.001)
    tickets: list[Ticket] = []
    with CompileQueue(adapter, workers=2) as queue:
        submit = queue.submit

        def kept(grammar: Grammar) -> Ticket:
            tickets.append(submit(grammar))
            return tickets[-1]

        monkeypatch.setattr(queue, "submit", kept)
        served = Loop(model, WORDS, Strategy(WORDS), queue).serve(wanted)
        assert tickets and all(ticket.state != "pending" for ticket in tickets)
        adapter.may.set()
    model.assert_is_empty()
    done, counts = {each.name: each for each in served.completed}, served.counts
    assert {name for name, each in done.items() if each.end == "cancelled"} == {
        each.name for each in wanted
    } - {"stays"}
    assert 0 < len(done["in mid-stream"].ids) < 60 and done["in mid-stream"].done_ns >= 30 * ms
    assert done["in the compile"].admitted_ns is None and done["in the compile"].ids == ()
    assert done["stays"].ids == alone(request("stays", limit=10))
    assert counts["cancelled"] >= 3 and adapter.begun["boom three"] == 0, "nobody wanted it any more"
