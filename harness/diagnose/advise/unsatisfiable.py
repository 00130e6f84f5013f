"""Finds the schemas that no document fits: a backend that refuses one is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from time import process_time

from harness.cases.case import Case
from harness.cases.rewrites.half_pairs import half_a_pair_matters
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.language import documents_of
from harness.text import counted

SECONDS = 20.0
"""Processor time after which no further case is looked at."""


def unsatisfiable_of(cases: Sequence[tuple[str, Case]], say: Callable[[str], None]) -> list[tuple[str, Case]]:
    """Returns those of the cases, with their suites, that no document fits, as far as the time allows."""
    asked = [pair for pair in cases if _is_asked(pair[1])]
    if asked:
        say(f"looking for schemas that no document fits, in {counted(len(asked), 'case')} ...")
    began, found = process_time(), []
    for number, pair in enumerate(asked):
        if process_time() - began >= SECONDS:
            left = counted(len(asked) - number, "more case")
            say(f"{left} not looked at for whether a document fits: the {SECONDS:g} s for this are up")
            break
        if _is_unsatisfiable(pair[1]):
            found.append(pair)
    return found


def _is_asked(case: Case) -> bool:
    """Is the case a JSON Schema of which no valid document is known?"""
    return case.grammar.dialect == "json_schema" and not any(instance.valid for instance in case.instances)


def _is_unsatisfiable(case: Case) -> bool:
    """Has the reference automaton no document of the JSON Schema, and is there none that it cannot have?"""
    text = case.grammar.text
    try:
        if documents_of(text, case.draft, case.asserts_formats).start != DEAD:
            return False
    except NoOracle:
        return False
    return not half_a_pair_matters(json.loads(text))
