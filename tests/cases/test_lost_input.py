"""What a user's file holds and is not read is told: it is never dropped, and no backend is blamed for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from request_bodies import CITY, FORM, WEATHER, read

from harness.cases.suite import Passed, find_suite, read_cases
from harness.errors import BadInput

PROPERTIES = CITY["properties"]
NAMED: dict[str, Any] = {"name": "weather", "description": "d"}


def refusal(folder: Path, value: object, name: str = "request.json") -> str:
    """Returns what is said of the file."""
    with pytest.raises(BadInput) as caught:
        read(folder, value, name)
    said = str(caught.value)
    assert str(folder / name) in said and "\n" not in said
    return said


LOST_TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    # LangChain's tools for JavaScript
    "another name": ({**NAMED, "schema": CITY}, "schema"),
    # smolagents' tools
    "a map of names": ({**NAMED, "inputs": PROPERTIES, "output_type": "string"}, "inputs"),
    # Pipecat's FunctionSchema
    "properties alone": ({**NAMED, "properties": PROPERTIES, "required": ["city"]}, "properties"),
    "a list of parameters": ({**NAMED, "params": [{"name": "city", "type": "string"}]}, "params"),
    "a misspelt key": ({"type": "function", "function": {**NAMED, "paramters": CITY}}, "paramters"),
    "a misspelt key of Anthropic's": ({**NAMED, "input_schma": CITY}, "input_schma"),
    "a misspelt key beside it": ({"type": "function", "function": NAMED, "paramters": CITY}, "paramters"),
    "one beside an empty one": ({**NAMED, "parameters": {}, "input": CITY}, "input"),
    "a misspelt key of Gemini's": (
        {"functionDeclarations": [{**NAMED, "parameter": {"type": "OBJECT", "properties": {}}}]},
        "parameter",
    ),
}


@pytest.mark.parametrize("name", LOST_TOOLS)
def test_a_tool_whose_schema_stands_at_an_unknown_key_is_refused(name: str, tmp_path: Path) -> None:
    """It would be a tool without arguments, which every backend does well."""
    tool, key = LOST_TOOLS[name]
    said = refusal(tmp_path, {"messages": [], "tools": [tool]})
    assert f'tool 1 ("weather") has "{key}", which is not read; write "parameters" with a JSON' in said


def test_parameters_beside_the_function_and_calls_of_tools_are_refused(tmp_path: Path) -> None:
    tool = {"type": "function", "function": NAMED, "parameters": CITY}
    assert 'has "parameters" beside "function", where it is not read; put it inside' in refusal(
        tmp_path, [tool]
    )
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    of_ollama = {"function": {"name": "weather", "arguments": {"city": "Oslo"}}}
    for value in (call, [call], {"messages": [], "tools": [call]}, [of_ollama]):
        assert 'tool 1 ("weather") has "arguments", so it is a call, not a tool' in refusal(tmp_path, value)


WITHOUT: dict[str, dict[str, Any]] = {
    "MCP's": {"name": "time", "annotations": {"title": "Time", "readOnlyHint": True}, "_meta": {"a": {}}},
    "what it returns": {"name": "time", "output_schema": CITY, "returns": PROPERTIES, "outputSchema": CITY},
    "how it fails": {"name": "time", "errors": {"E": CITY}, "structuredContent": CITY, "exception": CITY},
    "Anthropic's": {"name": "time", "cache_control": {"type": "ephemeral"}, "input_examples": [{"a": 1}]},
    "no call": {"name": "time", "arguments": None, "metadata": {"type": "internal"}},
}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_tool_without_arguments_may_say_more_of_itself(name: str, tmp_path: Path) -> None:
    for tool in (WITHOUT[name], {"type": "function", "function": WITHOUT[name], "strict": True}):
        (case,) = read(tmp_path, {"messages": [], "tools": [tool]})
        assert json.loads(case.grammar.text) == {"type": "object", "properties": {}}


@pytest.mark.parametrize("key", ["params_json_schema", "args_schema"])
def test_tools_of_sdks_keep_their_schema_at_keys_of_their_own(key: str, tmp_path: Path) -> None:
    """A FunctionTool of OpenAI's Agents SDK (src/agents/tool.py), and a tool of LangChain's or CrewAI's."""
    tool = {**NAMED, key: CITY, "strict_json_schema": True}
    for value in ([tool], {"messages": [], "tools": [tool]}):
        (case,) = read(tmp_path, value)
        assert (case.name, json.loads(case.grammar.text)) == ("weather", CITY)


