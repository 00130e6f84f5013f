"""An independent verdict on one instance: is this output in the language of this grammar?

`is_valid` answers here and takes the time that it takes; `Judge` asks a process that can be killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.backend.grammar import Grammar
from harness.oracle.judge.membership import Membership
from harness.oracle.judge.schema import Unjudgeable as Unjudgeable
from harness.oracle.judge.schema import check_schema as check_schema
from harness.oracle.judge.schema import document_is_valid, reason
from harness.oracle.judge.schema import is_json as is_json

_START_SECONDS = 60.0
READY = "ready\n"


def is_valid(
    grammar: Grammar, content: bytes, *, draft: str | None = None, assert_formats: bool = False
) -> bool:
    """Is `content` a complete output of the grammar?

    A JSON Schema is read by its `$schema`, else by `draft` ("draft3" to "draft2020-12"), else by 2020-12; an
    unknown `$schema` counts as absent.  A regex is the `regex` library's, and must match the whole text.
    Raises `Unjudgeable` for the other dialects, a wrong grammar, a reference that leaves the schema, a name
    twice in one object, nesting deeper than Python's stack, and a text that one JSON parser reads and another
    refuses.
    """
    if grammar.dialect == "json_schema":
        return document_is_valid(grammar.text, content, draft, assert_formats)
    if grammar.dialect == "regex":
        return _text_matches(grammar.text, content)
    if grammar.dialect == "choice":
        return content in [choice.encode("utf-8", "surrogatepass") for choice in _choices(grammar.text)]
    raise Unjudgeable(f"no judge for {grammar.dialect}")


def _text_matches(pattern: str, content: bytes) -> bool:
    import regex

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    try:
        return regex.fullmatch(pattern, text) is not None
    except (regex.error, RecursionError) as error:
        raise Unjudgeable(reason(f"not a regex: {error}")) from error


def _choices(text: str) -> list[str]:
    try:
        choices = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unjudgeable(reason(f"the choices are not JSON: {error}")) from error
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise Unjudgeable("the choices are not an array of strings")
    return choices


class Judge:
    """Verdicts that cost at most `deadline` seconds each; the process starts with the first question, and
    anew after a kill.

    For one caller at a time.  `reason` says why the last verdict was None, and is empty otherwise.
    """

    def __init__(self, deadline: float = 10.0) -> None:
        self.deadline = deadline
        self.reason = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def verdict(
        self, grammar: Grammar, content: bytes, *, draft: str | None = None, assert_formats: bool = False
    ) -> bool | None:
        """As `is_valid`, or None with a `reason` where there is no verdict in time."""
        valid: bool | None = self._answer(
            "verdict", grammar, content, draft=draft, assert_formats=assert_formats
        )
        return valid

    def second(
        self, grammar: Grammar, content: bytes, *, draft: str | None = None, assert_formats: bool = False
    ) -> bool | None:
        """What the second validator says of a JSON Schema's document; None if it does not answer."""
        valid: bool | None = self._answer(
            "second", grammar, content, draft=draft, assert_formats=assert_formats
        )
        return valid

    def membership(self, grammar: Grammar, content: bytes) -> Membership | None:
        """As `harness.oracle.judge.membership`, or None with a `reason`: is it a sentence, the beginning of
        one, or neither?"""
        found: Membership | None = self._answer("membership", grammar, content)
        return found

    def readings_against(
        self, grammar: Grammar, content: bytes, valid: bool, unicode: Collection[str]
    ) -> tuple[str, ...]:
        """Returns the readings (`harness.oracle.regex.readings`) by which an output is not as valid as is
        said; none if that takes too long."""
        return tuple(self._answer("readings", grammar, content, valid=valid, unicode=sorted(unicode)) or ())

    def _answer(self, asks: str, grammar: Grammar, content: bytes, **options: Any) -> Any:
        question = {
            "asks": asks,
            "dialect": grammar.dialect,
            "text": grammar.text,
            "content": content.decode("latin-1"),
            **options,
            "deadline": self.deadline,
        }
        if self._process is None:
            self._process = _spawn()
            if _exchange(self._process, "", _START_SECONDS) != READY:
                self.close()
                self.reason = "the judge did not start"
                return None
        process = self._process
        try:
            answer = _exchange(process, json.dumps(question) + "\n", self.deadline)
        except BaseException:  # an interrupt would leave an answer that the next question takes for its own
            self.close()
            raise
        if answer is None or not answer.endswith("\n"):
            self.close()
            self.reason = (
                f"out of time after {self.deadline:g} s"
                if answer is None
                else f"the judge died (exit status {process.returncode})"
            )
            return None
        verdict: dict[str, Any] = json.loads(answer)
        self.reason = verdict["reason"]
        return verdict["valid"]

    def close(self) -> None:
        """End the process; a later question starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _spawn() -> subprocess.Popen[str]:
    here = str(Path(__file__).resolve().parents[2])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.oracle.judge"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="ascii",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def _exchange(process: subprocess.Popen[str], line: str, seconds: float) -> str | None:
    """Write the line and read one; None if that takes longer, and then the process is dead."""
    answers: list[str] = []

    def exchange() -> None:
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            process.stdin.write(line)
            process.stdin.flush()
        answers.append(process.stdout.readline())

    # A thread, because neither a write into a full pipe nor a read has a deadline on every platform.
    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(seconds)
    if not thread.is_alive():
        return answers[0]
    process.kill()
    thread.join()
    return None
