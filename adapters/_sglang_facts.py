"""What a user of SGLang must know beside what its backends do, as SGLang 0.5.23 has it."""

from __future__ import annotations

FACTS = {
    "sglang": {
        "release": "SGLang 0.5.23",
        # `get_structure_constraint` of sglang/srt/function_call/function_call_parser.py, and the parsers with
        # a `get_structural_tag_name`; its wrapper of llguidance takes tags of the old form only.
        "of_tools": (
            "With the tool parsers for Qwen3-Coder, DeepSeek V3.2 and V4, Kimi and gpt-oss, SGLang 0.5.23 "
            "makes a structural tag of strict, required and named tools that only xgrammar takes: with "
            "llguidance these calls fail. Under `tool_choice: auto` hardly anything is constrained if no "
            "tool is strict. All tools of a request are in one grammar: one that is refused refuses the "
            "request."
        ),
        # ChatCompletionRequest of sglang/srt/entrypoints/openai/protocol.py has no such fields.
        "unread": (
            *("structured_outputs", "guided_", "sampling_params.structured_outputs"),
            "sampling_params.guided_",
        ),
        "instead": "`response_format`, or `regex` or `ebnf`",
    }
}
