"""The judge of the EBNF suite: reads the form of docs/ebnf.md and recognises text, by Earley over code
points.

Kept apart from the harness on purpose: it shares no code with it, and is simple rather than fast.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

_LAYOUT = r"(?:[ \t\r\n]|#[^\r\n]*+)"
_NAME = r"[a-zA-Z_][a-zA-Z0-9_-]*"
_TOKEN = re.compile(
    rf"(?P<layout>{_LAYOUT}+)|(?P<define>{_NAME}{_LAYOUT}*::=)|(?P<name>{_NAME})|(?P<mark>[()|])|(?P<repeat>[*+?])"
    r'|(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*")|(?P<class>\[(?:[^]\\\r\n]|\\[^\r\n])+\])'
    r"|(?P<count>\{[ \t\r\n]*[0-9]+[ \t\r\n]*(?:,[ \t\r\n]*(?:[0-9]+[ \t\r\n]*)?)?\})|(?P<end>\Z)"
)
_CHARACTER = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|[^\\]"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"'}
_CLASS_ESCAPES = _ESCAPES | {mark: mark for mark in "[]-^"}


class EbnfError(ValueError):
    """A malformed grammar; the message begins with `line N: `."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(frozen=True)
class Characters:
    """A set of code points: inclusive ranges, or all but these."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated

    def is_empty(self) -> bool:
        """Does no Unicode scalar value belong?"""
        if not self.negated:
            return False
        # The lowest character outside all ranges is the first of all, follows a range, or follows the
        # surrogates.
        candidates = [0, 0xE000, *(ord(high) + 1 for _, high in self.ranges)]
        return not any(chr(c) in self for c in candidates if c <= 0x10FFFF and not 0xD800 <= c <= 0xDFFF)


Symbol = int | Characters
"""A nonterminal's number, or one code point of a set."""

Productions = list[tuple[int, tuple[Symbol, ...]]]


@dataclass(frozen=True)
class Grammar:
    """Plain productions; the start symbol is 0. Those that can never finish are left out."""

    bodies: tuple[tuple[Symbol, ...], ...]
    heads: tuple[int, ...]
    by_head: dict[int, tuple[int, ...]]
    nullable: frozenset[int]


def parse(text: str) -> Grammar:
    """Raises EbnfError for a grammar that is not of the form."""
    return _grammar(_Reader(text).productions())


