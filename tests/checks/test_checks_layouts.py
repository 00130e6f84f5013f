"""The check that every document of the backend's own layout can be written: wrong backends, the cause that is
named for each, and those on which it must be silent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from declaring import BYTES, Declaring, declaring
from layout_grammars import A_OR_BA

from harness.backend.grammar import Bitmask, Grammar, unpack_mask
from harness.backend.layout import COMPACT, EVERY_SPELLING, LAYOUTS, Layout, LayoutName
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case, Instance
from harness.checks.documents import documents_of_case
from harness.checks.layouts import check_every_document_of_its_layout_can_be_written
from harness.checks.subject import NotApplicable, Subject
from harness.oracle.ebnf.automaton import ebnf_automaton
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject
from harness.rows.row import Finding

AB = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


def findings_of(adapter: Any, schema: Any, *documents: bytes, **options: str) -> list[Finding]:
    grammar = Grammar("json_schema", json.dumps(schema))
    instances = tuple(Instance("an instance", document, None) for document in documents)
    case = Case("0" * 12, "a case", grammar, instances, options=options)
    return list(
        check_every_document_of_its_layout_can_be_written(Subject(adapter, case, adapter.compile(grammar)))
    )


def causes(findings: Sequence[Finding]) -> set[str]:
    assert all(finding.over and not finding.under for finding in findings)
    return {finding.cause for finding in findings}


SPACED = replace(COMPACT, separators=None)
CLOSED = replace(COMPACT, unlisted="never")
STRICT = replace(CLOSED, further_items=False)
ASKED = replace(STRICT, unlisted="asked")
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
LABELS = {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}
UNESCAPED = replace(COMPACT, short_escapes=b"", hex_escapes=())


@pytest.mark.parametrize(
    ("declared", "writes", "schema", "document", "cause"),
    [
        (SPACED, COMPACT, AB, b'{"a":1,"b":2}', "whitespace"),
        (SPACED, LAYOUTS["spaced"], {"enum": [[1, 2]]}, b"[1, 2]", "whitespace"),
        (replace(CLOSED, order="any"), CLOSED, AB, b'{"b":2}', "property_order"),
        (COMPACT, CLOSED, AB, b'{"a":1}', "unlisted_name"),
        (COMPACT, STRICT, {"prefixItems": [{"type": "null"}]}, b"[null]", "further_item"),
        (ASKED, STRICT, MAP, b"{}", "unlisted_name"),
        (ASKED, STRICT, LABELS, b"{}", "unlisted_name"),
        (COMPACT, UNESCAPED, {"type": "string"}, b'"a"', "escape"),
    ],
)
def test_a_backend_that_does_not_keep_its_word_is_found(
    declared: Layout, writes: Layout, schema: Any, document: bytes, cause: str
) -> None:
    assert causes(findings_of(declaring(declared, writes), schema, document)) == {cause}


@pytest.mark.parametrize(
    ("schema", "stricter", "document", "cause"),
    [
        ({"type": "string", "maxLength": 3}, {"maxLength": 2}, b'"ab"', "string"),
        ({"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^a$"}, b'"a"', "string"),
        ({"type": "string", "pattern": "^a+$"}, {"const": "aa"}, b'"aa"', "keyword_pattern"),
        ({"type": "integer", "maximum": 19}, {"enum": [1]}, b"1", "keyword_type"),
        ({"enum": [True, None]}, {"const": True}, b"true", "keyword_enum"),
        ({"enum": [1.0, "ab"], "maxLength": 9}, {"const": 1}, b"1", "keyword_enum"),
        (True, {"type": "boolean"}, b"true", "value"),
        ({"minItems": 1}, {"type": "array", "minItems": 1}, b"[1]", "value"),
    ],
)  # fmt: skip
def test_a_backend_that_loses_documents_is_found(
    schema: Any, stricter: Any, document: bytes, cause: str
) -> None:
    assert cause in causes(findings_of(declaring(COMPACT, schema=stricter), schema, document))


WHOLE_NAME = {**LABELS, "patternProperties": {"^x-$": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "stricter", "text", "cause"),
    [
        (LABELS, WHOLE_NAME, b'{"x-', "keyword_patternProperties"),
        (MAP, {**MAP, "propertyNames": {"maxLength": 1}}, b'{"a', "keyword_additionalProperties"),
    ],
)
def test_a_closed_object_has_the_names_that_a_pattern_or_a_schema_of_all_others_asks_for(
    schema: Any, stricter: Any, text: bytes, cause: str
) -> None:
    found = findings_of(declaring(ASKED, schema=stricter), schema, text + b'":1}')
    assert causes(found) == {cause} and {finding.position for finding in found} == {len(text)}
    assert findings_of(declaring(ASKED), schema, text + b'":1}', text + b'bc":1}', b"{}") == []
    # What only the default of `additionalProperties` lets in may be written, and need not be.
    assert findings_of(declaring(ASKED, COMPACT), AB, b'{"a":1}', b'{"a":1,"c":1}') == []


class TwoPlaces(Declaring):
    """Writes fractions with two digits."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, ebnf_automaton('root ::= "0." ("25" | "50" | "75")'))


