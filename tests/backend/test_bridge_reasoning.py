"""Requests that think first: an adapter around any adapter, which constrains nothing until the
think-end id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import miniatures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from miniatures.reference import Reference, ReferenceObject

from harness.backend.bridge.from_sglang import SGLangAdapter
from harness.backend.bridge.reasoning import (
    ReasoningAdapter,
    ReasoningGrammar,
    ReasoningObject,
    with_reasoning,
)
from harness.backend.bridge.thinking import Thinking, think_end_id
from harness.backend.bridge.to_sglang import BackendForSGLang, GrammarForSGLang
from harness.backend.contract import check_adapter
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    allocate_bitmask,
    allowed_tokens,
    overrides,
)
from harness.backend.vocabulary import Vocabulary, byte_vocabulary
from harness.errors import BadInput

SMALL = miniatures.small_vocabulary()
START, EOS, TOOL, A1 = 256, 257, 258, 259
PLAIN = [
    token
    for token in range(SMALL.size)
    if token not in SMALL.special_tokens and token not in SMALL.padding_tokens
]
PATTERN = Grammar("regex", "[ab][0-9]+")


def thinking(inner: Adapter | None = None, *end: int) -> ReasoningAdapter:
    return with_reasoning(inner or Reference(SMALL), end or (TOOL,))


def start(adapter: Adapter | None = None, grammar: Grammar = PATTERN) -> ReasoningObject:
    found = (adapter or thinking()).compile(grammar).start()
    assert isinstance(found, ReasoningObject)
    return found


def bits(grammar_object: GrammarObject, size: int = SMALL.size) -> list[int]:
    bitmask = np.full_like(allocate_bitmask(size), -1)
    grammar_object.fill_bitmask(bitmask)
    ids: list[int] = allowed_tokens(bitmask, len(bitmask) * 32).tolist()
    return ids


def state(grammar_object: GrammarObject) -> tuple[Any, ...]:
    mask = np.zeros(SMALL.size, dtype=np.bool_)
    grammar_object.fill_bool_mask(mask)
    return (
        bits(grammar_object),
        mask.tolist(),
        grammar_object.is_accepting(),
        grammar_object.is_terminated(),
        grammar_object.jump_forward(),
        grammar_object.fast_forward_tokens(),
    )


# The thinking part


def test_while_thinking_text_and_the_end_of_it_are_allowed_and_nothing_else() -> None:
    grammar_object = start()
    assert bits(grammar_object) == sorted([*PLAIN, TOOL])
    for token in (EOS, START, SMALL.size - 1, SMALL.size, -1):
        assert not grammar_object.accept_token(token)
    assert grammar_object.thinks and not grammar_object.is_accepting() and not grammar_object.is_terminated()
    assert grammar_object.jump_forward() == b"" and grammar_object.fast_forward_tokens() == []


def test_behind_the_border_the_inner_grammar_is_at_its_start_and_never_sees_the_border() -> None:
    shown: list[int] = []

    class Watched(ReferenceObject):
        def accept_token(self, token: int) -> bool:
            shown.append(token)
            return super().accept_token(token)

    class Watching(Reference):
        object_class = Watched

    grammar_object = start(thinking(Watching(SMALL)))
    assert grammar_object.accept_tokens([*b"hm, b2?", TOOL]) == 8 and shown == []
    assert state(grammar_object) == state(Reference(SMALL).compile(PATTERN).start())
    assert not grammar_object.accept_token(TOOL), "a second think-end id is the grammar's to refuse"
    assert grammar_object.accept_tokens([*b"b2", EOS]) == 3 and grammar_object.is_terminated()
    assert shown == [TOOL, *b"b2", EOS]


def test_several_tokens_go_across_the_border_in_one_call_up_to_the_refused_one() -> None:
    grammar_object = start()
    assert grammar_object.accept_tokens([*b"x", TOOL, A1, EOS]) == 4
    grammar_object.rollback(4)
    assert grammar_object.accept_tokens([*b"xy", EOS, TOOL]) == 2 and grammar_object.thinks
    assert grammar_object.accept_tokens([TOOL, ord("z")]) == 1 and not grammar_object.thinks
    assert grammar_object.accept_tokens([]) == 0


def test_a_plain_token_may_end_the_thinking() -> None:
    grammar_object = start(thinking(None, A1))
    assert grammar_object.accept_tokens([*b"a1", A1, A1, EOS]) == 5 and grammar_object.is_terminated()


@pytest.mark.parametrize("end", [EOS, -1, SMALL.size, SMALL.size - 1])
def test_an_id_that_cannot_end_the_thinking_is_bad_input(end: int) -> None:
    with pytest.raises(BadInput, match=f"token {end} of vocabulary small cannot end the thinking"):
        thinking(None, end)


def test_the_think_end_id_is_found_by_its_name_or_its_text() -> None:
    assert (think_end_id(SMALL, "<tool>"), think_end_id(SMALL, "a1")) == (TOOL, A1)
    with pytest.raises(BadInput, match="no token '</think>'"):
        think_end_id(SMALL, "</think>")


# Back over the border


MOVES = st.lists(
    st.one_of(st.sampled_from([*b"ab12x", A1, TOOL, EOS]), st.integers(-9, -1), st.just("copy")),
    min_size=8,
    max_size=40,
)


def walk(adapter: Adapter, moves: Sequence[int | str]) -> None:
    """Moves, rollbacks (negative) and copies; after each, all that can be seen is what a fresh object shows
    after the same tokens."""
    compiled, inner = adapter.compile(PATTERN), Reference(SMALL).compile(PATTERN)
    grammar_object, taken = compiled.start(), list[int]()
    for move in moves:
        if move == "copy":
            grammar_object, left = grammar_object.copy(), grammar_object
            left.rollback(len(taken))
        elif isinstance(move, int) and move < 0:
            count = min(-move, len(taken))
            grammar_object.rollback(count)
            del taken[len(taken) - count :]
        elif isinstance(move, int) and not grammar_object.is_terminated():
            allowed = move in bits(grammar_object)
            assert grammar_object.accept_token(move) == allowed
            taken += [move] * allowed
        expected: GrammarObject
        if TOOL in taken:
            expected = inner.start()
            answer = taken[taken.index(TOOL) + 1 :]
            assert expected.accept_tokens(answer) == len(answer)
        else:
            expected = compiled.start()
        assert grammar_object.is_terminated() == expected.is_terminated()
        if not grammar_object.is_terminated():
            assert state(grammar_object) == state(expected), taken


@settings(max_examples=150, deadline=None)
@given(MOVES)
def test_every_walk_over_the_border_and_back_shows_what_a_fresh_one_does(moves: list[int | str]) -> None:
    walk(thinking(), moves)


class Forgets(ReasoningObject):
    """Wrong: a rollback over the border leaves the grammar where it was."""

    def rollback(self, count: int) -> None:
        if count > (self._answered or 0) and not self.thinks:
            del self._thought[(self._answered or 0) - count :]
            self._answered = None
        else:
            super().rollback(count)


class StaysBehind(ReasoningObject):
    """Wrong: a rollback takes back the answer only, so that the thinking never comes back."""

    def rollback(self, count: int) -> None:
        super().rollback(min(count, self._answered) if self._answered is not None else count)


class SharesItsGrammar(ReasoningObject):
    """Wrong: a copy moves the original's grammar."""

    def copy(self) -> GrammarObject:
        return type(self)(self.inner, self._thinking, self._thought, self._answered)


