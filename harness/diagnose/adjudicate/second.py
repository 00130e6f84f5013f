"""Runs the second validator in a service of its own."""

from __future__ import annotations

from typing import Any

from harness.backend.process.child import Answer, Handler
from harness.cases.case import case_at
from harness.oracle.judge.second import second_verdict


def load_second(cases: str) -> tuple[Handler, dict[str, Any]]:
    """A handler that answers whether the document is valid for the case that begins at `offset`, and which
    keyword says that it is not."""

    def answer(message: dict[str, Any], blob: bytes) -> Answer:
        case = case_at(cases, message["offset"])
        valid, keyword = second_verdict(
            case.grammar.text, blob, case.options.get("draft"), message["formats"]
        )
        return {"valid": valid, "keyword": keyword} if keyword else {"valid": valid}, b""

    return answer, {}
