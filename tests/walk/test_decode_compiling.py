"""The compile cache and the compile queue: what each request is told, whatever a compile does, and that
nothing is left."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from miniatures.compiling import CountingGrammar, CountingObject, Gated

from harness.backend.grammar import CompiledGrammar, Grammar, GrammarObject
from harness.walk.loop.compile_job import THREAD_NAME, CompileOutcome
from harness.walk.loop.compiling import COUNTS, CompileQueue, Ticket

MakeQueue = Callable[..., CompileQueue]
SHORT_S = 0.1
"""A timeout that a test waits for."""
LONG_S = 0.5
"""A timeout within which a test, on a busy machine too, gets to its next line."""


def regex(text: str) -> Grammar:
    return Grammar("regex", text)


OF_OTHERS: set[threading.Thread] = set()
"""Threads that tests of other files left in this process: one that is in a compile ends with it alone."""


def compile_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == THREAD_NAME and each not in OF_OTHERS]


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end, f"not in 20 s: {what}"
        time.sleep(0.001)


def settle(queue: CompileQueue, *tickets: Ticket) -> None:
    end = time.monotonic() + 20
    while any(ticket.state == "pending" for ticket in tickets):
        assert time.monotonic() < end, "still pending after 20 s"
        queue.poll(0.005)


def begun(adapter: Gated, text: str) -> None:
    until(lambda: text in adapter.begun, f"the compile of {text!r} begins")


@pytest.fixture
def adapter() -> Iterator[Gated]:
    """Whose threads end with the test."""
    adapter = Gated()
    OF_OTHERS.update(compile_threads())
    yield adapter
    for text in set(adapter.begun):
        adapter.release(text)
    until(lambda: compile_threads() == [], "the compile threads end")


@pytest.fixture
def queue(adapter: Gated) -> Iterator[CompileQueue]:
    with CompileQueue(adapter) as queue:
        yield queue


# How a request comes to its grammar


def test_a_grammar_that_nobody_asked_for_before_is_a_miss_and_then_a_hit(
    adapter: Gated, queue: CompileQueue
) -> None:
    first = queue.submit(regex("a"))
    settle(queue, first)
    assert (first.state, first.how, first.why) == ("ready", "miss", "")
    assert first.compile_ns is not None and first.compile_ns > 0
    second = queue.submit(regex("a"))
    assert (second.state, second.how, second.compile_ns) == ("ready", "hit", None)
    assert second.compiled is first.compiled
    assert adapter.begun == ["a"]
    assert queue.counts == dict.fromkeys(COUNTS, 0) | {
        "cache_miss": 1,
        "cache_hit": 1,
        "polls": queue.counts["polls"],
    }


def test_a_compile_takes_no_time_of_the_loop(adapter: Gated, queue: CompileQueue) -> None:
    ticket = queue.submit(regex("hang"))
    begun(adapter, "hang")
    queue.poll()
    assert ticket.state == "pending"
    adapter.release("hang")
    settle(queue, ticket)
    assert ticket.compiled is not None


def test_requests_for_a_grammar_that_is_being_compiled_share_the_compile(
    adapter: Gated, queue: CompileQueue
) -> None:
    tickets = [queue.submit(regex("hang")) for _ in range(3)]
    adapter.release("hang")
    settle(queue, *tickets)
    assert [each.how for each in tickets] == ["miss", "shared", "shared"]
    assert [each.compile_ns is None for each in tickets] == [False, True, True]
    assert len({id(each.compiled) for each in tickets}) == 1
    assert adapter.begun == ["hang"]


def test_the_same_text_in_another_dialect_is_another_grammar(adapter: Gated, queue: CompileQueue) -> None:
    one, two = queue.submit(regex("a")), queue.submit(Grammar("ebnf", "a"))
    settle(queue, one, two)
    assert (one.how, two.how) == ("miss", "miss") and one.compiled is not two.compiled


def test_without_a_cache_every_request_compiles(adapter: Gated) -> None:
    with CompileQueue(adapter, cache=False, workers=2) as queue:
        tickets = [queue.submit(regex("a")) for _ in range(2)]
        settle(queue, *tickets)
        tickets.append(queue.submit(regex("a")))
        settle(queue, *tickets)
    assert [each.how for each in tickets] == ["miss"] * 3
    assert len({id(each.compiled) for each in tickets}) == 3 and adapter.begun == ["a"] * 3


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_as_many_compile_at_once_as_there_are_workers(adapter: Gated, workers: int) -> None:
    texts = [f"hang {number}" for number in range(4)]
    with CompileQueue(adapter, workers=workers) as queue:
        tickets = [queue.submit(regex(text)) for text in texts]
        until(lambda: adapter.now == workers, "all workers are busy")
        for text in texts:
            adapter.release(text)
        settle(queue, *tickets)
    assert adapter.most == workers


def test_without_workers_submit_compiles(adapter: Gated) -> None:
    with CompileQueue(adapter, workers=0) as queue:
        assert compile_threads() == []
        tickets = [queue.submit(regex(text)) for text in ("a", "a", "panic", "invalid", "invalid")]
    assert [each.state for each in tickets] == ["ready", "ready", "failed", "failed", "failed"]
    assert [each.how for each in tickets] == ["miss", "hit", "fault", "invalid", "invalid"]
    assert adapter.begun == ["a", "panic", "invalid"]


def test_a_poll_waits_for_the_interval_and_no_longer_than_needed(adapter: Gated) -> None:
    with CompileQueue(adapter, poll_interval_s=0.02) as queue:
        ticket = queue.submit(regex("hang"))
        start = time.monotonic()
        queue.poll()
        assert time.monotonic() - start >= 0.02 and ticket.state == "pending"
    with CompileQueue(adapter, poll_interval_s=20) as queue:
        ticket = queue.submit(regex("hang later"))
        threading.Timer(0.01, adapter.release, ["hang later"]).start()
        start = time.monotonic()
        settle(queue, ticket)
        assert queue.counts["polls"] == 1
        queue.poll()
        assert time.monotonic() - start < 10, "a poll waits though nobody does"


# Compiles that fail


@pytest.mark.parametrize(
    ("text", "how", "why"),
    [
        ("invalid", "invalid", "InvalidGrammar: unbalanced parenthesis at 3"),
        ("unsupported", "unsupported", "UnsupportedGrammar: no lookahead"),
        ("raise", "fault", "RuntimeError: the compiler gave up"),
        ("panic", "fault", "Panic: index out of bounds"),
        ("exit", "fault", "SystemExit: 3"),
    ],
)
def test_a_compile_that_fails_is_told_in_the_backends_words(
    adapter: Gated, queue: CompileQueue, text: str, how: str, why: str
) -> None:
    ticket = queue.submit(regex(text))
    settle(queue, ticket)
    assert (ticket.state, ticket.how, ticket.why, ticket.compiled) == ("failed", how, why, None)
    assert ticket.compile_ns is not None
    assert queue.counts[how] == 1
    after = queue.submit(regex("a"))
    settle(queue, after)
    assert after.state == "ready", "the thread did not outlive the failure"


@pytest.mark.parametrize("text", ["invalid", "unsupported"])
def test_what_a_backend_refuses_is_remembered(adapter: Gated, queue: CompileQueue, text: str) -> None:
    settle(queue, queue.submit(regex(text)))
    again = queue.submit(regex(text))
    assert (again.state, again.how) == ("failed", text) and again.why
    assert (queue.counts["cache_hit"], queue.counts[text], adapter.begun) == (1, 2, [text])


@pytest.mark.parametrize("text", ["raise", "panic"])
def test_a_fault_is_not_remembered(adapter: Gated, queue: CompileQueue, text: str) -> None:
    for _ in range(2):
        settle(queue, queue.submit(regex(text)))
    assert adapter.begun == [text] * 2 and queue.counts["fault"] == 2


def test_those_who_share_a_compile_share_its_failure(adapter: Gated, queue: CompileQueue) -> None:
    tickets = [queue.submit(regex("hang invalid")) for _ in range(2)]
    adapter.release("hang invalid")
    settle(queue, *tickets)
    assert [(each.state, each.how) for each in tickets] == [("failed", "invalid")] * 2


# Compiles that are given up


def test_a_compile_that_hangs_is_given_up_and_stops_no_other(adapter: Gated) -> None:
    with CompileQueue(adapter, workers=1, timeout_s=SHORT_S) as queue:
        hanging, behind = (
            queue.submit(regex("hang")),
            [queue.submit(regex(f"a{number}")) for number in range(5)],
        )
        settle(queue, hanging, *behind)
        assert (hanging.state, hanging.how, hanging.compile_ns) == ("failed", "timeout", None)
        assert hanging.why == f"the compile ran for more than {SHORT_S:g} s"
        assert [each.state for each in behind] == ["ready"] * 5
        assert (queue.counts["timeout"], queue.counts["abandoned"]) == (1, 1)
        assert len(compile_threads()) == 2
        adapter.release("hang")
        until(lambda: len(compile_threads()) == 1, "the thread that was left behind ends")


def test_waiting_for_a_thread_is_no_timeout(adapter: Gated) -> None:
    """Whoever waits behind a compile that hangs has all of its own time still."""
    with CompileQueue(adapter, workers=1, timeout_s=LONG_S) as queue:
        hanging, behind = queue.submit(regex("hang 0")), queue.submit(regex("hang 1"))
        settle(queue, hanging)
        begun(adapter, "hang 1")
        queue.poll()
        assert (hanging.how, behind.state) == ("timeout", "pending")
        settle(queue, behind)
        assert behind.how == "timeout"


def test_whoever_joins_a_compile_that_hangs_has_a_time_of_its_own(adapter: Gated) -> None:
    with CompileQueue(adapter, timeout_s=LONG_S) as queue:
        settle(queue, queue.submit(regex("hang")))
        joined = queue.submit(regex("hang"))
        queue.poll()
        assert (joined.state, joined.how) == ("pending", "shared")


def test_a_late_result_goes_to_the_cache_and_to_those_who_wait_by_then(adapter: Gated) -> None:
    with CompileQueue(adapter, timeout_s=SHORT_S) as queue:
        early = queue.submit(regex("hang"))
        settle(queue, early)
        joined = queue.submit(regex("hang"))
        adapter.release("hang")
        settle(queue, joined)
        assert (early.state, early.how) == ("failed", "timeout")
        assert (joined.state, joined.how, joined.compile_ns) == ("ready", "shared", None)
        assert queue.submit(regex("hang")).how == "hit"
        assert (queue.counts["late"], adapter.begun) == (1, ["hang"])


def test_many_requests_for_a_grammar_that_hangs_leave_one_thread_behind(adapter: Gated) -> None:
    with CompileQueue(adapter, timeout_s=SHORT_S) as queue:
        for _ in range(4):
            ticket = queue.submit(regex("hang"))
            settle(queue, ticket)
            assert ticket.how == "timeout"
        assert len(compile_threads()) == 2 and adapter.begun == ["hang"]


def test_a_request_that_was_asked_for_too_often_is_given_up(adapter: Gated) -> None:
    with CompileQueue(adapter, most_polls=3) as queue:
        running, waiting = queue.submit(regex("hang")), queue.submit(regex("hang too"))
        begun(adapter, "hang")
        for _ in range(2):
            queue.poll()
        assert (running.state, waiting.state) == ("pending", "pending")
        later = queue.submit(regex("hang"))
        queue.poll()
        assert (running.state, running.how, running.why) == ("failed", "timeout", "no grammar after 3 polls")
        assert (waiting.state, waiting.how) == ("failed", "timeout"), "waiting for a thread counts"
        assert later.state == "pending" and queue.counts["abandoned"] == 0, "somebody still waits for it"
        for _ in range(2):
            queue.poll()
        assert later.how == "timeout" and queue.counts["abandoned"] == 1
        after = queue.submit(regex("a"))
        settle(queue, after)
        assert after.state == "ready"
        assert adapter.begun == ["hang", "a"], "what nobody waits for any more was begun"


# Requests that leave


def test_cancelled_before_its_compile_began_it_never_begins(adapter: Gated, queue: CompileQueue) -> None:
    first, gone = queue.submit(regex("hang")), queue.submit(regex("b"))
    begun(adapter, "hang")
    queue.cancel(gone)
    adapter.release("hang")
    settle(queue, first, queue.submit(regex("c")))
    assert (gone.state, gone.why) == ("failed", "cancelled")
    assert adapter.begun == ["hang", "c"] and queue.counts["cancelled"] == 1
    again = queue.submit(regex("b"))
    settle(queue, again)
    assert (again.state, again.how) == ("ready", "miss")


def test_cancelled_during_its_compile_the_result_is_kept_for_others(
    adapter: Gated, queue: CompileQueue
) -> None:
    gone, stays = queue.submit(regex("hang")), queue.submit(regex("hang"))
    begun(adapter, "hang")
    queue.cancel(gone)
    queue.cancel(gone)
    adapter.release("hang")
    settle(queue, stays)
    assert (gone.state, gone.compiled, stays.state, queue.counts["cancelled"]) == ("failed", None, "ready", 1)
    alone = queue.submit(regex("hang alone"))
    begun(adapter, "hang alone")
    queue.cancel(alone)
    adapter.release("hang alone")
    again = queue.submit(regex("hang alone"))
    settle(queue, again)
    assert again.state == "ready" and adapter.begun == ["hang", "hang alone"]


def test_cancelled_after_its_compile_it_lets_go(adapter: Gated) -> None:
    with CompileQueue(adapter, cache=False) as queue:
        ticket = queue.submit(regex("a"))
        settle(queue, ticket)
        assert adapter.alive() == 1
        queue.cancel(ticket)
        gc.collect()
        assert (ticket.state, ticket.compiled, adapter.alive()) == ("ready", None, 0)


def test_a_cancelled_compile_that_hangs_does_not_keep_its_thread(adapter: Gated) -> None:
    with CompileQueue(adapter, timeout_s=SHORT_S) as queue:
        gone = queue.submit(regex("hang"))
        begun(adapter, "hang")
        queue.cancel(gone)
        after = queue.submit(regex("a"))
        settle(queue, after)
        assert after.state == "ready" and queue.counts["timeout"] == 0


# Nothing is left


def test_closed_it_leaves_no_thread_and_no_compiled_grammar(adapter: Gated) -> None:
    queue = CompileQueue(adapter, workers=3)
    tickets = [queue.submit(regex(f"{number}")) for number in range(10)]
    tickets += [queue.submit(regex(text)) for text in ("raise", "panic", "invalid")]
    settle(queue, *tickets)
    assert adapter.alive() == 10
    del tickets
    queue.close()
    gc.collect()
    assert compile_threads() == [] and adapter.alive() == 0


def test_closed_in_the_middle_of_compiles_it_waits_for_none_and_drops_what_comes(adapter: Gated) -> None:
    queue = CompileQueue(adapter, workers=2, timeout_s=SHORT_S)
    settle(queue, queue.submit(regex("hang 0")))
    tickets = [queue.submit(regex(f"hang {number}")) for number in range(1, 6)]
    begun(adapter, "hang 2")
    start = time.monotonic()
    queue.close()
    assert time.monotonic() - start < 5
    assert [(each.state, each.why) for each in tickets] == [("failed", "the queue was closed")] * 5
    for number in range(6):
        adapter.release(f"hang {number}")
    until(lambda: compile_threads() == [], "the threads end with their compiles")
    gc.collect()
    assert adapter.alive() == 0
    assert set(adapter.begun) <= {"hang 0", "hang 1", "hang 2"}, "a compile began after the end"


def sizes(queue: CompileQueue) -> int:
    """How many things the queue's own collections hold, its counts aside."""
    return sum(
        len(each)
        for name, each in vars(queue).items()
        if isinstance(each, dict) and name not in ("counts", "_cache")
    )


