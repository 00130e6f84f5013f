"""Prepares productions for recognition: removes what derives nothing, and finds which rules can begin with
which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.oracle.ebnf.productions import Body, Productions
from harness.oracle.utf8 import ByteRange, Ranges, byte_sequences


@dataclass(frozen=True)
class Rules:
    """Every rule here is reached from rule 0 and derives some text that is not empty; every alternative can
    be finished."""

    bodies: Mapping[int, tuple[Body, ...]]
    """The alternatives of each rule, without the empty ones. Rule 0 is missing if it derives only the empty
    text."""
    nullable: frozenset[int]
    """The rules that derive the empty text (too); rule 0 even if nothing else is left of it."""
    loops: frozenset[int]
    """Nullable rules of which two in a row derive what one derives."""


def useful_rules(productions: Productions) -> Rules:
    """Returns the productions without alternatives that can never finish, rules that nothing reaches, and
    rules that derive only the empty text."""
    impossible = {
        ~number
        for number, ranges in enumerate(productions.classes)
        if not any(byte_sequences(*pair) for pair in ranges)
    }
    bodies = [(rule, body) for rule, body in productions.bodies if impossible.isdisjoint(body)]
    finishing = _deriving(bodies)
    bodies = [
        (rule, body) for rule, body in bodies if all(symbol < 0 or symbol in finishing for symbol in body)
    ]
    nullable = _deriving([(rule, body) for rule, body in bodies if all(symbol >= 0 for symbol in body)])
    visible = _deriving([(rule, (symbol,)) for rule, body in bodies for symbol in body])
    bodies = [
        (rule, tuple(symbol for symbol in body if symbol < 0 or symbol in visible)) for rule, body in bodies
    ]
    reached = _reached(bodies)
    return Rules(reached, nullable & {0, *reached}, _loops(reached, nullable))


def _loops(bodies: Mapping[int, tuple[Body, ...]], nullable: frozenset[int]) -> frozenset[int]:
    """Returns the rules of the form `rule ::= "" | x rule | y rule`, and those that stand for such a rule."""
    meant = {rule: own[0][0] for rule, own in bodies.items() if len(own) == len(own[0]) == 1}

    def meaning(symbol: int) -> int:
        path: list[int] = []
        while symbol in meant:
            path.append(symbol)
            symbol = meant[symbol]
        meant.update(dict.fromkeys(path, symbol))  # the next one has it at once
        return symbol

    loops = {
        rule
        for rule, own in bodies.items()
        if rule in nullable and all(meaning(body[-1]) == rule for body in own)
    }
    return frozenset(rule for rule in bodies if meaning(rule) in loops)


def _deriving(bodies: Iterable[tuple[int, Body]]) -> frozenset[int]:
    """Returns the rules that derive some text: those with an alternative of code points and of other such
    rules only."""
    missing = [(rule, {symbol for symbol in body if symbol >= 0}) for rule, body in bodies]
    users: dict[int, list[tuple[int, set[int]]]] = defaultdict(list)
    for rule, left in missing:
        for symbol in left:
            users[symbol].append((rule, left))
    deriving: set[int] = set()
    agenda = [rule for rule, left in missing if not left]
    while agenda:
        rule = agenda.pop()
        if rule in deriving:
            continue
        deriving.add(rule)
        for user, left in users[rule]:
            left.discard(rule)
            if not left:
                agenda.append(user)
    return frozenset(deriving)


def _reached(bodies: Iterable[tuple[int, Body]]) -> dict[int, tuple[Body, ...]]:
    """Returns the alternatives of each rule that rule 0 reaches, each alternative once. Empty alternatives
    and those that are only the rule itself are left out, for they add nothing."""
    by_rule: dict[int, dict[Body, None]] = defaultdict(dict)
    for rule, body in bodies:
        if body not in ((), (rule,)):
            by_rule[rule][body] = None
    used = {rule: {symbol for body in own for symbol in body if symbol >= 0} for rule, own in by_rule.items()}
    return {rule: tuple(by_rule[rule]) for rule in sorted(reachable(0, used)) if rule in by_rule}


def reachable(start: int, edges: Mapping[int, Iterable[int]]) -> set[int]:
    """Returns the nodes that can be reached from the start, which is one of them."""
    reached = {start}
    agenda = [start]
    while agenda:
        for after in edges.get(agenda.pop(), ()):
            if after not in reached:
                reached.add(after)
                agenda.append(after)
    return reached


def components(edges: Mapping[int, Iterable[int]]) -> list[tuple[int, ...]]:
    """Returns the strongly connected components, each before all that it leads to (Tarjan's algorithm, with a
    stack of our own instead of recursion)."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    unfinished: list[int] = []
    done: set[int] = set()
    listed: list[tuple[int, ...]] = []
    for root in edges:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        unfinished.append(root)
        path = [(root, iter(edges[root]))]
        while path:
            node, following = path[-1]
            for after in following:
                if after not in order:
                    order[after] = lowest[after] = len(order)
                    unfinished.append(after)
                    path.append((after, iter(edges[after])))
                    break
                if after not in done:
                    lowest[node] = min(lowest[node], order[after])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == order[node]:
                    component = [unfinished.pop()]
                    while component[-1] != node:
                        component.append(unfinished.pop())
                    done.update(component)
                    listed.append(tuple(component))
    return listed[::-1]


