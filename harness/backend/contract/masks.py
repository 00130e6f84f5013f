"""What a fill writes."""

from __future__ import annotations

import random

import numpy as np

from harness.backend.contract.place import (
    FORCED,
    NotApplicable,
    Place,
    adapter_needs,
    allowed,
    difference,
    expect,
    paths,
    places,
)
from harness.backend.grammar import Adapter, Bitmask, allocate_bitmask, is_allowed
from harness.text import counted


def check_a_fill_overwrites_every_bit(adapter: Adapter) -> None:
    for place in places(adapter):
        grammar_object = place.reach()
        clean = place.mask(grammar_object)
        dirty = np.full_like(clean, -1)
        grammar_object.fill_bitmask(dirty)
        expect(
            bool((dirty == clean).all()),
            place,
            f"filled into ones instead of zeros, {difference(dirty, clean)}",
        )


def check_a_filler_fills_as_a_fill_does(adapter: Adapter) -> None:
    for path in paths(adapter):
        grammar_object = path[0].reach()
        bitmask = allocate_bitmask(adapter.vocabulary.size)
        fill = grammar_object.filler(bitmask)
        for place in path:  # one filler all the way: it follows its object
            if place.tokens:
                grammar_object.accept_token(place.tokens[-1])
            bitmask.fill(-1)
            expected = bitmask.copy()
            fill()
            place.reach().fill_bitmask(expected)
            expect(
                bool((bitmask == expected).all()),
                place,
                f"filled by the filler, {difference(bitmask, expected)}",
            )


def check_a_fill_does_not_move(adapter: Adapter) -> None:
    for place in places(adapter):
        grammar_object, untouched = place.reach(), place.reach()
        first, second = place.mask(grammar_object), place.mask(grammar_object)
        expect(bool((first == second).all()), place, f"filled a second time, {difference(first, second)}")
        after, before = [
            (asked.is_accepting(), asked.is_terminated()) for asked in (grammar_object, untouched)
        ]
        expect(after == before, place, "a fill changes whether the output may end, or has ended")


def check_the_mask_says_what_accept_token_does(adapter: Adapter) -> None:
    for place in places(adapter):
        grammar_object = place.reach()
        mask = place.mask(grammar_object)
        for token in _tokens_to_try(place, mask):
            taken = bool(grammar_object.accept_token(token))
            if taken:
                grammar_object = place.reach()
            bit = is_allowed(mask, token)
            text = adapter.vocabulary.special_tokens.get(token) or adapter.vocabulary.tokens[token]
            expect(
                taken == bit,
                place,
                f"token {token} ({text!r}) has bit {int(bit)}, but accept_token is {taken}",
            )


def check_end_of_sequence_is_allowed_exactly_when_accepting(adapter: Adapter) -> None:
    for place in places(adapter):
        grammar_object = place.reach()
        accepting = grammar_object.is_accepting()
        mask = place.mask(grammar_object)
        for end in adapter.vocabulary.eos_tokens:
            bit = is_allowed(mask, end)
            name = adapter.vocabulary.special_tokens[end]
            text = f"is_accepting() is {accepting}, but the bit of end-of-sequence ({name}) is {int(bit)}"
            expect(bit == accepting, place, text)


def check_special_and_padding_tokens_are_never_allowed(adapter: Adapter) -> None:
    never = _never_allowed(adapter)
    if not never:
        raise NotApplicable(
            "the vocabulary has neither special tokens other than end-of-sequence nor padding"
        )
    for place in (*places(adapter), *places(adapter, FORCED)):
        mask = place.mask(place.reach())
        wrong = [token for token in never if is_allowed(mask, token)]
        expect(not wrong, place, f"{len(wrong)} special or padding tokens are allowed, e.g. {wrong[:4]}")


def check_a_fill_stays_inside_its_bitmask(adapter: Adapter) -> None:
    words = allocate_bitmask(adapter.vocabulary.size).shape[0]
    for path in paths(adapter):
        for length in (words, words - 1, 1):
            _expect_fence_stands(path[-1], length)


def check_a_batch_is_filled_row_by_row(adapter: Adapter) -> None:
    reached = [*places(adapter), *places(adapter, FORCED)]
    objects = [place.reach() for place in reached]
    words = allocate_bitmask(adapter.vocabulary.size).shape[0]
    for content in (0, -1):
        batch = np.full((len(objects), words), content, dtype=np.int32)
        adapter.fill_bitmasks(objects, batch)
        for place, grammar_object, row in zip(reached, objects, batch, strict=True):
            single = place.mask(grammar_object)
            expect(bool((row == single).all()), place, f"filled in a batch, {difference(row, single)}")
    adapter.fill_bitmasks([], np.zeros((0, words), dtype=np.int32))


def check_the_bool_mask_is_the_inverted_bitmask(adapter: Adapter) -> None:
    if adapter.mask_format != "bool":
        adapter_needs(adapter, "fill_bool_mask")
    for place in places(adapter):
        grammar_object = place.reach()
        expected = np.ones(adapter.vocabulary.size, dtype=np.bool_)
        expected[allowed(place, place.mask(grammar_object))] = False
        for content in (False, True):
            mask = np.full(adapter.vocabulary.size, content, dtype=np.bool_)
            grammar_object.fill_bool_mask(mask)
            wrong = np.flatnonzero(mask != expected)
            expect(
                not len(wrong),
                place,
                f"the bool mask differs at {counted(len(wrong), 'token')}, e.g. {wrong[:4].tolist()}",
            )


def _never_allowed(adapter: Adapter) -> list[int]:
    vocabulary = adapter.vocabulary
    return sorted({*vocabulary.special_tokens, *vocabulary.padding_tokens}.difference(vocabulary.eos_tokens))


def _tokens_to_try(place: Place, mask: Bitmask) -> list[int]:
    """Returns end-of-sequence and the same sample each time of the allowed, the forbidden and the never
    allowed tokens.

    Of a small vocabulary nearly all; of a large one few of those that move, for which some backends compute a
    whole mask each.
    """
    vocabulary = place.adapter.vocabulary
    choose = random.Random(0)
    allowed_here = allowed(place, mask).tolist()
    never = _never_allowed(place.adapter)
    forbidden = sorted({*range(vocabulary.size)} - {*allowed_here, *never})
    chosen = set(vocabulary.eos_tokens)
    for tokens, most in ((allowed_here, 48 if vocabulary.size <= 512 else 12), (forbidden, 512), (never, 4)):
        chosen.update(choose.sample(tokens, min(len(tokens), most)))
    return sorted(chosen)


def _expect_fence_stands(place: Place, length: int) -> None:
    """Fills a bitmask that lies between fences: too short, the fill may raise or write less, but never
    beyond."""
    fence = allocate_bitmask(place.adapter.vocabulary.size).shape[0]
    field = np.full(length + 2 * fence, 0x5A5A5A5A, dtype=np.int32)
    grammar_object = place.reach()
    try:
        grammar_object.fill_bitmask(field[fence : fence + length])
    except Exception:
        expect(length < fence, place, "a bitmask inside a larger array cannot be filled")
    intact = bool((field[:fence] == 0x5A5A5A5A).all() and (field[fence + length :] == 0x5A5A5A5A).all())
    expect(intact, place, f"given a bitmask of {length} words, a fill writes outside of it")
