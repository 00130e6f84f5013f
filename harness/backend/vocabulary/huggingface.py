"""Any Hugging Face tokenizer with a `tokenizer.json`, from a folder or the hub's cache."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.backend.vocabulary.byte_level import bytes_of_letters
from harness.backend.vocabulary.configured import ends_of_sequence, model_width, with_configured
from harness.backend.vocabulary.families import Family
from harness.backend.vocabulary.metaspace import MARKER, byte_of_piece, spelling_markers
from harness.backend.vocabulary.model import MOST_IDS, Vocabulary
from harness.errors import BadInput
from harness.paths import expanded
from harness.text import one_line

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FILES = [
    "tokenizer.json",
    "tokenizer_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "generation_config.json",
    "config.json",
]
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def prepare(source: str) -> str:
    """Downloads the tokenizer's files if it is a hub name, and returns the name, or the folder's
    absolute path.
    """
    folder = _local_folder(source)
    if folder is not None:
        _require_tokenizer(folder)
        return str(folder)
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise _missing_extra(f"hf:{source}") from error
    try:
        snapshot_download(source, allow_patterns=_FILES)
    except Exception as error:  # the hub client's errors and its transport's share no base
        if _cached_folder(source) is None:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise BadInput(
                f"hf:{source}: download failed ({reason}); check the name and the network, or "
                "give a local folder"
            ) from error
    if _cached_folder(source) is None:
        raise BadInput(f"hf:{source}: the hub's repository has no tokenizer.json")
    return source


def load(source: str) -> Vocabulary:
    """Returns the tokenizer from the folder or the hub's cache; never from the network."""
    folder = _local_folder(source) or _cached_folder(source)
    if folder is None:
        raise BadInput(f"hf:{source} is not on this machine yet; prepare_vocabulary downloads it")
    _require_tokenizer(folder)
    return _loaded(f"hf:{source}", folder, (), 0)


def load_family(family: Family, path: Path) -> Vocabulary:
    """Returns the vocabulary of a family that was fetched as a `tokenizer.json`. Raises BadInput."""
    return _loaded(family.name, path.parent, tuple(family.eos), family.width)


def _loaded(name: str, folder: Path, eos: tuple[int, ...], width: int) -> Vocabulary:
    """Returns the vocabulary under that name; the ids of end-of-sequence and the width of the logits are read
    from the folder if they are not given (as none and 0)."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _missing_extra(name) from error
    try:
        # The library reads the file: a list of half a million merges would fill memory as Python's objects.
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer = with_configured(tokenizer, folder)
        parts = _parts(tokenizer)
        meaning = _meaning(parts, folder)
        # From version 0.23 on the library decodes an added token as what its normalizer made of the text.
        decoded = {token: tokenizer.id_to_token(token) for token in tokenizer.get_added_tokens_decoder()}
        altered = {part: _without_prefix(parts[part]) for part in ("normalizer", "pre_tokenizer")}
        altered_parts = Tokenizer.from_str(json.dumps(EMPTY | altered))
        tokenizer.normalizer = altered_parts.normalizer
        tokenizer.pre_tokenizer = altered_parts.pre_tokenizer
        _without_extras(tokenizer)
        tokenize = _tokenize(tokenizer)
        if lost := _other_forms(tokenizer, decoded):
            own = with_configured(Tokenizer.from_file(str(folder / "tokenizer.json")), folder)
            own.pre_tokenizer = altered_parts.pre_tokenizer
            tokenize = _behind_another(_without_extras(own), lost, tokenize)
        return _vocabulary(
            name, folder, parts, (tokenizer, tokenize), decoded, meaning, eos, width or model_width(folder)
        )
    except (BadInput, KeyboardInterrupt, SystemExit):
        raise
    # what a file of another shape can raise: bare Exception, and where Rust panics a BaseException
    except BaseException as error:
        raise BadInput(
            f"{folder / 'tokenizer.json'}: not a tokenizer ({one_line(repr(error))[:300]})"
        ) from error


def _without_extras(tokenizer: Tokenizer) -> Tokenizer:
    """Returns the tokenizer, which from now on reads all of a text, and names of special tokens as text."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _tokenize(tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def _other_forms(tokenizer: Tokenizer, decoded: dict[int, str | None]) -> list[str]:
    """Returns the added tokens that are text and that the tokenizer knows by another normalized form than the
    one that they are decoded as."""
    added = tokenizer.get_added_tokens_decoder().items()
    return [
        entry.content
        for token, entry in added
        if not entry.special and tokenizer.id_to_token(token) != decoded.get(token)
    ]


