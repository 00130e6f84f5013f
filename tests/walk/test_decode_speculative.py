"""Speculative decoding: drafts change the passes and never the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from decode_tools import WORDS, FakeModel, alone, regex, replayed, request, serve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.grammar import Grammar
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.batch import Batch
from harness.walk.loop.lookup import Lookup
from harness.walk.loop.outcome import Completed
from harness.walk.loop.request import Request
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.speculative import Speculative

GRAMMARS: list[Grammar | None] = [
    None,
    regex("(ab|red){3,9}"),
    regex("(name: abc; )+"),
    regex("(aaaa|[a-d]){2,20}"),
    regex('\\{"re": 12\\}'),
]
IDS = st.lists(st.integers(0, 2), max_size=30)


def speculative(draft_tokens: int = 4, **options: Any) -> Callable[[Vocabulary], Strategy]:
    return lambda vocabulary: Speculative(vocabulary, draft_tokens=draft_tokens, **options)


def speculated(
    requests: Sequence[Request], draft_tokens: int = 4, end: float = 1.5, **options: Any
) -> list[Completed]:
    return serve(requests, strategy=speculative(draft_tokens, **options), model=FakeModel(end=end))


@st.composite
def batches(draw: st.DrawFn) -> list[Request]:
    seeds = draw(st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=5))
    prompt = st.lists(st.sampled_from([97, 98, 99, *WORDS.encode(b"name: abc; ")]), min_size=1, max_size=20)
    return [
        request(
            str(number),
            draw(st.sampled_from(GRAMMARS)),
            prompt=draw(prompt),
            limit=draw(st.integers(1, 30)),
            seed=seed,
        )
        for number, seed in enumerate(seeds)
    ]


@settings(max_examples=25, deadline=None)
@given(made=batches(), draft_tokens=st.integers(1, 7), longest=st.integers(1, 4), with_model=st.booleans())
def test_the_output_is_that_of_one_token_a_pass(
    made: list[Request], draft_tokens: int, longest: int, with_model: bool
) -> None:
    draft = FakeModel(seed=1) if with_model else None
    for each, wanted in zip(speculated(made, draft_tokens, longest=longest, model=draft), made, strict=True):
        assert each.ids == alone(wanted) and each.account.forced == 0
        ended_in_a_draft = each.account.sampled < each.account.passes + each.account.accepted_drafts
        assert each.account.sampled + ended_in_a_draft == each.account.passes + each.account.accepted_drafts
        assert not ended_in_a_draft or each.end == "end_of_sequence"
    if draft is not None:
        draft.assert_is_empty()


def repeating() -> list[Request]:
    """The grammar forces most of the output, and the prompt has it: drafts are right, but not at the ends."""
    prompt = WORDS.encode(b"name: abc; name: abc; name: ab")
    return [
        request(str(seed), regex("(name: abc; |name: red; )+"), prompt=prompt, limit=60, seed=seed)
        for seed in range(4)
    ]


def test_right_drafts_save_passes_and_wrong_ones_are_taken_back() -> None:
    done = speculated(repeating(), 6, end=-9)
    assert all(each.account.passes < len(each.ids) / 2 for each in done)
    assert sum(each.account.drafted - each.account.accepted_drafts for each in done) > 10
    assert [each.ids for each in done] == endless(repeating())


def endless(made: Sequence[Request]) -> list[tuple[int, ...]]:
    """The outputs of one token a pass, of the model that does not end."""
    return [each.ids for each in serve(made, model=FakeModel(end=-9))]


def test_an_acceptor_that_believes_every_draft_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Batch._take

    def believing(self: Batch, active: ActiveRequest, chosen: Sequence[int], now_ns: int) -> tuple[int, int]:
        return take(self, active, [*active.draft[: active.ahead], *chosen[active.ahead :]], now_ns)

    monkeypatch.setattr(Batch, "_take", believing)
    assert [each.ids for each in speculated(repeating(), 6, end=-9)] != endless(repeating())


def test_a_replay_of_what_repeats_takes_few_passes() -> None:
    text = b"name: abc; " * 12
    (stepwise,) = serve([replayed("r", regex("(name: abc; )+"), text)])
    (done,) = speculated([replayed("r", regex("(name: abc; )+"), text)], 7)
    assert done.ids == stepwise.ids and done.end == stepwise.end == "end_of_sequence"
    assert done.account.passes <= len(done.ids) / 8 + 15 < stepwise.account.passes


def test_two_hundred_draft_tokens_in_one_pass() -> None:
    model = FakeModel(chunk=256, positions=1024)
    text = b"ab1ab2ab3ab4ab5ab6ab7ab8ab9red" * 15
    wanted = replayed("r", regex("((ab[0-9])+red)+"), text, prompt=WORDS.encode(text), limit=400)
    (done,) = serve([wanted], strategy=speculative(200), model=model)
    assert done.ids == wanted.reference and len(done.ids) == 286 and done.account.passes <= 24


def test_a_draft_model_that_agrees_is_believed_and_one_that_does_not_costs_nothing_but_time() -> None:
    wanted = [request(str(number), prompt=(97 + number,), limit=30) for number in range(3)]
    for seed, most in ((0, 8), (1, 30)):
        draft = FakeModel(seed=seed, end=-9)
        done = speculated(wanted, 4, end=-9, model=draft)
        assert [each.ids for each in done] == endless(wanted)
        assert all(each.account.passes <= most for each in done)
        draft.assert_is_empty()


def test_behind_the_end_nothing_is_drafted() -> None:
    eos = WORDS.eos_token
    prompt = (97, 98, eos, 97, 98, eos, 97)
    (done,) = speculated([request("r", regex("b"), prompt=prompt, limit=9)], 6)
    assert done.ids == (98, eos) and done.account.passes == 1 and done.account.drafted <= 2


@pytest.mark.parametrize("options", [{"draft_tokens": 0}, {"draft_tokens": 201}, {"longest": 0}])
def test_numbers_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="speculative: "):
        speculative(**options)(WORDS)


@given(ids=IDS, longest=st.integers(1, 4), most=st.integers(1, 5))
def test_lookup_says_what_followed_the_longest_match_when_it_came_last(
    ids: list[int], longest: int, most: int
) -> None:
    lookup = Lookup(ids[:3], longest)
    for cut, end in pairwise(range(3, len(ids) + 1)):
        lookup.update(cut, ids[cut:end])
    expected: list[int] = []
    for count in range(min(longest, len(ids)), 0, -1):
        places = [at for at in range(count, len(ids)) if ids[at - count : at] == ids[-count:]]
        if places:
            expected = ids[places[-1] :][:most]
            break
    assert lookup.propose(most) == expected


@given(ids=IDS, changes=st.lists(st.tuples(st.integers(0, 30), IDS), max_size=4), longest=st.integers(1, 3))
def test_lookup_after_changes_of_the_end_says_what_did_follow_a_match(
    ids: list[int], changes: list[tuple[int, list[int]]], longest: int
) -> None:
    lookup, now = Lookup(ids, longest), ids
    for keep, added in changes:
        keep = min(keep, len(now))
        lookup.update(keep, added)
        now = [*now[:keep], *added]
    said = lookup.propose(4)
    matches = [
        at
        for count in range(1, longest + 1)
        for at in range(count, len(now))
        if now[at - count : at] == now[-count:]
    ]
    assert not said or any(now[at : at + 4] == said for at in matches)
