"""The decode loop at its boundaries: drafts that lie across the end of the thinking, into a tag and over its
end, and past the end of the output. Every strategy writes the same; what is wrong there is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

import miniatures.wrong_boundaries as wrong_boundaries
import pytest
from decode_mistakes import put_mistake
from decode_tools import (
    EOS,
    WORDS,
    Around,
    AroundAdapter,
    FakeModel,
    NoRollback,
    alone,
    regex,
    request,
    serve,
)

from harness.backend.bridge import reasoning
from harness.backend.bridge.reasoning import ReasoningObject
from harness.backend.grammar import Grammar
from harness.backend.vocabulary import Vocabulary
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.jump_forward import JumpForward
from harness.walk.loop.strategies.speculative import Speculative

END = tuple(b"{{t")
TAG = Grammar(
    "structural_tag",
    json.dumps(
        {
            "triggers": ["<f"],
            "structures": [{"begin": "<f=name>", "schema": {"type": "integer"}, "end": "</f>"}],
        }
    ),
)
THOUGHT = b"ab <f=name>x {{f {"
"""It holds a trigger and a tag that goes on wrongly, and its last character begins the end."""
OUTPUTS: dict[Grammar, bytes] = {
    TAG: "ab{{t日<f=name>12</f>é".encode(),
    regex(r"<f=name>[0-9]{1,2}</f>\{\{t(日|本)"): "<f=name>12</f>{{t日".encode(),
}
"""In each the end of the thinking comes a second time, and some text is forced."""


class Straddles(Strategy):
    """Drafts what the output should go on with, wrong at one place."""

    draft_tokens = 7

    def __init__(self, vocabulary: Vocabulary, wrong: int = -1) -> None:
        super().__init__(vocabulary)
        self.wrong = wrong

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        known = list(active.request.reference or active.request.prompt)
        if 0 <= self.wrong < len(known):
            known[self.wrong] = ord("f") if known[self.wrong] != ord("f") else ord("b")
        return known[len(active.ids) : len(active.ids) + self.draft_tokens]


class Miscounts(Strategy):
    """Drafts another number than the right one, and what comes behind it: the grammar takes all of it."""

    draft_tokens = 7

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        number = WORDS.ids_by_bytes[b"12"]
        known = [ord("3") if token == number else token for token in active.request.reference or ()]
        return known[len(active.ids) : len(active.ids) + self.draft_tokens]


class EndsNow(Strategy):
    """Guesses in each pass that the thinking is over, and how the answer begins."""

    draft_tokens = 7

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        return () if active.answer_at() is not None else (*END, *b"<f=")


def thinking_is_crossed(places: Sequence[int]) -> None:
    """Decodes in every way over the boundaries; `places` are those at which a draft is wrong."""
    ways: list[Callable[[Vocabulary], Strategy]] = [Strategy, JumpForward, Straddles, EndsNow, Speculative]
    ways += [Miscounts, *(partial(Straddles, wrong=place) for place in places)]
    for grammar, output in OUTPUTS.items():
        reference = (*WORDS.encode(THOUGHT), *END, *WORDS.encode(output), EOS)
        for way in ways:
            prompt = reference[:-1] if way is Speculative else (97,)
            asked = request(
                "asked", grammar, prompt=prompt, reference=reference, limit=len(reference) + 9, reasoning=True
            )
            adapters = [None, AroundAdapter(NoRollback)] if way in (EndsNow, Miscounts) else [None]
            for adapter in adapters:
                (done,) = serve([asked], adapter, way, think_end=END, overlap=False, canonical=True)
                assert done.end == "end_of_sequence", (way, done.why)
                assert WORDS.decode(done.ids) == THOUGHT + bytes(END) + output
                assert (done.ids == reference or way is JumpForward) and done.canonical
                if way in (Straddles, Speculative):
                    assert done.account.accepted_drafts > len(reference) // 2


def thinking_comes_to_its_end() -> None:
    """Draws outputs from a model that likes to end them: none ends while it thinks."""
    drawn = [request(f"{seed}", TAG, seed=seed, reasoning=True, limit=30) for seed in range(6)]
    completed = serve(
        drawn, AroundAdapter(Around), model=FakeModel(end=4.0), think_end=(ord("a"),), overlap=False
    )
    for done in completed:
        assert done.end in ("end_of_sequence", "limit"), done.why
        assert EOS not in done.ids or ord("a") in done.ids


def nothing_comes_behind_the_end() -> None:
    """Drafts go on behind end-of-sequence; the output is that of the loop as one would write it."""
    for number in range(4):
        grammar = regex("[ab]{2,5}(cd)?")
        expected = alone(request("", grammar, prompt=(97 + number,)))
        assert EOS in expected

        class Known(Straddles):
            output = (*expected, *b"ab12")

            def draft(self, active: ActiveRequest) -> Sequence[int]:
                return self.output[len(active.ids) :][: self.draft_tokens]

        (done,) = serve([request("", grammar, prompt=(97 + number,))], None, Known, overlap=False)
        assert done.ids == expected and done.end == "end_of_sequence"


def questions(places: Sequence[int]) -> None:
    thinking_is_crossed(places)
    thinking_comes_to_its_end()
    nothing_comes_behind_the_end()


SOME = (len(THOUGHT) - 3, len(THOUGHT) + 1)


def test_every_way_over_the_boundaries_writes_the_same() -> None:
    questions(range(0, len(THOUGHT) + 22, 2))


RIGHT_IN_THE_LOOP = {"LooksForNoEndInDrafts"}
"""What is wrong in a call that the loop does not make: it tries drafts by accepting them."""
WRONG = [
    each
    for each in vars(wrong_boundaries).values()
    if isinstance(each, type) and issubclass(each, ReasoningObject) and each is not ReasoningObject
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_thinks_wrongly_is_noticed(wrong: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasoning, "_kind", lambda inner: wrong)
    if wrong.__name__ in RIGHT_IN_THE_LOOP:
        questions(())
    else:
        with pytest.raises((AssertionError, ValueError, IndexError)):
            questions(SOME)


MISTAKES = [
    # what comes behind the end of the output in a draft is written
    ("batch", "if not agreed or ids[-1] not in self._ends:", "if True:"),
    # what the object has of a draft is not taken back, or one token too few
    ("batch", "active.rewind(active.ahead - agreed, ids)", "pass"),
    ("batch", "active.rewind(active.ahead - agreed, ids)", "active.rewind(active.ahead - agreed - 1, ids)"),
    # drafts are tried on the mask of their first place
    ("step", "_fill(active, masks, slot + place + 1)", "_fill(active, masks, slot)"),
    # a request that thinks is not told apart from its own grammar
    ("loop", "waiting.compiled = thinking.wrap(waiting.compiled)", "pass"),
]


@pytest.mark.parametrize(("module", "right", "wrong"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_of_the_loop_is_noticed(
    module: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_mistake(module, right, wrong, monkeypatch.setattr)
    with pytest.raises(BaseException):  # noqa: B017  (whatever way it shows itself)
        questions(SOME)
