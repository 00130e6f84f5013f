"""The names of members that formulas over objects list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.oracle.json_schema.applied import Applied
from harness.oracle.json_schema.atoms import AllMembers, AllNames, AtLeastProperties, HasName
from harness.oracle.json_schema.formula import FALSE, Formula, parts_of, polarity, rewritten
from harness.oracle.json_schema.parts import atoms_of

if TYPE_CHECKING:
    from harness.oracle.json_schema.schemas import Schemas

Names = frozenset[str]

MOST_ALTERNATIVES = 64
"""How many alternatives of a formula are told apart at most, each with an order of its own names."""


class Order(NamedTuple):
    """An order of the names of an object."""

    names: tuple[str, ...]
    is_closed: bool = False
    """Whatever has this order has no other names."""


def useful_names(formula: Formula, free: Names) -> Names:
    """Returns the names of `free` whose members can help to make the formula true."""
    helping, hindering = polarity(formula)
    if any(isinstance(value, AtLeastProperties) for value in helping):
        return free
    if any(isinstance(value, AllMembers | AllNames) for value in hindering):
        return free
    return free & {value.name for value in helping if isinstance(value, HasName)}


def without_name(formula: Formula, name: str) -> Formula:
    """Returns the formula if no member has this name."""
    value = HasName(name)
    return rewritten(formula, lambda _: FALSE, frozenset((value,))) if value in formula.atoms else formula


def listed_names(*formulas: Formula) -> Names:
    """Returns the names that the formulas list: none of them may be there twice."""
    names: set[str] = set()
    for value in atoms_of(formulas):
        if isinstance(value, HasName):
            names.add(value.name)
        elif isinstance(value, AllMembers):
            names |= {name for name, _ in value.named}
    return frozenset(names)


def places_of_names(document: Any) -> dict[str, int]:
    """Numbers the texts that may be names: first the names of members, those of an object's own `properties`
    before those of subschemas deeper in the schema, in the order of its text; then its strings."""
    keys: dict[str, None] = {}
    strings: dict[str, None] = {}
    level = [document]
    while level:
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                strings[value] = None
            elif isinstance(value, dict):
                keys |= dict.fromkeys(value)
                below += value.values()
            elif isinstance(value, list):
                below += value
        level = below
    return {name: place for place, name in enumerate(dict.fromkeys([*keys, *strings]))}


def names_in_order(
    formulas: tuple[Formula, ...], places: Mapping[str, int], applied: Applied, required_first: bool = False
) -> tuple[str, ...]:
    """Returns the names that the formulas list, in the order in which the schema lists them: those for whose
    values they ask something, then those that must or must not be there.

    What one list says comes in its order; several come as the schema applies them, or where it does not
    apply one with the other by the places of their names in the schema (`places_of_names`), never by the
    order of the formulas, which depends on the schemas that this process read before. With `required_first`,
    names without which the first formula is false come before all others.
    """
    atoms = atoms_of(formulas)
    required: set[str] = set()
    if required_first:
        wanted = formulas[0]
        all_wanted = parts_of(wanted) if wanted.kind == "and" else (wanted,)
        required = {
            part.parts[0].name
            for part in all_wanted
            if part.kind == "atom" and isinstance(part.parts[0], HasName)
        }
    return _joined(_lists(atoms, places, applied), _alone(atoms, places), required)


def orders_of_names(
    formulas: tuple[Formula, ...], schemas: Schemas, required_first: bool
) -> tuple[Order, ...]:
    """Returns the orders that the alternatives of the formulas give to the names that they list, each once: a
    library that writes each alternative of an `anyOf` by itself has the names of each in an order of its own.
    Where several lists hold together (`allOf`, or `$ref` beside `properties`), the order of these is free, so
    they are taken the other way round too. Names that no alternative lists, and that must or must not be
    there, come last in each. With `required_first`, names that an alternative asks for come before its
    others."""
    places, applied = schemas.places, schemas.applied
    kinds = (AllMembers, HasName) if required_first else (AllMembers,)
    alternatives = dict.fromkeys(each for formula in formulas for each in _alternatives(formula, kinds))
    every = atoms_of(formulas)
    listed = {name for value in _lists(every, places, applied) for name in value.by_name}
    alone = [name for name in _alone(every, places) if name not in listed]
    orders = []
    for atoms in alternatives:
        lists = _lists(atoms, places, applied)
        if lists or (alone and not listed):
            required = {value.name for value in atoms if isinstance(value, HasName)}
            is_closed = any(
                isinstance(value, AllMembers) and schemas.answer(value.others) is False and not value.patterns
                for value in atoms
            )
            orders += [Order(_joined(each, alone, required), is_closed) for each in (lists, lists[::-1])]
    return tuple(dict.fromkeys(orders))


def _lists(atoms: Iterable[Any], places: Mapping[str, int], applied: Applied) -> list[AllMembers]:
    """Returns the lists among the atoms that order their names, as the schema applies them, else by the
    places of these."""
    lists = [value for value in atoms if isinstance(value, AllMembers) and value not in applied.unordered]
    lists.sort(key=lambda value: (_places(value.by_name, places), [*value.by_name]))
    return applied.in_order(lists)


def _joined(lists: Sequence[AllMembers], alone: Iterable[str], required: Set[str]) -> tuple[str, ...]:
    """Returns the names of the lists, then those that stand alone; of all these the required ones first."""
    names = dict.fromkeys([*(name for one in lists for name in one.by_name), *alone])
    return tuple(sorted(names, key=lambda name: name not in required))


def _alone(atoms: Iterable[Any], places: Mapping[str, int]) -> list[str]:
    """Returns the names that must or must not be there, by their places."""
    names = [value.name for value in atoms if isinstance(value, HasName)]
    return sorted(names, key=lambda name: (_places([name], places), name))


def _places(names: Iterable[str], places: Mapping[str, int]) -> tuple[int, ...]:
    """Returns the place of each name; of one that has none, the number of all."""
    return tuple(places.get(name, len(places)) for name in names)


def _alternatives(formula: Formula, kinds: tuple[type, ...]) -> tuple[frozenset[Any], ...]:
    """Returns the atoms of these kinds of each alternative of the formula, those that it excludes left out;
    where there are more than MOST_ALTERNATIVES, each list of names by itself."""
    if formula.kind == "atom":
        return (frozenset(value for value in formula.parts if isinstance(value, kinds)),)
    if formula.kind == "or":
        return tuple(dict.fromkeys(each for part in formula.parts for each in _alternatives(part, kinds)))
    found = {frozenset[Any](): None}
    if formula.kind == "and":
        for part in formula.parts:
            of_part = _alternatives(part, kinds)
            if len(found) * len(of_part) > MOST_ALTERNATIVES:
                lists = (value for value in formula.atoms if isinstance(value, AllMembers))
                return tuple(frozenset((value,)) for value in lists)
            found = {one | other: None for one in found for other in of_part}
    return tuple(found)
