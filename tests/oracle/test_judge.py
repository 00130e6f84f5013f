"""The judge: what it calls valid, what it refuses to judge, and what it costs at worst."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import CORPORA
from shared_services import services_are_not_shared

from harness.backend.grammar import Grammar
from harness.backend.process.service import Service
from harness.backend.process.system import descendants, is_running
from harness.oracle.automaton import NoOracle
from harness.oracle.judge import Judge, Unjudgeable, check_schema, is_json, is_valid, second
from harness.oracle.judge import schema as judge_schema
from harness.oracle.judge import verdict as judge_verdict
from harness.oracle.judge.drafts import DRAFT_URIS
from harness.oracle.judge.keywords import KEYWORDS
from harness.oracle.judge.membership import Membership, membership
from harness.oracle.judge.pattern import finds, is_pattern
from harness.oracle.judge.second import second_verdict, violated_constraint
from harness.oracle.judge.strict_json import parse_json, refusal
from harness.oracle.regex.ecma import ecma_tree

CORPUS = CORPORA / "json-schema-test-suite" / "tests"
HARD = r"^(a|aa)+$"  # exponential for every backtracking matcher
HARD_TEXT = b'"' + b"a" * 60 + b'!"'


OTHERS: set[int] = set()
"""The processes of other tests' services, which wait for the next one."""


@pytest.fixture(scope="module", autouse=True)
def _services_of_its_own() -> Iterator[None]:
    """The process of a judge is a subject here."""
    OTHERS.update(descendants(os.getpid()))
    with services_are_not_shared():
        yield


def schema(value: Any) -> Grammar:
    return Grammar("json_schema", json.dumps(value))


def verdict(value: Any, text: str | bytes, **options: Any) -> bool:
    return is_valid(schema(value), text.encode() if isinstance(text, str) else text, **options)


# --- strict JSON


