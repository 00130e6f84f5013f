"""The forms in which xgrammar takes a vocabulary, and a grammar of each dialect."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from xgrammar import StructuralTagItem, TokenizerInfo
from xgrammar.tokenizer_info import VocabType

from harness import Grammar, Layout, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Dialect
from harness.backend.known_tokens import Loader, folder_to_load, own_loader_at_work
from harness.backend.layout import COMPACT, with_delete_escaped
from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.own_tokenizer import own_tokenizer

from ._xgrammar_releases import ENDS_AT_CHARACTERS, HAS_LARK, TAGS_ARE_ITEMS

LARK: tuple[Dialect, ...] = ("lark",) if HAS_LARK else ()
DIALECTS: frozenset[Dialect] = frozenset({"json_schema", "regex", "ebnf", *LARK, "choice", "structural_tag"})
"""What the library takes; older releases have no Lark."""
ENGINES = {
    "vllm": {"engine=vllm": "--structured-outputs-config.backend xgrammar"},
    "sglang": {"engine=sglang": "--grammar-backend xgrammar"},
}
"""The serving engines that have the library, with their options for it."""
DOCUMENTED = {
    "property_order": "Properties follow the schema's order unless any_order is set "
    "(docstring of compile_json_schema).",
    "regex_dialect_ecma": "The regex grammar follows JavaScript, ECMA 262 "
    "(docstring of xgrammar.testing._regex_to_ebnf).",
    "regex_dialect_javascript": "The same sentence does not say that the u flag is set: "
    "an escaped letter may be the letter.",
}
if ENDS_AT_CHARACTERS:
    DOCUMENTED |= dict.fromkeys(
        ("inside_a_character", "starts_inside_a_character"),
        "Forced text contains only complete UTF-8 characters (docstring of find_jump_forward_string).",
    )
SEPARATORS = {"any": None, "json_dumps": (", ", ": "), "compact": (",", ":")}
"""What stands between the items of a JSON text, and between a key and its value."""

# "Whether to use any whitespace", "the order of the properties in the schema" and "strict mode ... will not
# allow properties and items that is not specified" (docstring of compile_json_schema). Of strings and numbers
# the library says nothing; a constant holds U+007F escaped, and a free string may.
ANY_WHITESPACE = with_delete_escaped(replace(COMPACT, separators=None))

# Every refusal is a plain RuntimeError with a logged position: `[12:00:00] /project/cpp/file.cc:1: reason`.
# One of Lark has the place in the grammar instead: `Lark error at line 1, column 2: reason`. A check that
# gives no reason, one that the library itself calls internal, and an error without a position (out of memory,
# a C++ exception), is a fault and escapes.
REFUSAL = re.compile(
    r"(?:\[[\d:]+\] \S+:\d+: (?!Internal check failed: )(?:Check failed: \(.*?\) is false: ?)?|"
    r"(?=Lark error at ))(?P<reason>.*)",
    re.DOTALL,
)

# The library does not tell "I cannot" from "you are wrong"; these are its words for the first. `Unsupported
# type "foo"` is no JSON type and so the input's mistake; an unsatisfiable schema is called wrong too.
UNSUPPORTED = re.compile(
    r"not (?:yet )?supported|currently support|[Uu]nsupported (?!type \")|exceed(?:s|ed)\b|too (?:large|many)"
)


def refusal_of(error: RuntimeError) -> Exception | None:
    """Returns the refusal that an error of the library is; None where it is a fault."""
    refused = REFUSAL.match(str(error))
    reason = refused["reason"].strip() if refused else ""
    return parts.refusal(reason, UNSUPPORTED) if reason else None


def layout_of(
    separators: tuple[str, str] | None, open_objects: bool, any_order: bool, most_white_space: int
) -> Layout:
    """Returns the layout that the options ask for. Raises ValueError where they contradict each other."""
    layout = replace(
        ANY_WHITESPACE,
        separators=separators and (separators[0][1:].encode(), separators[1][1:].encode()),
        order="any" if any_order else "listed",
        unlisted="last" if open_objects else "asked",
        further_items=open_objects,
    )
    return parts.bounded_white_space(layout, most_white_space)


def compiler_call(grammar: Grammar, schema_options: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """Returns the name of the compiler's method for the dialect, the text that it takes (of structural tags
    before 0.1.25 a list of objects), and its options.

    `schema_options` are those of `compile_json_schema`. Raises UnsupportedGrammar or InvalidGrammar.
    """
    match grammar.dialect:
        case "json_schema":
            return "compile_json_schema", grammar.text, schema_options
        case "regex":
            return "compile_regex", grammar.text, {}
        case "ebnf":
            return "compile_grammar", grammar.text, {}
        case "lark":
            return "compile_lark", grammar.text, {}
        case "choice":
            return "compile_grammar", _rule_of(grammar.text), {}
        case "structural_tag":
            if schema_options["separators"] is not None:
                raise UnsupportedGrammar("xgrammar has no whitespace option for structural tags")
            if TAGS_ARE_ITEMS:
                return "compile_structural_tag", *_structural_tag_items(grammar.text)
            of_schemas = {
                name: value for name, value in schema_options.items() if name in OPTIONS_IN_TAGS and value
            }
            return "compile_structural_tag", _structural_tag(grammar.text, of_schemas), {}


def _rule_of(text: str) -> str:
    """Returns the choice as the library's EBNF."""
    return "root ::= " + " | ".join(map(_literal, parts.choices_of(text)))