class Feeds(ReasoningObject):
    """Wrong: the think-end id is shown to the grammar, which refuses it; so the border never comes."""

    def accept_token(self, token: int) -> bool:
        return self.inner.accept_token(token) if token == TOOL else super().accept_token(token)


@pytest.mark.parametrize("wrong", [Forgets, StaysBehind, SharesItsGrammar, Feeds])
def test_a_wrapper_that_is_wrong_at_the_border_is_caught(wrong: type[ReasoningObject]) -> None:
    class Mutant(ReasoningAdapter):
        def compile(self, grammar: Grammar) -> CompiledGrammar:
            inner = self._inner.compile(grammar)

            class Compiled(ReasoningGrammar):
                def start(self) -> GrammarObject:
                    return wrong(self.inner.start(), self.thinking, (), None)

            return Compiled(inner, self._thinking)

    moves = [
        [*b"x", TOOL, *b"a1", -4, *b"y", TOOL, *b"b2"],
        [TOOL, *b"a", "copy", *b"12"],
        [TOOL, -1, *b"x", TOOL, *b"a"],
    ]
    for each in moves:
        walk(thinking(), each)
    with pytest.raises(AssertionError):
        for each in moves:
            walk(Mutant(Reference(SMALL), (TOOL,)), each)


def test_more_than_was_accepted_is_not_taken_back() -> None:
    grammar_object = start()
    assert grammar_object.accept_tokens([*b"x", TOOL, *b"a"]) == 3
    for count in (4, -1):
        with pytest.raises(ValueError, match=f"cannot take back {count} of 3"):
            grammar_object.rollback(count)
    assert bits(grammar_object) == [*b"0123456789", SMALL.tokens.index(b"12")]


