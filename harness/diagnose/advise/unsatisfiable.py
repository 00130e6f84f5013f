"""Which schemas no document fits: a backend that refuses such a schema is right."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

from harness.cases.case import Case
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.language import documents_of

SECONDS = 20.0
"""Processor time after which no further case is looked at."""


def unsatisfiable_of(cases: Sequence[tuple[str, Case]]) -> list[tuple[str, Case]]:
    """Returns those of the cases, with their suites, that no document fits, as far as the time allows."""
    began = process_time()
    return [pair for pair in cases if process_time() - began < SECONDS and _is_unsatisfiable(pair[1])]


def _is_unsatisfiable(case: Case) -> bool:
    """Is the case a JSON Schema of which the reference automaton has no document, and no valid one is
    known?"""
    if case.grammar.dialect != "json_schema" or any(instance.valid for instance in case.instances):
        return False
    try:
        return documents_of(case.grammar.text, case.draft, case.asserts_formats).start == DEAD
    except NoOracle:
        return False
