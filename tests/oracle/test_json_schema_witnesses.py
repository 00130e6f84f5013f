"""Tokens that the reference allows have a witness: a short document that goes on with them, which both
validators accept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import numpy as np
import pytest

from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case
from harness.cases.suite import find_suite, read_cases
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.completion import shortest_completion
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.second import second_verdict
from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.oracle.language import documents_of
from harness.oracle.trie import trie_of

SHARES = 30
PLACES = 2
MOST_LOOKED_AT = 1_500
AVOIDED = b" \t\n\r,123456789abcdefABCDEF"
"""Bytes without which most documents can be finished; with them there are too many texts to look at."""
LONGEST = 40
"""Bytes of a token; one of 255 brackets has its witness too far away."""
MOST_STATES = 30
"""States behind the tokens of one place that are finished; tokens that lead to one state have one
completion."""


@cache
def schemas() -> tuple[Case, ...]:
    cases = (case for name in ("json_schema", "known_bugs") for case in read_cases(find_suite(name)))
    return tuple(case for case in cases if case.grammar.dialect == "json_schema")


def witnesses(case: Case, vocabulary: str, tokens: int | None) -> Iterator[bytes]:
    """Yields documents that begin with the text of a place and an allowed token."""
    trie = trie_of(load_vocabulary(vocabulary))
    texts, draw = trie.vocabulary.tokens, Random(case.id)
    documents = documents_of(case.grammar.text, case.draft, case.asserts_formats)
    contents = [instance.content for instance in case.instances if instance.valid]
    begun = [content[:end] for content in contents for end in range(1, len(content) + 1)]
    for place in [b"", *draw.sample(begun, min(len(begun), PLACES - 1))]:
        state = documents.run(documents.start, place)
        behind = trie.states(documents, state)
        allowed = [
            token for token in np.flatnonzero(behind != DEAD).tolist() if 0 < len(texts[token]) <= LONGEST
        ]
        if tokens is not None and len(allowed) > tokens:
            allowed = draw.sample(allowed, tokens)
        by_state = {int(behind[token]): token for token in allowed}
        for reached in draw.sample(sorted(by_state), min(len(by_state), MOST_STATES)):
            rest = shortest_completion(documents, reached, MOST_LOOKED_AT, AVOIDED)
            if rest is not None:  # else it is too far away
                yield place + texts[by_state[reached]] + rest


def checked(cases: tuple[Case, ...], vocabulary: str, tokens: int | None = None) -> int:
    judged = 0
    for case in cases:
        try:
            for text in witnesses(case, vocabulary, tokens):
                try:
                    verdict = document_is_valid(case.grammar.text, text, case.draft, case.asserts_formats)
                except Unjudgeable:
                    continue
                assert verdict, (case.name, text)
                second, _ = second_verdict(case.grammar.text, text, case.draft, case.asserts_formats)
                # The second validator reads some regular expressions otherwise.
                assert second is not False or "pattern" in case.grammar.text, (case.name, text)
                judged += 1
        except NoOracle:
            continue
    return judged


def test_every_allowed_token_begins_a_document() -> None:
    assert checked(schemas()[::SHARES], "probe") > 100
    assert checked(schemas()[1 :: 2 * SHARES], "tekken", 200) > 40


@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_every_allowed_token_of_every_schema_begins_a_document(share: int) -> None:
    assert checked(schemas()[share::SHARES], "probe") > 50
