"""Boolean formulas over what a value may satisfy, each kept once so that equal formulas are the
same object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

Kind = Literal["constant", "atom", "not", "and", "or", "reference"]


@dataclass(frozen=True)
class IsOneOf:
    """An atom that is true of the members of a finite set, and of nothing else.

    Atoms of one subclass that stand side by side in a formula are joined: "one of 1 and 2, and not one of 2"
    is "one of 1".
    """

    values: frozenset[Any]


class Formula:
    """A node of a formula. Made by the functions of this module only, so that `is` compares formulas."""

    __slots__ = ("__weakref__", "_opposite", "_polarity", "atoms", "is_joint", "kind", "number", "parts")

    def __init__(self, kind: Kind, parts: tuple[Any, ...], number: int) -> None:
        self.kind = kind
        self.parts = parts
        """The formulas that are joined or negated; of the other kinds, the one value that they are of."""
        self.number = number
        """Formulas are numbered as they are made, so that a set of them has an order."""
        self.is_joint = kind in ("not", "and", "or")
        self.atoms: frozenset[Hashable] = (
            frozenset().union(*(part.atoms for part in parts))
            if self.is_joint
            else frozenset(parts if kind == "atom" else ())
        )
        """The atoms of the formula; those behind references are not among them."""
        self._opposite: Formula | None = None
        self._polarity: tuple[frozenset[Hashable], frozenset[Hashable]] | None = None

    def __repr__(self) -> str:
        if not self.is_joint:
            return str(self.parts[0])
        if self.kind == "not":
            return f"not {self.parts[0]!r}"
        return "(" + f" {self.kind} ".join(map(repr, self.parts)) + ")"


_formulas: WeakValueDictionary[tuple[object, ...], Formula] = WeakValueDictionary()
"""The formulas that somebody holds. A key has the numbers of parts and not the parts: it would keep them, and
through them the formula, so that a process would hold those of every schema that it ever read."""
_by_number = attrgetter("number")
_numbers = count()


def _formula(kind: Kind, *parts: Any) -> Formula:
    is_joint = kind in ("not", "and", "or")
    key = (kind, *map(_by_number, parts)) if is_joint else (kind, *parts)
    found = _formulas.get(key)
    if found is None:
        found = _formulas[key] = Formula(kind, parts, next(_numbers))
    return found


TRUE: Final = _formula("constant", "true")
FALSE: Final = _formula("constant", "false")


def constant(value: bool) -> Formula:
    """Returns the formula that is always true, or always false."""
    return TRUE if value else FALSE


def atom(value: Hashable) -> Formula:
    """Returns the formula that is true exactly where `value` holds."""
    if isinstance(value, IsOneOf) and not value.values:
        return FALSE
    return _formula("atom", value)


def reference(name: Hashable) -> Formula:
    """Returns a formula that is looked up by its name later, so that schemas may refer to themselves."""
    return _formula("reference", name)


def negation(formula: Formula) -> Formula:
    """Returns the formula that is true exactly where the given one is false."""
    found = formula._opposite
    if found is None:
        found = constant(formula is FALSE) if formula.kind == "constant" else _formula("not", formula)
        formula._opposite, found._opposite = found, formula
    return found


def conjunction(formulas: Iterable[Formula]) -> Formula:
    """Returns the formula that is true where all of them are."""
    return _joined("and", formulas, TRUE, FALSE)


def disjunction(formulas: Iterable[Formula]) -> Formula:
    """Returns the formula that is true where at least one of them is."""
    return _joined("or", formulas, FALSE, TRUE)


def _joined(
    kind: Literal["and", "or"], formulas: Iterable[Formula], neutral: Formula, deciding: Formula
) -> Formula:
    parts: dict[Formula, None] = {}
    sets: dict[type[IsOneOf], list[Formula]] = {}
    part: Formula
    for formula in formulas:
        for part in formula.parts if formula.kind == kind else (formula,):
            if part is deciding:
                return deciding
            if part is neutral or part in parts:
                continue
            if part._opposite in parts:
                return deciding
            parts[part] = None
            values: Any = part.parts[0].parts[0] if part.kind == "not" else part.parts[0]
            if isinstance(values, IsOneOf):
                sets.setdefault(type(values), []).append(part)
    for those in sets.values():
        if len(those) > 1:
            for part in those:
                del parts[part]
            merged = _merged_sets(kind, those)
            if merged is deciding:
                return deciding
            parts[merged] = None
    if len(parts) < 2:
        return next(iter(parts), neutral)
    return _formula(kind, *sorted(parts, key=_by_number))


def _merged_sets(kind: Literal["and", "or"], parts: list[Formula]) -> Formula:
    """Returns the conjunction or disjunction of atoms of one subclass of IsOneOf, and of negations of them,
    as one of these."""
    inside = [part.parts[0] for part in parts if part.kind == "atom"]
    outside = [part.parts[0].parts[0] for part in parts if part.kind == "not"]
    if kind == "or":  # by the rule of De Morgan
        inside, outside = outside, inside
    make = type((inside or outside)[0])
    beyond = frozenset().union(*(each.values for each in outside))
    if inside:
        found = atom(make(frozenset.intersection(*(each.values for each in inside)) - beyond))
    else:
        found = negation(atom(make(beyond)))
    return negation(found) if kind == "or" else found


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """Returns what the formula joins by "and" or "or"; itself for every other one."""
    return formula.parts if formula.kind in ("and", "or") else (formula,)


def with_parts(formula: Formula, parts: list[Formula]) -> Formula:
    """Returns the formula that negates or joins these parts as the given one does its own."""
    if all(map(_is_same, parts, formula.parts)):
        return formula
    if formula.kind == "not":
        return negation(parts[0])
    return conjunction(parts) if formula.kind == "and" else disjunction(parts)


def _is_same(one: Formula, other: Formula) -> bool:
    return one is other


def rewritten(
    formula: Formula, of: Callable[[Any], Formula], wanted: frozenset[Hashable] | None = None
) -> Formula:
    """Returns the formula with every atom replaced by what `of` gives for it; only those of `wanted` where
    that is given."""
    done: dict[Formula, Formula] = {}

    def of_part(part: Formula) -> Formula:
        if wanted is not None and part.atoms.isdisjoint(wanted):
            return part
        found = done.get(part)
        if found is None:
            if part.is_joint:
                found = with_parts(part, [of_part(each) for each in part.parts])
            else:
                found = of(part.parts[0]) if part.kind == "atom" else part
            done[part] = found
        return found

    return of_part(formula)


def reduced(formula: Formula) -> Formula:
    """Returns the formula with what its own parts say of atoms put into its other parts: "a, and not both a
    and b" is "a, and not b"."""
    if formula.kind not in ("and", "or"):
        return formula
    holds = constant(formula.kind == "and")
    known: dict[Hashable, Formula] = {}
    single: list[Formula] = []
    others: list[Formula] = []
    for part in formula.parts:
        opposite = part.parts[0] if part.kind == "not" else None
        if part.kind == "atom":
            known[part.parts[0]] = holds
        elif opposite is not None and opposite.kind == "atom":
            known[opposite.parts[0]] = negation(holds)
        else:
            others.append(part)
            continue
        single.append(part)
    wanted = frozenset(known)
    if all(part.atoms.isdisjoint(wanted) for part in others):
        return formula
    parts = [*single, *(rewritten(part, known.__getitem__, wanted) for part in others)]
    return reduced(conjunction(parts) if formula.kind == "and" else disjunction(parts))


def is_true(formula: Formula, holds: Callable[[Any], bool]) -> bool:
    """Returns the value of the formula where the truth of every atom is known; it has no references."""
    done: dict[Formula, bool] = {}

    def of(part: Formula) -> bool:
        if part.kind == "atom":
            return holds(part.parts[0])
        if part.kind == "not":
            return not of(part.parts[0])
        if not part.is_joint:
            assert part.kind == "constant"
            return part is TRUE
        found = done.get(part)
        if found is None:
            found = done[part] = (all if part.kind == "and" else any)(map(of, part.parts))
        return found

    return of(formula)


def polarity(formula: Formula) -> tuple[frozenset[Hashable], frozenset[Hashable]]:
    """Returns the atoms that can make the formula true by holding, and those that can by not holding."""
    found = formula._polarity
    if found is None:
        if not formula.is_joint:
            found = (formula.atoms, frozenset())
        else:
            below = [polarity(part) for part in formula.parts]
            found = (
                frozenset().union(*(helping for helping, _ in below)),
                frozenset().union(*(hindering for _, hindering in below)),
            )
            if formula.kind == "not":
                found = found[::-1]
        formula._polarity = found
    return found
