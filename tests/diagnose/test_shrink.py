"""Failures made small: real faults of real backends, miniatures that hang and crash, and what must not happen
on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
import reference_ebnf
import regex
from miniatures import leftovers
from miniatures.harmful import MARK
from miniatures.wrong_walks import READING
from reference_lark import random_grammar, texts

from harness.backend.grammar import Dialect, Grammar
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.suite import find_suite, read_cases
from harness.diagnose.repro import shrunk_script
from harness.diagnose.shrink import Fault, Outcome, Shrunk, search, shrink
from harness.diagnose.shrink.bench import Bench
from harness.diagnose.shrink.cut import content_cuts, cuts, holes, spans, text_cuts
from harness.diagnose.shrink.edits import Candidate, smaller_documents, steps
from harness.diagnose.shrink.fault import observed, outcome_of_end
from harness.diagnose.shrink.lark import smaller_larks, write_lark
from harness.diagnose.shrink.patterns import read_regex, smaller_grammars, smaller_regexes, write_regex
from harness.diagnose.shrink.schemas import NOTHING, dangling, plainer_schemas, smaller_schemas
from harness.diagnose.shrink.service import Loaded, answer
from harness.diagnose.shrink.stepping import END, small_vocabulary, spelled, tokens_of, words_of
from harness.diagnose.shrink.tags import is_tag_form, tag_is_valid
from harness.diagnose.shrink.validity import Validity
from harness.errors import BadInput
from harness.oracle.ebnf.automaton import ebnf_automaton
from harness.oracle.judge import Judge, check_schema, is_valid
from harness.oracle.lark.automaton import lark_automaton
from harness.oracle.lark.syntax import read_lark
from harness.oracle.readings import readings_against
from harness.rows.row import Status
from harness.walk.watched import unwatched

pytestmark = pytest.mark.usefixtures("importable_miniatures")


OVER, UNDER = Outcome("over_constrained"), Outcome("under_constrained")


def fault(
    spec: str, dialect: Dialect, text: str, content: bytes | None, outcome: Outcome, **more: Any
) -> Fault:
    valid = {"over_constrained": True, "under_constrained": False}.get(outcome.verdict)
    return Fault(spec, "bytes", Grammar(dialect, text), content, valid, outcome, **more)


# --- real faults of the versions that constraints.txt names

NUMBER = {"type": "number", "minimum": 0, "maximum": 2.75, "description": "a rate"}
ORDER = {
    "$defs": {"rate": NUMBER},
    "type": "object",
    "properties": {
        "customer": {"type": "string", "minLength": 1, "pattern": "^[a-z ]+$"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"rate": {"$ref": "#/$defs/rate"}, "unit": {"enum": ["hour", "day"]}},
                "required": ["rate", "unit"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["customer", "lines"],
    "additionalProperties": False,
}
ORDERED = {"customer": "some one", "lines": [{"rate": 1, "unit": "day"}, {"rate": 2.7, "unit": "hour"}]}

SENTENCES = """# a comment
root ::= greeting (" " name)* unused?
greeting ::= "hi" | "hello"
name ::= [A-Z] code "\\x411" [a-z]{2,5}
code ::= digit{1,3}
digit ::= [0-9]
unused ::= "zzz" digit
"""

LINES = """start: statement+
statement: NAME "(" [NAME ("," NAME)*] ")" EOL  // one on a line
NAME: /[a-z]+/
EOL: /\\n/
%import common.WS
%ignore WS
"""

REAL: dict[str, tuple[Fault, int, int]] = {
    "a repeated group": (
        fault("outlines-core", "regex", r"([a-z]{2,5}:|zzz\d+)+(ab)*", b"hello:abab", OVER),
        5,
        4,
    ),
    "a prefix among the alternatives": (
        fault("outlines-core", "regex", r"(x[0-9]|y){0,2}(a|ab)", b"x7ab", OVER),
        6,
        2,
    ),
    "a bound with decimals": (
        fault("llguidance", "json_schema", json.dumps(ORDER), json.dumps(ORDERED).encode(), OVER),
        20,
        3,
    ),
    "an escape before a digit": (fault("xgrammar", "ebnf", SENTENCES, b"hello B12A1abc", OVER), 17, 2),
    "a line end that is ignored": (fault("llguidance", "lark", LINES, b"run(x)\nstop(yy)\n", OVER), 31, 2),
    "an escaped caret": (fault("xgrammar", "regex", r"(foo|[0-9]{1,3}-)?[\^\\]+", b"12-zz", UNDER), 4, 1),
}
"""The fault, bloated, and the most bytes that grammar and instance may have when it is small."""


@cache
def small_of(name: str) -> Shrunk:
    return shrink(REAL[name][0])


def run_scripts(*shrunk: Shrunk) -> list[list[str]]:
    """The lines that each stand-alone script prints; one process runs them in turn, because a library may
    take seconds to load."""
    scripts = [shrunk_script(each) for each in shrunk]
    assert not any("harness" in script for script in scripts)
    done = subprocess.run(
        [sys.executable, "-c", "print('+')\n".join(["", *scripts])],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [printed.splitlines() for printed in done.stdout.split("+\n")[1:]]


QUICK = ("a bound with decimals", "a repeated group", "a line end that is ignored")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in REAL]
)
def test_a_real_fault_becomes_small(name: str) -> None:
    big, grammar_bytes, content_bytes = REAL[name]
    small = small_of(name)
    assert small.shown and small.steps and small.is_minimal and small.outcome == big.outcome
    assert small.content is not None and small.walk
    assert len(small.grammar.text) <= grammar_bytes, small.grammar.text
    assert len(small.content) <= content_bytes, small.content
    assert small.words == (), "bytes alone show it"
    with Judge() as judge:  # whoever believes neither the search nor the backend
        assert Validity(judge, {}).of(small.grammar, small.content) is big.valid
    script = shrunk_script(small).splitlines()
    assert (
        script[-1].startswith("# expected: " + ("accepted" if big.valid else "refused"))
        and "because" in script[-1]
    )
    if big.grammar.dialect not in ("ebnf", "lark"):
        word = "valid" if big.valid else "not valid"
        said = subprocess.run(
            [sys.executable, "-c", "\n".join(script)], capture_output=True, text=True, check=False
        ).stdout
        assert said.splitlines()[0].startswith(("regex.fullmatch: ", "jsonschema.")) and said.splitlines()[
            0
        ].endswith(f"is {word}")


@pytest.mark.long
@pytest.mark.parametrize("spec", sorted({fault.spec for fault, *_ in REAL.values()}))
def test_the_scripts_of_real_faults_show_them(spec: str) -> None:
    names = [name for name, (fault, *_) in REAL.items() if fault.spec == spec]
    for name, printed in zip(names, run_scripts(*map(small_of, names)), strict=True):
        printed = [line for line in printed if ": the instance is " not in line]
        said = [line.split()[-2:] for line in printed]
        assert printed and all(each == ["True", "True"] for each in said[:-1]), printed
        assert said[-1] == (["False", "False"] if REAL[name][0].valid else ["True", "True"]), printed
        if not REAL[name][0].valid:
            assert len(printed) == len(small_of(name).walk) + 1, "accepted to the end"


def test_what_is_not_seen_again_is_told() -> None:
    right = shrink(fault("outlines-core", "regex", "a+", b"aa", OVER))
    assert not right.shown and right.steps == 0 and not right.is_minimal and right.grammar.text == "a+"


def test_a_backend_that_is_not_there_is_bad_input() -> None:
    with pytest.raises(BadInput, match="miniatures"):
        shrink(fault("miniatures:NoSuch", "regex", "a", b"a", OVER))


# --- candidates that do harm

BROKEN: dict[str, tuple[str, Status, str, str, str]] = {
    "crash in fill": ("SegfaultsInFill", "crash", "fill", "SIGSEGV", ""),
    "error": ("RaisesInAccept", "backend_error", "accept", "", "RuntimeError"),
    "hang in fill": ("HangsInFill", "timeout", "fill", "", ""),
    "memory": ("EatsMemory", "oom", "compile", "", ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_crash_or_a_hang_costs_one_candidate(name: str) -> None:
    spec, status, phase, signal, kind = BROKEN[name]
    outcome = Outcome("broken", status, phase, signal, kind)
    seconds = 0.6 if status == "timeout" else 20.0
    big = fault(
        f"miniatures:{spec}",
        "regex",
        "(boomx|[0-9]y)z*",
        b"boomxz",
        outcome,
        timeout_s=seconds,
        memory_bytes=200_000_000,
    )
    small = shrink(big, hang_seconds=0.15)
    assert small.shown and small.is_minimal and small.grammar.text == "boom"
    assert len(small.content or b"") == (phase != "compile"), (
        "one token is needed to get to a fill or an accept, none to compile"
    )


def test_an_error_that_never_says_the_same_again_is_known_by_its_type() -> None:
    outcome = outcome_of_end("backend_error", "accept", "", "RuntimeError: somewhere in memory", "broken")
    small = shrink(fault("miniatures:RaisesInAccept", "regex", "boom[0-9]", b"boom1", outcome))
    assert small.shown and small.grammar.text == "boom"


def test_calls_that_take_too_long_together_are_seen_again() -> None:
    outcome = Outcome("broken", "timeout", "walk")
    slow = fault("miniatures.slow:Slow:fill_ms=100", "regex", "a*", b"a" * 30, outcome)
    with Bench(slow) as bench:
        seen = bench.try_(Candidate(slow.grammar, slow.content, ()), None, 0.25)
    assert observed(seen, None) == [outcome] and seen["text"].endswith(" of 30")
    assert (slow.limit_s, replace(slow, outcome=OVER).limit_s) == (30.0, 10.0)


def test_another_harm_is_not_taken_for_the_same() -> None:
    """A crash elsewhere, by another signal, a hang, another error, a refusal of something else."""
    crash = {"status": "crash", "phase": "fill", "signal": "SIGSEGV", "text": "killed by SIGSEGV"}
    assert observed(crash, True) == [Outcome("broken", "crash", "fill", "SIGSEGV")]
    others = [
        crash | {"phase": "compile"},
        crash | {"signal": "SIGABRT"},
        crash | {"status": "timeout", "signal": ""},
    ]
    error = {"status": "backend_error", "phase": "fill", "text": "ValueError: 3"}
    others += [error, error | {"text": "ValueError: 4"}, error | {"text": "TypeError: 3"}]
    seen = [observed(each, True)[0] for each in [crash, *others]]
    assert len(set(seen)) == 6 and seen[4] == seen[5], "what an error counts may differ, its type may not"
    (overflow,) = observed(error | {"text": "ValueError: table overflow in module A"}, True)
    (null,) = observed(error | {"text": "ValueError: null pointer in module B"}, True)
    assert overflow != null, "it may say another thing of another fault"
    refusals = ['Unimplemented keys: ["a", "b"]', 'Unimplemented keys: ["c", "d"]', "Unknown type"]
    refusals += [f'Unimplemented keys: ["{name}"]' for name in ("dependentRequired", "contains")]
    refusals += ["{'type': 'array', 'a': 1}"]
    said = [
        observed({"status": "unsupported", "text": f"UnsupportedGrammar: {each}"}, True)[0]
        for each in refusals
    ]
    assert said[0] == said[1] != said[2]
    assert len({said[0], said[3], said[4]}) == 3, "another keyword is another reason"
    assert said[5].kind == "UnsupportedGrammar: {: , : }", "the keys of a grammar that is told are none"
    walked = {
        "status": "ok",
        "accepted": False,
        "findings": [{"check": "cannot_terminate", "position": 1, "text": ""}],
    }
    mask = {"check": "the_mask_is_exact", "position": 1, "text": "", "over": 2, "under": 1}
    directions = [
        observed({"status": "ok", "findings": [each]}, None)[1].direction
        for each in (mask, mask | {"over": 0})
    ]
    assert directions == ["over", "under"]
    assert observed(walked, True) == [
        OVER,
        Outcome("unjudged", check="cannot_terminate"),
    ] and OVER not in observed(walked, False)


def test_a_hang_is_waited_for_at_the_end() -> None:
    """What ends after the candidates' deadline and before the run's is told."""
    outcome = Outcome("broken", "timeout", "compile")
    waited = shrink(
        fault("miniatures:Hangs", "regex", "boom", b"boom", outcome, timeout_s=0.5), hang_seconds=0.15
    )
    assert "0.5 s" in waited.text


def test_the_service_outlives_what_candidates_leave_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    good = Candidate(Grammar("regex", "[ab]+"), b"ab", ())
    bad = Candidate(Grammar("regex", "boom"), b"boom", ())
    for spec in ("DoubleForks", "WritesIntoPipes", "AnswersTwice"):
        with Bench(fault(f"miniatures:{spec}", "regex", "boom", b"boom", OVER)) as bench:
            bench.try_(bad, True, 2.0)
            assert leftovers() == []
            assert bench.try_(good, True, 2.0)["accepted"] is True, spec


# --- the search


class Believer(Validity):
    """A judge that takes every instance for as valid as the first one was."""

    def of(self, grammar: Grammar, content: bytes) -> bool | None:
        return True


def test_validity_is_judged_anew_for_every_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, a valid instance turns into an invalid one, which the backend is right to refuse."""
    big, *_ = REAL["a repeated group"]
    honest = shrink(big)
    assert honest == small_of("a repeated group"), "the same fault, the same result"
    monkeypatch.setattr(search, "Validity", Believer)
    fooled = shrink(big)
    assert honest.content is not None and fooled.content is not None
    assert is_valid(honest.grammar, honest.content) is True
    assert is_valid(fooled.grammar, fooled.content) is False, (
        "the mutant was not fooled: this test shows nothing"
    )


