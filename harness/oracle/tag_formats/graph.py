"""The graph of a format: parts, and where each of their exits leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from harness.backend.grammar import Grammar
from harness.backend.tag_formats import forms
from harness.backend.tag_formats.forms import Format, TagFormat, TokenName
from harness.backend.tag_formats.tokens import UnknownToken, token_id
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.json_schema.budget import Budget
from harness.oracle.tag_formats.gemma import GemmaAutomaton
from harness.oracle.tag_formats.members import MembersAutomaton
from harness.oracle.tag_formats.parts import (
    MOST_BEGINNINGS,
    Described,
    FreeText,
    Part,
    Texts,
    TokenPart,
)
from harness.oracle.tag_formats.styles import STYLES
from harness.oracle.tag_formats.written import WrittenAutomaton

MOST_NODES = 20_000
"""Nodes of a graph; a format that is repeated often and in itself unrolls to more."""

DocumentsOf = Callable[[forms.JsonSchema], JsonSchemaAutomaton]

WRITTEN: dict[str, Callable[[JsonSchemaAutomaton], WrittenAutomaton[Any]]] = {
    "gemma": GemmaAutomaton,
    **{name: partial(MembersAutomaton, style=style) for name, style in STYLES.items()},
}
"""What makes the automaton of documents in each style that has a reference, but for JSON itself."""


@dataclass
class Node:
    """A part with the nodes behind each of its exits; without a part, what leads to some nodes."""

    part: Part | None
    after: dict[int, list[int]] = field(default_factory=dict)
    """The numbers of the nodes behind each exit, by the exit's number; without a part all stand under 0."""


