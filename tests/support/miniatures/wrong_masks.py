"""The perfect backend with masks that are wrong in one way each, and the cause that the exact-mask check must
name."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from harness.backend.grammar import Bitmask, CompiledGrammar, Grammar
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject
from harness.oracle.regex.automaton import regex_automaton
from harness.oracle.trie import TokenSet

WRONG_MASKS: dict[type[Reference], str] = {}


class BentObject(ReferenceObject):
    """A reference object whose mask goes through `bend`."""

    bend: ClassVar[Callable[[ReferenceObject, TokenSet], None]]

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        size = self._adapter.vocabulary.size
        bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little").view(np.bool_)
        type(self).bend(self, bits[:size])
        bitmask[:] = np.packbits(bits, bitorder="little").view(np.int32)


def bends_to(
    cause: str,
) -> Callable[[Callable[[ReferenceObject, TokenSet], None]], Callable[[ReferenceObject, TokenSet], None]]:
    """Registers a perfect backend whose masks this function changes in place."""

    def register(
        bend: Callable[[ReferenceObject, TokenSet], None],
    ) -> Callable[[ReferenceObject, TokenSet], None]:
        wrong = type(bend.__name__, (BentObject,), {"bend": staticmethod(bend)})

        def start(self: ReferenceGrammar) -> ReferenceObject:
            made: ReferenceObject = wrong(self._adapter, self._language)
            return made

        grammar_class = type("Grammar", (ReferenceGrammar,), {"start": start})

        def compile_wrong(self: Reference, grammar: Grammar) -> CompiledGrammar:
            right = Reference.compile(self, grammar)
            made: CompiledGrammar = grammar_class(self, right._language)
            return made

        WRONG_MASKS[type(bend.__name__, (Reference,), {"compile": compile_wrong})] = cause
        return bend

    return register


@bends_to("partial_utf8")
def forbids_partial_characters(here: ReferenceObject, allowed: TokenSet) -> None:
    for token, text in enumerate(here._adapter.vocabulary.tokens):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            allowed[token] &= error.reason != "unexpected end of data"


@bends_to("")
def forbids_the_letter_z(here: ReferenceObject, allowed: TokenSet) -> None:
    allowed[ord("z")] = False


@bends_to("")
def allows_the_letter_x(here: ReferenceObject, allowed: TokenSet) -> None:
    allowed[ord("x")] = True


@bends_to("possible_end")
def ends_where_it_can(here: ReferenceObject, allowed: TokenSet) -> None:
    if here.is_accepting():
        for token in np.flatnonzero(allowed).tolist():
            text = here._adapter.vocabulary.tokens[token]
            allowed[token] = here._language.accepting(here._language.run(here._states[-1], text))


@bends_to("invalid_utf8")
def allows_a_lone_byte(here: ReferenceObject, allowed: TokenSet) -> None:
    allowed[0xC0] = True


@bends_to("end_of_sequence")
def allows_the_end_everywhere(here: ReferenceObject, allowed: TokenSet) -> None:
    allowed[here._adapter.vocabulary.eos_token] = True


@bends_to("end_of_sequence")
def never_allows_the_end(here: ReferenceObject, allowed: TokenSet) -> None:
    allowed[here._adapter.vocabulary.eos_token] = False


@bends_to("special_token")
def allows_specials(here: ReferenceObject, allowed: TokenSet) -> None:
    allowed[list(here._adapter.vocabulary.special_tokens)] = True


@bends_to("empty_token")
def allows_empty_tokens(here: ReferenceObject, allowed: TokenSet) -> None:
    vocabulary = here._adapter.vocabulary
    never = {*vocabulary.special_tokens, *vocabulary.padding_tokens}
    allowed[[token for token, text in enumerate(vocabulary.tokens) if not text and token not in never]] = True


@bends_to("whitespace")
def allows_a_blank(here: ReferenceObject, allowed: TokenSet) -> None:
    allowed[ord(" ")] = True


@bends_to("canonical_only")
def allows_only_the_canonical_token_of_forced_text(here: ReferenceObject, allowed: TokenSet) -> None:
    forced = here.fast_forward_tokens()
    if forced:
        allowed[:] = False
        allowed[forced[0]] = True


@bends_to("")
def allows_only_the_canonical_token_and_nothing_behind_it(here: ReferenceObject, allowed: TokenSet) -> None:
    forced = here.fast_forward_tokens()
    was_forced = len(here._states) > 1 and here._language.forced(here._states[-2], 1)
    if forced or was_forced:
        allowed[:] = False
    if forced and not was_forced:
        allowed[forced[0]] = True


@bends_to("")
def allows_only_one_token_that_is_more_than_forced(here: ReferenceObject, allowed: TokenSet) -> None:
    if here._language.forced(here._states[-1], 3) == b"ab":
        allowed[:] = False
        allowed[here._adapter.vocabulary.tokens.index(b"abc")] = True


class EcmaClasses(Reference):
    """Reads `\\d` as ECMA-262 does."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, regex_automaton(grammar.text, "ecma"))
