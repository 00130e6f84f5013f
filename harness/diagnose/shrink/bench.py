"""The backend as the shrinker asks it: a question, and an answer in time, whatever becomes of the backend."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from harness.backend.layout import Layout
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.diagnose.shrink.edits import Candidate
from harness.diagnose.shrink.fault import Fault
from harness.diagnose.shrink.service import Loads
from harness.errors import BadInput
from harness.running.endings import FORGED, status_of_loss
from harness.walk.replay import PHASES
from harness.walk.watched import OURS

LOAD_SECONDS = 120.0
"""The time for loading the backend's library, or the backend with the run's own vocabulary."""

ASIDE_SECONDS = 10.0
"""The time for a question that is no trial."""


class Bench:
    """Trials of one fault's backend. A process of each kind starts with the first question for it, and forks
    a child for each question."""

    def __init__(self, fault: Fault, python: str = sys.executable) -> None:
        self._fault = fault
        self._python = python
        self._services: dict[Loads, Service] = {}
        self.tried = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, and with them their children."""
        for service in self._services.values():
            service.close()
        self._services.clear()

    def try_(self, candidate: Candidate, valid: bool | None, deadline: float) -> dict[str, Any]:
        """Returns what the backend makes of the candidate. The deadline, in seconds, is that of the whole
        trial; where the calls of a walk took too long together, that of these, of which none may be late."""
        self.tried += 1
        fault = self._fault
        seconds = deadline + fault.timeout_s if fault.is_slow_walk else deadline
        most_ns = deadline * 1e9 if fault.is_slow_walk else None
        return self._ask("check" if fault.check else "walk", candidate, seconds, valid=valid, most_ns=most_ns)

    def script(self, candidate: Candidate) -> tuple[str, str]:
        """Returns the adapter's lines for its grammar (empty if there are none), and its library with the
        version."""
        answer = self._ask("script", candidate, ASIDE_SECONDS)
        return str(answer.get("script", "")), str(answer.get("library", ""))

    def tokens(self, candidate: Candidate, walk: Sequence[int] = ()) -> list[str] | None:
        """Returns these tokens of the candidate's vocabulary, by default its instance's and the end, as hex;
        None if they cannot be told."""
        answer = self._ask("tokens", candidate, ASIDE_SECONDS, tokens=list(walk))
        spelling: list[str] | None = answer.get("walk")
        return spelling

    def steps(self, candidate: Candidate, walk: Sequence[str]) -> list[list[bool]] | None:
        """Returns what becomes of these tokens: allowed, accepted, up to the first refusal; None if the
        backend does not say."""
        steps: list[list[bool]] | None = self._ask("steps", candidate, ASIDE_SECONDS, walk=list(walk)).get(
            "steps"
        )
        return steps

    def layout(self, candidate: Candidate) -> Layout | None:
        """Returns the layout in which the backend says that it writes JSON; None if it says nothing of it."""
        layout: dict[str, Any] | None = self._ask("layout", candidate, ASIDE_SECONDS).get("layout")
        return None if layout is None else Layout.from_json(layout)

    def _ask(self, kind: str, candidate: Candidate, deadline: float, **more: Any) -> dict[str, Any]:
        question = {
            "kind": kind,
            "dialect": candidate.grammar.dialect,
            "grammar": candidate.grammar.text,
            "content": None if candidate.content is None else candidate.content.hex(),
            "words": None if candidate.words is None else [word.hex() for word in candidate.words],
            "check": self._fault.check,
            "outcome": vars(self._fault.outcome),
            "options": self._fault.options,
            **more,
        }
        service = self._service(
            "library" if candidate.words is not None else "vocabulary" if kind == "tokens" else "backend"
        )
        assert service.page is not None
        service.page[0] = -1
        try:
            return service.ask(question, seconds=deadline)[0]
        except Lost as lost:
            return _answer_of_lost(lost, service.page[0], deadline)
        finally:
            service.renew()

    def _service(self, loads: Loads) -> Service:
        """Returns the process that has loaded this. Raises BadInput if that is not to be had."""
        fault = self._fault
        if loads not in self._services:
            arguments = {"spec": fault.spec, "vocabulary": fault.vocabulary, "loads": loads}
            self._services[loads] = Service(
                "harness.diagnose.shrink.service:open_shrinking",
                arguments,
                fault.memory_bytes,
                self._python,
                load_seconds=LOAD_SECONDS,
                has_page=True,
            )
        try:
            self._services[loads].wait()
        except (BadInput, Lost) as error:
            raise BadInput(f"{fault.spec} cannot be loaded to shrink this: {error}") from error
        return self._services[loads]


def _answer_of_lost(lost: Lost, phase_number: int, deadline: float) -> dict[str, Any]:
    """Returns the answer for a candidate with which the child was lost, in the phase of this number."""
    phase = PHASES[phase_number] if 0 <= phase_number < len(PHASES) else ""
    status = status_of_loss(lost, is_ours=phase in ("", *OURS))
    if lost.cause == "forged":
        return {"status": status, "phase": "answer", "text": FORGED}
    text = f"no end within {deadline:g} s" if lost.cause == "timeout" else lost.text
    return {"status": status, "phase": phase, "signal": lost.signal, "text": text}
