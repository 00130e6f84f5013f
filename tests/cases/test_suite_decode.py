"""The suite of the decode loop's workloads: that it has cases of each, and that the two extremes are what
they say."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from harness.backend.grammar import Adapter
from harness.backend.registry import load
from harness.backend.vocabulary.load import load_vocabulary
from harness.cases.case import Case, json_text
from harness.cases.suite import find_suite, read_cases, walked_by_default
from harness.measure.session import SUITES
from harness.oracle.forced_text.compressed_fsm import JumpMap
from harness.oracle.language import language_of
from harness.serve.decode.workloads import WORKLOADS
from harness.walk.loop.template import template_of

CASES = list(read_cases(find_suite("decode")))
AUTOMATA = [case for case in CASES if case.grammar.dialect != "json_schema"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_begins_with_a_valid_text(case: Case) -> None:
    assert case.instances[0].valid


def test_json_is_written_in_the_style_that_every_backend_takes() -> None:
    texts = [
        each.content.decode()
        for case in CASES
        if case.grammar.dialect == "json_schema"
        for each in case.instances
        if each.valid
    ]
    assert len(texts) >= 25 and texts == [json_text(json.loads(text)) for text in texts]


def test_every_case_is_of_one_workload_and_every_workload_has_cases() -> None:
    counts = Counter(tag for case in CASES for tag in case.tags)
    assert set(counts) == set(WORKLOADS) and min(counts.values()) >= 3
    assert all(len(case.tags) == 1 for case in CASES)
    assert len({case.name for case in CASES}) == len({case.id for case in CASES}) == len(CASES) >= 32


def test_nobody_walks_it_unasked() -> None:
    assert (
        "decode" not in walked_by_default() and "decode" not in SUITES["full"] and "speed" in SUITES["full"]
    )


def test_texts_are_as_long_as_answers_are() -> None:
    vocabulary = load_vocabulary("tekken")
    lengths = {
        case.name: [len(vocabulary.encode(each.content)) for each in case.instances if each.valid]
        for case in CASES
    }
    long = [count for case in CASES if "long_arrays" in case.tags for count in lengths[case.name]]
    others = sorted(count for case in CASES if "long_arrays" not in case.tags for count in lengths[case.name])
    assert min(long) >= 80 and sum(count >= 200 for count in long) >= 3
    assert others[0] >= 15 and others[-1] <= 120 and 30 <= others[len(others) // 2] <= 60


@pytest.mark.parametrize(
    "case", [case for case in AUTOMATA if case.tags[0].endswith("_forced")], ids=lambda case: case.name
)
def test_the_extremes_of_the_grammars_are_extreme(case: Case) -> None:
    language = language_of(case.grammar)
    jumps, state, forced = JumpMap(language), language.start, 0
    for byte in case.instances[0].content:
        forced += bool(jumps.byte_edge(state))
        state = language.step(state, byte)
    assert forced == (len(case.instances[0].content) if case.tags == ("all_forced",) else 0)


def test_the_extreme_of_the_schemas_leaves_only_blanks_open() -> None:
    templates = [
        template_of(case.grammar)
        for case in CASES
        if case.tags == ("all_forced",) and case.grammar.dialect == "json_schema"
    ]
    assert len(templates) == 2
    assert all(template is not None and not template.slots for template in templates)


@pytest.mark.parametrize("backend", ["llguidance", "xgrammar"])
def test_the_backends_that_read_ebnf_solve_a_case_of_each_workload(backend: str) -> None:
    adapter = load(backend)(load_vocabulary("probe"))
    for workload in WORKLOADS:
        case = next(case for case in CASES if case.tags == (workload,))
        assert [verdict(adapter, case, each.content) for each in case.instances] == [
            each.valid for each in case.instances
        ], case.name


def verdict(adapter: Adapter, case: Case, content: bytes) -> bool:
    """Does the backend take the text and then end?"""
    grammar_object = adapter.compile(case.grammar).start()
    ids = adapter.vocabulary.encode(content)
    return grammar_object.accept_tokens(ids) == len(ids) and grammar_object.is_accepting()
