"""The judge as its callers ask it: in a process of its own, with a deadline."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

from harness.backend.grammar import Grammar
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.oracle.judge.membership import Membership

START_SECONDS = 60.0
MEMORY_BYTES = 8 << 30
"""The resident memory that a question may take."""


class Judge:
    """Verdicts that cost at most `deadline` seconds each. The process starts with the first question; what
    takes too long loses its child only, and the next question has another one.

    For one caller at a time. `reason` says why the last verdict was None, and is empty otherwise.
    """

    def __init__(self, deadline: float = 10.0) -> None:
        self.deadline = deadline
        self.reason = ""
        self._service = Service(
            "harness.oracle.judge.handler:open_judge", memory_bytes=MEMORY_BYTES, load_seconds=START_SECONDS
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def verdict(
        self, grammar: Grammar, content: bytes, *, draft: str | None = None, assert_formats: bool = False
    ) -> bool | None:
        """Returns the answer of `is_valid`, or None with a `reason` where there is no verdict in time."""
        answer = self._answer("verdict", grammar, content, draft=draft, assert_formats=assert_formats)
        valid: bool | None = answer["found"]
        return valid

    def second(
        self, grammar: Grammar, content: bytes, *, draft: str | None = None, assert_formats: bool = False
    ) -> tuple[bool | None, str]:
        """Returns the answer of `second_verdict` for a JSON Schema's document: whether it is valid, and the
        violated keyword. The answer is None and no keyword where there is none in time."""
        answer = self._answer("second", grammar, content, draft=draft, assert_formats=assert_formats)
        return answer["found"], answer.get("keyword", "")

    def violated(self, grammar: Grammar, content: bytes, *, draft: str | None, assert_formats: bool) -> str:
        """Returns the answer of `violated_constraint` for a JSON Schema's document: the place and the keyword
        that it violates, empty where there is none, or no answer in time."""
        answer = self._answer("violated", grammar, content, draft=draft, assert_formats=assert_formats)
        return str(answer["found"] or "")

    def membership(self, grammar: Grammar, content: bytes) -> Membership | None:
        """Returns the answer of `harness.oracle.judge.membership`, or None with a `reason`: is it a sentence,
        the beginning of one, or neither?"""
        membership: Membership | None = self._answer("membership", grammar, content)["found"]
        return membership

    def readings_against(
        self, grammar: Grammar, content: bytes, valid: bool, unicode: Collection[str]
    ) -> tuple[str, ...]:
        """Returns the readings (`harness.oracle.readings`) by which an output is not as valid as is
        said; none if that takes too long."""
        answer = self._answer("readings", grammar, content, valid=valid, unicode=sorted(unicode))
        return tuple(answer["found"] or ())

    def close(self) -> None:
        """End the process; a later question starts another."""
        self._service.close()

    def _answer(self, asks: str, grammar: Grammar, content: bytes, **options: Any) -> dict[str, Any]:
        """Returns the handler's answer, and keeps its `reason`; `found` is None where no answer came."""
        question = {"asks": asks, "dialect": grammar.dialect, "text": grammar.text, **options}
        try:
            self._service.wait()
            answer, _ = self._service.ask(question, content, seconds=self.deadline)
        except Lost as lost:
            answer = {"found": None, "reason": self._reason_of_loss(lost)}
        self.reason = answer["reason"]
        return answer

    def _reason_of_loss(self, lost: Lost) -> str:
        if lost.cause == "load":
            return f"the judge did not start: {lost}"
        if lost.cause == "timeout":
            return f"out of time after {self.deadline:g} s"
        return "out of memory" if lost.cause == "oom" else f"the judge died ({lost})"