def _behind_another(
    tokenizer: Tokenizer, lost: list[str], otherwise: Callable[[str], list[int]]
) -> Callable[[str], list[int]]:
    """Returns a `tokenize` that writes a text with one of these added tokens by the tokenizer with its own
    normalizer, which puts a space before every text: a control character keeps that space away from ours."""
    another = "\x01"  # no token is made of it and the text behind it
    behind = _tokenize(tokenizer)
    lead = behind(another)

    def tokenize(text: str) -> list[int]:
        ids = behind(another + text) if any(content in text for content in lost) else []
        return ids[len(lead) :] if lead and ids[: len(lead)] == lead else otherwise(text)

    return tokenize


EMPTY: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [],
    "model": {"type": "BPE", "vocab": {}, "merges": []},
}
"""A tokenizer's file without any token."""


def _parts(tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns the normalizer, the pre-tokenizer and the decoder as the file has them, and of the model what
    says how it treats unknown text."""

    def stored(component: Any) -> Any:
        return None if component is None else json.loads(component.__getstate__())

    parts = {part: stored(getattr(tokenizer, part)) for part in ("normalizer", "pre_tokenizer", "decoder")}
    model = {"unk_token": getattr(tokenizer.model, "unk_token", None)}
    if type(tokenizer.model).__name__ == "Unigram":  # its unknown piece has an id, which only the file tells
        unknown = stored(tokenizer.model)["unk_id"]
        model["unk_token"] = None if unknown is None else tokenizer.id_to_token(unknown)
    return {**parts, "model": model}


def _vocabulary(
    name: str,
    folder: Path,
    parts: dict[str, Any],
    tokenizers: tuple[Tokenizer, Callable[[str], list[int]]],
    decoded: dict[int, str | None],
    meaning: Callable[[str], bytes],
    eos: tuple[int, ...],
    width: int,
) -> Vocabulary:
    tokenizer, tokenize = tokenizers
    ids = tokenizer.get_vocab(with_added_tokens=True)
    added = tokenizer.get_added_tokens_decoder()
    eos = eos or ends_of_sequence(folder, ids)
    specials = {token: entry.content for token, entry in added.items() if entry.special}
    for piece, token in ids.items():
        if token in eos or piece == parts["model"]["unk_token"]:
            specials.setdefault(token, decoded.get(token) or piece)
    # Ids that only specials have, beyond the model's width, are ids that the model cannot produce.
    needed = 1 + max(token for token in ids.values() if token not in specials or token in eos)
    size = max(width, needed) if width else 1 + max(ids.values())
    if size > MOST_IDS:
        raise BadInput(
            f"{folder}: its ids go up to {size - 1:,}, beyond any vocabulary that has masks ({MOST_IDS:,})"
        )
    tokens = [b""] * size
    named: set[int] = set()
    for piece, token in ids.items():
        if token in named and token not in added:
            raise BadInput(
                f"{folder / 'tokenizer.json'}: two pieces have the id {token}, so that it stands for no text"
            )
        named.add(token)
        if token not in specials:
            tokens[token] = meaning(decoded.get(token) or piece)
    # A Unigram model can have one piece under several ids. The table above holds only the last of these, so
    # that the tokenizer is asked for the others by their ids.
    for token in set(range(size)) - named:
        other: str | None = tokenizer.id_to_token(token)
        if other is not None:
            named.add(token)
            tokens[token] = meaning(other)

    marker = [ids.get(f"<0x{byte:02X}>", -1) for byte in MARKER.encode()]
    return Vocabulary(
        name=name,
        tokens=tuple(tokens),
        eos_tokens=eos,
        special_tokens={token: piece for token, piece in sorted(specials.items()) if token < size},
        padding_tokens=frozenset(range(size)) - named,
        tokenize=spelling_markers(tokenize, marker)
        if any(old == MARKER for old, _ in _replacements(parts, folder)) and min(marker) >= 0
        else tokenize,
        folder=folder,
    )


def _meaning(parts: dict[str, Any], folder: Path) -> Callable[[str], bytes]:
    """Returns what the tokenizer's decoder makes of one piece, at any place but the start of the output."""
    kinds = [decoder["type"] for decoder in _components(parts["decoder"], "decoders")]
    if "ByteLevel" in kinds and set(kinds) <= {"ByteLevel", "Fuse"}:
        return bytes_of_letters
    if kinds and set(kinds) <= {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}:
        replacements = _replacements(parts, folder)
        if _is_ordered_otherwise(parts):
            raise BadInput(
                f"{folder / 'tokenizer.json'}: the order of its decoder's steps ({' + '.join(kinds)}) is not "
                "read here: first come replacements, then ByteFallback, then Fuse"
            )
        # A model may spell characters in pieces for bytes of which its decoder still gives the names.
        byte_fallback = "ByteFallback" in kinds

        def meaning(piece: str) -> bytes:
            byte = byte_of_piece(piece) if byte_fallback else None
            if byte is not None:
                return byte
            for old, new in replacements:
                piece = piece.replace(old, new)
            return piece.encode()

        return meaning
    decoder = " + ".join(kinds) if kinds else "none"
    raise BadInput(
        f"{folder / 'tokenizer.json'}: its decoder ({decoder}) is neither byte-level nor "
        "metaspace with byte fallback"
    )


def _is_ordered_otherwise(parts: dict[str, Any]) -> bool:
    """Returns whether a piece may be another text than the one that is read here, by the order of the
    decoder's steps: it joins the pieces before it looks for the first one or for bytes, changes the names of
    these, or changes the bytes."""
    steps = [*_components(parts["decoder"], "decoders")]
    kinds = [step["type"] for step in steps]
    old = [step["pattern"]["String"] if step["type"] == "Replace" else "" for step in steps]
    behind = kinds[kinds.index("Fuse") + 1 :] if "Fuse" in kinds else []
    if "ByteFallback" in behind or "Metaspace" in behind:
        return True
    at = kinds.index("ByteFallback") if "ByteFallback" in kinds else len(kinds)
    names = [f"<0x{byte:02X}>" for byte in range(256)] if at < len(kinds) else []
    is_name_changed = any(text and text in name for text in old[:at] for name in names)
    return is_name_changed or any(len(text) == 1 and text.isascii() for text in old[at:])


def _replacements(parts: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Returns what a metaspace decoder replaces in every piece, one after the other. Raises BadInput where it
    replaces what a pattern matches or what may reach from one piece into the next, or takes away more than
    the beginning of the whole text."""
    replacements: list[tuple[str, str]] = []
    is_whole = False
    for decoder in _components(parts["decoder"], "decoders"):
        if decoder["type"] == "Metaspace":
            replacements.append((decoder.get("replacement", MARKER), " "))
        elif decoder["type"] == "Fuse":
            is_whole = True
        elif decoder["type"] == "Strip" and not (is_whole and decoder["stop"] == 0):
            raise BadInput(
                f"{folder / 'tokenizer.json'}: its decoder takes away more than the beginning of the whole "
                f"text ({one_line(json.dumps(decoder))[:100]}), and only that is read here"
            )
        elif decoder["type"] == "Replace":
            if "String" not in decoder["pattern"]:
                raise BadInput(
                    f"{folder / 'tokenizer.json'}: its decoder replaces what a pattern matches "
                    f"({one_line(json.dumps(decoder['pattern']))[:100]}), and only fixed texts are read here"
                )
            old = decoder["pattern"]["String"]
            if is_whole and len(old) > 1:
                raise BadInput(
                    f"{folder / 'tokenizer.json'}: its decoder replaces several characters in the whole text "
                    f"({one_line(json.dumps(old))[:100]}), and that is read here only within one token"
                )
            replacements.append((old, decoder["content"]))
    return replacements


def _without_prefix(component: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns the normalizer or pre-tokenizer, less the space that it puts before every text: ours continue
    another text."""
    if component is None or component["type"] == "Prepend":
        return None
    component = dict(component)
    if "add_prefix_space" in component:
        component["add_prefix_space"] = False
    if component["type"] == "Metaspace":
        component["prepend_scheme"] = "never"
    for parts in ("normalizers", "pretokenizers"):
        if parts in component:
            component[parts] = [part for part in map(_without_prefix, component[parts]) if part is not None]
    return component


def _components(component: dict[str, Any] | None, parts: str) -> Iterator[dict[str, Any]]:
    """Yields the component; of a sequence, its components one by one."""
    if component is None:
        return
    if component["type"] != "Sequence":
        yield component
        return
    for part in component[parts]:
        yield from _components(part, parts)


def _local_folder(source: str) -> Path | None:
    """Returns the folder, absolute, of which a tokenizer.json may be named; None if it is a hub name."""
    folder = expanded(source)
    if folder.name == "tokenizer.json" and folder.is_file():
        folder = folder.parent
    if folder.is_dir():
        return folder.absolute()
    if not _HUB_NAME.fullmatch(source):
        raise BadInput(f"hf:{source}: no such folder")
    return None


def _require_tokenizer(folder: Path) -> None:
    if not (folder / "tokenizer.json").is_file():
        raise BadInput(f"{folder / 'tokenizer.json'}: no such file; a folder with a tokenizer.json is needed")


def _cached_folder(name: str) -> Path | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError as error:
        raise _missing_extra(f"hf:{name}") from error
    path = try_to_load_from_cache(name, "tokenizer.json")
    return Path(path).parent if isinstance(path, str) else None


def _missing_extra(source: str) -> BadInput:
    return BadInput(f'{source} needs the extra "huggingface": pip install "grammarbench[huggingface]"')
