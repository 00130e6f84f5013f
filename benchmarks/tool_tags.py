"""What the structural tags that xgrammar and vLLM make for a family of models take of the outputs of the suite
`tools`, with ten tools: a line for each family and choice. docs/tools.md has what it found.

    python benchmarks/tool_tags.py                     # xgrammar.get_model_structural_tag
    python benchmarks/tool_tags.py --vllm              # vllm.tool_parsers.structural_tag_registry, each tool `strict`
    python benchmarks/tool_tags.py --vllm --not-strict # the same of tools that do not say `strict`

The tags are those without thinking, compiled by xgrammar for one token a byte. vLLM's modules import far more
than its wrapper of grammars does: they need what docs/engines.md names for the environment of the engines.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "parts"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import xgrammar
from endings import script
from tool_suite import CHOICES, FAMILIES, Family, case, tools

from harness.errors import OK, BadInput

TOOLS = 10
SHOWN = 90
"""Characters of an output that are shown."""
NAMED = {"type": "function", "function": {"name": "weather"}}

TagOf = Callable[[Family, str, list[Any], Any], "list[tuple[str, Any]]"]
"""Returns for a family, a choice, the tools and the choice in the interface's form the tags by their names;
None for a tag that is not made."""


def of_xgrammar(family: Family, choice: str, offered: list[Any], wanted: Any) -> list[tuple[str, Any]]:
    """Returns the tag that xgrammar has for the family, if it has one."""
    try:
        tag = xgrammar.get_model_structural_tag(
            family.name, tools=offered, tool_choice=wanted, reasoning="disabled"
        )
    except ValueError as error:
        if "Unknown format" not in str(error):
            raise
        return []
    return [(family.name, tag)]


def of_vllm(family: Family, choice: str, offered: list[Any], wanted: Any) -> list[tuple[str, Any]]:
    """Returns the tags that vLLM has for the family: its own, or xgrammar's as vLLM asks for it. Raises
    BadInput where vLLM cannot be imported."""
    try:
        from vllm.entrypoints.openai.chat_completion import protocol  # type: ignore[import-not-found,unused-ignore]
        from vllm.tool_parsers import structural_tag_registry as registry  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise BadInput(f"{error}; docs/engines.md says how vLLM is installed for this") from error

    own = registry._VLLM_STRUCTURAL_TAG_REGISTRY
    models = [family.name, *(["hermes"] if family.name == "qwen_3" else [])]
    known = [model for model in models if model in own or model in registry.SUPPORTED_STRUCTURAL_TAG_MODELS]
    asked = [protocol.ChatCompletionToolsParam.model_validate(tool) for tool in offered]
    if isinstance(wanted, dict):
        wanted = protocol.ChatCompletionNamedToolChoiceParam.model_validate(wanted)
    return [
        (
            f"{model} (its own)" if model in own else model,
            registry.get_model_structural_tag(model, asked, wanted, reasoning=False),
        )
        for model in known
    ]


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(
        description="What the tags of libraries take of the suite of tool calls."
    )
    parser.add_argument("--vllm", action="store_true", help="vLLM's tags, not xgrammar's")
    parser.add_argument("--not-strict", action="store_true", help="tools do not say that they are strict")
    options = parser.parse_args(arguments)
    tags_of: TagOf = of_vllm if options.vllm else of_xgrammar
    vocabulary = [*(bytes([byte]) for byte in range(256)), b""]
    info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1)
    strict = {} if options.not_strict else {"strict": True}
    offered = [
        {"type": "function", "function": {"name": name, "parameters": schema} | strict}
        for name, schema in tools(TOOLS)
    ]
    for family in FAMILIES:
        for choice in CHOICES:
            for name, tag in tags_of(family, choice, offered, NAMED if choice == "named" else choice):
                print(f"{name}, {choice}: {verdict(family, choice, name, tag, compiler)}")
    return OK


def verdict(family: Family, choice: str, name: str, tag: Any, compiler: xgrammar.GrammarCompiler) -> str:
    """Returns in words what a tag makes of the outputs of a family."""
    if tag is None:
        return "there is no tag: nothing is constrained"
    compiled = compiler.compile_structural_tag(tag)
    wrong = []
    tests = case(family, TOOLS, choice)["tests"]
    for test in tests:
        # vLLM's tag for Kimi-K3 begins where the prompt with thinking ends, before the response is opened.
        begin = "<|open|>response<|sep|>" if name.startswith("kimi_k3 (") else ""
        if takes(compiled, begin + test["text"]) is not test["valid"]:
            word = "refuses" if test["valid"] else "takes"
            wrong.append(f"\n    {word} {json.dumps(test['text'], ensure_ascii=False)[:SHOWN]}")
    return f"{len(tests) - len(wrong)} of {len(tests)} right{''.join(wrong)}"


def takes(compiled: xgrammar.CompiledGrammar, text: str) -> bool:
    """Returns whether the text may be written, and may end."""
    matcher = xgrammar.GrammarMatcher(compiled)
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.is_completed()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
