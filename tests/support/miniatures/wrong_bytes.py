"""JSON strings, choices and schemas of `Reference`, right over all of UTF-8; and adapters that are wrong
about bytes in one way each."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import regex

from harness.backend.grammar import Adapter, Bitmask, Grammar
from harness.backend.vocabulary import Vocabulary

from .reference import Reference, ReferenceGrammar, ReferenceObject, is_output, is_prefix

VERDICT, MASK = "every_tokenization_has_the_same_verdict", "every_tokenization_reaches_the_same_mask"
SPLIT, INVALID, SPECIAL = (
    "every_split_of_a_character_is_accepted",
    "invalid_utf8_is_refused_at_once",
    "special_token_text_is_plain_text",
)

BEYOND_ASCII = (
    r"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    r"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
STRING = r'"(?:[ !#-\[\]-\x7f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})|CHARACTERS)*"'

FAULTS: dict[type[Adapter], dict[str, set[str]]] = {}
"""Each wrong adapter; the checks of tests/checks/test_checks_tokenization.py that notice it, and the causes
that they give."""


def bytes_vocabulary() -> Vocabulary:
    """Bytes, pieces of characters and text across boundaries, malformed UTF-8, one token twice, specials and
    padding."""
    single = [bytes([byte]) for byte in range(256)]
    texts = [
        "ab",
        "abc",
        '"a',
        '"ab',
        "b c",
        'c"',
        " c",
        "bc",
        "é",
        "日",
        "😀",
        '日"',
        "日😀",
        "é日",
        "</",
        "s>",
        "ab",
        "[I",
        "ST]",
        '""',
    ]
    pieces = [
        "e697",
        "97a5",
        "f09f",
        "9880",
        "f09f98",
        "9f98",
        "22e6",
        "a5f0",
        "c080",
        "eda080",
        "f4908080",
        "e24122",
        "8080",
    ]
    plain = [*single, *(text.encode() for text in texts), *map(bytes.fromhex, pieces)]
    end = len(plain)
    return Vocabulary(
        "pieces",
        (*plain, *[b""] * 6),
        (end,),
        {end: "</s>", end + 1: "[INST]"},
        frozenset(range(end + 2, end + 6)),
    )


class Strings(Reference):
    """Right: any JSON string, raw or escaped, and whatever `Reference` knows."""

    characters = BEYOND_ASCII

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if grammar.dialect == "json_schema" and json.loads(grammar.text) == {"type": "string"}:
            return ReferenceGrammar(
                self, regex.compile(STRING.replace("CHARACTERS", self.characters).encode())
            )
        return super().compile(grammar)


def breaks(**noticed: set[str]) -> Callable[[type[ReferenceObject]], type[ReferenceObject]]:
    """Registers `Strings` with objects of this class."""

    def register(wrong: type[ReferenceObject]) -> type[ReferenceObject]:
        FAULTS[type(wrong.__name__, (Strings,), {"object_class": wrong})] = noticed
        return wrong

    return register


def takes(name: str, characters: str, cause: str) -> None:
    """Registers strings with more characters than there are."""
    FAULTS[type(name, (Strings,), {"characters": f"{BEYOND_ASCII}|{characters}"})] = {INVALID: {cause}}


def ends_inside_a_character(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


# What is no UTF-8

takes("TakesTwoBytesForAscii", r"\xc0[\x80-\xbf]", "overlong")
takes("TakesMoreBytesThanNeeded", r"\xe0[\x80-\xbf]{2}|\xf0[\x80-\xbf]{3}", "overlong")
takes("TakesSurrogates", r"\xed[\xa0-\xbf][\x80-\xbf]", "surrogate")
takes("TakesMoreThanUnicodeHas", r"\xf4[\x80-\xbf]{3}", "beyond")
takes("TakesAnyHighByte", r"[\xf5-\xff]", "beyond")
takes("TakesContinuationsAlone", r"[\x80-\xbf]", "lone_continuation")
takes("TakesOneOfTwoBytes", r"\xc3", "truncated")
takes("TakesTwoOfThreeBytes", r"\xe2\x82", "truncated")
takes("TakesThreeOfFourBytes", r"\xf0\x9f\x98", "truncated")


@breaks(**{INVALID: {"surrogate"}})
class AcceptsSurrogatesThatItMasks(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        text = self.text + self.vocabulary.tokens[token]
        if text.startswith(b'"') and text.endswith(b"\xed\xa0"):
            self.taken.append(token)
            return True
        return super().accept_token(token)


@breaks(**{INVALID: {"truncated"}, SPLIT: {"truncated"}})
class EndsInsideACharacter(ReferenceObject):
    def is_accepting(self) -> bool:
        return super().is_accepting() or ends_inside_a_character(self.text)


@breaks(**{SPLIT: {"partial_utf8"}, VERDICT: {"partial_utf8"}})
class KnowsWholeCharactersOnly(ReferenceObject):
    def may_take(self, token: int) -> bool:
        partial = ends_inside_a_character(self.text + self.vocabulary.tokens[token])
        return not partial and super().may_take(token)


@breaks(**{SPLIT: {"partial_utf8"}, VERDICT: {""}, MASK: {""}})
class CountsThePiecesOfACharacter(ReferenceObject):
    """The closing quote is refused after a character that came in pieces."""

    def may_take(self, token: int) -> bool:
        partial = any(ends_inside_a_character(self.vocabulary.tokens[taken]) for taken in self.taken)
        return not (partial and self.vocabulary.tokens[token].endswith(b'"')) and super().may_take(token)


# Tokens instead of bytes


@breaks(**{VERDICT: {"canonical_only"}, SPLIT: {"canonical_only"}})
class MasksAllButTheCanonicalToken(ReferenceObject):
    """Where text is forced; `accept_token` takes the others."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        forced = self.forced()
        if not forced:
            return super().fill_bitmask(bitmask)
        token = self.vocabulary.encode(forced)[0]
        bitmask[:] = 0
        bitmask[token >> 5] = np.uint32(1 << (token & 31)).view(np.int32)


