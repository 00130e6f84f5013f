"""What the installed release of xgrammar has, of what not all releases have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import xgrammar
from xgrammar import CompiledGrammar, GrammarCompiler, GrammarMatcher


def _parameters(of: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(of).parameters


HAS_LARK = hasattr(GrammarCompiler, "compile_lark")
HAS_FORK = hasattr(GrammarMatcher, "fork")
HAS_JSON = hasattr(CompiledGrammar, "serialize_json")
HAS_BATCHES = hasattr(xgrammar, "BatchGrammarMatcher")
HAS_FORCED_TOKENS = hasattr(GrammarMatcher, "find_jump_forward_tokens")
"""True since 0.2.9."""
TELLS_COMPLETION = hasattr(GrammarMatcher, "is_completed")
"""Releases of 2025 do not say whether an output may end, but for their masks."""
TAGS_ARE_ITEMS = "triggers" in _parameters(GrammarCompiler.compile_structural_tag)
"""True before 0.1.25, which had structural tags of the old form only, and took them as a list of objects."""
ENDS_AT_CHARACTERS = "only complete UTF-8 characters" in (
    GrammarMatcher.find_jump_forward_string.__doc__ or ""
)
"""Does the release say of its forced text that it stops before a character of which not all is forced?"""

_HISTORY = _parameters(GrammarMatcher.__init__).get("max_rollback_tokens")
KEPT: dict[str, Any] = {} if _HISTORY is None or _HISTORY.default else {"max_rollback_tokens": 1 << 16}
"""The options of a matcher: older releases keep no history that they are not asked to keep."""


def schema_options(**options: Any) -> dict[str, Any]:
    """Returns the options of `compile_json_schema` that are set. Raises ValueError for one that the release
    does not have."""
    for option, value in options.items():
        if value and option not in _parameters(GrammarCompiler.compile_json_schema):
            raise ValueError(f"this version of xgrammar has no {option} for JSON Schema; leave it out")
    return {option: value for option, value in options.items() if value}


def compiler_options(dynamic: bool) -> dict[str, Any]:
    """Returns the options of a compiler that prepares masks when they are first needed, if it is to. Raises
    ValueError where the release cannot."""
    option = "enable_dynamic_compilation"
    if dynamic and option not in _parameters(GrammarCompiler.__init__):
        raise ValueError("this version of xgrammar prepares every mask in compiling; leave `dynamic` out")
    return {option: True} if dynamic else {}
