"""The checks of tokenizations on a vocabulary of SentencePiece: a letter has a piece and a byte piece, a
space is `▁`, and what has no piece is spelled by bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from gguf_bytes import write_gguf
from miniatures.reference import ReferenceObject
from miniatures.wrong_bytes import FAULTS, INVALID, MASK, SPECIAL, SPLIT, VERDICT, Strings

from harness.backend.grammar import Adapter, Grammar
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import Subject, checks, run_check

SPECIALS = ["<unk>", "<s>", "</s>"]
PIECES = ["▁", "a", "b", "c", "d", "日", '"', "ab", "▁ab", "▁▁", '"a']
CONTENTS = ('"ab  ab"', '"é日😀ab ▁"', '"日 a"')


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """No piece for é, 😀 or `▁` itself, which bytes spell; a, b, c and the quotation mark have two ids."""
    pieces = [*SPECIALS, *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    path = write_gguf(
        tmp_path_factory.mktemp("sentence_piece") / "made.gguf",
        {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": pieces,
            "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * len(PIECES)],
            "tokenizer.ggml.scores": [0.0] * 259 + [-float(place) for place in range(len(PIECES), 0, -1)],
            "tokenizer.ggml.eos_token_id": 2,
        },
    )
    return replace(load_vocabulary(str(path)), name="made")  # the checks draw their places by the name


def found(adapter: Adapter) -> dict[str, set[str]]:
    """Returns the causes that each of the checks gives, and asserts that each of them had something to do."""
    grammar = Grammar("json_schema", '{"type": "string"}')
    instances = tuple(Instance(text, text.encode(), True) for text in CONTENTS)
    case = Case(case_id(grammar), "made", grammar, instances)
    causes: dict[str, set[str]] = {}
    for name in (VERDICT, MASK, SPECIAL, INVALID, SPLIT):
        subject = Subject(adapter, case, adapter.compile(grammar), 4)
        outcome, findings = run_check(name, checks()[name], subject)
        assert findings or outcome.startswith("passed"), (name, outcome)
        if findings:
            causes[name] = {finding.cause for finding in findings}
    return causes


def test_text_is_spelled_by_pieces_and_bytes(vocabulary: Vocabulary) -> None:
    letters, bytes_of = [vocabulary.tokens[token] for token in range(259, 270)], range(3, 259)
    assert letters[:2] == [b" ", b"a"] and vocabulary.tokens[3 + ord("a")] == b"a"
    spelled = vocabulary.encode("é a▁".encode())
    assert [token in bytes_of for token in spelled] == [True, True, False, False, True, True, True]


def test_a_right_adapter_passes(vocabulary: Vocabulary) -> None:
    assert found(Strings(vocabulary)) == {}


class _RefusesBytePieces(ReferenceObject):
    """Takes a byte piece for text of its own, as a loader does that keeps one id for each text."""

    def may_take(self, token: int) -> bool:
        text = self.vocabulary.tokens[token]
        twice = 3 <= token < 259 and self.vocabulary.tokens[259:].count(text) > 0
        return not twice and super().may_take(token)


class RefusesBytePieces(Strings):
    object_class: ClassVar[type[ReferenceObject]] = _RefusesBytePieces


def test_an_adapter_that_knows_one_id_of_two_is_noticed(vocabulary: Vocabulary) -> None:
    assert found(RefusesBytePieces(vocabulary)).keys() >= {VERDICT}


def test_an_adapter_that_knows_whole_characters_only_is_noticed(vocabulary: Vocabulary) -> None:
    (mutant,) = (each for each in FAULTS if each.__name__ == "KnowsWholeCharactersOnly")
    causes = found(mutant(vocabulary))
    assert causes.keys() >= {VERDICT, SPLIT} and causes[SPLIT] == {"partial_utf8"}
