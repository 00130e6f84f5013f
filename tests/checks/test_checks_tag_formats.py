"""The checks that know of structural tags, on tags of the new form: silent on the reference, and each wrong
backend is found."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.backend.grammar import Bitmask, Grammar
from harness.backend.layout import LAYOUTS
from harness.backend.vocabulary import Vocabulary, byte_vocabulary
from harness.cases.case import Case, Instance
from harness.checks.layouts import check_every_document_of_its_layout_can_be_written
from harness.checks.masks import check_a_token_without_text_is_never_allowed
from harness.checks.retokenizing import check_retokenized_state_equals_a_replay
from harness.checks.special_tokens import check_special_token_text_is_plain_text
from harness.checks.subject import NotApplicable, Subject
from harness.checks.tokenization import check_every_tokenization_has_the_same_verdict
from harness.checks.tokenization_masks import check_every_tokenization_reaches_the_same_mask
from harness.checks.utf8 import check_invalid_utf8_is_refused_at_once
from harness.checks.utf8_pieces import check_every_split_of_a_character_is_accepted
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject

BYTES = byte_vocabulary()


def subject(adapter: Reference, format: dict[str, Any], *outputs: bytes) -> Subject:
    grammar = Grammar("structural_tag", json.dumps({"format": format}))
    instances = tuple(Instance("one", output, True) for output in outputs)
    return Subject(adapter, Case("0" * 12, "a case", grammar, instances), adapter.compile(grammar))


class _Starting(ReferenceGrammar):
    """A grammar whose objects are of another class."""

    def __init__(self, kind: type[ReferenceObject], *parts: Any) -> None:
        super().__init__(*parts)
        self.kind = kind

    def start(self) -> ReferenceObject:
        return self.kind(self._adapter, self._language)


class TakesItForTheEnd(Reference):
    """It takes the text `</s>` for the end of the output, and refuses its last character."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return _Starting(_WithoutTheName, self, self._language(grammar))


class _WithoutTheName(ReferenceObject):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.written = b""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        if self.written.endswith(b"</s"):
            bitmask[ord(">") >> 5] &= ~(1 << (ord(">") & 31))

    def accept_token(self, token: int) -> bool:
        if token == ord(">") and self.written.endswith(b"</s"):
            return False
        self.written += BYTES.tokens[token]
        return super().accept_token(token)


class TakesTheId(Reference):
    """It takes the id of the special token `<call>` for free text."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return _Starting(_WithTheId, self, self._language(grammar))


class _WithTheId(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        bitmask[8] |= 2  # id 257


FREE = {"type": "any_text", "excludes": ["###"]}
WITH_CALL = Vocabulary("with a call", (*BYTES.tokens, b""), (256,), {256: "</s>", 257: "<call>"})


@pytest.mark.parametrize(
    ("adapter", "causes"),
    [
        (Reference(BYTES), set()),
        (Reference(WITH_CALL), set()),
        (TakesItForTheEnd(BYTES), {"special_text_refused"}),
        (TakesTheId(WITH_CALL), {"special_id_allowed"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_text_of_a_special_token_is_text_in_free_text(adapter: Reference, causes: set[str]) -> None:
    findings = list(check_special_token_text_is_plain_text(subject(adapter, FREE, b"a")))
    assert {each.cause for each in findings} == causes


def test_where_no_such_text_may_stand_nothing_is_said() -> None:
    for format in ({"type": "any_text", "excludes": ["<"]}, {"type": "const_string", "value": "a"}):
        with pytest.raises(NotApplicable, match="no place was found"):
            list(check_special_token_text_is_plain_text(subject(Reference(BYTES), format, b"")))
    with pytest.raises(NotApplicable, match="meant by their ids"):
        list(check_special_token_text_is_plain_text(subject(Reference(BYTES), {"type": "any_tokens"}, b"")))


class Narrower(Reference):
    """It writes compact documents, and says that it writes spaced ones too."""

    def __init__(self) -> None:
        super().__init__(BYTES, layout="compact")
        self.layout_in_tags = replace(LAYOUTS["compact"], separators=None)

    def _language(self, grammar: Grammar) -> Any:
        right, self.layout = self.layout, LAYOUTS["compact"]
        try:
            return super()._language(grammar)
        finally:
            self.layout = right


LIST = {"type": "json_schema", "json_schema": {"type": "array", "items": {"const": 1}}}
TAGGED = {"type": "tag", "begin": "<", "content": LIST, "end": ">"}


def test_a_layout_is_demanded_in_the_new_form() -> None:
    output = b"<[1,1]>"
    right = Reference(BYTES, layout="compact")
    assert list(check_every_document_of_its_layout_can_be_written(subject(right, TAGGED, output))) == []
    findings = list(check_every_document_of_its_layout_can_be_written(subject(Narrower(), TAGGED, output)))
    assert {each.cause for each in findings} == {"whitespace"}


ABOUT_TEXT = (
    check_every_tokenization_has_the_same_verdict,
    check_every_tokenization_reaches_the_same_mask,
    check_invalid_utf8_is_refused_at_once,
    check_every_split_of_a_character_is_accepted,
    check_a_token_without_text_is_never_allowed,
    check_retokenized_state_equals_a_replay,
)


@pytest.mark.parametrize("check", ABOUT_TEXT, ids=lambda check: check.__name__)
def test_what_holds_of_text_is_not_asked_where_tokens_are_meant_by_their_ids(check: Any) -> None:
    for format in ({"type": "token", "token": "a"}, {"type": "optional", "content": {"type": "any_tokens"}}):
        with pytest.raises(NotApplicable, match="meant by their ids"):
            list(check(subject(Reference(WITH_CALL), format, b"a")))
