"""Grammars of every dialect, changed in thousands of ways, from a suite through the plan, the judge and the
reference automaton.

Each may be taken or refused in one line. None may raise anything else, and none may take longer than its
deadline, whatever a regular expression or a schema asks for: a case comes from anybody.
"""

from __future__ import annotations

import json
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzzing import STRINGS, mutated_value, spelled

from harness.backend.grammar import Grammar
from harness.backend.registry import parse_specs
from harness.cases import plan, prepared
from harness.cases.case_line import case_from_line
from harness.cases.suite import find_suite
from harness.cli import main as cli
from harness.errors import BadInput
from harness.oracle.automaton import NoOracle
from harness.oracle.judge import Judge
from harness.oracle.language import language_of

JUDGE_SECONDS = 1.0
MOST_SECONDS = 10.0
"""Far above what an automaton of these small grammars needs on a loaded machine, and its own bounds allow."""

TEXTS = {
    "regex": (
        "a{2,3}[b-d]\\d",
        "(?:a|b)*?c+|^d$",
        "\\p{Lu}[^\\s\\u00e9-z]{0,5}",
        "(?i:x)(?=y)y",
        "(?P<n>a)(?P=n)",
        "[[:alpha:]&&[^b]]",
    ),
    "ebnf": (
        'root ::= "a" b?\nb ::= [x-z]{1,3} | "é"',
        'root ::= item ("," item)*\nitem ::= "(" root ")" | [0-9]+',
        'root ::= a | b\na ::= "x" a "y" | ""\nb ::= [^\\x00-\\x1f"]* # b',
    ),
}
"""Good ones; of the dialects that are text."""

TOKENS = (
    *"()[]{}|*+?^$.-\\/#\"',é",
    *("::=", "(?=", "(?!", "(?<=", "(?P<n>", "(?P=n)", "(?1)", "(?R)", "(?i)", r"\1", r"\b", r"\p{Lu}",
    r"\P{Any}", r"\x", r"\u{110000}"),
    *("{1000}", "{0,4294967296}", "{2,1}", "{,}", "(a+)+$", "(a|a)*", "(a*)*b", "[^", "[z-a]", "[]", "[^]",
    "&&[^a]", "((a{9}){9}){9}"),
    *("\n", "\x00", "\ud800", "\U0010ffff", "(" * 500, "[" * 500, "(?:" * 300, "a{50}" * 30, "x" * 3000,
    "root ::= root", "()|()"),
)  # fmt: skip

SCHEMAS: tuple[Any, ...] = (
    {
        "type": "object",
        "properties": {"a": {"enum": [1, "b"]}},
        "required": ["a"],
        "$defs": {"x": {"pattern": "^(a+)+$"}},
    },
    {
        "$ref": "#/$defs/x",
        "$defs": {"x": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/x"}}, {"multipleOf": 0.01}]}},
    },
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"const": "é"}],
        "additionalItems": False,
        "minItems": 1,
    },
    {
        "allOf": [{"not": {"format": "date-time"}}, {"if": {"minLength": 2}, "then": {"maxLength": 9}}],
        "unevaluatedProperties": False,
    },
    {
        "patternProperties": {"^(a|a)*$": {"dependentSchemas": {"b": {"contains": {"minimum": 1e300}}}}},
        "uniqueItems": True,
    },
)
TAGS: tuple[Any, ...] = (
    {"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": {"type": "null"}, "end": "</f>"}]},
    {
        "type": "structural_tag",
        "format": {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"},
    },
)
CHOICES: tuple[Any, ...] = (["a", "ab", "é"], ["", "x" * 300])
TESTS: tuple[Any, ...] = (
    {"text": "a" * 40 + "!"}, {"data": {"a": 1}, "valid": True}, {"text": "aab1", "valid": True},
    {"bytes": "c080", "valid": False},
    {"text": ""}, {"text": "[" * 3_000}, {"data": [[["é"]], 1e300, "2020-02-30T25:61:00Z"], "valid": False},
)  # fmt: skip


def changed_text(random: Random, text: str) -> str:
    """The text with one to three pieces put in, taken out, doubled or replaced."""
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(text) + 1)
        to = min(len(text), at + random.choice((1, 1, 3, 10)))
        new = random.choice(
            (random.choice(TOKENS), random.choice(TOKENS), random.choice(STRINGS), text[at:to] * 2, "")
        )
        text = text[:at] + new + text[random.choice((at, to)) :]
    return text


def changed_case(number: int) -> dict[str, Any]:
    """Case `number`: a grammar of one of the five dialects, changed, with two instances that have nothing to
    do with it."""
    random = Random(f"grammar {number}")
    kind = random.choice(("regex", "regex", "ebnf", "ebnf", "schema", "schema", "structural_tag", "choice"))
    if kind in TEXTS:
        grammar: Any = changed_text(random, random.choice(TEXTS[kind]))
    else:
        grammar = mutated_value(
            random, random.choice({"schema": SCHEMAS, "structural_tag": TAGS, "choice": CHOICES}[kind])
        )
        if random.random() < 0.3 and kind == "schema" and isinstance(grammar, dict):
            grammar["pattern"] = changed_text(random, random.choice(TEXTS["regex"]))
    return {"description": f"{number}", kind: grammar, "tests": random.sample(TESTS, 2)}


