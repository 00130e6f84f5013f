"""Logs of tools that observe, of SDKs and of gateways are suites: each shape is from the source named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from request_bodies import CITY, WEATHER, read

from harness.cases.suite import Passed, find_suite, read_cases
from harness.errors import BadInput

ORDER: dict[str, Any] = {"type": "object", "properties": {"order": {"type": "integer"}}}
FUNCTION: dict[str, Any] = {"name": "weather", "parameters": CITY}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": ORDER}}
BOTH = {"tools": [WEATHER], "response_format": FORM}
REQUEST: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}], **BOTH}
TOOL_OF_PYDANTIC_AI = {
    "name": "weather",
    "parameters_json_schema": CITY,
    "description": "d",
    "outer_typed_dict_key": None,
    "strict": None,
    "sequential": False,
    "kind": "function",
    "metadata": None,
}
PARAMETERS = {
    "function_tools": [TOOL_OF_PYDANTIC_AI],
    "builtin_tools": [],
    "output_mode": "native",
    "output_object": {"json_schema": ORDER, "name": "answer", "description": None, "strict": None},
    "output_tools": [],
    "prompted_output_template": None,
    "allow_text_output": True,
}
FORMS: dict[str, dict[str, Any]] = {
    # langchain-ai/langsmith-sdk, python/langsmith/wrappers/_openai.py: the arguments of the call
    "LangSmith's wrapper of OpenAI's client": {
        "id": "r",
        "name": "ChatOpenAI",
        "run_type": "llm",
        "inputs": REQUEST,
        "outputs": {},
    },
    # the same of Responses
    "LangSmith's wrapper of Responses": {
        "run_type": "llm",
        "inputs": {
            "model": "m",
            "input": "x",
            "tools": [{"type": "function", **FUNCTION}],
            "text": {"format": {"type": "json_schema", "name": "answer", "schema": ORDER}},
        },
    },
    # what LangChain's chat models tell LangSmith: extra.invocation_params
    "LangSmith's run of LangChain": {
        "id": "r",
        "run_type": "llm",
        "inputs": {"messages": [[{"lc": 1, "type": "constructor", "id": [], "kwargs": {"content": "x"}}]]},
        "extra": {"invocation_params": {"model": "m", "_type": "openai-chat", **BOTH}, "metadata": {}},
    },
    # langfuse/langfuse-python, langfuse/openai.py: OpenAiArgsExtractor
    "Langfuse": {
        "type": "GENERATION",
        "model": "m",
        "input": {"tools": [WEATHER], "messages": []},
        "metadata": {"response_format": FORM},
    },
    # braintrustdata/braintrust-sdk, py/src/braintrust/oai.py: _parse_params
    "Braintrust": {
        "span_attributes": {"type": "llm", "name": "Chat Completion"},
        "input": [{"role": "user", "content": "x"}],
        "output": [],
        "metadata": {"model": "m", "provider": "openai", **BOTH},
    },
    # comet-ml/opik, openai_chat_completions_decorator.py: KWARGS_KEYS_TO_LOG_AS_INPUTS
    "Opik": {
        "name": "chat_completion_create",
        "type": "llm",
        "input": {"messages": []},
        "metadata": {"created_from": "openai", "model": "m", **BOTH},
        "model": "m",
    },
    # pydantic/pydantic-ai, pydantic_ai/models/__init__.py: ModelRequestParameters, as in Temporal's payloads
    "Pydantic AI": {"messages": [{"parts": [], "kind": "request"}], "model_request_parameters": PARAMETERS},
    "Pydantic AI's parameters alone": PARAMETERS,
    # help.aliyun.com, qwen-api-via-dashscope, as public clients quote it
    "DashScope": {
        "model": "qwen-plus",
        "input": {"messages": []},
        "parameters": {"result_format": "message", **BOTH},
    },
    # AWS, "Data capture" of SageMaker's model monitor
    "SageMaker's data capture": {
        "captureData": {
            "endpointInput": {
                "observedContentType": "application/json",
                "mode": "INPUT",
                "data": json.dumps(REQUEST),
                "encoding": "JSON",
            }
        },
        "eventMetadata": {"eventId": "e"},
        "eventVersion": "0",
    },
    # the column of Vertex AI's log of requests in BigQuery
    "Vertex's log": {
        "endpoint": "e",
        "full_request": {
            "contents": [],
            "tools": [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": CITY}]}],
            "generationConfig": {"responseJsonSchema": ORDER},
        },
    },
    # ai.google.dev/api/live: BidiGenerateContentSetup
    "the first message of Gemini's Live": {
        "setup": {
            "model": "m",
            "tools": [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": CITY}]}],
            "generationConfig": {"responseJsonSchema": ORDER},
        }
    },
    # kevin1024/vcrpy, its JSON serializer
    "VCR's cassette": {
        "version": 1,
        "interactions": [
            {"request": {"method": "GET", "uri": "u", "body": None, "headers": {}}, "response": {}},
            {"request": {"method": "POST", "uri": "u", "body": json.dumps(REQUEST)}, "response": {}},
        ],
    },
    # stanfordnlp/dspy, the entries of LM.history
    "DSPy's history": {"prompt": None, "messages": [], "kwargs": BOTH, "response": {}, "model": "m"},
    # BerriAI/litellm, litellm/types/utils.py: StandardLoggingPayload, RawRequestTypedDict
    "LiteLLM's payload": {
        "standard_logging_object": {"model": "m", "messages": [], "model_parameters": BOTH},
    },
    "LiteLLM's raw request": {"raw_request_api_base": "u", "raw_request_body": REQUEST},
    "LiteLLM's arguments of a callback": {
        "model": "m",
        "messages": [],
        "additional_args": {"complete_input_dict": REQUEST},
    },
    # rows that train models, and the AI SDK's spans: lists of texts
    "tools as texts": {"messages": [], "tools": [json.dumps(WEATHER)], "response_format": json.dumps(FORM)},
    "parameters as text": {
        "messages": [],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": json.dumps(CITY)}}],
        "response_format": FORM,
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
def test_the_tool_and_the_format_of_each_form_are_read(form: str, name: str, tmp_path: Path) -> None:
    cases = read(tmp_path, FORMS[form], name)
    assert [json.loads(case.grammar.text) for case in cases] == [CITY, ORDER]
    assert cases[0].name == "weather" and cases[1].name in ("answer", "log", "log.jsonl:1")


def test_the_tools_of_azures_evaluations_are_read(tmp_path: Path) -> None:
    """A row of Azure AI's evaluations, from their public test data."""
    tools = [{"name": "weather", "description": "d", "parameters": CITY}]
    (case,) = read(tmp_path, {"query": "q", "response": "r", "tool_definitions": tools})
    assert (case.name, json.loads(case.grammar.text)) == ("weather", CITY)


