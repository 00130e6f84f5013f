"""Takes lookaround out of an automaton: each state also knows what must, and what must not, still come.

A state of the result is what lookbehinds have seen so far, and a set of promises: node q, promised true, says
that what follows leads from q to its end; promised false, that it does not. Every choice among ways to keep
the promises is a state of its own, so that the result is an ordinary automaton, and exact: a state is kept
only if its promises can be kept together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product

from harness.oracle.automaton import NoOracle
from harness.oracle.regex.char_classes import Ranges, partition, union
from harness.oracle.regex.nfa import Graph, Nfa

MAX_STATES = 10_000
MAX_WAYS = 2_000

Promise = tuple[int, bool]
Promises = frozenset[Promise]
Ways = frozenset[Promises]
"""Alternatives, of which one set of promises must be kept."""
Seen = frozenset[int]
"""The nodes of lookbehind bodies that the text so far leads to."""
State = tuple[Seen, Promises]

_KEPT: Ways = frozenset([frozenset()])


def without_looks(graph: Graph) -> Nfa:
    """Returns an automaton of the same language without lookaround. Raises NoOracle where it would be too
    large."""
    if not graph.looks:
        return graph
    return _Unfolding(graph).nfa()


class _Unfolding:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.aheads = {look.end for look in graph.looks if not look.behind}
        """The ends of lookahead bodies: anything may follow there."""
        self.arcs: list[list[tuple[int, int]]] = []
        """The arcs of each node: a class's number and the next node."""
        numbers: dict[Ranges, int] = {}
        for arcs in graph.arcs:
            self.arcs.append([(numbers.setdefault(ranges, len(numbers)), after) for ranges, after in arcs])
        self.classes = list(numbers)
        self.satisfied = cache(self._satisfied)
        self.kept = cache(self._kept)
        self.terminals = cache(self._terminals)
        self.parts = cache(self._parts)

    def nfa(self) -> Nfa:
        nfa = Nfa()
        nfa.start, nfa.end = nfa.add(), nfa.add()
        numbers: dict[State, int] = {}
        waiting: list[State] = []

        def number(state: State) -> int:
            if state not in numbers:
                if len(numbers) == MAX_STATES:
                    raise NoOracle(f"lookaround needs more than {MAX_STATES:,} states")
                numbers[state] = nfa.add()
                waiting.append(state)
            return numbers[state]

        unions: dict[tuple[int, ...], Ranges] = {}

        def merged(names: tuple[int, ...], parts: list[Ranges]) -> Ranges:
            """Returns the union of the parts. It is one object for all states that have the same parts: there
            are few, and each may be long."""
            if names not in unions:
                unions[names] = union(*parts)
            return unions[names]

        nothing: Seen = frozenset()
        nfa.moves[nfa.start] = [
            number((nothing, way)) for way in self.kept((self.graph.start, True), self.satisfied(nothing)[0])
        ]
        while waiting:
            state = waiting.pop()
            here = numbers[state]
            if self._may_end(state):
                nfa.moves[here].append(nfa.end)
            ranges_by_state: dict[int, list[Ranges]] = {}
            for ranges, after in self._following(state):
                ranges_by_state.setdefault(number(after), []).append(ranges)
            nfa.arcs[here] = [
                (merged(tuple(map(id, parts)), parts), after) for after, parts in ranges_by_state.items()
            ]
        return nfa

    def _may_end(self, state: State) -> bool:
        return all((node == self.graph.end) == promised for node, promised in state[1])

    def _following(self, state: State) -> Iterable[tuple[Ranges, State]]:
        seen, promises = state
        if (self.graph.end, True) in promises:  # which is kept at the end only
            return
        active = [*self.satisfied(seen)[1], *(node for node, _ in promises)]
        for ranges, inside in self.parts(
            frozenset(number for node in active for number, _ in self.arcs[node])
        ):
            after_seen = frozenset(
                after
                for node in self.satisfied(seen)[1]
                for number, after in self.arcs[node]
                if number in inside
            )
            satisfied = self.satisfied(after_seen)[0]
            ways = _KEPT
            for node, promised in promises:
                keeping = [
                    self.kept((after, promised), satisfied)
                    for number, after in self.arcs[node]
                    if number in inside
                ]
                ways = _all([ways, _any(keeping) if promised else _all(keeping)])
                if not ways:
                    break
            for way in ways:
                yield ranges, (after_seen, way)

    def _parts(self, numbers: frozenset[int]) -> list[tuple[Ranges, frozenset[int]]]:
        return partition({number: self.classes[number] for number in numbers})

    def _satisfied(self, seen: Seen) -> tuple[frozenset[int], tuple[int, ...]]:
        """Returns the lookarounds whose (lookbehind) body matches up to here, and the nodes of such bodies
        from where a character leads on."""
        satisfied: set[int] = set()
        starts = {look.start for look in self.graph.looks if look.behind}
        for number, look in enumerate(self.graph.looks):  # what stands within another comes before it
            if look.behind and look.end in self._reached({look.start, *seen}, satisfied):
                satisfied.add(number)
        reached = self._reached(starts | seen, satisfied)
        return frozenset(satisfied), tuple(sorted(node for node in reached if self.arcs[node]))

    def _reached(self, nodes: Iterable[int], satisfied: set[int]) -> set[int]:
        """Returns the nodes that are reached by moves whose lookbehinds hold."""
        reached = set(nodes)
        waiting = list(reached)
        while waiting:
            node = waiting.pop()
            condition = self.graph.conditions.get(node)
            if condition is not None and (condition in satisfied) == self.graph.looks[condition].negative:
                continue
            fresh = set(self.graph.moves[node]) - reached
            reached |= fresh
            waiting += fresh
        return reached

    def _kept(self, promise: Promise, satisfied: frozenset[int]) -> Ways:
        """Returns how a promise about what comes next is kept, in promises about nodes that read a character
        or end.
        """
        node, promised = promise
        looks = self.graph.looks
        ways: list[Ways] = []
        for conditions, last in self.terminals(node, satisfied):
            parts = [
                self.kept((looks[number].start, promised != looks[number].negative), satisfied)
                for number in conditions
            ]
            if last not in self.aheads:
                parts.append(frozenset([frozenset([(last, promised)])]))
            ways.append(_all(parts) if promised else _any(parts))
        return _any(ways) if promised else _all(ways)

    def _terminals(self, start: int, satisfied: frozenset[int]) -> set[tuple[frozenset[int], int]]:
        """Returns where moves lead from a node: for each way, the lookaheads on it and the node at its end,
        which reads a character or ends a body."""
        terminals: set[tuple[frozenset[int], int]] = set()
        first = (frozenset[int](), start)
        reached, waiting = {first}, [first]
        while waiting:
            conditions, node = waiting.pop()
            if self.arcs[node] or node == self.graph.end or node in self.aheads:
                terminals.add((conditions, node))
            number = self.graph.conditions.get(node)
            if number is not None:
                look = self.graph.looks[number]
                if not look.behind:
                    conditions |= {number}
                elif (number in satisfied) == look.negative:
                    continue
            for after in self.graph.moves[node]:
                if (conditions, after) not in reached:
                    reached.add((conditions, after))
                    waiting.append((conditions, after))
            _limit(len(reached))
        return terminals


def _any(ways: Sequence[Ways]) -> Ways:
    if len(ways) == 1:
        return ways[0]
    united = frozenset[Promises]().union(*ways)
    _limit(len(united))
    if len(united) == 1 or len(united) > 100:
        return united
    return frozenset(
        way for way in united if not any(other < way for other in united)
    )  # the fewer promises, the better


def _all(ways: Iterable[Ways]) -> Ways:
    combined = _KEPT
    for alternatives in ways:
        if combined == _KEPT or not alternatives:
            combined = alternatives
        elif alternatives != _KEPT:
            _limit(len(combined) * len(alternatives))
            both = {left | right for left, right in product(combined, alternatives)}
            combined = _any(
                [
                    frozenset(
                        way for way in both if not any((node, not promised) in way for node, promised in way)
                    )
                ]
            )
    return combined


def _limit(count: int) -> None:
    if count > MAX_WAYS:
        raise NoOracle("lookaround with too many ways to hold")