@pytest.mark.parametrize(
    "text",
    ["0", "-0", "1.50", "1e400", '"\\ud83d\\ude00"', '"\\/"', " [1 ,\n2]\t", '{"a":{}}', "null", "9" * 300],
)
def test_json_is_accepted(text: str) -> None:
    assert verdict({}, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "NaN",
        "-Infinity",
        "Infinity",
        "01",
        "+1",
        "1.",
        ".5",
        "1 2",
        "{} {}",
        "[1,]",
        "{'a':1}",
        '"\n"',
        '"\\x41"',
        "tru",
        "[1",
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    assert not verdict({}, text)


@pytest.mark.parametrize(
    "text", ["\ufeff1", "1\u00a0", "\f1", "// c\n1", '{"a":1,}', '{"a" 1}', "True", "1\x00"]
)
def test_what_is_nearly_json_is_refused(text: str) -> None:
    assert not verdict({}, text)


@pytest.mark.parametrize(
    "content",
    [b'"\x80"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xc3"', b"\xef\xbb\xbf1"],
)
def test_invalid_utf8_is_refused(content: bytes) -> None:
    assert not verdict({}, content)


def test_a_name_twice_is_not_judged() -> None:
    with pytest.raises(Unjudgeable, match="'a' occurs twice"):
        verdict({}, '{"a": 1, "b": 2, "a": 1}')
    assert not verdict({}, '{"a": 1, "a": 1')


# --- numbers


@pytest.mark.parametrize(
    ("value", "text", "valid"),
    [
        ({"type": "integer"}, "1.0", True),
        ({"type": "integer"}, "1e2", True),
        ({"type": "integer"}, "1e-1", False),
        ({"type": "integer"}, "123456789012345678901234567890.5", False),
        ({"multipleOf": 0.01}, "0.07", True),
        ({"multipleOf": 0.01}, "0.071", False),
        ({"multipleOf": 3}, "1e30", False),
        ({"multipleOf": 5}, "1e30", True),
        ({"maximum": 9007199254740992}, "9007199254740993", False),
        ({"maximum": 1}, "1.00000000000000000001", False),
        ({"exclusiveMinimum": 0}, "1e-400", True),
        ({"const": 1}, "1.0", True),
        ({"const": 1}, "true", False),
        ({"uniqueItems": True}, "[1, 1.0]", False),
        ({"uniqueItems": True}, "[[1], [true], [1]]", False),
        ({"uniqueItems": True}, "[1, true, 0, false]", True),
        ({"type": "number"}, "true", False),
    ],
)
def test_numbers_are_exact(value: Any, text: str, valid: bool) -> None:
    assert verdict(value, text) is valid


def test_numbers_out_of_reach_are_not_judged() -> None:
    with pytest.raises(Unjudgeable):
        verdict({}, "9" * 5000)
    with pytest.raises(Unjudgeable):
        verdict({"multipleOf": 3}, "1e1000000000")


# --- patterns


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\d$", ["5"], ["٣", "५", "a"]),
        (r"^\w$", ["a", "_"], ["é", "-"]),
        (r"^\s$", ["\u00a0", "\ufeff", "\n", "\u3000"], ["\u200b", "\x1c", "\x85"]),
        (r"^[\D]$", ["a", "٣"], ["1"]),
        (r"^[^\S]$", [" "], ["a"]),
        (r"^a$", ["a"], ["a\n"]),
        (r"^.$", ["a", "\x85"], ["\n", "\u2028"]),
        (r"\bé", ["aé"], ["é"]),
        (r"^\p{Lu}$", ["É"], ["é"]),
        (r"^[]$", [], ["", "a"]),
        (r"^[^]$", ["\n"], [""]),
        (r"^[a&&b]+$", ["&", "ab"], ["c"]),
        (r"^[[a]$", ["[", "a"], ["b"]),
        (r"^a{,2}$", ["a{,2}"], ["a", "aa", ""]),
        (r"^(?:ab){e<=1}$", ["ab{e<=1}"], ["ab", "a"]),
        (r"^\cA\0\x41\u0042\u{1F600}\ud83d\ude00$", ["\x01\x00AB😀😀"], ["A"]),
        (r"^(a)?b\1$", ["b", "aba"], ["ab", "ba"]),
        (r"^(?<n>a|b)\k<n>$", ["aa", "bb"], ["ab"]),
        (r"^[\w-.]+$", ["a-.", "_"], ["!"]),
        (r"^a\/b\-\_$", ["a/b-_"], ["a\\/b"]),
        (r"^\u{0000000041}$", ["A"], ["a"]),
        (r"^(?:[^a]|[^b])$", ["a", "b", "\n"], ["", "ab"]),
        (r"^(?:[^\p{L}]|[^b])$", ["a", "1"], ["b"]),
        (r"^(?:[^\s\S]|a)$", ["a"], ["b", " "]),
        (r"^[^\p{L}\P{Letter}]?$", [""], ["b", "1"]),
        (r"^[^\u{0}-\u{10ffff}]*$", [""], ["a"]),
        (r"^(?:(?<n>a)|(?<n>b)c)$", ["a", "bc"], ["b"]),
        (r"^(?=a)*(?:^)*a$", ["a"], ["b"]),
        (r"^[\d-a-z]$", ["1", "-", "a", "z"], ["m"]),
        (r"^[a-\d-z]$", ["1", "-", "a", "z"], ["m"]),
        (r"^[^\s-!-~]$", ["a"], [" ", "-", "!", "~"]),
    ],
)
def test_patterns_are_ecma_262(pattern: str, yes: list[str], no: list[str]) -> None:
    texts = [*yes, *no]
    assert [verdict({"pattern": pattern}, json.dumps(text)) for text in texts] == [True] * len(yes) + [
        False
    ] * len(no)
    for keyword in ({"additionalProperties": False}, {"unevaluatedProperties": False}):
        closed = {"patternProperties": {pattern: True}, **keyword}
        assert [verdict(closed, json.dumps({text: 1})) for text in texts] == [True] * len(yes) + [
            False
        ] * len(no)
    assert [verdict({"patternProperties": {pattern: False}}, json.dumps({text: 1})) for text in texts] == [
        False
    ] * len(yes) + [True] * len(no)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?i)a",
        "(?P<n>a)",
        "a**",
        "*a",
        "a++",
        r"\Z",
        r"[b-a]",
        "[a",
        "(a",
        r"\u{110000}",
        r"\1",
        "a{2}{3}+",
        "(?>a)",
        "^*",
        r"a\b+",
        "(?<=a)+",
        "(?<n>a)(?<n>b)",
        "((?<n>a)|(?<m>b))(?<m>c)",
    ],
)
def test_what_is_no_pattern_is_not_judged(pattern: str) -> None:
    with pytest.raises(Unjudgeable, match="schema is wrong"):
        verdict({"pattern": pattern}, '"a"')


# --- drafts


def test_schema_names_its_draft_and_the_argument_does_not_override_it() -> None:
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    assert not verdict(draft4, "1.0")
    assert not verdict(draft4, "1.0", draft="draft2020-12")
    assert verdict({"type": "integer"}, "1.0", draft="draft6")
    assert not verdict({"type": "integer"}, "1.0", draft="draft4")


def test_2020_12_is_the_default() -> None:
    tuple_2020 = {"prefixItems": [{"type": "string"}]}
    assert not verdict(tuple_2020, "[1]")
    assert verdict(tuple_2020, "[1]", draft="draft7")
    assert not verdict({"$schema": "https://example.org/mine", **tuple_2020}, "[1]")
    with pytest.raises(Unjudgeable, match="schema is wrong"):
        verdict({"items": [{"type": "string"}]}, "[1]")
    assert not verdict({"items": [{"type": "string"}]}, "[1]", draft="draft2019-09")


@pytest.mark.parametrize(
    "uri", ["http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/schema#"]
)
def test_draft_is_known_by_each_spelling_of_its_uri(uri: str) -> None:
    assert verdict(
        {"$schema": uri, "items": [{"$ref": "#/definitions/n"}], "definitions": {"n": {"type": "integer"}}},
        "[1.0]",
    )


def test_subschema_with_its_own_schema_keeps_exact_numbers() -> None:
    inner = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/n",
        "type": "integer",
        "multipleOf": 0.1,
    }
    assert verdict({"$ref": "https://example.org/n", "$defs": {"n": inner}}, "3.0")


