"""Ids that a library never takes for text: no output is lost where the same text is taken in other tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_cases import case

from harness.backend.grammar import Bitmask, Grammar
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case
from harness.checks import Subject, checks, run_check
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject
from harness.outcomes.case_state import CaseState
from harness.outcomes.outcome import fault_of

ADDED, LETTERS, END = (256, 257), 258, 259
VOCABULARY = Vocabulary(
    "added",
    (*(bytes([byte]) for byte in range(256)), b"<a>", "<é>".encode(), b"ab", b""),
    (END,),
    {END: "</s>"},
)
SCHEMA = case("json_schema", {"type": "string"}, '"ab"')
REGEX = case("regex", "[ab<>é]{0,9}", "ab")
LAYOUT, EXACT = "every_document_of_its_layout_can_be_written", "the_mask_is_exact"


class Lacking(Reference):
    """The reference without some ids, of which it says what it takes each for."""

    lacks: tuple[int, ...] = ADDED
    shows: tuple[int, ...] | None = ADDED
    """The ids that it says are no text; None where it says nothing of its ids."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return LackingGrammar(self, super().compile(grammar)._language)

    def token_bytes(self) -> list[bytes] | None:
        if self.shows is None:
            return None
        return [b"" if token in self.shows else text for token, text in enumerate(self.vocabulary.tokens)]


class LackingGrammar(ReferenceGrammar):
    def start(self) -> ReferenceObject:
        return LackingObject(self._adapter, self._language)


class LackingObject(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        for token in self._adapter.lacks:  # type: ignore[attr-defined]
            bitmask[token // 32] &= np.int32(~(1 << token % 32))

    def accept_token(self, token: int) -> bool:
        return token not in self._adapter.lacks and super().accept_token(token)  # type: ignore[attr-defined]


def seen(name: str, of: Case, **fields: Any) -> set[tuple[str, int, CaseState]]:
    """Returns what the check finds on such a backend: cause, number of tokens, state of the case."""
    adapter = type("Other", (Lacking,), fields)(VOCABULARY, layout="compact")
    _, found = run_check(name, checks()[name], Subject(adapter, of, adapter.compile(of.grammar), None))
    return {(each.cause, each.over, fault_of(each).state) for each in found if not each.documented}


@pytest.mark.parametrize(("name", "of"), [(LAYOUT, SCHEMA), (EXACT, REGEX)])
def test_ids_that_are_never_text_lose_no_output(name: str, of: Case) -> None:
    assert seen(name, of, lacks=(), shows=()) == set()
    assert seen(name, of) == {("never_text", 2, CaseState.OTHER_FAULT)}


@pytest.mark.parametrize(
    "fields",
    [
        {"shows": None},  # it may take them for text elsewhere
        {"shows": ()},
        {"lacks": (*ADDED, ord("<"))},  # the text is lost in each spelling
        {"lacks": (LETTERS,), "shows": (LETTERS,)},  # no library leaves such an id out on purpose
    ],
)
@pytest.mark.parametrize(("name", "of"), [(LAYOUT, SCHEMA), (EXACT, REGEX)])
def test_other_tokens_that_are_lacking_are_valid_output_refused(
    name: str, of: Case, fields: dict[str, Any]
) -> None:
    states = seen(name, of, **fields)
    assert states and {state for *_, state in states} == {CaseState.VALID_REFUSED}
