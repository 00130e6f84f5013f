"""Rewrites as their callers ask for them: from a process of its own, with a deadline."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.cases.case import Case
from harness.cases.rewrites.candidates import with_schema

DEADLINE = 10.0
"""Seconds after which a case has no rewrites; mostly a limit of processor time ends the search before."""
MEMORY_BYTES = 4 << 30


@dataclass(frozen=True)
class Rewritten:
    """A case whose schema is written in another way and takes the same documents."""

    sentences: tuple[str, ...]
    """What a person has to write instead, and what to mind."""
    case: Case
    """The case with its new grammar, as a `Candidate` has it."""


class Rewriter:
    """Proven rewrites of cases. The process starts with the first question; a schema that takes too long,
    takes too much memory or nests too deeply loses its child only, and has no rewrites."""

    def __init__(self, deadline: float = DEADLINE) -> None:
        self.deadline = deadline
        self._service = Service("harness.cases.rewrites.handler:open_rewriter", memory_bytes=MEMORY_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._service.close()

    def rewrites_of(
        self, case: Case, at_fault: Collection[str], seconds: float, most: int
    ) -> list[Rewritten]:
        """Returns the first of the `candidates` of a case that has a JSON Schema, at most so many, found
        within so many seconds of processor time."""
        question = {"options": case.options, "at_fault": list(at_fault), "seconds": seconds, "most": most}
        try:
            content = case.grammar.text.encode("utf-8")
            self._service.wait()
            answer, _ = self._service.ask(question, content, seconds=self.deadline)
        except (Lost, UnicodeEncodeError):
            return []
        return [
            Rewritten(tuple(one["sentences"]), with_schema(case, one["schema"])) for one in answer["written"]
        ]
