"""The suite of tool calls, whose outputs were written from the chat templates of each family: against the
automaton where there is one, and what it promises."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tool_suite
from places import ROOT

from harness.backend.grammar import Grammar
from harness.backend.tag_formats import read_tag
from harness.backend.tag_formats.forms import JsonSchema, SeparatedTags, formats_in
from harness.oracle.automaton import NoOracle
from harness.oracle.language import outputs_of

SUITE = ROOT / "suites" / "tools.jsonl"
HEADER, *CASES = [json.loads(line) for line in SUITE.read_text(encoding="utf-8").split("\n") if line]
FAMILIES = {family.name: family for family in tool_suite.FAMILIES}
BUILT_IN = {
    *(
        "llama",
        "kimi",
        "kimi_k3",
        "deepseek_r1",
        "deepseek_v3_1",
        "qwen_3_5",
        "qwen_3_coder",
        "mimo",
        "qwen_3",
    ),
    *(
        "harmony",
        "deepseek_v3_2",
        "minimax",
        "minimax_m3",
        "glm_4_7",
        "gemma_4",
        "deepseek_v4",
        "deepseek_v4_1",
    ),
    *("cohere", "exaone"),
}
"""The families for which xgrammar 0.2.9 has a tag. The calls of qwen_3_5 are those of qwen_3_coder."""


def names(case: dict[str, Any]) -> str:
    return str(case["description"])


def about(case: dict[str, Any]) -> dict[str, str]:
    return dict(tag.split(":") for tag in case["tags"])


@pytest.mark.parametrize("case", CASES, ids=names)
def test_the_automaton_says_what_was_written(case: dict[str, Any]) -> None:
    format = read_tag(case["structural_tag"])
    styles = {each.style for each in formats_in(format) if isinstance(each, JsonSchema)}
    grammar = Grammar("structural_tag", json.dumps(case["structural_tag"]))
    if styles & {"cohere_xml", "minimax_m3_xml"}:
        with pytest.raises(NoOracle, match="in the style"):
            outputs_of(grammar)
        return
    automaton = outputs_of(grammar)
    written = {test["text"]: test["valid"] for test in case["tests"]}
    assert {text: automaton.accepts(text.encode()) for text in written} == written


def test_every_family_has_every_choice() -> None:
    seen = {(about(case)["family"], about(case)["choice"], about(case)["tools"]) for case in CASES}
    assert len(seen) == len(CASES)
    wanted = {
        (family, choice, n)
        for family in FAMILIES
        for choice in ("auto", "required", "named")
        for n in ["1", "10"]
    } | {(family, "auto", "100") for family in FAMILIES}
    assert wanted <= seen and {"1", "10", "100", "500"} == {tools for _, _, tools in seen}
    assert BUILT_IN - {"qwen_3_5"} <= FAMILIES.keys()


def test_the_file_is_what_its_writer_writes() -> None:
    assert SUITE.read_text(encoding="utf-8") == tool_suite.suite(), "run python tests/support/tool_suite.py"


def test_calls_are_one_and_several_and_none() -> None:
    for case in CASES:
        texts = {test["text"]: test["valid"] for test in case["tests"]}
        no_call = tool_suite.written(FAMILIES[about(case)["family"]])
        assert texts[no_call] is (about(case)["choice"] == "auto")
        assert sum(texts.values()) >= 2 and len(texts) - sum(texts.values()) >= 5


def test_as_many_tools_stand_in_a_case_as_it_says() -> None:
    for case in CASES:
        format = read_tag(case["structural_tag"])
        (tags,) = [each.tags for each in formats_in(format) if isinstance(each, SeparatedTags)]
        assert len(tags) == (1 if about(case)["choice"] == "named" else int(about(case)["tools"]))


def test_the_file_has_the_form_of_a_suite() -> None:
    assert HEADER.keys() == {"suite", "version", "default", "description"} and HEADER["suite"] == "tools"
    for case in CASES:
        assert case.keys() == {"description", "structural_tag", "tests", "tags", "notes"}
        assert len({test["description"] for test in case["tests"]}) == len(case["tests"])
