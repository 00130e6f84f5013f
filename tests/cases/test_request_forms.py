"""Logs of tools that observe, of SDKs and of gateways are suites: each shape is from the source named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from request_bodies import CITY, WEATHER, read

from harness.cases.suite import Passed, find_suite, read_cases

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
