"""Requests to model servers are suites: their tools, and what their answers are held to, wherever these
stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from request_bodies import CITY, FORM, UNNAMED, WEATHER, read

from harness.cases.answer_forms import PLACES
from harness.cases.case import OF_TOOL
from harness.cases.requests import BODIES, WRAPPERS
from harness.cli.main import main
from harness.errors import BadInput

OPENAPI: dict[str, Any] = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
FLAT = {"type": "json_schema", "name": "answer", "schema": CITY}
EBNF, LARK = 'root ::= "a"', 'start: "a"'
DIRECTED = f"%llguidance {{}}\n{LARK}"
COMMENTED = f"// not ::=\n{LARK} # not ::=\n"
TAG = {"format": {"type": "const_string", "value": "a"}}
OF_GEMINI = {"type": "text", "mime_type": "application/json", "schema": CITY}
BY_OUTPUT = {"text": {"mimeType": "application/json", "schema": CITY}}
OF_MISTRAL = {"name": "answer", "schema_definition": CITY, "description": None, "strict": True}
OLD_TAG = {"triggers": ["<"], "structures": [{"begin": "<a>", "schema": CITY, "end": "</a>"}]}

OF_VLLM: dict[str, list[tuple[Any, str, Any]]] = {
    "json": [(CITY, "json_schema", CITY), (json.dumps(CITY), "json_schema", CITY)],
    "regex": [("[a-z]+", "regex", "[a-z]+")],
    "choice": [(["a", "b"], "choice", ["a", "b"])],
    "grammar": [(EBNF, "ebnf", EBNF), (LARK, "lark", LARK)],
    "structural_tag": [(json.dumps(TAG), "structural_tag", TAG)],
}
OF_OLDER_VLLM: dict[str, list[tuple[Any, str, Any]]] = {
    "json": [(CITY, "json_schema", CITY), ("true", "json_schema", True)],
    "regex": [("[a-z]+", "regex", "[a-z]+")],
    "choice": [(["a", "b"], "choice", ["a", "b"])],
    "grammar": [(EBNF, "ebnf", EBNF), (LARK, "lark", LARK), (COMMENTED, "lark", COMMENTED)],
}
ANSWERS: dict[str, list[tuple[Any, str, Any]]] = {
    "response_format": [
        (FORM, "json_schema", CITY),
        (json.dumps(FORM), "json_schema", CITY),
        (UNNAMED, "json_schema", CITY),
        ({"type": "json_object", "schema": CITY}, "json_schema", CITY),
        ({"type": "json_object", "json_schema": CITY}, "json_schema", CITY),
        ({"type": "json_object", "schema": json.dumps(CITY)}, "json_schema", CITY),
        ({"type": "json_object", "value": CITY}, "json_schema", CITY),
        ({"type": "json_schema", "value": {"name": "answer", "schema": CITY}}, "json_schema", CITY),
        ({"type": "json", "value": CITY}, "json_schema", CITY),
        ({"type": "json", "schema": CITY}, "json_schema", CITY),
        ({"type": "json_schema", "json_schema": CITY}, "json_schema", CITY),
        ({"type": "json_schema", "json_schema": OF_MISTRAL}, "json_schema", CITY),
        (OF_GEMINI, "json_schema", CITY),
        ([OF_GEMINI, {"type": "image", "image_config": {"aspect_ratio": "1:1"}}], "json_schema", CITY),
        ({"type": "regex", "regex": {"regex": "[a-z]+"}}, "regex", "[a-z]+"),
        ({"type": "regex", "regex": "[a-z]+"}, "regex", "[a-z]+"),
        ({"type": "regex", "pattern": "[a-z]+"}, "regex", "[a-z]+"),
        ({"type": "regex", "value": "[a-z]+"}, "regex", "[a-z]+"),
        ({"type": "regex_schema", "regex_schema": "[a-z]+"}, "regex", "[a-z]+"),
        ({"type": "ebnf", "ebnf": EBNF}, "ebnf", EBNF),
        ({"type": "grammar", "grammar": EBNF}, "ebnf", EBNF),
        ({"type": "grammar", "grammar": LARK}, "lark", LARK),
        ({"type": "structural_tag", **OLD_TAG}, "structural_tag", OLD_TAG),
        ({"type": "structural_tag", **TAG}, "structural_tag", TAG),
    ],
    "text.format": [(FLAT, "json_schema", CITY)],
    "format": [(CITY, "json_schema", CITY), (FLAT, "json_schema", CITY)],
    "output_format": [(UNNAMED, "json_schema", CITY)],
    "output_config.format": [(UNNAMED, "json_schema", CITY)],
    "outputConfig.textFormat.structure.jsonSchema": [
        ({"name": "answer", "description": "d", "schema": json.dumps(CITY)}, "json_schema", CITY),
    ],
    "responseFormat": [
        ({"type": "json", "name": "answer", "schema": CITY}, "json_schema", CITY),
        ({"type": "json", "schema": CITY}, "json_schema", CITY),
        (
            {"type": "json_schema", "jsonSchema": {"name": "answer", "schemaDefinition": CITY}},
            "json_schema",
            CITY,
        ),
    ],
    **{f"structured_outputs.{key}": found for key, found in OF_VLLM.items()},
    **{f"guided_decoding.{key}": found for key, found in OF_VLLM.items()},
    **{f"sampling_params.structured_outputs.{key}": found for key, found in OF_VLLM.items()},
    **{f"sampling_params.guided_decoding.{key}": found for key, found in OF_VLLM.items()},
    **{
        f"{holder}guided_{key}": found
        for holder in ("", "sampling_params.")
        for key, found in OF_OLDER_VLLM.items()
    },
    **{
        f"{holder}.{key}": [(OPENAPI if "json" not in key.lower() else CITY, "json_schema", CITY)]
        for holder in ("generationConfig", "generation_config", "config")
        for key in (
            "responseSchema",
            "responseJsonSchema",
            "response_schema",
            "response_json_schema",
            "_responseJsonSchema",
        )
    },
    "generationConfig.responseFormat": [
        (BY_OUTPUT, "json_schema", CITY),
        ([BY_OUTPUT], "json_schema", CITY),
        ({**BY_OUTPUT, "image": {"aspectRatio": "1:1"}, "audio": None}, "json_schema", CITY),
    ],
    "generation_config.response_format": [
        ({"text": {"mime_type": "application/json", "schema": CITY}}, "json_schema", CITY),
    ],
    "sampling_params.json_schema": [(json.dumps(CITY), "json_schema", CITY)],
    "sampling_params.regex": [("[a-z]+", "regex", "[a-z]+")],
    "sampling_params.ebnf": [(EBNF, "ebnf", EBNF)],
    "sampling_params.structural_tag": [(json.dumps(TAG), "structural_tag", TAG)],
    "regex": [("[a-z]+", "regex", "[a-z]+")],
    "ebnf": [(EBNF, "ebnf", EBNF)],
    "extra_body.regex": [("[a-z]+", "regex", "[a-z]+")],
    "extra_body.ebnf": [(EBNF, "ebnf", EBNF)],
    "parameters.grammar": [
        ({"type": "json", "value": CITY}, "json_schema", CITY),
        ({"type": "regex", "value": "[a-z]+"}, "regex", "[a-z]+"),
        ({"type": "json_schema", "value": {"name": "answer", "schema": CITY}}, "json_schema", CITY),
    ],
    "json_schema": [
        (CITY, "json_schema", CITY),
        (json.dumps(CITY), "json_schema", CITY),
        ({"name": "answer", "schema": CITY}, "json_schema", CITY),
    ],
    "grammar": [(EBNF, "ebnf", EBNF), (DIRECTED, "lark", DIRECTED)],
    "output_object": [
        ({"json_schema": CITY, "name": "answer", "description": None, "strict": None}, "json_schema", CITY)
    ],
}


def request(place: str, value: object) -> dict[str, Any]:
    for key in reversed(place.split(".")):
        value = {key: value}
    return {"model": "m", "messages": [], **value} if isinstance(value, dict) else {}


def test_each_place_of_an_answer_is_tried_here() -> None:
    assert list(ANSWERS) == list(PLACES)


@pytest.mark.parametrize("place", ANSWERS)
def test_what_an_answer_is_held_to_is_a_case(place: str, tmp_path: Path) -> None:
    for given, dialect, wanted in ANSWERS[place]:
        (case,) = read(tmp_path, request(place, given))
        text = case.grammar.text
        assert case.grammar.dialect == dialect
        assert (text if dialect in ("regex", "ebnf", "lark") else json.loads(text)) == wanted
        assert case.name == ("answer" if "answer" in json.dumps(given) else "request")
        assert case.asked_at == place
        assert read(tmp_path, request(place, None) | {"tools": [WEATHER]})[0].name == "weather"


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_request_may_be_wrapped(wrapper: str, tmp_path: Path) -> None:
    inner = {"model": "m", "tools": [WEATHER], "response_format": FORM}
    for held in [inner, json.dumps(inner)] if wrapper in BODIES else [inner]:
        outer = request(wrapper, held) | {"type": "session.update", "custom_id": "1"}
        (tool, answer) = read(tmp_path, outer)
        assert (tool.name, answer.name) == ("weather", "answer")
        assert [json.loads(case.grammar.text) for case in (tool, answer)] == [CITY, CITY]
        assert len(read(tmp_path, json.dumps(outer), "batch.jsonl")) == 2


ASKING: dict[str, Any] = {"messages": [], "tools": [WEATHER]}
LOGS: dict[str, dict[str, Any]] = {
    "Bedrock's batch": {"recordId": "1", "modelInput": {"anthropic_version": "x", **ASKING}},
    "Bedrock's log": {
        "schemaType": "ModelInvocationLog",
        "schemaVersion": "1.0",
        "operation": "Converse",
        "input": {"inputContentType": "application/json", "inputBodyJson": ASKING},
        "output": {"outputBodyJson": {}},
    },
    "LiteLLM's log": {"call_type": "x", "messages": [], "model_parameters": {"tools": [WEATHER], "n": 1}},
    "LiteLLM's callback": {"model": "m", "messages": [], "optional_params": {"tools": [WEATHER]}},
    "LiteLLM's log of HTTP": {"proxy_server_request": {"url": "u", "method": "POST", "body": ASKING}},
    "LiteLLM's table": {"messages": "{}", "proxy_server_request": json.dumps(ASKING), "response": {}},
    "Langfuse's generation": {"type": "GENERATION", "model": "m", "input": ASKING, "output": {}},
    "a gateway's": {"request": {"method": "POST", "url": "u", "body": json.dumps(ASKING)}, "response": {}},
}


@pytest.mark.parametrize("log", LOGS)
def test_a_line_of_a_log_holds_a_request(log: str, tmp_path: Path) -> None:
    (case,) = read(tmp_path, json.dumps(LOGS[log]), "log.jsonl")
    assert (case.name, json.loads(case.grammar.text)) == ("weather", CITY)


def test_text_that_is_a_prompt_is_no_request(tmp_path: Path) -> None:
    inner = json.dumps({"messages": [], "tools": [{"type": "fucntion", "name": "x"}]})
    (case,) = read(tmp_path, {"model": "m", "input": inner, "body": "{name}", "response_format": FORM})
    assert case.name == "answer"


def test_each_of_several_samplings_is_read(tmp_path: Path) -> None:
    params = [{"json_schema": json.dumps(CITY)}, {"regex": "a+"}, {"temperature": 0}, None]
    schema, regex = read(tmp_path, {"text": ["x", "y", "z", "w"], "sampling_params": params})
    assert (json.loads(schema.grammar.text), regex.grammar.text) == (CITY, "a+")


def test_what_a_model_of_bedrocks_alone_knows_is_read(tmp_path: Path) -> None:
    fields = {"response_format": FORM}
    (case,) = read(tmp_path, {"modelId": "m", "messages": [], "additionalModelRequestFields": fields})
    assert case.name == "answer"


TOOLS: dict[str, Any] = {
    "OpenAI's older functions": {"functions": [WEATHER["function"]]},
    "BFCL's questions": {"id": "x", "question": [], "function": [WEATHER["function"]]},
    "Bedrock's": {
        "modelId": "m",
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": CITY}}}]},
    },
    "a file that names its schema": {"$schema": "https://example.com/tools.json", "tools": [WEATHER]},
    "a list of requests": [{"messages": [], "tools": [WEATHER]}],
    "text, as in rows for training": {
        "query": "x",
        "tools": json.dumps([WEATHER["function"]]),
        "answers": "[]",
    },
    "OpenAI's namespaces": {"tools": [{"type": "namespace", "name": "n", "tools": [WEATHER]}]},
    "what is not chosen": {"tools": [WEATHER], "functionDeclarations": None, "functions": None},
}


@pytest.mark.parametrize("form", TOOLS)
def test_tools_are_found_wherever_requests_have_them(form: str, tmp_path: Path) -> None:
    (case,) = read(tmp_path, TOOLS[form])
    assert (case.name, json.loads(case.grammar.text)) == ("weather", CITY)
    assert case.asked_at == OF_TOOL


UNCHOSEN: dict[str, dict[str, Any]] = {
    "vLLM": {"guided_json": "", "guided_regex": "", "structured_outputs": {"json": None, "grammar": ""}},
    "SGLang": {"regex": None, "ebnf": None, "sampling_params": {"json_schema": "", "regex": "", "ebnf": ""}},
    "llama.cpp": {"prompt": "x", "grammar": "", "json_schema": None},
}


@pytest.mark.parametrize("server", UNCHOSEN)
def test_what_a_request_leaves_empty_is_nothing(server: str, tmp_path: Path) -> None:
    (case,) = read(tmp_path, {"tools": [WEATHER], **UNCHOSEN[server]})
    assert (case.name, json.loads(case.grammar.text)) == ("weather", CITY)
    (case,) = read(tmp_path, {"model": "m", **UNCHOSEN[server], "response_format": FORM})
    assert case.name == "answer"


def test_what_a_case_leaves_null_is_nothing(tmp_path: Path) -> None:
    (case,) = read(tmp_path, {"regex": "a+", "ebnf": None, "tests": []})
    assert (case.grammar.dialect, case.grammar.text) == ("regex", "a+")


def test_a_name_can_be_written(tmp_path: Path) -> None:
    tools = [{"name": "a\ud800", "input_schema": schema} for schema in (CITY, {"type": "object"})]
    names = [case.name for case in read(tmp_path, {"tools": tools})]
    assert names == ["a\\ud800", "request.json: a\\ud800"]


def test_a_custom_tool_has_the_grammar_of_its_input(tmp_path: Path) -> None:
    regex = {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}
    lark = {"type": "grammar", "grammar": {"syntax": "lark", "definition": LARK}}
    tools = [
        {"type": "custom", "name": "word", "format": regex},
        {"type": "custom", "custom": {"name": "code", "format": lark}},
    ]
    assert [case.name for tool in tools for case in read(tmp_path, tool)] == ["word", "code"]
    cases = read(tmp_path, {"tools": tools})
    assert [(case.name, case.grammar.dialect, case.grammar.text) for case in cases] == [
        ("word", "regex", "[a-z]+"),
        ("code", "lark", LARK),
    ]
    with pytest.raises(BadInput, match=r'tool 1 \("word"\): its grammar is not read; write {"syntax"'):
        read(tmp_path, {"tools": [{**tools[0], "format": {"type": "grammar", "syntax": "gbnf"}}]})


def test_a_schema_with_the_keys_of_a_request_is_a_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "grammar": "x", "body": {"tools": [WEATHER]}}
    (case,) = read(tmp_path, schema)
    assert (case.name, json.loads(case.grammar.text)) == ("request", schema)


BAD: dict[str, tuple[Any, str]] = {
    "no JSON": (request("sampling_params.json_schema", "{"), '"sampling_params.json_schema" is text that is'),
    "no schema": (request("guided_json", {"a": 1}), '"guided_json" is {"a": 1}, not a JSON Schema'),
    "no text": (request("structured_outputs.regex", 5), '"structured_outputs.regex" is 5, not a string'),
    "no grammar": (
        request("structured_outputs.grammar", 5),
        '"structured_outputs.grammar" is 5, not a string',
    ),
    "no choice": (request("guided_choice", []), '"guided_choice" is [], not a non-empty list of strings'),
    "no tag": (
        request("structured_outputs.structural_tag", "[]"),
        '"structured_outputs.structural_tag" is []',
    ),
    "a large number": (
        request("guided_json", '{"maximum": 1.0e400}'),
        '"guided_json": the number 1.0e400 is',
    ),
    "a small number": (request("guided_json", '{"multipleOf": 1e-400}'), "1e-400 is beyond a double's range"),
    "many digits": (
        request("guided_json", '{"const": ' + "1" * 5000 + "}"),
        '"guided_json": a number of more than 4,300 digits is not read',
    ),
    "no number": (request("guided_json", '{"const": NaN}'), '"guided_json": NaN is no JSON number'),
    "the type of another server": (
        {"tools": [WEATHER], "response_format": {"type": "python"}},
        '"response_format" is of type "python", which is not read; write a JSON Schema, or one of the types',
    ),
    "a form without its value": (
        request("response_format", {"type": "regex", "regex": ""}),
        '"response_format" is of type regex and has no "regex"',
    ),
    "a form with another value": (
        request("response_format", {"type": "grammar", "grammar": {"a": 1}}),
        '"response_format": "grammar" is {"a": 1}, not a string',
    ),
    "tools that are no list": (
        {"messages": [], "tools": {"a": 1}},
        '"tools" is {"a": 1}, not a list of tools',
    ),
    "a parameter of a class": (
        {"message": "m", "tools": [{"name": "x", "parameter_definitions": {"a": {"type": "Item"}}}]},
        'tool 1 ("x"): the parameter "a" is of type "Item", which is not read; write "parameters"',
    ),
    "parameters that are no object": (
        {"message": "m", "tools": [{"name": "x", "parameter_definitions": ["a"]}]},
        'tool 1 ("x"): "parameter_definitions" is ["a"], not an object',
    ),
    "a tool that is none": ({"messages": [], "tools": ["weather"]}, 'tool 1 is "weather", not a tool'),
    "a format without a type": (
        {"messages": [], "response_format": {"schema": CITY}},
        '"response_format" is {"schema": {"type": "object", ',
    ),
    "a misspelt type": (
        {"messages": [], "response_format": {"typ": "json_schema", "json_schema": FORM["json_schema"]}},
        'request.json: "response_format" is {"typ": "json_schema", ',
    ),
    "a number as format": (
        {"messages": [], "response_format": 5},
        '"response_format" is 5, in which nothing is read',
    ),
    "one of several samplings": (
        {"text": ["x"], "sampling_params": [{"regex": "a+"}, {"regex": 5}]},
        '"sampling_params.regex" is 5, not a string',
    ),
    "a body that is cut": (
        {"body": '{"messages": [], "tools": [{"type": "func'},
        '"body" is text that is no JSON',
    ),
    "a misspelt case": ({"messages": [], "shema": CITY}, 'is "shema" a misspelt "schema"?'),
    "text of a schema that is no JSON": (
        {"messages": [], "response_format": '{"schema": {'},
        '"response_format" is text that is no JSON',
    ),
    "a misspelt format": (
        {"messages": [], "response_fromat": FORM},
        'a key that is not read; is "response_fromat" a misspelt "response_format"?',
    ),
    "the name of a file": ({"json_schema": "./schema.json", "out": "x"}, "neither a case nor a JSON Schema"),
    "the name of a language": ({"name": "x", "grammar": "english"}, "neither a case nor a JSON Schema"),
    "a parameter called grammar": (
        {"parameters": {"grammar": {"type": "string"}}},
        "neither a case nor a JSON Schema",
    ),
    "an empty grammar": ({"prompt": "x", "grammar": ""}, "neither a case nor a JSON Schema"),
    "an empty regex": (request("regex", ""), "request.json is a request without tools or a format"),
    "no regex and no EBNF": (
        {"tools": [], "regex": None, "ebnf": None},
        "request.json is a request without tools or a format",
    ),
    "tools that are no JSON": ({"tools": "[{", "answers": "[]"}, '"tools" is text that is no JSON'),
    "a misspelt tool alone": (
        {"tools": [{"type": "fucntion", "name": "x"}], "response_format": FORM},
        'tool 1 is of type "fucntion", which is not read; leave it out, or make it a "function"',
    ),
    "a further type that needs its value": (
        request("response_format", {"type": "json", "shema": CITY}),
        '"response_format" is of type json and has no "schema"',
    ),
    "two schemas for one kind of output": (
        request("response_format", [OF_GEMINI, OF_GEMINI]),
        '"response_format" has 2 schemas; write a request for each',
    ),
    "a list without a format": (
        request("response_format", ["json"]),
        '"response_format" is ["json"], in which nothing is read',
    ),
    "Converse's format without its schema": (
        request("outputConfig.textFormat.structure.jsonSchema", {"name": "answer"}),
        '"outputConfig.textFormat.structure.jsonSchema" has no "schema"',
    ),
    "nothing": (request("output_format", {"type": "json_schema"}), '"output_format" has no schema; write'),
    "a mode": (request("format", "json"), "request.json is a request without tools or a format that is read"),
    "text alone": (
        request("response_format", {"type": "text"}),
        "request.json is a request without tools or a format that is read",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_gets_one_line(name: str, tmp_path: Path) -> None:
    value, said = BAD[name]
    with pytest.raises(BadInput) as caught:
        read(tmp_path, value)
    assert said in str(caught.value) and "request.json" in str(caught.value)
    assert "\n" not in str(caught.value)


UNREAD: dict[str, dict[str, Any]] = {
    "a misspelt format": {"response_fromat": FORM},
    "a misspelt key of vLLM's": {"guided_jsn": CITY},
    "a misspelt key of Gemini's": {"generationConfig": {"responseSchem": OPENAPI, "topP": 1}},
    "a misspelt key of SGLang's": {"sampling_params": {"json_schma": json.dumps(CITY)}},
    "a format without a type": {"response_format": {"schema": CITY}},
    "what stands inside a format": {"response_format": {"name": "answer", "schema": CITY, "strict": True}},
    "the text of one": {"response_format": json.dumps({"schema": CITY})},
    "a misspelt schema": {"response_format": {"type": "json_object", "shema": CITY}},
    "a format of Responses without a type": {"text": {"format": {"name": "answer", "schema": CITY}}},
    "Converse's without its structure": {"outputConfig": {"textFormat": {"jsonSchema": {"schema": "{}"}}}},
    "Gemini's with a misspelt schema": {"generationConfig": {"responseFormat": {"text": {"shema": CITY}}}},
    "Anthropic's without a type": {"output_config": {"format": {"schema": CITY}}},
    "a misspelt constraint beside JSON mode": {"structured_outputs": {"json_object": True, "jsn": CITY}},
}


@pytest.mark.parametrize(
    ("place", "held", "advice"),
    [
        ("regex_pattern", "a+", 'write "guided_regex"'),
        ("grammar_string", EBNF, 'write "guided_grammar"'),
        ("structured_outputs.disable_additional_properties", True, 'write "additionalProperties": false'),
        ("sampling_params.guided_decoding.disable_additional_properties", True, 'write "additionalProp'),
    ],
)
def test_what_else_a_server_holds_an_answer_to_is_not_lost(
    place: str, held: object, advice: str, tmp_path: Path
) -> None:
    """Beside tools it was lost without a word."""
    for more in ({}, {"tools": [WEATHER]}):
        with pytest.raises(BadInput) as caught:
            read(tmp_path, {**request(place, held), **more})
        assert f'request.json: "{place}" is not read; {advice}' in str(caught.value)
    for nothing in ("", False, None):
        assert len(read(tmp_path, {**request(place, nothing), "tools": [WEATHER]})) == 1
    assert len(read(tmp_path, {"tools": [WEATHER], "regex_pattern": "a+"})) == 1


@pytest.mark.parametrize("name", UNREAD)
def test_a_format_that_is_not_read_is_refused_also_beside_tools(name: str, tmp_path: Path) -> None:
    """A schema of the user's is never dropped silently."""
    refused = []
    for tools in ([], [WEATHER]):
        with pytest.raises(BadInput) as caught:
            read(tmp_path, {"model": "m", "messages": [], "tools": tools, **UNREAD[name]})
        refused.append(str(caught.value))
        assert "in which nothing is read" in refused[-1] or "a key that is not read; is " in refused[-1]
    assert refused[0] == refused[1]


