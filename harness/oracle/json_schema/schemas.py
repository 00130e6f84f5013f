"""A JSON Schema as formulas over atoms; what is not such a language raises NoOracle with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.json_schema.atoms import (
    TYPES,
    Above,
    AllItems,
    AllMembers,
    AllNames,
    AtLeast,
    AtLeastCharacters,
    AtLeastItems,
    AtLeastProperties,
    Contains,
    HasName,
    InLanguage,
    IsMultiple,
    IsOneOfNumbers,
    IsOneOfTexts,
    IsSpelledInteger,
    IsTrue,
    IsType,
    JsonType,
)
from harness.oracle.json_schema.formats import format_of
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
from harness.oracle.json_schema.unevaluated import unevaluated_items, unevaluated_members
from harness.oracle.judge.drafts import draft_of
from harness.oracle.judge.pattern import NotAPattern, written_out
from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.oracle.regex.automaton import regex_automaton
from harness.oracle.utf8 import Ranges

LARGEST_COUNT = 100_000
"""A larger bound on a count of characters, items or members has no reference."""
MOST_DIGITS = 400
"""Decimal digits that a bound of a number may have, with its exponent written out."""


MOST_VALUES = 12
"""Values of which `uniqueItems` is followed, one by one."""


class Schemas:
    """The subschemas of one document as formulas, made when they are asked for."""

    def __init__(
        self, text: str, draft: str | None, asserts_formats: bool, without: frozenset[str] = frozenset()
    ) -> None:
        """Reads a schema, leaving out the keywords of `without`. Raises NoOracle for what is no schema."""
        from jsonschema_specifications import REGISTRY
        from referencing.jsonschema import specification_with

        try:
            document = json.loads(text, parse_float=Decimal)
            self.draft = draft_of(document, draft)
        except (ValueError, RecursionError, Unjudgeable) as error:
            raise NoOracle(f"the schema cannot be read: {error}"[:200]) from error
        if self.draft == "draft3":
            raise NoOracle("no reference for draft 3")
        self.asserts_formats = asserts_formats
        self.without = without
        self.keywords: dict[str, None] = {}
        """The keywords that ask something, in the order in which they were read."""
        self.automata: list[Automaton[Any]] = []
        self._numbers: dict[Hashable, int] = {}
        self._made: dict[Hashable, Formula] = {}
        self._makers: dict[Hashable, Callable[[], Formula]] = {}
        self._found: dict[Hashable, tuple[Any, Any]] = {}
        self._kept: list[Any] = []
        self._restrictions: dict[tuple[Formula, JsonType], Formula] = {}
        self._being_made = 0
        """How many formulas of references are being made now; what is restricted meanwhile is not kept."""
        try:
            specification: Any = specification_with(_uri(self.draft))
            resource = specification.create_resource(document)
            registry: Any = REGISTRY.with_resource("", resource)
            self._resolver = registry.resolver_with_root(resource)
        except Exception as error:  # a broken identifier raises whatever the library's parser meets
            raise NoOracle(f"the schema's identifiers cannot be read: {error}"[:200]) from error
        self._anchors = re.findall(r'"\$dynamicAnchor"\s*:\s*"([^"]*)"', text)
        self._is_recursive = '"$recursiveAnchor"' in text
        self.root = self.formula(document, self._resolver)

    # ------------------------------------------------------------------------------------------- references

    def named(self, name: Hashable) -> Formula:
        """The formula that a reference stands for."""
        made = self._made.get(name)
        if made is None:
            # Only while it is made: a formula holds references, not what they stand for.
            self._made[name] = FALSE
            self._being_made += 1
            try:
                made = self._makers[name]() if name in self._makers else self.formula(*self._found[name])
            except NoOracle:
                del self._made[name]  # so that whoever asks again gets the reason again
                raise
            finally:
                self._being_made -= 1
            self._made[name] = made
        return made

    def defined(self, name: Hashable, make: Callable[[], Formula]) -> Formula:
        """A reference to a formula that is made when it is looked up, so that it may refer to itself."""
        self._makers.setdefault(name, make)
        return reference(name)

    def followed(self, keyword: str, target: str, resolver: Any) -> tuple[Any, Any]:
        """The subschema that `$ref`, `$dynamicRef` or `$recursiveRef` stands for, and its resolver.

        Raises NoOracle where that is not in the schema, or hangs on the way on which the reference was
        reached.
        """
        contents, resolved = self._looked_up(target, resolver)
        if keyword == "$dynamicRef" and isinstance(contents, dict) and "$dynamicAnchor" in contents:
            if len({*self._anchors}) < len(self._anchors) or "meta" in self._anchors:
                raise NoOracle("$dynamicRef is resolved while a value is read")
            if contents["$dynamicAnchor"] == "meta":
                return self._looked_up(_uri(self.draft), resolver)
        if keyword == "$recursiveRef" and isinstance(contents, dict) and contents.get("$recursiveAnchor"):
            if self._is_recursive:
                raise NoOracle("$recursiveRef is resolved while a value is read")
            return self._looked_up(_uri(self.draft), resolver)
        return contents, resolved

    def _looked_up(self, target: str, resolver: Any) -> tuple[Any, Any]:
        from referencing.exceptions import Unresolvable

        try:
            resolved = resolver.lookup(target)
        except Unresolvable as error:
            raise NoOracle(f"the reference {target[:80]!r} points out of the schema") from error
        except Exception as error:
            raise NoOracle(f"the reference {target[:80]!r} cannot be followed: {error}"[:200]) from error
        return resolved.contents, resolved.resolver

    def _reference(self, keyword: str, target: str, resolver: Any) -> Formula:
        return self._of_contents(*self.followed(keyword, target, resolver))

    def _of_contents(self, contents: Any, resolver: Any) -> Formula:
        name = id(contents)
        if name not in self._found:
            self._found[name] = (contents, resolver)
            self._kept.append(contents)  # so that nothing else gets its id
        return reference(name)

    def restricted(self, formula: Formula, kind: JsonType) -> Formula:
        """What the formula asks of a value of one type, with references looked up.

        Raises NoOracle for a schema that is defined by itself alone.
        """
        return self._restricted(formula, kind, ())

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

    def formula(self, schema: Any, resolver: Any) -> Formula:
        """What a schema asks of a value."""
        if isinstance(schema, bool):
            return constant(schema)
        if not isinstance(schema, dict):
            raise NoOracle("a schema is neither an object nor a boolean")
        name = ("schema", id(schema))
        made = self._made.get(name)
        if made is None:
            self._kept.append(schema)
            made = self._made[name] = self._formula(schema, resolver)
        return made

    def _formula(self, schema: Mapping[str, Any], resolver: Any) -> Formula:
        old = self.draft in ("draft4", "draft6", "draft7")
        if isinstance(schema.get("$ref"), str) and old:
            return self._reference("$ref", schema["$ref"], resolver)
        identifier = schema.get("id" if self.draft == "draft4" else "$id")
        if isinstance(identifier, str) and not identifier.startswith("#"):
            from referencing.jsonschema import specification_with

            specification: Any = specification_with(_uri(self.draft))
            resolver = resolver.in_subresource(specification.create_resource(schema))
        asked: list[Formula] = []
        if self.without:
            schema = {keyword: value for keyword, value in schema.items() if keyword not in self.without}
        for keyword, value in schema.items():
            formulas = tuple(self._of_keyword(keyword, value, schema, resolver))
            if formulas:
                self.keywords[keyword] = None
            asked += formulas
        return conjunction(asked)

    def _of_keyword(
        self, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
    ) -> Iterable[Formula]:
        is_new = self.draft in ("draft2019-09", "draft2020-12")
        if keyword == "$ref" or keyword == {
            "draft2020-12": "$dynamicRef",
            "draft2019-09": "$recursiveRef",
        }.get(self.draft):
            return (self._reference(keyword, value, resolver),)
        if keyword == "unevaluatedProperties" and is_new:
            return (if_type("object", unevaluated_members(self, schema, resolver)),)
        if keyword == "unevaluatedItems" and is_new:
            return (if_type("array", unevaluated_items(self, schema, resolver)),)
        for group in (self._of_any, self._of_string, self._of_number, self._of_array, self._of_object):
            found = group(keyword, value, schema, resolver)
            if found is not None:
                return (found,)
        return ()  # an annotation, or a keyword that the draft does not know

    def _of_any(self, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any) -> Formula | None:
        def below() -> list[Formula]:
            return [self.formula(each, resolver) for each in value]

        if keyword == "type":
            return disjunction(self._type(each) for each in ([value] if isinstance(value, str) else value))
        if keyword == "enum":
            return self._enumeration(value)
        if keyword == "const" and self.draft != "draft4":
            return self._enumeration([value])
        if keyword == "allOf":
            return conjunction(below())
        if keyword == "anyOf":
            return disjunction(below())
        if keyword == "oneOf":
            return one_of(below())
        if keyword == "not":
            return negation(self.formula(value, resolver))
        if keyword == "if" and self.draft not in ("draft4", "draft6"):
            condition = self.formula(value, resolver)
            then, otherwise = (self.formula(schema.get(name, True), resolver) for name in ("then", "else"))
            return conjunction(
                [disjunction([negation(condition), then]), disjunction([condition, otherwise])]
            )
        return None

    def _type(self, name: str) -> Formula:
        if name == "integer":
            whole = IsSpelledInteger() if self.draft == "draft4" else IsMultiple(Fraction(1))
            return conjunction([_is("number"), atom(whole)])
        if name not in TYPES:
            raise NoOracle(f"unknown type {name[:40]!r}")
        return _is(name)

    def _of_string(
        self, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
    ) -> Formula | None:
        if keyword == "minLength":
            return if_type("string", _at_least(AtLeastCharacters, value))
        if keyword == "maxLength":
            return if_type("string", negation(_at_least(AtLeastCharacters, value + 1)))
        if keyword == "pattern":
            return if_type("string", self.finds(value))
        if keyword == "format" and self.asserts_formats and isinstance(value, str):
            wanted = format_of(value)
            if wanted is None:
                return None
            excluded = [] if wanted.but_not is None else [negation(self._matches(wanted.but_not))]
            return if_type("string", conjunction([self._matches(wanted.pattern), *excluded]))
        return None

    def _of_number(
        self, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
    ) -> Formula | None:
        if keyword == "minimum":
            is_exclusive = self.draft == "draft4" and schema.get("exclusiveMinimum") is True
            return if_type("number", atom((Above if is_exclusive else AtLeast)(_bound(value))))
        if keyword == "maximum":
            is_exclusive = self.draft == "draft4" and schema.get("exclusiveMaximum") is True
            return if_type("number", negation(atom((AtLeast if is_exclusive else Above)(_bound(value)))))
        if keyword == "exclusiveMinimum" and self.draft != "draft4":
            return if_type("number", atom(Above(_bound(value))))
        if keyword == "exclusiveMaximum" and self.draft != "draft4":
            return if_type("number", negation(atom(AtLeast(_bound(value)))))
        if keyword == "multipleOf":
            return if_type("number", atom(IsMultiple(_bound(value))))
        return None

    def _of_array(self, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any) -> Formula | None:
        is_new = self.draft == "draft2020-12"
        if keyword == "minItems":
            return if_type("array", _at_least(AtLeastItems, value))
        if keyword == "maxItems":
            return if_type("array", negation(_at_least(AtLeastItems, value + 1)))
        if keyword == "items":
            if isinstance(value, list) and not is_new:
                rest = self.formula(schema.get("additionalItems", True), resolver)
                return if_type(
                    "array", atom(AllItems(tuple(self.later(each, resolver) for each in value), rest))
                )
            prefix = (
                tuple(self.later(each, resolver) for each in schema.get("prefixItems", ())) if is_new else ()
            )
            rest = self.later(value, resolver)
            return if_type("array", atom(AllItems((TRUE,) * len(prefix), rest)))
        if keyword == "prefixItems" and is_new:
            return if_type("array", atom(AllItems(tuple(self.later(each, resolver) for each in value), TRUE)))
        if keyword == "contains" and self.draft != "draft4":
            wanted = self.later(value, resolver)
            is_counted = self.draft in ("draft2019-09", "draft2020-12")
            least = _count(schema.get("minContains", 1)) if is_counted else 1
            found = atom(Contains(wanted, least)) if least else TRUE
            if is_counted and "maxContains" in schema:
                most = _count(schema["maxContains"])
                found = conjunction([found, negation(atom(Contains(wanted, most + 1)))])
            return if_type("array", found)
        if keyword == "uniqueItems" and value is True:
            return if_type("array", self._all_different(schema))
        return None

    def _of_object(
        self, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
    ) -> Formula | None:
        if keyword == "minProperties":
            return if_type("object", _at_least(AtLeastProperties, value))
        if keyword == "maxProperties":
            return if_type("object", negation(_at_least(AtLeastProperties, value + 1)))
        if keyword == "required" and isinstance(value, list):
            return if_type("object", conjunction(atom(HasName(name)) for name in value))
        members = ("properties", "patternProperties", "additionalProperties")
        if keyword in members:
            # One atom for the three, where the first of them stands.
            return (
                self._members(schema, resolver)
                if keyword == next(k for k in members if k in schema)
                else TRUE
            )
        if keyword == "propertyNames" and self.draft != "draft4":
            return if_type("object", atom(AllNames(self.later(value, resolver))))
        if keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            is_new = self.draft in ("draft2019-09", "draft2020-12")
            if is_new == (keyword == "dependencies") and is_new:
                return None
            if not is_new and keyword != "dependencies":
                return None
            asked = []
            for name, needs in value.items():
                then = (
                    conjunction(atom(HasName(each)) for each in needs)
                    if isinstance(needs, list)
                    else self.formula(needs, resolver)
                )
                asked.append(disjunction([negation(atom(HasName(name))), then]))
            return if_type("object", conjunction(asked))
        return None

    def _all_different(self, schema: Mapping[str, Any]) -> Formula:
        """No two items are equal; raises NoOracle unless they come from a short list of values."""
        longest, items = schema.get("maxItems"), schema.get("items")
        if isinstance(longest, int) and longest <= 1:
            return TRUE
        values = None
        if isinstance(items, Mapping) and not {"$ref", "prefixItems"} & {*items, *schema}:
            values = [items["const"]] if "const" in items else items.get("enum")
            if values is None:
                values = {"boolean": [True, False], "null": [None]}.get(str(items.get("type")))
        if values is None or len(values) > MOST_VALUES:
            raise NoOracle("uniqueItems compares values, which no such language does")
        equal = dict.fromkeys(self._equals(value) for value in values)
        return conjunction(negation(atom(Contains(formula, 2))) for formula in equal)

    def _members(self, schema: Mapping[str, Any], resolver: Any) -> Formula:
        named = tuple(
            (name, self.later(each, resolver)) for name, each in schema.get("properties", {}).items()
        )
        patterns = tuple(
            (self.search(pattern), self.later(each, resolver))
            for pattern, each in schema.get("patternProperties", {}).items()
        )
        others = self.later(schema.get("additionalProperties", True), resolver)
        return if_type("object", atom(AllMembers(named, patterns, others)))

    def later(self, schema: Any, resolver: Any) -> Formula:
        """The formula of a subschema of a part of the value; a reference to it unless it is a boolean."""
        if schema is True or schema == {}:
            return TRUE
        if schema is False:
            return FALSE
        return self.formula(schema, resolver)

    # ----------------------------------------------------------------------------------- values and strings

    def _enumeration(self, values: list[Any]) -> Formula:
        texts = frozenset(value for value in values if isinstance(value, str))
        numbers = frozenset(_bound(value) for value in values if _is_number(value))
        others = (value for value in values if not isinstance(value, str) and not _is_number(value))
        parts = [self._equals(value) for value in others]
        parts.append(conjunction([_is("number"), atom(IsOneOfNumbers(numbers))]))
        parts.append(conjunction([_is("string"), self.is_one_of(texts)]))
        return disjunction(parts)

    def _equals(self, value: Any) -> Formula:
        if value is None:
            return _is("null")
        if isinstance(value, bool):
            return conjunction([_is("boolean"), atom(IsTrue()) if value else negation(atom(IsTrue()))])
        if _is_number(value):
            return conjunction([_is("number"), atom(IsOneOfNumbers(frozenset((_bound(value),))))])
        if isinstance(value, str):
            return conjunction([_is("string"), self.is_one_of(frozenset((value,)))])
        if isinstance(value, list):
            length = [_at_least(AtLeastItems, len(value)), negation(_at_least(AtLeastItems, len(value) + 1))]
            items = atom(AllItems(tuple(self._equals(each) for each in value), FALSE))
            return conjunction([_is("array"), *length, items])
        named = tuple((name, self._equals(each)) for name, each in value.items())
        present = [atom(HasName(name)) for name in value]
        return conjunction([_is("object"), *present, atom(AllMembers(named, (), FALSE))])

    def is_one_of(self, texts: frozenset[str]) -> Formula:
        """The string is one of these; a text with a lone surrogate is none."""
        known = (text.encode() for text in texts if not any("\ud800" <= each <= "\udfff" for each in text))
        return atom(IsOneOfTexts(frozenset(known)))

    def consists_of(self, characters: Ranges) -> Formula:
        """The string has no other characters."""
        listed = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in characters)
        return self._matches(f"[{listed}]*" if listed else "")

    def finds(self, pattern: str) -> Formula:
        """The ECMA-262 pattern matches somewhere in the string."""
        return self._starting(self.search(pattern))

    def search(self, pattern: str) -> int:
        key = ("search", pattern)
        if key not in self._numbers:
            try:
                whole = rf"(?s:.*)(?:{written_out(pattern)})(?s:.*)"
            except NotAPattern as error:
                raise NoOracle(str(error)[:200]) from error
            self._numbers[key] = self._add(regex_automaton(whole, "python"))
        return self._numbers[key]

    def _matches(self, pattern: str) -> Formula:
        """The string as a whole matches a pattern of the `regex` library."""
        key = ("match", pattern)
        if key not in self._numbers:
            self._numbers[key] = self._add(regex_automaton(pattern, "python"))
        return self._starting(self._numbers[key])

    def _add(self, automaton: Automaton[Any]) -> int:
        self.automata.append(automaton)
        return len(self.automata) - 1

    def matches(self, number: int) -> Formula:
        """The string is in the language of an automaton."""
        return self._starting(number)

    def _starting(self, number: int) -> Formula:
        start = self.automata[number].start
        return atom(InLanguage(number, start)) if start else FALSE


def one_of(formulas: list[Formula]) -> Formula:
    """True where exactly one of them is; its size is linear in their number."""
    none, one = TRUE, FALSE
    for each in formulas:
        one = disjunction([conjunction([one, negation(each)]), conjunction([none, each])])
        none = conjunction([none, negation(each)])
    return one


def _is(kind: Any) -> Formula:
    return atom(IsType(kind))


def if_type(kind: JsonType, formula: Formula) -> Formula:
    """A keyword asks nothing of values of other types."""
    return disjunction([negation(_is(kind)), formula])


def _count(value: Any) -> int:
    number = int(value)
    if number != value or not 0 <= number <= LARGEST_COUNT:
        raise NoOracle(f"a count of {value} is none, or above {LARGEST_COUNT:,}")
    return number


def _at_least(fact: Any, count: Any) -> Formula:
    """At least so many characters, items or members; none always are."""
    number = _count(count)
    return atom(fact(number)) if number else TRUE


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _bound(value: int | Decimal) -> Fraction:
    if isinstance(value, Decimal) and (
        abs(value.adjusted()) > MOST_DIGITS or len(value.as_tuple().digits) > MOST_DIGITS
    ):
        raise NoOracle("a bound has too many digits")
    number = Fraction(value)
    if len(str(number.numerator)) > MOST_DIGITS:
        raise NoOracle("a bound has too many digits")
    return number


def _uri(draft: str) -> str:
    from harness.oracle.judge.drafts import DRAFT_URIS

    return DRAFT_URIS[draft]
