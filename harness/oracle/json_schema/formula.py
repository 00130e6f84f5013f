"""Boolean formulas over what a value may satisfy, each kept once so that equal formulas are the
same object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Literal

Kind = Literal["constant", "atom", "not", "and", "or", "reference"]


class Formula:
    """A node of a formula. Made by the functions of this module only, so that `is` compares formulas."""

    __slots__ = ("__weakref__", "atoms", "kind", "number", "parts")

    def __init__(
        self, kind: Kind, parts: tuple[object, ...], atoms: frozenset[Hashable], number: int
    ) -> None:
        self.kind = kind
        self.parts = parts
        self.atoms = atoms
        """The atoms of the formula; those behind references are not among them."""
        self.number = number
        """Formulas are numbered as they are made, so that a set of them has an order."""

    def __repr__(self) -> str:
        if self.kind in ("constant", "atom", "reference"):
            return str(self.parts[0])
        if self.kind == "not":
            return f"not {self.parts[0]!r}"
        return "(" + f" {self.kind} ".join(map(repr, self.parts)) + ")"


_formulas: dict[tuple[object, ...], Formula] = {}


def _formula(kind: Kind, parts: tuple[object, ...], atoms: frozenset[Hashable]) -> Formula:
    key = (kind, *parts)
    found = _formulas.get(key)
    if found is None:
        found = _formulas[key] = Formula(kind, parts, atoms, len(_formulas))
    return found


TRUE: Final = _formula("constant", ("true",), frozenset())
FALSE: Final = _formula("constant", ("false",), frozenset())


def constant(value: bool) -> Formula:
    """The formula that is always true, or always false."""
    return TRUE if value else FALSE


def atom(value: Hashable) -> Formula:
    """The formula that is true exactly where `value` holds."""
    return _formula("atom", (value,), frozenset((value,)))


def reference(name: Hashable) -> Formula:
    """A formula that is looked up by its name later, so that schemas may refer to themselves."""
    return _formula("reference", (name,), frozenset())


def negation(formula: Formula) -> Formula:
    """True exactly where the formula is false."""
    if formula is TRUE or formula is FALSE:
        return constant(formula is FALSE)
    if formula.kind == "not":
        inner = formula.parts[0]
        assert isinstance(inner, Formula)
        return inner
    return _formula("not", (formula,), formula.atoms)


def conjunction(formulas: Iterable[Formula]) -> Formula:
    """True where all of them are."""
    return _joined("and", formulas, TRUE, FALSE)


def disjunction(formulas: Iterable[Formula]) -> Formula:
    """True where at least one of them is."""
    return _joined("or", formulas, FALSE, TRUE)


def _joined(
    kind: Literal["and", "or"], formulas: Iterable[Formula], neutral: Formula, deciding: Formula
) -> Formula:
    parts: dict[Formula, None] = {}
    waiting = list(formulas)[::-1]
    while waiting:
        part = waiting.pop()
        if part is deciding:
            return deciding
        if part is neutral:
            continue
        if part.kind == kind:
            waiting += [each for each in part.parts[::-1] if isinstance(each, Formula)]
            continue
        if negation(part) in parts:
            return deciding
        parts[part] = None
    if not parts:
        return neutral
    if len(parts) == 1:
        return next(iter(parts))
    ordered = tuple(sorted(parts, key=lambda part: part.number))
    return _formula(kind, ordered, frozenset().union(*(part.atoms for part in ordered)))


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """What the formula joins by "and" or "or"; itself for every other one."""
    if formula.kind in ("and", "or"):
        return tuple(part for part in formula.parts if isinstance(part, Formula))
    return (formula,)


def rewritten(
    formula: Formula, of: Callable[[Hashable], Formula], wanted: frozenset[Hashable] | None = None
) -> Formula:
    """The formula with every atom replaced by what `of` gives for it; only those of `wanted` where that is
    given."""
    done: dict[Formula, Formula] = {}

    def of_part(part: Formula) -> Formula:
        if wanted is not None and part.atoms.isdisjoint(wanted):
            return part
        found = done.get(part)
        if found is None:
            if part.kind == "atom":
                found = of(part.parts[0])
            elif part.kind in ("constant", "reference"):
                found = part
            else:
                below = [of_part(each) for each in part.parts if isinstance(each, Formula)]
                found = (
                    negation(below[0])
                    if part.kind == "not"
                    else conjunction(below)
                    if part.kind == "and"
                    else disjunction(below)
                )
            done[part] = found
        return found

    return of_part(formula)


def is_true(formula: Formula, holds: Callable[[Hashable], bool]) -> bool:
    """The value of the formula where the truth of every atom is known."""
    return rewritten(formula, lambda value: constant(holds(value))) is TRUE


def polarity(formula: Formula) -> tuple[frozenset[Hashable], frozenset[Hashable]]:
    """The atoms that can make the formula true by holding, and those that can by not holding."""
    found = _polarity.get(formula)
    if found is None:
        if formula.kind == "atom":
            found = (formula.atoms, frozenset())
        elif formula.kind in ("constant", "reference"):
            found = (frozenset(), frozenset())
        else:
            below = [polarity(part) for part in formula.parts if isinstance(part, Formula)]
            found = (
                frozenset().union(*(each for each, _ in below)),
                frozenset().union(*(each for _, each in below)),
            )
            if formula.kind == "not":
                found = found[::-1]
        _polarity[formula] = found
    return found


_polarity: dict[Formula, tuple[frozenset[Hashable], frozenset[Hashable]]] = {}
