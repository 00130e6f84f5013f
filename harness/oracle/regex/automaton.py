"""The language of a regular expression over bytes: what matches the whole output, as the UTF-8 of Unicode
scalar values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal

from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.regex.char_classes import Ranges, unicode_version
from harness.oracle.regex.ecma import ecma_tree, javascript_tree
from harness.oracle.regex.lookaround import without_looks
from harness.oracle.regex.nfa import MAX_NODES, Nfa, graph_of, settled
from harness.oracle.regex.rust import rust_tree
from harness.oracle.regex.syntax import parsed
from harness.oracle.regex.tree import Node
from harness.oracle.utf8 import ByteRange, byte_sequences

RegexDialect = Literal["python", "ecma", "javascript", "rust"]
"""How a pattern is read: as the `regex` library does, as ECMA-262 with the `u` flag (as JSON Schema uses it),
as ECMA-262 without that flag (but over whole characters), or as Rust's `regex` crate."""

MAX_MEMBERS = 2_000_000
"""Most positions in all states together, which bounds the memory."""

TREES: Mapping[RegexDialect, Callable[[str], Node]] = {
    "python": parsed,
    "ecma": ecma_tree,
    "javascript": javascript_tree,
    "rust": rust_tree,
}
"""What reads a pattern into a tree, by dialect. Each raises NoOracle."""

DONE = 0
"""The end of a character."""

Arc = tuple[int, int, int]
"""First byte, last byte, next node."""

Key = tuple[tuple[int, int], ...]
"""Where the character that is being read stands within each class, and the set of positions that each leads
to; in order."""


def regex_automaton(pattern: str, dialect: RegexDialect = "python", unicode: str = "") -> RegexAutomaton:
    """Returns the automaton of the pattern by the tables of one version of Unicode (empty: the newest that is
    known).

    Raises NoOracle for what is no pattern, for what has no regular language, and for what is too large.
    """
    return RegexAutomaton(_graph(pattern, dialect, unicode))


@lru_cache(maxsize=32)
def known_automaton(pattern: str) -> RegexAutomaton:
    """Returns the same for one of our own patterns of the `regex` library: one automaton for all schemas that
    have it, with the states that were found for the others."""
    return regex_automaton(pattern)


def finding_automaton(pattern: str) -> RegexAutomaton:
    """Returns the automaton of the texts in which a pattern of the `regex` library matches somewhere; the
    graph of the last few is kept, because counter-experiments and documents read one schema many times.

    Raises NoOracle as `regex_automaton` does.
    """
    return RegexAutomaton(_kept_graph(rf"(?s:.*)(?:{pattern})(?s:.*)"))


@lru_cache(maxsize=8)
def _kept_graph(pattern: str) -> Nfa:
    return _graph(pattern, "python", "")


def _graph(pattern: str, dialect: RegexDialect, unicode: str) -> Nfa:
    if len(pattern) > MAX_NODES:
        raise NoOracle(f"the pattern has more than {MAX_NODES:,} characters")
    try:
        with unicode_version(unicode):
            tree = settled(TREES[dialect](pattern))
        return without_looks(graph_of(tree))
    except RecursionError as error:
        raise NoOracle("the pattern is nested too deeply") from error


def automaton_of_tree(tree: Node) -> RegexAutomaton:
    """Returns the automaton of a settled tree. Raises NoOracle for what is too large."""
    return RegexAutomaton(without_looks(graph_of(tree)))