def polled(queue: CompileQueue) -> int:
    """The same after another poll."""
    queue.poll()
    return sizes(queue)


def churn(queue: CompileQueue, rounds: int) -> None:
    """Every way a request can go, four a round, over few grammars."""
    for number in range(rounds):
        texts = (f"{number % 5}", "invalid", "panic", f"{number % 3}")
        tickets = [queue.submit(regex(text)) for text in texts]
        queue.cancel(tickets[3])
        settle(queue, *tickets[:3])


def test_thousands_of_requests_leave_nothing_in_the_queue(adapter: Gated) -> None:
    with CompileQueue(adapter, workers=2) as queue:
        churn(queue, 300)
        gc.collect()
        before, objects = sizes(queue), len(gc.get_objects())
        churn(queue, 2_500)
        gc.collect()
        assert (before, sizes(queue)) == (0, 0)
        assert len(gc.get_objects()) - objects < 200
        assert adapter.alive() == 5 and len(compile_threads()) == 2


@pytest.mark.parametrize("seed", range(4))
def test_every_request_is_counted_once_whatever_happens(adapter: Gated, seed: int) -> None:
    """A random order of requests, cancels, polls and releases, with hangs, timeouts and late results."""
    draw = random.Random(seed)
    texts = (
        "a",
        "b",
        "raise",
        "panic",
        "invalid",
        "unsupported",
        *(f"hang {number}" for number in range(6)),
        "hang invalid",
        "hang raise",
    )
    with CompileQueue(
        adapter, cache=seed != 3, workers=2, timeout_s=0.004, most_polls=(None, 40)[seed % 2]
    ) as queue:
        tickets: list[Ticket] = []
        for _ in range(400):
            if draw.random() < 0.6:
                tickets.append(queue.submit(regex(draw.choice(texts))))
            if draw.random() < 0.15 and tickets:
                queue.cancel(draw.choice(tickets))
            if draw.random() < 0.1:
                adapter.release(draw.choice(texts))
            queue.poll(draw.choice((0, 0, 0.001)))
        for text in texts:
            adapter.release(text)
        settle(queue, *tickets)
        counts = queue.counts
        assert counts["cache_hit"] + counts["cache_miss"] + counts["cache_shared"] == len(tickets)
        failures = sum(counts[each] for each in ("timeout", "invalid", "unsupported", "fault", "cancelled"))
        assert failures == sum(each.state == "failed" for each in tickets)
        assert counts["timeout"] and counts["late"] <= counts["abandoned"]
        until(lambda: polled(queue) == 0, "all compiles are forgotten")
        assert len(adapter.begun) <= counts["cache_miss"] and counts["late"] == counts["abandoned"]
        assert len(set(adapter.begun)) == len(adapter.begun) - again(adapter) or seed == 3
        until(lambda: len(compile_threads()) == 2, "as many threads as workers")


