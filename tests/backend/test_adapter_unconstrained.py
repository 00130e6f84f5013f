"""The baseline that constrains nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from harness.backend.grammar import (
    DIALECTS,
    Adapter,
    Grammar,
    GrammarObject,
    allocate_bitmask,
    allowed_tokens,
)
from harness.backend.vocabulary import Vocabulary, byte_vocabulary

EOS = 2
SMALL = Vocabulary(
    name="small",
    tokens=(b"a", b"b", b"", b"", b"ab", b"", *(bytes([byte]) for byte in range(40))),
    eos_tokens=(EOS,),
    special_tokens={EOS: "</s>", 3: "[INST]"},
    padding_tokens=frozenset({5}),
)
TEXT = [token for token in range(SMALL.size) if token not in (EOS, 3, 5)]


def make(vocabulary: Vocabulary = SMALL, **options: Any) -> Adapter:
    adapter: Adapter = import_module("harness.adapters.unconstrained").Unconstrained(vocabulary, **options)
    return adapter


def start(adapter: Adapter | None = None) -> GrammarObject:
    return (adapter or make()).compile(Grammar("regex", "a")).start()


def test_every_dialect_compiles_whatever_it_says() -> None:
    adapter = make()
    assert adapter.dialects == set(DIALECTS)
    for dialect in DIALECTS:
        assert adapter.compile(Grammar(dialect, "((")).start().accept_token(0)


def test_all_but_specials_and_padding_is_allowed() -> None:
    bitmask = allocate_bitmask(SMALL.size)
    bitmask.fill(-1)
    start().fill_bitmask(bitmask)
    assert allowed_tokens(bitmask, 64).tolist() == sorted([EOS, *TEXT])


def test_the_whole_byte_vocabulary_and_no_bit_beyond_is_allowed() -> None:
    bitmask = allocate_bitmask(257)
    start(make(byte_vocabulary())).fill_bitmask(bitmask)
    assert allowed_tokens(bitmask, 288).tolist() == list(range(257))


def test_a_fill_copies_the_mask() -> None:
    grammar_object = start()
    one, other = allocate_bitmask(SMALL.size), allocate_bitmask(SMALL.size)
    grammar_object.fill_bitmask(one)
    expected = one.copy()
    one.fill(0)
    grammar_object.fill_bitmask(other)
    assert other.tolist() == expected.tolist()


def test_the_bool_mask_is_true_for_specials_and_padding_only() -> None:
    adapter = make(mask="bool")
    assert (adapter.mask_format, make().mask_format) == ("bool", "bitmask")
    mask = np.ones(SMALL.size, np.bool_)
    mask[0] = False
    start(adapter).fill_bool_mask(mask)
    assert np.flatnonzero(mask).tolist() == [3, 5]


def test_the_mask_says_what_accept_token_does() -> None:
    assert [token for token in range(-1, SMALL.size + 1) if start().accept_token(token)] == sorted(
        [EOS, *TEXT]
    )


def test_the_output_may_end_anywhere_and_once() -> None:
    grammar_object = start()
    assert grammar_object.is_accepting()
    assert not grammar_object.is_terminated()
    assert grammar_object.accept_tokens([0, EOS, 1]) == 2
    assert grammar_object.is_terminated()
    assert not grammar_object.accept_token(EOS)


def test_rollback_goes_past_the_end_and_no_further_than_the_start() -> None:
    grammar_object = start()
    grammar_object.accept_tokens([0, 1, EOS])
    grammar_object.rollback(0)
    assert grammar_object.is_terminated()
    grammar_object.rollback(1)
    assert not grammar_object.is_terminated()
    assert grammar_object.accept_token(EOS)
    grammar_object.rollback(3)
    for count in (1, -1):
        with pytest.raises(ValueError, match="of 0 tokens"):
            grammar_object.rollback(count)


def test_a_copy_stands_where_the_original_stands_and_neither_moves_the_other() -> None:
    original = start()
    original.accept_token(0)
    clone = original.copy()
    clone.accept_token(EOS)
    assert (original.is_terminated(), clone.is_terminated(), clone.copy().is_terminated()) == (
        False,
        True,
        True,
    )
    original.accept_token(EOS)
    clone.rollback(2)
    assert (original.is_terminated(), clone.is_terminated()) == (True, False)
    with pytest.raises(ValueError, match="of 0 tokens"):
        clone.rollback(1)


def test_nothing_is_forced() -> None:
    grammar_object = start()
    assert (grammar_object.jump_forward(), grammar_object.fast_forward_tokens()) == (b"", [])


def test_a_batch_is_filled_row_by_row() -> None:
    adapter = make()
    bitmasks = np.zeros((3, 2), np.int32)
    objects = [start(adapter) for _ in range(3)]
    adapter.fill_bitmasks(objects, bitmasks)
    assert [allowed_tokens(row, 64).tolist() for row in bitmasks] == [sorted([EOS, *TEXT])] * 3
    with pytest.raises(ValueError, match="3 objects for 2 bitmasks"):
        adapter.fill_bitmasks(objects, bitmasks[:2])
