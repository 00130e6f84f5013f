"""A context-free grammar as an automaton over bytes: an Earley recogniser whose sets come back.

A state is a set of items `(suffix, context)`: what is left of an alternative, and where to go on after it. A
context is a set of items too, kept once and known by its number: those that wait for what is being read. So a
state says what may still come, not how it came to be, and texts after which the same may come share a state
as a rule. This sees to it:

- All that wait for a rule at one place share a context, as in Earley's sets: ambiguity does not multiply
  items.
- Nothing waits only to be done: for a rule at the end of an alternative wait those that wait for the
  alternative (Leo). Recursion to the right does not grow; every repetition is one.
- Rules that can begin with each other (recursion to the left, hidden or not) are entered together. Their
  contexts lead back to themselves; what waits there and enters the rules again gets the same contexts.
- What waits and adds nothing is left out: `x*` before `x*`, and what another item implies.

Rules that may be empty are stepped over where they stand (Aycock and Horspool), so what is entered at a place
never returns there. Since every alternative can be finished, every item can, and a state is dead only if it
has none. What an item derives is what its suffix derives, followed by what an item of its context derives;
every step above keeps the union of what a state's items derive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush

from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.ebnf.productions import Body, Productions
from harness.oracle.ebnf.rules import END, Rules, Suffixes, components, reachable, useful_rules
from harness.oracle.ebnf.syntax import productions

MAX_ITEMS = 1_000_000
"""Most items that one automaton handles in all: a grammar whose states grow without end is given up after
some seconds."""

Item = tuple[int, int]
"""A suffix and a context."""

Key = frozenset[Item]

Waiting = frozenset[tuple[int, Item]]
"""Pairs of a rule and an item that waits for it."""

OUTSIDE = 0
"""The context of the whole output."""
ACCEPT: Item = (END, OUTSIDE)


@dataclass(frozen=True)
class Group:
    """Rules that can begin with each other, or one rule. Each dictionary is by rule of the group."""

    rules: tuple[int, ...]
    scans: dict[int, list[int]] = field(default_factory=dict)
    """The suffixes that the rule can begin with and that begin with a byte."""
    others: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """The rules of other groups that the rule can begin with, each with the suffix after it."""
    inner: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """The rules of the group that can begin with the rule, each with the suffix that is left after it."""
    same: dict[int, set[int]] = field(default_factory=dict)
    """The rules of the group that can consist of this rule alone, itself included."""

    @cached_property
    def is_recursive(self) -> bool:
        return len(self.rules) > 1 or any(self.inner.values())

    @cached_property
    def size(self) -> int:
        return sum(map(len, self.inner.values())) + sum(map(len, self.same.values()))


@dataclass(frozen=True)
class Entered:
    """What entering a group adds to a state, given the items that wait for it."""

    items: Key
    """Items that begin with a byte."""
    calls: tuple[tuple[int, Key], ...]
    """Rules of other groups, each with the items that wait for it."""


class EbnfAutomaton(Automaton[Key]):
    """The automaton of the sentences of rule 0."""

    def __init__(self, rules: Rules, suffixes: Suffixes) -> None:
        self._nullable = rules.nullable
        self._loops = rules.loops
        self._suffixes = suffixes
        self._groups = groups(rules, suffixes)
        self._group_of = {rule: place for place, group in enumerate(self._groups) for rule in group.rules}
        self._contexts: list[Key] = [frozenset({ACCEPT})]
        self._context_numbers: dict[Key, int] = {self._contexts[OUTSIDE]: OUTSIDE}
        self._entries: dict[int, tuple[Waiting, int]] = {}
        """For the context of each recursive rule: everything that waits for its group, and the rule."""
        self._emptiable = {END: True}
        """Whether each suffix may be empty; filled when asked for."""
        self._entered: dict[tuple[int, Waiting], Entered] = {}
        self._closed: dict[Key, Key] = {}
        self._items = 0
        start = (
            {(suffixes.of((0,)), OUTSIDE)}
            if 0 in rules.bodies
            else {ACCEPT}
            if 0 in rules.nullable
            else set()
        )
        super().__init__(self._close(frozenset(start)) or None)

    def _is_accepting(self, key: Key) -> bool:
        return ACCEPT in key

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        steps: dict[tuple[int, int], set[Item]] = defaultdict(set)
        for suffix, context in key:
            if suffix != END:
                for first, last, after in self._suffixes.steps(suffix):
                    steps[first, last + 1].add((after, context))
        cuts = sorted({cut for step in steps for cut in step})
        place = {cut: number for number, cut in enumerate(cuts)}
        after_cut: list[set[Item]] = [set() for _ in cuts]
        for (first, end), items in steps.items():
            for number in range(place[first], place[end]):
                after_cut[number] |= items
        for number, items in enumerate(after_cut):
            if items:
                yield cuts[number], cuts[number + 1] - 1, self._close(frozenset(items))

    def _close(self, items: Key) -> Key:
        """Returns the state of these items: every item they lead to that begins with a byte, and ACCEPT if
        the output may end."""
        if items not in self._closed:
            self._closed[items] = frozenset(self._closure(items))
        return self._closed[items]

    def _closure(self, items: Key) -> set[Item]:
        state: set[Item] = set()
        calls: dict[int, set[tuple[int, Item]]] = defaultdict(set)
        agenda, items_seen = list(items), set(items)
        for item in agenda:  # grows meanwhile
            suffix, context = item
            rule, after = self._suffixes.split(suffix)
            following: Iterable[Item] = ()
            if item == ACCEPT or rule < 0:
                state.add(item)
            elif suffix == END:
                following = self._contexts[context]
            else:
                calls[self._group_of[rule]].update((rule, waiter) for waiter in self._waiting(after, context))
                following = [(after, context)] if rule in self._nullable else ()
            for next_item in following:
                if next_item not in items_seen:
                    items_seen.add(next_item)
                    agenda.append(next_item)
        self._count(len(items_seen))
        self._enter_all(calls, state)
        return state

    def _enter_all(self, calls: dict[int, set[tuple[int, Item]]], state: set[Item]) -> None:
        """Enters the called groups in order. A group comes after all groups that can begin with it, so
        everything that waits for it is known by then."""
        order = sorted(calls)
        while order:
            place = heappop(order)
            entered = self._enter(place, frozenset(calls[place]))
            state |= entered.items
            for rule, waiting in entered.calls:
                other = self._group_of[rule]
                if other not in calls:
                    heappush(order, other)
                calls[other].update((rule, waiter) for waiter in waiting)
            self._count(len(entered.items))

    def _waiting(self, after: int, context: int) -> Key:
        """Returns the items that wait for a rule after which a suffix is left: the suffix itself, or the
        items of its context if the suffix adds nothing to them."""
        waiting = self._contexts[context]
        return waiting if after == END or self._is_repeated(after, waiting) else frozenset({(after, context)})

    def _is_repeated(self, suffix: int, waiting: Key) -> bool:
        """Is the suffix `x*`, and does every waiting item begin with the same `x*`?"""
        rule, rest = self._suffixes.split(suffix)
        return (
            rest == END
            and rule in self._loops
            and all(
                next_suffix != END and self._suffixes.split(next_suffix)[0] == rule
                for next_suffix, _ in waiting
            )
        )

    def _enter(self, place: int, waiting: Waiting) -> Entered:
        group = self._groups[place]
        self._count(len(waiting))
        if group.is_recursive:
            waiting = self._without_own(group, waiting)
        waiting = self._without_implied(waiting)
        if (place, waiting) not in self._entered:
            contexts = (
                self._recursive_contexts(group, waiting)
                if group.is_recursive
                else self._context_of_one(group, waiting)
            )
            self._entered[place, waiting] = Entered(
                frozenset(
                    (suffix, context) for rule, context in contexts.items() for suffix in group.scans[rule]
                ),
                tuple(
                    (other, self._waiting(after, context))
                    for rule, context in contexts.items()
                    for other, after in group.others[rule]
                ),
            )
        return self._entered[place, waiting]

    def _without_implied(self, waiting: Waiting) -> Waiting:
        """Returns the waiting items without those in the context of an item whose suffix may be empty, for
        that item derives what they derive.
        """
        left = set(waiting)
        for caller in sorted(caller for caller in waiting if self._may_be_empty(caller[1][0])):
            if caller in left:
                rule, (_, context) = caller
                self._count(len(self._contexts[context]))
                left -= {(rule, item) for item in self._contexts[context]} - {caller}
        return frozenset(left)

    def _may_be_empty(self, suffix: int) -> bool:
        path: list[int] = []
        while suffix not in self._emptiable:
            path.append(suffix)
            rule, after = self._suffixes.split(suffix)
            if rule in self._nullable:
                suffix = after
            else:
                self._emptiable[suffix] = False
        self._emptiable.update(dict.fromkeys(path, self._emptiable[suffix]))
        return self._emptiable[suffix]

    def _context_of_one(self, group: Group, waiting: Waiting) -> dict[int, int]:
        return {group.rules[0]: self._context(frozenset(item for _, item in waiting))}

    def _recursive_contexts(self, group: Group, waiting: Waiting) -> dict[int, int]:
        """Returns the context of each rule of the group: the items that wait for it, or for a rule that can
        consist of it alone, and the group's own items."""
        contexts = {rule: len(self._contexts) + place for place, rule in enumerate(group.rules)}
        from_outside: dict[int, set[Item]] = defaultdict(set)
        for rule, item in waiting:
            from_outside[rule].add(item)
        for rule, context in contexts.items():
            items = {item for same in group.same[rule] for item in from_outside[same]}
            items |= {(after, contexts[owner]) for after, owner in group.inner[rule]}
            self._contexts.append(frozenset(items))
            self._context_numbers.setdefault(self._contexts[context], context)
            self._entries[context] = (waiting, rule)
        self._count(group.size + len(waiting))
        return contexts

    def _without_own(self, group: Group, waiting: Waiting) -> Waiting:
        """Returns the waiting items without those of the group that an earlier entry lets wait, if everything
        that waited then waits here too.

        With `tails` the group's own suffixes, what may follow it is `tails* waiting`. Then `tails* earlier`
        is in it as `earlier` is part of `waiting`, and what is taken away here is part of `tails* earlier`.
        """
        left = set(waiting)
        own = [caller for caller in waiting if caller[1][1] in self._entries]
        for caller in sorted(own, key=lambda caller: -caller[1][1]):
            rule, (suffix, context) = caller
            earlier, owner = self._entries[context]
            if (suffix, owner) in group.inner[rule] and earlier <= left:
                left.discard(caller)
        return frozenset(left)

    def _context(self, items: Key) -> int:
        number = self._context_numbers.setdefault(items, len(self._contexts))
        if number == len(self._contexts):
            self._contexts.append(items)
            self._count(len(items))
        return number

    def _count(self, items: int) -> None:
        self._items += items
        if self._items > MAX_ITEMS:
            raise NoOracle(f"the reference automaton handles more than {MAX_ITEMS:,} items")


