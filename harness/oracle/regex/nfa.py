"""Turns the tree of a pattern into a nondeterministic automaton over characters (Thompson's construction)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from harness.oracle.automaton import NoOracle
from harness.oracle.regex.char_classes import Ranges
from harness.oracle.regex.tree import EMPTY, END, NOTHING, START, Chars, Choice, Look, Node, Repeat, Sequence

MAX_NODES = 200_000


@dataclass
class Nfa:
    """Nodes are numbers; `end` is where a text may end."""

    arcs: list[list[tuple[Ranges, int]]] = field(default_factory=list)
    """The arcs of each node: one character out of these ranges leads to that node."""
    moves: list[list[int]] = field(default_factory=list)
    """The nodes that each node leads to without a character."""
    start: int = 0
    end: int = 0

    def add(self) -> int:
        if len(self.arcs) == MAX_NODES:
            raise NoOracle(f"the pattern needs more than {MAX_NODES:,} positions")
        self.arcs.append([])
        self.moves.append([])
        return len(self.arcs) - 1

    def closure(self, nodes: Iterable[int]) -> set[int]:
        """Returns the nodes and all that can be reached from them without a character."""
        reached = set(nodes)
        waiting = list(reached)
        while waiting:
            for after in self.moves[waiting.pop()]:
                if after not in reached:
                    reached.add(after)
                    waiting.append(after)
        return reached

    @cached_property
    def useful_arcs(self) -> dict[int, list[tuple[Ranges, int]]]:
        """Returns the arcs that lead on to the end, of each node from which the end can be reached. It is
        found once, when the automaton is complete."""
        hopeful = self.hopeful()
        return {
            node: [(ranges, after) for ranges, after in self.arcs[node] if ranges and after in hopeful]
            for node in hopeful
        }

    def hopeful(self) -> set[int]:
        """Returns the nodes from which the end can be reached."""
        before: list[list[int]] = [[] for _ in self.arcs]
        for node, moves in enumerate(self.moves):
            for after in moves:
                before[after].append(node)
        for node, arcs in enumerate(self.arcs):
            for ranges, after in arcs:
                if ranges:
                    before[after].append(node)
        reached, waiting = {self.end}, [self.end]
        while waiting:
            for node in before[waiting.pop()]:
                if node not in reached:
                    reached.add(node)
                    waiting.append(node)
        return reached


@dataclass(frozen=True)
class Lookaround:
    """A lookaround's body within the graph, from `start` to `end`."""

    start: int
    end: int
    behind: bool
    negative: bool


@dataclass
class Graph(Nfa):
    """An automaton with conditions."""

    looks: list[Lookaround] = field(default_factory=list)
    """A lookaround within another comes before it."""
    conditions: dict[int, int] = field(default_factory=dict)
    """For a node with a condition, the number of the lookaround that must hold there before its moves may be
    taken."""


def graph_of(node: Node) -> Graph:
    """Returns the automaton of a tree. Raises NoOracle where it would be too large."""
    graph = Graph()
    graph.start = graph.add()
    graph.end = _built(graph, node, graph.start)
    return graph


def _built(graph: Graph, node: Node, at: int) -> int:
    """Adds the node's part to the graph, beginning at `at`; returns the node at which it ends."""
    match node:
        case Chars():
            end = graph.add()
            graph.arcs[at].append((node.ranges, end))
        case Sequence():
            end = at
            for part in node.parts:
                end = _built(graph, part, end)
        case Choice():
            end = graph.add()
            for branch in node.branches:
                entry = graph.add()
                graph.moves[at].append(entry)
                graph.moves[_built(graph, branch, entry)].append(end)
        case Repeat():
            end = _repeated(graph, node, at)
        case Look():
            start = graph.add()
            looks = len(graph.looks)
            last = _built(graph, node.body, start)
            if node.behind and not all(inner.behind for inner in graph.looks[looks:]):
                raise NoOracle("lookahead within lookbehind has no reference automaton")
            graph.looks.append(Lookaround(start, last, node.behind, node.negative))
            condition, end = graph.add(), graph.add()
            graph.conditions[condition] = len(graph.looks) - 1
            graph.moves[at].append(condition)
            graph.moves[condition].append(end)
    return end


def _repeated(graph: Graph, node: Repeat, at: int) -> int:
    for _ in range(node.low):
        at = _built(graph, node.body, at)
    end = graph.add()
    if node.high is None:
        loop = graph.add()
        graph.moves[at].append(loop)
        graph.moves[loop].append(end)
        graph.moves[_built(graph, node.body, loop)].append(loop)
        return end
    for _ in range(node.high - node.low):
        graph.moves[at].append(end)
        entry = graph.add()
        graph.moves[at].append(entry)
        at = _built(graph, node.body, entry)
    graph.moves[at].append(end)
    return end


def settled(node: Node, before: bool | None = True, after: bool | None = True) -> Node:
    """Returns the same tree without the lookarounds whose outcome is clear from where they stand: most `^`,
    `$` and word boundaries.

    `before`, `after`: is the text before, after the node surely empty (True), surely not (False), or either
    (None)?
    """
    match node:
        case Look():
            return _settled_look(node, before, after)
        case Sequence():
            return _settled_sequence(node, before, after)
        case Choice():
            return _choice(settled(branch, before, after) for branch in node.branches)
        case Repeat():
            if node.high == 0:
                return EMPTY
            if node.high != 1:  # another turn may stand before it and after it
                before, after = before and None, after and None
            body = settled(node.body, before, after)
            if body is NOTHING:
                return EMPTY if node.low == 0 else NOTHING
            if body.width == (0, 0):  # lookarounds, where more turns say no more; or none
                return body if node.low else EMPTY
            return Repeat(body, node.low, node.high)
    return NOTHING if not node.ranges else node


def _settled_look(node: Look, before: bool | None, after: bool | None) -> Node:
    at_edge = before if node.behind else after
    if node is START or node is END:
        return node if at_edge is None else EMPTY if at_edge else NOTHING
    body = settled(node.body, *((None, after) if node.behind else (before, None)))
    if body is NOTHING or (at_edge and body.width[0] > 0):
        return EMPTY if node.negative else NOTHING
    if body is EMPTY:
        return NOTHING if node.negative else EMPTY
    return Look(body, node.behind, node.negative)


def _settled_sequence(node: Sequence, before: bool | None, after: bool | None) -> Node:
    parts = node.parts
    afters = [after]  # of each part, the last first
    for part in parts[:0:-1]:
        afters.append(_beside(part, afters[-1]))
    settled_parts: list[Node] = []
    for part, following in zip(parts, reversed(afters), strict=False):
        here = settled(part, before, following)
        if here is NOTHING:
            return NOTHING
        settled_parts += here.parts if isinstance(here, Sequence) else [here]
        before = _beside(part, before)
    return (
        settled_parts[0]
        if len(settled_parts) == 1
        else Sequence(tuple(settled_parts))
        if settled_parts
        else EMPTY
    )


def _beside(node: Node, empty: bool | None) -> bool | None:
    """Is the text still surely empty once the node's match is added to it? None means that it may be
    either."""
    if node.width[0] > 0:
        return False
    return empty if node.width[1] == 0 or empty is False else None


def _choice(branches: Iterable[Node]) -> Node:
    left = [branch for branch in branches if branch is not NOTHING]
    if not left:
        return NOTHING
    if EMPTY in left and all(branch.width == (0, 0) for branch in left):
        return EMPTY
    return left[0] if len(left) == 1 else Choice(tuple(left))
