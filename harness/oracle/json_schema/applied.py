"""Which of the lists of names that hold together for an object the schema applies first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations, product

from harness.oracle.json_schema.atoms import AllMembers
from harness.oracle.json_schema.formula import Formula


class Applied:
    """The parts of each schema in the order of its text: what `allOf` lists, what `$ref` refers to, and its
    own `properties`, each where its keyword stands. Libraries that merge these have the names in that
    order."""

    def __init__(self, made: Mapping[Hashable, Formula]) -> None:
        """Takes the formulas of references, which are made one by one while the schema is looked at."""
        self.unordered: set[AllMembers] = set()
        """Lists that give no order to their names."""
        self._made = made
        self._sequences: dict[tuple[Formula, ...], None] = {}
        self._known = (0, 0)
        self._lists: dict[Formula, frozenset[AllMembers]] = {}
        self._before: set[tuple[AllMembers, AllMembers]] = set()

    def add(self, parts: Iterable[Formula]) -> None:
        """Takes in the parts of one schema, in their order."""
        sequence = tuple(dict.fromkeys(parts))
        if len(sequence) > 1:
            self._sequences[sequence] = None

    def in_order(self, lists: Sequence[AllMembers]) -> list[AllMembers]:
        """Returns the lists in the order in which they are applied; those of which that is not known, or not
        the same everywhere in the schema, as they are given."""
        if len(lists) < 2:
            return list(lists)
        self._read()
        left, ordered = list(lists), list[AllMembers]()
        while left:
            ready = (one for one in left if not any(self._is_before(other, one) for other in left))
            ordered.append(next(ready, left[0]))
            left.remove(ordered[-1])
        return ordered

    def _is_before(self, one: AllMembers, other: AllMembers) -> bool:
        return (one, other) in self._before and (other, one) not in self._before

    def _read(self) -> None:
        """Finds out which list stands before which, as far as references were looked up."""
        known = (len(self._made), len(self._sequences))
        if known == self._known:
            return
        self._known = known
        self._lists.clear()
        for sequence in self._sequences:
            for one, other in combinations(map(self._lists_of, sequence), 2):
                self._before.update(product(one - other, other - one))

    def _lists_of(self, formula: Formula) -> frozenset[AllMembers]:
        """Returns the lists of names of a formula, of those behind its references too."""
        found = self._lists.get(formula)
        if found is not None:
            return found
        self._lists[formula] = frozenset()  # for a schema that refers to itself
        lists = {value for value in formula.atoms if isinstance(value, AllMembers) and value.named}
        if formula.kind == "reference":
            made = self._made.get(formula.parts[0])
            lists |= self._lists_of(made) if made is not None else frozenset()
        elif formula.is_joint:
            lists.update(*map(self._lists_of, formula.parts))
        self._lists[formula] = frozenset(lists)
        return self._lists[formula]
