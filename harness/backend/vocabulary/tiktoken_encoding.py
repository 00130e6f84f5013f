"""tiktoken's encodings, by name or from a file of ranks."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tiktoken
import tiktoken.load
import tiktoken.registry

from harness.backend.vocabulary.families import Family
from harness.backend.vocabulary.model import MOST_IDS, Vocabulary
from harness.errors import BadInput, did_you_mean
from harness.paths import existing_file, expanded
from harness.text import one_line

DEFAULT_PATTERN_OF = "cl100k_base"
"""The encoding whose pattern splits the text for a file of ranks that is not named after an encoding."""

_END_OF_TEXT = "<|endoftext|>"


def prepare(source: str) -> str:
    """Download the encoding if it is a name, and return the name, or the file's absolute path."""
    if (name := _known(source)) is None:
        return named(source)
    try:
        tiktoken.get_encoding(name)
    except Exception as error:  # whatever the download can raise: the encodings come from plug-ins
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"tiktoken:{source}: download failed ({reason}); check the network or set TIKTOKEN_CACHE_DIR"
        ) from error
    return name


def load(source: str) -> Vocabulary:
    """Returns the encoding from tiktoken's cache or from the file; never from the network."""
    name = _known(source)
    if name is None:
        return _vocabulary(source, _encoding_of_file(existing_file(source, "tiktoken")))
    try:
        with _replaced("read_file", _refuse):
            encoding = tiktoken.get_encoding(name)
    except _NotHere as error:
        raise BadInput(
            f"tiktoken:{source} is not on this machine yet; prepare_vocabulary downloads it"
        ) from error
    return _vocabulary(name, encoding)


def load_family(family: Family, path: Path) -> Vocabulary:
    """Returns the vocabulary of a family that was fetched as a file of ranks. Raises BadInput."""
    texts = {**family.specials, **family.added}
    ids = {name: token for token, name in texts.items()}
    ranks = read_ranks(path)
    tokens = [b""] * family.width
    for text, token in ranks.items():
        tokens[token] = text
    for token, name in family.added.items():
        tokens[token] = name.encode()
    encoding = tiktoken.Encoding(
        family.name, pat_str=family.pattern, mergeable_ranks=ranks, special_tokens=ids
    )
    added = set(family.added.values())

    def tokenize(text: str) -> list[int]:
        return encoding.encode(text, allowed_special=added, disallowed_special=())

    return Vocabulary(
        name=family.name,
        tokens=tuple(tokens),
        eos_tokens=tuple(family.eos),
        special_tokens=dict(family.specials),
        padding_tokens=frozenset(range(family.width)) - set(ranks.values()) - texts.keys(),
        tokenize=tokenize if added else encoding.encode_ordinary,
        folder=path.parent,
    )


def named(source: str) -> str:
    """Returns the encoding of that name, or the file's absolute path. Raises BadInput if there is none."""
    return _known(source) or str(existing_file(source, "tiktoken"))


def _known(source: str) -> str | None:
    """Returns the encoding of that name; None if the source names a file."""
    names = tiktoken.list_encoding_names()
    plain = source.lower().replace("-", "_")
    if plain in names:
        return plain
    if expanded(source).is_file() or "/" in source or source.endswith(".tiktoken"):
        return None
    raise BadInput(f'unknown tiktoken encoding "{source}"{did_you_mean(plain, names)}')


def _vocabulary(source: str, encoding: tiktoken.Encoding) -> Vocabulary:
    if _END_OF_TEXT not in encoding.special_tokens_set:
        raise BadInput(f"tiktoken:{source}: no end-of-sequence token: the encoding has no {_END_OF_TEXT}")
    # Its `encode_single_token` takes a name that is a plain token's text too for that token.
    specials = {token: name for name, token in encoding._special_tokens.items()}
    tokens = [b""] * encoding.n_vocab
    padding = set()
    for token in range(encoding.n_vocab):
        if token in specials:
            continue
        try:
            tokens[token] = encoding.decode_single_token_bytes(token)
        except KeyError:
            padding.add(token)
    return Vocabulary(
        name=f"tiktoken:{source}",
        tokens=tuple(tokens),
        eos_tokens=(encoding.eot_token,),
        special_tokens=specials,
        padding_tokens=frozenset(padding),
        tokenize=encoding.encode_ordinary,
    )


def _encoding_of_file(path: Path) -> tiktoken.Encoding:
    ranks = read_ranks(path)
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise BadInput(
            f"tiktoken:{path}: no token for byte 0x{missing[0]:02x}; tiktoken needs a token for "
            "each of the 256 bytes"
        )
    first_free = max(ranks.values()) + 1
    named_after = _definition(path.stem)
    definition = named_after or _definition(DEFAULT_PATTERN_OF)
    specials: dict[str, int] = named_after.get("special_tokens", {})
    if not specials or min(specials.values()) < first_free:
        specials = {_END_OF_TEXT: first_free}
    try:
        return tiktoken.Encoding(
            path.stem, pat_str=definition["pat_str"], mergeable_ranks=ranks, special_tokens=specials
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # where Rust panics it is no Exception
        raise BadInput(
            f"tiktoken:{path}: tiktoken does not take it ({one_line(repr(error))[:300]})"
        ) from error


def read_ranks(path: Path) -> dict[bytes, int]:
    """Returns each token's rank. tiktoken's own reader is not used: it keeps a copy of the file and would not
    see that it has changed."""
    ranks: dict[bytes, int] = {}
    used: set[int] = set()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"tiktoken:{path}: cannot be read: {error.strerror}") from error
    for number, line in enumerate(content.splitlines(), 1):
        if not line:  # tiktoken's reader passes over it too
            continue
        try:
            token, rank = line.split()
            text, place = base64.b64decode(token, validate=True), int(rank)
        except ValueError as error:
            raise BadInput(
                f"tiktoken:{path}:{number}: not a token in base64, a space and its rank ({error})"
            ) from error
        if place >= MOST_IDS:
            raise BadInput(
                f"tiktoken:{path}:{number}: a rank beyond {MOST_IDS:,}, which is beyond any "
                "vocabulary that has masks"
            )
        if place < 0 or place in used or text in ranks:
            raise BadInput(
                f"tiktoken:{path}:{number}: rank {place} is negative, or the rank or its token came before"
            )
        ranks[text] = place
        used.add(place)
    return ranks


def _definition(name: str) -> dict[str, Any]:
    """Returns the encoding's pattern and special tokens, without its ranks; empty if tiktoken has no such
    encoding.
    """
    constructors = tiktoken.registry.ENCODING_CONSTRUCTORS or {}
    if name not in constructors:
        return {}
    try:
        with _replaced("read_file_cached", lambda *_: b""):
            return constructors[name]()
    except ValueError:  # gpt2 comes in a format that may not be empty; r50k_base is its other name
        return _definition("r50k_base") if name == "gpt2" else {}


class _NotHere(Exception):
    pass


def _refuse(address: str) -> bytes:
    raise _NotHere(address)


@contextmanager
def _replaced(function: str, replacement: Callable[..., bytes]) -> Iterator[None]:
    """tiktoken has no switch to stay off the network: for a moment, one of its reading functions is another
    one."""
    original = getattr(tiktoken.load, function)
    setattr(tiktoken.load, function, replacement)
    try:
        yield
    finally:
        setattr(tiktoken.load, function, original)
