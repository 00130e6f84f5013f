"""The check that every token which a mask allows leads to a document of the schema: wrong backends, the cause
that is named for each, and the real backends where they are wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.backend.grammar import CompiledGrammar, Grammar
from harness.backend.registry import make, parse_spec, parse_specs
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance
from harness.checks.documents import check_every_allowed_token_leads_to_a_document
from harness.checks.subject import NotApplicable, Subject
from harness.oracle.automaton import DEAD
from harness.oracle.language import outputs_of
from harness.oracle.reference import Reference, ReferenceGrammar
from harness.oracle.trie import TokenSet, TokenTrie
from harness.rows.row import Finding

BYTES = byte_vocabulary()


class Relaxed(Reference):
    """The reference of the schema with some keywords forgotten, or with names written again."""

    without: frozenset[str] = frozenset()
    repeats_names = False

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, outputs_of(grammar, None, False, self.without, self.repeats_names))


def forgetting(*keywords: str, vocabulary: Vocabulary = BYTES) -> Reference:
    adapter = Relaxed(vocabulary)
    adapter.without = frozenset(keywords)
    return adapter


def found(adapter: Any, schema: Any, *documents: Any, options: dict[str, str] | None = None) -> list[Finding]:
    return found_in(adapter, Grammar("json_schema", json.dumps(schema)), *documents, options=options)


def found_in(
    adapter: Any, grammar: Grammar, *documents: Any, options: dict[str, str] | None = None
) -> list[Finding]:
    instances = tuple(
        Instance("an instance", each if isinstance(each, bytes) else json.dumps(each).encode(), None)
        for each in documents
    )
    case = Case("0" * 12, "a case", grammar, instances, options=options or {})
    compiled: CompiledGrammar = adapter.compile(grammar)
    return list(check_every_allowed_token_leads_to_a_document(Subject(adapter, case, compiled)))


def test_along_instances_that_we_made_every_place_is_compared() -> None:
    """One place of effort finds a wrong mask that stands at the last of some fifteen places."""
    grammar = Grammar(
        "json_schema", json.dumps({"type": "array", "items": {"type": "integer"}, "maxItems": 3})
    )
    content = b"[1, 2, 3]"
    for made_for, places in ((("/maxItems",), len(content) + 1), ((), 1)):
        case = Case("0" * 12, "a case", grammar, (Instance("made", content, True, made_for=made_for),))
        adapter = forgetting("maxItems")
        subject = Subject(adapter, case, adapter.compile(grammar), effort=1)
        findings = list(check_every_allowed_token_leads_to_a_document(subject))
        assert subject.counted["every_allowed_token_leads_to_a_document"]["places"] == places
        assert [finding.text[:8] for finding in findings] == (["after b'"] if made_for else [])


SCHEMAS = [
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": 1}, "required"),
    ({"type": "string", "maxLength": 2}, "ab", "maxLength"),
    ({"type": "string", "pattern": "^a*$"}, "aa", "pattern"),
    ({"type": "array", "items": {"const": 0}}, [0], "const"),
    ({"type": "integer", "maximum": 3}, 3, "maximum"),
    ({"oneOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]}, 3, "oneOf"),
    ({"properties": {"a": True}, "additionalProperties": False, "type": "object"}, {"a": 1},
     "additionalProperties"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "document", "keyword"), SCHEMAS)
def test_a_backend_that_forgets_a_keyword_is_found_by_its_name(
    schema: Any, document: Any, keyword: str
) -> None:
    findings = found(forgetting(keyword), schema, document, {"b": 1}, [0], 7)
    assert {finding.cause for finding in findings} == {f"keyword_{keyword}"}
    assert f"without `{keyword}` they would be right" in findings[0].text
    assert all(finding.under and not finding.over for finding in findings)


@pytest.mark.parametrize(("schema", "document", "keyword"), SCHEMAS)
def test_the_reference_is_right(schema: Any, document: Any, keyword: str) -> None:
    for vocabulary in (BYTES, load_vocabulary("probe")):
        assert found(Reference(vocabulary), schema, document) == []


def test_two_keywords_are_named_together() -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "minProperties": 1}
    (finding, *_) = found(forgetting("required", "minProperties"), schema, {})
    assert finding.cause == "several_keywords"  # `}` breaks both at once
    adapter = forgetting("maxLength", "maximum", vocabulary=load_vocabulary("probe"))
    schema = {"type": ["string", "integer"], "maxLength": 0, "maximum": 0}
    assert {each.cause for each in found(adapter, schema)} == {"keyword_maxLength+maximum"}


def test_a_name_that_is_written_again_is_told() -> None:
    adapter = Relaxed(BYTES)
    adapter.repeats_names = True
    schema = {"type": "object", "properties": {"a": True}}
    assert {each.cause for each in found(adapter, schema, b'{"a":1,"a":1}')} == {"duplicate_name"}


class BentTrie(TokenTrie):
    """Masks that allow one token (a byte, or end-of-sequence) too, wherever a document stands so."""

    def __init__(self, token: int, place: str) -> None:
        super().__init__(BYTES)
        self.token, self.place = token, place

    def mask(self, automaton: Any, state: int) -> TokenSet:
        allowed = super().mask(automaton, state)
        if state != DEAD and automaton.place(state) == self.place:
            allowed[self.token] = True
        return allowed


def bent(byte: int | None, place: str) -> Reference:
    """The reference that allows this byte (None: end-of-sequence) too at each place of that kind."""
    adapter = Reference(BYTES)
    adapter.trie = BentTrie(BYTES.eos_token if byte is None else byte, place)
    return adapter


@pytest.mark.parametrize(
    ("byte", "place", "document", "cause"),
    [
        (0x0A, "string", b'"a"', "control_character"),
        (0xFF, "string", b'"a"', "invalid_utf8"),
        (ord("x"), "escape", b'"\\n"', "escape"),
        (ord("-"), "number", b"10", "number_form"),
        (ord("]"), "between", b"[1]", "no_json"),
        (None, "string", b'"a"', "early_end"),
    ],
)
def test_what_is_no_json_is_told_apart(byte: int | None, place: str, document: bytes, cause: str) -> None:
    assert cause in {each.cause for each in found(bent(byte, place), True, document)}
    assert found(Reference(BYTES), True, document) == []


def test_half_a_surrogate_pair_is_no_character() -> None:
    findings = found(bent(ord('"'), "escape"), True, b'"\\ud800\\udc00"')
    assert "surrogate" in {each.cause for each in findings}


def test_formats_are_constraints_where_the_case_asserts_them() -> None:
    schema = {"type": "string", "format": "date"}
    assert found(Reference(BYTES), schema, "2020-01-01") == []
    findings = found(Reference(BYTES), schema, "2020-01-01", options={"format": "assert"})
    assert {each.cause for each in findings} == {"keyword_format"}
    assert found(Reference(BYTES, formats="assert"), schema, "2020-01-01", options={"format": "assert"}) == []


def tag(schema: Any, triggers: tuple[str, ...] = ("<f",)) -> Grammar:
    structure = {"begin": "<f>", "schema": schema, "end": "</f>"}
    return Grammar("structural_tag", json.dumps({"triggers": triggers, "structures": [structure]}))


@pytest.mark.parametrize(
    ("byte", "place", "cause"),
    [
        (0xFF, "outside_tag", "invalid_utf8"),
        (ord("g"), "outside_tag", "outside_tag"),
        (ord("g"), "begin", "begin"),
        (ord("g"), "end", "end"),
        (ord("-"), "number", "number_form"),
        (ord("]"), "between", "no_json"),
        (None, "begin", "early_end"),
        (None, "number", "early_end"),
        (None, "end", "early_end"),
    ],
)
def test_what_is_no_tag_is_told_apart(byte: int | None, place: str, cause: str) -> None:
    grammar = tag({"type": "integer"}, ("<f", "<g"))
    for adapter, causes in ((bent(byte, place), {cause}), (Reference(BYTES), set[str]())):
        findings = found_in(adapter, grammar, b"a <f>-1</f> b")
        assert {each.cause for each in findings} == causes
        assert all("no output of the structural tag goes on" in each.text for each in findings)


NEW_FORM = Grammar(
    "structural_tag",
    json.dumps(
        {
            "format": {
                "type": "sequence",
                "elements": [
                    {"type": "any_text", "excludes": ["gg", "<"]},
                    {
                        "type": "tag",
                        "begin": "<",
                        "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
                        "end": ">",
                    },
                    {"type": "regex", "pattern": "[ab]+c"},
                ],
            }
        }
    ),
)


@pytest.mark.parametrize(
    ("byte", "place", "cause"),
    [
        (0xFF, "fixed_text", "invalid_utf8"),
        (ord("<"), "fixed_text", "fixed_text"),
        (ord("]"), "between", "no_json"),
        (ord("g"), "pattern", "pattern"),
        (0x80, "pattern", "invalid_utf8"),
        (None, "fixed_text", "early_end"),
        (None, "pattern", "early_end"),
    ],
)
def test_what_is_no_output_of_the_new_form_is_told_apart(byte: int | None, place: str, cause: str) -> None:
    for adapter, causes in ((bent(byte, place), {cause}), (Reference(BYTES), set[str]())):
        findings = found_in(adapter, NEW_FORM, b"a g< -1 >abc", b"<7>ac")
        assert {each.cause for each in findings} == causes


def test_free_text_that_goes_on_wrongly_is_told_apart() -> None:
    form = {"format": {"type": "any_text", "excludes": ["gg"]}}
    grammar = Grammar("structural_tag", json.dumps(form))
    findings = found_in(bent(ord("g"), "free_text"), grammar, b"ag")
    assert {each.cause for each in findings} == {"free_text"}
    assert found_in(Reference(BYTES), grammar, b"ag") == []


def test_an_id_that_no_output_goes_on_with_is_found() -> None:
    content = {"type": "exclude_token", "exclude_tokens": ["b"]}
    form = {"format": {"type": "tag", "begin": {"token": "a"}, "content": content, "end": ""}}
    grammar = Grammar("structural_tag", json.dumps(form))
    findings = found_in(bent(ord("b"), "token"), grammar, b"ac")
    assert {each.cause for each in findings} == {"token_id"} and {each.position for each in findings} == {
        0,
        1,
    }
    assert {each.cause for each in found_in(bent(None, "token"), grammar, b"ac")} == {"early_end"}
    assert found_in(Reference(BYTES), grammar, b"ac") == []


@pytest.mark.parametrize(("schema", "document", "keyword"), SCHEMAS)
def test_keywords_are_named_in_tags_too(schema: Any, document: Any, keyword: str) -> None:
    output = b"a <f>" + json.dumps(document).encode() + b"</f>"
    outputs = output, b'<f>{"b": 1}</f>', b"<f>[0]</f>", b"<f>7</f>"
    findings = found_in(forgetting(keyword), tag(schema), *outputs)
    assert {finding.cause for finding in findings} == {f"keyword_{keyword}"}
    assert found_in(Reference(BYTES), tag(schema), *outputs) == []


def test_without_a_reference_nothing_is_said() -> None:
    with pytest.raises(NotApplicable, match="uniqueItems"):
        found(forgetting("uniqueItems"), {"uniqueItems": True}, [])
    with pytest.raises(NotApplicable, match="uniqueItems"):
        found_in(forgetting("uniqueItems"), tag({"uniqueItems": True}), b"")
    with pytest.raises(NotApplicable, match="neither a JSON Schema nor a structural tag"):
        found_in(Reference(BYTES), Grammar("regex", "a"), b"a")


def test_xgrammar_allows_the_bytes_of_surrogates() -> None:
    """They are no UTF-8 (RFC 3629, section 3); llguidance refuses them."""
    vocabulary = load_vocabulary("probe")
    causes = {}
    for name in ("xgrammar", "llguidance"):
        (spec,) = parse_specs(name)
        causes[name] = {each.cause for each in found(make(spec, vocabulary), {"type": "string"}, "ab")}
    assert causes == {"xgrammar": {"invalid_utf8", "surrogate"}, "llguidance": set()}


def test_xgrammar_takes_any_bytes_for_the_free_text_of_a_tag() -> None:
    """It lets the output end inside a character too; llguidance does neither."""
    causes = {}
    for name in ("xgrammar", "llguidance"):
        adapter = make(parse_spec(name), BYTES)
        findings = found_in(adapter, tag({"type": "integer"}), "é <f>1</f> é".encode())
        causes[name] = {each.cause for each in findings}
    assert causes == {"xgrammar": {"invalid_utf8", "early_end"}, "llguidance": set()}
