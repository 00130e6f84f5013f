"""Text that is written without the model: where it comes from, how it is spelled, and what it saves."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from decode_questions import (
    CASES,
    EXACT,
    Drafts,
    both,
    ids,
    the_cache_is_that_of_the_output,
    tokens_in_the_place_of_others_are_counted_apart,
)
from decode_tools import (
    EOS,
    WORDS,
    Around,
    AroundAdapter,
    FakeModel,
    ForcesTokensOnly,
    NeitherBackNorCopy,
    NoRollback,
    alone,
    regex,
    replayed,
    request,
    serve,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.grammar import Adapter, Grammar
from harness.backend.vocabulary import Vocabulary
from harness.walk.loop import strategies as package
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.outcome import Account
from harness.walk.loop.respelling import book, differing, follows_in, is_canonical, realigned, respell
from harness.walk.loop.strategies import make_strategy, strategies
from harness.walk.loop.strategies.base import Move, Strategy
from harness.walk.loop.strategies.jump_forward import JumpForward


@pytest.mark.parametrize(
    "adapter",
    [EXACT, *map(AroundAdapter, (NoRollback, NeitherBackNorCopy, ForcesTokensOnly))],
    ids=["exact", "no_rollback", "neither_back_nor_copy", "tokens_only"],
)
def test_a_jump_saves_a_pass_for_each_token_that_it_writes(adapter: Adapter) -> None:
    both([replayed(f"r{number}", *case) for number, case in enumerate(CASES)], adapter)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(CASES), min_size=1, max_size=8),
    st.integers(1, 4),
    st.integers(1, 8),
    st.booleans(),
)
def test_also_in_any_batch(cases: list[tuple[Grammar, bytes]], rows: int, chunk: int, overlap: bool) -> None:
    wanted = [
        replayed(f"r{number}", *case, arrival_ns=number % 3 * 200_000) for number, case in enumerate(cases)
    ]
    both(wanted, model=FakeModel(rows=rows, chunk=chunk), overlap=overlap)


def test_forced_text_is_written() -> None:
    saved = [serve([replayed("r", *case)], None, JumpForward)[0].account for case in CASES]
    # The model says `": "`, which may merge with `re`, then `red`, `12` and the end.
    assert saved[0] == Account(sampled=4, forced=9, passes=4)
    assert saved[6] == Account(sampled=1, forced=len(ids(CASES[6][1])), passes=1)
    assert saved[7].forced == 0


def test_a_backend_with_forced_bytes_is_not_asked_for_tokens_too() -> None:
    class NeverAsked(Around):
        def fast_forward_tokens(self) -> list[int]:
            raise AssertionError("it is asked at every step, and asking costs time")

    (each,) = serve([replayed("r", *CASES[0])], AroundAdapter(NeverAsked), JumpForward)
    assert each.account.forced == 9


def test_text_at_the_very_start_joins_the_prompts_pass() -> None:
    model = FakeModel(chunk=64)
    fed: list[int] = []
    model.during = lambda: fed.append(1)
    (each,) = serve([replayed("r", *CASES[6])], None, JumpForward, model)
    assert len(fed) == 1 and each.account.passes == 1 and each.ids[-1] == EOS
    assert len(set(each.token_ns[:-1])) == 1


def test_what_is_forced_is_cut_at_the_limit() -> None:
    (each,) = serve([request("r", CASES[6][0], limit=5)], None, JumpForward)
    assert (each.end, each.ids, each.account) == ("limit", tuple(ids("all o")), Account(forced=5))


def test_another_spelling_takes_the_place_of_what_was_said() -> None:
    # The model says "c"; what must follow makes it the token "cd", so the token and its cache go back.
    grammar = Grammar("choice", '["cdx", "abx"]')
    model = FakeModel()
    (each,) = serve(
        [request("r", grammar, reference=(*b"cdx", EOS))], None, JumpForward, model, canonical=True
    )
    assert each.ids == (*ids("cd"), ord("x"), EOS) and each.end == "end_of_sequence" and each.canonical
    assert each.account == Account(sampled=2, forced=2, rolled_back=1, passes=2)


def test_tokens_in_the_place_of_others_are_counted_apart() -> None:
    tokens_in_the_place_of_others_are_counted_apart()


@pytest.mark.parametrize(
    ("taken_back", "written", "retokenized"),
    [
        ([b"re"], [b"red"], 0),  # the token ends behind that text
        ([b"a", b"b"], [b"ab", b"cd"], 1),
        ([b"a", b"b"], [b"cd", b"ab"], 0),  # it overrules what the model said
        ([b"a", b"b"], [b"a", b"cd"], 1),
        ([b"name"], [b"a", b"b"], 0),
        ([], [b"ab"], 0),
    ],
)
def test_only_what_spells_the_same_text_is_retokenized(
    taken_back: list[bytes], written: list[bytes], retokenized: int
) -> None:
    account = Account()
    before, after = ([WORDS.tokens.index(text) for text in texts] for texts in (taken_back, written))
    book(account, WORDS, before, after)
    new = len(written) - retokenized
    assert account == Account(forced=new, retokenized=retokenized, rolled_back=len(taken_back))


def test_the_cache_is_that_of_the_output() -> None:
    the_cache_is_that_of_the_output()


@pytest.mark.parametrize(
    ("history", "forced", "grammar", "expected"),
    [
        pytest.param("", "name", "name[0-9]", Move(0, ids("name")), id="nothing to hold"),
        pytest.param("", "ab", "ab[cx]", None, id="ab may become abc"),
        pytest.param("", "xab", "xab[cx]", Move(0, ids("x")), id="the tail is held back"),
        pytest.param("", "ab", "ab[x]", Move(0, ids("ab")), id="what may follow cannot merge"),
        pytest.param("c", "d!", "cd!", Move(0, [*ids("cd"), ord("!")]), id="a token goes back"),
        pytest.param("x", "cd", "xcd", Move(1, ids("cd")), id="the prefix is kept"),
        pytest.param(
            "", b"!\xe6\x97\xa5", "!(日本|日語)", Move(0, ids("!")), id="may go on within a longer token"
        ),
        pytest.param(
            "",
            b"!\xf0\x9f\x98",
            "!(😀|😁)",
            Move(0, [ord("!"), *ids("😀".encode()[:3])]),
            id="ends inside a character",
        ),
    ],
)
def test_how_forced_text_is_spelled(
    history: str, forced: str | bytes, grammar: str, expected: Move | None
) -> None:
    said = list(history.encode())
    text = forced.encode() if isinstance(forced, str) else forced
    behind = EXACT.compile(regex(grammar)).start()
    assert behind.accept_tokens([*said, *text]) == len(said) + len(text)
    forbidden = np.ones(WORDS.size, dtype=np.bool_)
    behind.fill_bool_mask(forbidden)
    assert respell(WORDS, said, text, follows_in(WORDS, lambda token: not forbidden[token])) == expected


def test_nothing_is_respelled_across_a_special_token() -> None:
    think = next(token for token, name in WORDS.special_tokens.items() if name == "<think>")
    assert respell(WORDS, [*b"ab", think], b"cd!", None) == Move(3, [*ids("cd"), ord("!")])
    assert respell(WORDS, [*b"ab", think, ord("c")], b"d!", None) == Move(3, [*ids("cd"), ord("!")])
    assert is_canonical(WORDS, [*ids("ab"), think, *ids("cd")]) and not is_canonical(WORDS, [*b"ab", think])


def test_a_reference_goes_on_behind_another_spelling() -> None:
    think = EOS + 1
    reference = [*b"cdx", think, *b"ab", EOS]
    assert realigned(WORDS, reference, ids("cd")) == [*ids("cd"), *reference[2:]]
    assert realigned(WORDS, [*ids("abc"), think, EOS], [*b"ab"]) == [*b"abc", think, EOS]
    assert realigned(WORDS, reference, [*b"cdx", think, *b"a"]) == reference
    assert realigned(WORDS, reference, [*b"cdxab"]) is None, "the special is missing"
    assert realigned(WORDS, reference, [*b"cdx", think, *b"abc"]) is None
    assert (
        realigned(WORDS, reference, [*b"cx"]) is None and realigned(WORDS, reference, [*b"c", think]) is None
    )
    assert differing(WORDS, reference, [*b"cx"]) == 1 and differing(WORDS, reference, ids("cd")) == 2
    assert differing(WORDS, reference, [*b"cdx", think, *b"abc"]) == 6


def test_forced_text_that_the_reference_does_not_have_is_a_finding() -> None:
    (each,) = serve([replayed("r", Grammar("choice", '["abcx", "cd"]'), b"abcd")], None, JumpForward)
    assert (each.end, each.why, each.stopped_at) == ("refused", "forced text differs from the reference", 1)
    (slow,) = serve([replayed("r", Grammar("choice", '["abcx", "cd"]'), b"abcd")])
    assert (slow.end, slow.stopped_at) == ("refused", 1)
    # What is forced beyond the reference's end as well: the end-of-sequence was refused.
    (each,) = serve([replayed("r", regex("abcabcabc"), b"abc")], None, JumpForward)
    assert (each.end, each.stopped_at) == ("refused", 1)


class WritesBlocks(Strategy):
    """Begins with a text, and writes another after the first token; takes the last token back and says
    nothing, once."""

    name = "blocks"

    def begin(self, active: ActiveRequest) -> Move | None:
        return Move(0, self.vocabulary.encode(b"abc"))

    def advance(self, active: ActiveRequest) -> Move | None:
        return (
            Move(len(active.ids) - 1, [])
            if len(active.ids) == 4 and active.account.rolled_back == 0
            else None
        )


def test_a_strategy_may_take_back_and_leave_the_rest_to_the_model() -> None:
    wanted = request("r", regex("abc[a-z]{1,6}"), limit=12, reference=(*ids("abc"), *b"xyz", EOS))
    (each,) = serve([wanted], None, WritesBlocks)
    assert each.ids == wanted.reference
    (free,) = serve([request("r", None, limit=6)], None, WritesBlocks)
    assert free.ids[:1] == tuple(ids("abc"))


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([None, *(case[0] for case in CASES)]), st.none() | st.integers(0, 9)),
        min_size=1,
        max_size=6,
    )
)
def test_drafts_change_no_output(kinds: list[tuple[Grammar | None, int | None]]) -> None:
    wanted = [
        request(f"r{number}", grammar, seed=seed, limit=25) for number, (grammar, seed) in enumerate(kinds)
    ]
    outputs = {each.name: alone(each, EXACT) for each in wanted}

    def make(vocabulary: Vocabulary) -> Drafts:
        drafts = Drafts(vocabulary)
        drafts.texts = {name: text for name, text in outputs.items() if name != "r0"}
        return drafts

    for adapter in (EXACT, AroundAdapter(NeitherBackNorCopy)):
        completed = serve(wanted, adapter, make, model=FakeModel(rows=3))
        assert [each.ids for each in completed] == list(outputs.values())
        for each in completed:
            account = each.account
            assert account.sampled == len(
                each.ids
            ) and account.passes - account.sampled + account.accepted_drafts in (0, 1)
        long = [each for each in completed[1:] if len(each.ids) >= 12]
        assert all(each.account.passes < len(each.ids) for each in long)


def test_a_strategy_is_found_by_its_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(strategies()) == ["stepwise", "interleaved", "jump_forward", "speculative"]
    (tmp_path / "idle.py").write_text(
        "from harness.walk.loop.strategies.base import Strategy\nclass Idle(Strategy):\n    name = 'idle'\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    strategies.cache_clear()
    try:
        assert strategies()["idle"].__name__ == "Idle"
        assert type(make_strategy("idle", WORDS, 4)).__name__ == "Idle"
    finally:
        strategies.cache_clear()
        sys.modules.pop(f"{package.__name__}.idle", None)
