"""Walks under the mask end and validate: silent on a right backend, and each wrong one is found with its
cause."""

from __future__ import annotations

import json

import pytest
import regex
from adapter_tools import maker
from miniatures.reference import Reference, ReferenceGrammar, ReferenceObject
from miniatures.wrong_walks import (
    READING,
    ForgetsRequired,
    NeverCloses,
    Reading,
    RefusesItsColon,
    StopsAtColon,
    TakesUndefined,
)
from out_of_time import without_its_last_call

from harness.backend.grammar import Adapter, Dialect, Grammar
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import Vocabulary, byte_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import Subject, run_check
from harness.checks import subject as subject_module
from harness.checks.walks import LAST, SOFT, Walk, _fault, check_walks_end_and_validate, lean_walk
from harness.oracle.judge import is_json
from harness.rows.row import Finding
from harness.walk.watched import PHASES

BYTES = byte_vocabulary()
REFERENCE = maker("reference", "Reference")
SCHEMA = Grammar("json_schema", json.dumps(READING))


def subject(
    adapter: Adapter,
    grammar: Grammar = SCHEMA,
    effort: int | None = 8,
    judged: Grammar | None = None,
    **options: str,
) -> Subject:
    """What the adapter compiled of `grammar`, as a case of `judged`."""
    of = judged or grammar
    case = Case(case_id(of), "a case", of, (Instance("one", b"1", True),), options=options)
    return Subject(adapter, case, adapter.compile(grammar), effort)


def findings(adapter: Adapter, effort: int = 8) -> list[Finding]:
    return list(check_walks_end_and_validate(subject(adapter, effort=effort)))


def test_a_right_backend_walks_to_valid_documents() -> None:
    right = subject(Reading(BYTES), effort=12)
    assert list(check_walks_end_and_validate(right)) == []
    walks = [
        lean_walk(right, right.compiled.start(), right.random(f"walk {each}"), SOFT[each % 4])
        for each in range(12)
    ]
    ended = [walk for walk in walks if walk.end == "ended"]
    assert len(ended) >= 10 and len({walk.text for walk in ended}) >= 10
    assert max(len(walk.tokens) for walk in ended) > 30


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (ForgetsRequired, "invalid"),
        (TakesUndefined, "no_json"),
        (NeverCloses, "does_not_end"),
        (StopsAtColon, "cannot_end"),
        (RefusesItsColon, "refused_own_token"),
    ],
)
def test_a_wrong_backend_is_found_with_its_cause(wrong: type[Reading], cause: str) -> None:
    found = findings(wrong(BYTES), 1 if cause == "does_not_end" else 8)
    assert found and {each.cause for each in found} == {cause}
    lengths = [len(each.examples[0]) for each in found]
    assert lengths == sorted(lengths)
    for each in found:
        written = [
            token for token in each.walk if cause != "refused_own_token" or BYTES.tokens[token] != b":"
        ]
        assert bytes.fromhex(each.examples[0]) == BYTES.decode(written)


def test_the_same_walks_twice() -> None:
    assert findings(ForgetsRequired(BYTES)) == findings(ForgetsRequired(BYTES))


@pytest.mark.parametrize(
    ("dialect", "right", "other"),
    [
        ("regex", "(ab)*c", "(ab)+c"),
        ("choice", '["yes", "no"]', '["yes", "never"]'),
        ("ebnf", 'root ::= "a"+', 'root ::= "a" "a"+'),
    ],
)
def test_other_dialects_are_judged_by_the_reference_automaton(
    dialect: Dialect, right: str, other: str
) -> None:
    adapter, grammar = REFERENCE(BYTES), Grammar(dialect, right)
    assert list(check_walks_end_and_validate(subject(adapter, grammar))) == []
    found = list(check_walks_end_and_validate(subject(adapter, grammar, judged=Grammar(dialect, other))))
    assert found and {each.cause for each in found} == {"invalid"}


def tag(schema: object) -> Grammar:
    structures = [{"begin": "<f>", "schema": schema, "end": "</f>"}]
    return Grammar("structural_tag", json.dumps({"triggers": ["<"], "structures": structures}))