def test_a_list_of_tools_may_have_keys_of_its_own(tmp_path: Path) -> None:
    (case,) = read(tmp_path, {"tools": [WEATHER], "formats": {"a": 1}, "schemas": {"a": CITY}})
    assert case.name == "weather"
    with pytest.raises(BadInput, match=r'"response_format" is {"schema": .*, in which nothing is read'):
        read(tmp_path, {"tools": [WEATHER], "response_format": {"schema": CITY}})


ORDINARY: dict[str, dict[str, Any]] = {
    "its schemas": {"schemas": {"Order": CITY}},
    "its formats": {"formats": {"a": 1}},
    "a number as a format": {"format": 2},
    "names of formats": {"output_format": ["json", "md"]},
    "a format of what it wraps": {"config": {"format": {"date": "iso"}}},
    "a list of what came of it": {"data": [{"messages": []}]},
}


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("more", [{}, {"model": "m", "messages": []}])
def test_ordinary_words_beside_tools_refuse_no_request(
    name: str, more: dict[str, Any], tmp_path: Path
) -> None:
    (case,) = read(tmp_path, {"tools": [WEATHER], **more, **ORDINARY[name]})
    assert case.name == "weather"


def test_a_format_is_one_in_a_request_only(tmp_path: Path) -> None:
    """Ollama's requests have a schema there; a list of tools has what its user likes."""
    tools = {"tools": [WEATHER], "format": {"name": "chatml"}}
    assert [case.name for case in read(tmp_path, tools)] == ["weather"]
    with pytest.raises(BadInput, match=r'"format" is .*, in which nothing is read'):
        read(tmp_path, {"model": "m", "messages": [], **tools})


