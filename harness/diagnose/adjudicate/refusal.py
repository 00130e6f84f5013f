"""Finds why an arm refuses a valid document, by experiments with the arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.diagnose.adjudicate.causes import (
    ESCAPED_NAMES,
    ESCAPES,
    Experiment,
    experiments,
    names_alone,
    place,
)


@dataclass(frozen=True)
class Refusal:
    """A valid document that an arm refuses, and whom to ask about other documents."""

    schema: str
    document: bytes
    accepted: int
    """How many bytes of the document the arm accepts."""
    accepts: Callable[[bytes, bool], bool]
    """Does the arm accept a document: in its canonical tokens, or (True) byte by byte?"""
    is_valid: Callable[[bytes], bool]
    """Do both validators call a document valid?"""

    def cause(self) -> str:
        """Returns what must be taken from the document for the arm to accept it; if nothing is known, where
        it is refused."""
        if self.accepts(self.document, True):
            return "canonical_tokens"
        for experiment in experiments(self.schema, self.document):
            succeeds = self._succeeds(experiment)
            if succeeds and experiment.cause:
                return self._narrowed(experiment.cause)
            if not succeeds and not experiment.cause:
                break
        return place(self.document, self.accepted)

    def _succeeds(self, experiment: Experiment) -> bool:
        """Does the arm accept the document without the cause, and refuse the bare ones with it?"""
        if not any(self.is_valid(text) and self.accepts(text, False) for text in experiment.without):
            return False
        bare = [text for text in experiment.bare if self.is_valid(text)]
        return not experiment.bare or (bool(bare) and not any(self.accepts(text, False) for text in bare))

    def _narrowed(self, cause: str) -> str:
        """Returns the cause, narrowed to escapes in names where escapes are refused there and nowhere
        else."""
        if ESCAPES in cause.split("+") and (respelled := names_alone(self.document)) is not None:
            in_names, in_values = respelled
            if (
                all(map(self.is_valid, respelled))
                and self.accepts(in_values, False)
                and not self.accepts(in_names, False)
            ):
                return "+".join(ESCAPED_NAMES if part == ESCAPES else part for part in cause.split("+"))
        return cause
