"""The form in which outlines-core takes a vocabulary, the regular expression that it takes for a grammar of
each dialect, and why it refuses one."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from outlines_core import Vocabulary as TokenMap
from outlines_core import json_schema

from harness import Grammar, InvalidGrammar, Layout, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.known_tokens import Loader, folder_to_load, own_loader_at_work
from harness.backend.layout import COMPACT
from harness.backend.vocabulary import Vocabulary

# Names keep the schema's order, and others are not foreseen (parse_properties of
# src/json_schema/parsing.rs).
CLOSED = replace(COMPACT, unlisted="never")
WHITESPACE: dict[str, tuple[str | None, Layout]] = {
    "any": (r"[\n\t\r ]*", replace(CLOSED, separators=None)),
    "library": (None, replace(CLOSED, separators=None, whitespace=b" ", longest_run=1)),
    "compact": ("", CLOSED),
}
"""The expression for what may stand between the parts of a JSON text, None for the library's own; and the
layout that follows from it."""


def whitespace_pattern(whitespace: str, most: int) -> tuple[str | None, Layout]:
    """Returns the expression for white space, of which at most so many characters stand in a row (0: no
    bound), and the layout that follows. Raises ValueError where the two options contradict each other."""
    pattern, layout = parts.option_value("whitespace", whitespace, WHITESPACE)
    layout = parts.bounded_white_space(layout, most)
    return (rf"[\n\t\r ]{{0,{most}}}" if most else pattern), layout


def pattern_of(grammar: Grammar, whitespace: str | None) -> str:
    """Returns the regular expression of the grammar. Raises UnsupportedGrammar or InvalidGrammar."""
    if grammar.dialect == "json_schema":
        return _pattern_of_schema(grammar.text, whitespace)
    if grammar.dialect == "choice":
        return _pattern_of_choice(grammar.text)
    if grammar.dialect == "regex":
        return grammar.text
    raise UnsupportedGrammar(f"outlines-core has no {grammar.dialect}")


def _pattern_of_schema(text: str, whitespace: str | None) -> str:
    try:
        return str(json_schema.build_regex_from_schema(text, whitespace))
    except TypeError as error:  # no JSON
        raise InvalidGrammar(str(error)) from error
    except ValueError as error:
        kind = InvalidGrammar if " must be " in str(error) else UnsupportedGrammar
        raise kind(str(error)) from error


def _pattern_of_choice(text: str) -> str:
    """Returns an alternation, longest first: the library's regular expressions are leftmost-first to the end,
    so that `a|ab` never matches `ab`."""
    choices = sorted(parts.choices_of(text), key=len, reverse=True)
    return f"({'|'.join(map(re.escape, choices))})"


def refusal(pattern: str, message: str) -> Exception:
    """Returns the exception for a pattern that the library refused. It has one message for a pattern that is
    wrong and for one with a construct that it lacks; Python's `re` tells which it is."""
    if "error building NFA" not in message:
        return UnsupportedGrammar(message)
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        return InvalidGrammar(f"{message}: {error}")
    return UnsupportedGrammar(message)


def token_map(vocabulary: Vocabulary, loader: Loader) -> tuple[Loader, TokenMap]:
    """Returns how the library came to know the tokens, and its map of them. Raises UnsupportedVocabulary."""
    folder = folder_to_load(vocabulary, loader)
    if folder is not None:
        with own_loader_at_work("outlines-core"), _hub_of(folder) as name:
            return "library", TokenMap.from_pretrained(name)
    ids: dict[bytes, list[int]] = {}
    for token, text in vocabulary.plain_tokens().items():
        ids.setdefault(text, []).append(token)
    return "bytes", TokenMap(vocabulary.eos_token, ids)


def end_of(known: TokenMap, vocabulary: Vocabulary) -> int:
    """Returns the id of end-of-sequence that the library allows. Its own loader takes a number in
    `generation_config.json` before the name in `tokenizer_config.json`."""
    end = known.get_eos_token_id()
    return end if end in vocabulary.eos_tokens else vocabulary.eos_token


@contextmanager
def _hub_of(folder: Path) -> Iterator[str]:
    """Makes a hub's cache that holds nothing but the folder, and gives the name by which it is found there:
    the library's loader takes no folder."""
    with tempfile.TemporaryDirectory() as home:
        hub = Path(home, ".cache", "huggingface")
        repository = hub / "hub" / "models--local--tokenizer"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text("local")
        (repository / "snapshots").mkdir()
        (repository / "snapshots" / "local").symlink_to(folder, target_is_directory=True)
        # It looks for the tokens below HF_HOME, and for the end of sequence below HOME alone.
        with patch.dict(os.environ, {"HF_HOME": str(hub), "HOME": home}):
            yield "local/tokenizer"