class TooSlow(BaseException):
    """No `Exception`, which the code under test may take for the grammar's."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    def ring(signum: int, frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class SharedJudge(Judge):
    """One process for all plans; each would start its own."""

    def __exit__(self, *_: object) -> None:
        pass


def walk_through(path: Path, judge: Judge) -> None:
    """The plan of a suite, every verdict that can be asked for, and the automaton of its grammar, with its
    instances."""
    written = path.with_name("cases.plan")
    plan.write_plan([find_suite(str(path))], plan.PROFILES["gate"], 0, written, unicode=["15.0.0"])
    for _, _, case in map(case_from_line, written.read_bytes().splitlines(keepends=True)):
        for instance in case.instances:
            judge.verdict(case.grammar, instance.content, draft=case.options.get("draft"))
            judge.membership(case.grammar, instance.content)
        with deadline(MOST_SECONDS):
            run_automaton(case.grammar, [each.content for each in case.instances])


def run_automaton(grammar: Grammar, contents: list[bytes]) -> None:
    """What a walk's checks do with it; a grammar that has none, or too large a one, says so."""
    try:
        language = language_of(grammar)
        for content in contents:
            assert language.viable(content) <= len(content)
            language.accepts(content)
        language.forced(language.start)
    except NoOracle as why:
        assert str(why)


def tried(numbers: range, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What went wrong, by case."""
    found = []
    with Judge(JUDGE_SECONDS) as judge:
        shared = SharedJudge(JUDGE_SECONDS)
        monkeypatch.setattr(prepared, "Judge", lambda seconds: shared)
        for number in numbers:
            path = folder / "mine.jsonl"
            began = time.monotonic()
            try:
                path.write_bytes(spelled(changed_case(number)) + b"\n")
                walk_through(path, judge)
            except BadInput as error:
                if not str(error) or len(str(error)) > 3_000:
                    found.append(f"case {number}: a message of {len(str(error)):,} characters")
            except (Exception, TooSlow) as error:
                found.append(
                    f"case {number}: {''.join(traceback.format_tb(error.__traceback__)[-4:])}{error!r}"[
                        :3_000
                    ]
                )
            if (seconds := time.monotonic() - began) > 3 * MOST_SECONDS:
                found.append(f"case {number}: it took {seconds:.0f} s")
        shared.close()
    return found


def test_a_changed_grammar_is_judged_or_refused_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tried(range(25), tmp_path, monkeypatch)
    assert not found, "\n\n".join(found[:5])


@pytest.mark.long
def test_many_more_changed_grammars_are_judged_or_refused_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tried(range(25, 1_500), tmp_path, monkeypatch)
    assert not found, "\n\n".join(found[:5])


def test_a_regex_that_never_ends_costs_the_judge_its_deadline() -> None:
    """A schema's pattern too: Python's engine tries 2**40 ways; the automaton knows at once."""
    text = "a" * 40 + "!"
    with Judge(JUDGE_SECONDS) as judge:
        for grammar, content in (
            (Grammar("regex", r"(a|aa)+(?<=b)"), text),
            (
                Grammar("json_schema", json.dumps({"pattern": r"^(([a-z])+.)+[A-Z]([a-z])+$"})),
                json.dumps(text),
            ),
        ):
            began = time.monotonic()
            judge.verdict(grammar, content.encode())
            assert time.monotonic() - began < MOST_SECONDS
        assert judge.verdict(Grammar("choice", '["a"]'), b"a") is True, "it answers the next question"
    with deadline(MOST_SECONDS):
        assert not language_of(Grammar("regex", r"(a|a)*b")).accepts(text.encode())


SPECS = (
    "xgrammar==0.1.25:threads=2",
    "llguidance,xgrammar",
    "reference:strict=true:x=1",
    "tests.miniatures.mine:Adapter",
    "a==1.0+cpu",
)
OPTIONS = (
    "--shard",
    "--seed",
    "--effort",
    "--jobs",
    "--timeout",
    "--profile",
    "--vocabularies",
    "--memory",
    "--suites",
)
VALUES = ("1/2", "3", "all", "1e9", "quick", "probe,tekken", "hf:x", "tiktoken:y", "adversarial")


def test_a_changed_text_of_backends_is_read_or_refused_in_one_line() -> None:
    for number in range(400):
        random = Random(f"spec {number}")
        text = changed_text(random, random.choice(SPECS))
        try:
            specs = parse_specs(text)
        except BadInput as error:
            assert str(error), number
        else:
            assert all(str(each) for each in specs), number


def test_a_changed_option_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The backend is none, so that nothing runs whatever the option comes to."""
    for number in range(200):
        random = Random(f"option {number}")
        value = changed_text(random, random.choice(VALUES))
        words = ["run", "--backends", "nobody", f"{random.choice(OPTIONS)}={value}"]
        try:
            code: object = cli.main(words)
        except SystemExit as error:
            code = error.code
        said = capsys.readouterr().err
        assert code == 2 and "Traceback" not in said and said.strip(), (number, words, said)