def test_numbers_with_more_zeros_are_told_apart_from_lost_ones() -> None:
    schema = {"multipleOf": 0.25, "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    findings = findings_of(declaring(COMPACT, kind=TwoPlaces), schema, b"0.50")
    assert [(finding.position, finding.cause) for finding in findings] == [(3, "number_form")]


class EachByItself(Declaring):
    """Writes each alternative of A_OR_BA in the order of its own names."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(
            self, ebnf_automaton(r'root ::= "{" ("\"a\":null" | "\"b\":null" ",\"a\":null"? )? "}"')
        )


class OnlyTheFirst(Declaring):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, ebnf_automaton(r'root ::= "{\"a\":null}"'))


def test_alternatives_may_order_their_names_each_by_itself() -> None:
    documents = (b'{"a":null}', b'{"b":null,"a":null}', b'{"b":null}')
    assert findings_of(declaring(COMPACT, kind=EachByItself), A_OR_BA, *documents) == []
    lost = findings_of(declaring(COMPACT, kind=OnlyTheFirst), A_OR_BA, *documents)
    assert b"b" in {bytes.fromhex(example) for found in lost for example in found.examples}


class OwnNamesFirst(Declaring):
    """Writes the names of INHERITED, which has a list of its own and one that it refers to, its own first."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(
            self, ebnf_automaton(r'root ::= "{" ("\"x\":null" ",\"id\":null"? | "\"id\":null")? "}"')
        )


class BaseFirst(Declaring):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(
            self, ebnf_automaton(r'root ::= "{" ("\"id\":null" ",\"x\":null"? | "\"x\":null")? "}"')
        )


class OnlyTheBase(Declaring):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, ebnf_automaton(r'root ::= "{" "\"id\":null"? "}"'))


INHERITED = {
    "type": "object",
    "allOf": [{"$ref": "#/definitions/base"}],
    "properties": {"x": {"type": "null"}},
    "propertyNames": {"enum": ["id", "x"]},
    "definitions": {"base": {"type": "object", "properties": {"id": {"type": "null"}}}},
}


def test_of_lists_that_hold_together_each_may_come_first() -> None:
    documents = (b'{"id":null,"x":null}', b'{"x":null,"id":null}', b'{"id":null}')
    for kind in (OwnNamesFirst, BaseFirst):
        assert findings_of(declaring(COMPACT, kind=kind), INHERITED, *documents) == []
    lost = findings_of(declaring(COMPACT, kind=OnlyTheBase), INHERITED, *documents)
    assert b"x" in {bytes.fromhex(example) for found in lost for example in found.examples}