def test_where_our_judge_disagrees_with_the_run_nothing_is_shrunk() -> None:
    """Smaller instances would be judged by another measure than the first one was."""
    other = shrink(fault("outlines-core", "regex", "(ab)*c", b"abab", OVER))
    assert other.shown and other.steps == 0 and not other.is_minimal and other.tried == 1
    assert other.untried == "our judge does not call the instance valid"


def test_formats_are_asserted_where_the_run_did_so() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "when": {"type": "string", "format": "date-time"}},
    }
    document = json.dumps({"id": "x", "when": "this evening"}).encode()
    small = shrink(fault("lm-format-enforcer", "json_schema", json.dumps(schema), document, UNDER))
    assert (
        small.shown
        and json.loads(small.grammar.text) == {"type": "string", "format": "date-time"}
        and small.content == b'""'
    )
    assert small.asserts_formats and "validate_formats=True" in shrunk_script(small)


def test_the_budget_is_kept_and_the_best_so_far_returned() -> None:
    big, *_ = REAL["a bound with decimals"]
    some = shrink(big, candidates=6)
    assert some.tried <= 6 and some.shown and not some.is_minimal
    assert len(some.grammar.text) < len(big.grammar.text)
    none = shrink(big, seconds=0)
    assert none.tried == 0 and not none.shown


