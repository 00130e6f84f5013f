"""The generator as its callers ask it: in a process of its own, with a deadline."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Self

from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.cases.case import Case, Instance

DEADLINE = 30.0
"""Seconds after which a schema has no documents; mostly a limit of processor time ends them before."""
MEMORY_BYTES = 4 << 30


class Generator:
    """Instances for schemas without any. The process starts with the first question; what takes too long
    loses its child only."""

    def __init__(self, deadline: float = DEADLINE) -> None:
        self.deadline = deadline
        self._service = Service("harness.cases.generated.handler:open_generator", memory_bytes=MEMORY_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process, if there is one."""
        self._service.close()

    def with_instances(self, case: Case) -> Case:
        """Returns the case with the documents that were made for it as its instances; a case that has
        instances, or is no JSON Schema, as it is."""
        if case.instances or case.grammar.dialect != "json_schema":
            return case
        question = {"draft": case.draft, "asserts_formats": case.asserts_formats}
        try:
            content = case.grammar.text.encode("utf-8")
            self._service.wait()
            answer, _ = self._service.ask(question, content, seconds=self.deadline)
        except (Lost, UnicodeEncodeError):
            return case
        instances = tuple(
            Instance(
                document["name"],
                base64.b64decode(document["content"]),
                document["valid"],
                made_for=tuple(document["pointers"]),
            )
            for document in answer["documents"]
        )
        return replace(case, instances=instances)
