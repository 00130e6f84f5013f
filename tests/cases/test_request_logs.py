"""Logs of requests to model servers are suites: what many ask for comes once, and what asks for nothing is
left out and named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from request_bodies import CITY, FORM, UNNAMED, WEATHER, read

from harness.cases.plan import PROFILES, write_plan
from harness.cases.suite import Passed, find_suite, read_cases
from harness.cli.main import main
from harness.errors import BadInput

FREE: dict[str, dict[str, Any]] = {
    "OpenAI's": {"model": "m", "messages": [], "tools": [], "response_format": {"type": "text"}},
    "OpenAI's responses": {"model": "m", "input": "x"},
    "of completions": {"model": "m", "prompt": "x"},
    "Gemini's": {"contents": []},
    "SGLang's": {"text": "x", "sampling_params": {"max_new_tokens": 1}},
    "TGI's": {"inputs": "x", "parameters": {"max_new_tokens": 1}},
    "llama.cpp's": {"prompt": "x", "n_predict": 3},
    "of a table": {"conversations": [], "tools": "[]"},
    "with modes and templates": {"messages": [], "format": "json", "output_format": "{answer}"},
    "Ollama's": {"model": "m", "messages": [], "format": ""},
    "vLLM's, all empty": {"messages": [], "structured_outputs": {"json": None, "regex": ""}},
    "vLLM's, of any JSON": {"messages": [], "structured_outputs": {"json_object": True, "_backend": "x"}},
    "vLLM's, with switches that are off": {
        "messages": [],
        "structured_outputs": {"json": None, "disable_any_whitespace": False},
    },
    "Gemini's, of a picture": {
        "contents": [],
        "generationConfig": {"responseFormat": {"image": {"a": {"b": 1}}}},
    },
    "Gemini's, of any JSON": {
        "model": "m",
        "input": "x",
        "response_format": {"type": "text", "mime_type": "a"},
    },
    "the AI SDK's, of any JSON": {"messages": [], "responseFormat": {"type": "json"}},
    "OpenRouter's": {"messages": [], "structured_outputs": True},
    "Cohere's older": {"model": "m", "message": "x", "chat_history": []},
    "with a search alone": {"messages": [], "tools": [{"type": "web_search"}]},
}


@pytest.mark.parametrize("server", FREE)
def test_a_request_that_holds_nothing_is_left_out_and_named(server: str, tmp_path: Path) -> None:
    free = FREE[server]
    asking = {"messages": [], "response_format": FORM}
    passed = Passed()
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, (free, asking, {"body": free}))), "utf-8")
    assert [case.name for case in read_cases(find_suite(str(path)), passed)] == ["answer"]
    search = " (web_search)" if "search" in server else ""
    assert list(passed.unheld) == [f"{path}:1{search}", f"{path}:3{search}"]
    path.write_text(json.dumps(free), "utf-8")
    with pytest.raises(
        BadInput, match=r"log\.jsonl:1.* is a request without tools or a format that is read$"
    ):
        list(read_cases(find_suite(str(path))))


def test_a_folder_of_requests_leaves_out_those_that_hold_nothing(tmp_path: Path) -> None:
    bodies = {"a": FREE["OpenAI's"], "b": {"messages": [], "response_format": UNNAMED}, "c": FREE["Gemini's"]}
    for name, body in bodies.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(body), "utf-8")
    passed = Passed()
    assert [case.name for case in read_cases(find_suite(str(tmp_path)), passed)] == ["b"]
    assert list(passed.unheld) == [str(tmp_path / "a.json"), str(tmp_path / "c.json")]
    (tmp_path / "b.json").unlink()
    with pytest.raises(BadInput, match=r"a\.json is a request without .* \(and 1 more like it\)$"):
        list(read_cases(find_suite(str(tmp_path))))


def test_what_requests_repeat_is_one_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log of a server asks for the same few schemas thousands of times."""
    asking = [{"messages": [str(each)], "tools": [WEATHER], "response_format": UNNAMED} for each in range(3)]
    other = {"messages": [], "tools": [json.loads(json.dumps(WEATHER).replace("weather", "forecast"))]}
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, (*asking, other, FREE["OpenAI's"], *asking))), "utf-8")
    passed = Passed()
    names = [case.name for case in read_cases(find_suite(str(path)), passed)]
    assert (names, passed.repeated) == (["weather", "log.jsonl:1", "forecast"], 10)
    words = ["run", str(path), "--backends", "unconstrained", "--vocabularies", "bytes", "--effort", "0"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "log: 1 request left out, without tools or a format that is read: " in said
    assert "log: 10 repetitions of requests' tools and formats left out\n" in said


def test_completions_of_sglang_that_repeat_are_one_case(tmp_path: Path) -> None:
    """They have keys of our own cases, and may have a format beside them."""
    lines: list[dict[str, Any]] = [{"model": "m", "prompt": str(each), "regex": "a+"} for each in range(3)]
    lines += [{"body": lines[0]}, {"model": "m", "prompt": "x", "ebnf": None, "regex": None}]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, [*lines, lines[0] | {"response_format": FORM}])), "utf-8")
    passed = Passed()
    cases = [(case.name, case.grammar.dialect) for case in read_cases(find_suite(str(path)), passed)]
    assert cases == [("log.jsonl:1", "regex"), ("answer", "json_schema")]
    assert (passed.repeated, list(passed.unheld)) == (4, [f"{path}:5"])


