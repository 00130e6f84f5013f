"""The vocabulary as every adapter sees it: bytes by id, and the ids of a text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from harness.backend.vocabulary.by_parts import ids_by_parts
from harness.backend.vocabulary.texts import TEXTS

_BROKEN_UTF8 = re.compile("([\udc80-\udcff]+)")
"""Runs of bytes that are no UTF-8, as the `surrogateescape` handler spells them."""


MOST_IDS = 1 << 22
"""No vocabulary is wider: the widest in use have a quarter of a million ids, and a file could name an id that
fills any memory."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Token ids and their bytes.

    `tokens[id]` is the token's bytes; it is `b""` for specials, for padding ids and for a token that is truly
    empty. `size` counts padding ids too: it is the width of a model's logits, and of every mask.
    """

    name: str
    tokens: tuple[bytes, ...]
    eos_tokens: tuple[int, ...]
    """The ids with which an output may end, all of them special tokens. Real models have several (Llama 3:
    `<|end_of_text|>`, `<|eom_id|>`, `<|eot_id|>`); each is allowed exactly where the output may end."""
    special_tokens: dict[int, str]
    """Control ids (end-of-sequence among them) and their printed form, e.g. `{2: "</s>"}`; never text of the
    grammar."""
    padding_tokens: frozenset[int] = frozenset()
    """Ids that the tokenizer does not have, up to the model's padded width."""
    tokenize: Callable[[str], list[int]] | None = field(default=None, repr=False)
    """The tokenizer's own (canonical) ids of a text, special tokens' names taken as plain text; None: longest
    match."""
    folder: Path | None = None
    """The folder of the Hugging Face tokenizer (`tokenizer.json` and the files beside it) from which the
    tokens were read, for libraries that load such a folder themselves; None where there is none."""
    gguf: Path | None = None
    """The GGUF file from which the tokens were read, for libraries that load such a file themselves; None
    where there is none."""

    def __post_init__(self) -> None:
        """Raises ValueError unless there are ids of end-of-sequence, each once and each a special token."""
        ends = self.eos_tokens
        if not ends or len(set(ends)) < len(ends) or not set(ends) <= self.special_tokens.keys():
            raise ValueError(
                f"vocabulary {self.name}: its ids of end-of-sequence, {list(ends)}, must be some, each "
                "once, and special tokens"
            )

    @property
    def eos_token(self) -> int:
        """Returns the id that the harness itself sends where it ends an output."""
        return self.eos_tokens[0]

    def with_ends(self, ends: tuple[int, ...]) -> Vocabulary:
        """Returns the vocabulary with these ids of end-of-sequence alone: others are special tokens like any
        other."""
        return self if ends == self.eos_tokens else replace(self, eos_tokens=ends)

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def words(self) -> int:
        """Returns the words of a bitmask, 32 tokens in each."""
        return (self.size + 31) // 32

    @cached_property
    def sha256(self) -> str:
        """Returns a hash of every id's bytes and kind, which goes into the run's record."""
        ends = " ".join(map(str, self.eos_tokens))
        digest = hashlib.sha256(
            f"{ends} {sorted(self.special_tokens)} {sorted(self.padding_tokens)}".encode()
        )
        for token in self.tokens:
            digest.update(len(token).to_bytes(4, "little") + token)
        return digest.hexdigest()

    @cached_property
    def tokenizer_sha256(self) -> str:
        """Returns a hash of what `sha256` leaves out: the names of special tokens, and the tokenizer's own
        ids of some texts (its merges, its pattern, its normalizer)."""
        names = sorted(self.special_tokens.items())
        return hashlib.sha256(repr((names, [*map(self.canonical, TEXTS)])).encode()).hexdigest()

    def plain_tokens(self) -> dict[int, bytes]:
        """Returns the bytes of each id that is text, as specials (end-of-sequence among them), padding and
        empty tokens are not."""
        left_out = {*self.special_tokens, *self.padding_tokens}
        return {token: text for token, text in enumerate(self.tokens) if text and token not in left_out}

    @cached_property
    def ids_by_bytes(self) -> dict[bytes, int]:
        """Returns the lowest id of each non-empty byte string that is plain text."""
        ids: dict[bytes, int] = {}
        for token, text in self.plain_tokens().items():
            ids.setdefault(text, token)
        return ids

    @cached_property
    def spells_every_text(self) -> bool:
        """Returns whether each byte of which UTF-8 is made is a token, so that no text lacks one."""
        return all(bytes([byte]) in self.ids_by_bytes for byte in range(0xF5) if byte not in (0xC0, 0xC1))

    @cached_property
    def longest_token(self) -> int:
        """Bytes of the longest plain-text token."""
        return max(map(len, self.ids_by_bytes), default=0)

    @cached_property
    def _lengths(self) -> list[int]:
        """Returns the lengths that plain-text tokens have, longest first."""
        return sorted({len(text) for text in self.ids_by_bytes}, reverse=True)

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Returns the concatenated bytes; specials and padding have none."""
        return b"".join(self.tokens[token] for token in tokens)

    def encode(self, text: bytes) -> list[int]:
        """Returns the canonical ids of the text; the longest match where the tokenizer has no answer (bytes
        that are no UTF-8, a character for which it raises or that its normalizer changes).

        Always decodes back to `text`, without specials. Raises ValueError where no token continues the
        longest match.
        """
        if self.tokenize is None:
            return self.longest_match(text)
        tokens: list[int] = []
        for part in _BROKEN_UTF8.split(text.decode("utf-8", "surrogateescape")):
            wanted = part.encode("utf-8", "surrogateescape")
            tokens += self.longest_match(wanted) if _BROKEN_UTF8.match(part) else self._ids(part, wanted)
        return tokens

    def encode_known(self, text: bytes) -> list[int]:
        """Returns the ids of the text without the characters for which the vocabulary has none, as a Hugging
        Face tokenizer does; each of the others by itself, where it has none for them together."""
        try:
            return self.encode(text)
        except ValueError:
            characters = text.decode("utf-8", "surrogateescape")
            ids = {each: self._ids_alone(each) for each in dict.fromkeys(characters)}
            known = "".join(filter(ids.__getitem__, characters))
        try:
            return self.encode(known.encode("utf-8", "surrogateescape"))
        except ValueError:  # the longest token across two of them may lead nowhere
            return [token for each in known for token in ids[each]]

    def _ids_alone(self, character: str) -> list[int]:
        """Returns the ids of one character; none where the vocabulary has none."""
        try:
            return self.encode(character.encode("utf-8", "surrogateescape"))
        except ValueError:
            return []

    def _ids(self, text: str, wanted: bytes) -> list[int]:
        """Returns the tokenizer's own ids of the text, as far as it gives the text back."""
        if self.spells(canonical := self.canonical(text), wanted):
            return canonical
        try:
            return ids_by_parts(self, text)
        except ValueError:  # a longer token may hold a character that has none alone
            return self.longest_match(wanted)

    def spells(self, tokens: Sequence[int], text: bytes) -> bool:
        """Returns whether the tokens decode to the text, without specials."""
        return self.special_tokens.keys().isdisjoint(tokens) and self.decode(tokens) == text

    def canonical(self, text: str) -> list[int]:
        """Returns the tokenizer's own ids of the text, none if it raises or there is no tokenizer. They may
        decode to another text."""
        try:
            return self.tokenize(text) if self.tokenize else []
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # bare Exception where a model has no unknown token; a panic of Rust is none
            return []

    @cached_property
    def _ids_to_write(self) -> dict[bytes, int]:
        """Returns the id with which each text is written where it is one token: of several ids the
        tokenizer's own of that text, else the lowest. A SentencePiece vocabulary has a letter twice, and the
        lower id is a byte that no model writes for it."""
        ids, own = self.ids_by_bytes, {}
        for token, text in self.plain_tokens().items():
            if ids[text] != token and text not in own:
                own[text] = self.canonical(text.decode("utf-8", "replace"))
        ones = {text: tokens[0] for text, tokens in own.items() if len(tokens) == 1}
        return ids | {text: token for text, token in ones.items() if self.spells([token], text)}

    def longest_match(self, text: bytes) -> list[int]:
        """Returns the ids of the longest tokens that fit, one after the other. Raises ValueError where none
        does."""
        tokens: list[int] = []
        start = 0
        while start < len(text):
            for length in self._lengths:
                token = self._ids_to_write.get(text[start : start + length])
                if token is not None and start + length <= len(text):
                    tokens.append(token)
                    start += length
                    break
            else:
                raise ValueError(f"vocabulary {self.name} has no token for byte 0x{text[start]:02x}")
        return tokens


def byte_vocabulary() -> Vocabulary:
    """Returns 257 tokens for tests: each byte, then end-of-sequence."""
    return Vocabulary(
        name="bytes",
        tokens=(*(bytes([byte]) for byte in range(256)), b""),
        eos_tokens=(256,),
        special_tokens={256: "</s>"},
    )