def test_unknown_draft_is_not_judged() -> None:
    with pytest.raises(Unjudgeable, match="unknown draft 'draft5'"):
        verdict({}, "1", draft="draft5")


# --- formats


def test_formats_are_asserted_on_request_only() -> None:
    assert verdict({"format": "date-time"}, '"soon"')
    assert not verdict({"format": "date-time"}, '"soon"', assert_formats=True)
    assert verdict({"format": "date-time"}, '"2024-05-06T07:08:09Z"', assert_formats=True)
    assert verdict({"format": "time"}, '"01:29:60+01:30"', assert_formats=True)
    assert not verdict({"format": "time"}, '"12:00:60Z"', assert_formats=True)
    assert verdict({"format": "colour"}, '"x"', assert_formats=True)
    for uri, valid in [  # RFC 3986, section 3.2.2
        ("http://[::1.2.3.4]/", True),
        ("http://[v1.a:b]/", True),
        ("http://[v.a]/", False),
        ("http://[1.2.3.4]/", False),
    ]:
        assert verdict({"format": "uri"}, f'"{uri}"', assert_formats=True) is valid
    for address, valid in [  # RFC 5321, section 4.1.2
        (r'"a\" b"@c', True),
        ("a@[ipv6:::1]", True),
        ('"é"@c', False),
        ('"\x7f"@c', False),
        ('"\\\t"@c', False),
    ]:
        assert verdict({"format": "email"}, json.dumps(address), assert_formats=True) is valid
    with pytest.raises(Unjudgeable, match="no checker for the format idn-email"):
        verdict({"format": "idn-email"}, '"a@b"', assert_formats=True)


@pytest.mark.parametrize("draft", ["draft2019-09", "draft2020-12"])
@pytest.mark.parametrize("needs", [["b"], {"required": ["b"]}, False])
def test_dependencies_are_judged_only_in_drafts_that_have_them(draft: str, needs: Any) -> None:
    schema = {"dependencies": {"a": needs}}
    for content in ('{"b": 1}', "[]"):
        assert verdict(schema, content, draft=draft)
    with pytest.raises(Unjudgeable, match="`dependencies` is no keyword of this draft"):
        verdict(schema, '{"a": 1}', draft=draft)
    assert not verdict(schema, '{"a": 1}', draft="draft7")


# --- references


@pytest.fixture
def connections() -> Iterator[tuple[int, list[Any]]]:
    """A port of this machine, and who has connected to it."""
    seen: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            try:
                while True:
                    seen.append(server.accept())
            except OSError:
                return

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], seen
        server.shutdown(socket.SHUT_RDWR)


