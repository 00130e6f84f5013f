"""Requests that think first, in the decode loop: alone, beside others, and with every strategy over the
border."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from decode_tools import (
    EOS,
    WORDS,
    Around,
    AroundAdapter,
    FakeModel,
    NeitherBackNorCopy,
    NoRollback,
    alone,
    an_arm_in_this_process,
    regex,
    request,
    serve,
)

from harness.backend.bridge.reasoning import ReasoningObject, with_reasoning
from harness.backend.bridge.thinking import think_end
from harness.backend.grammar import Adapter, MaskFormat
from harness.backend.registry import load
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.errors import BadInput
from harness.oracle.reference import Reference
from harness.serve.decode.arm import DecodeHandler
from harness.serve.decode.setting import Setting
from harness.serve.decode.workloads import Workload, answer, find_workload, requests
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.request import Request
from harness.walk.loop.strategies import make_strategy, strategies
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.jump_forward import JumpForward

THINK = WORDS.size - 2
EXACT = Reference(WORDS)
ANSWER = regex("[ab]{3}(cd)?name")


def inclined(**fields: Any) -> FakeModel:
    """A model that likes to end its thinking."""
    model = FakeModel(**fields)
    model.table[:, THINK] += 1.5
    return model


def mixture() -> list[Request]:
    """Thinking, answering at once, and unconstrained; greedy and drawn."""
    kinds: list[dict[str, Any]] = [{"reasoning": True}, {}, {"reasoning": True, "seed": 7}, {"seed": 8}]
    wanted = [
        request(f"{number} {kind}", ANSWER, prompt=(97 + number,), **kind)
        for number in range(5)
        for kind in kinds
    ]
    return [*wanted, request("free", None, seed=3), request("free, thinking", None, seed=4, reasoning=True)]


@pytest.mark.parametrize(
    ("mask_format", "options"),
    [
        ("bitmask", {}),
        ("bool", {"overlap": False}),
        ("bitmask", {"batch_fill": True}),
        ("bitmask", {"batch_fill": True, "overlap": False}),
    ],
)
def test_in_a_mixture_each_has_what_it_has_alone(mask_format: MaskFormat, options: dict[str, Any]) -> None:
    adapter = Reference(WORDS)
    adapter.mask_format = mask_format
    wanted, thinking = mixture(), with_reasoning(EXACT, (THINK,))
    found = serve(wanted, adapter, model=inclined(rows=6), think_end=(THINK,), **options)
    for each, asked in zip(found, wanted, strict=True):
        assert each.ids == alone(asked, thinking if asked.reasoning else EXACT, model=inclined()), asked.name
        assert each.end in ("end_of_sequence", "limit") and each.account.passes == len(each.ids)
    thought = [
        each.ids.index(THINK)
        for each, asked in zip(found, wanted, strict=True)
        if asked.reasoning and THINK in each.ids
    ]
    answered = [
        each
        for each, asked in zip(found, wanted, strict=True)
        if asked.reasoning and asked.grammar and each.ids[-1] == EOS
    ]
    assert len(answered) >= 5 and len(set(thought)) >= 4, "the border is to be crossed at several places"
    assert not any(
        THINK in each.ids
        for each, asked in zip(found, wanted, strict=True)
        if asked.grammar and not asked.reasoning
    )


def test_a_thinking_request_without_an_end_of_it_is_refused() -> None:
    with pytest.raises(BadInput, match="nothing says which ids end"):
        serve([request("thinks", ANSWER, reasoning=True)])
    with pytest.raises(BadInput, match="cannot end the thinking"):
        serve([], think_end=(EOS,))


def thinking_replay(thought: bytes, said: bytes, end: int = THINK, **fields: Any) -> Request:
    reference = (*WORDS.encode(thought), end, *WORDS.encode(said), EOS)
    return request(
        "replay",
        fields.pop("grammar", ANSWER),
        reference=reference,
        limit=len(reference) + 20,
        reasoning=True,
        **fields,
    )


def test_a_replay_that_nobody_lets_think_is_refused() -> None:
    asked = thinking_replay(b"it is so", b"abaname")
    (done,) = serve([asked], think_end=(THINK,))
    assert done.end == "end_of_sequence" and done.ids == asked.reference
    (done,) = serve(
        [Request(asked.name, asked.prompt, asked.limit, ANSWER, asked.reference)], think_end=(THINK,)
    )
    assert done.end == "refused" and done.ids == ()


# Over the border


class Guesses(Strategy):
    """Drafts what the output should go on with, wrong at one place."""

    draft_tokens = 4

    def __init__(self, vocabulary: Vocabulary, wrong: int) -> None:
        super().__init__(vocabulary)
        self.wrong = wrong

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        reference = list(active.request.reference or ())
        if self.wrong < len(reference):
            reference[self.wrong] = ord("b") if reference[self.wrong] != ord("b") else ord("a")
        return [token for token in reference[len(active.ids) : len(active.ids) + 4] if token != EOS]


@pytest.mark.parametrize("make", [Around, NoRollback, NeitherBackNorCopy])
def test_drafts_that_go_wrong_anywhere_do_not_change_the_output(make: type[Around]) -> None:
    asked = thinking_replay(b"xyz!", b"abacdname")
    rejected = 0
    for wrong in range(len(asked.reference or ())):
        (done,) = serve(
            [asked],
            AroundAdapter(make),
            lambda vocabulary, wrong=wrong: Guesses(vocabulary, wrong),  # type: ignore[misc]
            think_end=(THINK,),
        )
        assert done.ids == asked.reference and done.end == "end_of_sequence", (wrong, done.why)
        rejected += done.account.drafted - done.account.accepted_drafts
        assert done.account.accepted_drafts > 0
    assert rejected >= len(asked.reference or ()) // 2


class Hasty(Strategy):
    """Guesses in each pass that the thinking is over."""

    draft_tokens = 3

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        return () if active.answer_at() is not None else (THINK, ord("a"), ord("b"))


def test_a_draft_that_thinks_too_short_is_taken_back_across_the_border(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    across: list[bool] = []
    plain = ReasoningObject.rollback

    def watched(self: ReasoningObject, count: int) -> None:
        answered = not self.thinks
        plain(self, count)
        across.append(answered and self.thinks)

    monkeypatch.setattr(ReasoningObject, "rollback", watched)
    asked = thinking_replay(b"xyz!", b"baacdname")
    (done,) = serve([asked], AroundAdapter(Around), Hasty, think_end=(THINK,))
    assert done.ids == asked.reference and done.account.accepted_drafts == 1
    assert across == [True] * 4 + [False], (
        "four times too short, and in the fifth draft only the border was right"
    )
    (done,) = serve([asked], AroundAdapter(NoRollback), Hasty, think_end=(THINK,))
    assert done.ids == asked.reference and len(across) == 5, (
        "where nothing goes back, a fresh object goes there"
    )


def test_forced_text_behind_a_plain_border_never_merges_with_it() -> None:
    end, grammar = ord("{"), regex('"} and so on[xy]')
    assert WORDS.encode(b'{"') == [WORDS.ids_by_bytes[b'{"']], "the vocabulary would merge the two"
    asked = thinking_replay(b"so: ", b'"} and so onx', end, grammar=grammar)
    step, jump = (
        serve([asked], None, strategy, think_end=(end,), canonical=True)[0]
        for strategy in (Strategy, JumpForward)
    )
    assert step.ids == jump.ids == asked.reference and step.canonical and jump.canonical
    assert jump.account.forced > 0 and jump.account.passes == step.account.passes - jump.account.forced


def test_a_border_that_is_not_kept_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, forced text merges with what ended the thinking, and the thinking never ends."""
    monkeypatch.setattr(ActiveRequest, "answer_at", lambda self: 0)
    asked = thinking_replay(b"so: ", b'"} and so onx', ord("{"), grammar=regex('"} and so on[xy]'))
    (done,) = serve([asked], None, JumpForward, think_end=(ord("{"),))
    assert done.ids != asked.reference