class Verbatim(Declaring):
    """Writes the constants of TEMPERATURES as the schema has them."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, ebnf_automaton('root ::= "0.0" | "0.5" | "2.5e3"'))


class WithoutTheHalf(Declaring):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, ebnf_automaton('root ::= "0.0" | "2.5e3"'))


TEMPERATURES = {"enum": [0.0, 0.5, 1e30]}


def test_a_constant_may_be_written_as_the_schema_has_it() -> None:
    assert findings_of(declaring(COMPACT, kind=Verbatim), TEMPERATURES, b"0.0", b"0.5") == []
    assert findings_of(declaring(COMPACT, kind=Verbatim), {"const": 0.0}, b"0.0") == []
    lost = findings_of(declaring(COMPACT, kind=WithoutTheHalf), TEMPERATURES, b"0.5")
    assert [(finding.position, finding.over) for finding in lost] == [(2, 1)]


def test_formats_that_are_constraints_to_the_backend_only_are_told() -> None:
    schema = {"type": "string", "format": "ipv4"}
    asserting = declaring(UNESCAPED)
    asserting.asserts_formats = True
    found = findings_of(asserting, schema, b'"1.1.1.1"')
    assert causes(found) == {"asserted_format"} and asserting.documents("asserted_format")
    assert findings_of(asserting, schema, b'"1.1.1.1"', format="assert") == []


ADDRESS = {"type": "string", "format": "email"}
NARROWER = {"type": "string", "pattern": r"^[a-z]+@[a-z]+\.[a-z]+$"}
"""Addresses without quoted words, and without digits."""


def test_what_a_backend_forbids_beyond_the_format_that_it_asserts_is_its_own() -> None:
    told = declaring(UNESCAPED, schema=NARROWER)
    missing = {
        finding.cause: {bytes.fromhex(example) for example in finding.examples}
        for finding in findings_of(told, ADDRESS, b'"a@b.cd"')
        if finding.position == 1
    }
    in_addresses = {bytes([byte]) for byte in b"!#$%&'*+-/=?^_`{|}~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    assert missing["narrower_format"] <= in_addresses and not missing["asserted_format"] & in_addresses


def test_no_backend_is_accused_where_it_is_not_known_what_a_format_forbids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_formats(*case: Any, asserts_formats: bool = False, **more: Any) -> Any:
        if asserts_formats:
            raise NotApplicable("it takes too long")
        return documents_of_case(*case, **more)

    monkeypatch.setattr("harness.checks.layouts.documents_of_case", without_formats)
    with pytest.raises(NotApplicable, match="whether a format explains it: it takes too long"):
        findings_of(declaring(UNESCAPED, schema=NARROWER), ADDRESS, b'"a@b.cd"')


@pytest.mark.parametrize("vocabulary", [BYTES, replace(BYTES, tokens=(*BYTES.tokens, b' "', b" 1"))])
def test_a_freedom_that_other_tokens_use_is_not_what_is_missing(vocabulary: Vocabulary) -> None:
    spaced = declaring(SPACED, schema={"items": {"type": "integer"}}, vocabulary=vocabulary)
    either = {"type": "array", "items": {"type": ["integer", "string"]}}
    assert causes(findings_of(spaced, either, b"[1,2]")) == {"value"}


class Masking(ReferenceObject):
    """Forbids some tokens of the right mask."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        bits = unpack_mask(bitmask, self._adapter.vocabulary.size).copy()
        self.forbid(bits)
        packed = np.zeros(len(bitmask) * 32, dtype=np.bool_)
        packed[: len(bits)] = bits
        bitmask[:] = np.packbits(packed, bitorder="little").view(np.int32)

    def forbid(self, bits: Any) -> None:
        raise NotImplementedError


class NeverEnding(Masking):
    def forbid(self, bits: Any) -> None:
        bits[self._adapter.vocabulary.eos_token] = False


class WithoutPieces(Masking):
    """Forbids what ends inside a character."""

    def forbid(self, bits: Any) -> None:
        for token, text in enumerate(self._adapter.vocabulary.tokens):
            bits[token] &= text.decode(errors="ignore").encode() == text


class Forcing(Masking):
    """Allows the first token of a forced text only, and says so."""

    def forbid(self, bits: Any) -> None:
        forced = self.fast_forward_tokens()
        if forced:
            bits[:] = False
            bits[forced[0]] = True


class SilentlyForcing(Forcing):
    """Allows the first token of a forced text only, and does not say so."""

    is_asked = False

    def forbid(self, bits: Any) -> None:
        self.is_asked = True
        super().forbid(bits)
        self.is_asked = False

    def fast_forward_tokens(self) -> list[int]:
        return super().fast_forward_tokens() if self.is_asked else []


def with_objects(kind: type[Masking], grammar_text: str = "") -> type[Declaring]:
    """Returns an adapter whose objects are of this kind. Its sentences are those of the EBNF grammar or,
    without one, those that it is asked for."""

    class Compiled(ReferenceGrammar):
        def start(self) -> ReferenceObject:
            return kind(self._adapter, self._language)

    class Wrong(Declaring):
        def compile(self, grammar: Grammar) -> ReferenceGrammar:
            asked = super().compile(grammar)._language
            return Compiled(self, ebnf_automaton(grammar_text) if grammar_text else asked)

    return Wrong


