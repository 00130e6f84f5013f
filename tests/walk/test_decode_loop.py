"""The decode loop with a model without a network: what comes out depends on the request alone."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
import torch
from decode_batches import GRAMMARS, OPTIONS, WithKernel, batches
from decode_questions import the_draws_are_those_of_the_distribution
from decode_tools import (
    EOS,
    WORDS,
    Around,
    AroundAdapter,
    FakeModel,
    Locked,
    alone,
    as_if_the_cpu_worked_beside,
    regex,
    replayed,
    request,
    serve,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.grammar import Bitmask, Grammar, allowed_tokens
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput
from harness.oracle.reference import Reference
from harness.walk.loop import loop as loop_module
from harness.walk.loop import respelling
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.masks import Masks, stream_of
from harness.walk.loop.outcome import STEP
from harness.walk.loop.request import Request
from harness.walk.loop.sampling import BONUS, NOTHING, Sampler
from harness.walk.loop.step import Fills
from harness.walk.loop.strategies.base import Strategy

EXACT = Reference(WORDS)


@settings(max_examples=25, deadline=None)
@given(batches(), OPTIONS, st.integers(1, 4))
def test_an_output_depends_on_its_request_alone(
    requests: list[Request], options: dict[str, Any], rows: int
) -> None:
    completed = serve(requests, WithKernel(WORDS), model=FakeModel(rows=rows), **options)
    for each, wanted in zip(completed, requests, strict=True):
        assert each.ids == alone(wanted, EXACT), wanted
        assert each.end == ("end_of_sequence" if each.ids[-1] == EOS else "limit")
        assert each.account.passes == each.account.sampled == len(each.ids)


def test_a_bool_mask_gives_what_a_bitmask_gives() -> None:
    requests = [request(f"r{number}", grammar, seed=number) for number, grammar in enumerate(GRAMMARS)]
    for overlap in (False, True):
        bools = serve(requests, Reference(WORDS, mask="bool"), overlap=overlap)
        assert [each.ids for each in bools] == [alone(each, EXACT) for each in requests]


def test_several_threads_fill_the_masks_of_one_batch() -> None:
    requests = [request(f"r{number}", GRAMMARS[1 + number % 4], seed=number) for number in range(12)]
    completed = serve(requests, AroundAdapter(Locked), model=FakeModel(rows=6), fill_threads=4)
    assert [each.ids for each in completed] == [alone(each, EXACT) for each in requests]


def test_what_the_loop_itself_needs_to_begin_is_in_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowToBegin(Fills):
        def __init__(self, *given: Any) -> None:
            time.sleep(0.5)
            super().__init__(*given)

    monkeypatch.setattr(loop_module, "Fills", SlowToBegin)
    (done,) = serve([replayed("bound", GRAMMARS[1], b'{"name": "red"}')])
    assert done.arrived_ns < done.token_ns[0] < 0.4e9


def test_ids_behind_the_vocabulary_are_never_chosen() -> None:
    model = FakeModel(rows=2)
    assert int(model.table.argmax(1).min()) >= WORDS.size
    completed = serve([request("free"), request("bound", regex("[a-z]*"))], model=model)
    assert all(token < WORDS.size for each in completed for token in each.ids)


def test_the_draws_are_those_of_the_distribution() -> None:
    the_draws_are_those_of_the_distribution()


def test_replay_gives_the_reference_whatever_the_model_says() -> None:
    text = b'{"name": "red"}'
    strange = [*map(int, text), EOS]  # bytes, not the tokenizer's own
    requests = [
        replayed("bound", GRAMMARS[1], text),
        replayed("free", None, text),
        request("spelled", GRAMMARS[1], reference=tuple(strange)),
        replayed("unlike", GRAMMARS[1], b'{"name": "green"}'),
        replayed("long", None, b"x" * 30, limit=10),
        request("open end", None, reference=(97, 98)),
    ]
    bound, free, spelled, unlike, long, open_end = serve(requests, canonical=True)
    assert bound.ids == free.ids == requests[0].reference and bound.end == free.end == "end_of_sequence"
    assert spelled.ids == tuple(strange)
    assert [bound.canonical, free.canonical, spelled.canonical] == [True, True, False]
    reference = requests[3].reference
    assert reference is not None
    assert (unlike.end, unlike.stopped_at) == ("refused", len(unlike.ids))
    assert (
        WORDS.decode(reference[: len(unlike.ids) + 1]) == b'{"name": "g'
        and ("forbids the reference's token") in unlike.why
    )
    assert long.end == "limit" and len(long.ids) == 10
    assert open_end.end == "limit" and open_end.ids == (97, 98)
    assert bound.stopped_at is None and float(FakeModel().table.max()) < BONUS / 100


def test_a_mask_that_allows_nothing_ends_the_request() -> None:
    dead = Grammar("regex", "a\x00")  # whose second byte the vocabulary below does not have
    vocabulary = replace(WORDS, name="without zero", tokens=(b"\xff", *WORDS.tokens[1:]))
    (each,) = serve([request("r", dead)], Reference(vocabulary))
    assert (each.end, each.why, each.ids, each.account.passes) == (
        "refused",
        "the mask allows nothing",
        (97,),
        2,
    )


def test_long_prompts_are_fed_in_chunks_and_only_their_last_pass_counts() -> None:
    model = FakeModel(chunk=8, rows=2)
    with CompileQueue(EXACT, workers=0) as queue:
        loop = Loop(model, WORDS, Strategy(WORDS), queue)
        served = loop.serve(
            [request("long", prompt=range(1, 30), limit=3), request("short", GRAMMARS[2], limit=3)]
        )
    steps = [dict(zip(STEP, step, strict=True)) for step in served.steps]
    assert served.completed[0].account.passes == len(served.completed[0].ids)
    assert [step["fed"] for step in steps[:4]] == [8 + 2, 8 + 1, 8 + 1, 5]
    assert [step["rows"] for step in steps[:4]] == [2, 2, 2, 1]
    assert all(
        step["wall_ns"] >= step["forward_ns"] + step["exposed_ns"] + step["apply_ns"] + step["sample_ns"]
        for step in steps
    )


def test_fills_run_while_the_model_works_only_with_overlap() -> None:
    filling, passing = threading.Event(), threading.Event()

    class Meets(Reference):
        """Ends its fill when the pass has begun."""

        met = True

        def fill_bitmasks(self, objects: Any, bitmasks: Any) -> None:
            filling.set()
            self.met = passing.wait(timeout=self.patience) and self.met
            super().fill_bitmasks(objects, bitmasks)
            passing.clear()

        patience = 10.0

    def meet() -> None:
        filling.wait(timeout=10)
        filling.clear()
        passing.set()

    model, adapter = FakeModel(), Meets(WORDS)
    model.during = meet
    serve([request("r", GRAMMARS[1], limit=5)], adapter, model=model, batch_fill=True)
    assert adapter.met
    adapter.patience, model.during = 0.01, lambda: None
    serve([request("r", GRAMMARS[1], limit=2)], adapter, model=model, batch_fill=True, overlap=False)
    assert not adapter.met


@pytest.mark.parametrize(("device", "threads"), [("cuda", 1), ("cuda", 2), ("cpu", 1)])
def test_a_device_is_given_its_work_before_fills_begin(
    monkeypatch: pytest.MonkeyPatch, device: str, threads: int
) -> None:
    """On CUDA a pass is launched, what follows is queued behind it, and only the choice of tokens waits. One
    thread that fills is the loop's own; several are others. A CPU's fills come first, in another thread."""
    order: list[str] = []
    fillers: set[bool] = set()

    class Notes(Around):
        def fill_bitmask(self, bitmask: Bitmask) -> None:
            fillers.add(threading.current_thread() is threading.main_thread())
            super().fill_bitmask(bitmask)

    def noted(owner: type, name: str) -> None:
        inner = getattr(owner, name)

        def note(*arguments: Any) -> Any:
            order.append(name)
            return inner(*arguments)

        monkeypatch.setattr(owner, name, note)

    if device == "cuda":
        as_if_the_cpu_worked_beside(monkeypatch)
    for owner, name in ((Fills, "begin"), (Fills, "wait"), (Masks, "apply"), (Sampler, "choose")):
        noted(owner, name)
    model, wanted = (
        FakeModel(),
        [request(f"r{number}", GRAMMARS[1], limit=6, seed=number) for number in range(3)],
    )
    model.during = lambda: order.append("pass")
    found = serve(wanted, AroundAdapter(Notes), model=model, ahead=False, fill_threads=threads)
    assert [each.ids for each in found] == [alone(each) for each in wanted]
    first = ["pass", "begin"] if device == "cuda" else ["begin", "pass"]
    assert order == [*first, "wait", "apply", "choose"] * (len(order) // 5)
    assert fillers == {device == "cuda" and threads == 1}


def test_what_is_hidden_is_not_exposed() -> None:
    class SlowToFill(Reference):
        def fill_bitmasks(self, objects: Any, bitmasks: Any) -> None:
            time.sleep(0.003)
            super().fill_bitmasks(objects, bitmasks)

    exposed = []
    for overlap in (True, False):
        model = FakeModel()
        model.during = lambda: time.sleep(0.01)
        with CompileQueue(SlowToFill(WORDS), workers=0) as queue:
            options = LoopOptions(overlap=overlap, batch_fill=True)
            served = Loop(model, WORDS, Strategy(WORDS), queue, options).serve(
                [request("r", regex("[a-d]{10}"), limit=8)]
            )
        steps = [dict(zip(STEP, step, strict=True)) for step in served.steps]
        exposed.append(min(step["exposed_ns"] for step in steps))  # a busy machine only adds to it
        assert all(step["fill_ns"] >= 3_000_000 for step in steps)
        own = [step["wall_ns"] - sum(step[name] for name in OTHERS) for step in steps]
        assert min(own) >= 0 and sorted(own)[len(own) // 2] < 2_000_000
    assert exposed[0] < 2_000_000 < 3_000_000 <= exposed[1]


OTHERS = ("forward_ns", "exposed_ns", "move_ns", "apply_ns", "sample_ns", "accept_ns", "strategy_ns")


def test_what_does_not_fit_is_said() -> None:
    loop = Loop(FakeModel(positions=20), WORDS, Strategy(WORDS), None)
    for wrong in (
        request("r", limit=19),
        request("r", prompt=()),
        request("r", limit=0),
        request("r", prompt=(9999,), limit=2),
        request("r", limit=2, reference=(9999,)),
        request("r", limit=2, reference=()),
    ):
        with pytest.raises(BadInput, match="request r"):
            loop.serve([wrong])
    with CompileQueue(EXACT, workers=0) as queue, pytest.raises(BadInput, match="no kernel 'fast'"):
        Loop(FakeModel(), WORDS, Strategy(WORDS), queue, LoopOptions(kernel="fast"))
    with (
        CompileQueue(Reference(WORDS, mask="bool"), workers=0) as queue,
        pytest.raises(BadInput, match="packed"),
    ):
        Loop(FakeModel(), WORDS, Strategy(WORDS), queue, LoopOptions(batch_fill=True))
    model = FakeModel()
    model.vocabulary_size = 100
    with pytest.raises(BadInput, match="too narrow"):
        Loop(model, WORDS, Strategy(WORDS), None)


def test_without_a_queue_nothing_is_constrained() -> None:
    wanted = [request("r", GRAMMARS[1], limit=9), replayed("s", GRAMMARS[1], b"zzz")]
    served = Loop(FakeModel(), WORDS, Strategy(WORDS), None).serve(wanted)
    assert served.completed[0].ids == alone(replace(wanted[0], grammar=None))
    assert served.completed[1].ids == wanted[1].reference and served.counts == {}


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda",
            marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")],
        ),
    ],
)
@pytest.mark.parametrize("mask", ["bitmask", "bool"])
def test_the_way_through_a_device_gives_what_the_host_gives(device: str, mask: Any) -> None:
    adapter = Reference(WORDS, mask=mask)
    logits = torch.randn((3, WORDS.size), generator=torch.Generator().manual_seed(1))
    wanted, chosen, masked = [97, NOTHING, 120], [], []
    for where in ("host", device):
        there = torch.device("cpu" if where == "host" else where)
        masks, sampler = Masks(adapter, 3, there), Sampler(there)
        if where == device:
            masks._on_host = sampler._on_host = False  # so that a machine without a device walks its way too
        for row, pattern in zip(masks.rows, ("[a-d]*", "(日本|語)+", "x"), strict=True):
            start = adapter.compile(regex(pattern)).start()
            (start.fill_bitmask if mask == "bitmask" else start.fill_bool_mask)(row)
        here = logits.clone().to(there)
        sampler.favour(here, wanted)
        masks.move(3)
        masks.apply(here)
        masked.append(here.cpu().clone())
        chosen.append(sampler.choose(here).known())
        here[1] = float("-inf")
        assert sampler.choose(here).known() == [97, NOTHING, 120]
        free = logits.clone().to(there)
        sampler.favour(free[:2], [5, 98])
        assert sampler.choose(free[:2]).known() == [5, 98]
    assert torch.equal(*masked) and chosen[0] == chosen[1]


def test_masks_are_unpacked_into_the_same_memory_each_time() -> None:
    adapter = Reference(WORDS)
    masks = Masks(adapter, 3, torch.device("cpu"))
    masks._on_host = False
    homes = set()
    for patterns in (("[a-d]*", "x", "(日本|語)+"), ("x", "[a-d]*")):
        for row, pattern in zip(masks.rows, patterns, strict=False):
            adapter.compile(regex(pattern)).start().fill_bitmask(row)
        masks.move(len(patterns))
        logits = torch.zeros((len(patterns), WORDS.size))
        masks.apply(logits)
        allowed = [allowed_tokens(row, WORDS.size) for row in masks.rows[: len(patterns)]]
        assert [(one == 0).nonzero().flatten().tolist() for one in logits] == [
            one.tolist() for one in allowed
        ]
        assert masks._forbidden is not None
        homes.add(masks._forbidden.data_ptr())
    assert len(homes) == 1


def test_a_device_has_one_queue_for_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: [device])
    stream_of.cache_clear()
    first, second, third = (stream_of(torch.device("cuda", at)) for at in (0, 0, 1))
    stream_of.cache_clear()
    assert first is second and first is not third


def test_the_tables_of_a_vocabulary_without_a_blank_are_built_too() -> None:
    letters = Vocabulary("letters", (b"a", b"b", b""), (2,), {2: "</s>"})
    respelling.prepare(letters)