class RegexAutomaton(Automaton[Key]):
    """An automaton over bytes whose states are sets of positions of an automaton over characters; within a
    character they follow its bytes."""

    def __init__(self, nfa: Nfa) -> None:
        self._nfa = nfa
        self._arcs = nfa.useful_arcs
        self._kept = {node for node, arcs in self._arcs.items() if arcs or node == nfa.end}
        """The positions that belong in a set: those that read a character or end the text, and from which the
        end can be reached."""
        self._characters = _Characters()
        self._sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._members = 0
        super().__init__(((DONE, self._after({nfa.start})),) if nfa.start in self._arcs else None)

    def _after(self, nodes: Iterable[int]) -> int:
        """Returns the number of the set of all positions that these lead to without a character."""
        return self._number(frozenset(self._nfa.closure(nodes) & self._kept))

    def _number(self, positions: frozenset[int]) -> int:
        number = self._numbers.get(positions)
        if number is None:
            self._members += len(positions)
            if self._members > MAX_MEMBERS:
                raise NoOracle("the reference automaton's states are too large")
            number = self._numbers[positions] = len(self._sets)
            self._sets.append(positions)
        return number

    def _is_accepting(self, key: Key) -> bool:
        (node, number), *_ = key
        return node == DONE and self._nfa.end in self._sets[number]

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        if key[0][0] == DONE:
            key = self._entered(self._sets[key[0][1]])
        if len(key) == 1:
            ((node, number),) = key
            yield from (
                (first, last, ((after, number),)) for first, last, after in self._characters.arcs[node]
            )
            return
        starting: dict[int, list[tuple[Arc, int]]] = {}
        turns: set[int] = set()
        for node, number in key:
            for arc in self._characters.arcs[node]:
                starting.setdefault(arc[0], []).append((arc, number))
                turns |= {arc[0], arc[1] + 1}
        here: list[tuple[Arc, int]] = []  # the arcs of this byte range: at most one of each place in the key
        for first, beyond in pairwise(sorted(turns)):
            here = [numbered_arc for numbered_arc in here if numbered_arc[0][1] >= first] + starting.get(
                first, []
            )
            if here:
                yield first, beyond - 1, self._merged((arc[2], number) for arc, number in here)

    def _entered(self, positions: frozenset[int]) -> Key:
        """Returns the key at the beginning of a character: the classes that it may belong to, and where each
        leads."""
        targets: dict[Ranges, set[int]] = {}
        for position in positions:
            for ranges, after in self._arcs[position]:
                targets.setdefault(ranges, set()).add(after)
        return self._merged(
            (self._characters.entry(ranges), self._after(after)) for ranges, after in targets.items()
        )

    def _merged(self, places: Iterable[tuple[int, int]]) -> Key:
        """Returns the key of these places in classes and the sets they lead to; equal places become one."""
        numbers: dict[int, set[int]] = {}
        for node, number in places:
            numbers.setdefault(node, set()).add(number)
        return tuple(
            (
                node,
                numbers_of_node.pop()
                if len(numbers_of_node) == 1
                else self._number(frozenset().union(*(self._sets[number] for number in numbers_of_node))),
            )
            for node, numbers_of_node in sorted(numbers.items())
        )


class _Characters:
    """Classes as automata over the bytes of one character; equal parts are stored once."""

    def __init__(self) -> None:
        self.arcs: list[tuple[Arc, ...]] = [()]
        self._numbers: dict[tuple[Arc, ...], int] = {(): DONE}
        self._entries: dict[Ranges, int] = {}

    def entry(self, ranges: Ranges) -> int:
        """Returns the node at which a character of the class begins. The class must not be empty."""
        if ranges not in self._entries:
            self._entries[ranges] = self._node(
                [sequence for first, last in ranges for sequence in byte_sequences(first, last)]
            )
        return self._entries[ranges]

    def _node(self, sequences: list[tuple[ByteRange, ...]]) -> int:
        """Returns the node of these byte sequences. Sequences with a common first byte begin with the same
        range, because a lead byte is split only into single ones.
        """
        arcs: list[Arc] = []
        for (first, last), group in groupby(sequences, key=lambda sequence: sequence[0]):
            after = self._node([sequence[1:] for sequence in group if len(sequence) > 1])
            if arcs and arcs[-1][1] + 1 == first and arcs[-1][2] == after:
                arcs[-1] = (arcs[-1][0], last, after)
            else:
                arcs.append((first, last, after))
        number = self._numbers.setdefault(tuple(arcs), len(self.arcs))
        if number == len(self.arcs):
            self.arcs.append(tuple(arcs))
        return number
