"""The checks of masks and walks on Lark grammars: wrong backends are found, the reference is not, and a lexer
is a cause that a backend may document."""

from __future__ import annotations

import pytest
from miniatures import wrong_larks
from miniatures.wrong_larks import DocumentedLexing, Lexing, Rewriting

from harness.backend.grammar import Adapter, Grammar
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import run_check
from harness.checks.exact_mask import check_the_mask_is_exact
from harness.checks.subject import Subject
from harness.checks.walks import check_walks_end_and_validate
from harness.oracle.readings import Reading, other_readings, readings_against
from harness.oracle.reference import Reference
from harness.rows.row import Finding

BYTES = byte_vocabulary()
ITEMS = 'start: item~1..2 ";"\nitem: "A"i | "b"\n%ignore / /\n'
NAMES = 'start: NAME "from" NAME ";"\nNAME: /[a-z]+/\n%ignore / +/\n'
LAST = 'start: "a" "b"\n%ignore / /\n'


def findings(adapter: Adapter, text: str, *outputs: str) -> list[Finding]:
    grammar = Grammar("lark", text)
    instances = tuple(Instance(output, output.encode(), True) for output in outputs)
    subject = Subject(adapter, Case(case_id(grammar), "a case", grammar, instances), adapter.compile(grammar))
    return [
        finding
        for check in (check_the_mask_is_exact, check_walks_end_and_validate)
        for finding in run_check(check.__name__.removeprefix("check_"), check, subject)[1]
    ]


WRONG = [each for each in vars(wrong_larks).values() if isinstance(each, type) and each.__base__ is Rewriting]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_translation_is_found_and_has_no_excuse(wrong: type[Reference]) -> None:
    assert findings(Reference(BYTES), ITEMS, "a a;", "Ab ; ") == []
    found = findings(wrong(BYTES), ITEMS, "a a;", "Ab ; ")
    assert found and not any(each.documented for each in found)


@pytest.mark.parametrize(("text", "output"), [(NAMES, "a from b;"), (LAST, "ab")])
def test_a_lexer_is_a_cause_and_documented_where_a_backend_says_so(text: str, output: str) -> None:
    for backend, documented in ((Lexing, False), (DocumentedLexing, True)):
        found = findings(backend(BYTES), text, output)
        assert found and {(each.cause, each.documented) for each in found} == {("lark_lexer", documented)}


def test_where_the_readings_agree_a_lexer_is_seen_nowhere() -> None:
    assert findings(Lexing(BYTES), ITEMS.replace("%ignore / /\n", ""), "aa;", "A;") == []


@pytest.mark.parametrize(
    ("name", "causes"), [("llguidance", {"lark_lexer", "canonical_only"}), ("xgrammar", set())]
)
def test_real_backends_are_right_by_the_reading_that_they_document(name: str, causes: set[str]) -> None:
    (spec,) = parse_specs(name)
    found = findings(make(spec, load_vocabulary("probe")), NAMES, "a from b;")
    assert all(each.documented for each in found) and {each.cause for each in found} == causes


def test_the_readings_of_a_grammar() -> None:
    plain, folding = Grammar("lark", NAMES), Grammar("lark", ITEMS)
    assert other_readings(plain) == [Reading("python", lexer=True)]
    assert len(other_readings(folding)) == 7 and Reading("rust", lexer=True) in other_readings(folding)
    assert Reading("rust", lexer=True).cause == "regex_dialect_rust+lark_lexer"
    assert Reading("rust", lexer=True).name == "rust lexer"
    assert other_readings(Grammar("ebnf", 'root ::= "a"')) == []
    assert list(readings_against(plain, b"afromb;", True, [])) == ["python lexer"]
    assert list(readings_against(plain, b"a from b;", True, [])) == []
