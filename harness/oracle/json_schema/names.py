"""The names of members that formulas over objects list."""

from __future__ import annotations

from harness.oracle.json_schema.atoms import AllMembers, AllNames, AtLeastProperties, HasName
from harness.oracle.json_schema.formula import FALSE, Formula, parts_of, polarity, rewritten
from harness.oracle.json_schema.parts import atoms_in_order, atoms_of

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


def names_in_order(formulas: tuple[Formula, ...], required_first: bool = False) -> tuple[str, ...]:
    """The names that the formulas list, in the order in which they first list them: those for whose values
    they ask something, then those that must or must not be there.

    With `required_first`, names without which the first formula is false come before all others.
    """
    atoms = atoms_in_order(formulas)
    with_values = [name for value in atoms if isinstance(value, AllMembers) for name, _ in value.named]
    names = dict.fromkeys([*with_values, *(value.name for value in atoms if isinstance(value, HasName))])
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