def test_a_finding_of_a_check_keeps_its_name_cause_and_direction() -> None:
    """The mask of `(ab)*` wrongly forbids `a`; the check is made anew on each candidate, and its walk ends
    with the token in question."""
    outcome = Outcome("unjudged", check="the_mask_is_exact", cause="possible_end", direction="over")
    big = replace(
        fault("outlines-core", "regex", "x?(ab)*[0-9]{0,2}", b"xab", outcome),
        valid=True,
        check="the_mask_is_exact",
    )
    small = shrink(big)
    assert small.shown and len(small.grammar.text) <= 6 and not small.ends
    assert run_scripts(small)[0][-1].split()[-2:] == ["False", "False"]
    assert "# expected: the last token is allowed" in shrunk_script(small).splitlines()[-1]


def test_the_walk_of_a_written_output_goes_to_its_end() -> None:
    """Only there is it seen that an output is accepted that is not valid."""
    check = "walks_end_and_validate"
    question: dict[str, Any] = {
        "kind": "check", "dialect": "json_schema", "grammar": json.dumps(READING), "content": None,
        "words": [], "check": check, "outcome": vars(Outcome("unjudged", check=check, cause="invalid")),
        "options": {}, "valid": None,
    }  # fmt: skip
    seen = answer(Loaded("miniatures.wrong_walks:ForgetsRequired", None, None), question, unwatched())
    assert [finding["cause"] for finding in seen["findings"]] == ["invalid"]
    (walk,) = seen["walks"]
    assert walk[-1] == END and len(walk) == 1 + len(seen["findings"][0]["walk"])