def _literal(text: str) -> str:
    """Returns the text as a string of GBNF. All but plain ASCII is escaped with eight digits, so that no
    digit that follows is taken for the escape's."""
    plain = (char if " " <= char <= "~" and char not in '"\\' else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(plain)}"'


OPTIONS_IN_TAGS = ("any_order", "max_whitespace_cnt")
"""The options of `compile_json_schema` that are fields of a schema in a structural tag too."""


def _structural_tag(text: str, of_schemas: dict[str, Any]) -> str:
    """Returns the structural tag in the library's form, with these fields for each schema. The new form is
    passed as it is."""
    if parts.format_of(text) is not None:
        if of_schemas:
            raise UnsupportedGrammar(
                f"in a structural tag of the new form, {' and '.join(of_schemas)} is a field of each schema"
            )
        return text
    triggers, structures = parts.structural_tag_of(text)
    tags = [
        {
            "type": "tag",
            "begin": tag.begin,
            "content": {"type": "json_schema", "json_schema": tag.schema, **of_schemas},
            "end": tag.end,
        }
        for tag in structures
    ]
    return json.dumps(
        {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": triggers, "tags": tags}}
    )


def _structural_tag_items(text: str) -> tuple[list[StructuralTagItem], dict[str, Any]]:
    """Returns the structural tag as releases before 0.1.25 take it: the tags, and the triggers as an
    option."""
    if parts.format_of(text) is not None:
        raise UnsupportedGrammar("this version of xgrammar has no structural tags of the new form")
    triggers, structures = parts.structural_tag_of(text)
    tags = [
        StructuralTagItem(begin=tag.begin, schema=json.dumps(tag.schema), end=tag.end) for tag in structures
    ]
    return tags, {"triggers": triggers}


def tokenizer_info(
    vocabulary: Vocabulary, loader: Loader, *, with_names: bool = False
) -> tuple[Loader, TokenizerInfo]:
    """Returns how the library came to know the tokens, and what it knows of them. Raises
    UnsupportedVocabulary.

    `with_names` gives special tokens their names for bytes, as the library's own loader does: it refuses the
    id of a token without bytes, even where a structural tag asks for it.
    """
    ends, folder = list(vocabulary.eos_tokens), folder_to_load(vocabulary, loader)
    if folder is not None:
        with own_loader_at_work("xgrammar"):
            return "library", TokenizerInfo.from_huggingface(
                own_tokenizer(folder), vocab_size=vocabulary.size, stop_token_ids=ends
            )
    # The library takes an empty token for a special one and allows neither, so specials and padding are
    # passed as they are.
    tokens, raw = list(vocabulary.tokens), VocabType.RAW
    if with_names:
        for token, name in vocabulary.special_tokens.items():
            tokens[token] = tokens[token] or name.encode()
    return "bytes", TokenizerInfo(tokens, raw, vocab_size=vocabulary.size, stop_token_ids=ends)
