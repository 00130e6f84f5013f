"""What `advise` says of an engine: what it makes of tools, which fields of requests it does not read, and
that an answer without the engine's own classes is not sure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.backend.describe import catalogue
from harness.cases.suite import find_suite
from harness.diagnose.advise import advice as advice_module
from harness.diagnose.advise.asked import Asked, asked_of
from harness.diagnose.advise.engines import EngineFacts, Offer, engines, facts_of, offer_of
from harness.diagnose.advise.notes import on_requests, stand_ins, untried
from harness.diagnose.advise.stored import stored_advice
from harness.errors import BadInput
from harness.outcomes.answer import read_answer
from harness.report.advice import advice_json, advice_text
from harness.report.run_summary import read_summary
from harness.text import Console

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
TOOL = {"name": "count", "input_schema": {**SCHEMA, "title": "a tool"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
REQUESTS: list[dict[str, Any]] = [
    {"messages": [], "tools": [TOOL]},
    {"messages": [], "guided_json": {**SCHEMA, "title": "old"}},
    {"messages": [], "structured_outputs": {"regex": "[0-9]+"}},
    {"messages": [], "response_format": FORMAT},
]


def asked(folder: Path, *values: object) -> Asked:
    """What is asked for by these lines of a file."""
    (folder / "log.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    return asked_of([find_suite(str(folder / "log.jsonl")), find_suite("regex")])


def test_tools_and_fields_of_requests_are_told_apart(tmp_path: Path) -> None:
    found = asked(tmp_path, *REQUESTS, {"schema": SCHEMA, "description": "a case of ours"})
    assert (found.tools, found.others) == (1, 4)
    assert set(found.fields) == {"guided_json", "structured_outputs.regex", "response_format"}
    assert set(found.names_at(("guided_",))) == {"guided_json"}


def test_a_schema_that_stands_in_two_fields_is_told_of_both(tmp_path: Path) -> None:
    """What many requests ask for is one case, but an engine may read only one of the fields."""
    old: dict[str, Any] = {"messages": [], "guided_json": SCHEMA}
    found = asked(tmp_path, {"messages": [], "structured_outputs": {"json": SCHEMA}}, old, old)
    assert found.others == 1
    assert found.fields == {"structured_outputs.json": ["log.jsonl:1"], "guided_json": ["log.jsonl:2"]}


def entry(name: str, engines: dict[str, dict[str, str]], **facts: object) -> dict[str, Any]:
    """An entry of the catalogue, of an adapter whose library is installed."""
    return {
        "name": name,
        "distribution": name,
        "version": "1",
        "problem": "",
        "engines": engines,
        "engine_facts": {"e": facts} if facts else {},
    }


WRAPPERS = {"e": {"wrapper=a": "--set a", "wrapper=b": "--set b"}}
ENTRIES = [
    entry("a", {"e": {"x=1": "--set a"}}),
    entry("b", {"e": {"": "--set b"}}),
    entry("e", WRAPPERS, release="e 1", tool_backends={"a": "y=2"}),
]


def test_a_backend_that_takes_no_tool_calls_is_not_offered_for_them() -> None:
    """An option with which the calls fail is no advice, though the library is right on their schemas."""
    offer = offer_of("e", ENTRIES, for_tools=True)
    assert offer.arms == {"a:y=2": "--set a"} and offer.is_for_tools and not offer.are_wrappers
    assert list(offer_of("e", ENTRIES).arms) == ["e:wrapper=a", "e:wrapper=b"]
    plain = [*ENTRIES[:2], entry("e", {}, release="e 1")]
    assert offer_of("e", plain, for_tools=True) == offer_of("e", plain), "all of its backends take them"
    with pytest.raises(BadInput, match="no backend of e that takes its tool calls is installed"):
        offer_of("e", [{**ENTRIES[0], "version": ""}, *ENTRIES[1:]], for_tools=True)
    with pytest.raises(BadInput, match="e: engine_facts of e"):
        offer_of("e", [entry("e", {"e": {"": ""}}, relese="e 1")])


def test_what_the_engine_makes_of_tools_and_what_it_does_not_read_is_told(tmp_path: Path) -> None:
    facts = EngineFacts(
        "e 1", {"a": ""}, "Tools become tags.", "Of schemas.", ("guided_",), "`response_format`"
    )
    offer = Offer({"a": ""}, False, (), True, facts, is_for_tools=True)
    said = list(on_requests("e", offer, asked(tmp_path, *REQUESTS)))
    assert said[0] == "Tools become tags."
    assert said[1].startswith("3 of the cases are no tools: ask about these alone too")
    assert said[2:] == [
        "e 1 does not read `guided_json`, so that nothing constrains the answer there (log.jsonl:2). "
        "Write `response_format`."
    ]
    (_, only) = on_requests("e", offer, asked(tmp_path, REQUESTS[0], REQUESTS[3]))
    assert only.startswith("1 of the cases is no tool: ask about it alone too, because e has further")
    assert list(on_requests("e", offer, asked(tmp_path, REQUESTS[3]))) == []
    two = asked(tmp_path, *REQUESTS[1:3], {"messages": [], "guided_choice": ["a", "b"]})
    (said_once,) = on_requests("e", replace(offer, is_for_tools=False), two)
    assert said_once.startswith("e 1 does not read `guided_json` and `guided_choice`, so that nothing")
    assert list(on_requests("", None, asked(tmp_path, *REQUESTS))) == []
    another = "e does not hand the tool calls of most models to b as it was tried here."
    assert list(stand_ins("e", offer, ["a", "b"], False))[1:] == [another]
    assert "Of schemas." in stand_ins("e", offer, ["a"], True)
    assert "Of schemas." not in stand_ins("e", offer, ["a"], False)


def test_what_was_not_tried_of_an_engine_is_why_the_answer_is_not_sure() -> None:
    assert untried("", None) == untried("e", Offer({}, True, ())) == ""
    assert untried("e", Offer({}, False, ())) == "e's own classes were not tried"
    assert untried("e", Offer({}, False, (), has_wrappers=False)) == "e itself was not tried"


def test_the_facts_of_our_adapters_can_be_read() -> None:
    for module in ("torch", "xgrammar", "llguidance"):
        pytest.importorskip(module)
    entries = catalogue()
    vllm, sglang = facts_of("vllm", entries), facts_of("sglang", entries)
    assert set(engines(entries)) >= {"vllm", "sglang"}
    assert list(offer_of("vllm", entries, for_tools=True).arms) == ["xgrammar:open_objects=false"]
    assert not offer_of("sglang", entries, for_tools=True).is_for_tools
    assert "guided_json".startswith(vllm.unread) and not "structured_outputs.json".startswith(vllm.unread)
    assert "structured_outputs.json".startswith(sglang.unread) and not "regex".startswith(sglang.unread)
    for facts in (vllm, sglang):
        assert facts.of_tools and facts.release in facts.of_tools
        assert not "response_format".startswith(facts.unread)


def test_schemas_go_through_another_converter_than_llama_cpps_server_has() -> None:
    pytest.importorskip("llama_cpp")
    entries = catalogue()
    offer = offer_of("llama.cpp", entries)
    said = list(stand_ins("llama.cpp", offer, list(offer.arms), True))
    assert "llama.cpp's server has another" in said[1] and len(said) == 2


def test_an_answer_about_an_engine_is_sure_with_its_own_classes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llguidance")
    entries = [one for one in catalogue() if one["distribution"] not in ("vllm", "sglang")]
    own = {**entry("w", {"sglang": {"": ""}}), "distribution": "sglang", "version": ""}
    monkeypatch.setattr(advice_module, "catalogue", lambda: [*entries, own])
    schema, run = tmp_path / "schema.json", tmp_path / "run"
    schema.write_text(json.dumps(SCHEMA))
    advice = harness.advise(schema, engine="sglang", backends=["llguidance"], tokenizer="bytes", out=run)
    why = "The answer is not surer, because sglang's own classes were not tried."
    assert read_answer(advice.folder).sure == "high", "of the library alone"
    assert (advice.answer.sure, advice.answer.doubts) == ("fair", (why,))
    stored = stored_advice(advice.folder)
    assert stored is not None and stored.untried == untried("sglang", advice.offer)
    screen = " ".join(advice_text(advice, "a page", Console()).split())
    assert "How sure: fair." in screen and why in screen
    assert why in advice_json(advice, tmp_path)["certainty"]
    shown = read_summary(advice.folder).answer
    assert shown is not None and shown.doubts == (why,), "whoever shows the run says the same"
