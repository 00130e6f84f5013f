"""A request to a model server is known by a few keys, and a tool of the server's own by one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from request_bodies import FORM, WEATHER, read

from harness.cases.suite import Passed, find_suite, read_cases
from harness.cases.tool_lists import BUILT_IN, MARKS, is_marked
from harness.errors import BadInput

MARKED: tuple[dict[str, Any], ...] = (
    {"messages": []},
    {"contents": []},
    {"sampling_params": {}},
    {"model": "m", "tools": None},
    {"model": "m", "input": "x"},
    {"model": "m", "prompt": "x"},
    {"model": "m", "message": "x"},
    {"message": "x", "chat_history": []},
    {"inputs": "x", "parameters": {}},
    {"prompt": "x", "n_predict": 3},
    {"jsonrpc": "2.0"},
    {"run_type": "chain", "inputs": {"question": "x"}},
    {"span_attributes": {"type": "task"}, "input": "x"},
    {"traceId": "1", "spanId": "2", "attributes": []},
    {"trace_id": "1", "span_id": "2", "attributes": {}},
    # opentelemetry-sdk, ConsoleSpanExporter
    {"name": "GET", "context": {"trace_id": "1"}, "kind": "SpanKind.CLIENT", "attributes": {"a": "b"}},
)
CAMEL_CASE = (
    *("googleSearch", "googleSearchRetrieval", "googleMaps", "codeExecution", "urlContext"),
    *("computerUse", "fileSearch", "mcpServers"),
)
OF_SERVERS = (
    *CAMEL_CASE,
    *(re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name) for name in CAMEL_CASE),
    *("enterpriseWebSearch", "retrieval", "cachePoint", "systemTool"),
)


def test_each_mark_and_each_tool_of_a_server_is_tried_here() -> None:
    assert set(MARKS) == {frozenset(request) for request in MARKED}
    assert sorted(BUILT_IN) == sorted(OF_SERVERS)


@pytest.mark.parametrize("request_", MARKED, ids=" ".join)
def test_a_request_is_known_by_all_keys_of_a_mark(request_: dict[str, Any], tmp_path: Path) -> None:
    path, passed = tmp_path / "log.jsonl", Passed()
    lines = [request_, {"messages": [], "response_format": FORM}]
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert [case.name for case in read_cases(find_suite(str(path)), passed)] == ["answer"]
    assert list(passed.unheld) == [f"{path}:1"]
    for key in request_:
        rest = {name: value for name, value in request_.items() if name != key}
        assert not is_marked(rest)
        path.write_text("\n".join(map(json.dumps, [{**rest, "else": 1}, lines[1]])), "utf-8")
        with pytest.raises(BadInput, match=r"log\.jsonl:1: a case without grammar"):
            list(read_cases(find_suite(str(path))))


@pytest.mark.parametrize("key", OF_SERVERS)
def test_a_tool_of_a_server_is_known_by_its_key(key: str, tmp_path: Path) -> None:
    (case,) = read(tmp_path, {"tools": [{key: {}}, WEATHER]})
    assert (case.name, case.left_out) == ("weather", (f"tool 1 ({key}) of {tmp_path / 'request.json'}",))


def test_only_true_makes_a_parameter_of_coheres_required(tmp_path: Path) -> None:
    definitions = {
        name: {"type": "str", "required": required}
        for name, required in {"a": True, "b": "false", "c": 1, "d": None}.items()
    }
    (case,) = read(tmp_path, {"tools": [{"name": "find", "parameter_definitions": definitions}]})
    assert json.loads(case.grammar.text)["required"] == ["a"]
