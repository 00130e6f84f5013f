"""What runs in the rewriter's process: it looks for the rewrites that a `Rewriter` asks for."""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import islice
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.process.child import Answer, Handler
from harness.cases.case import Case
from harness.cases.rewrites.candidates import Candidate, candidates

DEEPEST = 10_000
"""The depth of Python calls at which a schema nests too deeply."""


def open_rewriter() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that rewrites a schema, which is the bytes behind the question."""
    sys.setrecursionlimit(DEEPEST)
    list(candidates(Case("", "", Grammar("json_schema", '{"const": 1}'))))  # imports what it needs

    def answer(question: dict[str, Any], content: bytes) -> Answer:
        case = Case("", "", Grammar("json_schema", content.decode()), options=question["options"])
        found: list[Candidate] = []
        with suppress(RecursionError):  # what was found before the schema nested too deeply counts
            found.extend(
                islice(candidates(case, question["at_fault"], question["seconds"]), question["most"])
            )
        written = [{"sentences": one.sentences, "schema": one.case.grammar.text} for one in found]
        return {"written": written}, b""

    return answer, {}