@pytest.mark.parametrize(
    ("kind", "schema", "document", "cause"),
    [
        (NeverEnding, {"const": True}, b"true", "end_of_sequence"),
        (WithoutPieces, {"type": "string"}, '"é"'.encode(), "partial_utf8"),
        (Forcing, {"const": {"name": True}}, b'{"name":true}', "canonical_only"),
        (SilentlyForcing, {"const": {"name": True}}, b'{"name":true}', "canonical_only"),
    ],
)
def test_tokens_that_are_forbidden_whatever_the_schema_have_their_cause(
    kind: type[Masking], schema: Any, document: bytes, cause: str
) -> None:
    wrong = declaring(COMPACT, vocabulary=load_vocabulary("probe"), kind=with_objects(kind))
    assert causes(findings_of(wrong, schema, document)) == {cause}


def alternative(kind: str, name: str) -> dict[str, Any]:
    properties = {"kind": {"const": kind}, name: {"type": "boolean"}}
    return {"type": "object", "properties": properties, "required": ["kind", name]}


def test_a_name_that_one_alternative_forces_is_forced_though_another_does_not_list_it() -> None:
    """The order of all names of the schema lets `left` stand before `name`. A library that takes each
    alternative by itself need not write that, because the second one does not list `left`."""
    sentences = r'root ::= "{\"kind\":\"" ("a\",\"left\":" | "b\",\"name\":") ("true" | "false") "}"'
    schema = {"oneOf": [alternative("a", "left"), alternative("b", "name")]}
    kind = with_objects(Forcing, sentences)
    forces = declaring(COMPACT, vocabulary=load_vocabulary("probe"), kind=kind)
    found = findings_of(forces, schema, b'{"kind":"b","name":true}')
    assert {one.cause for one in found if one.text.startswith('after b\'{"kind":"b","\' it forbids')} == {
        "canonical_only"
    }


def test_what_cannot_go_on_behind_the_forced_text_either_is_lost_and_not_spelled_otherwise() -> None:
    """Every string begins with the quotation mark that is forced. But this backend takes the pattern for
    anchored, so that behind the mark it lets one of two letters stand only."""
    kind = with_objects(Forcing, r'root ::= "\"" ("a" | "b") "\""')
    anchors = declaring(COMPACT, vocabulary=load_vocabulary("probe"), kind=kind)
    found = findings_of(anchors, {"type": "string", "pattern": "a|b"}, b'"ab"')
    at_start = {one.cause: one.examples for one in found if one.position == 0}
    assert at_start.keys() > {"canonical_only"} and all(
        (bytes.fromhex(text)[1:2] in b"ab") == (cause == "canonical_only")
        for cause, examples in at_start.items()
        for text in examples
    )


def test_what_can_go_on_behind_the_forced_text_has_no_second_cause_where_a_format_is_asserted() -> None:
    kind = with_objects(Forcing, r'root ::= "\"" ("1.1.1.1" | "2.2.2.2") "\""')
    asserts = declaring(COMPACT, vocabulary=load_vocabulary("probe"), kind=kind)
    found = findings_of(asserts, {"type": "string", "format": "ipv4"}, b'"1.1.1.1"')
    at_start = {one.cause: {*one.examples} for one in found if one.position == 0}
    assert at_start["canonical_only"] and at_start["asserted_format"]
    assert sum(map(len, at_start.values())) == len(set[str]().union(*at_start.values()))


SCHEMAS: list[tuple[Any, bytes]] = [
    (AB, b'{"a":1,"b":2}'),
    ({"type": "string", "pattern": "^a"}, b'"ab"'),
    ({"type": "number", "minimum": 0.5}, b"1.5"),
    (True, b'[{"a":[null]}]'),
]


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize(("schema", "document"), SCHEMAS)
def test_the_reference_keeps_its_layout(schema: Any, document: bytes, name: LayoutName) -> None:
    for vocabulary in (BYTES, load_vocabulary("probe")):
        assert findings_of(Reference(vocabulary, layout=name), schema, document) == []


@pytest.mark.parametrize(("schema", "document"), SCHEMAS)
def test_more_than_the_layout_is_a_freedom(schema: Any, document: bytes) -> None:
    assert findings_of(declaring(COMPACT, EVERY_SPELLING), schema, document, b'{ "b": 1e0 }') == []


