"""Cases that fail, and the rows that say so."""

from __future__ import annotations

from functools import partial
from typing import Any

import synthetic

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.diagnose import repro
from harness.diagnose.repro import Failure
from harness.rows.row import Finding, Row

find_failure = partial(repro.find_failure, say=print)
"""What finds a failure for the tests; pytest keeps what it says of environments."""

OUTLINES = Arm("outlines-core", "0.2.14", "", "outlines-core", ("json_schema", "regex", "choice"), "bitmask")


STAR = Grammar("regex", "([a-z]{2,5}:|zzz[0-9]+)+(ab)*")


QUOTED = Grammar("regex", '("[^"]*)*')


BOOM = Grammar("regex", "(boom|x)[0-9]+")


QUOTE = b'"\xe6\x97\xa5'
"""One token of `probe`: a quote and a character."""


def case(name: str, grammar: Grammar, *instances: Instance) -> Case:
    return Case(case_id(grammar), name, grammar, instances)


CASES = [
    case("star", STAR, Instance("one", b"hello:", True), Instance("two", b"hello:abab", True)),
    case("quoted", QUOTED, Instance("a character", QUOTE + b'"', True)),
    case("boom", BOOM, Instance("crash", b"boom1", True)),
]


def failure_with(row: Row, finding: Finding | None = None) -> Failure:
    """Returns the failure of that row on the first instance of the first case."""
    return Failure(row, CASES[0], CASES[0].instances[0], finding, 10.0, 4 << 30)


def row(number: int, arm: Arm, instance: int | None, **fields: Any) -> Row:
    """Returns a row of that case, passed but for what is named."""
    one = CASES[number]
    known = {
        "backend": arm.backend,
        "backend_version": arm.version,
        "suite": "mine",
        "case": one.name,
        "case_id": one.id,
    }
    valid = one.instances[instance].valid if instance is not None else None
    common = known | {
        "dialect": "regex",
        "instance": instance,
        "valid": valid,
        "vocabulary": "probe",
        "accepted": valid,
    }
    return synthetic.row(**(common | fields))


def finding(check: str, text: str, *walk: bytes, **fields: Any) -> Finding:
    """Of a walk of tokens of `probe`; one without bytes is end-of-sequence."""
    vocabulary = load_vocabulary("probe")
    tokens = tuple(vocabulary.ids_by_bytes[byte] if byte else vocabulary.eos_token for byte in walk)
    return Finding(check, len(tokens) - 1, text, instance=0, walk=tokens, **fields)