@pytest.mark.parametrize("held", [[], {"required": "please fill in"}])
@pytest.mark.parametrize("key", ["messages", "contents", "sampling_params", "tools"])
def test_a_schema_may_have_the_key_of_a_request(key: str, held: object, tmp_path: Path) -> None:
    """Keywords of one's own are allowed in a schema; forms have messages in theirs."""
    schema = {"type": "object", "required": ["a"], key: held}
    assert [json.loads(case.grammar.text) for case in read(tmp_path, schema)] == [schema]


@pytest.mark.parametrize(
    "empty", [{"functionDeclarations": []}, {}, None, {"mcpServers": []}, {"functionDeclarations": None}]
)
def test_an_empty_tool_is_none(empty: object, tmp_path: Path) -> None:
    request = {"contents": [], "tools": [empty], "generationConfig": {"responseSchema": OPENAPI}}
    assert [json.loads(case.grammar.text) for case in read(tmp_path, request)] == [CITY]


def test_a_tool_with_parameters_may_have_the_key_of_another_server(tmp_path: Path) -> None:
    for definitions in (None, {"city": {"type": "str"}}):
        tool = {"name": "x", "parameters": CITY, "parameter_definitions": definitions}
        (case,) = read(tmp_path, {"messages": [], "tools": [tool]})
        assert json.loads(case.grammar.text) == CITY


