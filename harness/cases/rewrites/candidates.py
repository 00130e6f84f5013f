"""Proven rewrites of a case, from the smallest change to everything that applies."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.backend.grammar import Grammar
from harness.cases.case import Case, case_id, json_text
from harness.cases.rewrites.equivalence import SECONDS as PROOF_SECONDS
from harness.cases.rewrites.equivalence import is_equivalent_to_all
from harness.cases.rewrites.json_values import canonical
from harness.cases.rewrites.rewrite import Place, Rewrite, rewrites, rewrites_at
from harness.cases.subschemas import Path, Schema, at, place_in_words, subschemas_below
from harness.oracle.judge import Unjudgeable
from harness.oracle.judge.drafts import draft_of
from harness.oracle.judge.strict_json import exact_double

SECONDS = 2.0
"""Processor time for all candidates of a case."""
MOST_OF_A_LENGTH = 24
"""Candidates of two rewrites that are yielded, and of three."""
LONGEST = 3
"""Rewrites of one candidate, but for the last, of which everything is rewritten."""
LINE_BREAK = "a validator that reads patterns as Python's `re` lets a line break follow the `$`"
"""What holds of a rewrite that writes a `$` besides what is proven: that is by ECMA-262."""
MOST_GROWTH = 20_000
"""Characters by which a rewrite may make a schema longer."""
HARD = {
    **dict.fromkeys(
        """
        $ref allOf oneOf not if then else dependentRequired dependentSchemas dependencies contains
        minContains maxContains uniqueItems minProperties maxProperties propertyNames unevaluatedItems
        unevaluatedProperties
        """.split(),  # noqa: SIM905
        2,
    ),
    **dict.fromkeys(("patternProperties", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"), 1),
}
"""Keywords that many backends do not know, with weights by which a rewrite is one for the better."""


@dataclass(frozen=True)
class Candidate:
    """A case whose schema is written in another way and takes the same documents."""

    rewrites: tuple[Rewrite, ...]
    """What was changed, one after the other."""
    case: Case
    """The case with its new grammar; its instances are valid as before, but made for no keyword."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Returns what a person has to write, and what to mind."""
        warning = (LINE_BREAK,) if any(rewrite.writes_an_end for rewrite in self.rewrites) else ()
        return (*(rewrite.sentence for rewrite in self.rewrites), *warning)


def candidates(case: Case, at_fault: Collection[str] = (), seconds: float = SECONDS) -> Iterator[Candidate]:
    """Yields proven rewrites of a case: each single one, the smallest first, then some of two and of three,
    and last everything that applies.

    `at_fault` are the keywords that a backend fails at, as JSON Pointers or by name, or as a place in words
    and the keyword (`tags.uniqueItems`): only what concerns them is rewritten. Where that is nothing, or none
    are given, everything is. Nothing is yielded once so many seconds of processor time are over, of another
    dialect than `json_schema`, and of a schema that has no reference.
    """
    if case.grammar.dialect != "json_schema" or (schema := _parsed(case.grammar.text)) is None:
        return
    try:
        draft = draft_of(schema, case.draft)
    except Unjudgeable:
        return
    search = _Search(case, schema, draft, time.process_time() + seconds, set(at_fault))
    if at_fault and not search.knows_what_is_at_fault():
        search.at_fault.clear()
    yield from search.candidates()