def again(adapter: Gated) -> int:
    """Compiles of texts whose outcome is not remembered, or which nobody waited for, beyond the first of
    each."""
    faults = [each for each in adapter.begun if "raise" in each or "panic" in each]
    return len(faults) - len(set(faults))


def test_thousands_of_grammars_without_a_cache_are_all_let_go(adapter: Gated) -> None:
    with CompileQueue(adapter, cache=False, workers=1) as queue:
        for number in range(5_000):
            ticket = queue.submit(regex(f"{number}"))
            settle(queue, ticket)
        del ticket
        gc.collect()
        assert sizes(queue) == 0 and adapter.alive() == 0


# The checks see queues that are wrong


def check_objects_are_apart(make: MakeQueue) -> None:
    """What one request accepts moves no other."""
    with make(Gated()) as queue:
        tickets = [queue.submit(regex("a")) for _ in range(2)]
        settle(queue, *tickets)
        one, two = (_object(each) for each in tickets)
        one.accept_token(1)
        assert (one.position, two.position) == (1, 0)


def _object(ticket: Ticket) -> CountingObject:
    assert ticket.compiled is not None
    started = ticket.compiled.start()
    assert isinstance(started, CountingObject)
    return started


def check_a_timeout_is_not_remembered(make: MakeQueue) -> None:
    """The compile is let go on after the timeout: whoever asks then gets the grammar."""
    adapter = Gated()
    with make(adapter, timeout_s=SHORT_S) as queue:
        settle(queue, queue.submit(regex("hang")))
        adapter.release("hang")
        again = queue.submit(regex("hang"))
        settle(queue, again)
        assert again.state == "ready"