def test_references_fetch_nothing(
    connections: tuple[int, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, seen = connections
    (tmp_path / "int.json").write_text('{"type": "integer"}')
    opened: list[str] = []
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, *rest, **more: opened.append(str(url)))
    sys.addaudithook(
        lambda event, args: (
            opened.append(str(args[0])) if event == "open" and "int.json" in str(args[0]) else None
        )
    )
    with Judge(5) as judge:
        for target in (
            f"http://127.0.0.1:{port}/int.json",
            f"file://{tmp_path}/int.json",
            f"{tmp_path}/int.json",
            "int.json",
        ):
            for value in (
                {"$ref": target},
                {"$id": f"http://127.0.0.1:{port}/", "$ref": target},
                {"$schema": target, "$dynamicRef": target},
            ):
                with pytest.raises(Unjudgeable, match="Unresolvable"):
                    verdict(value, "1")
                assert judge.verdict(schema(value), b"1") is None
    assert opened == []
    assert seen == []
    with socket.create_connection(("127.0.0.1", port)):  # the listener would have told
        for _ in range(100):
            if seen:
                break
            time.sleep(0.02)
    assert len(seen) == 1


def test_reference_that_is_not_reached_does_no_harm() -> None:
    assert verdict({"properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}, "{}")


def test_meta_schemas_are_at_hand() -> None:
    meta = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert verdict(meta, '{"type": "string"}')
    assert not verdict(meta, '{"type": "text"}')


def test_reference_to_itself_is_not_judged() -> None:
    with pytest.raises(Unjudgeable):
        verdict({"$ref": "#"}, "1")


# --- the other dialects


def test_regex_matches_the_whole_decoded_text() -> None:
    grammar = Grammar("regex", "a+|é")
    assert [
        is_valid(grammar, content)
        for content in (b"a", b"aaa", "é".encode(), b"ab", b"a\n", b"", b"\xc3", b"\xff")
    ] == [True] * 3 + [False] * 5
    with pytest.raises(Unjudgeable, match="not a regex"):
        is_valid(Grammar("regex", "(a"), b"a")


@pytest.mark.parametrize(
    ("pattern", "text", "valid"),
    [
        ("[^a]|[^b]", "a", True),
        ("[^a]|[^b]", "", False),
        ("(?i:x?)[^1-aé]", "c", True),
        ("(?i:x?)[^1-aé]", "a", False),
        (r"[^\s\S]", "b", False),
        (r"(b)\1", "bb", True),
        (r"(b)\1", "b", False),
    ],
)
def test_a_regex_is_judged_by_its_automaton_if_it_has_one(pattern: str, text: str, valid: bool) -> None:
    """Version 2026.11.15 of the library matches the first three pairs wrongly."""
    assert is_valid(Grammar("regex", pattern), text.encode()) is valid


@pytest.mark.parametrize(
    "pattern", [r"([^a]|[^b])\1", r"(?:[^a]|[^b])(c)\1", r"(a)[^\s\S]\1", r"([^\w\W])\1"]
)
def test_where_the_library_may_misread_a_class_there_is_no_verdict(pattern: str) -> None:
    with pytest.raises(Unjudgeable, match="a negated class"):
        is_valid(Grammar("regex", pattern), b"aa")


def test_a_regex_whose_automaton_grows_too_large_is_judged_by_the_library() -> None:
    grammar = Grammar("regex", "[ab]*a[ab]{2000}")
    with pytest.raises(Unjudgeable, match="too large"):
        membership(grammar, b"ab" * 2000)
    assert is_valid(grammar, b"ab" * 2000 + b"a") and not is_valid(grammar, b"ab" * 2000)


def test_a_regex_without_automaton_is_asked_for_one_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def counted(grammar: Grammar, content: bytes) -> Membership:
        asked.append(content)
        return membership(grammar, content)

    monkeypatch.setattr(judge_verdict, "membership", counted)
    for text in (b"cc", b"c", b"ccc"):
        is_valid(Grammar("regex", r"(c)\1"), text)
    assert asked == [b""]


def test_choice_is_membership() -> None:
    grammar = Grammar("choice", '["on", "online", "é"]')
    assert [
        is_valid(grammar, content) for content in (b"on", b"online", "é".encode(), b"onl", b"", b"\xff")
    ] == [True] * 3 + [False] * 3
    with pytest.raises(Unjudgeable):
        is_valid(Grammar("choice", '["on", 1]'), b"on")


@pytest.mark.parametrize(
    ("dialect", "reason"),
    [("ebnf", "not of the form"), ("lark", "not of the form"), ("structural_tag", "structural_tag")],
)
def test_what_no_judge_reads_is_not_judged(dialect: Any, reason: str) -> None:
    with pytest.raises(Unjudgeable, match=reason):
        is_valid(Grammar(dialect, "x"), b"x")


# --- schemas


@pytest.mark.parametrize(
    ("text", "draft", "part"),
    [
        ('{"type": "text"}', None, "$.type"),
        ('{"properties": {"a": {"minLength": -1}}}', None, "$.properties.a.minLength"),
        ('{"exclusiveMinimum": true}', None, "$.exclusiveMinimum"),
        ('{"exclusiveMinimum": 1, "minimum": 0}', "draft4", "$.exclusiveMinimum"),
        ('{"items": {"$ref": 0}}', "draft3", "$.items"),
        ('{"patternProperties": {"(": {}}}', None, "not of the format regex"),
        ("[]", None, "an object or a boolean"),
        ("1", None, "an object or a boolean"),
        ("{", None, "not JSON"),
        ('{"type": "string", "type": "integer"}', None, "occurs twice"),
    ],
)
def test_wrong_schema_is_told_in_one_line(text: str, draft: str | None, part: str) -> None:
    wrong = check_schema(text, draft)
    assert wrong is not None
    assert part in wrong
    assert "\n" not in wrong
    with pytest.raises(Unjudgeable):
        is_valid(Grammar("json_schema", text), b"1", draft=draft)


@pytest.mark.parametrize(
    ("text", "draft"),
    [
        ("true", None),
        ("{}", None),
        ('{"exclusiveMinimum": true, "minimum": 1}', "draft4"),
        ('{"x": 1}', None),
    ],
)
def test_right_schema_has_nothing_wrong(text: str, draft: str | None) -> None:
    assert check_schema(text, draft) is None


ODD_VALUES: list[Any] = [
    0, -1, 2.0, 1.5, "x", "(", "[a", "\\Z", "#/x", "http://[", [], {}, None, True, ["a", "a"], [{}], {"a": 1},
    ["string", "string"], {"$ref": 1}, {"(": {}}, {"a": 1.0},
]  # fmt: skip


@pytest.mark.parametrize("draft", sorted(DRAFT_URIS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_a_schema_at_first_glance_is_one_by_the_last_word(draft: str, data: st.DataObject) -> None:
    """At first glance is jsonschema_rs, and the last word is jsonschema's."""
    more = ("pattern", "minLength", "type", "properties", "required", "$id", "$ref", "$anchor")
    names = data.draw(st.sets(st.sampled_from(sorted({*KEYWORDS, *more})), max_size=2))
    spoilt = {name: data.draw(st.sampled_from(ODD_VALUES)) for name in sorted(names)}
    around: list[Any] = [spoilt, {"properties": {"a": spoilt}}, {"items": spoilt}, {"not": spoilt}]
    inner = data.draw(st.sampled_from(around))
    parsed = parse_json(json.dumps(inner))
    at_first = judge_schema._is_surely_a_schema(parsed, draft)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_schema, "_is_surely_a_schema", lambda *_: False)
        last = judge_schema.schema_error(parsed, draft)
    assert not at_first or last is None, inner
    assert judge_schema.schema_error(parsed, draft) == last


@pytest.mark.parametrize("draft", [draft for draft in DRAFT_URIS if draft != "draft3"])
def test_the_first_glance_is_enough_for_a_usual_schema(draft: str) -> None:
    usual = parse_json('{"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]+$"}}}')
    assert judge_schema._is_surely_a_schema(usual, draft)


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_schema_that_nests_too_deeply_is_not_checked(depth: int) -> None:
    assert check_schema('{"items":' * depth + "{}" + "}" * depth) is None


# --- the process


def test_judge_agrees_with_is_valid() -> None:
    with Judge() as judge:
        assert judge.verdict(schema({"type": "integer"}), b"1") is True
        assert judge.verdict(schema({"type": "integer"}), b"x\xff\n") is False
        assert judge.verdict(schema({"type": "integer"}), b"1.0", draft="draft4") is False
        assert judge.verdict(schema({"format": "date"}), b'"x"', assert_formats=True) is False
        assert judge.verdict(Grammar("choice", '["\ud800", "é"]'), "é".encode()) is True
        assert judge.reason == ""
        assert judge.verdict(Grammar("ebnf", 'root ::= "a"'), b"a") is True
        assert judge.verdict(Grammar("lark", 'start: "a"'), b"ab") is False
        assert judge.reason == ""
        assert judge.verdict(Grammar("lark", "start: %json {}"), b"1") is None
        assert judge.reason == "line 1: %json has no reference"
        assert judge.verdict(Grammar("structural_tag", "{}"), b"a") is None
        assert judge.reason == "no judge for structural_tag"


def test_process_starts_with_the_first_question_and_ends_with_the_judge() -> None:
    with Judge() as judge:
        assert judging_processes() == []
        judge.verdict(schema(True), b"1")
        processes = judging_processes()
        assert processes
    assert not any(map(is_running, processes))


@pytest.mark.parametrize(
    "grammar",
    [
        schema({"pattern": HARD}),
        schema({"patternProperties": {HARD: True}}),
        Grammar("regex", r'"(a|aa)+(x?)\2"'),
    ],
)
def test_catastrophic_regex_costs_the_deadline_only(grammar: Grammar) -> None:
    content = b'{"' + b"a" * 60 + b'!": 1}' if "patternProperties" in grammar.text else HARD_TEXT
    with Judge(0.4) as judge:
        assert judge.verdict(schema({"pattern": HARD}), b'"aaa"') is True
        began = time.monotonic()
        assert judge.verdict(grammar, content) is None
        assert 0.4 <= time.monotonic() - began < 2.5  # well before the process would end itself
        assert judge.reason == "out of time after 0.4 s"
        assert judge.verdict(schema({"type": "integer"}), b"1") is True
        assert judge.reason == ""


def test_nested_quantifier_ends_in_time() -> None:
    with Judge(5) as judge:
        assert judge.verdict(schema({"pattern": "^(a+)+$"}), HARD_TEXT) is False
        assert judge.verdict(Grammar("regex", '"(a|aa)+"'), HARD_TEXT) is False


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"items":' * 20_000 + "{}" + "}" * 20_000, b"[]"),
        ('{"items":{"$ref":"#"}}', b"[" * 100_000 + b"]" * 100_000),
        ('{"allOf":[' * 10_000 + "{}" + "]}" * 10_000, b"1"),
        ('{"$ref":"#"}', b"1"),
    ],
)
def test_bottomless_nesting_ends_neither_caller_nor_judge(text: str, content: bytes) -> None:
    with Judge(1.0) as judge:
        began = time.monotonic()
        assert judge.verdict(Grammar("json_schema", text), content) is None
        assert judge.reason
        assert time.monotonic() - began < 6
        assert judge.verdict(schema({"type": "integer"}), b"1") is True


def test_judge_reads_deeper_than_is_valid() -> None:
    nest, content = schema({"items": {"$ref": "#"}, "type": "array"}), b"[" * 1000 + b"]" * 1000
    with pytest.raises(Unjudgeable, match="nests too deeply"):
        is_valid(nest, content)
    with Judge() as judge:
        assert judge.verdict(nest, content) is True
        assert judge.verdict(nest, content.replace(b"[]", b"[1]")) is False


def test_huge_input_is_judged_or_given_up() -> None:
    with Judge(0.05) as judge:
        assert judge.verdict(schema({"type": "array"}), b"[" + b"1," * 3_000_000 + b"1]") is None
        judge.deadline = 10
        assert judge.verdict(schema({"maxLength": 2_999_999}), b'"' + b"a" * 3_000_000 + b'"') is False


def test_killed_process_costs_one_verdict() -> None:
    with Judge() as judge:
        for lost in (slice(0, 2), slice(1, 2)):  # the process itself, with which its child ends; the child
            assert judge.verdict(schema(True), b"1") is True
            processes = judging_processes()[lost]
            os.kill(processes[0], signal.SIGKILL)
            while any(map(is_running, processes)):
                time.sleep(0.01)
            assert judge.verdict(schema(True), b"1") is None
            assert judge.reason.startswith("the judge died (")
        assert judge.verdict(schema(True), b"1") is True


def test_interrupted_question_leaves_no_answer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with Judge() as judge:
        judge.verdict(schema(True), b"1")
        with monkeypatch.context() as patch:
            patch.setattr(Service, "take", interrupt)
            with pytest.raises(KeyboardInterrupt):
                judge.verdict(schema(False), b"1")
        assert judge.verdict(schema(True), b"1") is True


def judging_processes() -> list[int]:
    """Returns the processes below this one: the judge's, and then its child."""
    return [pid for pid in descendants(os.getpid()) if is_running(pid) and pid not in OTHERS]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_judge_ends_with_its_caller_in_the_middle_of_a_question() -> None:
    code = (
        "import sys; from harness.backend.grammar import Grammar; from harness.oracle.judge import Judge\n"
        "with Judge(60) as judge:\n"
        "    judge.verdict(Grammar('json_schema', 'true'), b'1'); print('ready', flush=True)\n"
        f"    judge.verdict(Grammar('json_schema', {json.dumps({'pattern': HARD})!r}), {HARD_TEXT!r})"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None and caller.stdout.readline() == b"ready\n"
        processes = list(descendants(caller.pid))
        time.sleep(0.2)
        caller.kill()
        caller.wait()
    ends = time.monotonic() + 5
    while any(map(is_running, processes)) and time.monotonic() < ends:
        time.sleep(0.02)
    assert len(processes) == 2 and not any(map(is_running, processes))


def test_import_does_not_load_the_libraries() -> None:
    code = (
        "import sys, harness.oracle.judge; sys.exit(sum(name in sys.modules for name in ('jsonschema', "
        "'regex', 'referencing')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- against the official suite


@pytest.mark.corpora
@pytest.mark.skipif(not CORPUS.is_dir(), reason="no ../shared/corpora")
def test_judge_passes_the_json_schema_test_suite() -> None:
    judged, wrong = 0, []
    for path in sorted(CORPUS.rglob("*.json")):
        parts = path.relative_to(CORPUS).parts
        if (
            "optional" in parts
            and "format" not in parts
            and path.stem not in ("ecmascript-regex", "bignum", "non-bmp-regex", "float-overflow")
        ):
            continue
        for group in json.loads(path.read_text()):
            for test in group["tests"]:
                content = json.dumps(test["data"]).encode()
                try:
                    valid = is_valid(
                        schema(group["schema"]), content, draft=parts[0], assert_formats="format" in parts
                    )
                except Unjudgeable:
                    continue
                judged += 1
                if valid is not test["valid"]:
                    wrong.append((parts[0], path.stem, group["description"]))
    assert judged > 7000
    # A meta-schema of the user's own, which may switch a vocabulary off, would have to be fetched.
    custom = "schema that uses custom metaschema with with no validation vocabulary"
    assert wrong == [("draft2019-09", "vocabulary", custom), ("draft2020-12", "vocabulary", custom)]


@pytest.mark.parametrize("content", [rb'"\ud800"', rb'["\udc00\ud800"]', rb'{"\uD800\u0041": 1}'])
def test_a_text_that_one_json_parser_reads_and_another_refuses_is_contested(content: bytes) -> None:
    grammar = Grammar("json_schema", "{}")
    with pytest.raises(Unjudgeable, match="contested: one JSON parser reads it, jiter says: "):
        is_valid(grammar, content)
    with pytest.raises(Unjudgeable, match="contested"):
        is_json(content)
    with Judge() as judge:
        assert judge.verdict(grammar, content) is None and "contested" in judge.reason
    assert not is_valid(Grammar("json_schema", '{"type": "number"}'), content), (
        "forbidden, however it is read"
    )


@pytest.mark.parametrize(
    "content",
    [b"NaN", b"[Infinity]", b"-Infinity", b'"\xed\xa0\x80"', b"01", b'"\n"', b"\xef\xbb\xbf1", b"1 2"],
)
def test_both_json_parsers_refuse_what_rfc_8259_does_not_have(content: bytes) -> None:
    assert refusal(content) and not is_json(content) and not is_valid(Grammar("json_schema", "{}"), content)


def test_what_jiter_alone_has_no_room_for_is_not_contested() -> None:
    deep = b"[" * 300 + b"]" * 300
    assert refusal(deep) is None and is_json(deep)
    assert second_verdict("{}", deep, None, False) == (None, "")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("1e5", True), ("0.0e-999", True), ("-1.5E300", True), ('"x"', False),
        ("1e999", None), ("-3E-400", None), ('{"a": 1, "a": 2}', None), ("[1", False),
        ("0.0012345678901234567891E22", None), ("[0e99999999999999999999]", False),
    ],
)  # fmt: skip
def test_the_second_validator_does_not_speak_of_what_it_cannot_read(text: str, valid: bool | None) -> None:
    assert second_verdict('{"type": "number"}', text.encode(), None, False)[0] is valid


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ('{"multipleOf": 7}', "8.664273465148751933E018"),  # a multiple, and as a double none
        ('{"enum": [1e-400]}', "0"),  # no 0, but as a double
        ('{"minimum": 0.10000000000000000001}', "0.1"),
    ],
)
def test_the_second_validator_does_not_speak_of_numbers_that_are_others_as_doubles(
    schema: str, text: str
) -> None:
    assert second_verdict(schema, text.encode(), None, False) == (None, "")
    assert violated_constraint(schema, text.encode(), None, False) == ""