def groups(rules: Rules, suffixes: Suffixes) -> list[Group]:
    """Returns the groups of rules, each before all groups that its rules can begin with."""
    begins = {
        rule: list(dict.fromkeys(_beginnings(bodies, rules, suffixes)))
        for rule, bodies in rules.bodies.items()
    }
    ordered: list[Group] = []
    size = 0
    for members in components(
        {rule: [first for first, _, _ in own if first >= 0] for rule, own in begins.items()}
    ):
        group = Group(members)
        wholes: dict[int, list[int]] = {rule: [] for rule in members}
        inner: dict[int, set[tuple[int, int]]] = {rule: set() for rule in members}
        for rule in members:
            group.scans[rule] = [suffix for first, _, suffix in begins[rule] if first < 0]
            group.others[rule] = [
                (first, after) for first, after, _ in begins[rule] if first >= 0 and first not in inner
            ]
            for first, after, _ in begins[rule]:
                if first in inner and after == END:
                    wholes[first].append(rule)
                elif first in inner:
                    inner[first].add((after, rule))
        for rule in members:
            group.same[rule] = reachable(rule, wholes)
            group.inner[rule] = {rule_inside for same in group.same[rule] for rule_inside in inner[same]}
            size += len(group.same[rule]) + len(group.inner[rule])
            if size > MAX_ITEMS:
                raise NoOracle("too many rules that can begin with each other")
        ordered.append(group)
    return ordered


def _beginnings(bodies: tuple[Body, ...], rules: Rules, suffixes: Suffixes) -> Iterator[tuple[int, int, int]]:
    """Yields for each suffix of an alternative whose preceding symbols may be empty: its first symbol, what
    is left after that, and the suffix itself."""
    for body in bodies:
        suffix = suffixes.of(body)
        while suffix != END:
            first, after = suffixes.split(suffix)
            yield first, after, suffix
            suffix = after if first in rules.nullable else END


def ebnf_automaton(text: str) -> EbnfAutomaton:
    """Returns the automaton of a grammar in the form of docs/ebnf.md. Raises NoOracle if the text is none, or
    too large."""
    return automaton_of(productions(text))


def automaton_of(grammar: Productions) -> EbnfAutomaton:
    """Returns the automaton of the sentences of rule 0. Raises NoOracle where it is too large."""
    return EbnfAutomaton(useful_rules(grammar), Suffixes(grammar.classes))