# The suite's reasoning texts


@cache
def backend(name: str, vocabulary: str) -> Adapter:
    return load(name)(load_vocabulary(vocabulary))


@pytest.mark.parametrize(
    ("name", "vocabulary", "strategy"),
    [
        *(("llguidance", "probe", strategy) for strategy in strategies()),
        ("xgrammar", "probe", "jump_forward"),
        ("xgrammar", "probe", "speculative"),
        ("llguidance", "tekken", "jump_forward"),
    ],
)
def test_the_suites_texts_think_and_answer(name: str, vocabulary: str, strategy: str) -> None:
    adapter = backend(name, vocabulary)
    known, end = adapter.vocabulary, think_end(adapter.vocabulary)
    thinking, plain = find_workload("reasoning").texts, find_workload("enums").texts[:2]
    texts = (*thinking, *plain)
    made = requests(Workload("mixture", texts), known, count=len(texts), prompt_tokens=4)
    model = FakeModel(known, rows=3, positions=1024, chunk=64)
    found = serve(
        made, adapter, lambda each: make_strategy(strategy, each, 4), model, think_end=(end,), canonical=True
    )
    for each, text, asked in zip(found, texts, made, strict=True):
        assert each.end == "end_of_sequence", (text.name, each.why)
        assert answer(text, each.ids, known) == text.content
        assert each.canonical or strategy == "interleaved"
        assert (end in each.ids) == asked.reasoning
        if strategy in ("stepwise", "speculative"):
            assert each.ids == asked.reference
    saved = sum(
        len(each.ids) - each.account.passes
        for each, asked in zip(found, made, strict=True)
        if asked.reasoning
    )
    assert (saved > 0) == (strategy != "stepwise")


@pytest.fixture
def arm() -> Iterator[DecodeHandler]:
    with an_arm_in_this_process():
        yield DecodeHandler(backend("llguidance", "probe"), "tiny", "cpu", None)


def test_an_arm_serves_the_reasoning_workload(arm: DecodeHandler) -> None:
    asked = Setting("reasoning", "jump_forward", batch=2, texts=2, prompt_tokens=4)
    said, _ = arm(
        {
            "op": "open",
            "rows": 2,
            "loads": {"reasoning": 2},
            "prompt_tokens": 4,
            "limit": None,
            "draft_tokens": 0,
        },
        b"",
    )
    assert "workloads" in said, said
    for role in ("constrained", "none"):
        said, _ = arm({"op": "run", "role": role, "setting": asked.to_json()}, b"")
        assert [each["end"] for each in said["completed"]] == ["end_of_sequence"] * 2 and said[
            "as_replayed"
        ] == [True, True]
        texts = [text.content for text in find_workload("reasoning").texts[:2]]
        assert [bytes.fromhex(each) for each in said["texts"]] == texts
