"""What a script prints of its instance is what a validator says when it runs, whatever draft, pattern, format
or flag there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.cases.case import Case
from harness.cases.case_json import cases_from_json
from harness.diagnose.repro.evidence import trials
from harness.diagnose.repro.standalone import Shown, stand_alone
from harness.diagnose.shrink import Outcome
from harness.oracle.judge import is_valid

BODY = "\nfor token in walk:\n    print(vocabulary[token], True, True)\n"
DIGIT = '"\u0663"'
"""ARABIC-INDIC DIGIT THREE: a digit for Python, none for ECMA-262."""


def one(schema: Any, draft: str | None = None, formats: bool = False) -> Case:
    options = {**({"draft": draft} if draft else {}), **({"format": "assert"} if formats else {})}
    (case,) = cases_from_json({"schema": schema, "options": options}, "a", "a.json", None, {})
    return case


def scripted(
    grammar: Grammar, content: bytes, valid: bool, draft: str | None = None, formats: bool = False
) -> tuple[str, list[str]]:
    """The script, and what it prints before the tokens of the walk."""
    shown = Shown(
        library="a 1",
        grammar=grammar,
        content=content,
        valid=valid,
        walk=(content[:1],),
        asserts_formats=formats,
        ends=False,
        outcome=Outcome("over_constrained" if valid else "under_constrained"),
        text="",
        words=(),
        vocabulary="bytes",
        draft=draft,
    )
    text = stand_alone(shown, BODY)
    return text, printed_by(text)[:-1]


def printed_by(text: str) -> list[str]:
    """The lines that a script prints; it must run to its end."""
    done = subprocess.run(
        [sys.executable, "-I", "-"], input=text.encode(), capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode() + text
    return done.stdout.decode().splitlines()


TRUE = {
    "draft 3 extends": (one({"type": "integer", "extends": {"minimum": 10}}, "draft3"), b"0", False,
    "Draft3Validator"),
    "draft 3 disallow": (one({"disallow": ["string"]}, "draft3"), b'"a"', False, "Draft3Validator"),
    "draft 3 pattern": (one({"type": "string", "pattern": r"^\d$"}, "draft3"), DIGIT.encode(), False,
    "Draft3Validator with the patterns"),
    "draft 4 bound": (one({"minimum": 1, "exclusiveMinimum": True}, "draft4"), b"1", False,
    "jsonschema.Draft4Validator"),
    "draft 6": (one({"exclusiveMinimum": 1}, "draft6"), b"1", False, "jsonschema.Draft6Validator"),
    "draft 7 tuple": (one({"items": [{"type": "string"}]}, "draft7"), b"[1]", False,
    "jsonschema.Draft7Validator"),
    "draft 7 $ref": (
        one({"$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": {}}}, "draft7"), b"2", True,
        "jsonschema.Draft7Validator",
    ),
    "draft 2019-09": (one({"items": [True], "additionalItems": False}, "draft2019-09"), b"[1, 2]", False,
    "Draft201909Validator"),
    "draft 2020-12": (one({"prefixItems": [True], "items": False}), b"[1, 2]", False,
    "jsonschema.Draft202012Validator"),
    "ECMA digits": (one({"type": "string", "pattern": r"^\d$"}), DIGIT.encode(), False,
    "jsonschema_rs.Draft202012Validator"),
    "ECMA name": (one({"patternProperties": {r"^\w$": False}}), '{"é": 1}'.encode(), True,
    "jsonschema_rs.Draft202012Validator"),
    "format": (one({"format": "date"}, None, True), b'"2026-02-30"', False,
    "jsonschema.Draft202012Validator"),
    "format of the second": (one({"format": "date-time"}, "draft7", True), b'"x"', False,
    "jsonschema_rs.Draft7Validator"),
    "format not asserted": (one({"format": "date"}), b'"2026-02-30"', True,
    "jsonschema.Draft202012Validator"),
    "no JSON": (one({}), b"{'a': 1}", False, "json.loads"),
    "no number": (one({}), b"NaN", False, "json.loads"),
    "a byte-order mark": (one({"type": "integer"}), b"\xef\xbb\xbf1", False, "json.loads"),
    "UTF-16": (one({"type": "integer"}), b"1\x00", False, "json.loads"),
    "no UTF-8": (one({}), b'"\xff"', False, "str"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_what_a_script_prints_of_its_instance_is_true(name: str) -> None:
    case, content, valid, who = TRUE[name]
    formats = case.options.get("format") == "assert"
    assert is_valid(case.grammar, content, draft=case.options.get("draft"), assert_formats=formats) is valid
    text, printed = scripted(case.grammar, content, valid, case.options.get("draft"), formats)
    (line,) = printed
    assert who in line and line.endswith("the instance is valid" if valid else "the instance is not valid")
    assert not re.search(r"^# .*(raises|matches|is None)", text, re.MULTILINE), "a comment is no evidence"
    assert f"because the instance is {'valid' if valid else 'not valid'}, says " in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("schema", "content", "claimed"),
    [
        ({"type": "integer"}, b"1", False),
        ({"type": "integer"}, b'"a"', True),
        ({"enum": ["a"]}, b'"b"', True),
    ],
)
def test_a_wrong_flag_is_not_made_evidence(schema: dict[str, Any], content: bytes, claimed: bool) -> None:
    text, (line,) = scripted(one(schema).grammar, content, claimed)
    assert line.endswith("is not valid" if claimed else "is valid")
    assert "says the opposite" in text.splitlines()[-1]


def test_a_grammar_that_no_validator_knows_has_no_evidence() -> None:
    text, printed = scripted(Grammar("ebnf", 'root ::= "a"'), b"a", True)
    assert printed == [] and "because the text is a sentence of the grammar" in text


def test_a_regex_and_a_choice_are_asked_too_and_a_slow_one_is_not_cited() -> None:
    assert scripted(Grammar("regex", "a+"), b"aa", True)[1] == ["regex.fullmatch: the instance is valid"]
    assert scripted(Grammar("choice", '["a"]'), b"b", False)[1] == ["json.loads: the instance is not valid"]
    slow = Grammar("regex", "(a|b|ab)*(?=(?P<x>c))(?P=x)d(a|aa)+$|((a*)*)*b")
    with trials(seconds=2.0) as tried:
        found = tried.evidence(slow, b"a" * 60, False, None, False)
    assert found is None or found.agrees


@pytest.mark.parametrize(
    ("grammar", "content", "module"),
    [
        (Grammar("json_schema", '{"type": "integer"}'), b"1", "jsonschema"),
        (Grammar("json_schema", '{"type": "string", "pattern": "^.$"}'), '"é"'.encode(), "jsonschema"),
        (Grammar("json_schema", r'{"type": "string", "pattern": "^\\w$"}'), b'"a"', "jsonschema"),
        (Grammar("regex", "a+"), b"aa", "regex"),
    ],
)
def test_a_script_shows_the_backend_where_its_validator_is_missing(
    grammar: Grammar, content: bytes, module: str
) -> None:
    text, (judged,) = scripted(grammar, content, True)
    assert judged.endswith("the instance is valid")
    lacking = f"import sys\nsys.modules.update(dict.fromkeys(['{module}', '{module}_rs']))\n"
    said, walked = printed_by(lacking + text)
    assert said.startswith("the instance is not judged here: ") and module in said
    assert walked.endswith("True True")


@pytest.mark.parametrize(
    ("cause", "walk", "ends", "said"),
    [
        ("escape", b'"a', False, "the instance, which begins with the walk, is valid"),
        ("escape", b'"ab"', True, "the instance is valid"),
        ("escape", b'"a\\', False, ""),
        ("early_end", b'"a', True, ""),
        ("invalid", b"[1]", True, "the output is not valid"),
        ("no_json", b"x", False, ""),
    ],
)
def test_an_instance_is_judged_only_where_the_walk_is_its_own(
    cause: str, walk: bytes, ends: bool, said: str
) -> None:
    """A check may have made the walk, or left the instance: then what is true of it tells nothing. Of a token
    that is no JSON no output is judged."""
    direction = {"invalid": "", "no_json": "under"}.get(cause, "over")
    shown = Shown(
        library="a 1",
        grammar=one({"type": "string"}).grammar,
        content=b'"ab"',
        valid=True,
        walk=(walk,),
        asserts_formats=False,
        ends=ends,
        outcome=Outcome("unjudged", check="the_mask_is_exact", cause=cause, direction=direction),
        text="a fact does not hold",
        words=(walk,),
        vocabulary="bytes",
    )
    text = stand_alone(shown, BODY)
    judged = [line for line in printed_by(text) if "Validator: " in line]
    assert [line.partition(": ")[2] for line in judged] == [said] * bool(said)
    assert ("because the output is not valid, says" in text) == (cause == "invalid")


def test_where_one_matcher_of_regexes_errs_the_other_one_is_cited() -> None:
    assert scripted(Grammar("regex", "[^a]|[^b]"), b"a", True)[1] == ["re.fullmatch: the instance is valid"]


def test_a_remote_reference_is_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    case = one({"$ref": "http://127.0.0.1:9/never"})
    text, printed = scripted(case.grammar, b"1", False)
    assert printed == [] and "no validator that this script could ask says so" in text


def test_the_draft_is_in_the_text_that_everybody_gets() -> None:
    for draft, uri in (
        ("draft3", "draft-03"),
        ("draft7", "draft-07"),
        ("draft2019-09", "2019-09"),
        ("draft2020-12", "2020-12"),
    ):
        case = one({"type": "integer"}, draft)
        assert (
            uri in json.loads(case.grammar.text)["$schema"]
            and next(iter(json.loads(case.grammar.text))) == "$schema"
        )
        assert case.id != one({"type": "integer"}).id
    own = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    assert json.loads(one(own, "draft7").grammar.text) == own
    assert (
        one(True, "draft7").grammar.text == "true"
        and one({"type": "integer"}).grammar.text == '{"type": "integer"}'
    )
    tag = {"triggers": ["<a"], "structures": [{"begin": "<a>", "schema": {"type": "integer"}, "end": "</a>"}]}
    (tagged,) = cases_from_json(
        {"structural_tag": tag, "options": {"draft": "draft7"}}, "a", "a.json", None, {}
    )
    assert "draft-07" in json.loads(tagged.grammar.text)["structures"][0]["schema"]["$schema"]
    (bare,) = cases_from_json({"type": "integer"}, "a", "a.json", "draft6", {})
    assert "draft-06" in bare.grammar.text and replace(bare, id="").options == {"draft": "draft6"}
