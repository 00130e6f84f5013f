"""Where the checks stand: tiny grammars in every dialect, and the positions along one output of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
    allocate_bitmask,
    allowed_tokens,
    is_allowed,
    overrides,
)
from harness.backend.vocabulary import Vocabulary
from harness.text import counted


class ContractBroken(AssertionError):
    """What the adapter does that the contract forbids, and where, in one line."""


class NotApplicable(Exception):
    """Why there is nothing to check, in one line."""


NOTHING_COMPILES = "the adapter compiles none of the sample grammars"
"""The reason where nothing of an adapter can be tried."""


TAG = '{"triggers": ["<f>"], "structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}]}'

OPEN: tuple[tuple[Grammar, bytes], ...] = (
    (Grammar("regex", "[ab][0-9]+"), b"a12"),
    (Grammar("choice", '["a1", "a2", "a12", "b1", "b2"]'), b"a12"),
    (Grammar("json_schema", '{"type": "integer"}'), b"12"),
    (Grammar("ebnf", "root ::= [ab] [0-9]+\n"), b"a12"),
    (Grammar("lark", "start: /[ab]/ /[0-9]+/\n"), b"a12"),
    (Grammar("structural_tag", TAG), b"<f>12</f>"),
)
"""A grammar and an output of it; outside of the tag's own text more than one byte may come next everywhere,
so that a backend that allows only the canonical one of the forced tokens keeps the contract too."""

FORCED: tuple[tuple[Grammar, bytes], ...] = (
    (Grammar("regex", "(abc|abd)[0-9]"), b"abc1"),
    (Grammar("choice", '["abc", "abd"]'), b"abd"),
    (Grammar("json_schema", '{"enum": ["abc", "abd"]}'), b'"abc"'),
    (Grammar("ebnf", 'root ::= "ab" [cd] [0-9]\n'), b"abc1"),
    (Grammar("lark", 'start: "ab" /[cd]/ /[0-9]/\n'), b"abc1"),
    (Grammar("structural_tag", TAG), b"<f>12</f>"),
)
"""A grammar and an output of it; except for the tag, the start has one next byte only."""


@dataclass(frozen=True)
class Place:
    """A compiled grammar and the accepted tokens that lead to one position."""

    adapter: Adapter
    grammar: Grammar
    compiled: CompiledGrammar
    tokens: tuple[int, ...]

    def started(self) -> GrammarObject:
        """Returns a fresh object, at the start."""
        grammar_object: object = self.compiled.start()
        text = f"start() gives {kind_of(grammar_object)}, not a GrammarObject"
        expect(isinstance(grammar_object, GrammarObject), self.grammar, text)
        return cast(GrammarObject, grammar_object)

    def reach(self) -> GrammarObject:
        """Returns a fresh object, walked to here."""
        grammar_object = self.started()
        for token in self.tokens:
            expect(
                grammar_object.accept_token(token),
                self,
                f"a fresh object refuses token {token}, which another one accepted",
            )
        return grammar_object

    def mask(self, grammar_object: GrammarObject) -> Bitmask:
        """Returns the object's mask, filled into zeros."""
        bitmask = allocate_bitmask(self.adapter.vocabulary.size)
        grammar_object.fill_bitmask(bitmask)
        return bitmask

    def state(self, grammar_object: GrammarObject) -> tuple[bytes, bool, bool]:
        """Returns all that can be seen of an object without moving it."""
        return (
            self.mask(grammar_object).tobytes(),
            grammar_object.is_accepting(),
            grammar_object.is_terminated(),
        )

    def with_grammar(self, compiled: CompiledGrammar) -> Place:
        """Returns the same position in the same grammar, compiled again."""
        return Place(self.adapter, self.grammar, compiled, self.tokens)

    def __str__(self) -> str:
        return (
            f"{self.grammar.dialect} {self.grammar.text.strip()} after "
            f"{self.adapter.vocabulary.decode(list(self.tokens))!r}"
        )


def expect(holds: bool, where: Place | Grammar, otherwise: str) -> None:
    """Raises ContractBroken with the place and what was seen there, unless the fact holds."""
    if not holds:
        text = where if isinstance(where, Place) else f"{where.dialect} {where.text.strip()}"
        raise ContractBroken(f"{text}: {otherwise}")


def kind_of(answer: object) -> str:
    """Returns the type of an answer for a sentence: `None`, or the name of a class with its article."""
    return "None" if answer is None else f"a {type(answer).__name__}"


def compiled_of(adapter: Adapter, grammar: Grammar) -> CompiledGrammar:
    """Returns what the adapter makes of the grammar. Raises UnsupportedGrammar or InvalidGrammar where it
    declines, and ContractBroken for what is no compiled grammar."""
    compiled: object = adapter.compile(grammar)
    text = f"compile gives {kind_of(compiled)}, not a CompiledGrammar"
    expect(isinstance(compiled, CompiledGrammar), grammar, text)
    return cast(CompiledGrammar, compiled)


