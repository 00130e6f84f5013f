"""Writes the suite of keywords: `python -m harness.cases.keywords.generate > suites/keywords.jsonl`.

Each case has valid instances, and forbidden ones that are forbidden by one keyword: with it the schema
forbids them, without it not. The judge says so of every instance that is written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from random import Random
from typing import Any

from harness.backend.grammar import Grammar
from harness.cases.case import json_text
from harness.cases.keywords.pairs import pairs
from harness.cases.keywords.singles import places, singles
from harness.cases.keywords.spec import Spec, without
from harness.cases.keywords.values import candidate
from harness.oracle.judge import is_valid

VERSION = "1"
DESCRIPTION = (
    "Each keyword of JSON Schema, and each pair that interacts: instances that one keyword alone forbids, "
    "and valid ones beside them"
)
SEED = "keywords 1"

VALID, FORBIDDEN = 3, 2
"""Most valid and most forbidden instances of a case."""

ROUND, ROUNDS = 60, 15
"""The candidates in a round, and how many rounds are tried for a case before it is given up."""

LOOK_AT, LONGEST = 12, 48
"""How many of the shortest candidates are compared for a case, and the most characters of a candidate that is
taken if there are others."""


class NoInstance(Exception):
    """No candidate shows that the keyword decides anything."""


@dataclass
class Candidates:
    """Candidates as texts, grouped by the judge's verdict."""

    valid: dict[str, Any] = field(default_factory=dict)
    forbidden: dict[str, Any] = field(default_factory=dict)
    """The forbidden ones that the keyword decides with and without the other keyword of the pair."""
    leaning: dict[str, Any] = field(default_factory=dict)
    """The forbidden ones that the keyword decides only beside the other keyword of the pair."""


def suite_text() -> str:
    """Returns the content of the suite's file."""
    header = {"suite": "keywords", "version": VERSION, "description": DESCRIPTION}
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [header, *map(case_of, specs())])


def specs() -> Iterator[Spec]:
    """Yields what the cases are about, in the suite's order."""
    yield from singles()
    yield from pairs()
    yield from places()


def case_of(spec: Spec) -> dict[str, Any]:
    """Returns the case as a line of a suite. Raises NoInstance."""
    candidates = find_candidates(spec)
    random = Random(f"{SEED} choice {spec.name}")
    valid, forbidden = candidates.valid, candidates.forbidden or candidates.leaning
    wrong = _beside(forbidden, valid, FORBIDDEN, random)
    right = _beside(valid, {text: forbidden[text] for text in wrong}, VALID, random)
    tests = [{"description": _short(text), "data": valid[text], "valid": True} for text in right]
    tests += [
        {
            "description": f"only {spec.decides} forbids {_short(text)}",
            "data": forbidden[text],
            "valid": False,
        }
        for text in wrong
    ]
    case = {"description": spec.name, "schema": spec.schema, "tests": tests, "tags": spec.tags}
    return case | ({"options": spec.options} if spec.options else {})


def find_candidates(spec: Spec) -> Candidates:
    """Draws candidates until there are enough of each kind. Raises NoInstance."""
    random = Random(f"{SEED} {spec.name}")
    candidates, drawn = Candidates(), set[str]()
    whole, free = _grammar(spec.schema), _grammar(without(spec.schema, spec.path, spec.decides))
    single = _grammar(without(spec.schema, spec.path, spec.beside)) if spec.beside else None
    declared = list(_declarations(spec.schema))
    for _ in range(ROUNDS):
        for _ in range(ROUND):
            value = candidate(spec.schema, random)
            text = json_text(value)
            if text not in drawn and _has_an_order(value, declared):
                drawn.add(text)
                if _allows(whole, text, spec):
                    candidates.valid[text] = value
                elif _allows(free, text, spec):
                    alone = single is None or not _allows(single, text, spec)
                    (candidates.forbidden if alone else candidates.leaning)[text] = value
        if len(candidates.valid) >= VALID and len(candidates.forbidden) >= FORBIDDEN:
            return candidates
    if candidates.valid and (candidates.forbidden or candidates.leaning):
        return candidates
    raise NoInstance(
        f"{spec.name}: {len(candidates.valid)} valid, {len(candidates.forbidden)} forbidden of {len(drawn)} "
        "candidates"
    )


def _declarations(schema: Any) -> Iterator[set[str]]:
    """Yields the names of every `properties` in the schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield set(schema["properties"])
        for subschema in schema.values():
            yield from _declarations(subschema)
    elif isinstance(schema, list):
        for subschema in schema:
            yield from _declarations(subschema)


def _has_an_order(value: Any, declared: list[set[str]]) -> bool:
    """Is one `properties` enough to determine the order of the names? Backends that fix the order document
    that; what they do with names from several places they do not document, and it concerns no keyword."""
    if not isinstance(value, dict):
        return True
    names = set(value) & set().union(*declared)
    return not names or any(names <= declaration for declaration in declared)


def _grammar(schema: Any) -> Grammar:
    return Grammar("json_schema", json_text(schema))


def _allows(grammar: Grammar, text: str, spec: Spec) -> bool:
    formats = spec.options.get("format") == "assert"
    return is_valid(grammar, text.encode(), draft=spec.options.get("draft"), assert_formats=formats)


def _beside(texts: dict[str, Any], others: dict[str, Any], count: int, random: Random) -> list[str]:
    """Returns the text that is most like one of the others, so that little but the verdict differs; a long
    one; and some of the shortest."""
    near = sorted(others, key=_size)[:LOOK_AT]
    fit = [text for text in sorted(texts, key=_size) if len(text) <= LONGEST] or [min(texts, key=_size)]
    few = fit[:LOOK_AT]
    chosen = [
        max(few, key=lambda text: max(_likeness(texts[text], text, others[other], other) for other in near))
    ]
    for among in [fit[-LOOK_AT:]] * (count > 2) + [few] * count:
        rest = [text for text in among if text not in chosen]
        if rest and len(chosen) < count:
            chosen.append(random.choice(rest))
    return sorted(chosen, key=_size)


def _likeness(value: Any, text: str, other_value: Any, other: str) -> float:
    return SequenceMatcher(None, text, other).ratio() - (type(value) is not type(other_value))


def _size(text: str) -> tuple[int, str]:
    return len(text), text


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


if __name__ == "__main__":
    print(suite_text(), end="")
