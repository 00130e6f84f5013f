"""What a library takes each token id for, read out of the object in which the library keeps it.

Each function takes one form of such an object, by its methods, and returns the bytes of every id of the
vocabulary: `b""` for an id that the library never takes for text. Nothing is mended: what the library has is
what is returned. The functions also say how a library came to know the tokens.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from harness.backend.grammar import UnsupportedVocabulary
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput
from harness.text import one_line

Loader = Literal["library", "bytes"]
"""The values of the option `loader`, which has one spelling and one meaning in all adapters: `library` lets
the library's own loader read the tokenizer's files where the vocabulary has some, `bytes` hands the library
the true bytes of each id."""


def folder_to_load(vocabulary: Vocabulary, loader: Loader) -> Path | None:
    """Returns the folder that the library's own loader must read; None where the library is handed bytes: the
    option says so, or the vocabulary comes from no Hugging Face tokenizer."""
    return vocabulary.folder if loader == "library" else None


@contextmanager
def own_loader_at_work(library: str) -> Iterator[None]:
    """Turns whatever escapes from the library's own loader into UnsupportedVocabulary, which says what to
    do."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        raise UnsupportedVocabulary(
            f"the loader of {library} does not take this tokenizer ({type(error).__name__}: "
            f"{one_line(str(error))[:300]}); with the option loader=bytes it is handed the tokens' bytes"
        ) from error


@contextmanager
def written_for_the_library() -> Iterator[None]:
    """Turns the BadInput of a file that cannot hold the vocabulary into UnsupportedVocabulary."""
    try:
        yield
    except BadInput as error:
        raise UnsupportedVocabulary(str(error)) from error


def bytes_of_list(info: Any, size: int) -> list[bytes]:
    """Returns what an object has in `decoded_vocab`, less the ids in `stop_token_ids` and
    `special_token_ids`, which its library never takes for text."""
    never = {*info.stop_token_ids, *info.special_token_ids}
    tokens = [b"" if token in never else text for token, text in enumerate(info.decoded_vocab)]
    return _of_length(tokens, size)


def bytes_of_decoder(tokenizer: Any, size: int) -> list[bytes]:
    """Returns what an object's `decode_bytes` gives for each id alone, less those that are
    `is_special_token`. Of an id without bytes it gives the id between `<[` and `]>`."""
    tokens = []
    for token in range(min(size, tokenizer.vocab_size)):
        text = b"" if tokenizer.is_special_token(token) else tokenizer.decode_bytes([token])
        tokens.append(b"" if text == b"<[%d]>" % token else text)
    return _of_length(tokens, size)


def bytes_of_texts(texts: Iterable[tuple[int, str, bool]], size: int) -> list[bytes]:
    """Returns the texts of a list of ids, each with its text, in UTF-8; ids that are not in the list are no
    text."""
    tokens = [b""] * size
    for token, text, _ in texts:
        if 0 <= token < size:
            tokens[token] = text.encode("utf-8", "surrogatepass")
    return tokens


def bytes_of_stored_map(stored: bytes, size: int) -> list[bytes]:
    """Returns the bytes of each id from a map of bytes to ids in its stored form: Rust's `bincode` with
    numbers of varying length. The form is an id of end-of-sequence, the number of entries, and each entry's
    bytes and ids. Of an id that stands under several byte strings the last in their order is returned.

    Raises ValueError if the form is another one.
    """
    tokens = [b""] * size
    numbers = _Stored(stored)
    numbers.number()
    for _ in range(numbers.number()):
        text = numbers.text()
        for _ in range(numbers.number()):
            token = numbers.number()
            if token < size:
                tokens[token] = max(tokens[token], text)
    if numbers.place != len(stored):
        raise ValueError(f"{len(stored) - numbers.place} bytes are left behind the map of the tokens")
    return tokens


class _Stored:
    """Numbers and byte strings, read one after the other."""

    def __init__(self, stored: bytes) -> None:
        self.stored = stored
        self.place = 0

    def number(self) -> int:
        first = self.stored[self.place]
        self.place += 1
        if first < 251:
            return first
        if first > 253:
            raise ValueError(f"a number in the map of the tokens begins with {first}")
        form = {251: "<H", 252: "<I", 253: "<Q"}[first]
        (value,) = struct.unpack_from(form, self.stored, self.place)
        self.place += struct.calcsize(form)
        return int(value)

    def text(self) -> bytes:
        end = self.number() + self.place
        text = self.stored[self.place : end]
        self.place = end
        return text


def _of_length(tokens: list[bytes], size: int) -> list[bytes]:
    return tokens[:size] + [b""] * (size - len(tokens))
