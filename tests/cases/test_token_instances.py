"""Outputs that a case says by their tokens: stored, walked by their ids, and seen to be other outputs than
their text in other tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance
from harness.cases.case_json import cases_of_line
from harness.cases.case_line import case_from_line, case_to_line
from harness.rows.row import Verdict, verdict
from harness.running.worker import _walk_instance
from harness.walk.watched import unwatched

PROBE = load_vocabulary("probe")
TOKEN = {"type": "structural_tag", "format": {"type": "token", "token": "in"}}
TEXT = {"type": "structural_tag", "format": {"type": "const_string", "value": "in"}}
TESTS = [
    {"tokens": ["in"], "valid": True},
    {"tokens": ["i", "n"], "valid": False},
    {"text": "in", "valid": True},
]


def case_of(tests: list[dict[str, Any]]) -> Case:
    (case,) = cases_of_line({"structural_tag": TOKEN, "tests": tests}, "here", "here", None, {})
    return case


def test_tokens_are_stored_and_read_again() -> None:
    case = case_of([*TESTS, {"tokens": [5, "a"], "valid": True}])
    assert case_from_line(case_to_line("suite", "1", case)) == ("suite", "1", case)
    assert [instance.content for instance in case.instances] == [b"in", b"in", b"in", b"<[5]>a"]
    assert case.instances[3].ids(PROBE) == [5, PROBE.ids_by_bytes[b"a"]]


def test_a_token_that_a_vocabulary_lacks_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="has no token 'in'"):
        Instance("", b"in", True, tokens=("in",)).ids(byte_vocabulary())


def verdicts(form: dict[str, Any]) -> list[Verdict]:
    """Returns what becomes of the outputs with a backend that takes the case for this form."""
    spec = parse_spec("reference")
    adapter = make(spec, PROBE)
    compiled = adapter.compile(Grammar("structural_tag", json.dumps(form)))
    said = []
    for instance in case_of(TESTS).instances:
        seen = _walk_instance(compiled, adapter, instance, unwatched(), 1e12, 1.0)
        said.append(verdict(seen.status, instance.valid, seen.accepted))
    return said


def test_a_backend_that_reads_a_token_by_its_text_is_seen_by_its_tokens_only() -> None:
    assert verdicts(TOKEN) == ["pass", "pass", "pass"]
    assert verdicts(TEXT) == ["pass", "under_constrained", "pass"]


def test_an_end_of_the_output_as_the_last_token_is_the_end_that_the_walk_sends() -> None:
    spec = parse_spec("reference")
    adapter = make(spec, PROBE)
    compiled = adapter.compile(Grammar("structural_tag", json.dumps(TOKEN)))
    tests = [{"tokens": ["in", "</s>"], "valid": True}, {"tokens": ["i", "n", "</s>"], "valid": False}]
    for instance in case_of(tests).instances:
        assert instance.ids(PROBE) == Instance("", b"", None, tokens=instance.tokens[:-1]).ids(PROBE)
        seen = _walk_instance(compiled, adapter, instance, unwatched(), 1e12, 1.0)
        assert verdict(seen.status, instance.valid, seen.accepted) == "pass"


def test_an_end_of_the_output_before_other_tokens_skips_the_output() -> None:
    spec = parse_spec("reference")
    adapter = make(spec, PROBE)
    compiled = adapter.compile(Grammar("structural_tag", json.dumps(TOKEN)))
    (instance,) = case_of([{"tokens": ["in", "</s>", "in"], "valid": False}]).instances
    seen = _walk_instance(compiled, adapter, instance, unwatched(), 1e12, 1.0)
    assert seen.status == "skipped"
    assert "token 2 of the output (</s>) ends it" in seen.text
