"""Rollback and copy."""

from __future__ import annotations

from collections.abc import Callable

from harness.backend.contract.place import (
    Place,
    accepted,
    accepting_places,
    adapter_needs,
    clone,
    expect,
    paths,
    places,
    step,
    take_back,
)
from harness.backend.grammar import Adapter, GrammarObject, overrides


def check_rollback_restores(adapter: Adapter) -> None:
    adapter_needs(adapter, "rollback")
    for path in paths(adapter):
        end = path[-1]
        states = [place.state(place.reach()) for place in path]
        for count in range(len(path)):
            grammar_object = end.reach()
            take_back(grammar_object, count)
            place = path[len(end.tokens) - count]
            state = place.state(grammar_object)
            expect(
                state == states[len(place.tokens)], place, f"reached by rollback({count}), it looks different"
            )
            again = accepted(grammar_object, end.tokens[len(place.tokens) :])
            expect(
                again == count,
                place,
                f"after rollback({count}) only {again} of the same {count} tokens are accepted",
            )
            expect(
                end.state(grammar_object) == states[-1],
                end,
                f"reached again after rollback({count}), it looks different",
            )


def check_rollback_past_end_of_sequence_restores(adapter: Adapter) -> None:
    adapter_needs(adapter, "rollback")
    for place, grammar_object in accepting_places(adapter):
        take_back(grammar_object, 1)
        expect(
            place.state(grammar_object) == place.state(place.reach()),
            place,
            "rollback(1) past end-of-sequence does not lead back",
        )
        expect(
            grammar_object.accept_token(adapter.vocabulary.eos_token),
            place,
            "end-of-sequence is refused after rolling it back",
        )
        take_back(grammar_object, 1 + len(place.tokens))
        start = Place(adapter, place.grammar, place.compiled, ())
        same = start.state(grammar_object) == start.state(start.reach())
        expect(
            same,
            place,
            f"rollback({1 + len(place.tokens)}) past end-of-sequence does not lead back to the start",
        )


def check_a_copy_is_at_the_current_position(adapter: Adapter) -> None:
    adapter_needs(adapter, "copy")
    for place in places(adapter):
        grammar_object = place.reach()
        expect(
            place.state(clone(grammar_object)) == place.state(grammar_object), place, "a copy looks different"
        )


def check_moving_a_copy_does_not_move_the_original(adapter: Adapter) -> None:
    adapter_needs(adapter, "copy")
    for place in places(adapter):

        def pair(place: Place = place) -> tuple[GrammarObject, GrammarObject]:
            original = place.reach()
            return clone(original), original

        _expect_independent(place, pair, "moving a copy moves the original")


def check_moving_the_original_does_not_move_a_copy(adapter: Adapter) -> None:
    adapter_needs(adapter, "copy")
    for place in places(adapter):

        def pair(place: Place = place) -> tuple[GrammarObject, GrammarObject]:
            original = place.reach()
            return original, clone(original)

        _expect_independent(place, pair, "moving the original moves a copy")
        original, copied = pair()
        if place.tokens and overrides(original, "rollback"):
            take_back(original, 1)
            expect(
                place.state(copied) == place.state(place.reach()),
                place,
                "moving the original moves a copy by rollback",
            )


def _expect_independent(
    place: Place, pair: Callable[[], tuple[GrammarObject, GrammarObject]], otherwise: str
) -> None:
    """Moves the first of a fresh pair by a token and by end-of-sequence; the second must not show it."""
    here = place.state(place.reach())
    token = step(place)
    if token is not None:
        moved, still = pair()
        moved.accept_token(token)
        expect(place.state(still) == here, place, otherwise)
        expect(still.accept_token(token), place, f"{otherwise}: a token is refused")
        expect(
            place.state(still) == place.state(moved), place, f"{otherwise}: the same token leads elsewhere"
        )
    moved, still = pair()
    if moved.accept_token(place.adapter.vocabulary.eos_token):
        expect(place.state(still) == here, place, f"{otherwise} by end-of-sequence")