def test_structural_tags_are_judged_by_their_automaton() -> None:
    adapter, right = REFERENCE(BYTES), subject(REFERENCE(BYTES), tag({"type": "integer"}), effort=40)
    assert list(check_walks_end_and_validate(right)) == []
    other = subject(adapter, right.case.grammar, effort=40, judged=tag({"const": 0.5}))
    found = list(check_walks_end_and_validate(other))
    assert found and {each.cause for each in found} == {"invalid"}
    assert all(b"</f>" in bytes.fromhex(each.examples[0]) for each in found)


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        ({"type": "sequence", "elements": [{"type": "token", "token": 97}, {"type": "plus"}]}, "invalid"),
        ({"type": "sequence", "elements": [{"type": "token", "token": 98}, {"type": "star"}]}, "invalid"),
    ],
)
def test_the_new_form_is_judged_over_tokens(other: dict[str, list[dict[str, object]]], cause: str) -> None:
    """A walk of the token `a` and then any number of `b`; judged by a form that wants one `b` at least, and
    by one that begins with the token `b`."""

    def form(format: object) -> Grammar:
        return Grammar("structural_tag", json.dumps({"format": format}))

    text = {"type": "const_string", "value": "b"}
    other["elements"][1]["content"] = text
    star = {
        "type": "sequence",
        "elements": [{"type": "token", "token": 97}, {"type": "star", "content": text}],
    }
    right = subject(REFERENCE(BYTES), form(star), effort=40)
    assert list(check_walks_end_and_validate(right)) == []
    wrong = subject(REFERENCE(BYTES), form(star), effort=40, judged=form(other))
    assert {each.cause for each in check_walks_end_and_validate(wrong)} == {cause}


def test_a_name_that_stands_twice_in_a_tag_is_no_fault() -> None:
    schema = {"properties": {"n": {"type": "integer"}}}
    twice, wrong = (
        Walk(tuple(text), text, "ended") for text in (b'<f>{"n":1,"n":2}</f>', b'<f>{"n":1,"n":"a"}</f>')
    )
    judged = subject(REFERENCE(BYTES), tag(schema))
    assert _fault(judged, twice) is None and _fault(judged, wrong) is not None


def test_xgrammar_takes_any_bytes_for_the_free_text_of_a_tag() -> None:
    causes = {}
    for name in ("xgrammar", "llguidance"):
        walked = subject(make(parse_spec(name), BYTES), tag({"type": "integer"}), effort=20)
        causes[name] = {each.cause for each in check_walks_end_and_validate(walked)}
    assert causes == {"xgrammar": {"invalid_utf8"}, "llguidance": set()}


@pytest.mark.parametrize("grammar", ["a{0,3}", "a{1,3}"])
def test_an_end_that_the_mask_allows_and_that_is_refused_is_the_backends(grammar: str) -> None:
    """Also where a walk ends before its first token; the finding's walk leads to the refusal."""

    class Endless(ReferenceObject):
        def accept_token(self, token_id: int) -> bool:
            return token_id not in BYTES.eos_tokens and super().accept_token(token_id)

    class Grammars(ReferenceGrammar):
        def start(self) -> ReferenceObject:
            return Endless(self)

    adapter, wanted = Reference(BYTES), Grammar("regex", grammar)
    refusing = Grammars(adapter, adapter.compile(wanted).pattern)
    wrong = Subject(adapter, subject(adapter, wanted).case, refusing, 4)
    outcome, found = run_check("walks_end_and_validate", check_walks_end_and_validate, wrong)
    assert outcome == "failed" and {each.cause for each in found} == {"refused_own_token"}
    assert all(each.walk[-1] in BYTES.eos_tokens and len(set(each.walk[:-1])) <= 1 for each in found)


def test_what_was_written_before_the_time_was_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    case, wrong = subject(ForgetsRequired(BYTES)).case, ForgetsRequired(BYTES)
    outcome, found = without_its_last_call(monkeypatch, "walks_end_and_validate", wrong, case, 8)
    assert outcome == "failed" and found


def test_without_a_judge_only_the_end_is_looked_at() -> None:
    unjudged = Grammar("json_schema", '{"$ref": "https://example.com/elsewhere.json"}')
    assert list(check_walks_end_and_validate(subject(ForgetsRequired(BYTES), judged=unjudged))) == []
    assert list(check_walks_end_and_validate(subject(StopsAtColon(BYTES), judged=unjudged))) != []


def test_formats_and_drafts_are_those_of_the_case() -> None:
    adapter, integer = Reading(BYTES), SCHEMA
    bound = Grammar("json_schema", json.dumps({**READING, "properties": {"n": {}, "s": {"format": "ipv4"}}}))
    assert list(check_walks_end_and_validate(subject(adapter, integer, judged=bound))) == []
    found = list(check_walks_end_and_validate(subject(adapter, integer, judged=bound, format="assert")))
    assert {each.cause for each in found} == {"invalid"}


def test_what_may_go_on_for_ever_is_no_finding() -> None:
    endless = subject(REFERENCE(BYTES), Grammar("regex", "a{400}"), effort=2)
    walk = lean_walk(endless, endless.compiled.start(), endless.random("walk"), 0)
    assert (walk.end, len(walk.tokens)) == ("unended", LAST)
    assert list(check_walks_end_and_validate(endless)) == []


