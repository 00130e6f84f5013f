"""The names of members that formulas over objects list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.oracle.json_schema.atoms import AllMembers, AllNames, AtLeastProperties, HasName
from harness.oracle.json_schema.formula import FALSE, Formula, parts_of, polarity, rewritten
from harness.oracle.json_schema.parts import atoms_of

Names = frozenset[str]


def useful_names(formula: Formula, free: Names) -> Names:
    """The names of `free` whose members can help to make the formula true."""
    helping, hindering = polarity(formula)
    if any(isinstance(value, AtLeastProperties) for value in helping):
        return free
    if any(isinstance(value, AllMembers | AllNames) for value in hindering):
        return free
    return free & {value.name for value in helping if isinstance(value, HasName)}


def without_name(formula: Formula, name: str) -> Formula:
    """The formula if no member has this name."""
    value = HasName(name)
    return rewritten(formula, lambda _: FALSE, frozenset((value,))) if value in formula.atoms else formula


def listed_names(*formulas: Formula) -> Names:
    """The names that the formulas list: none of them may be there twice."""
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
    formulas: tuple[Formula, ...], places: Mapping[str, int], required_first: bool = False
) -> tuple[str, ...]:
    """The names that the formulas list, in the order in which the schema lists them: those for whose values
    they ask something, then those that must or must not be there.

    What one list says comes in its order; several are ordered by the places of their names in the schema
    (`places_of_names`), never by the order of the formulas, which depends on the schemas that this process
    read before. With `required_first`, names without which the first formula is false come before all others.
    """

    def place(*names: str) -> tuple[int, ...]:
        return tuple(places.get(name, len(places)) for name in names)

    atoms = atoms_of(formulas)
    lists = [[name for name, _ in value.named] for value in atoms if isinstance(value, AllMembers)]
    lists.sort(key=lambda names: (place(*names), names))
    alone = sorted(
        (value.name for value in atoms if isinstance(value, HasName)), key=lambda name: (place(name), name)
    )
    names = dict.fromkeys([*(name for one in lists for name in one), *alone])
    if required_first:
        wanted = formulas[0]
        all_wanted = parts_of(wanted) if wanted.kind == "and" else (wanted,)
        required = {
            part.parts[0].name
            for part in all_wanted
            if part.kind == "atom" and isinstance(part.parts[0], HasName)
        }
        names = dict.fromkeys(sorted(names, key=lambda name: name not in required))
    return tuple(names)
