"""Which values have a spelling in a layout, as a formula that is asked beside the schema."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from harness.backend.layout import Layout
from harness.oracle.json_schema.atoms import (
    AllItems,
    AllMembers,
    AllNames,
    Contains,
    IsMinusZero,
    IsMultiple,
    IsSpelledInteger,
)
from harness.oracle.json_schema.facts import if_type
from harness.oracle.json_schema.formula import (
    FALSE,
    TRUE,
    Formula,
    atom,
    conjunction,
    disjunction,
    negation,
    polarity,
)
from harness.oracle.json_schema.layout import characters
from harness.oracle.json_schema.names import names_in_order
from harness.oracle.json_schema.parts import atoms_in_order
from harness.oracle.json_schema.schemas import Schemas
from harness.oracle.utf8 import EVERY


def spellable_values(schemas: Schemas, layout: Layout) -> Formula:
    """Returns the formula that is true of the values that the layout can spell; of a number it says whether
    the literal is one of the layout."""
    asked = _of_scalars(schemas, layout)
    if layout.unlisted in ("asked", "never"):
        asked = conjunction([asked, _only_listed(schemas, (schemas.root,), layout)])
    return asked


def _of_scalars(schemas: Schemas, layout: Layout) -> Formula:
    """Returns the formula that all strings and numbers, at any depth, are such that the layout can spell
    them."""
    asked: list[Formula] = []
    spelled = characters(layout)
    if spelled != EVERY:
        string = schemas.consists_of(spelled)
        asked += [if_type("string", string), if_type("object", atom(AllNames(string)))]
    if layout.integers_are_digits:
        literal = disjunction([negation(atom(IsMultiple(Fraction(1)))), atom(IsSpelledInteger())])
        asked.append(if_type("number", literal))
    if not layout.has_minus_zero:
        asked.append(if_type("number", negation(atom(IsMinusZero()))))
    if not asked:
        return TRUE

    def whole() -> Formula:
        return conjunction([*asked, *_below(below)])

    below = schemas.defined("spellable", whole)
    return below


def _below(formula: Formula) -> tuple[Formula, Formula]:
    """Returns the formulas that every item of an array, and every member of an object, satisfies the given
    one."""
    return if_type("array", atom(AllItems((), formula))), if_type("object", atom(AllMembers((), (), formula)))


def _only_listed(schemas: Schemas, formulas: tuple[Formula, ...], layout: Layout) -> Formula:
    """Returns the formula that no object of a value has a name that none of the formulas lists that could
    apply to the object (these, for the value itself), but for names that they ask for in another way, if the
    layout has such. Without `further_items`, no array has items behind those that the formulas list one by
    one, unless one of them asks something of the others."""

    def below(found: list[Formula]) -> Formula:
        speaking = tuple(dict.fromkeys(each for each in found if each not in (TRUE, FALSE)))
        return _only_listed(schemas, speaking, layout)

    def whole() -> Formula:
        of_objects = tuple(schemas.restricted(formula, "object") for formula in formulas)
        named = tuple(
            (name, below(_asked_of(schemas, of_objects, name)))
            for name in names_in_order(of_objects, schemas.places, schemas.applied)
        )
        patterns, written = _asked_for(of_objects) if layout.unlisted == "asked" else ({}, [])
        members = AllMembers(
            named,
            tuple((number, below(found)) for number, found in patterns.items()),
            below(written) if written else FALSE,
        )
        schemas.applied.unordered.add(members)
        return conjunction([if_type("array", items()), if_type("object", atom(members))])

    def items() -> Formula:
        atoms = atoms_in_order(tuple(schemas.restricted(formula, "array") for formula in formulas))
        of_all = [value for value in atoms if isinstance(value, AllItems)]
        of_any = [value.formula for value in atoms if isinstance(value, Contains)]

        def at(place: int) -> Formula:
            return below(
                [
                    *(value.prefix[place] if place < len(value.prefix) else value.rest for value in of_all),
                    *of_any,
                ]
            )

        listed = max((len(value.prefix) for value in of_all), default=0)
        is_closed = (
            listed
            and not layout.further_items
            and all(schemas.answer(value.rest) is not None for value in of_all)
        )
        return atom(AllItems(tuple(map(at, range(listed))), FALSE if is_closed else at(listed)))

    return schemas.defined(("only listed", formulas), whole)


def _asked_of(schemas: Schemas, formulas: tuple[Formula, ...], name: str) -> list[Formula]:
    """Returns what any of the formulas asks of the member with this name."""
    found: list[Formula] = []
    for value in atoms_in_order(formulas):
        if isinstance(value, AllMembers):
            own = [formula for listed, formula in value.named if listed == name]
            own += [
                formula
                for number, formula in value.patterns
                if schemas.automata[number].accepts(name.encode("utf-8", "surrogatepass"))
            ]
            found += own or [value.others]
    return found


def _asked_for(formulas: tuple[Formula, ...]) -> tuple[dict[int, list[Formula]], list[Formula]]:
    """Returns what the formulas ask of names that none of them lists: for each pattern of names, the formulas
    of members that it matches, and those of all other names, where some keyword says that they may be. What
    stands in a negation alone asks for no name.

    A name that two patterns match, or that is listed too, has what both of them list, which may be less than
    a backend writes.
    """
    helping = frozenset[Any]().union(*(polarity(formula)[0] for formula in formulas))
    spoken = [each for each in atoms_in_order(formulas) if isinstance(each, AllMembers) and each in helping]
    patterns: dict[int, list[Formula]] = {}
    for value in spoken:
        elsewhere = [other.others for other in spoken if other is not value]
        for number, formula in value.patterns:
            patterns.setdefault(number, []).extend((formula, *elsewhere))
    return patterns, [each.others for each in spoken if not each.is_default and each.others is not FALSE]