def test_the_judge_tells_what_the_second_validator_says_with_the_keyword() -> None:
    least = schema({"minLength": 2, "format": "date"})
    with Judge() as judge:
        assert judge.second(least, b'"ab"') == (True, "")
        assert judge.second(least, b'"a"') == (False, "minLength")
        assert judge.second(least, b'"ab"', assert_formats=True) == (False, "format")
        assert judge.second(least, b"1e999") == (None, "") and "no answer" in judge.reason
        judge.deadline = 0.0
        long = b"[" + b"0," * 500_000 + b"0]"  # so that no answer is there before it is waited for
        assert judge.second(least, long) == (None, "") and "out of time" in judge.reason


@pytest.mark.parametrize(
    "name",
    ["lu", "IsGreek", "Greek", "InGreek", "L=", "gc=lu", "Script=greek", "sc=", "letter", "Block=Greek"],
)
def test_a_property_that_ecma_262_does_not_know_makes_no_pattern(name: str) -> None:
    assert not is_pattern(rf"^\p{{{name}}}$") and not is_pattern(rf"[\P{{{name}}}a]")
    with pytest.raises(NoOracle):
        ecma_tree(rf"\p{{{name}}}")
    assert check_schema(json.dumps({"pattern": rf"\p{{{name}}}"})) is not None


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("Lu", "A", "a"), ("gc=Uppercase_Letter", "A", "a"), ("Script=Greek", "α", "a"), ("scx=Grek", "α",
        "a"), ("IDC", "a", "⿰"),
        ("Alphabetic", "a", "1"), ("VS", "\ufe0f", "a"), ("punct", "!", "$"), ("ASCII", "a", "é"),
    ],
)  # fmt: skip
def test_properties_mean_what_ecma_262_says(name: str, inside: str, outside: str) -> None:
    assert finds(rf"^\p{{{name}}}$", inside) and not finds(rf"^\p{{{name}}}$", outside)


