"""What the files beside a `tokenizer.json` say: tokens that the tokenizer has besides, the ends of an output,
the width of the model's logits."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput, error_text
from harness.text import one_line

if TYPE_CHECKING:
    from tokenizers import AddedToken, Tokenizer

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
"""What an added token says of itself besides its text."""

STANDARD = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The keys of special tokens that every tokenizer may have; others have keys that end in `_token` too."""

EXTRA, OLD_EXTRA = "extra_special_tokens", "additional_special_tokens"
"""The keys of a list of further special tokens, or of a table of them by name."""

OF_TEXT = ("thinker_config", "text_config", "llm_config", "language_config", "decoder")
"""The keys under which a configuration has its part about text (Qwen's Omni, most, InternVL, DeepSeek-VL,
pairs of an encoder and a decoder)."""

TABLE = "added_tokens_decoder"
"""The table of added tokens in `tokenizer_config.json`. Where it stands transformers asks no older file."""


def with_configured(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """Returns the tokenizer with the added tokens that the files beside it list, in the order of their ids,
    as transformers does: with their flags where the tokenizer has the text already, else behind its last id.

    What they name as a special token becomes one. An added token that is said to be plain stays so where only
    a list names it, or where the table leaves it out. A name that stands for no token gets no id:
    transformers would make one up, which no model has learnt. Raises BadInput.
    """
    from tokenizers import AddedToken

    own = tokenizer.get_added_tokens_decoder()
    known = {_all_of(token) for token in own.values()}
    special = {token.content for token in own.values() if token.special}
    texts = {token.content for token in own.values()}
    names, lists = _named(folder)
    listed = {token.content: token for token in _listed(folder, own, lists)}
    for text in (*names, *lists):
        if text in listed:
            listed[text].special |= text in names
        elif text not in texts and tokenizer.token_to_id(text) is not None:
            listed[text] = AddedToken(text, special=True, normalized=False)
    if plain := {text for text in special if text in listed and not listed[text].special}:
        tokenizer = _with_plain(tokenizer, plain)
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


def _listed(folder: Path, own: Mapping[int, AddedToken], special: Collection[str]) -> list[AddedToken]:
    """Returns the tokens of the table of added tokens, in the order of their ids; where there is no table,
    the tokenizer's own and those of the older `added_tokens.json` with other ids, of which these texts are
    special. Raises BadInput."""
    from tokenizers import AddedToken

    config = read(path := folder / "tokenizer_config.json")
    is_older = TABLE not in config
    entries = read(path := folder / "added_tokens.json") if is_older else config[TABLE] or {}
    try:
        if is_older:
            texts = {index(token): text for text, token in entries.items() if token not in own}
            return [
                *own.values(),
                *(AddedToken(text, special=text in special) for _, text in sorted(texts.items())),
            ]
        ordered = sorted(entries.items(), key=lambda entry: int(entry[0]))
        return [
            AddedToken(entry["content"], **{flag: entry[flag] for flag in FLAGS if flag in entry})
            for _, entry in ordered
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = "" if is_older else f'"{TABLE}" is '
        reason = one_line(error_text(error))[:200]
        raise BadInput(f"{path}: {what}no table of added tokens ({reason})") from error


def _named(folder: Path) -> tuple[list[str], list[str]]:
    """Returns the texts of the tokens that the files name as special, as transformers puts them together:
    those that have a name of their own, and those of the lists.

    Where `special_tokens_map.json` is asked, it goes before the other file for the standard keys, and behind
    it for others. A list by the older name counts where there is none by the newer one.
    """
    config = read(folder / "tokenizer_config.json")
    older = {} if TABLE in config else read(folder / "special_tokens_map.json")
    first = {name: entry for name, entry in config.items() if name not in STANDARD and isinstance(entry, str)}
    named = {name: entry for name, entry in (config | older | first).items() if name.endswith("_token")}
    config[EXTRA] = config.get(EXTRA) or config.get(OLD_EXTRA)
    for table in (config.get("model_specific_special_tokens"), config[EXTRA], older.get(EXTRA)):
        named |= table if isinstance(table, dict) else {}
    newer = [*_texts(config[EXTRA]), *_texts(older.get(EXTRA))]
    return _texts([*named.values()]), newer or _texts((config | older).get(OLD_EXTRA))


def _texts(entries: Any) -> list[str]:
    """Returns the texts of a list of tokens; none if it is no list."""
    if not isinstance(entries, list):
        return []
    texts = (entry.get("content") if isinstance(entry, dict) else entry for entry in entries)
    return [text for text in texts if isinstance(text, str) and text]


def ends_of_sequence(folder: Path, ids: dict[str, int]) -> tuple[int, ...]:
    """Returns the ids with which an output may end, the one that the tokenizer names first. Raises BadInput
    where the folder names none."""
    known = set(ids.values())
    ends: list[int] = []
    documents = [read(folder / "special_tokens_map.json"), read(folder / "tokenizer_config.json")]
    if TABLE in documents[-1]:
        documents.reverse()
    for document in documents:
        piece = document.get("eos_token")
        if isinstance(piece, dict):
            piece = piece.get("content")
        if not ends and isinstance(piece, str) and piece in ids:
            ends = [ids[piece]]
    for document in (read(folder / "generation_config.json"), *_parts(read(folder / "config.json"))):
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
    """Returns the width of the model's logits, 0 if the folder does not say. The part about text goes first,
    as in transformers: beside it stands the width of another model, or the same."""
    parts = reversed(_parts(read(folder / "config.json")))
    width = next(filter(None, (part.get("vocab_size") for part in parts)), 0)
    if not isinstance(width, int) or isinstance(width, bool) or width < 0:
        raise BadInput(f'{folder / "config.json"}: "vocab_size" is no whole number')
    return width


def _parts(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the configuration, of a model that takes more than text its part about text, and that part's
    own."""
    of_text = next((config[key] for key in OF_TEXT if isinstance(config.get(key), dict)), None)
    return [config] if of_text is None else [config, *_parts(of_text)]


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