def test_the_tokens_that_a_fault_needs_are_kept_and_no_others() -> None:
    big = replace(
        fault("miniatures.wrong_tokens:RefusesTheTokenName", "regex", "x(1|name)+", b"xname1name", OVER),
        vocabulary="probe",
    )
    small = shrink(big)
    assert (
        small.shown
        and small.words == (b"name",)
        and small.content == b"name"
        and small.grammar.text == "name"
    )
    assert small.walk == (b"name",) and small.ends
    (printed,) = run_scripts(small)
    assert printed[0] == "regex.fullmatch: the instance is valid"
    printed = printed[1:]
    assert (
        printed[0].startswith("[b'name', ") and printed[0].endswith("[0, 257]") and "b'b', b'c'" in printed[0]
    )


def test_a_declined_grammar_becomes_the_part_that_is_declined() -> None:
    text = json.dumps(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "array", "uniqueItems": True}},
        }
    )
    outcome = outcome_of_end(
        "unsupported", "compile", "", 'UnsupportedGrammar: Unimplemented keys: ["uniqueItems"]', "declined"
    )
    small = shrink(fault("llguidance", "json_schema", text, b"{}", outcome))
    assert small.shown and json.loads(small.grammar.text) == {"uniqueItems": True}


def test_a_structural_tag_becomes_small() -> None:
    structure = {"type": "object", "properties": {"n": NUMBER}, "required": ["n"]}
    form = {
        "triggers": ["<fn"],
        "structures": [
            {"begin": "<fn=add>", "schema": structure, "end": "</fn>"},
            {"begin": "<fn>", "schema": {"type": "object"}, "end": "</fn>"},
        ],
    }
    big = fault("llguidance", "structural_tag", json.dumps(form), b'hi <fn=add>{"n": 2.7}</fn> bye', OVER)
    small = shrink(big)
    left = json.loads(small.grammar.text)
    assert (
        small.shown
        and len(left["structures"]) == 1
        and small.content is not None
        and len(small.content) <= 14
    )
    assert run_scripts(small)[0][-1].split()[-2:] == ["False", "False"]


