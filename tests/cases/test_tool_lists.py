"""Lists of tools as model servers take them are suites: one case per tool, by the tool's name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.cases.case import GRAMMAR_KEYS
from harness.cases.prepared import problem_with
from harness.cases.suite import find_suite, read_cases
from harness.cases.tool_lists import NOT_OF_TOOLS
from harness.cli.main import main
from harness.errors import BadInput
from harness.rows.store import read_rows

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
NOTHING = {"type": "object", "properties": {}}
CHAT = [
    {
        "type": "function",
        "function": {"name": "weather", "description": "now", "parameters": CITY, "strict": True},
    },
    {"type": "function", "function": {"name": "time", "description": "now"}},
]
FORMS: dict[str, Any] = {
    "Chat Completions": CHAT,
    "Responses": [
        {"type": "function", "name": "weather", "parameters": CITY},
        {"type": "function", "name": "time", "parameters": None},
    ],
    "a request": {"model": "m", "messages": [], "format": "json", "tools": CHAT},
    "Anthropic": [{"name": "weather", "input_schema": CITY}, {"name": "time", "input_schema": {}}],
    "MCP": [
        {"name": "weather", "title": "Weather", "inputSchema": CITY},
        {"name": "time", "description": "now"},
    ],
    "MCP's answer": {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"tools": [{"name": "weather", "inputSchema": CITY}, {"name": "time"}]},
    },
    "functions": [{"name": "weather", "parameters": CITY}, {"name": "time", "parameters": {}}],
    "Bedrock": {
        "modelId": "m",
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "weather", "inputSchema": {"json": CITY}}},
                {"toolSpec": {"name": "time", "inputSchema": {"json": {}}}},
            ]
        },
    },
    # Strands' ToolSpec (strands/types/tools.py), and Bedrock's as boto's other spelling has it
    "Bedrock's without toolSpec": [
        {"name": "weather", "description": "now", "inputSchema": {"json": CITY}},
        {"name": "time", "input_schema": {"json": {"type": "object", "properties": {}}}},
    ],
}


def read(folder: Path, value: object, name: str = "tools.json") -> list[tuple[str, Any]]:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return [(case.name, json.loads(case.grammar.text)) for case in read_cases(find_suite(str(path)))]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_one_case_per_tool(form: str, tmp_path: Path) -> None:
    assert read(tmp_path, FORMS[form]) == [("weather", CITY), ("time", NOTHING)]


@pytest.mark.parametrize(
    "tool",
    [
        CHAT[0],
        {"type": "function", "name": "weather", "parameters": CITY},
        {"name": "weather", "inputSchema": CITY},
    ],
)
def test_one_tool_may_be_a_file_or_a_line(tool: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path, tool) == [("weather", CITY)]
    other = json.dumps(tool).replace("city", "town")
    assert read(tmp_path, f"{json.dumps(tool)}\n{other}\n", "tools.jsonl") == [
        ("weather", CITY),
        ("tools.jsonl:2: weather", json.loads(json.dumps(CITY).replace("city", "town"))),
    ]


BAD: dict[str, tuple[object, str]] = {
    "no name": ([*CHAT, {"type": "function", "function": {"parameters": CITY}}], "tool 3 has no name"),
    "no object": ([*CHAT, "weather"], 'tool 3 is "weather", not a tool'),
    "text as function": (
        [{"type": "function", "function": "weather"}],
        '"function" is "weather", not an object with name and parameters',
    ),
    "text as schema": (
        [{"name": "weather", "input_schema": "object"}],
        'tool 1 ("weather"): "input_schema" is "object"',
    ),
    "no keyword": (
        [{"name": "weather", "parameters": {"city": {"type": "string"}, "days": {"type": "integer"}}}],
        'tool 1 ("weather"): "parameters" does not keep its properties in "properties"; write {"type": '
        '"object", "properties": {...}}',
    ),
    "names that are keywords": (
        [{"name": "find", "input_schema": {"type": {"type": "string"}, "pattern": {"type": "string"}}}],
        'tool 1 ("find"): "input_schema" does not keep its properties in "properties"; write',
    ),
    "names beside a keyword": (
        [{"name": "weather", "parameters": {"city": {"type": "string"}, "required": ["city"]}}],
        'tool 1 ("weather"): "parameters" does not keep its properties in "properties"; write',
    ),
    "a name that is a key of Bedrock's": (
        [{"name": "find", "input_schema": {"json": {"type": "string"}}}],
        'tool 1 ("find"): "input_schema" does not keep its properties in "properties"; write',
    ),
    "Bedrock's schema as text": (
        {"toolConfig": {"tools": [{"toolSpec": {"name": "find", "inputSchema": {"json": "object"}}}]}},
        'tool 1 ("find"): "inputSchema" is "object"; a JSON Schema of arguments is an object',
    ),
    "a name that is an annotation": (
        [{"name": "find", "parameters": {"title": {"type": "string"}, "type": "object"}}],
        'tool 1 ("find"): "parameters" does not keep its properties in "properties"; write',
    ),
    "a misspelt type": (
        [*CHAT, {"type": "fucntion", "name": "x"}],
        'tool 3 is of type "fucntion", which is not read; leave it out, or make it a "function"',
    ),
    "another type, with a schema": (
        [*CHAT, {"type": "fn", "parameters": CITY}],
        'tool 3 is of type "fn", which is not read; leave it out, or make it a "function"',
    ),
    "two schemas": (
        [{"name": "weather", "parameters": CITY, "inputSchema": CITY | {"additionalProperties": 0}}],
        "has parameters and inputSchema, which differ; keep one",
    ),
    "a schema": ([*CHAT, {"type": "object"}], 'tool 3 is of type "object", which is not read'),
    "no tool": ([*CHAT, {"search": {}}], "tool 3 has no name"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_entry_gets_one_line(name: str, tmp_path: Path) -> None:
    tools, said = BAD[name]
    with pytest.raises(BadInput) as caught:
        read(tmp_path, tools)
    assert said in str(caught.value) and "tools.json" in str(caught.value) and "\n" not in str(caught.value)


def test_the_same_schema_may_stand_at_two_keys(tmp_path: Path) -> None:
    for again in (CITY, json.dumps(CITY)):
        tool = {"name": "weather", "parameters": CITY, "args_schema": again}
        assert read(tmp_path, [tool]) == [("weather", CITY)]


@pytest.mark.parametrize(("text", "kept"), [("²", "²"), ("9" * 5000, "9" * 5000), ("-1", "-1"), ("007", 7)])
def test_a_bound_of_geminis_that_is_no_int64_stays_text(text: str, kept: object, tmp_path: Path) -> None:
    parameters = {"type": "STRING", "minLength": text}
    tool = {"functionDeclarations": [{"name": "weather", "parameters": parameters}]}
    assert read(tmp_path, tool) == [("weather", {"type": "string", "minLength": kept})]


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        (
            {"type": "OBJECT", "properties": {"a_b": {"any_of": [{"type": "STRING", "max_length": "3"}]}}},
            {"type": "object", "properties": {"a_b": {"anyOf": [{"type": "string", "maxLength": 3}]}}},
        ),
        (
            {"nullable": True, "anyOf": [{"type": "STRING"}]},
            {"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"type": "TYPE_UNSPECIFIED", "maximum": 3}, {"maximum": 3}),
        (
            {"type": "INTEGER", "format": "enum", "enum": ["101", "-201"], "nullable": True},
            {"type": ["integer", "null"], "enum": [101, -201, None]},
        ),
        ({"type": "NUMBER", "enum": ["1.50", "x", 2]}, {"type": "number", "enum": [1.5, "x", 2]}),
        (
            {
                "properties": {"pet": {"ref": "#/defs/Pet", "nullable": True}, "ref": {"type": "STRING"}},
                "defs": {"Pet": {"type": "OBJECT"}},
            },
            {
                "properties": {
                    "pet": {"anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}]},
                    "ref": {"type": "string"},
                },
                "$defs": {"Pet": {"type": "object"}},
            },
        ),
        (
            {"prefixItems": [{"type": "STRING", "format": "enum", "enum": ["a"]}]},
            {"prefixItems": [{"type": "string", "enum": ["a"]}]},
        ),
    ],
)
def test_geminis_schemas_are_read_as_its_sdk_writes_them(
    parameters: object, schema: object, tmp_path: Path
) -> None:
    tool = {"name": "weather", "parameters": parameters, "parametersJsonSchema": None}
    assert read(tmp_path, {"function_declarations": [tool]}) == [("weather", schema)]


COHERE = {
    "day": ({"type": "str", "description": "YYYY-MM-DD", "required": True}, "string"),
    "count": ({"type": "int", "required": False, "enum": None}, "integer"),
    "share": ({"type": "float"}, "number"),
    "exact": ({"type": "bool"}, "boolean"),
    "any": ({"type": "Dict"}, "object"),
    "some": ({"type": "List"}, "array"),
    "word": ({"type": "string"}, "string"),
}


def test_tools_of_coheres_first_interface_name_pythons_types(tmp_path: Path) -> None:
    definitions = {name: definition for name, (definition, _) in COHERE.items()}
    tools = [{"name": "sales", "description": "d", "parameter_definitions": definitions}]
    tools += [{"name": "now", "description": "d", "parameter_definitions": {}}]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": kind} for name, (_, kind) in COHERE.items()},
        "required": ["day"],
    }
    schema["properties"]["day"]["description"] = "YYYY-MM-DD"
    for request in ({"message": "x", "tools": tools}, {"model": "m", "message": "x", "tools": tools}):
        assert read(tmp_path, request) == [("sales", schema), ("now", NOTHING)]


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("List[str]", {"type": "array", "items": {"type": "string"}}),
        ("List[List[float]]", {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
        ("Dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            "dict[str, Dict[str, list[int]]]",
            {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "integer"}},
                },
            },
        ),
        ("Dict[int, str]", None),
        ("Dict[str]", None),
        ("List[Item]", None),
        ("List[str", None),
        ("List[]", None),
        ("str[int]", None),
        ("Optional[str]", None),
        ("str]", None),
        (5, None),
        (None, None),
    ],
)
def test_a_type_of_pythons_with_types_inside_is_read(
    written: object, schema: dict[str, Any] | None, tmp_path: Path
) -> None:
    tool = {"name": "x", "parameter_definitions": {"a": {"type": written}}}
    if schema is not None:
        assert read(tmp_path, [tool]) == [("x", {"type": "object", "properties": {"a": schema}})]
        return
    with pytest.raises(BadInput, match=r'"x"\): the parameter "a" is of type .*, which is not read; write'):
        read(tmp_path, [tool])


def test_a_parameter_that_asks_for_more_than_a_type_is_refused(tmp_path: Path) -> None:
    for definition, said in (
        ("str", 'the parameter "a" is "str", not an object'),
        (
            {"type": "str", "enum": ["a"]},
            'the parameter "a" has "enum", which is not read; write "parameters"',
        ),
    ):
        with pytest.raises(BadInput, match=said):
            read(tmp_path, [{"name": "x", "parameter_definitions": {"a": definition}}])


def test_a_type_of_another_language_is_told_with_what_to_write(tmp_path: Path) -> None:
    properties = {
        "x": {"type": "float"},
        "y": {"type": ["tuple", "null"], "items": {"type": "float"}},
        "z": {"type": "any"},
        "type": {"type": "STRING"},
    }
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{"name": "f", "parameters": {"type": "dict", "properties": properties}}]))
    (case,) = read_cases(find_suite(str(path)))
    assert problem_with(case) == (
        'not a JSON Schema: /type is "dict" (write "object"), '
        '/properties/x/type is "float" (write "number"), '
        '/properties/y/type is "tuple" (write "array"), /properties/z/type is "any" (leave "type" out), '
        '/properties/type/type is "STRING" (write "string")'
    )
    of_draft_3 = replace(case, grammar=Grammar("json_schema", '{"type": "any", "properties": 1}'))
    assert '"any"' not in problem_with(replace(of_draft_3, options={"draft": "draft3"}))


@pytest.mark.parametrize(
    "schema",
    [
        {"additionalProperties": {"type": "string"}},
        {"$ref": "#/$defs/a", "$defs": {"a": CITY}},
        {"not": {}},
        {"const": {"a": 1}},
        {"required": ["city"], "x-order": {"type": 1}, "strict": True},
        {**CITY, "city": {"type": "string"}},
    ],
)
def test_a_schema_of_arguments_needs_no_type(schema: object, tmp_path: Path) -> None:
    assert read(tmp_path, [{"name": "weather", "input_schema": schema}]) == [("weather", schema)]


def test_a_schema_of_annotations_alone_has_no_arguments(tmp_path: Path) -> None:
    schema = {"title": "X", "description": "no args"}
    assert read(tmp_path, [{"name": "x", "input_schema": schema}]) == [("x", schema | NOTHING)]


def test_a_case_with_tools_beside_its_schema_is_a_case(tmp_path: Path) -> None:
    case = {"description": "one", "schema": CITY, "tests": [], "tools": CHAT}
    assert [schema for _, schema in read(tmp_path, case, "case.json")] == [CITY]


def test_a_schema_or_a_case_is_no_tool(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"tools": {}, "function": {}}, "title": "x"}
    assert read(tmp_path, schema, "schema.json") == [("schema", schema)]
    assert {*GRAMMAR_KEYS, "tests"} == NOT_OF_TOOLS


def test_a_tool_list_is_run_as_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(CHAT))
    words = [
        "run",
        str(tmp_path / "tools.json"),
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
    ]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    assert {row.case for row in read_rows(tmp_path / "run")} == {"weather", "time"}
    assert "misspelt" not in capsys.readouterr().err


ANSWER = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": CITY}}


def test_the_answer_of_a_request_is_a_case_too(tmp_path: Path) -> None:
    assert read(tmp_path, ANSWER) == read(tmp_path, {"response_format": ANSWER}) == [("answer", CITY)]
    request = {"model": "m", "messages": [], "tools": CHAT, "response_format": ANSWER}
    assert read(tmp_path, request) == [("weather", CITY), ("time", NOTHING), ("answer", CITY)]
    assert read(tmp_path, {"tools": CHAT, "response_format": {"type": "json_object"}}) == [
        ("weather", CITY),
        ("time", NOTHING),
    ]


def test_the_answer_of_a_request_to_responses_is_a_case_too(tmp_path: Path) -> None:
    text = {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": CITY}}
    assert read(tmp_path, {"model": "m", "input": "hi", "text": text}) == [("answer", CITY)]
    request = {"model": "m", "input": "hi", "tools": FORMS["Responses"], "text": text}
    assert read(tmp_path, request) == [("weather", CITY), ("time", NOTHING), ("answer", CITY)]
    for bare in ({"format": {"type": "text"}}, {"verbosity": "low"}):
        assert read(tmp_path, request | {"text": bare}) == [("weather", CITY), ("time", NOTHING)]
    with pytest.raises(BadInput, match=r'"text.format" has no schema; write .*"name", "schema"'):
        read(tmp_path, request | {"text": {"format": {"type": "json_schema", "name": "answer"}}})


def test_a_name_that_comes_again_has_its_file_or_line_before_it(tmp_path: Path) -> None:
    weather, time = CHAT
    town, street = (json.loads(json.dumps(weather).replace("city", word)) for word in ("town", "street"))
    names = [name for name, _ in read(tmp_path, [weather, time, town, street])]
    assert names == ["weather", "time", "tools.json: weather", "tools.json: weather-2"]
    lines = "\n".join([json.dumps({"tools": CHAT}), json.dumps(town)])
    names = [name for name, _ in read(tmp_path, lines, "x.jsonl")]
    assert names == ["weather", "time", "x.jsonl:2: weather"]


def test_a_line_may_be_a_request(tmp_path: Path) -> None:
    lines = [{"tools": CHAT}, {"regex": "a"}, {"response_format": ANSWER}]
    path = tmp_path / "requests.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    names = [case.name for case in read_cases(find_suite(str(path)))]
    assert names == ["weather", "time", "requests.jsonl:2", "answer"]
