"""Compiling, declining, and what must not depend on it."""

from __future__ import annotations

import gc

from harness.backend.contract.place import (
    OPEN,
    NotApplicable,
    compiled_of,
    expect,
    paths,
    places,
    refusals,
    starts,
)
from harness.backend.grammar import DIALECTS, Adapter, Dialect, Grammar, InvalidGrammar, UnsupportedGrammar
from harness.errors import error_text

MALFORMED: dict[Dialect, tuple[str, ...]] = {
    "regex": ("(", "[a"),
    "choice": ("[", "{}"),
    "json_schema": ("{", '{"type": "integer"'),
    "ebnf": ('root ::= "a', "root ::= ("),
    "lark": ('start: "a', "start: ("),
    "structural_tag": ("{", "[]"),
}
"""Texts that are not even of their dialect's syntax."""


TIMES = 4
"""How many fresh objects are compared with the first one at each place."""


def check_a_right_grammar_is_not_called_invalid(adapter: Adapter) -> None:
    unsupported = []
    for grammar, _ in OPEN:
        if grammar.dialect in adapter.dialects:
            try:
                compiled_of(adapter, grammar)
            except InvalidGrammar as error:
                expect(False, grammar, f"right and simple, but compile raises InvalidGrammar: {error}")
            except UnsupportedGrammar as error:
                unsupported.append(f"{grammar.dialect}: {error}")
    if unsupported:
        raise NotApplicable(f"declared, but with these options unsupported: {'; '.join(unsupported)}")


def check_an_undeclared_dialect_is_unsupported(adapter: Adapter) -> None:
    undeclared = set(DIALECTS).difference(adapter.dialects)
    if not undeclared:
        raise NotApplicable("every dialect is declared")
    for grammar, _ in OPEN:
        if grammar.dialect in undeclared:
            outcome = _outcome(adapter, grammar)
            expect(outcome == "raises UnsupportedGrammar", grammar, f"undeclared, and compile {outcome}")


def check_a_malformed_grammar_is_declined(adapter: Adapter) -> None:
    next(refusals(adapter))  # where nothing is ever refused, the grammar is not even read
    for grammar in _malformed(adapter):
        outcome = _outcome(adapter, grammar)
        expect(
            outcome in ("raises UnsupportedGrammar", "raises InvalidGrammar"),
            grammar,
            f"malformed, and compile {outcome}",
        )


def check_a_malformed_grammar_harms_nothing(adapter: Adapter) -> None:
    for path in paths(adapter):
        living = [place.reach() for place in path]
        before = [place.state(grammar_object) for place, grammar_object in zip(path, living, strict=True)]
        for grammar in _malformed(adapter):
            if grammar.dialect == path[0].grammar.dialect:
                _outcome(adapter, grammar)
        compiled = compiled_of(adapter, path[0].grammar)
        for place, grammar_object, state in zip(path, living, before, strict=True):
            expect(
                place.state(grammar_object) == state,
                place,
                "a malformed grammar changes an object that was there before",
            )
            again = place.with_grammar(compiled)
            expect(
                again.state(again.reach()) == state,
                place,
                "after a malformed grammar, the same grammar has another mask",
            )


def check_compiling_twice_gives_the_same_masks(adapter: Adapter) -> None:
    for path in paths(adapter):
        compiled = compiled_of(adapter, path[0].grammar)
        for place in path:
            again = place.with_grammar(compiled)
            expect(
                again.state(again.reach()) == place.state(place.reach()),
                place,
                "compiled again, the grammar has another mask",
            )


def check_the_same_question_has_one_answer(adapter: Adapter) -> None:
    for place in places(adapter):
        first = place.state(place.reach())
        for _ in range(TIMES):
            expect(
                place.state(place.reach()) == first,
                place,
                "two fresh objects, asked alike, look different: other checks may fail for the same reason",
            )


def check_starts_are_independent(adapter: Adapter) -> None:
    for start, tokens in starts(adapter):
        first, second = start.started(), start.started()
        before = start.state(second)
        first.accept_token(tokens[0])
        expect(
            start.state(second) == before, start, "moving one object moves another one from the same start()"
        )
        third = start.started()
        expect(
            start.state(third) == before, start, "start() is not at the start once another object has moved"
        )


def check_an_object_outlives_its_compiled_grammar(adapter: Adapter) -> None:
    reached = [path[-1] for path in paths(adapter)]
    survivors = [place.with_grammar(compiled_of(adapter, place.grammar)).reach() for place in reached]
    gc.collect()
    for place, survivor in zip(reached, survivors, strict=True):
        expect(
            place.state(survivor) == place.state(place.reach()),
            place,
            "an object changes when its compiled grammar is dropped",
        )


def _malformed(adapter: Adapter) -> list[Grammar]:
    return [Grammar(dialect, text) for dialect in sorted(adapter.dialects) for text in MALFORMED[dialect]]


def _outcome(adapter: Adapter, grammar: Grammar) -> str:
    """Returns what compiling does, as the end of a sentence."""
    try:
        adapter.compile(grammar)
    except (UnsupportedGrammar, InvalidGrammar) as declined:
        return f"raises {type(declined).__name__}"
    except Exception as error:
        return f"raises {error_text(error)}"
    return "succeeds"