END = 0
"""The empty suffix."""


class Suffixes:
    """Numbers the rests of alternatives; equal rests have equal numbers.

    Inside a character, a rest begins with what is left of the character's bytes.

    No alternative may hold a class without characters.
    """

    def __init__(self, classes: tuple[Ranges, ...]) -> None:
        self._trees: list[tuple[tuple[int, int, int], ...]] = [()]
        """The UTF-8 of sets of characters as trees: ranges of the next byte, and the tree of the bytes after
        it (0: none)."""
        self._tree_numbers: dict[tuple[tuple[int, int, int], ...], int] = {(): 0}
        self._classes = [
            self._tree([sequence for pair in ranges for sequence in byte_sequences(*pair)])
            for ranges in classes
        ]
        self._parts: list[tuple[int, int]] = [(0, END)]
        self._numbers: dict[tuple[int, int], int] = {}
        self._steps: dict[int, tuple[tuple[int, int, int], ...]] = {}

    def of(self, body: Body) -> int:
        """Returns the suffix that is the whole alternative."""
        suffix = END
        for symbol in reversed(body):
            suffix = self._number(symbol if symbol >= 0 else -self._classes[~symbol], suffix)
        return suffix

    def split(self, suffix: int) -> tuple[int, int]:
        """Returns the rule that comes first (negative if a byte comes first), and the suffix after it."""
        return self._parts[suffix]

    def steps(self, suffix: int) -> tuple[tuple[int, int, int], ...]:
        """Returns the ranges of the first byte of a suffix that begins with one (inclusive and disjoint),
        each with the suffix after it."""
        if suffix not in self._steps:
            symbol, after = self._parts[suffix]
            self._steps[suffix] = tuple(
                (first, last, self._number(-rest, after) if rest else after)
                for first, last, rest in self._trees[-symbol]
            )
        return self._steps[suffix]

    def _number(self, symbol: int, after: int) -> int:
        number = self._numbers.setdefault((symbol, after), len(self._parts))
        if number == len(self._parts):
            self._parts.append((symbol, after))
        return number

    def _tree(self, sequences: list[tuple[ByteRange, ...]]) -> int:
        """Returns the number of the tree of these byte sequences. Two sequences of an ordered set without
        overlap begin either with the same range or with disjoint ones."""
        rests: dict[ByteRange, list[tuple[ByteRange, ...]]] = defaultdict(list)
        for sequence in sequences:
            if sequence:
                rests[sequence[0]].append(sequence[1:])
        tree = tuple((first, last, self._tree(rest)) for (first, last), rest in rests.items())
        number = self._tree_numbers.setdefault(tree, len(self._trees))
        if number == len(self._trees):
            self._trees.append(tree)
        return number