class Graph:
    """The nodes of a format: one is the start (None if no output exists) and number 0 is the end.

    From every node the end can be reached: where a format has no outputs, nothing leads to it.
    """

    def __init__(
        self, format: Format, documents_of: DocumentsOf, budget: Budget, vocabulary: Vocabulary | None
    ) -> None:
        self.nodes = [Node(None)]
        self.documents: list[JsonSchemaAutomaton] = []
        self.has_tokens = forms.has_tokens(format)
        self._documents_of = documents_of
        self._budget = budget
        self._vocabulary = vocabulary
        self._described_parts: dict[int, Described] = {}
        self._written: dict[tuple[int, str], Described] = {}
        """The documents of a schema in a style that is not JSON; schemas live as long as `documents` does."""
        self._text_parts: dict[tuple[str, ...], Texts] = {}
        self._token_parts: dict[tuple[int, ...], TokenPart] = {}
        self._ids: dict[TokenName, int] = {}
        self._free_parts: dict[tuple[Any, ...], FreeText] = {}
        """Free text by all that it is made of."""
        self._beginnings = 0
        """Bytes in the beginnings of what is looked for in all free text."""
        self._ends: list[tuple[str, ...] | forms.OneToken] = []
        """The ends of the tags around the format that is being built, the innermost last."""
        self.start = self._entry(format, END)

    # Each method returns the node at which a format begins that is followed by a node; None if the format has
    # no outputs.

    def _entry(self, format: Format, after: int) -> int | None:
        match format:
            case forms.Sequence(elements):
                return self._row(elements, after)
            case forms.Alternatives(elements):
                return self._any_of(self._entry(each, after) for each in elements)
            case forms.Repetition(content, least, most):
                return self._repetition(content, least, most, after)
            case TagFormat(begin):
                return self._row([_begin_of(begin)], self._inside(format, after))
            case forms.TriggeredTags():
                return self._triggered_tags(format, after)
            case forms.SeparatedTags():
                return self._separated_tags(format, after)
            case forms.Dispatch(rules, loop, excludes):
                return self._dispatch(rules, loop, excludes, after)
            case forms.TokenTriggeredTags():
                return self._token_triggered_tags(format, after)
            case forms.TokenDispatch(rules, loop, excluded):
                return self._token_dispatch(rules, loop, excluded, after)
            case forms.AnyTokens(excluded, most):
                return self._repetition(forms.OtherToken(excluded), 0, most, after)
            case _:
                return self._leaf(self._part(format), after)

    def _leaf(self, part: Part, after: int) -> int | None:
        return None if part.start == DEAD else self._node(part, {0: [after]})

    def _row(self, elements: Sequence[Format], after: int | None) -> int | None:
        for element in reversed(elements):
            if after is None:
                return None
            after = self._entry(element, after)
        return after

    def _any_of(self, entries: Iterable[int | None]) -> int | None:
        possible = [entry for entry in entries if entry is not None]
        return self._node(None, {0: possible}) if possible else None

    def _repetition(self, content: Format, least: int, most: int | None, after: int) -> int | None:
        if most is None:
            rest = self._node(None, {0: [after]})
            if (again := self._entry(content, rest)) is not None:
                self.nodes[rest].after[0].append(again)
        else:
            rest = after
            for _ in range(most - least):
                self._budget.check_now()
                if (once := self._entry(content, rest)) is None:
                    break
                rest = self._node(None, {0: [after, once]})
        here = rest
        for _ in range(least):
            self._budget.check_now()
            before = self._entry(content, here)
            if before is None or before == here:  # no outputs, or the empty one alone, however often
                return before
            here = before
        return here

    def _inside(self, tag: TagFormat, after: int) -> int | None:
        """The content of a tag and its end."""
        end: int | None
        if isinstance(tag.end, tuple):
            end = self._node(self._texts(tag.end), {number: [after] for number in range(len(tag.end))})
        else:
            end = self._entry(tag.end, after)
        if end is None:
            return None
        self._ends.append(tag.end)
        try:
            return self._entry(tag.content, end)
        finally:
            self._ends.pop()

    # Free text and what it leads to

    def _dispatch(
        self, rules: Sequence[tuple[str, Format]], loop: bool, excludes: tuple[str, ...], after: int
    ) -> int:
        free = self._node(None)
        behind = free if loop else after
        contents = [self._entry(content, behind) for _, content in rules]
        self._free_text(free, [pattern for pattern, _ in rules], contents, excludes, after)
        return free

    def _free_text(
        self,
        node: int,
        patterns: Sequence[str],
        contents: Sequence[int | None],
        excludes: Iterable[str],
        after: int,
    ) -> None:
        """Makes the node free text that ends with a pattern and its content, or for good."""
        is_possible = tuple(content is not None for content in contents)
        self.nodes[node].part = self._free_part(tuple(patterns), is_possible, tuple(excludes))
        self.nodes[node].after = {
            number: [content] for number, content in enumerate(contents) if content is not None
        } | {len(patterns): [after]}

    def _triggered_tags(self, format: forms.TriggeredTags, after: int) -> int | None:
        excludes = (*format.excludes, *self._text_ends())
        free = self._node(None)
        behind = free if not format.stop_after_first else after
        insides = [self._inside(tag, behind) for tag in format.tags]
        begins = [str(tag.begin) for tag in format.tags]
        contents = []
        for trigger in format.triggers:
            rests = [
                (begin[len(trigger) :], inside)
                for begin, inside in zip(begins, insides, strict=True)
                if begin.startswith(trigger)
            ]
            contents.append(self._one_text_of(rests))
        self._free_text(free, format.triggers, contents, excludes, after)
        if not format.at_least_one:
            return free
        return self._one_text_of(zip(begins, insides, strict=True))

    def _one_text_of(self, entries: Iterable[tuple[str, int | None]]) -> int | None:
        """One of some texts, each with what follows it."""
        possible = [(text, entry) for text, entry in entries if entry is not None]
        if not possible:
            return None
        exits = {number: [entry] for number, (_, entry) in enumerate(possible)}
        return self._node(self._texts([text for text, _ in possible]), exits)

    def _separated_tags(self, format: forms.SeparatedTags, after: int) -> int | None:
        if format.stop_after_first:
            tag = self._any_of(self._entry(tag, after) for tag in format.tags)
        else:
            behind = self._node(None, {0: [after]})
            tag = self._any_of(self._entry(tag, behind) for tag in format.tags)
            if tag is not None:
                separator = self._leaf(self._texts([format.separator]), tag)
                assert separator is not None
                self.nodes[behind].after[0].append(separator)
        return tag if format.at_least_one else self._any_of((tag, after))

    def _text_ends(self) -> tuple[str, ...]:
        """The texts that end the innermost tag around: no free text holds them, by the documentation's
        "automatic end detection"."""
        end = self._ends[-1] if self._ends else ()
        return end if isinstance(end, tuple) else ()

    # Tokens

    def _token_ends(self) -> tuple[TokenName, ...]:
        end = self._ends[-1] if self._ends else ()
        return (end.token,) if isinstance(end, forms.OneToken) else ()

    def _token_dispatch(
        self,
        rules: Sequence[tuple[TokenName, Format]],
        loop: bool,
        excluded: Sequence[TokenName],
        after: int,
    ) -> int:
        free = self._node(None, {0: [after]})
        behind = free if loop else after
        contents = [(token, self._entry(content, behind)) for token, content in rules]
        self._free_tokens(free, contents, excluded)
        return free

    def _token_triggered_tags(self, format: forms.TokenTriggeredTags, after: int) -> int | None:
        excluded = (*format.excluded, *self._token_ends())
        free = self._node(None, {0: [after]})
        behind = free if not format.stop_after_first else after
        tags = [(_token_of(tag), self._inside(tag, behind)) for tag in format.tags]
        others: list[tuple[TokenName, int | None]] = [(trigger, None) for trigger in format.triggers]
        if not {self._id(token) for token, _ in tags} <= {self._id(token) for token, _ in others}:
            raise NoOracle("a tag of token_triggered_tags begins with no trigger")
        self._free_tokens(free, [*tags, *others], excluded)
        return free if not format.at_least_one else self._any_of(self._begun(tags))

    def _free_tokens(
        self,
        node: int,
        contents: Sequence[tuple[TokenName, int | None]],
        excluded: Sequence[TokenName],
    ) -> None:
        """Lets other tokens than these and the excluded ones lead back to the node, and these to what follows
        them."""
        others = forms.OtherToken((*excluded, *(token for token, _ in contents)))
        again = self._leaf(self._tokens(others.excluded, is_excluded=True), node)
        banned = {self._id(token) for token in excluded}
        begun = self._begun([each for each in contents if self._id(each[0]) not in banned])
        self.nodes[node].after[0] += [each for each in (again, *begun) if each is not None]

    def _begun(self, contents: Iterable[tuple[TokenName, int | None]]) -> list[int | None]:
        return [
            self._leaf(self._tokens((token,), is_excluded=False), entry)
            for token, entry in contents
            if entry is not None
        ]

    def _tokens(self, tokens: Iterable[TokenName], *, is_excluded: bool) -> TokenPart:
        """One token of these, or any other. End-of-sequence ends the output; padding, and a token that is
        truly empty, are no tokens of an output."""
        vocabulary = self._known_vocabulary()
        ids = sorted({self._id(token) for token in tokens})
        key = (*ids, -1) if is_excluded else tuple(ids)
        if key not in self._token_parts:
            allowed = np.full(vocabulary.size, is_excluded)
            allowed[ids] = not is_excluded
            allowed[[*vocabulary.eos_tokens, *vocabulary.padding_tokens, *_empty_tokens(vocabulary)]] = False
            self._token_parts[key] = TokenPart(allowed)
        return self._token_parts[key]

    def _id(self, token: TokenName) -> int:
        if token not in self._ids:
            try:
                self._ids[token] = token_id(self._known_vocabulary(), token)
            except UnknownToken as error:
                raise NoOracle(str(error)) from error
        return self._ids[token]

    def _known_vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            raise NoOracle("its tokens are ids of a vocabulary, and none is given")
        return self._vocabulary

    # Parts

    def _part(self, format: Format) -> Part:
        """The part of a format that is no more than one; made once, however often it is repeated."""
        match format:
            case forms.ConstString(value):
                return self._texts([value])
            case forms.AnyText(excludes, most_tokens, most_characters):
                if most_tokens is not None:
                    raise NoOracle("max_tokens of any_text counts tokens, which may begin before the text")
                return self._free_part((), (), (*excludes, *self._text_ends()), most_characters)
            case forms.OneToken(token):
                return self._tokens((token,), is_excluded=False)
            case forms.OtherToken(excluded):
                return self._tokens((*excluded, *self._token_ends()), is_excluded=True)
        if id(format) not in self._described_parts:
            self._described_parts[id(format)] = self._described(format)
            self._budget.check_now()
        return self._described_parts[id(format)]

    def _texts(self, texts: Sequence[str]) -> Texts:
        key = tuple(texts)
        if key not in self._text_parts:
            self._text_parts[key] = Texts([text.encode() for text in key])
        return self._text_parts[key]

    def _free_part(
        self,
        patterns: tuple[str, ...],
        is_possible: tuple[bool, ...],
        excludes: tuple[str, ...],
        most_characters: int | None = None,
    ) -> FreeText:
        key = patterns, is_possible, excludes, most_characters
        if key not in self._free_parts:
            sought = [pattern.encode() for pattern in patterns]
            banned = [text.encode() for text in excludes if text]
            self._beginnings += sum(len(text) ** 2 for text in (*sought, *banned))
            if self._beginnings > MOST_BEGINNINGS:
                raise NoOracle("triggers, patterns or excluded texts are too long, or too many")
            self._free_parts[key] = FreeText(sought, is_possible, banned, most_characters)
            self._budget.check_now()
        return self._free_parts[key]

    def _described(self, format: Format) -> Described:
        from harness.oracle.language import language_of

        match format:
            case forms.JsonSchema():
                if format.style != "json" and format.style not in WRITTEN:
                    raise NoOracle(f"no reference for documents in the style {format.style}")
                if format.excludes:
                    raise NoOracle("no reference for documents with excludes")
                documents = self._documents_of(format)
                self.documents.append(documents)
                if format.style == "json":
                    return Described(documents)
                key = id(documents), format.style
                if key not in self._written:
                    self._written[key] = Described(WRITTEN[format.style](documents))
                return self._written[key]
            case forms.Regex(pattern):
                return Described(language_of(Grammar("regex", pattern)))
            case forms.GrammarText(text, syntax):
                return Described(language_of(Grammar(syntax, text)))
        raise AssertionError(format)

    def _node(self, part: Part | None, after: dict[int, list[int]] | None = None) -> int:
        if len(self.nodes) == MOST_NODES:
            raise NoOracle(f"the format unrolls to more than {MOST_NODES:,} parts")
        self.nodes.append(Node(part, after or {}))
        return len(self.nodes) - 1


def _empty_tokens(vocabulary: Vocabulary) -> list[int]:
    """Returns the ids that have neither text nor a name."""
    tokens = enumerate(vocabulary.tokens)
    return [token for token, text in tokens if not text and token not in vocabulary.special_tokens]


END = 0
"""The node at which the output may end."""


def _begin_of(begin: str | forms.OneToken) -> Format:
    return forms.ConstString(begin) if isinstance(begin, str) else begin


def _token_of(tag: TagFormat) -> TokenName:
    assert isinstance(tag.begin, forms.OneToken)
    return tag.begin.token
