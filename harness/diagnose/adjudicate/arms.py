"""Questions to the arms of one case; an arm that gives no answer leaves the case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.backend.layout import Layout
from harness.backend.process.child import Answer
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service, ask_all
from harness.diagnose.adjudicate.witness import Summary

MOST_BYTES = 20_000
"""Most bytes of a document; longer ones are left out."""


@dataclass(eq=False)
class Arms:
    """The services of the arms that are still in the case, by name."""

    case: str
    """The case's name."""
    services: dict[str, Service]
    timeout_s: float
    """The seconds that one answer may take."""
    summary: Summary
    layouts: dict[str, Layout | None] = field(init=False)
    """How each arm writes JSON, by its own word; None of an arm that says nothing."""
    documented: dict[str, list[str]] = field(init=False)
    """The causes that each arm documents."""

    def __post_init__(self) -> None:
        said = {name: service.description for name, service in self.services.items()}
        self.documented = {name: description["documented"] for name, description in said.items()}
        self.layouts = {
            name: Layout.from_json(description["layout"]) if description["layout"] is not None else None
            for name, description in said.items()
        }

    @property
    def names(self) -> list[str]:
        """Returns the names of the arms that are left."""
        return list(self.services)

    def compile(self, offset: int, seconds: float) -> None:
        """Lets all arms compile the case that begins at `offset`; those that decline it leave."""
        for name, (answer, _) in self.ask({"op": "compile", "offset": offset}, seconds=seconds).items():
            if "declined" in answer:
                del self.services[name]

    def ask(
        self,
        message: dict[str, Any],
        blob: bytes = b"",
        names: Sequence[str] | None = None,
        seconds: float | None = None,
    ) -> dict[str, Answer]:
        """Returns the answers of these arms (by default all); those that give none leave."""
        asked = {
            name: self.services[name]
            for name in (self.names if names is None else names)
            if name in self.services
        }
        answers: dict[str, Answer] = {}
        for name, answer in ask_all(asked, message, blob, seconds=seconds or self.timeout_s).items():
            if isinstance(answer, Lost):
                del self.services[name]
                self.summary.lose(name, f"{self.case}: {name} in {message['op']}: {answer}")
            else:
                answers[name] = answer
        return answers

    def complete(self, name: str, tokens: list[int], seed: str, soft: int) -> bytes | None:
        """Returns a document that the arm makes of the tokens, if its walk comes to an end."""
        message = {"op": "complete", "tokens": tokens, "seed": seed, "soft": soft}
        for answer, document in self.ask(message, names=[name]).values():
            if answer["end"] == "ended" and len(document) <= MOST_BYTES:
                return document
            self.summary.unfinished += 1
            self.summary.dead_ends[name] += answer["end"] in ("dead_end", "trapped")
        return None

    def accepts(self, name: str, text: bytes, by_byte: bool = False) -> bool:
        """Does the arm accept the whole text, in its canonical tokens or byte by byte?"""
        answers = self.ask({"op": "replay", "by_byte": by_byte}, text, names=[name])
        return any(answer["refused_at"] is None for answer, _ in answers.values())