def test_what_the_inner_object_lacks_the_wrapper_lacks() -> None:
    class Bare(ReferenceObject):
        rollback = GrammarObject.rollback
        copy = GrammarObject.copy  # type: ignore[assignment]

    class BareAdapter(Reference):
        object_class = Bare

    grammar_object = start(thinking(BareAdapter(SMALL)))
    assert not overrides(grammar_object, "rollback") and not overrides(grammar_object, "copy")
    whole = start()
    assert overrides(whole, "rollback") and overrides(whole, "copy")


# The contract


def failures(adapter: Adapter) -> list[str]:
    return [each.check for each in check_adapter(adapter) if each.status in ("failed", "error")]


class Answering(ReasoningAdapter):
    """Objects that have thought already."""

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        class Compiled(ReasoningGrammar):
            def start(self) -> GrammarObject:
                grammar_object = super().start()
                assert grammar_object.accept_tokens(self.thinking.end)
                return grammar_object

        return Compiled(self._inner.compile(grammar), self._thinking)


REAL = {
    "xgrammar": "XGrammar",
    "llguidance": "LLGuidance",
    "outlines_core": "OutlinesCore",
    "reference": "Reference",
}


def real(name: str, vocabulary: Any = None) -> Adapter:
    pytest.importorskip(name if name != "reference" else "numpy")
    module = import_module(f"harness.adapters.{name}")
    kinds = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Adapter) and each.__module__ == module.__name__
    ]
    adapter: Adapter = kinds[0](vocabulary or SMALL)
    return adapter


@pytest.mark.parametrize("name", REAL)
def test_the_contract_holds_while_thinking_and_behind_it(name: str) -> None:
    inner = real(name)
    text_ends_it = thinking(inner, 0x00)  # for a special is never allowed by the contract
    assert failures(text_ends_it) == ["a_valid_output_is_accepted_to_its_end"], (
        "which nothing is while thinking"
    )
    described = {each: getattr(inner, each) for each in ("distribution", "dialects", "documented")}
    answering: Adapter = type("Answering", (Answering,), described)(inner, (TOOL,))
    assert failures(answering) == failures(inner)
    assert sum(each.status == "passed" for each in check_adapter(answering)) >= sum(
        each.status == "passed" for each in check_adapter(inner)
    )


@pytest.mark.parametrize("name", REAL)
def test_a_batch_of_rows_that_think_rows_that_answer_and_rows_without_reasoning_is_filled(name: str) -> None:
    inner = real(name)
    adapter = thinking(inner)
    objects = [start(adapter), start(adapter), inner.compile(PATTERN).start(), start(adapter)]
    assert objects[1].accept_tokens([*b"hm", TOOL, *b"a"]) == 4 and objects[3].accept_tokens([*b"hm"]) == 2
    for chosen in ([0, 1, 2, 3], [0, 3], [1, 2], []):
        bitmasks = np.full((len(chosen), len(allocate_bitmask(SMALL.size))), -1, dtype=np.int32)
        adapter.fill_bitmasks([objects[each] for each in chosen], bitmasks)
        assert [allowed_tokens(row, SMALL.size).tolist() for row in bitmasks] == [
            bits(objects[each]) for each in chosen
        ]
    with pytest.raises(ValueError, match="2 objects for 1 bitmasks"):
        adapter.fill_bitmasks(
            objects[:2], bitmasks[:1] if len(bitmasks) else np.zeros((1, 1), dtype=np.int32)
        )


