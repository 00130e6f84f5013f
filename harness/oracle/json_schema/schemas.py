"""A JSON Schema as formulas over atoms; what is not such a language raises NoOracle with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.json_schema.applied import Applied
from harness.oracle.json_schema.atoms import (
    TYPES,
    AllItems,
    AllMembers,
    AtLeastItems,
    InLanguage,
    IsOneOfNumbers,
    IsOneOfTexts,
    IsTrue,
    IsType,
    JsonType,
)
from harness.oracle.json_schema.budget import Budget
from harness.oracle.json_schema.facts import at_least, bound, has_name, if_type, is_number, is_text, is_type
from harness.oracle.json_schema.formula import (
    FALSE,
    TRUE,
    Formula,
    atom,
    conjunction,
    constant,
    disjunction,
    negation,
    reference,
    with_parts,
)
from harness.oracle.json_schema.keywords import of_any, of_array, of_number, of_object, of_string
from harness.oracle.json_schema.names import places_of_names
from harness.oracle.json_schema.references import References
from harness.oracle.json_schema.unevaluated import unevaluated_items, unevaluated_members
from harness.oracle.judge.drafts import draft_of
from harness.oracle.judge.pattern import NotAPattern, written_out
from harness.oracle.judge.schema import check_schema
from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.oracle.regex.automaton import finding_automaton, known_automaton
from harness.oracle.utf8 import Ranges

_error_of = lru_cache(maxsize=64)(check_schema)
"""What is wrong with a schema. Counter-experiments and layouts read one schema many times."""


class Schemas:
    """The subschemas of one document as formulas, made when they are asked for."""

    def __init__(
        self, text: str, draft: str | None, asserts_formats: bool, without: frozenset[str], budget: Budget
    ) -> None:
        """Reads a schema, leaving out the keywords of `without`. Raises NoOracle for what is no schema, and
        where the patterns take more time than the budget has.

        The values that `uniqueItems` follows are those that `items` lists, even if it leaves out the list:
        without it there would be no such language.
        """
        try:
            document = json.loads(text, parse_float=Decimal)
            self.draft = draft_of(document, draft)
        except (ValueError, ArithmeticError, RecursionError, Unjudgeable) as error:
            raise NoOracle(f"the schema cannot be read: {error}"[:200]) from error
        if self.draft == "draft3":
            raise NoOracle("no reference for draft 3")
        wrong = _error_of(text, draft)
        if wrong is not None:
            raise NoOracle(f"the schema is wrong: {wrong}"[:200])
        self.asserts_formats = asserts_formats
        self.without = without
        self._budget = budget
        self.keywords: dict[str, None] = {}
        """The keywords that ask something, in the order in which they were read."""
        self.automata: list[Automaton[Any]] = []
        self._numbers: dict[Hashable, int] = {}
        self._made: dict[Hashable, Formula] = {}
        self._makers: dict[Hashable, Callable[[], Formula]] = {}
        self._found: dict[Hashable, tuple[Any, Any]] = {}
        self._kept: list[Any] = []
        self._under_way: set[int] = set()
        """The schemas of which the formula is being made."""
        self._restrictions: dict[tuple[Formula, JsonType], Formula] = {}
        self._being_made = 0
        """How many formulas of references are being made now; what is restricted meanwhile is not kept."""
        self.applied = Applied(self._made)
        """Which of the lists of names that hold together comes first."""
        self.places = places_of_names(document)
        """Where a name stands first in the schema; it orders the names of several subschemas."""
        self.references = References(document, self.draft)
        self.root = self.formula(document, self.references.root, is_inside=True)

    # ------------------------------------------------------------------------------------------- references

    def named(self, name: Hashable) -> Formula:
        """Returns the formula that a reference stands for."""
        made = self._made.get(name)
        if made is None:
            # Only while it is made: a formula holds references, not what they stand for.
            self._made[name] = FALSE
            self._being_made += 1
            try:
                maker = self._makers.get(name)
                made = maker() if maker else self.formula(*self._found[name], is_inside=True)
            except BaseException:
                del self._made[name]  # so that whoever asks again gets the reason again
                raise
            finally:
                self._being_made -= 1
            self._made[name] = made
        return made

    def defined(self, name: Hashable, make: Callable[[], Formula]) -> Formula:
        """Returns a reference to a formula that is made when it is looked up, so that it may refer to
        itself."""
        self._makers.setdefault(name, make)
        return reference(name)

    def _reference(self, keyword: str, target: str, resolver: Any) -> Formula:
        return self._of_contents(*self.references.followed(keyword, target, resolver))

    def _of_contents(self, contents: Any, resolver: Any) -> Formula:
        """Returns a reference to the formula of a schema; the resolver is the one within it."""
        name = id(contents)
        if name not in self._found:
            self._found[name] = (contents, resolver)
            self._kept.append(contents)  # so that nothing else gets its id
        return reference(name)

    def restricted(self, formula: Formula, kind: JsonType) -> Formula:
        """Returns what the formula asks of a value of one type, with references looked up.

        Raises NoOracle for a schema that is defined by itself alone.
        """
        return self._restricted(formula, kind, ())

    def answer(self, formula: Formula) -> bool | None:
        """Is the formula true of every value (True) or of none (False), also where it refers to one that is
        so? None for others, and for those of which more would have to be known than what they say."""
        found = {self.restricted(formula, kind) for kind in TYPES}
        return True if found == {TRUE} else False if found == {FALSE} else None

    def _restricted(self, formula: Formula, kind: JsonType, above: tuple[Hashable, ...]) -> Formula:
        found = self._restrictions.get((formula, kind))
        if found is not None:
            return found
        if formula.kind == "reference":
            name = formula.parts[0]
            if name in above:
                raise NoOracle("a schema refers to itself without anything between")
            found = self._restricted(self.named(name), kind, (*above, name))
        elif formula.kind == "atom":
            value = formula.parts[0]
            found = constant(value.type == kind) if isinstance(value, IsType) else formula
        elif formula.is_joint:
            found = with_parts(formula, [self._restricted(part, kind, above) for part in formula.parts])
        else:
            found = formula
        if not self._being_made:
            self._restrictions[formula, kind] = found
        return found

    # --------------------------------------------------------------------------------------------- keywords

    def formula(self, schema: Any, resolver: Any, is_inside: bool = False) -> Formula:
        """Returns what a schema asks of a value. The resolver is the one around the schema, or if it
        `is_inside` the one within it."""
        if isinstance(schema, bool):
            return constant(schema)
        if not isinstance(schema, dict):
            raise NoOracle("a schema is neither an object nor a boolean")
        name = ("schema", id(schema))
        made = self._made.get(name)
        if made is None:
            if not is_inside:
                resolver = self.references.inside(schema, resolver)
            if id(schema) in self._under_way:  # what is unevaluated in it depends on whether it holds
                return self._of_contents(schema, resolver)
            self._kept.append(schema)
            self._under_way.add(id(schema))
            try:
                made = self._made[name] = self._formula(schema, resolver)
            finally:
                self._under_way.remove(id(schema))
        return made

    def _formula(self, schema: Mapping[str, Any], resolver: Any) -> Formula:
        if draft_of(schema, self.draft) != self.draft:
            raise NoOracle("a subschema names another draft")
        schema = self.asking(schema)
        old = self.draft in ("draft4", "draft6", "draft7")
        if isinstance(schema.get("$ref"), str) and old:
            return self._reference("$ref", schema["$ref"], resolver)
        asked: list[Formula] = []
        for keyword, value in schema.items():
            formulas = tuple(self._of_keyword(keyword, value, schema, resolver))
            if formulas:
                self.keywords[keyword] = None
            asked += formulas
        self.applied.add(asked)
        return conjunction(asked)

    def asking(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the keywords of a schema without those that are left out."""
        if not self.without:
            return schema
        return {keyword: value for keyword, value in schema.items() if keyword not in self.without}

    def _of_keyword(
        self, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
    ) -> Iterable[Formula]:
        is_new = self.draft in ("draft2019-09", "draft2020-12")
        if keyword in self.references.keywords:
            return (self._reference(keyword, value, resolver),)
        if keyword == "unevaluatedProperties" and is_new:
            return (if_type("object", unevaluated_members(self, schema, resolver)),)
        if keyword == "unevaluatedItems" and is_new:
            return (if_type("array", unevaluated_items(self, schema, resolver)),)
        for group in (of_any, of_string, of_number, of_array, of_object):
            found = group(self, keyword, value, schema, resolver)
            if found is not None:
                return (found,)
        return ()  # an annotation, or a keyword that the draft does not know

    def later(self, schema: Any, resolver: Any) -> Formula:
        """Returns the formula of a subschema of a part of the value; a reference to it unless it is a
        boolean."""
        if schema is True or schema == {}:
            return TRUE
        if schema is False:
            return FALSE
        return self.formula(schema, resolver)

    # ----------------------------------------------------------------------------------- values and strings

    def enumeration(self, values: list[Any]) -> Formula:
        """Returns the formula that the value is one of these."""
        if not isinstance(values, list):
            raise NoOracle("an enum is no list")
        texts = frozenset(value for value in values if isinstance(value, str))
        numbers = frozenset(bound(value) for value in values if is_number(value))
        others = (value for value in values if not isinstance(value, str) and not is_number(value))
        parts = [self.equals(value) for value in others]
        parts.append(conjunction([is_type("number"), atom(IsOneOfNumbers(numbers))]))
        parts.append(conjunction([is_type("string"), self.is_one_of(texts)]))
        return disjunction(parts)

    def equals(self, value: Any) -> Formula:
        """Returns the formula that the value is this one."""
        if value is None:
            return is_type("null")
        if isinstance(value, bool):
            return conjunction([is_type("boolean"), atom(IsTrue()) if value else negation(atom(IsTrue()))])
        if is_number(value):
            return conjunction([is_type("number"), atom(IsOneOfNumbers(frozenset((bound(value),))))])
        if isinstance(value, str):
            return conjunction([is_type("string"), self.is_one_of(frozenset((value,)))])
        if isinstance(value, list):
            length = [at_least(AtLeastItems, len(value)), negation(at_least(AtLeastItems, len(value) + 1))]
            items = atom(AllItems(tuple(self.equals(each) for each in value), FALSE))
            return conjunction([is_type("array"), *length, items])
        named = tuple((name, self.equals(each)) for name, each in value.items() if is_text(name))
        present = [has_name(name) for name in value]
        return conjunction([is_type("object"), *present, atom(AllMembers(named, (), FALSE))])

    def is_one_of(self, texts: frozenset[str]) -> Formula:
        """Returns the formula that the string is one of these; a text with a lone surrogate is none."""
        return atom(IsOneOfTexts(frozenset(text.encode() for text in texts if is_text(text))))

    def consists_of(self, characters: Ranges) -> Formula:
        """Returns the formula that the string has no other characters."""
        listed = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in characters)
        return self.whole(f"[{listed}]*" if listed else "")

    def finds(self, pattern: str) -> Formula:
        """Returns the formula that the ECMA-262 pattern matches somewhere in the string."""
        return self.matches(self.search(pattern))

    def search(self, pattern: str) -> int:
        key = ("search", pattern)
        if key not in self._numbers:
            try:
                written = written_out(pattern)
            except NotAPattern as error:
                raise NoOracle(str(error)[:200]) from error
            self._numbers[key] = self._add(finding_automaton(written))
        return self._numbers[key]

    def whole(self, pattern: str) -> Formula:
        """Returns the formula that the string as a whole matches one of our own patterns of the `regex`
        library."""
        key = ("match", pattern)
        if key not in self._numbers:
            self._numbers[key] = self._add(known_automaton(pattern))
        return self.matches(self._numbers[key])

    def _add(self, automaton: Automaton[Any]) -> int:
        self._budget.check_now()
        self.automata.append(automaton)
        return len(self.automata) - 1

    def matches(self, number: int) -> Formula:
        """Returns the formula that the string is in the language of an automaton."""
        start = self.automata[number].start
        return atom(InLanguage(number, start)) if start else FALSE