def check_a_thread_that_hangs_is_replaced(make: MakeQueue) -> None:
    adapter = Gated()
    with make(adapter, timeout_s=SHORT_S) as queue:
        settle(queue, queue.submit(regex("hang")))
        after = queue.submit(regex("a"))
        end = time.monotonic() + 1
        while after.state == "pending" and time.monotonic() < end:
            queue.poll(0.005)
        adapter.release("hang")
        assert after.state == "ready"


class OneObject(CompiledGrammar):
    def __init__(self) -> None:
        self.object = CountingObject()

    def start(self) -> GrammarObject:
        return self.object


class SharesItsObject(CompileQueue):
    """Every request gets the same object."""

    def _remember(self, grammar: Grammar, outcome: CompileOutcome) -> None:
        if isinstance(outcome.result, CountingGrammar):
            object.__setattr__(outcome, "result", OneObject())
        super()._remember(grammar, outcome)


class RemembersTimeouts(CompileQueue):
    """As SGLang does."""

    def _time_out(self, waiting: Any, why: str) -> None:
        super()._time_out(waiting, why)
        self._cache[waiting.ticket.grammar] = waiting.outcome


class WaitsForItsThread(CompileQueue):
    """Gives the request up, but not the thread."""

    def _give_up(self, threads: Any) -> None:
        class Kept:
            running = threads.running
            drop = threads.drop

            def abandon(self, job: object) -> bool:
                return False

        super()._give_up(Kept())  # type: ignore[arg-type]