def test_one_filler_follows_its_object_over_the_border_and_back() -> None:
    grammar_object, bitmask = start(), allocate_bitmask(SMALL.size)
    fill = grammar_object.filler(bitmask)
    for move in (*b"x", TOOL, *b"a", -2, TOOL):
        if move < 0:
            grammar_object.rollback(-move)
        else:
            assert grammar_object.accept_token(move)
        bitmask.fill(-1)
        fill()
        assert allowed_tokens(bitmask, len(bitmask) * 32).tolist() == bits(grammar_object)


def test_the_wrapper_names_the_inner_backend() -> None:
    inner = real("reference")
    wrapped = thinking(inner)
    assert (wrapped.distribution, wrapped.dialects, wrapped.documented) == (
        inner.distribution,
        inner.dialects,
        inner.documented,
    )
    assert wrapped.kernels() == inner.kernels() and wrapped.mask_format == inner.mask_format


def test_the_wrapper_knows_the_ends_that_the_inner_library_knows() -> None:
    class Two(Reference):
        """Knows two of the ids of end-of-sequence."""

        def __init__(self, vocabulary: Vocabulary) -> None:
            super().__init__(vocabulary)
            self.take_ends("two places", vocabulary.eos_tokens[:2])

    inner = Two(replace(SMALL, eos_tokens=(EOS, START, TOOL)))
    wrapped = thinking(inner, 0x00)
    assert wrapped.knows_one_end == "two places"
    assert wrapped.vocabulary.eos_tokens == inner.vocabulary.eos_tokens == (EOS, START)


# Under SGLang's names


def for_sglang(reasoning: bool | None) -> GrammarForSGLang:
    grammar = BackendForSGLang(thinking()).dispatch_regex(PATTERN.text)
    assert isinstance(grammar, GrammarForSGLang)
    if reasoning is not None:
        grammar.maybe_init_reasoning(reasoning)
    return grammar


def columns(grammar: GrammarForSGLang) -> list[int]:
    mask = grammar.allocate_vocab_mask(SMALL.size, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    ids: list[int] = allowed_tokens(mask[0].numpy(), SMALL.size).tolist()
    return ids


def test_the_engine_says_which_request_thinks() -> None:
    pytest.importorskip("torch")
    first = bits(Reference(SMALL).compile(PATTERN).start())
    for reasoning, expected in (
        (None, sorted([*PLAIN, TOOL])),
        (True, sorted([*PLAIN, TOOL])),
        (False, first),
    ):
        grammar = for_sglang(reasoning)
        assert columns(grammar) == expected
        assert columns(grammar.copy()) == expected, "a copy for a cache hit forgets it"
    grammar = for_sglang(False)
    grammar.maybe_init_reasoning(True)
    grammar.accept_token(ord("z"))
    with pytest.raises(ValueError, match="1 tokens have been accepted; it is too late"):
        grammar.maybe_init_reasoning(False)


def test_a_copy_of_a_copy_knows_which_request_thinks() -> None:
    pytest.importorskip("torch")
    grammar = for_sglang(False)
    grammar.accept_token(ord("a"))
    copied = grammar.copy()
    copied.rollback(1)
    first = bits(Reference(SMALL).compile(PATTERN).start())
    assert columns(copied) == columns(copied.copy()) == columns(copied.copy().copy()) == first


def test_without_the_wrapper_the_engines_word_changes_nothing() -> None:
    pytest.importorskip("torch")
    grammar = BackendForSGLang(Reference(SMALL)).dispatch_regex("a")
    assert isinstance(grammar, GrammarForSGLang)
    grammar.maybe_init_reasoning(True)
    assert columns(grammar) == [ord("a")]


def test_there_and_back_the_wrapper_is_told_that_nobody_thinks() -> None:
    pytest.importorskip("torch")

    class There(SGLangAdapter):
        def make_backend(self) -> BackendForSGLang:
            return BackendForSGLang(thinking())

    grammar_object = There(SMALL).compile(PATTERN).start()
    assert bits(grammar_object) == bits(Reference(SMALL).compile(PATTERN).start())


def test_a_vocabulary_whose_size_is_a_multiple_of_the_word_has_its_bits_too() -> None:
    vocabulary = byte_vocabulary()
    assert allowed_tokens(Thinking(vocabulary, (0,)).bitmask, vocabulary.size).tolist() == list(range(256))