def test_nothing_is_held_against_a_backend_that_declares_no_layout() -> None:
    silent = declaring(COMPACT)
    silent.layout = None
    with pytest.raises(NotApplicable, match="does not say"):
        findings_of(silent, AB, b"{}")


@pytest.mark.parametrize("name", ["xgrammar", "llguidance", "outlines-core", "lm-format-enforcer"])
def test_every_backend_of_ours_declares_one(name: str) -> None:
    pytest.importorskip({"lm-format-enforcer": "lmformatenforcer"}.get(name, name.replace("-", "_")))
    assert isinstance(make(parse_specs(name)[0], BYTES).layout, Layout)


@pytest.mark.parametrize(
    ("engine", "wrapper", "library"),
    [
        ("vllm", "xgrammar", "xgrammar:open_objects=false"),
        ("vllm", "guidance", "llguidance"),
        ("vllm", "outlines", "outlines-core:whitespace=library"),
        ("vllm", "lm-format-enforcer", "lm-format-enforcer:whitespace=library"),
        ("sglang", "xgrammar", "xgrammar:open_objects=false"),
        ("sglang", "llguidance", "llguidance"),
        ("sglang", "outlines", "outlines-core:whitespace=library"),
    ],
)
def test_an_engines_wrapper_declares_what_its_options_say_to_the_library(
    engine: str, wrapper: str, library: str
) -> None:
    name = library.partition(":")[0]
    pytest.importorskip({"lm-format-enforcer": "lmformatenforcer"}.get(name, name.replace("-", "_")))
    behind = make(parse_specs(library)[0], BYTES)
    assert import_module(f"harness.adapters.{engine}").WRAPPERS[wrapper][3] == behind.layout
    assert behind.layout_in_tags in (None, behind.layout)


def test_real_backends_are_held_to_their_words() -> None:
    """xgrammar writes the white space of a constant in one way, though any was asked for; llguidance keeps
    what it says."""
    pytest.importorskip("xgrammar")
    pytest.importorskip("llguidance")
    pytest.importorskip("outlines_core")
    vocabulary = load_vocabulary("probe")
    schema = {"const": [1, 2]}
    xgrammar, llguidance = (make(spec, vocabulary) for spec in parse_specs("xgrammar,llguidance"))
    assert causes(findings_of(xgrammar, schema, b"[1,2]")) >= {"whitespace"}
    assert "whitespace" not in causes(findings_of(llguidance, schema, b"[1,2]"))
    listing = {"type": "array", "prefixItems": [{"type": "integer"}]}
    strict = make(parse_specs("xgrammar:open_objects=false")[0], vocabulary)
    assert findings_of(strict, listing, b"[1]", b"[]") == findings_of(xgrammar, listing, b"[1,2]") == []
    open_names = {keyword: value for keyword, value in INHERITED.items() if keyword != "propertyNames"}
    assert findings_of(llguidance, open_names, b'{"id":null,"x":null}') == []
    outlines = make(parse_specs("outlines-core")[0], vocabulary)
    assert findings_of(outlines, TEMPERATURES, b"0.0", b"0.5") == []


def pet(kind: str, *names: str, **more: Any) -> dict[str, Any]:
    """An alternative that is told by its kind."""
    properties = {"kind": {"const": kind}} | {name: {"type": "integer"} for name in names}
    return {"type": "object", "properties": properties, "required": ["kind"], **more}


def test_nobody_need_write_the_names_of_another_alternative_in_a_closed_object() -> None:
    """A library that closes each alternative of a union by itself was said to refuse valid output."""
    union = {"oneOf": [{"$ref": "#/$defs/cat"}, pet("dog", "name")], "$defs": {"cat": pet("cat", "lives")}}
    by_itself = {
        "oneOf": [pet(*each, additionalProperties=False) for each in (("cat", "lives"), ("dog", "name"))]
    }
    cat, dog = b'{"kind":"cat","lives":1}', b'{"kind":"dog","name":1}'
    for layout in (STRICT, ASKED):
        assert findings_of(declaring(layout), union, cat, dog) == []
        assert findings_of(declaring(layout, schema=by_itself), union, cat, dog) == []
        lacks = {"oneOf": [by_itself["oneOf"][0], pet("dog", additionalProperties=False)]}
        found = findings_of(declaring(layout, schema=lacks), union, cat, dog)
        assert {finding.position for finding in found} == {len(b'{"kind":"dog"')}