# --- the steps


def candidates(grammar: Grammar, content: bytes) -> list[Candidate]:
    return [step() for step in islice(steps(Candidate(grammar, content, (b"ab",))), 3000)]


BIG: dict[Dialect, tuple[str, bytes]] = {
    "json_schema": (json.dumps(ORDER), json.dumps(ORDERED).encode()),
    "regex": (r"(?P<word>[a-z]+|\d{2,3}?)(?=;)[;,](?:x|y|)\p{L}\\", b"ab;"),
    "ebnf": (SENTENCES, b"hi B1A1abc"),
    "lark": (LINES, b"run(x)\n"),
    "choice": ('["yes", "no", "maybe"]', b"maybe"),
    "structural_tag": (
        '{"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": {"type": "string"}, "end": "</f>"}]}',
        b'<f>"a"</f>',
    ),
}


@pytest.mark.parametrize("dialect", BIG)
def test_every_part_of_a_candidate_is_reduced_by_some_step(dialect: Dialect) -> None:
    text, content = BIG[dialect]
    now = Candidate(Grammar(dialect, text), content, (b"ab",))
    found = candidates(now.grammar, content)
    smaller = [each for each in found if each.size < now.size]
    assert {each.grammar.dialect for each in found} == {dialect}
    assert any(each.grammar != now.grammar for each in smaller)
    assert any(each.content != content for each in smaller)
    assert any(each.words == () for each in smaller)
    assert len(set(found)) > len(found) / 3, "most of them are the same"


def test_no_candidate_is_made_of_what_is_no_grammar_or_too_deep() -> None:
    deep = "[" * 20_000 + "]" * 20_000
    for dialect in BIG:
        for text in (
            "",
            "(",
            '"',
            "[",
            "{",
            "{}",
            '{"items": {}}',
            "[1]",
            "1",
            deep,
            '{"items":' * 5000 + "{}" + "}" * 5000,
        ):
            for each in islice(steps(Candidate(Grammar(dialect, text), deep.encode(), None)), 50):
                assert isinstance(each(), Candidate)


@pytest.mark.parametrize(
    "pattern",
    [
        "a|b",
        r"(?:x[^]a-z\]]{2,3}?|\x41+)*?",
        r"(?P<n>a)(?i:b)(?=c)(?<!d)\p{Lu}\u00e9.^$",
        "a{,3}b{2}c{4,}",
        "[]a]x",
        "()|",
        r"\{}",
    ],
)
def test_a_regex_is_written_as_it_was_read(pattern: str) -> None:
    assert write_regex(read_regex(pattern)) == pattern