def test_the_tools_of_repeated_requests_that_are_not_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    searches: list[list[dict[str, str]]] = [[], [{"type": "web_search"}], [{"type": "file_search"}]]
    path.write_text("\n".join(json.dumps({"messages": [], "tools": [WEATHER, *each]}) for each in searches))
    suite, cases = find_suite(str(path)), tmp_path / "cases.jsonl"
    (searched, repeated) = write_plan([suite], PROFILES["default"], 0, cases, bare=True).left_out
    assert searched.startswith("log: 2 tools left out, not read: ")
    assert "web_search" in searched and "file_search" in searched
    assert repeated == "log: 2 repetitions of requests' tools and formats left out"


@pytest.mark.parametrize(
    "held",
    [
        {"messages": [], "tools": [WEATHER]},
        {"tools": [WEATHER]},
        {"response_format": FORM},
        {"request": {"messages": [], "tools": [WEATHER]}},
    ],
)
def test_a_request_with_a_suite_is_no_header(held: dict[str, Any], tmp_path: Path) -> None:
    lines = [{"suite": "checkout", **held}, {"regex": "a"}, {"suite": "cart", **held}]
    assert len(read(tmp_path, "\n".join(map(json.dumps, lines)), "log.jsonl")) == 2
    assert find_suite(str(tmp_path / "log.jsonl")).name == "log"


FREE_IN_LISTS = {"custom_id": "2", "params": {"messages": []}}
LISTS: dict[str, Any] = {
    "Anthropic's batch": {"requests": [{"custom_id": "1", "params": {"messages": [], "tools": [WEATHER]}}]},
    "stored requests": {"object": "list", "data": [{"messages": [], "tools": [WEATHER]}], "has_more": False},
    "a browser's record": {
        "log": {
            "version": "1.2",
            "entries": [
                {
                    "request": {
                        "method": "POST",
                        "url": "u",
                        "postData": {
                            "mimeType": "application/json",
                            "text": json.dumps({"messages": [], "tools": [WEATHER]}),
                        },
                    },
                    "response": {"status": 200},
                }
            ],
        }
    },
}


@pytest.mark.parametrize("form", LISTS)
def test_a_list_of_requests_may_stand_under_a_key(form: str, tmp_path: Path) -> None:
    """What asks for nothing among them is named, and what is no request is refused."""
    value = json.loads(json.dumps(LISTS[form]))
    entries = value["log"]["entries"] if "log" in value else value.get("requests", value.get("data"))
    entries += [{"request": {"method": "GET", "url": "u"}}, FREE_IN_LISTS, entries[0]]
    for name in ("list.json", "list.jsonl"):
        path, passed = tmp_path / name, Passed()
        where = f"{path}:1" if name.endswith("l") else str(path)
        path.write_text(json.dumps(value), "utf-8")
        assert [case.name for case in read_cases(find_suite(str(path)), passed)] == ["weather"]
        assert list(passed.unheld) == [f"{where}: request 2", f"{where}: request 3"]
        assert passed.repeated == 1
    for other, said in (
        (5, "request 5 is a number"),
        ({"a": 1}, "request 5: neither a case nor a request is"),
    ):
        with pytest.raises(BadInput, match=said):
            read(tmp_path, json.dumps(value).replace(json.dumps(entries), json.dumps([*entries, other])))


