"""Makes the documents that are wanted of a schema, and keeps those that both validators judge as meant."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeAlias

from harness.backend.grammar import Grammar
from harness.backend.layout import LAYOUTS, Layout
from harness.cases.case import json_text
from harness.cases.demands import URN, compound
from harness.cases.generated.differences import Difference, as_it_is, differences
from harness.cases.generated.right_texts import with_right_texts
from harness.cases.plain_constants import with_plain_constants
from harness.cases.subschemas import (
    ALTERNATIVES,
    NEVER,
    Path,
    Schema,
    at,
    object_subschemas,
    pointer,
    put,
    subschemas,
)
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.completion import short_completion
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge import Unjudgeable, is_valid
from harness.oracle.judge.drafts import draft_of
from harness.oracle.judge.second import second_verdict

MOST_DOCUMENTS = 150
"""Documents that are made of one schema."""
SECONDS = 10.0
"""Processor time for all documents of one schema."""
CLOCK_SECONDS = 20.0
"""Seconds on the clock for them, which come first on a busy machine: less than the deadline after which the
generator's process is lost with all of its documents."""
SEARCH_SECONDS = 1.0
"""Processor time for one document."""
FEW_ITEMS = 4
"""Values from which the items of an array are taken whose `uniqueItems` the automaton cannot follow."""
SPACED = LAYOUTS["spaced"]
AGREEING = replace(SPACED, alternatives_agree=True)
"""The layout in which names come in the order of the alternative that applies, because libraries write each
alternative by itself."""
LEFT_OUT: tuple[frozenset[str], ...] = (
    frozenset(("uniqueItems", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef")),
    frozenset(("uniqueItems", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef",
               "pattern", "format", "patternProperties")),
)  # fmt: skip
"""Keywords without which documents are made where the schema has no automaton with them; whether a document
is valid is for the validators to say then."""
Readings: TypeAlias = tuple[bool, ...]
"""Whether formats are asserted; with both, where backends may read the schema either way."""


@dataclass(frozen=True)
class Document:
    """A document, why it was made, and whether it is valid."""

    name: str
    content: bytes
    valid: bool
    pointers: tuple[str, ...]
    """The keywords for which it was made, as JSON Pointers into the schema."""


def documents_for(schema_text: str, draft: str | None, asserts_formats: bool) -> list[Document]:
    """Returns documents of a schema, and such as break one keyword of it, in the order in which `differences`
    wants them; none where no automaton has an answer. A document stands once, with all keywords that it
    serves."""
    end, clock_end = time.process_time() + SECONDS, time.monotonic() + CLOCK_SECONDS
    schema = json.loads(schema_text)
    if not isinstance(schema, dict):
        return []
    try:
        maker = _Maker(schema_text, schema, draft_of(schema, draft), asserts_formats)
    except Unjudgeable:
        return []
    documents: list[Document] = []
    for stage in maker.stages():
        served = {(place, document.valid) for document in documents for place in document.pointers}
        shortest = Difference("the shortest document", (), as_it_is(stage.schema), as_it_is(NEVER), True)
        for wanted in chain([shortest], differences(stage.schema)):
            is_late = time.process_time() > end or time.monotonic() > clock_end
            if is_late or len(documents) == MOST_DOCUMENTS:
                return documents
            if (wanted.pointer, wanted.valid) in served or not _stands(schema, wanted.path):
                continue
            content = stage.found(wanted, [each.content for each in documents if each.valid == wanted.valid])
            number = next((at for at, each in enumerate(documents) if each.content == content), None)
            if number is not None:
                documents[number] = _made_for(documents[number], wanted.pointer)
            elif content is not None:
                documents.append(Document(wanted.name, content, wanted.valid, (wanted.pointer,)))
    return documents


def _stands(schema: Schema, path: Path) -> bool:
    """Does the schema have this place?"""
    try:
        at(schema, path)
    except (LookupError, TypeError):
        return False
    return True


def _made_for(document: Document, pointer: str) -> Document:
    pointers = document.pointers
    return document if pointer in pointers else replace(document, pointers=(*pointers, pointer))


@dataclass(frozen=True)
class _Maker:
    """Makes documents of one schema."""

    text: str
    """The schema as the case has it, by which documents are judged."""
    schema: Schema
    """The schema of which documents are made: that of the text, or a stricter one that has an automaton."""
    draft: str
    asserts_formats: bool
    without: frozenset[str] = frozenset()
    """The keywords that the automaton leaves out."""

    @cached_property
    def plain(self) -> Schema:
        """Returns the schema without constants that can be written in several ways."""
        made: Schema = with_plain_constants(self.schema)
        return made

    @cached_property
    def right(self) -> Schema | None:
        """Returns the schema with a right text wherever a format is asked; None where there is none."""
        return with_right_texts(self.schema, self.draft)

    @cached_property
    def _has_alternatives(self) -> bool:
        """Has the schema subschemas of which only some may apply?"""
        return any(not ALTERNATIVES.isdisjoint(node) for _, node in object_subschemas(self.schema))

    def stages(self) -> Iterator[_Maker]:
        """Yields the makers that are asked, one after the other. Where the schema itself has no automaton,
        the first leaves keywords out, and the second has fewer items for arrays with `uniqueItems`."""
        if self._has_automaton():
            yield self
            return
        lenient = (replace(self, without=keywords) for keywords in LEFT_OUT)
        yield from islice((maker for maker in lenient if maker._has_automaton()), 1)
        stricter = self._with_few_items()
        if stricter.schema is not self.schema and stricter._has_automaton():
            yield stricter

    def found(self, wanted: Difference, contents: list[bytes]) -> bytes | None:
        """Returns the first of the documents that is already what is wanted, or a new one; None if none is
        found. The given ones are all valid, or none is, as is wanted.

        A document that breaks a keyword has, if such a one is found, the format wherever one is asked for,
        also where formats are annotations: a backend that asserts them would refuse another one for these,
        whatever it makes of the keyword.
        """
        both = self._readings()
        if wanted.valid or len(both) == 1:
            return self._found(wanted, contents, self.made(wanted, both), (self.asserts_formats,))
        right = with_right_texts(wanted.taken, self.draft)
        made = self.made(wanted, (True,)) if right is None else self.made(wanted, (False,), right)
        return self._found(wanted, contents, made, both) or self._found(
            wanted, contents, self.made(wanted, (False,)), (False,)
        )

    def _found(
        self, wanted: Difference, contents: list[bytes], made: Iterator[bytes], differing: Readings
    ) -> bytes | None:
        """Returns such a document, one of those that there are or else one that is made, that differs in what
        is wanted by these readings."""
        for content in contents:
            if all(
                self._takes(wanted.refused_text, content, formats) is False
                and self._takes(wanted.taken_text, content, formats)
                for formats in differing
            ):
                return content
        return next((content for content in made if self.is_judged(wanted, content, differing)), None)

    def is_judged(self, wanted: Difference, content: bytes, differing: Readings) -> bool:
        """Do both validators judge the document as wanted, and see what it differs in by these readings?
        Where the second one has no answer, the first and the automaton do. Where formats are annotations,
        they do so with formats asserted too, because there are backends that assert them."""
        grammar = Grammar("json_schema", self.text)
        try:
            agree = all(
                is_valid(grammar, content, draft=self.draft, assert_formats=formats) == wanted.valid
                and second_verdict(self.text, content, self.draft, formats)[0] in (wanted.valid, None)
                for formats in self._readings()
            )
        except Unjudgeable:
            return False
        return agree and all(
            self._takes(wanted.taken_text, content, formats) is not False
            and self._takes(wanted.refused_text, content, formats) is not True
            for formats in differing
        )

    def made(self, wanted: Difference, readings: Readings, taken: Schema | None = None) -> Iterator[bytes]:
        """Yields for each reading, when it is asked for, a short document that the one schema takes by it and
        the other refuses; `taken` stands in for the one where it is given."""
        resources = {"taken": wanted.taken if taken is None else taken, "refused": wanted.refused}
        demands: list[Schema] = [{"$ref": f"{URN}taken"}, {"not": {"$ref": f"{URN}refused"}}]
        if wanted.valid and self.plain is not self.schema:
            # Whoever writes such a constant in another way is right too, and would be said to refuse it.
            resources["plain"] = self.plain
            demands.append({"$ref": f"{URN}plain"})
        for formats in readings:
            # A copy would have to look through the schema for alternatives again.
            maker = self if formats == self.asserts_formats else replace(self, asserts_formats=formats)
            # What only the schema takes, and not the variant that asks less, has names of an alternative that
            # does not apply. Where these stand between those of the one that does, no backend writes it.
            content = maker._short(resources, demands, agrees=wanted.is_reverse)
            if content is not None:
                yield content

    def _readings(self) -> Readings:
        """Returns whether formats are asserted: as the case has it, and, where they are annotations and the
        schema may have some, with them asserted too."""
        annotated = not self.asserts_formats and "format" in self.text
        return (False, True) if annotated else (self.asserts_formats,)

    def _takes(self, schema_text: str, content: bytes, formats: bool) -> bool | None:
        """Does a schema take the document, with formats asserted or not? None if the second validator, the
        fast one, cannot say."""
        return second_verdict(schema_text, content, self.draft, formats)[0]

    def _has_automaton(self) -> bool:
        try:
            json_schema_automaton(json_text(self.schema), self.draft, self.asserts_formats, self.without)
        except NoOracle:
            return False
        return True

    def _with_few_items(self) -> _Maker:
        """Returns a maker whose arrays with `uniqueItems` take a few values only, so that an automaton can
        follow which of them there were."""
        stricter = self.schema
        for path, node in subschemas(self.schema):
            if not isinstance(node, dict) or node.get("uniqueItems") is not True:
                continue
            items = node.get("items", {})
            values: list[Any] = [0, 1, 2, 3]
            if isinstance(items, dict) and items:
                least = node.get("minItems")
                values = self._values(
                    pointer((*path, "items")), least if isinstance(least, int | float) else 0
                )
            if isinstance(items, dict) and values:
                stricter = put(stricter, (*path, "items"), {"enum": values})
        return replace(self, schema=stricter)

    def _values(self, place: str, least: float) -> list[Any]:
        """Returns a few values that the subschema at a JSON Pointer takes. They have the format wherever one
        is asked for, if there are two of these and as many as the array has at least."""
        sources = [(self, self.schema)]
        if "format" in self.text:
            sources.insert(0, (replace(self, asserts_formats=True), self.schema))
            sources[:0] = [] if self.right is None else [(self, self.right)]
        values: list[Any] = []
        for maker, schema in sources:
            values = maker._values_by(schema, place)
            if len(values) >= max(2, least):
                break
        return values

    def _values_by(self, schema: Schema, place: str) -> list[Any]:
        """Returns a few values that the subschema of this schema takes."""
        values: list[Any] = []
        while len(values) < FEW_ITEMS:
            others = [{"not": {"enum": values}}] if values else []
            text = self._short({"taken": schema}, [{"$ref": f"{URN}taken#{place}"}, *others])
            if text is None:
                break
            values.append(json.loads(text))
        return values

    def _short(
        self, resources: dict[str, Schema], demands: list[Schema], *, agrees: bool = False
    ) -> bytes | None:
        """Returns a short document that satisfies all demands, which may refer to the resources; None if none
        is found. Its names come in the order of the alternative that applies, if there is such a one; if
        there is none, `agrees` refuses the document."""
        text = compound(resources, demands, self.draft)
        try:
            documents = self._documents(text, SPACED)
            content = short_completion(documents, documents.start)
        except NoOracle:
            return None
        if content is None or not self._has_alternatives:
            return content
        try:
            agreeing = self._documents(text, AGREEING)
            if agreeing.accepts(content):
                return content
            return short_completion(agreeing, agreeing.start) or (None if agrees else content)
        except NoOracle:
            return content

    def _documents(self, text: str, layout: Layout) -> Automaton[Any]:
        """Returns the automaton of a schema's documents in a layout. Raises NoOracle."""
        return json_schema_automaton(
            text,
            self.draft,
            self.asserts_formats,
            self.without,
            seconds=SEARCH_SECONDS,
            layout=layout,
        )