def test_steps_of_a_regex_reach_alternatives_groups_counts_and_classes() -> None:
    found = set(smaller_regexes(r"(foo|b[a-x9]r){12,30}\d"))
    assert {
        r"(foo){12,30}\d",
        r"foo\d",
        r"(foo|b[a-x9]r)\d",
        r"(foo|b[a-x9]r){12}\d",
        r"(foo|b[9]r){12,30}\d",
    } <= found
    assert {r"(foo|b[a-x9]r){6,30}\d", r"(foo|b[a9]r){12,30}\d", r"(foo|b[a-x9]r){12,30}"} <= found
    compiled = [each for each in found if _compiles(each)]
    assert len(compiled) > len(found) / 2


def _compiles(pattern: str) -> bool:
    try:
        regex.compile(pattern)
    except regex.error:
        return False
    return True


def test_steps_of_a_grammar_drop_and_inline_rules() -> None:
    found = list(smaller_grammars(SENTENCES))
    assert "#" not in found[0] and ebnf_automaton(found[0]).accepts(b"hello B12A1abc"), (
        "first it is only tidied up"
    )
    assert any(
        "greeting" not in each and ebnf_automaton(each).accepts(b"hi")
        for each in found[:20]
        if _is_ebnf(each)
    )
    assert any("digit" not in each and "[0-9]" in each for each in found[:40])
    right = [each for each in found if _is_ebnf(each)]
    assert len(right) > len(found) / 3


def test_a_lark_grammar_is_written_as_it_was_read() -> None:
    """The form of its text may change, its language does not."""
    random = Random(3)
    made_grammars = (random_grammar(random) for _ in range(120))
    for made in [made for made in made_grammars if not made.has_no_reference]:
        language, again = lark_automaton(made.text), lark_automaton(write_lark(read_lark(made.text)))
        for text in texts(4):
            assert language.accepts(text.encode()) == again.accepts(text.encode()), (text, made.text)


def test_a_fault_of_lark_does_not_shrink_to_what_a_lexer_explains() -> None:
    """`start: "\\n"` with that ignored would be smaller, and is refused behind the end by the lexer."""
    small = small_of("a line end that is ignored")
    assert list(readings_against(small.grammar, small.content or b"", True, ())) == []


def test_steps_of_a_lark_grammar_drop_definitions_counts_flags_and_what_is_ignored() -> None:
    found = list(smaller_larks('start: one~2..3 ["x"i | two]\none: "abc" # a\ntwo: /d+/i\n%ignore " "'))
    assert found[0] == 'start: one{2,3} ("x"i | two)?\none: "abc"\ntwo: /d+/i\n%ignore " "'
    assert 'start: one{2,3} ("x"i | two)?\none: "abc"\ntwo: /d+/i' in found
    assert {'start: "abc"\n%ignore " "', 'start: ("x"i | two)?\ntwo: /d+/i\n%ignore " "'} <= set(found)
    assert 'start: one{2,3} ("x"i | two)?\none: "abc"\ntwo: /d/i\n%ignore " "' in found
    assert 'start: "abc"{2,3} ("x"i | two)?\ntwo: /d+/i\n%ignore " "' in found
    assert list(smaller_larks("start")) == list(text_cuts("start"))


def _is_ebnf(text: str) -> bool:
    try:
        reference_ebnf.parse(text)
    except reference_ebnf.EbnfError:
        return False
    return True


def test_steps_of_a_schema_take_the_instance_along() -> None:
    before = json.dumps(ORDER)
    found = [*plainer_schemas(ORDER, ORDERED), *smaller_schemas(ORDER, ORDERED)]
    assert "description" in before and "description" not in json.dumps(found[0][0]) and found[0][1] is ORDERED
    assert json.dumps(ORDER) == before, "a step changed what it was made from"
    pairs = [(json.dumps(schema), part) for schema, part in found]
    assert any(schema.startswith('{"$defs"') and part == ORDERED["lines"] for schema, part in pairs), (
        "a property as the root"
    )
    assert any(
        '"customer"' not in schema and part == {"lines": ORDERED["lines"]} for schema, part in pairs
    ), "a property dropped"
    assert any("$ref" not in schema and "$defs" not in schema and "2.75" in schema for schema, _ in pairs), (
        "a definition written out"
    )
    assert any('"a"' in schema and isinstance(part, dict) and "a" in part for schema, part in pairs), (
        "a shorter name in both"
    )
    right = [
        (schema, part)
        for schema, part in pairs
        if not dangling(json.loads(schema)) and not check_schema(schema)
    ]
    judged = [is_valid(Grammar("json_schema", schema), json.dumps(part).encode()) for schema, part in right]
    assert sum(judged) > len(judged) / 3, "an instance that goes with its schema is the rule, not luck"
    assert {part for _, part in smaller_schemas(ORDER, NOTHING)} == {NOTHING}