def test_a_tool_of_pydantic_ai_may_be_the_output(tmp_path: Path) -> None:
    tool = {**TOOL_OF_PYDANTIC_AI, "name": "final_result", "kind": "output"}
    value = {**PARAMETERS, "output_mode": "tool", "output_object": None, "output_tools": [tool]}
    assert [case.name for case in read(tmp_path, value)] == ["weather", "final_result"]


def test_runs_that_ask_no_model_are_named(tmp_path: Path) -> None:
    """A trace has runs of chains and of tools too."""
    lines = [
        FORMS["LangSmith's run of LangChain"],
        {"run_type": "chain", "inputs": {"question": "x"}, "outputs": {}},
        {
            "run_type": "tool",
            "inputs": {"input": "{'city': 'Oslo'}"},
            "extra": {"metadata": {"tools": ["a"]}},
        },
        {"span_attributes": {"type": "task"}, "input": {"question": "x"}, "metadata": {"model": "m"}},
    ]
    path, passed = tmp_path / "runs.jsonl", Passed()
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert len(list(read_cases(find_suite(str(path)), passed))) == 2
    assert list(passed.unheld) == [f"{path}:{number}" for number in (2, 3, 4)]


SPANS: dict[str, dict[str, Any]] = {
    # opentelemetry.io, semantic conventions of GenAI: "MAY be recorded as a JSON string"; and
    # traceloop/openllmetry, opentelemetry-semantic-conventions-ai: LLM_REQUEST_STRUCTURED_OUTPUT_SCHEMA
    "OpenTelemetry": {
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **FUNCTION}]),
        "gen_ai.request.structured_output_schema": json.dumps(ORDER),
    },
    # vercel/ai, packages/ai, stream-text.ts: tools.map(tool => JSON.stringify(tool))
    "the AI SDK": {
        "ai.prompt.tools": [json.dumps({"type": "function", "name": "weather", "inputSchema": CITY})],
        "llm.request.structured_output_schema": json.dumps(ORDER),
    },
    # traceloop/openllmetry, opentelemetry-instrumentation-openai, its tests
    "OpenLLMetry": {
        "llm.request.functions.0.name": "weather",
        "llm.request.functions.0.description": "d",
        "llm.request.functions.0.parameters": json.dumps(CITY),
        "gen_ai.request.structured_output_schema": json.dumps(ORDER),
    },
    # arize-ai.github.io/openinference/spec: llm.tools.{i}.tool.json_schema, llm.invocation_parameters
    "OpenInference": {
        "openinference.span.kind": "LLM",
        "llm.tools.0.tool.json_schema": json.dumps(WEATHER),
        "llm.invocation_parameters": json.dumps({"model": "m", "temperature": 0, "response_format": FORM}),
    },
    # pydantic/pydantic-ai, models/instrumented.py
    "Pydantic AI": {"model_request_parameters": json.dumps(PARAMETERS)},
}