@pytest.mark.parametrize(
    ("schema", "instance", "valid"),
    [
        ({"contains": {"const": "a"}, "unevaluatedItems": False}, '["a"]', False),
        ({"contains": {"const": "a"}, "unevaluatedItems": {"const": "a"}}, '["a"]', True),
        ({"items": [True], "unevaluatedItems": False}, "[1]", True),
        ({"items": [True], "unevaluatedItems": False}, "[1, 2]", False),
        ({"items": [True], "additionalItems": True, "unevaluatedItems": False}, "[1, 2]", True),
        ({"items": True, "unevaluatedItems": False}, "[1, 2]", True),
        ({"allOf": [{"items": [True, True]}], "unevaluatedItems": False}, "[1, 2]", True),
        ({"anyOf": [{"items": [{"const": 1}]}, True], "unevaluatedItems": False}, "[2]", False),
        ({"if": {"items": [{"const": 1}]}, "else": {"items": [True, True]}, "unevaluatedItems": False},
        "[2, 3]", True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": [True]}}, "unevaluatedItems": False}, "[2, 3]",
        False),
        ({"allOf": [{"unevaluatedItems": True}], "unevaluatedItems": False}, "[2, 3]", True),
        ({"unevaluatedItems": False}, '{"a": 1}', True),
    ],
)  # fmt: skip
def test_in_2019_09_contains_evaluates_no_item(schema: dict[str, Any], instance: str, valid: bool) -> None:
    grammar = Grammar(
        "json_schema", json.dumps({"$schema": "https://json-schema.org/draft/2019-09/schema", **schema})
    )
    assert is_valid(grammar, instance.encode()) is valid