def test_messages_of_mcp_without_tools_are_left_out_and_named(tmp_path: Path) -> None:
    tool = {"name": "weather", "inputSchema": CITY}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "weather", "arguments": {}}},
    ]
    path, passed = tmp_path / "log.jsonl", Passed()
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert [case.name for case in read_cases(find_suite(str(path)), passed)] == ["weather"]
    assert list(passed.unheld) == [f"{path}:1", f"{path}:3"]


@pytest.mark.parametrize(
    "other",
    [
        {"level": "info", "msg": "server started"},
        {"request": None},
        {"method": "POST", "url": "u", "data": {"messages": []}},
        {"method": "POST", "url": "u", "data": '{"messages": []}'},
    ],
)
def test_a_line_that_is_no_request_is_shown(other: dict[str, Any], tmp_path: Path) -> None:
    lines = "\n".join(map(json.dumps, ({"messages": [], "tools": [WEATHER]}, other)))
    with pytest.raises(BadInput) as caught:
        read(tmp_path, lines, "log.jsonl")
    shown = json.dumps(other)[:60]
    said = f"log.jsonl:2: neither a case nor a request is read here ({shown}); take it out, or give"
    assert said in str(caught.value)


def test_a_packed_log_is_refused_in_words(tmp_path: Path) -> None:
    for name in ("log.jsonl.gz", "log.jsonl"):
        (tmp_path / name).write_bytes(gzip.compress(json.dumps({"messages": []}).encode()))
        with pytest.raises(BadInput, match=r"log\.jsonl(\.gz)?: gzip is not read; unpack it$"):
            list(read_cases(find_suite(str(tmp_path / name))))
    for start, program in (
        (b"(\xb5/\xfd", "zstd"),
        (b"PK\x03\x04", "zip"),
        (b"BZh91AY&SY", "bzip2"),
        (b"\xfd7zXZ", "xz"),
    ):
        (tmp_path / "log.json").write_bytes(start + b"\xff")
        with pytest.raises(BadInput, match=rf"log\.json: {program} is not read; unpack it$"):
            list(read_cases(find_suite(str(tmp_path / "log.json"))))


def test_a_value_over_several_lines_is_told_in_a_file_of_lines(tmp_path: Path) -> None:
    for name, said in (("a.jsonl", "; each line of a .jsonl file is a whole JSON value"), ("a.json", "")):
        with pytest.raises(BadInput) as caught:
            read(tmp_path, '{\n  "type": "object",\n}\n', name)
        assert "malformed JSON: " in str(caught.value)
        assert str(caught.value).endswith(said) and ("whole" in str(caught.value)) == bool(said)


def test_a_page_of_a_log_may_have_its_requests_as_items(tmp_path: Path) -> None:
    page = {"items": [{"messages": [], "tools": [WEATHER]}, {"messages": []}], "total": 2}
    path, passed = tmp_path / "page.json", Passed()
    path.write_text(json.dumps(page), "utf-8")
    assert [case.name for case in read_cases(find_suite(str(path)), passed)] == ["weather"]
    assert list(passed.unheld) == [f"{path}: request 2"]
    for schema in (
        {"items": [CITY, {"messages": [], "tools": [WEATHER]}]},
        {"type": "array", "items": [{"messages": [], "tools": [WEATHER]}]},
        {"items": [True, {}]},
    ):
        (case,) = read(tmp_path, schema)
        assert json.loads(case.grammar.text) == schema


def test_names_do_not_say_from_where_a_suite_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards and a run that goes on may begin in other folders."""
    (tmp_path / "a").mkdir()
    lines = [{"messages": [], "response_format": UNNAMED}, {"regex": "a"}]
    (tmp_path / "a" / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    monkeypatch.chdir(tmp_path)
    names = [[case.name for case in read_cases(find_suite(path))] for path in ("a/log.jsonl", "a", ".")]
    assert names == [["log.jsonl:1", "log.jsonl:2"]] * 2 + [["a/log.jsonl:1", "a/log.jsonl:2"]]


def test_cases_of_our_own_that_repeat_stay(tmp_path: Path) -> None:
    assert len(read(tmp_path, '{"schema": {}}\n{"schema": {}}', "own.jsonl")) == 2
