"""What runs in the judge's process: it answers the questions that a `Judge` asks."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.process.child import Answer, Handler
from harness.oracle.judge.membership import membership
from harness.oracle.judge.second import second_verdict, violated_constraint
from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.oracle.judge.verdict import is_valid
from harness.oracle.readings import readings_against

DEEPEST = 20_000
"""The depth of Python calls at which a question nests too deeply."""
STACK_BYTES = 512 << 20
"""The stack of the thread that judges, which has room for so many calls."""


def open_judge() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that judges an instance, the bytes behind the question."""
    sys.setrecursionlimit(DEEPEST)
    threading.stack_size(STACK_BYTES)
    for grammar in (Grammar("json_schema", "{}"), Grammar("regex", ".")):
        is_valid(grammar, b"0")  # imports what it needs before there are children
    deep = ThreadPoolExecutor(1)  # its thread starts with the first question, in the child that has it

    def answer(question: dict[str, Any], content: bytes) -> Answer:
        return deep.submit(_answer, question, content).result(), b""

    return answer, {}


def _answer(question: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Returns what was `found`, None if there is no answer, and the `reason` why there is none.

    What the second validator says has the violated `keyword` too, which is empty for a valid document.
    """
    grammar, asks = Grammar(question["dialect"], question["text"]), question["asks"]
    try:
        if asks == "membership":
            return {"found": membership(grammar, content), "reason": ""}
        if asks == "readings":
            readings = list(readings_against(grammar, content, question["valid"], question["unicode"]))
            return {"found": readings, "reason": ""}
        draft, assert_formats = question["draft"], question["assert_formats"]
        if asks == "violated":
            return {
                "found": violated_constraint(grammar.text, content, draft, assert_formats),
                "reason": "",
            }
        if asks == "second":
            valid, keyword = second_verdict(grammar.text, content, draft, assert_formats)
            why = "the second validator has no answer" if valid is None else ""
            return {"found": valid, "reason": why, "keyword": keyword}
        return {
            "found": is_valid(grammar, content, draft=draft, assert_formats=assert_formats),
            "reason": "",
        }
    except Unjudgeable as error:
        return {"found": None, "reason": str(error)}
    except MemoryError:
        return {"found": None, "reason": "out of memory"}