def test_a_property_is_dropped_where_it_stands_and_not_elsewhere() -> None:
    inner = {"type": "array", "items": {"allOf": [{"properties": {"name": {}, "other": {}}}]}}
    schema = {"properties": {"name": {}, "inner": inner}}
    instance = {"name": 1, "inner": [{"name": 2, "other": 3}]}
    parts = [part for _, part in smaller_schemas(schema, instance)]
    assert {"inner": [{"name": 2, "other": 3}]} in parts and {"name": 1, "inner": [{"other": 3}]} in parts


def test_a_reference_to_nowhere_is_seen() -> None:
    assert dangling({"properties": {"a": {"$ref": "#/$defs/a"}}})
    assert not dangling(
        {"$defs": {"a": True}, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/allOf/0"}, {"$ref": "#"}]}
    )


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
def test_pieces_are_all_halves_and_single_ones(count: int) -> None:
    found = list(spans(count))
    assert len(found) < 2 * count or not count
    assert {(each, each + 1) for each in range(count)} <= set(found)
    assert not count or found[0] == (0, count)
    assert list(cuts("ab")) == [(), ("b",), ("a",)]


def test_contents_are_cut_between_characters_and_bytes() -> None:
    assert "é".encode() in list(content_cuts("éa".encode())) and b"\xa9a" not in list(
        content_cuts("éa".encode())
    )
    assert b"\xff" in list(content_cuts(b"\xff\xfe"))
    assert {b"bcd", b"abc", b"acd", b"d", b"a"} <= set(holes(b"abcd")) and b"abcd" not in set(holes(b"abcd"))
    numbers = set(smaller_documents(b'{"a": [1234, -2.718, "text"]}'))
    assert {
        b"{}",
        b'{"a": []}',
        b'{"a": [12, -2.718, "text"]}',
        b'{"a": [1234, -2.7, "text"]}',
        b'{"a": [1234, -2.718, "te"]}',
    } <= numbers
    assert b'{"a":[]}' in set(smaller_documents(b'{"a":[1]}')), "compact stays compact"


def tag_tests() -> Iterator[tuple[str, bytes, bool | None]]:
    for case in read_cases(find_suite("choice_and_tags")):
        if case.grammar.dialect == "structural_tag":
            yield from ((case.grammar.text, each.content, each.valid) for each in case.instances)


def test_structural_tags_are_judged_as_the_suite_says() -> None:
    def by_judge(schema: str, document: bytes) -> bool:
        return is_valid(Grammar("json_schema", schema), document)

    tests = list(tag_tests())
    assert len(tests) > 50
    for text, content, valid in tests:
        assert tag_is_valid(text, content, by_judge) is valid, (text, content)
        assert is_tag_form(text, lambda schema: not check_schema(schema))
    assert tag_is_valid("[]", b"", by_judge) is None
    assert not is_tag_form(
        '{"triggers": ["a"], "structures": [{"begin": "b", "schema": {}, "end": "c"}]}', lambda schema: True
    )


def test_tokens_are_spelled_and_found_again() -> None:
    vocabulary = small_vocabulary((b"ab", b"b"))
    assert vocabulary.size == 258 and vocabulary.tokens[:2] == (b"ab", b"b") and vocabulary.tokens[-1] == b""
    tokens = [*vocabulary.encode(b"abc"), vocabulary.eos_token]
    spelling = spelled(vocabulary, tokens)
    assert (
        spelling == ["6162", "63", END]
        and tokens_of(vocabulary, spelling) == tokens
        and words_of(spelling) == (b"ab",)
    )
    assert spelled(vocabulary, [vocabulary.eos_token, 0]) is None, "nothing comes after the end"
    assert small_vocabulary(()).tokens == byte_vocabulary().tokens
