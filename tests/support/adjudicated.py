"""Adjudications of one case, which miniatures have compiled."""

from __future__ import annotations

import json
from pathlib import Path

import synthetic
from miniatures.wrong_walks import READING

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance, case_id
from harness.diagnose.adjudicate import WITNESSES, Settings, Summary, adjudicate

SCHEMA = Grammar("json_schema", json.dumps(READING))
GOOD = (Instance("good", b'{"n": 1, "s": "x"}', True),)


def a_run(
    folder: Path,
    *names: str,
    vocabulary: str = "bytes",
    instances: tuple[Instance, ...] = GOOD,
    grammar: Grammar = SCHEMA,
    accepted_invalid: tuple[int, ...] = (),
) -> Path:
    """A run in which every one of these miniatures compiled the one case, and accepted these invalid
    instances; those of `wrong_walks` are named without their module."""
    case = Case(case_id(grammar), "the case", grammar, instances)
    modules = [name if ":" in name else f"wrong_walks:{name}" for name in names]
    arms = tuple(Arm(f"miniatures.{module}", "", "", "", ("json_schema",), "bitmask") for module in modules)
    header = synthetic.info(arms, vocabularies={vocabulary: {"size": 257, "sha256": ""}})
    rows = [
        synthetic.row(
            backend=each.backend, backend_version="", vocabulary=vocabulary, case_id=case.id, **fields
        )
        for each in arms
        for fields in [{}, *({"instance": place, "valid": False} for place in accepted_invalid)]
    ]
    return synthetic.write_run(folder, [[(row, b"")] for row in rows], header, [("first", case)])


def judged(
    folder: Path, *, timeout_s: float = 20.0, tries: int = 2, positions: int | None = 4, formats: bool = False
) -> tuple[Summary, list[dict[str, object]]]:
    settings = Settings(positions=positions, tries=tries, timeout_s=timeout_s, formats=formats)
    summary = adjudicate(folder, settings, lambda _: None)
    return summary, [json.loads(line) for line in (folder / WITNESSES).read_text().splitlines()]


def guilty(witnesses: list[dict[str, object]]) -> set[tuple[str, str, str]]:
    return {(str(each["arm"]).partition(":")[2], str(each["kind"]), str(each["cause"])) for each in witnesses}