def test_the_arguments_of_googles_sdk_have_tools(tmp_path: Path) -> None:
    tool = {"functionDeclarations": [{"name": "weather", "parameters": OPENAPI}]}
    (case,) = read(tmp_path, {"model": "m", "contents": "x", "config": {"tools": [tool]}})
    assert case.name == "weather"


def test_what_may_be_left_empty_in_a_request_is_nothing(tmp_path: Path) -> None:
    for form in ({"type": "json_object", "schema": ""}, {"type": "json_object", "schema": None}):
        (case,) = read(tmp_path, {"messages": [], "tools": [WEATHER], "response_format": form})
        assert case.name == "weather"


def test_objects_on_the_way_to_a_format_may_be_text(tmp_path: Path) -> None:
    inner = json.dumps({"structured_outputs": json.dumps({"regex": "a+"})})
    (case,) = read(tmp_path, {"text": "{x}", "sampling_params": inner})
    assert case.grammar.text == "a+"
    broken = {"text": "x", "sampling_params": {"guided_decoding": '{"schema"'}}
    with pytest.raises(BadInput, match=r'"sampling_params\.guided_decoding" is text that is no JSON'):
        read(tmp_path, broken)


def test_the_arguments_of_googles_sdk_have_a_format(tmp_path: Path) -> None:
    for key in ("response_format", "responseFormat"):
        config = {key: {"text": {"mime_type": "application/json", "schema": CITY}}}
        (case,) = read(tmp_path, {"model": "m", "contents": "x", "config": config})
        assert json.loads(case.grammar.text) == CITY


