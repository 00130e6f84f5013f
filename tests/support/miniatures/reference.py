"""A right adapter, slow and obvious: every answer is found by trying the text against a pattern."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Literal

import numpy as np
import regex
from numpy.typing import NDArray

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
    allocate_bitmask,
    allowed_tokens,
)
from harness.backend.vocabulary import Vocabulary

INTEGER = "-?(0|[1-9][0-9]*)"


def small_vocabulary() -> Vocabulary:
    """Bytes, longer tokens (one of them twice), specials in the middle and padding at the end; no multiple of
    32."""
    texts = [bytes([byte]) for byte in range(256)]
    specials = {256: "<s>", 257: "</s>", 258: "<tool>"}
    longer = [b"a1", b"12", b"ab", b"abc", b"abd", b'"ab', b'"', "é".encode(), b" 1", b"a1", b"23</f>"]
    tokens = (*texts, b"", b"", b"", *longer, *(b"" for _ in range(7)))
    first_padding = len(tokens) - 7
    return Vocabulary("small", tokens, (257,), specials, frozenset(range(first_padding, len(tokens))))


@cache
def is_prefix(pattern: regex.Pattern[bytes], text: bytes) -> bool:
    """Does an output begin with the text?"""
    return pattern.fullmatch(text, partial=True) is not None


@cache
def is_output(pattern: regex.Pattern[bytes], text: bytes) -> bool:
    return pattern.fullmatch(text) is not None


@cache
def prefixes(pattern: regex.Pattern[bytes], text: bytes, tokens: tuple[bytes, ...]) -> NDArray[np.bool_]:
    """For each token: does an output begin with the text and this token? Nobody changes the array."""
    return np.array([bool(token) and is_prefix(pattern, text + token) for token in tokens], dtype=np.bool_)


class ReferenceObject(GrammarObject):
    """The text so far, against the pattern."""

    takes_as_it_says: ClassVar[bool]
    """Is a mask what `may_take` says here, and not what a wrong object says in its place?"""

    def __init_subclass__(cls) -> None:
        said = ("may_take", "may_follow", "is_accepting", "text")
        cls.takes_as_it_says = all(getattr(cls, name) is getattr(ReferenceObject, name) for name in said)

    def __init__(self, compiled: ReferenceGrammar) -> None:
        self.compiled = compiled
        self.pattern = compiled.pattern
        self.vocabulary = compiled.adapter.vocabulary
        self.taken: list[int] = []
        self._decoded: tuple[list[int], bytes] = [], b""

    @property
    def text(self) -> bytes:
        """What was taken, decoded once for the hundreds of tokens of a mask."""
        if self._decoded[0] != self.taken:
            self._decoded = list(self.taken), self.vocabulary.decode(self.taken)
        return self._decoded[1]

    def may_follow(self, more: bytes) -> bool:
        """Is the text, with this added, the beginning of an output?"""
        return is_prefix(self.pattern, self.text + more)

    def may_take(self, token: int) -> bool:
        if token in self.vocabulary.eos_tokens:
            return self.is_accepting()
        return bool(self.vocabulary.tokens[token]) and self.may_follow(self.vocabulary.tokens[token])

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.has_ended():
            raise RuntimeError("filled after termination")
        bits = np.zeros(len(bitmask) * 32, dtype=np.bool_)
        size = self.vocabulary.size
        if self.takes_as_it_says:  # the same mask in much less time: these checks ask for 45,000 of them
            bits[:size] = prefixes(self.pattern, self.text, tuple(self.vocabulary.tokens))
            bits[list(self.vocabulary.eos_tokens)] = self.is_accepting()
        else:
            bits[:size] = [self.may_take(token) for token in range(size)]
        bitmask[:] = np.packbits(bits, bitorder="little").view(np.int32)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        bitmask = allocate_bitmask(self.vocabulary.size)
        self.fill_bitmask(bitmask)
        mask[:] = True
        mask[allowed_tokens(bitmask, self.vocabulary.size)] = False

    def accept_token(self, token: int) -> bool:
        if self.has_ended():
            raise RuntimeError("accepted after termination")
        if not self.may_take(token):
            return False
        self.taken.append(token)
        return True

    def is_accepting(self) -> bool:
        return is_output(self.pattern, self.text)

    def is_terminated(self) -> bool:
        return self.has_ended()

    def has_ended(self) -> bool:
        return bool(self.taken) and self.taken[-1] in self.vocabulary.eos_tokens

    def rollback(self, count: int) -> None:
        if count:
            del self.taken[-count:]

    def copy(self) -> ReferenceObject:
        clone = type(self)(self.compiled)
        clone.taken = list(self.taken)
        return clone

    def jump_forward(self) -> bytes:
        return self.forced()

    def fast_forward_tokens(self) -> list[int]:
        return self.vocabulary.encode(self.forced())

    def forced(self) -> bytes:
        forced = b""
        while not is_output(self.pattern, self.text + forced):
            following = [byte for byte in range(256) if self.may_follow(forced + bytes([byte]))]
            if len(following) != 1:
                break
            forced += bytes(following)
        return forced


ReferenceObject.takes_as_it_says = True


class ReferenceGrammar(CompiledGrammar):
    """A pattern of bytes."""

    def __init__(self, adapter: Reference, pattern: regex.Pattern[bytes]) -> None:
        self.adapter = adapter
        self.pattern = pattern

    def start(self) -> ReferenceObject:
        return self.adapter.object_class(self)


class Reference(Adapter):
    """Regular expressions of ASCII, choices, and the JSON Schemas `integer`, `enum` and `const`."""

    distribution = "regex"
    dialects: ClassVar[frozenset[Dialect]] = frozenset({"regex", "choice", "json_schema"})
    object_class: ClassVar[type[ReferenceObject]] = ReferenceObject

    def __init__(self, vocabulary: Vocabulary, *, mask: Literal["bitmask", "bool"] = "bitmask") -> None:
        super().__init__(vocabulary)
        self.mask_format = mask

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if grammar.dialect not in self.dialects:
            raise UnsupportedGrammar(f"no {grammar.dialect} here")
        try:
            return ReferenceGrammar(self, regex.compile(_pattern(grammar).encode()))
        except (regex.error, ValueError, TypeError) as error:
            raise InvalidGrammar(str(error)) from error


class JsonOnly(Reference):
    """Is as right as `Reference`, with one dialect."""

    dialects: ClassVar[frozenset[Dialect]] = frozenset({"json_schema"})


def _pattern(grammar: Grammar) -> str:
    if grammar.dialect == "regex":
        return grammar.text
    value = json.loads(grammar.text)
    if grammar.dialect == "choice":
        if not isinstance(value, list):
            raise ValueError("a choice is an array of strings")
        return _one_of(value)
    if value == {"type": "integer"}:
        return INTEGER
    if isinstance(value, dict) and len(value) == 1 and ("enum" in value or "const" in value):
        return _one_of([json.dumps(choice) for choice in value.get("enum", [value.get("const")])])
    raise UnsupportedGrammar("only integer, enum and const")


def _one_of(texts: Sequence[str]) -> str:
    return "|".join(regex.escape(text) for text in texts)
