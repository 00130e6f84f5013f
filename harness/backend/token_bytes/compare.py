"""The ids that a backend reads wrongly, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.backend.token_bytes.place import completed
from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.byte_level import bytes_of_letters
from harness.backend.vocabulary.metaspace import MARKER, byte_of_piece
from harness.text import one_line

KINDS = {
    "special_as_text": "a control token is taken for the text of its name",
    "padding_as_text": "an id that the tokenizer does not have is taken for text",
    "empty_as_text": "an id without any bytes is taken for text",
    "text_as_special": "text is never allowed as text",
    "leading_space_lost": "the space before the text is lost",
    "leading_space_added": "a space is put before the text",
    "marker_kept": "the tokenizer's sign for a space is taken for a character",
    "byte_as_text": "the name of a byte, such as <0x0A>, is taken for its text",
    "letters_kept": "the letters by which the tokenizer writes bytes are taken for text",
    "text_as_letters": "text is taken for letters by which the tokenizer writes bytes",
    "replacement_character": "a part of a character is taken for the character U+FFFD",
    "text_of_another": "the text of another id",
    "other": "other bytes",
}
"""The kinds of differences, in the order in which they are looked for, each with a sentence."""

LONGEST = 48
"""The most characters of a token that are shown."""


@dataclass(frozen=True)
class WrongToken:
    """An id whose bytes a backend has wrongly; `b""` stands for no text."""

    token: int
    kind: str
    true: bytes
    read: bytes


def wrong_tokens(vocabulary: Vocabulary, read: Sequence[bytes]) -> list[WrongToken]:
    """Returns the ids whose bytes are not the vocabulary's, ascending; ids that `read` lacks have no text.

    Bytes that stand in no UTF-8 text, such as 0xFF alone, may be taken for no text: no mask can tell.
    """
    padded = [*read[: vocabulary.size], *[b""] * (vocabulary.size - len(read))]
    return [
        WrongToken(token, kind_of(vocabulary, token, said), true, said)
        for token, (true, said) in enumerate(zip(vocabulary.tokens, padded, strict=True))
        if said != true and (said or completed(true))
    ]


def counts_of(wrong: Sequence[WrongToken]) -> dict[str, int]:
    """Returns how many ids there are of each kind that there is, in the order of KINDS."""
    counts = Counter(each.kind for each in wrong)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def kind_of(vocabulary: Vocabulary, token: int, read: bytes) -> str:
    """Returns the kind of the difference between the id's bytes and others."""
    true = vocabulary.tokens[token]
    if not true:
        if token in vocabulary.special_tokens:
            return "special_as_text"
        return "padding_as_text" if token in vocabulary.padding_tokens else "empty_as_text"
    if not read:
        return "text_as_special"
    if true == b" " + read:
        return "leading_space_lost"
    if read == b" " + true:
        return "leading_space_added"
    if "\ufffd".encode() in read and "\ufffd".encode() not in true:
        return "replacement_character"
    text, plain = _text(read), _text(true)
    if text is not None:
        if text == true.decode("utf-8", "replace").replace(" ", MARKER):
            return "marker_kept"
        if byte_of_piece(text) == true:
            return "byte_as_text"
        if bytes_of_letters(text) == true:
            return "letters_kept"
    if plain is not None and bytes_of_letters(plain) == read:
        return "text_as_letters"
    return "text_of_another" if read in vocabulary.ids_by_bytes else "other"


def kinds_text(kinds: Mapping[str, int]) -> str:
    """Returns the number of ids of each kind with its sentence, in a line."""
    return "; ".join(f"{count:,}: {KINDS.get(kind, kind)}" for kind, count in kinds.items())


def spelled_bytes(content: str) -> str:
    """Returns a token's bytes, which are given as hex, as people read them."""
    if not content:
        return "no text"
    text = bytes.fromhex(content).decode("utf-8", "backslashreplace")
    return f'"{one_line(text, LONGEST, spelled=True)}"'


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
