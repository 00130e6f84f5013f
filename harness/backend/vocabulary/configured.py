"""What the files beside a `tokenizer.json` say: tokens that the tokenizer has besides, the ends of an output,
the width of the model's logits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput
from harness.text import one_line

if TYPE_CHECKING:
    from tokenizers import AddedToken, Tokenizer

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
"""What an added token says of itself besides its text."""

NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The special tokens that have a name of their own; the others stand in lists."""


def with_configured(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """Returns the tokenizer with the added tokens that the files beside it list, in the order of their ids,
    as transformers does: with their flags where the tokenizer has the text already, else behind its last id.

    What they name as a special token becomes one. A name that stands for no token gets no id: transformers
    would make one up, which no model has learnt. Raises BadInput.
    """
    from tokenizers import AddedToken

    listed = {token.content: token for token in _listed(folder / "tokenizer_config.json")}
    for text in _named(folder):
        if text in listed or tokenizer.token_to_id(text) is not None:
            listed[text] = AddedToken(text, special=True, normalized=False)
    there = list(tokenizer.get_added_tokens_decoder().values())
    special = {token.content for token in there if token.special}
    if plain := {text for text in special if text in listed and not listed[text].special}:
        tokenizer = _with_plain(tokenizer, plain)
    known = {_all_of(token) for token in there}
    try:
        tokenizer.add_tokens([token for token in listed.values() if _all_of(token) not in known])
    except (OverflowError, UnicodeEncodeError, ValueError) as error:
        raise BadInput(
            f"{folder}: its added tokens cannot be added ({one_line(str(error))[:200]})"
        ) from error
    return tokenizer


def _with_plain(tokenizer: Tokenizer, texts: set[str]) -> Tokenizer:
    """Returns the tokenizer in which the added tokens of these texts are no longer special: the library
    itself never forgets that one was."""
    document = json.loads(tokenizer.to_str())
    for entry in document["added_tokens"]:
        entry["special"] = entry["special"] and entry["content"] not in texts
    return type(tokenizer).from_str(json.dumps(document))


def _all_of(token: AddedToken) -> tuple[object, ...]:
    return token.content, *(getattr(token, flag) for flag in FLAGS)


def _listed(path: Path) -> list[AddedToken]:
    """Returns the tokens of `added_tokens_decoder`, in the order of their ids. Raises BadInput."""
    from tokenizers import AddedToken

    entries = read(path).get("added_tokens_decoder") or {}
    try:
        ordered = sorted(entries.items(), key=lambda entry: int(entry[0]))
        return [
            AddedToken(entry["content"], **{flag: entry[flag] for flag in FLAGS if flag in entry})
            for _, entry in ordered
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = one_line(f"{type(error).__name__}: {error}")[:200]
        raise BadInput(f'{path}: "added_tokens_decoder" is no table of added tokens ({reason})') from error


def _named(folder: Path) -> Iterator[str]:
    """Yields the text of each token that the files name as special. Like transformers, it asks
    `special_tokens_map.json` only where the other file has no table of added tokens."""
    config = read(folder / "tokenizer_config.json")
    older = {} if "added_tokens_decoder" in config else read(folder / "special_tokens_map.json")
    for document in (config, older):
        named = [document.get(name) for name in NAMES]
        for name in ("additional_special_tokens", "extra_special_tokens"):
            more = document.get(name)
            named += more.values() if isinstance(more, dict) else more if isinstance(more, list) else []
        for entry in named:
            text = entry.get("content") if isinstance(entry, dict) else entry
            if isinstance(text, str) and text:
                yield text


def ends_of_sequence(folder: Path, ids: dict[str, int]) -> tuple[int, ...]:
    """Returns the ids with which an output may end, the one that the tokenizer names first. Raises BadInput
    where the folder names none."""
    known = set(ids.values())
    ends: list[int] = []
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        piece = read(folder / file).get("eos_token")
        if isinstance(piece, dict):
            piece = piece.get("content")
        if not ends and isinstance(piece, str) and piece in ids:
            ends = [ids[piece]]
    config = read(folder / "config.json")
    for document in (read(folder / "generation_config.json"), config, _of_text(config)):
        tokens = document.get("eos_token_id")
        listed = [
            token
            for token in (tokens if isinstance(tokens, list) else [tokens])
            if isinstance(token, int) and not isinstance(token, bool) and token in known
        ]
        if listed:
            return tuple(dict.fromkeys([*ends, *listed]))
    if ends:
        return tuple(ends)
    raise BadInput(
        f'{folder}: no end-of-sequence token found; name one of its tokens as "eos_token" in '
        "tokenizer_config.json"
    )


def model_width(folder: Path) -> int:
    """Returns the width of the model's logits, 0 if the folder does not say."""
    config = read(folder / "config.json")
    width = config.get("vocab_size") or _of_text(config).get("vocab_size") or 0
    if not isinstance(width, int) or isinstance(width, bool) or width < 0:
        raise BadInput(f'{folder / "config.json"}: "vocab_size" is no whole number')
    return width


def _of_text(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the part about text of the configuration of a model that takes more than text."""
    of_text = config.get("text_config")
    return of_text if isinstance(of_text, dict) else {}


def read(path: Path) -> dict[str, Any]:
    """Returns the file's JSON object; empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: no JSON ({one_line(str(error))[:200]})") from error
    if not isinstance(document, dict):
        raise BadInput(f"{path}: not a JSON object")
    return document