ASKING: dict[str, Any] = {"model": "m", "messages": [], "tools": [WEATHER], "response_format": FORM}


@pytest.mark.parametrize("word", ["chatml", "openai", "html", "json", ""])
def test_a_request_may_have_a_format_of_any_word(word: str, tmp_path: Path) -> None:
    """Such a request was taken for a JSON Schema by that word alone, and every backend refused it."""
    logged = {"timestamp": "t", "path": "/v1", "messages": [], "params": {"tools": [WEATHER]}}
    for value, names in (
        ({**ASKING, "format": word}, ["weather", "answer"]),
        ({"format": word, "body": ASKING}, ["weather", "answer"]),
        ({"model": "m", "messages": [], "response_format": FORM, "format": word}, ["answer"]),
        ({**logged, "format": word}, ["weather"]),
    ):
        assert [case.name for case in read(tmp_path, value)] == names
        assert [case.name for case in read(tmp_path, json.dumps(value), "log.jsonl")] == names


def test_the_text_of_a_schema_may_be_the_format_of_a_request(tmp_path: Path) -> None:
    (case,) = read(tmp_path, {"model": "m", "messages": [], "format": json.dumps(CITY)})
    assert json.loads(case.grammar.text) == CITY


@pytest.mark.parametrize("word", ["date-time", "regex", "ipv4", "ip-address"])
def test_a_format_of_json_schemas_alone_is_a_schema(word: str, tmp_path: Path) -> None:
    (case,) = read(tmp_path, {"format": word})
    assert json.loads(case.grammar.text) == {"format": word}


OTHER_FILES: dict[str, tuple[dict[str, Any], str]] = {
    "tsconfig.json": (
        {"$schema": "https://json.schemastore.org/tsconfig", "extends": "./base.json", "files": ["a"]},
        'is no JSON Schema: its "$schema" (https://json.schemastore.org/tsconfig) is that of files of',
    ),
    "server.json": (
        {"$schema": "https://static.modelcontextprotocol.io/schemas/server.schema.json", "name": "x"},
        "is that of files of another kind, and none of its keywords asks anything; take it out",
    ),
    "openapi.json": (
        {"$schema": "https://spec.openapis.org/oas/3.1/schema-base/2022-10-07", "openapi": "3.1.0"},
        "is a file of OpenAPI, which is not read",
    ),
    "defs.json": (
        {"$defs": {"a/b": CITY, "c": CITY}},
        'has definitions alone, which ask nothing; add "$ref": "#/$defs/a~1b" (or another)',
    ),
    "definitions.json": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "title": "x", "definitions": {"Order": CITY}},
        'add "$ref": "#/definitions/Order"',
    ),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_file_that_asks_nothing_is_no_schema(name: str, tmp_path: Path) -> None:
    """It was a schema that allows everything, which counted for or against every backend."""
    value, said = OTHER_FILES[name]
    assert said in refusal(tmp_path, value, name)


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"$schema": "https://example.com/mine", "enum": [1]},
        {"$schema": "https://example.com/mine", "type": "object", "openapi": "3.1.0"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "openapi": "3.1.0"},
        {"$defs": {"a": CITY}, "$ref": "#/$defs/a"},
        {"definitions": {}},
        {"$defs": {"a": CITY}, "not": {}},
    ],
)
def test_a_schema_of_few_words_is_a_schema(schema: dict[str, Any], tmp_path: Path) -> None:
    (case,) = read(tmp_path, schema)
    assert json.loads(case.grammar.text) == schema


