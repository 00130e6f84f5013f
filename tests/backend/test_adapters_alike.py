"""What the adapters of xgrammar and llguidance do alike beyond the contract, with both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_tools import (
    AB,
    AB_AGAIN,
    BYTES,
    EMPTY,
    EOS,
    HALF_KANJI,
    KANJI,
    PADDING,
    POINT,
    SMALL,
    SPECIAL,
    Tools,
    allowed,
    maker,
)

from harness.backend.grammar import allocate_bitmask, allowed_tokens


@pytest.fixture(params=[("xgrammar", "Xgrammar"), ("llguidance", "Llguidance")], ids=lambda names: names[0])
def tools(request: pytest.FixtureRequest) -> Tools:
    """The questions to one of the adapters, whose library must be installed."""
    library, name = request.param
    pytest.importorskip(library)
    return Tools(maker(library, name))


def test_a_token_is_allowed_by_its_bytes_and_specials_and_padding_never(tools: Tools) -> None:
    grammar_object = tools.start("ebnf", 'root ::= "ab" | "日" | "[INST]"', tools.make(SMALL))
    kanji = "日".encode()
    assert allowed(grammar_object, SMALL) == {ord("a"), ord("["), kanji[0], AB, AB_AGAIN, KANJI, HALF_KANJI}
    assert not any(grammar_object.accept_token(token) for token in (EMPTY, EOS, SPECIAL, PADDING))
    assert grammar_object.accept_tokens([HALF_KANJI, kanji[2], EOS]) == 3


def test_arrays_may_alternate_between_fills(tools: Tools) -> None:
    first, second = tools.start("regex", "ac"), tools.start("regex", "bc")
    one, other = allocate_bitmask(BYTES.size), allocate_bitmask(BYTES.size)
    for expected in (b"ab", b"cc"):
        for left, right in ((one, other), (other, one), (one, one)):
            first.fill_bitmask(left)
            assert allowed_tokens(left, BYTES.size).tolist() == [expected[0]]
            second.fill_bitmask(right)
            assert allowed_tokens(right, BYTES.size).tolist() == [expected[1]]
        first.accept_token(ord("a"))
        second.accept_token(ord("b"))


@pytest.mark.parametrize(
    "bitmask",
    [
        np.zeros(9, np.int64),
        np.zeros(8, np.int32),
        np.zeros(18, np.int32)[::2],
        np.frombuffer(bytes(36), np.int32),
    ],
    ids=["wrong dtype", "too small", "not contiguous", "read-only"],
)
def test_an_unfit_bitmask_is_refused(tools: Tools, bitmask: Any) -> None:
    with pytest.raises(ValueError, match="9 words"):
        tools.start("regex", "a").fill_bitmask(bitmask)


def test_jump_forward_gives_the_forced_bytes_without_moving(tools: Tools) -> None:
    grammar_object = tools.start("ebnf", 'root ::= "日本" [0-9]')
    assert grammar_object.jump_forward() == "日本".encode()
    assert allowed(grammar_object) == {"日".encode()[0]}
    grammar_object.accept_tokens(list("日本".encode()))
    assert grammar_object.jump_forward() == b""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_is_filled_row_by_row(tools: Tools, threads: int) -> None:
    adapter = tools.make(threads=threads)
    objects = [tools.start("regex", text, adapter) for text in ("a", "[bc]", "d*")]
    bitmasks = np.full((3, 9), -1, np.int32)
    for _ in range(2):
        adapter.fill_bitmasks(objects, bitmasks)
        assert [allowed_tokens(row, BYTES.size).tolist() for row in bitmasks] == [
            [97],
            [98, 99],
            [100, BYTES.eos_token],
        ]
    adapter.fill_bitmasks([], np.zeros((0, 9), np.int32))
    with pytest.raises(ValueError, match="3 objects for 2 bitmasks"):
        adapter.fill_bitmasks(objects, bitmasks[:2])


def test_whitespace_any_allows_every_layout(tools: Tools) -> None:
    for output in ('{"x":1,"y":2}', '{"x": 1, "y": 2}', '{\n  "x" : 1\n}'):
        assert tools.holds("json_schema", POINT, output)


def test_whitespace_is_the_separators_that_were_asked_for(tools: Tools) -> None:
    compact, spaced, loose = '{"x":1,"y":2}', '{"x": 1, "y": 2}', '{ "x": 1}'
    assert [
        tools.holds("json_schema", POINT, each, whitespace="compact") for each in (compact, spaced, loose)
    ] == [
        True,
        False,
        False,
    ]
    assert [
        tools.holds("json_schema", POINT, each, whitespace="json_dumps") for each in (compact, spaced, loose)
    ] == [False, True, False]


def test_an_unknown_whitespace_names_those_that_are_supported(tools: Tools) -> None:
    with pytest.raises(ValueError, match="any, json_dumps, compact"):
        tools.make(whitespace="none")


@pytest.mark.parametrize("threads", [0, -3, 10**6])
def test_a_number_of_threads_that_is_none_is_an_option_that_is_wrong(tools: Tools, threads: int) -> None:
    with pytest.raises(ValueError, match="threads is"):
        tools.make(threads=threads)
