"""Jump-forward and fast-forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from harness.backend.contract.place import (
    FORCED,
    OPEN,
    NotApplicable,
    Place,
    accepted,
    adapter_needs,
    allowed,
    byte_tokens,
    expect,
    kind_of,
    places,
    spell,
)
from harness.backend.grammar import Adapter, GrammarObject, are_tokens


def check_jump_forward_does_not_move(adapter: Adapter) -> None:
    _expect_to_stay(adapter, "jump_forward", _forced_bytes)


def check_jump_forward_bytes_are_forced(adapter: Adapter) -> None:
    found = False
    for place in _all_places(adapter, "jump_forward"):
        forced = _forced_bytes(place, place.reach())
        found = found or bool(forced)
        for count in range(len(forced)):
            _expect_only(place, forced, count)
        tokens = spell(adapter.vocabulary, forced)
        expect(
            accepted(place.reach(), tokens) == len(tokens), place, f"the forced bytes {forced!r} are refused"
        )
    if not found:
        raise NotApplicable("jump_forward finds nothing in the sample grammars")


def check_fast_forward_does_not_move(adapter: Adapter) -> None:
    _expect_to_stay(adapter, "fast_forward_tokens", _forced_tokens)


def check_fast_forward_tokens_are_accepted(adapter: Adapter) -> None:
    found = False
    for place in _all_places(adapter, "fast_forward_tokens"):
        tokens = _forced_tokens(place, place.reach())
        found = found or bool(tokens)
        count = accepted(place.reach(), tokens)
        expect(count == len(tokens), place, f"of the forced tokens {tokens} only {count} are accepted")
    if not found:
        raise NotApplicable("fast_forward_tokens finds nothing in the sample grammars")


def _forced_bytes(place: Place, grammar_object: GrammarObject) -> bytes:
    forced: object = grammar_object.jump_forward()
    expect(isinstance(forced, bytes), place, f"jump_forward gives {kind_of(forced)}, not bytes")
    return cast(bytes, forced)


def _forced_tokens(place: Place, grammar_object: GrammarObject) -> list[int]:
    tokens: object = grammar_object.fast_forward_tokens()
    is_right = are_tokens(tokens, place.adapter.vocabulary.size)
    expect(is_right, place, f"fast_forward_tokens gives {repr(tokens)[:80]}, no list of token ids")
    return cast(list[int], tokens)


def _expect_to_stay(
    adapter: Adapter, method: str, forced: Callable[[Place, GrammarObject], Sequence[int]]
) -> None:
    """Asks twice at each place what is forced there; that must change neither the answer nor what is
    seen."""
    for place in _all_places(adapter, method):
        grammar_object = place.reach()
        before = place.state(grammar_object)
        first, second = forced(place, grammar_object), forced(place, grammar_object)
        expect(first == second, place, f"{method} gives {first!r}, asked again {second!r}")
        expect(place.state(grammar_object) == before, place, f"{method} changes what is seen")


def _all_places(adapter: Adapter, method: str) -> Iterator[Place]:
    adapter_needs(adapter, method)
    for samples in (FORCED, OPEN):
        yield from places(adapter, samples)


def _expect_only(place: Place, forced: bytes, count: int) -> None:
    """After `count` of the forced bytes, the mask, accept_token and the end leave no way but the rest of
    them."""
    vocabulary = place.adapter.vocabulary
    taken = tuple(spell(vocabulary, forced[:count]))
    if accepted(place.reach(), taken) < len(taken):
        return
    here = Place(place.adapter, place.grammar, place.compiled, place.tokens + taken)
    rest = forced[count:]
    grammar_object = here.reach()
    expect(not grammar_object.is_accepting(), here, f"{rest!r} is said to be forced, but the output may end")
    for token in allowed(here, here.mask(grammar_object)):
        text = vocabulary.tokens[token]
        expect(
            rest.startswith(text) or text.startswith(rest),
            here,
            f"{rest!r} is said to be forced, but {text!r} is allowed",
        )
    for token in byte_tokens(vocabulary):
        if not rest.startswith(vocabulary.tokens[token]):
            refused = not grammar_object.accept_token(token)
            expect(
                refused, here, f"{rest!r} is said to be forced, but {vocabulary.tokens[token]!r} is accepted"
            )