@pytest.mark.parametrize("key", ["metadata", "modelParameters"])
def test_a_format_that_langfuse_keeps_beside_its_input_is_not_lost(key: str, tmp_path: Path) -> None:
    """Its wrapper of OpenAI's client (langfuse/openai.py, OpenAiArgsExtractor), and LiteLLM's logger."""
    line = {"type": "GENERATION", "model": "m", "input": {"tools": [WEATHER], "messages": []}}
    assert [case.name for case in read(tmp_path, {**line, key: {"response_format": FORM}})] == [
        "weather",
        "answer",
    ]
    said = refusal(tmp_path, {**line, "modelParameters": {"response_format": str(FORM)}})
    assert '"response_format" is text that is no JSON' in said


@pytest.mark.parametrize(
    "held",
    [
        {"model": "m", "tools": ["search", "weather"], "user": "x"},
        {"schema": CITY, "regex": "a"},
        {"function": {"name": "handler"}, "name": "x", "parameters": {"a": 1}},
        {"format": CITY, "request": {"guided_json": CITY}},
        {"tools": None, "response_format": "json"},
        "text",
    ],
)
def test_metadata_of_other_kinds_are_no_part_of_a_request(held: object, tmp_path: Path) -> None:
    (case,) = read(tmp_path, {"model": "m", "messages": [], "tools": [WEATHER], "metadata": held})
    assert case.name == "weather"


def test_what_wraps_itself_without_end_is_refused_at_once(tmp_path: Path) -> None:
    """It took a minute for 20,000 levels, because each was walked for each level around it."""
    levels = 20_000 if sys.version_info < (3, 12) else 1_000  # the JSON of later versions is not read so deep
    deep = '{"body":' * levels + json.dumps(ASKING) + "}" * levels
    assert "a request that more than 50 objects wrap is not read" in refusal(tmp_path, deep)
    assert len(read(tmp_path, '{"body":' * 49 + json.dumps(ASKING) + "}" * 49)) == 2


@pytest.mark.parametrize(
    ("case", "request_", "said"),
    [
        ({"schema": CITY}, ASKING, 'has "schema", as a case of ours has, and "tools" of a request; keep one'),
        (
            {"choice": ["a"]},
            {"messages": [], "response_format": FORM},
            'has "choice", as a case of ours has, and',
        ),
        ({"lark": "start: 1"}, {"messages": [], "guided_json": CITY}, '"guided_json" of a request; keep one'),
    ],
)
def test_a_case_that_is_a_request_too_is_refused(
    case: dict[str, Any], request_: dict[str, Any], said: str, tmp_path: Path
) -> None:
    assert said in refusal(tmp_path, {**request_, **case})
    assert said in refusal(tmp_path, {"request": {**request_, **case}})


def test_a_case_may_have_some_keys_of_a_request(tmp_path: Path) -> None:
    for more in (
        {"messages": [], "response_format": {"type": "json_object"}, "tools": []},
        {"tools": [WEATHER]},
        {**ASKING, "tests": [{"data": {"city": "a"}, "valid": True}]},
    ):
        (case,) = read(tmp_path, {"schema": CITY, **more})
        assert json.loads(case.grammar.text) == CITY


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"type": "object", "properties": {"a": {}}, "properties": {"b": {}}}', "properties"),
        ('{"items": {"enum": [1], "minimum": 0, "enum": [2]}}', "enum"),
        ('{"messages": [], "tools": [{"name": "a", "input_schema": {}}], "tools": []}', "tools"),
        ('{"messages": [], "response_format": {"type": "text"}, "response_format": {}}', "response_format"),
        ('[{"name": "a", "parameters": {"type": "object"}, "parameters": {}}]', "parameters"),
        (json.dumps({"body": '{"messages": [], "tools": [1], "tools": []}'}), "tools"),
    ],
)
def test_a_key_that_a_schema_or_a_request_has_twice_is_told(text: str, key: str, tmp_path: Path) -> None:
    assert f'an object has "{key}" 2 times; keep one' in refusal(tmp_path, text)


