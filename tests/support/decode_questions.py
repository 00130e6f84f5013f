"""What the tests of the decode loop ask of it, and the mistakes that must be noticed by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from decode_tools import WORDS, alone, regex, request, serve

from harness.backend.grammar import Adapter, Grammar
from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.outcome import Account
from harness.walk.loop.request import Request
from harness.walk.loop.respelling import book
from harness.walk.loop.sampling import NOTHING, Sampler
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.jump_forward import JumpForward

EXACT = Reference(WORDS)


PERSON = regex(r'\{"name": "(red|reed|blue)", "age": [1-9][0-9]?\}')


CASES: list[tuple[Grammar, bytes]] = [
    (PERSON, b'{"name": "red", "age": 12}'),
    (PERSON, b'{"name": "reed", "age": 7}'),
    (Grammar("choice", '["abcdabcd", "abce", "cd"]'), b"abcdabcd"),
    (Grammar("choice", '["aaaaaaaaab", "aaaaaaaaac"]'), b"aaaaaaaaac"),
    (regex("(日本|日語)(😀|😁)"), "日語😁".encode()),
    (regex("x(😀|🚀)+y"), "x😀🚀y".encode()),
    (regex("all of this is forced"), b"all of this is forced"),
    (regex("[a-d]{0,9}"), b"abcdab"),
]


def ids(text: str | bytes) -> list[int]:
    return WORDS.encode(text.encode() if isinstance(text, str) else text)


def both(wanted: Sequence[Request], adapter: Adapter | None = None, **options: Any) -> None:
    """Serves stepwise and jumping: the same ids, and the passes that are saved are the tokens that were
    written."""
    stepwise = serve(wanted, adapter, **options)
    jumping = serve(wanted, adapter, JumpForward, canonical=True, **options)
    for slow, fast, wanted_one in zip(stepwise, jumping, wanted, strict=True):
        assert slow.ids == fast.ids == wanted_one.reference and slow.end == fast.end == "end_of_sequence", (
            slow,
            fast,
        )
        assert fast.account.passes == slow.account.passes - fast.account.forced
        assert fast.account.rolled_back == fast.account.retokenized == 0 and fast.canonical
        assert slow.account == Account(sampled=len(slow.ids), passes=len(slow.ids))


class Drafts(Strategy):
    """Proposes the reference, wrong at every fourth token; or the same token again and again."""

    name = "drafts"
    draft_tokens = 3

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.texts: dict[str, Sequence[int]] = {}

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        text = self.texts.get(active.request.name)
        at = len(active.ids)
        if text is None:
            return [97, 98, 99]
        return [
            token if (at + ahead) % 4 else 100
            for ahead, token in enumerate(text[at : at + self.draft_tokens])
        ]


def the_draws_are_those_of_the_distribution() -> None:
    sampler, logits = Sampler(torch.device("cpu")), torch.tensor([0.0, 1.0, 2.0, float("-inf")])
    counts = torch.zeros(4)
    for position in range(1000):
        noisy = logits.clone()
        sampler.disturb(noisy, 7, position)
        counts[sampler.choose(noisy[None]).known()[0]] += 1
    assert torch.allclose(counts / 1000, torch.softmax(logits, 0), atol=0.05)
    assert sampler.choose(torch.full((1, 4), float("-inf"))).known() == [NOTHING]


def tokens_in_the_place_of_others_are_counted_apart() -> None:
    account = Account()
    book(account, WORDS, list(b"abc"), [*ids("ab"), ord("c"), *ids("cd")])
    assert account == Account(rolled_back=3, retokenized=2, forced=1)
    book(account, WORDS, list(b"c"), ids("cd"))
    assert account == Account(rolled_back=4, retokenized=2, forced=2)
    book(account, WORDS, [], ids("xyz"))
    assert account == Account(rolled_back=4, retokenized=2, forced=5)


def the_cache_is_that_of_the_output() -> None:
    """The fake's logits follow from all tokens in the row: behind a respelling it must say what it says of
    the new ids."""
    taken_back = set()
    for seed in range(16):
        wanted = request("r", regex("a(b|d)cx[ab]{4}"), seed=seed)
        (completed,) = serve([wanted], None, JumpForward, overlap=False)
        taken_back.add(completed.account.rolled_back)
        written = completed.ids.index(ord("x")) + 1
        assert completed.ids == alone(wanted, EXACT, begin=completed.ids[:written]), seed
    assert taken_back == {0, 1, 2}
