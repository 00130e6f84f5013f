"""Other spellings of a text: each one decodes to it, none is the canonical one, and where there are twenty,
twenty come."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.oracle.tokenizations import (
    DRAWN,
    WAYS,
    Lattice,
    boundaries,
    drift,
    index_of,
    inside_character,
    spans,
    straddling,
    tokenizations,
)

JSON = '{"name": "Jörg 日😀", "tags": ["a", "</s>"]}'.encode()


def vocabulary_of(*texts: bytes, specials: int = 1) -> Vocabulary:
    """Exactly these plain tokens, and end-of-sequence last."""
    return Vocabulary(
        "made",
        (*texts, *[b""] * specials),
        (len(texts),),
        {len(texts) + each: f"<{each}>" for each in range(specials)},
    )


AB = vocabulary_of(b"a", b"b", b"ab", b"aba", b"b")
NO_BYTES = vocabulary_of(b"ab", b"abc", b"c", b"cab")
PROBE = load_vocabulary("probe")


def every_spelling(vocabulary: Vocabulary, text: bytes) -> set[tuple[int, ...]]:
    """By trying every token everywhere."""
    if not text:
        return {()}
    plain = [(token, each) for token, each in enumerate(vocabulary.tokens) if each]
    return {
        (token, *rest)
        for token, each in plain
        if text.startswith(each)
        for rest in every_spelling(vocabulary, text[len(each) :])
    }


def draw(vocabulary: Vocabulary, text: bytes, count: int = 20, seed: str = "1") -> list[tuple[int, ...]]:
    return [each.tokens for each in tokenizations(vocabulary, text, count, random.Random(seed))]


@given(text=st.text("ab", max_size=7))
def test_the_lattice_numbers_every_spelling_once(text: str) -> None:
    lattice = Lattice(AB, text.encode())
    numbered = [lattice.spelling(number) for number in range(lattice.count)]
    assert len(numbered) == len(set(numbered)) and set(numbered) == every_spelling(AB, text.encode())


@given(text=st.text("ab", min_size=1, max_size=7), count=st.integers(1, 25), seed=st.integers(0, 9))
def test_as_many_others_as_asked_for_or_all_that_exist(text: str, count: int, seed: int) -> None:
    others = every_spelling(AB, text.encode()) - {tuple(AB.encode(text.encode()))}
    found = draw(AB, text.encode(), count, str(seed))
    assert len(found) == len(set(found)) == min(count, len(others)) and set(found) <= others


@pytest.mark.parametrize("name", ["probe", "mistral-v3", "tekken"])
@pytest.mark.parametrize("text", [JSON, "日本語の文字".encode(), b"hello world, 1234567890"])
def test_twenty_others_on_real_vocabularies(name: str, text: bytes) -> None:
    vocabulary = load_vocabulary(name)
    found = list(tokenizations(vocabulary, text, 20, random.Random("1")))
    assert len({each.tokens for each in found}) == 20 and tuple(vocabulary.encode(text)) not in {
        each.tokens for each in found
    }
    for each in found:
        assert vocabulary.decode(each.tokens) == text
        assert vocabulary.special_tokens.keys().isdisjoint(
            each.tokens
        ) and vocabulary.padding_tokens.isdisjoint(each.tokens)
    assert {"bytes", "random"} <= {each.kind for each in found}
    assert ("inside_characters" in {each.kind for each in found}) == (not text.isascii())


def test_the_same_seed_gives_the_same() -> None:
    assert draw(PROBE, JSON) == draw(PROBE, JSON) != draw(PROBE, JSON, seed="2")


def test_bytes_alone_have_no_other_spelling() -> None:
    assert draw(byte_vocabulary(), JSON) == []


def test_the_empty_text_has_no_other_spelling() -> None:
    assert draw(PROBE, b"") == []


def test_what_the_vocabulary_cannot_spell_is_an_error() -> None:
    with pytest.raises(ValueError, match="no token for byte"):
        draw(AB, b"abc")


def test_spellings_are_found_where_the_longest_token_leads_nowhere_and_there_are_no_single_bytes() -> None:
    """Such a vocabulary has no canonical spelling of this text, and one all the same."""
    vocabulary = Vocabulary("pairs", (b"ab", b"abc", b"cd", b"d}", b""), (4,), {4: "</s>"})
    with pytest.raises(ValueError):
        vocabulary.encode(b"abcd")
    found = list(tokenizations(vocabulary, b"abcd", 5, random.Random(1)))
    assert [each.tokens for each in found] == [(0, 2)]
    with pytest.raises(ValueError):
        list(tokenizations(vocabulary, b"abd", 5, random.Random(1)))


def test_no_way_walks_into_a_dead_end() -> None:
    text = b"abcab"  # `ab` and then `c` may be followed by `ab`; `abc` as well; `cab` only from behind `ab`
    spelled = every_spelling(NO_BYTES, text)
    lattice = Lattice(NO_BYTES, text)
    assert len(spelled) == 3 == lattice.count
    for seed in range(20):
        found = {name: way(lattice, random.Random(seed)) for name, way in WAYS.items()}
        assert (
            found["bytes"] is None
            and found["inside_characters"] is None
            and found["across_structure"] is None
        )
        assert found["random"] in spelled and found["longest"] in spelled
    assert WAYS["random"](Lattice(NO_BYTES, b"abb"), random.Random(1)) is None


def test_longest_takes_a_shorter_token_where_the_longest_leads_nowhere() -> None:
    vocabulary = vocabulary_of(b"ab", b"abc", b"cd")
    lattice = Lattice(vocabulary, b"abcd")
    assert WAYS["longest"](lattice, random.Random(1)) == (0, 2)


def test_all_ids_of_the_same_bytes_are_used() -> None:
    assert index_of(AB).ids(b"b") == (1, 4) and index_of(AB).ids(b"x") == ()
    found = {WAYS["bytes"](Lattice(AB, b"bb"), random.Random(seed)) for seed in range(40)}
    assert found == set(product((1, 4), repeat=2))


def test_a_choice_is_uniform_among_the_tokens_that_match() -> None:
    lattice = Lattice(vocabulary_of(b"a", b"ab", b"b", b"a"), b"ab")
    first = [way[0] for seed in range(900) if (way := WAYS["random"](lattice, random.Random(seed)))]
    assert all(240 < first.count(token) < 360 for token in (0, 1, 3))


def test_characters_are_one_token_where_there_is_one() -> None:
    text = "aé日".encode()
    vocabulary = vocabulary_of(*(bytes([byte]) for byte in range(256)), "é".encode(), "日".encode()[:2])
    assert WAYS["characters"](Lattice(vocabulary, text), random.Random(1)) == (ord("a"), 256, *"日".encode())


def test_splits_inside_characters_cut_one() -> None:
    text = "日é日".encode()
    lattice = Lattice(PROBE, text)
    for seed in range(20):
        tokens = WAYS["inside_characters"](lattice, random.Random(seed))
        assert tokens is not None
        assert any(inside_character(text, end) for _, end in spans(PROBE, tokens))


def test_tokens_lie_across_the_structure() -> None:
    text = b'{"name": "a", "id": [{"x": 1}]}'
    positions = set(boundaries(text))
    assert positions == {
        at for at in range(1, len(text)) if chr(text[at - 1]) in '{}[]":,' or chr(text[at]) in '{}[]":,'
    }
    for seed in range(20):
        tokens = WAYS["across_structure"](Lattice(PROBE, text), random.Random(seed))
        assert tokens is not None
        crossed = {at for start, end in spans(PROBE, tokens) for at in positions if start < at < end}
        assert len(crossed) >= 5  # of its 23; where one token ends, no other lies across


def test_straddling_crosses_each_wanted_position_that_a_token_can_cross() -> None:
    lattice = Lattice(AB, b"ababab")
    for seed in range(20):
        tokens = straddling(lattice, [1, 4], random.Random(seed))
        assert tokens is not None
        found = spans(AB, tokens)
        assert any(start < 1 < end for start, end in found) and AB.decode(tokens) == b"ababab"
    assert straddling(Lattice(AB, b"bbbb"), [1, 2, 3], random.Random(1)) is None


def test_every_drawn_way_is_a_way() -> None:
    assert set(DRAWN) < set(WAYS)


@pytest.mark.parametrize("name", ["probe", "tekken"])
def test_canonical_output_has_not_drifted(name: str) -> None:
    vocabulary = load_vocabulary(name)
    tokens = vocabulary.encode(JSON)
    assert drift(vocabulary, tokens) == drift(vocabulary, [*tokens, vocabulary.eos_token]) == 0


def test_drift_counts_the_ids_that_the_tokenizer_would_not_have_put_there() -> None:
    # Longest match: canonical is `ab`, `ab`, `b`.
    assert AB.encode(b"aba") == [3] and AB.encode(b"babb") == [1, 2, 1]
    assert drift(AB, [1, 0, 1, 1]) == 2
    assert drift(AB, [1, 2, 4]) == 1  # the other id of the same bytes
    assert drift(AB, [0, 1, 0]) == 3
    assert drift(AB, []) == 0


def test_an_empty_token_is_drift() -> None:
    vocabulary = vocabulary_of(b"a", b"", b"b")
    assert drift(vocabulary, [0, 1, 2]) == 1