def spell(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """Returns one token a byte where the vocabulary has them, else its own tokenization.

    Raises NotApplicable if the vocabulary cannot spell the text.
    """
    ids = vocabulary.ids_by_bytes
    if all(bytes([byte]) in ids for byte in text):
        return [ids[bytes([byte])] for byte in text]
    try:
        return vocabulary.encode(text)
    except ValueError as error:
        raise NotApplicable(str(error)) from error


def starts(
    adapter: Adapter, samples: tuple[tuple[Grammar, bytes], ...] = OPEN
) -> list[tuple[Place, list[int]]]:
    """Returns the start of each sample grammar that the adapter compiles, and the tokens of its output.

    Raises NotApplicable if it compiles none.
    """
    places_at_start: list[tuple[Place, list[int]]] = []
    for grammar, text in samples:
        if grammar.dialect in adapter.dialects:
            try:
                compiled = compiled_of(adapter, grammar)
            except (UnsupportedGrammar, InvalidGrammar):
                continue
            places_at_start.append((Place(adapter, grammar, compiled, ()), spell(adapter.vocabulary, text)))
    if not places_at_start:
        raise NotApplicable(NOTHING_COMPILES)
    return places_at_start


def paths(adapter: Adapter, samples: tuple[tuple[Grammar, bytes], ...] = OPEN) -> Iterator[list[Place]]:
    """Yields for each sample grammar, every position along its output, from the start as far as it is
    accepted."""
    for start, tokens in starts(adapter, samples):
        grammar_object = start.started()
        path = [start]
        for count, token in enumerate(tokens, 1):
            if not grammar_object.accept_token(token):
                break
            path.append(Place(adapter, start.grammar, start.compiled, tuple(tokens[:count])))
        yield path


def places(adapter: Adapter, samples: tuple[tuple[Grammar, bytes], ...] = OPEN) -> Iterator[Place]:
    """Yields the positions of all paths."""
    for path in paths(adapter, samples):
        yield from path


def accepting_places(adapter: Adapter) -> Iterator[tuple[Place, GrammarObject]]:
    """Yields each place where the output could end, with an object that has accepted end-of-sequence there;
    once for each of its ids.

    Raises NotApplicable if end-of-sequence is accepted nowhere.
    """
    count = 0
    for place in places(adapter):
        for end in adapter.vocabulary.eos_tokens:
            grammar_object = place.reach()
            if grammar_object.is_accepting() and grammar_object.accept_token(end):
                count += 1
                yield place, grammar_object
    if not count:
        raise NotApplicable("end-of-sequence is accepted nowhere along the sample outputs")


def refusals(adapter: Adapter) -> Iterator[tuple[Place, int]]:
    """Places, each with a token of plain text that the mask forbids and `accept_token` refuses there.

    Raises NotApplicable if the backend allows everything everywhere.
    """
    count = 0
    for place in places(adapter):
        token = refused_byte(place)
        if token is not None:
            count += 1
            yield place, token
    if not count:
        raise NotApplicable("no token of one byte is refused along the sample outputs")


def refused_byte(place: Place) -> int | None:
    """Returns the first token of one byte that the mask forbids and `accept_token` refuses here, if there is
    one."""
    grammar_object = place.reach()
    mask = place.mask(grammar_object)
    for token in byte_tokens(place.adapter.vocabulary):
        if not is_allowed(mask, token) and not grammar_object.accept_token(token):
            return token
    return None


def byte_tokens(vocabulary: Vocabulary) -> list[int]:
    """Returns the plain tokens of one byte, in the order of the bytes."""
    return [
        vocabulary.ids_by_bytes[text]
        for text in (bytes([byte]) for byte in range(256))
        if text in vocabulary.ids_by_bytes
    ]


def allowed(place: Place, mask: Bitmask) -> NDArray[np.int64]:
    """Returns the ids that the mask allows."""
    return allowed_tokens(mask, place.adapter.vocabulary.size)


def difference(one: Bitmask, other: Bitmask) -> str:
    """Returns how many bits differ, and the first few of them."""
    bits = np.flatnonzero(np.unpackbits((one ^ other).view(np.uint8), bitorder="little"))
    return f"they differ in {counted(len(bits), 'bit')}, e.g. {', '.join(str(int(bit)) for bit in bits[:4])}"


def step(place: Place) -> int | None:
    """Returns a token of plain text that the mask allows and `accept_token` takes here, if there is one."""
    grammar_object = place.reach()
    for token in allowed(place, place.mask(grammar_object)):
        if place.adapter.vocabulary.tokens[token] and grammar_object.accept_token(int(token)):
            return int(token)
    return None


def accepted(grammar_object: GrammarObject, tokens: Sequence[int]) -> int:
    """Returns how many of the tokens `accept_token` takes, one by one."""
    for count, token in enumerate(tokens):
        if not grammar_object.accept_token(token):
            return count
    return len(tokens)


def needs(grammar_object: GrammarObject, method: str) -> None:
    """Raises NotApplicable if the adapter does not implement the optional method."""
    if not overrides(grammar_object, method):
        raise NotApplicable(f"the adapter does not implement {method}")


def adapter_needs(adapter: Adapter, method: str) -> None:
    """Raises NotApplicable if the objects of the adapter do not implement the optional method, or if it
    compiles no sample grammar. It is asked before anything else, so that an adapter without the method is
    blamed for nothing in its check."""
    for grammar, _ in OPEN:
        if grammar.dialect in adapter.dialects:
            try:
                compiled = compiled_of(adapter, grammar)
            except (UnsupportedGrammar, InvalidGrammar):
                continue
            needs(Place(adapter, grammar, compiled, ()).started(), method)
            return
    raise NotApplicable(NOTHING_COMPILES)


def take_back(grammar_object: GrammarObject, count: int) -> None:
    """Rolls back, or raises NotApplicable if the adapter (or what it wraps) cannot."""
    try:
        grammar_object.rollback(count)
    except NotImplementedError as error:
        raise NotApplicable("the adapter does not implement rollback") from error


def clone(grammar_object: GrammarObject) -> GrammarObject:
    """Returns a copy. Raises NotApplicable if the adapter (or what it wraps) has none."""
    try:
        return grammar_object.copy()
    except NotImplementedError as error:
        raise NotApplicable("the adapter does not implement copy") from error