def test_a_key_that_comes_twice_and_asks_nothing_more_is_no_fault(tmp_path: Path) -> None:
    for text, schema in (
        ('{"type": "string", "type": "string"}', {"type": "string"}),
        (
            '{"type": "string", "description": "a", "description": "b"}',
            {"type": "string", "description": "b"},
        ),
        ('{"const": {"a": 1, "a": 2}}', {"const": {"a": 2}}),
    ):
        assert [json.loads(case.grammar.text) for case in read(tmp_path, text)] == [schema]


OF_OTHERS = (
    json.dumps({"name": "click", "parameters": {"x": 1}}),  # an analytics event, which looks like a tool
    '{"event_id": "a"}\n{"type": "event"}\n{"message": "schema"}',  # an envelope of Sentry's
    json.dumps({"inputSchema": None}),
    json.dumps({"tools": [{"type": "fn", "parameters": {}}]}),
)


def recorded(body: str) -> dict[str, Any]:
    """Returns an entry of a browser's record (HAR 1.2) with that body."""
    post = {"mimeType": "application/json", "text": body}
    return {"time": 1, "request": {"method": "POST", "url": "u", "headers": [], "postData": post}}


@pytest.mark.parametrize("body", OF_OTHERS)
def test_what_a_browser_recorded_of_other_servers_is_named(body: str, tmp_path: Path) -> None:
    """The file is refused for none of them, as nobody can edit it by hand."""
    ours = recorded(json.dumps(ASKING))
    for entries, number in (([ours, recorded(body)], 2), ([recorded(body), ours], 1)):
        path, passed = tmp_path / "page.har", Passed()
        path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}), "utf-8")
        assert [case.name for case in read_cases(find_suite(str(path)), passed)] == ["weather", "answer"]
        assert list(passed.unheld) == [f"{path}: request {number}"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (json.dumps({"messages": [], "tools": [{"type": "fucntion", "name": "x"}]}), 'is of type "fucntion"'),
        ('{"messages": [], "tools": [{"type": "func', '"postData.text" is text that is no JSON'),
    ],
)
def test_a_recorded_request_that_is_not_read_is_refused(body: str, said: str, tmp_path: Path) -> None:
    entries = [recorded(json.dumps(ASKING)), recorded(body)]
    assert said in refusal(tmp_path, {"log": {"version": "1.2", "entries": entries}})


def test_the_answer_of_a_model_is_no_misspelt_case(tmp_path: Path) -> None:
    answer = {"object": "chat.completion", "model": "m", "choices": [{"index": 0}]}
    said = refusal(tmp_path, json.dumps(answer), "log.jsonl")
    assert "neither a case nor a request is read here" in said and "misspelt" not in said
    assert 'is "choices" misspelt?' in refusal(tmp_path, json.dumps({"choices": ["a", "b"]}), "log.jsonl")


def test_a_schema_that_wraps_a_request_is_refused(tmp_path: Path) -> None:
    """Lines of logs have keys that are keywords too; one by one they are neither."""
    for value, place in (
        ({"type": "object", "request": ASKING}, "request"),
        ({"pattern": "/v1/chat/completions", "body": json.dumps(ASKING)}, "body"),
    ):
        for name in ("log.json", "log.jsonl"):
            said = refusal(tmp_path, json.dumps(value), name)
            assert (
                f'is a JSON Schema by its keywords, and has a request at "{place}"; keep one of them' in said
            )
    for schema in ({"type": "object", "request": {"a": 1}}, {"type": "string", "body": "{x"}):
        assert [json.loads(case.grammar.text) for case in read(tmp_path, schema)] == [schema]


@pytest.mark.parametrize("key", ["metadata", "inputs", "kwargs", "parameters", "setup"])
def test_ordinary_words_of_other_files_are_no_requests(key: str, tmp_path: Path) -> None:
    for held in ({"format": CITY}, {"grammar": 'root ::= "a"'}, {"name": "x", "tools": "all"}, [CITY], "x"):
        assert "neither a case nor a JSON Schema" in refusal(tmp_path, {"id": "x", key: held, "version": 1})