def test_in_2020_12_contains_evaluates_the_items_that_it_finds() -> None:
    assert is_valid(
        Grammar("json_schema", '{"contains": {"const": "a"}, "unevaluatedItems": false}'), b'["a"]'
    )


# ------------------------------------------------------------------------------------- what no matcher does


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(a|b\1){2}$",
        r"^(a\1|b)+$",
        r"^(?<x>a|b\k<x>)+$",
        r"^(?:(a)|b)*\1$",
        r"^(?:(a)|b\1)*$",
        r"^(?:(?<n>a)?b\k<n>;){1,}$",
        r"((?:x(a)|[(b]){2})\2",
    ],
)
def test_a_reference_into_a_group_that_repeats_has_no_verdict(pattern: str) -> None:
    """By ECMA-262 a repetition of a group forgets what the one before it captured, so that `^(?:(a)|b)*\\1$`
    matches `ab`. `regex` and jsonschema-rs both keep the capture, and agree on the wrong verdict."""
    assert is_pattern(pattern)
    with pytest.raises(Unjudgeable, match="refers back into a group that repeats"):
        is_valid(Grammar("json_schema", json.dumps({"pattern": pattern})), b'"ab"')


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        (r"^(a|b)*\1$", "abb", True),  # what repeats is the capture itself, which each repetition makes anew
        (r"^(?:(a)|b)?\1$", "aa", True),
        (r"^(?:(a)b){0,1}\1$", "aba", True),
        (r"^(a)(?:b(c))*\1$", "abca", True),
        (r"^(a\1)b*$", "abb", True),
        (r"^(?:a(?:b|c))*(d\1)$", "abacd", True),
        (r"^(?<$a>x)\k<$a>$", "xx", True),
        (r"^(?<é>x)\k<é>$", "xy", False),
    ],
)
def test_other_references_and_names_of_groups_are_read(pattern: str, text: str, is_found: bool) -> None:
    assert finds(pattern, text) is is_found


