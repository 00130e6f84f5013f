"""The service as the shrinker sees it: a question, and an answer in time, whatever becomes of the backend."""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from harness.backend.process.channel import BrokenChannel, Frames
from harness.backend.process.system import ENVIRONMENT, module
from harness.diagnose.shrink.edits import Candidate
from harness.diagnose.shrink.fault import Fault
from harness.errors import BadInput

LOAD_SECONDS = 120.0
"""For the backend's library, and for the run's own vocabulary the first time that it is wanted."""

ASIDE_SECONDS = 10.0
"""For a question that is no trial."""

GRACE_SECONDS = 5.0
"""For the service to end a candidate that is out of time."""


class Bench:
    """Trials of one fault's backend; the service starts with the first question, and anew when it is lost."""

    def __init__(self, fault: Fault, python: str = sys.executable) -> None:
        self._fault = fault
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._reply = -1
        self._frames = Frames()
        self._has_loaded = False
        self.tried = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the service, and with it the child that it has."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            os.close(self._reply)
        self._frames = Frames()
        self._has_loaded = False

    def try_(self, candidate: Candidate, valid: bool | None, deadline: float) -> dict[str, Any]:
        """What the backend makes of the candidate."""
        self.tried += 1
        return self._ask("check" if self._fault.check else "walk", candidate, deadline, valid=valid)

    def script(self, candidate: Candidate) -> tuple[str, str]:
        """The adapter's lines for its grammar (empty if there are none), and its library with the version."""
        answer = self._ask("script", candidate, ASIDE_SECONDS)
        return str(answer.get("script", "")), str(answer.get("library", ""))

    def tokens(self, candidate: Candidate, walk: Sequence[int] = ()) -> list[str] | None:
        """These tokens of the candidate's vocabulary, by default its instance's and the end, as hex; None if
        they cannot be told."""
        answer = self._ask("tokens", candidate, ASIDE_SECONDS, tokens=list(walk))
        spelling: list[str] | None = answer.get("walk")
        return spelling

    def steps(self, candidate: Candidate, walk: Sequence[str]) -> list[list[bool]] | None:
        """What becomes of these tokens: allowed, accepted, up to the first refusal; None if the backend does
        not say."""
        steps: list[list[bool]] | None = self._ask("steps", candidate, ASIDE_SECONDS, walk=list(walk)).get(
            "steps"
        )
        return steps

    def _ask(self, kind: str, candidate: Candidate, deadline: float, **more: Any) -> dict[str, Any]:
        nonce = secrets.token_hex(8)
        question = {
            "kind": kind,
            "nonce": nonce,
            "dialect": candidate.grammar.dialect,
            "grammar": candidate.grammar.text,
            "content": None if candidate.content is None else candidate.content.hex(),
            "words": None if candidate.words is None else [each.hex() for each in candidate.words],
            "check": self._fault.check,
            "outcome": vars(self._fault.outcome),
            "options": self._fault.options,
            "deadline": deadline,
            "memory_bytes": self._fault.memory_bytes,
            **more,
        }
        if self._process is None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        loads = candidate.words is None and not self._has_loaded
        answer = self._hear(nonce, deadline + GRACE_SECONDS + (LOAD_SECONDS if loads else 0.0))
        self._has_loaded = self._has_loaded or (candidate.words is None and kind != "tokens")
        if answer is None:
            self.close()
            return {"status": "harness_error", "text": "the service was lost"}
        return answer

    def _start(self) -> None:
        read, write = os.pipe()
        self._process = subprocess.Popen(
            [
                *module("harness.diagnose.shrink.service", self._python),
                self._fault.spec,
                self._fault.vocabulary,
                str(write),
                str(os.getpid()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(write,),
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )
        os.close(write)
        self._reply = read
        if self._hear("", LOAD_SECONDS) is None:
            self.close()
            raise BadInput(f"{self._fault.spec} cannot be loaded to shrink this")

    def _hear(self, nonce: str, seconds: float) -> dict[str, Any] | None:
        """The service's answer to this question, or that it is ready; None if none comes."""
        ends = time.monotonic() + seconds
        while select.select([self._reply], [], [], max(0.0, ends - time.monotonic()))[0]:
            data = os.read(self._reply, 1 << 20)
            try:
                for message, _ in self._frames.feed(data):
                    if "failed" in message:
                        raise BadInput(
                            f"{self._fault.spec} cannot be loaded to shrink this: {message['failed']}"
                        )
                    if message.get("nonce", "") == nonce:
                        return message
            except BrokenChannel:
                return None
            if not data:
                return None
        return None
