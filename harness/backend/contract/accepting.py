"""Accepting, refusing and ending."""

from __future__ import annotations

from harness.backend.contract.place import (
    NotApplicable,
    accepting_places,
    expect,
    kind_of,
    places,
    refusals,
    refused_byte,
    starts,
    step,
)
from harness.backend.grammar import Adapter, is_bool, is_count


def check_a_valid_output_is_accepted_to_its_end(adapter: Adapter) -> None:
    for start, tokens in starts(adapter):
        grammar_object = start.started()
        for position, token in enumerate(tokens):
            taken = adapter.vocabulary.decode(tokens[:position])
            expect(
                grammar_object.accept_token(token),
                start,
                f"after {taken!r}, {adapter.vocabulary.tokens[token]!r} is refused",
            )
        expect(
            grammar_object.is_accepting(),
            start,
            f"{adapter.vocabulary.decode(tokens)!r} is complete, but not accepting",
        )


def check_answers_are_bools_and_counts(adapter: Adapter) -> None:
    for place in places(adapter):
        grammar_object, token = place.reach(), step(place)
        answers = {name: getattr(grammar_object, name)() for name in ("is_accepting", "is_terminated")}
        if token is not None:
            answers["accept_token"] = place.reach().accept_token(token)
            count = grammar_object.accept_tokens([token])
            wrong = f"accept_tokens gives {kind_of(count)}, not how many of 1 it takes"
            expect(is_count(count, 1), place, wrong)
        for refused in (*adapter.vocabulary.eos_tokens, refused_byte(place)):
            if refused is not None:
                name = adapter.vocabulary.special_tokens.get(refused, adapter.vocabulary.tokens[refused])
                answers[f"accept_token of {name!r}"] = place.reach().accept_token(refused)
        for method, answer in answers.items():
            expect(is_bool(answer), place, f"{method} gives {kind_of(answer)}, not bool")


def check_a_refused_token_does_not_move(adapter: Adapter) -> None:
    for place, token in refusals(adapter):
        grammar_object = place.reach()
        before = place.state(grammar_object)
        grammar_object.accept_token(token)
        expect(
            place.state(grammar_object) == before,
            place,
            f"refusing {adapter.vocabulary.tokens[token]!r} changes what is seen",
        )


def check_a_right_token_is_accepted_after_a_refused_one(adapter: Adapter) -> None:
    for place, token in refusals(adapter):
        right = step(place)
        if right is not None:
            grammar_object, untouched = place.reach(), place.reach()
            grammar_object.accept_token(token)
            texts = f"{adapter.vocabulary.tokens[token]!r}, {adapter.vocabulary.tokens[right]!r}"
            expect(grammar_object.accept_token(right), place, f"after refusing {texts} is refused too")
            untouched.accept_token(right)
            expect(
                place.state(grammar_object) == place.state(untouched),
                place,
                f"after refusing {texts} leads elsewhere",
            )


def check_accept_tokens_stops_at_a_refusal(adapter: Adapter) -> None:
    for place, token in refusals(adapter):
        grammar_object = place.started()
        count = grammar_object.accept_tokens([*place.tokens, token, *place.tokens])
        expect(
            count == len(place.tokens),
            place,
            f"accept_tokens returns {count} where token {len(place.tokens)} is refused",
        )
        expect(
            place.state(grammar_object) == place.state(place.reach()),
            place,
            "accept_tokens stops elsewhere than accept_token",
        )


def check_accepting_is_not_terminated(adapter: Adapter) -> None:
    for place in places(adapter):
        expect(
            not place.reach().is_terminated(),
            place,
            "terminated, though end-of-sequence has not been accepted",
        )


def check_end_of_sequence_is_accepted_exactly_when_accepting(adapter: Adapter) -> None:
    for place in places(adapter):
        for end in adapter.vocabulary.eos_tokens:
            grammar_object = place.reach()
            accepting = bool(grammar_object.is_accepting())
            taken = bool(grammar_object.accept_token(end))
            name = adapter.vocabulary.special_tokens[end]
            text = f"is_accepting() is {accepting}, but accept_token of end-of-sequence ({name}) is {taken}"
            expect(taken == accepting, place, text)


def check_a_refused_end_of_sequence_does_not_move(adapter: Adapter) -> None:
    for place in places(adapter):
        for end in adapter.vocabulary.eos_tokens:
            grammar_object = place.reach()
            if not grammar_object.accept_token(end):
                same = place.state(grammar_object) == place.state(place.reach())
                expect(same, place, "refusing end-of-sequence changes what is seen")


def check_end_of_sequence_terminates(adapter: Adapter) -> None:
    for place, grammar_object in accepting_places(adapter):
        expect(
            grammar_object.is_terminated(), place, "not terminated, though end-of-sequence has been accepted"
        )


def check_each_id_of_end_of_sequence_ends_alike(adapter: Adapter) -> None:
    ends, reached = adapter.vocabulary.eos_tokens, list(places(adapter))
    if len(ends) == 1:
        raise NotApplicable(adapter.knows_one_end or "the vocabulary has one id of end-of-sequence")
    for place in reached:
        seen: dict[int, tuple[bool, bool]] = {}
        for end in ends:
            grammar_object = place.reach()
            seen[end] = bool(grammar_object.accept_token(end)), bool(grammar_object.is_terminated())
        for end in ends[1:]:
            expect(
                seen[end] == seen[ends[0]],
                place,
                f"(accepted, terminated) is {seen[end]} with {adapter.vocabulary.special_tokens[end]} and "
                f"{seen[ends[0]]} with {adapter.vocabulary.special_tokens[ends[0]]}",
            )


def check_an_ended_object_ends_no_other(adapter: Adapter) -> None:
    for place, _ in accepting_places(adapter):
        expect(
            not place.started().is_terminated(),
            place,
            "start() is terminated once another object has ended",
        )