def test_a_dump_of_vllms_parameters_is_read(tmp_path: Path) -> None:
    """It has no key that marks a request, and names what was not chosen."""
    guided = {"json": CITY, "regex": None, "choice": None, "grammar": None, "backend": "xgrammar"}
    for value in (guided, json.dumps(guided)):
        (case,) = read(tmp_path, {"n": 1, "temperature": 0.0, "guided_decoding": value})
        assert json.loads(case.grammar.text) == CITY


def test_a_function_may_have_no_parameters(tmp_path: Path) -> None:
    for key in ("tools", "functions"):
        (case,) = read(tmp_path, {"messages": [], key: [{"name": "ping", "description": "d"}]})
        assert (case.name, json.loads(case.grammar.text)) == ("ping", {"type": "object", "properties": {}})


TIME = {"name": "time", "description": "now"}
BUILT_IN: dict[str, tuple[Any, str]] = {
    "Anthropic": ({"type": "web_search_20250305", "name": "web_search"}, "web_search_20250305"),
    "OpenAI": ({"type": "mcp", "server_label": "x"}, "mcp"),
    "Gemini": ({"googleSearch": {}}, "googleSearch"),
    "Bedrock": ({"cachePoint": {"type": "default"}}, "cachePoint"),
    "free text": ({"type": "custom", "custom": {"name": "code", "format": {"type": "text"}}}, "custom"),
    "a search beside functions": ({"functionDeclarations": [TIME], "googleSearch": {}}, "googleSearch"),
}


@pytest.mark.parametrize("server", BUILT_IN)
def test_a_tool_of_the_servers_own_is_left_out_and_named(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry, kind = BUILT_IN[server]
    *_, case = read(tmp_path, {"tools": [entry, WEATHER]})
    path = tmp_path / "request.json"
    number = 2 if "functionDeclarations" in entry else 1
    assert (case.name, case.left_out) == ("weather", (f"tool {number} ({kind}) of {path}",))
    *_, case = read(tmp_path, {"tools": [entry], "response_format": FORM})
    assert (case.name, case.left_out) == ("answer", (f"tool {number} ({kind}) of {path}",))
    if server != "Gemini":
        return
    read(tmp_path, {"tools": [WEATHER, entry]})
    words = ["run", str(path), "--backends", "unconstrained", "--vocabularies", "bytes", "--effort", "0"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    said = f"request: 1 tool left out, not read: tool 2 ({kind}) of "
    assert said in " ".join(capsys.readouterr().err.split())