def test_a_panic_of_the_second_validator_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """What pyo3 makes of a panic."""

    def panics(*_: object) -> None:
        raise PanicException("a named target lives in its resolver's resource")

    monkeypatch.setattr(second, "_found_first", panics)
    assert second_verdict("{}", b"1", None, False) == (None, "")
    assert violated_constraint("{}", b"1", None, False) == ""


LATER_ITEMS = {"items": [True], "additionalItems": {"type": "integer"}}


@pytest.mark.parametrize(
    ("value", "text", "draft", "valid"),
    [
        (LATER_ITEMS, '["a", 1]', "draft7", True),
        (LATER_ITEMS, '["a", "b"]', "draft7", False),
        (LATER_ITEMS, '{"a": "b"}', "draft7", True),
        ({"items": {"type": "string"}, "additionalItems": False}, '["a", "b"]', "draft7", True),
        ({"additionalItems": False}, "[1]", "draft7", True),
        ({"additionalItems": True, "unevaluatedItems": False}, "[1]", "draft2019-09", False),
        ({"patternProperties": {"a": False}}, '["a"]', "draft7", True),
        ({"patternProperties": {"a": False}}, '"a"', "draft7", True),
        ({"additionalProperties": False}, '["a"]', "draft7", True),
        ({"dependencies": {"a": ["b"]}}, '["a"]', "draft2020-12", True),
        ({"allOf": [{"additionalProperties": True}], "unevaluatedProperties": False}, '{"a": 1}', None, True),
        ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, '{"b": 1}', None, False),
    ],
)
def test_keywords_of_ours_say_nothing_of_what_they_are_not_about(
    value: Any, text: str, draft: str | None, valid: bool
) -> None:
    assert verdict(value, text, draft=draft) is valid


def test_a_punycode_host_name_is_not_judged() -> None:
    with pytest.raises(Unjudgeable, match="punycode"):
        verdict({"format": "hostname"}, '"XN--nxasmq6b"', assert_formats=True)
    assert verdict({"format": "hostname"}, '"xn-nxasmq6b"', assert_formats=True)


DRAFT_4 = {"$schema": DRAFT_URIS["draft4"], "minimum": 1, "exclusiveMinimum": True}


@pytest.mark.parametrize(
    ("value", "text", "draft", "said"),
    [
        (DRAFT_4, "2", None, (True, "")),
        (DRAFT_4, "1", "draft7", (False, "exclusiveMinimum")),
        ({"$schema": "https://example.com/none", "minimum": 2}, "1", None, (False, "minimum")),
        ({"$schema": "https://example.com/none", "minimum": 2}, "2", None, (True, "")),
        ({"items": [{"type": "integer"}]}, '["a"]', "draft7", (False, "type")),
        ({"items": [{"type": "integer"}]}, '["a"]', None, (None, "")),
        ({"type": "integer"}, "1", "draft3", (None, "")),
        (True, "1", None, (True, "")),
        (False, "1", None, (False, "falseSchema")),
        ({}, "NaN", None, (False, "no_json")),
    ],
)
def test_the_second_validator_reads_a_schema_by_the_same_draft(
    value: Any, text: str, draft: str | None, said: tuple[bool | None, str]
) -> None:
    assert second_verdict(json.dumps(value), text.encode(), draft, False) == said


@pytest.mark.parametrize(
    ("text", "why"),
    [("[1", "are not JSON"), ("[1]", "not an array"), ('"a"', "not an array")],
)
def test_choices_that_are_none_are_not_judged(text: str, why: str) -> None:
    with pytest.raises(Unjudgeable, match=why):
        is_valid(Grammar("choice", text), b"a")


def test_what_is_no_utf8_is_no_text_of_a_pattern_without_automaton() -> None:
    pattern = Grammar("regex", r"(a|b)\1.*")
    assert is_valid(pattern, "aaé".encode()) and not is_valid(pattern, b"ab")
    assert not is_valid(pattern, b"aa\xff")