def test_the_judge_works_at_our_expense(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = subject(Reading(BYTES), effort=1)
    seen: list[str] = []

    def judge(*_: object, **__: object) -> bool:
        seen.append(PHASES[watched.progress[0]])
        return True

    monkeypatch.setattr(subject_module, "is_valid", judge)
    assert list(check_walks_end_and_validate(watched)) == []
    assert seen == ["oracle"]


TEXTS = [bytes([byte]) for byte in range(256) if byte not in b"{}"]
WITHOUT_BRACES = Vocabulary("without braces", (*TEXTS, b""), (254,), {254: "</s>"})


@pytest.mark.parametrize(
    ("grammar", "end"),
    [
        (Grammar("regex", r"[ab][0-9]?\{[0-9]\}"), "dead_end"),
        (Grammar("json_schema", '{"type": "object", "properties": {"a": {"type": "integer"}}}'), "trapped"),
        (Grammar("structural_tag", '{"format": {"type": "const_string", "value": "a{"}}'), "dead_end"),
    ],
)
def test_an_end_that_the_vocabulary_cannot_spell_is_no_fault_of_the_backend(
    grammar: Grammar, end: str
) -> None:
    walked = subject(REFERENCE(WITHOUT_BRACES), grammar)
    walk = lean_walk(walked, walked.compiled.start(), walked.random("walk 0"), 0)
    assert walk.end == end
    assert list(check_walks_end_and_validate(walked)) == []


def test_an_end_that_the_vocabulary_can_spell_is_asked_for() -> None:
    """The grammar of the backend wants braces; that of the case wants none."""
    text, other = r"[ab][0-9]?\{[0-9]\}", r"[ab][0-9]?(\{[0-9]\}|c)"
    wrong = subject(REFERENCE(WITHOUT_BRACES), Grammar("regex", text), judged=Grammar("regex", other))
    assert {each.cause for each in check_walks_end_and_validate(wrong)} == {"cannot_end"}
    schema = Grammar("json_schema", '{"type": "object"}')
    wrong = subject(REFERENCE(WITHOUT_BRACES), schema, judged=Grammar("json_schema", '{"type": "integer"}'))
    assert {each.cause for each in check_walks_end_and_validate(wrong)} == {"does_not_end"}
    unknown = subject(
        REFERENCE(WITHOUT_BRACES), schema, judged=Grammar("json_schema", '{"$ref": "https://example.com"}')
    )
    assert list(check_walks_end_and_validate(unknown)) == []


NO_B = [bytes([byte]) for byte in range(256) if byte not in b"b\\"]
WITHOUT_B = Vocabulary("without b", (*NO_B, b""), (254,), {254: "</s>"})
ONE = {"const": 1}
LISTED = {"properties": {"a": ONE, "b": ONE}, "additionalProperties": False}
UNLISTED = {"propertyNames": {"pattern": "^[ab]$"}, "additionalProperties": ONE}


@pytest.mark.parametrize("names", [LISTED, UNLISTED])
def test_an_end_that_repeats_a_name_is_asked_of_no_right_backend(names: dict[str, object]) -> None:
    case = Grammar("json_schema", json.dumps({"type": "object", "minProperties": 2, **names}))
    right = subject(REFERENCE(WITHOUT_B), Grammar("regex", r'\{"a":1,"b":1\}'), judged=case)
    walk = lean_walk(right, right.compiled.start(), right.random("walk 0"), 0)
    assert (walk.end, walk.text) == ("dead_end", b'{"a":1,"')
    assert list(check_walks_end_and_validate(right)) == []


@pytest.mark.parametrize("names", [LISTED, UNLISTED])
@pytest.mark.parametrize("text", [r'\{"a":1,"a":1,"b":1\}', r'\{"a":1,"a"b', r'\{"a":1,"a":1b'])
def test_a_backend_that_repeats_a_name_may_end_so(text: str, names: dict[str, object]) -> None:
    case = Grammar("json_schema", json.dumps({"type": "object", "minProperties": 2, **names}))
    wrong = subject(REFERENCE(WITHOUT_B), Grammar("regex", text), judged=case)
    assert {each.cause for each in check_walks_end_and_validate(wrong)} == {"cannot_end"}


class Raising(ReferenceGrammar):
    """Fails after it has been compiled."""

    def start(self) -> ReferenceObject:
        raise RuntimeError("no")


def test_what_the_backend_raises_is_its_own() -> None:
    right = subject(Reading(BYTES))
    raising = Subject(right.adapter, right.case, Raising(Reading(BYTES), regex.compile(b"")))
    outcome, found = run_check("walks_end_and_validate", check_walks_end_and_validate, raising)
    assert (outcome, [each.cause for each in found]) == ("failed", ["backend_error"])


def test_what_is_json() -> None:
    assert all(map(is_json, (b"{}", b' [1e5, "\xc3\xa9"]\n', b"9" * 999)))
    assert not any(
        map(is_json, (b"", b"NaN", b"[1,]", b'"\xff"', b'"\n"', b"01", b"{} {}", b"\xef\xbb\xbf{}"))
    )
