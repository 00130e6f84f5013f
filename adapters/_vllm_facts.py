"""What a user of vLLM must know beside what its backends do, as vLLM 0.33.0 has it."""

from __future__ import annotations

FACTS = {
    "vllm": {
        "release": "vLLM 0.33.0",
        # `_apply_structural_tag` of vllm/parser/abstract_parser.py, `adjust_request` of
        # vllm/tool_parsers/abstract_tool_parser.py; a structural tag passes no check of its schemas.
        "tool_backends": {"xgrammar": "open_objects=false"},
        "of_tools": (
            "vLLM 0.33.0 makes a structural tag of tools that say `strict: true`, of required and of named "
            "ones (with the tool parsers for Hermes, Llama, Qwen3-Coder, DeepSeek, Kimi, GLM and more), and "
            "of its backends only xgrammar takes one: with guidance or outlines these calls fail. The "
            "arguments of a tool that is not strict are not constrained, and under `tool_choice: auto` "
            "nothing is if no tool is strict, unless --tool-strict-level says more. All tools of a request "
            "are in one grammar: one that is refused refuses the request."
        ),
        # `_REMOVED_GUIDED_FIELDS` of vllm/entrypoints/serve/engine/protocol.py; SGLang's are no fields of it.
        "unread": (
            *("guided_", "sampling_params.guided_", "regex", "ebnf", "extra_body.regex", "extra_body.ebnf"),
            *("sampling_params.json_schema", "sampling_params.regex", "sampling_params.ebnf"),
            "sampling_params.structural_tag",
        ),
        "instead": "`structured_outputs` or `response_format`",
    }
}