def of_otlp(value: object) -> dict[str, Any]:
    """Returns the value of an attribute as OTLP's JSON has it."""
    if isinstance(value, list):
        return {"arrayValue": {"values": list(map(of_otlp, value))}}
    if isinstance(value, dict):
        pairs = [{"key": key, "value": of_otlp(held)} for key, held in value.items()]
        return {"kvlistValue": {"values": pairs}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # an int64 is text there
    if isinstance(value, float):
        return {"doubleValue": value}
    return {} if value is None else {"stringValue": value}


def exported(*spans: dict[str, Any]) -> dict[str, Any]:
    """Returns a line as the collector's exporter to files writes it."""
    made = [
        {
            "traceId": "1",
            "spanId": str(number),
            "name": "chat",
            "attributes": [{"key": key, "value": of_otlp(value)} for key, value in span.items()],
        }
        for number, span in enumerate(spans)
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": made}]}]}


@pytest.mark.parametrize("form", SPANS)
def test_spans_tell_of_tools_and_formats(form: str, tmp_path: Path) -> None:
    for value in ({"name": "chat", "attributes": SPANS[form]}, exported(SPANS[form])):
        for name in ("log.json", "log.jsonl"):
            cases = read(tmp_path, json.dumps(value), name)
            assert [json.loads(case.grammar.text) for case in cases] == [CITY, ORDER]
            assert cases[0].name == "weather"


def test_spans_that_tell_of_no_request_are_named(tmp_path: Path) -> None:
    path, passed = tmp_path / "spans.jsonl", Passed()
    other = {"http.request.method": "GET", "url.full": "u"}
    line = json.dumps(exported(other, SPANS["OpenLLMetry"], {}, SPANS["OpenLLMetry"]))
    path.write_text(line.replace(', "attributes": []', ""), "utf-8")
    assert len(list(read_cases(find_suite(str(path)), passed))) == 2
    assert (list(passed.unheld), passed.repeated) == ([f"{path}:1: request 1", f"{path}:1: request 3"], 2)


def test_a_span_with_several_tools_keeps_them_apart(tmp_path: Path) -> None:
    attributes = {
        f"llm.request.functions.{number}.{key}": value
        for number, schema in ((10, ORDER), (2, CITY))
        for key, value in (("parameters", json.dumps(schema)), ("name", f"tool {number}"))
    }
    cases = read(tmp_path, {"attributes": attributes})
    assert [(case.name, json.loads(case.grammar.text)) for case in cases] == [
        ("tool 2", CITY),
        ("tool 10", ORDER),
    ]


def test_a_span_whose_tools_are_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r'log\.json: "tools" is text that is no JSON'):
        read(tmp_path, {"attributes": {"gen_ai.tool.definitions": '[{"name": "wea…'}}, "log.json")
    with pytest.raises(BadInput, match=r'tool 1 \("weather"\): "parameters" is text that is no JSON'):
        read(
            tmp_path,
            {"attributes": SPANS["OpenLLMetry"] | {"llm.request.functions.0.parameters": '{"type'}},
            "log.json",
        )


def test_definitions_of_a_span_may_be_no_text_and_keep_their_numbers(tmp_path: Path) -> None:
    properties = {
        "stars": {"enum": [1, 2, -3, 2.5, 10**17 + 1, None, True, "1", []]},
        "tags": {"type": "array", "maxItems": 3, "items": {}},
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    line = exported({"gen_ai.tool.definitions": [{"type": "function", "name": "x", "parameters": schema}]})
    for written in (json.dumps(line), json.dumps(line).replace('"intValue": "3"', '"intValue": 3')):
        (case,) = read(tmp_path, written, "log.jsonl")
        assert case.grammar.text == json.dumps(schema)


@pytest.mark.parametrize(
    "held",
    [
        {"bytesValue": "AA=="},
        {"doubleValue": "NaN"},
        {"intValue": "x"},
        {"intValue": True},
        {"stringValue": 5},
    ],
)
def test_a_value_of_a_span_that_json_does_not_have_is_refused_where_it_is_read(
    held: dict[str, Any], tmp_path: Path
) -> None:
    for key in ("gen_ai.tool.definitions", "some.other"):
        line = exported(SPANS["Pydantic AI"])
        listed = line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
        listed.append({"key": key, "value": {"arrayValue": {"values": [held]}}})
        if key == "some.other":
            assert len(read(tmp_path, line)) == 2
        else:
            with pytest.raises(BadInput, match=f'request 1: "{key}".* is no (value of )?JSON'):
                read(tmp_path, line)


def test_a_function_without_parameters_does_not_take_the_place_of_its_definition(tmp_path: Path) -> None:
    defined = {"gen_ai.tool.definitions": json.dumps([{"type": "function", **FUNCTION}])}
    named = {"llm.request.functions.0.name": "weather"}
    whole = {**named, "llm.request.functions.0.parameters": json.dumps(CITY)}
    names_alone = {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "weather"}])}
    for attributes in (defined | named, named | defined, defined | whole, names_alone | whole, whole):
        for value in ({"attributes": attributes}, exported(attributes)):
            (case,) = read(tmp_path, value)
            assert (case.name, json.loads(case.grammar.text)) == ("weather", CITY)
    (case,) = read(tmp_path, {"attributes": named})
    assert json.loads(case.grammar.text) == {"type": "object", "properties": {}}