class _Search:
    """The candidates of one case."""

    def __init__(self, case: Case, schema: Schema, draft: str, end: float, at_fault: set[str]) -> None:
        self.case = case
        self.schema = schema
        self.draft = draft
        self.at_fault = at_fault
        self._end = end
        self._seen = {canonical(schema)}

    def candidates(self) -> Iterator[Candidate]:
        """Yields the candidates in order."""
        shorter: list[tuple[Rewrite, ...]] = [()]
        for length in range(1, LONGEST + 1):
            found: list[tuple[Rewrite, ...]] = []
            for chain in shorter:
                for step in self._steps(chain):
                    found.append((*chain, step))
                    yield self._candidate(found[-1])
                    if length > 1 and len(found) == MOST_OF_A_LENGTH:
                        break
                if length > 1 and len(found) == MOST_OF_A_LENGTH:
                    break
            shorter = found
        for at_fault in dict.fromkeys((frozenset(self.at_fault), frozenset())):
            self.at_fault = set(at_fault)
            chain = self._everything()
            if len(chain) > 1 and self._is_new(chain[-1].schema):
                yield self._candidate(chain)

    def knows_what_is_at_fault(self) -> bool:
        """Is there a rewrite that changes what is at fault, as far as there is time to look?"""
        for rewrite in rewrites(self.schema, self.draft):
            if self.concerns(rewrite):
                return True
            if time.process_time() > self._end:
                break
        return False

    def concerns(self, rewrite: Rewrite) -> bool:
        """Does it change what is at fault?"""
        if not self.at_fault:
            return True
        where = place_in_words(rewrite.path)
        for keyword in rewrite.keywords:
            name = keyword.rpartition("/")[2]
            named = {name, f"{where}.{name}"} if where != "$" else {name}
            if {*named, keyword, f"{where} > {name}"} & self.at_fault:
                return True
            if name in ("then", "else") and any(
                fault.startswith(f"{place}.") for place in named for fault in self.at_fault
            ):
                return True  # what a branch asks, which is violated where the condition stands
            holds_other_schemas = name == "anyOf" or name in HARD
            if holds_other_schemas and any(fault.startswith(f"{keyword}/") for fault in self.at_fault):
                return True
        return False

    def _steps(self, chain: tuple[Rewrite, ...]) -> Iterator[Rewrite]:
        """Yields the proven rewrites of what a chain has led to, those of another place or keyword than
        before first; of these the ones that leave fewer hard keywords, then those that make the schema
        least longer."""
        schema = chain[-1].schema if chain else self.schema
        touched = {keyword for step in chain for keyword in step.keywords}
        size = len(json_text(schema))
        ranked = []
        for number, rewrite in enumerate(rewrites(schema, self.draft)):
            if time.process_time() > self._end:
                return
            growth = len(json_text(rewrite.schema)) - size
            if growth <= MOST_GROWTH and (self.concerns(rewrite) or self._is_follow_up(rewrite, chain)):
                is_easier = _hardness(at(rewrite.schema, rewrite.path)) < _hardness(at(schema, rewrite.path))
                is_again = not touched.isdisjoint(rewrite.keywords)
                ranked.append((is_again, not is_easier, max(growth, 0), number, rewrite))
        for *_, rewrite in sorted(ranked, key=lambda row: row[:4]):
            if self._is_new(rewrite.schema) and self._is_proven(schema, rewrite):
                yield rewrite

    def _is_follow_up(self, rewrite: Rewrite, chain: tuple[Rewrite, ...]) -> bool:
        """Does it change what the step before has just written?"""
        return bool(chain) and rewrite.path[: len(chain[-1].path)] == chain[-1].path

    def _everything(self) -> tuple[Rewrite, ...]:
        """Returns rewrites from the outermost subschema to the innermost: all that concern what is at fault,
        or all that leave fewer keywords that are hard for backends, where nothing is known to be at fault."""
        chain: list[Rewrite] = []
        schema, seen = self.schema, {canonical(self.schema)}
        waiting: deque[Path] = deque([()])
        while waiting and time.process_time() <= self._end:
            path = waiting.popleft()
            tried: set[str] = set()
            while step := self._next_of_everything(schema, path, tried, seen):
                chain.append(step)
                schema = step.schema
            waiting.extend((*path, *below) for below, _ in subschemas_below(at(schema, path)))
        return tuple(chain)

    def _next_of_everything(
        self, schema: Schema, path: Path, tried: set[str], seen: set[str]
    ) -> Rewrite | None:
        node = at(schema, path)
        if not isinstance(node, dict):
            return None
        for rewrite in rewrites_at(Place(schema, path, node, self.draft)):
            if time.process_time() > self._end:
                return None
            text = canonical(rewrite.schema)
            if (
                rewrite.transformation not in tried
                and text not in seen
                and len(text) - len(canonical(schema)) <= MOST_GROWTH
                and (
                    self.concerns(rewrite)
                    if self.at_fault
                    else _hardness(at(rewrite.schema, path)) < _hardness(node)
                )
                and self._is_proven(schema, rewrite)
            ):
                tried.add(rewrite.transformation)
                seen.add(text)
                return rewrite
        return None

    def _is_new(self, schema: Schema) -> bool:
        text = canonical(schema)
        is_new = text not in self._seen
        self._seen.add(text)
        return is_new

    def _is_proven(self, before: Schema, rewrite: Rewrite) -> bool:
        left = self._end - time.process_time()
        if left <= 0:
            return False
        formats, seconds = self.case.asserts_formats, min(left, PROOF_SECONDS)
        return is_equivalent_to_all(before, rewrite.schema, self.draft, formats, rewrite.path, seconds)

    def _candidate(self, chain: tuple[Rewrite, ...]) -> Candidate:
        return Candidate(chain, with_schema(self.case, json_text(chain[-1].schema)))


def with_schema(case: Case, text: str) -> Case:
    """Returns the case with another schema that takes the same documents."""
    grammar = Grammar("json_schema", text)
    instances = tuple(replace(instance, made_for=()) for instance in case.instances)
    return replace(case, id=case_id(grammar), grammar=grammar, instances=instances)


def _hardness(schema: Schema) -> int:
    """Returns how many keywords a schema has that many backends do not know, with their weights; of
    alternatives, the hardest counts."""
    if not isinstance(schema, dict):
        return 0
    parts = schema.get("anyOf")
    hardest = max(map(_hardness, parts), default=0) if isinstance(parts, list) else 0
    return hardest + sum(HARD.get(keyword, 0) for keyword in schema)


def _parsed(text: str) -> Any:
    """Returns the schema, or None where it cannot be written again as it is."""
    try:
        return json.loads(text, parse_float=exact_double)
    except (ValueError, RecursionError):
        return None