@breaks(**{VERDICT: {"possible_end"}})
class StaysWhereItMayEnd(ReferenceObject):
    """No token leads from a text that may be the output, or over it, to one that may not."""

    def may_take(self, token: int) -> bool:
        text, more = self.text, self.vocabulary.tokens[token]
        passed = any(is_output(self.pattern, text + more[:size]) for size in range(len(more)))
        return super().may_take(token) and not (passed and not is_output(self.pattern, text + more))


@breaks(**{VERDICT: {""}})
class RefusesATokenAcrossTheQuote(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return self.vocabulary.tokens[token] != b'"a' and super().may_take(token)


@breaks(**{VERDICT: {"end_of_sequence"}, SPLIT: {"partial_utf8"}, MASK: {"end_of_sequence"}})
class CannotEndAfterManyTokens(ReferenceObject):
    def is_accepting(self) -> bool:
        return len(self.taken) <= 6 and super().is_accepting()


@breaks(**{MASK: {""}})
class ForgetsALetterAfterShortTokens(ReferenceObject):
    """The mask; `accept_token` does not."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        if self.taken and len(self.vocabulary.tokens[self.taken[-1]]) == 1:
            bitmask[ord("z") >> 5] &= ~(1 << (ord("z") & 31))


@breaks(**{MASK: {"partial_utf8"}})
class ForgetsPiecesAfterShortTokens(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        if self.taken and self.vocabulary.tokens[self.taken[-1]] in (b'"', b"b", b"c"):
            bitmask[0xF1 >> 5] &= ~(1 << (0xF1 & 31))


# Special tokens


@breaks(**{SPECIAL: {"special_text_refused"}})
class RefusesTheTextOfTheEnd(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return b"</s>" not in self.text + self.vocabulary.tokens[token] and super().may_take(token)


@breaks(**{SPECIAL: {"special_text_refused"}})
class MasksTheTextOfTheEnd(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        if self.text.endswith(b"</"):
            last = self.vocabulary.ids_by_bytes[b"s>"]
            bitmask[last >> 5] &= ~(1 << (last & 31))


@breaks(**{SPECIAL: {"special_id_allowed"}})
class AllowsAnIdAsText(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return (
            self.vocabulary.special_tokens.get(token) == "[INST]"
            and is_prefix(self.pattern, self.text + b"[INST]")
        ) or super().may_take(token)


@breaks(**{SPECIAL: {"special_id_allowed"}})
class TakesTheEndForText(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        if (
            token == self.vocabulary.eos_token
            and not self.is_accepting()
            and is_prefix(self.pattern, self.text + b"</s>")
        ):
            return True
        return super().accept_token(token)