class _Reader:
    """Turns rules into productions; a group or a repetition becomes a nonterminal of its own."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.collected: Productions = []
        self.names = {"root": 0}
        self.count = 1

    def productions(self) -> Productions:
        defined: set[str] = set()
        used: dict[str, int] = {}
        head = -1
        units: list[tuple[Symbol, ...]] = []
        open_groups: list[tuple[int, list[tuple[Symbol, ...]]]] = []
        repeatable = False
        for kind, token, position in self.tokens():
            if head < 0 and kind not in ("define", "end"):
                raise self.error(position, "expected `name ::=`")
            if open_groups and kind in ("define", "end"):
                raise self.error(position, "a group is not closed")
            if token == ")" and not open_groups:
                raise self.error(position, "no group is open here")
            if head >= 0 and (token in ("|", ")") or kind in ("define", "end")):
                if not units:
                    raise self.error(position, 'an alternative is empty; write "" for the empty string')
                self.collected.append((head, tuple(symbol for unit in units for symbol in unit)))
            if kind == "define":
                name = re.split(r"[^a-zA-Z0-9_-]", token)[0]
                line_start = 1 + max(self.text.rfind("\n", 0, position), self.text.rfind("\r", 0, position))
                if self.text[line_start:position].strip(" \t"):
                    raise self.error(position, f"rule {name} must begin on a line of its own")
                if name in defined:
                    raise self.error(position, f"rule {name} is defined twice")
                defined.add(name)
                head, units = self.symbol_of(name), []
            elif token == "(":
                open_groups.append((head, units))
                head, units = self.new_symbol(), []
            elif token == ")":
                group = head
                head, units = open_groups.pop()
                units.append((group,))
            elif token == "|":
                units = []
            elif kind == "name":
                used.setdefault(token, position)
                units.append((self.symbol_of(token),))
            elif kind == "string":
                characters = (
                    self.character(match[0], _ESCAPES, position)
                    for match in re.finditer(_CHARACTER, token[1:-1])
                )
                units.append(tuple(Characters(((character, character),)) for character in characters))
            elif kind == "class":
                units.append((self.character_class(token, position),))
            elif kind in ("repeat", "count"):
                if not repeatable:
                    raise self.error(position, f"{token} follows nothing that it can repeat")
                units[-1] = self.repeated(units[-1], token, position)
            repeatable = token == ")" or kind in ("name", "string", "class")
        for name, position in used.items():
            if name not in defined:
                raise self.error(position, f"rule {name} is not defined")
        if "root" not in defined:
            raise self.error(len(self.text), "there is no rule root")
        return self.collected

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        """Kind, text and position of each, layout left out, the end last."""
        position = 0
        kind = ""
        while kind != "end":
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.error(position, f"cannot read {self.text[position : position + 20]!r}")
            kind = match.lastgroup or ""
            if kind != "layout":
                yield kind, match[0], position
            position = match.end()

    def error(self, position: int, message: str) -> EbnfError:
        return EbnfError(1 + len(re.findall(r"\r\n|\r|\n", self.text[:position])), message)

    def new_symbol(self) -> int:
        self.count += 1
        return self.count - 1

    def symbol_of(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = self.new_symbol()
        return self.names[name]

    def character_class(self, token: str, position: int) -> Characters:
        negated = token.startswith("[^")
        ranges: list[tuple[str, str]] = []
        for match in re.finditer(rf"({_CHARACTER})(?:-({_CHARACTER}))?", token[2 if negated else 1 : -1]):
            low = self.character(match[1], _CLASS_ESCAPES, position)
            high = low if match[2] is None else self.character(match[2], _CLASS_ESCAPES, position)
            if high < low:
                raise self.error(position, f"the range {match[0]} is the wrong way round")
            ranges.append((low, high))
        if not ranges:
            raise self.error(position, "a class is empty")
        return Characters(tuple(ranges), negated)

    def character(self, spelling: str, escapes: dict[str, str], position: int) -> str:
        """Returns the one character that is spelled plainly or as an escape."""
        if len(spelling) > 2:
            value = int(spelling[2:], 16)
        elif len(spelling) == 2 and spelling[1] not in escapes:
            raise self.error(position, f"unknown escape {spelling}")
        else:
            value = ord(escapes[spelling[1]] if len(spelling) == 2 else spelling)
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise self.error(position, f"{spelling!a} is no Unicode scalar value")
        return chr(value)

    def repeated(self, unit: tuple[Symbol, ...], operator: str, position: int) -> tuple[Symbol, ...]:
        counts = {"*": "{0,}", "+": "{1,}", "?": "{0,1}"}.get(operator, re.sub(r"[ \t\r\n]", "", operator))
        first, comma, last = counts[1:-1].partition(",")
        low = int(first)
        if comma and not last:
            head = self.new_symbol()
            self.collected += [(head, unit * low), (head, (head, *unit))]
            return (head,)
        high = int(last or first)
        if high < low:
            raise self.error(position, f"the count {operator} is the wrong way round")
        # unit{0,3} is (unit (unit (unit)?)?)?
        rest: tuple[Symbol, ...] = ()
        for _ in range(high - low):
            head = self.new_symbol()
            self.collected += [(head, ()), (head, (*unit, *rest))]
            rest = (head,)
        return (*unit * low, *rest)


def _grammar(productions: Productions) -> Grammar:
    possible = [
        (head, body)
        for head, body in productions
        if not any(isinstance(s, Characters) and s.is_empty() for s in body)
    ]
    finishing = _closure(possible, characters=True)
    kept = [
        (head, body)
        for head, body in possible
        if all(isinstance(s, Characters) or s in finishing for s in body)
    ]
    by_head: dict[int, list[int]] = defaultdict(list)
    for number, (head, _) in enumerate(kept):
        by_head[head].append(number)
    return Grammar(
        heads=tuple(head for head, _ in kept),
        bodies=tuple(body for _, body in kept),
        by_head={head: tuple(numbers) for head, numbers in by_head.items()},
        nullable=_closure(kept, characters=False),
    )


def _closure(productions: Productions, *, characters: bool) -> frozenset[int]:
    """Returns the nonterminals with a body of such nonterminals only, and of code points if `characters`."""
    usable = [
        (head, body) for head, body in productions if characters or all(isinstance(s, int) for s in body)
    ]
    bodies = [(head, {s for s in body if isinstance(s, int)}) for head, body in usable]
    users: dict[int, list[tuple[int, set[int]]]] = defaultdict(list)
    for head, missing in bodies:
        for symbol in missing:
            users[symbol].append((head, missing))
    derived: set[int] = set()
    agenda = [head for head, missing in bodies if not missing]
    while agenda:
        symbol = agenda.pop()
        if symbol in derived:
            continue
        derived.add(symbol)
        for head, missing in users[symbol]:
            missing.discard(symbol)
            if not missing:
                agenda.append(head)
    return frozenset(derived)


def sentences(grammar: Grammar, text: str) -> list[bool]:
    """Entry i: is the text's first i code points a sentence?

    The list ends before the first i that begins no sentence.
    """
    waiting: list[dict[int, list[tuple[int, int, int]]]] = []
    verdicts: list[bool] = []
    agenda = [(production, 0, 0) for production in grammar.by_head.get(0, ())]
    for position in range(len(text) + 1):
        if not agenda:
            break
        waiting.append(defaultdict(list))
        visited = set(agenda)
        after: list[tuple[int, int, int]] = []
        is_sentence = False
        for item in agenda:  # grows meanwhile
            production, dot, origin = item
            body = grammar.bodies[production]
            new: list[tuple[int, int, int]] = []
            if dot == len(body):
                head = grammar.heads[production]
                is_sentence |= head == origin == 0
                new = [(p, d + 1, o) for p, d, o in waiting[origin].get(head, ())]
            else:
                symbol = body[dot]
                if isinstance(symbol, int):
                    waiting[position][symbol].append(item)
                    new = [(p, 0, position) for p in grammar.by_head.get(symbol, ())]
                    # An empty completion may come before its waiter: step over it here (Aycock and Horspool).
                    if symbol in grammar.nullable:
                        new.append((production, dot + 1, origin))
                elif position < len(text) and text[position] in symbol:
                    after.append((production, dot + 1, origin))
            for candidate in new:
                if candidate not in visited:
                    visited.add(candidate)
                    agenda.append(candidate)
        verdicts.append(is_sentence)
        agenda = after
    return verdicts


def accepts(grammar: Grammar, text: str) -> bool:
    """Is the whole text a sentence?"""
    verdicts = sentences(grammar, text)
    return len(verdicts) > len(text) and verdicts[-1]


def viable_length(grammar: Grammar, text: str) -> int:
    """Returns how many leading code points of the text some sentence begins with; -1 if there is no sentence
    at all.
    """
    return len(sentences(grammar, text)) - 1