CHECKS = (check_objects_are_apart, check_a_timeout_is_not_remembered, check_a_thread_that_hangs_is_replaced)


@pytest.mark.parametrize("check", CHECKS)
def test_the_queue_holds_to_the_checks(check: Callable[[MakeQueue], None]) -> None:
    check(CompileQueue)


@pytest.mark.parametrize(
    ("wrong", "check"),
    list(zip((SharesItsObject, RemembersTimeouts, WaitsForItsThread), CHECKS, strict=True)),
    ids=lambda each: each.__name__,
)
def test_a_wrong_queue_is_seen_by_its_check_and_by_no_other(
    wrong: MakeQueue, check: Callable[[MakeQueue], None]
) -> None:
    for each in CHECKS:
        if each is check:
            with pytest.raises(AssertionError):
                each(wrong)
        else:
            each(wrong)


# Real backends


@pytest.mark.parametrize("name", ["xgrammar", "llguidance"])
def test_real_backends_compile_in_two_threads(name: str) -> None:
    pytest.importorskip(name)
    from harness.backend.registry import load
    from harness.backend.vocabulary import byte_vocabulary

    vocabulary = byte_vocabulary()
    grammars = [
        Grammar("json_schema", f'{{"type": "array", "items": {{"const": {number}}}}}') for number in range(6)
    ] * 2
    with CompileQueue(load(name)(vocabulary), workers=2) as queue:
        tickets = [queue.submit(each) for each in [*grammars, Grammar("regex", "(")]]
        settle(queue, *tickets)
        for number, ticket in enumerate(tickets[:-1]):
            assert ticket.compiled is not None, ticket.why
            started = ticket.compiled.start()
            assert started.accept_tokens([*f"[{number % 6}]".encode(), vocabulary.eos_token]) == 4
            assert ticket.compiled.start().accept_tokens(b"[9]") == 1
        assert (tickets[-1].state, tickets[-1].how) == ("failed", "invalid") and tickets[-1].why
        assert [queue.counts[each] for each in ("cache_miss", "cache_shared", "cache_hit")] == [7, 6, 0]


def test_a_thread_that_waits_holds_no_grammar(adapter: Gated, queue: CompileQueue) -> None:
    grammar = regex("a" * 1_000)
    before = sys.getrefcount(grammar)
    ticket = queue.submit(grammar)
    settle(queue, ticket)
    queue._cache.clear()
    del ticket
    gc.collect()
    until(lambda: sys.getrefcount(grammar) <= before, "the thread lets the grammar go")
