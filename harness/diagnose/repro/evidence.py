"""Writes the lines with which a script, or the page of a case, asks an independent validator about an
output; each of them has been run before it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.oracle.judge.drafts import CLASSES, class_name, draft_of, validator_line
from harness.oracle.judge.pattern import NotAPattern, written_out
from harness.oracle.judge.unjudgeable import Unjudgeable

LONGEST = 4000
"""Most characters of the instance as a script spells it; a longer one is not judged there."""
SECONDS = 20.0
"""The seconds that one trial of a script's lines may take, because a pattern may take for ever."""
MEMORY_BYTES = 4 << 30
"""The resident memory that one of them may take."""

INSTALLED = ("jsonschema", "jsonschema_rs", "regex")
"""The validators that a reader of the script may lack; the others come with Python."""


@dataclass(frozen=True)
class Evidence:
    """An independent validator's verdict on the instance, and the lines that ask for it."""

    lines: tuple[str, ...]
    """Statements that ask the validator, print its verdict and assert that it is the one found here; they
    need the variables `grammar`, a string, and `instance`, bytes. Where the validator is not installed they
    say so, and the script goes on."""
    who: str
    """The validator's name, e.g. `jsonschema.Draft7Validator`."""
    agrees: bool
    """Does the validator agree with the case on the instance?"""


@contextmanager
def trials(seconds: float = SECONDS) -> Iterator[Trials]:
    """Yields what tries such lines, in a process of its own that ends with the block, because grammar and
    content may come from anybody. One trial may take so many `seconds`."""
    loader = f"{__name__}:{open_validators.__name__}"
    with Service(loader, memory_bytes=MEMORY_BYTES) as service:
        yield Trials(service, seconds)


@dataclass(frozen=True)
class Trials:
    """Tries the lines with which a validator is asked, before they are shown."""

    service: Service
    seconds: float

    def evidence(
        self,
        grammar: Grammar,
        content: bytes,
        valid: bool,
        draft: str | None,
        formats: bool,
        called: str = "the instance",
    ) -> Evidence | None:
        """Returns the first validator that agrees with the case on the content; otherwise one that says the
        opposite, if all that answer do. None where none answers, and where only one of two that were asked
        says the opposite, because the truth is unknown then. The content is `called` so where its verdict is
        printed."""
        if len(repr(content)) > LONGEST:
            return None
        asked = list(_questions(grammar, content, draft, formats))
        for who, lines in asked:
            if self._holds(grammar, content, [*lines, _asserted(valid)]):
                return Evidence(_shown(called, who, lines, valid), who, True)
        opposite = [
            (who, lines)
            for who, lines in asked
            if self._holds(grammar, content, [*lines, _asserted(not valid)])
        ]
        if opposite and (len(opposite) == len(asked) > 1 or grammar.dialect != "json_schema"):
            who, lines = opposite[0]
            return Evidence(_shown(called, who, lines, not valid), who, False)
        return None

    def _holds(self, grammar: Grammar, content: bytes, lines: list[str]) -> bool:
        """Do these lines run to their end?"""
        question = {"grammar": grammar.text, "lines": "\n".join(lines)}
        try:
            answer, _ = self.service.ask(question, content, seconds=self.seconds)
        except Lost:
            return False
        return bool(answer["holds"])


def open_validators() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that runs such lines, and says whether they hold."""
    import jsonschema  # noqa: F401 - imported once, and not for each question
    import jsonschema_rs  # noqa: F401
    import referencing  # noqa: F401
    import regex  # noqa: F401

    def answer(question: dict[str, Any], blob: bytes) -> Answer:
        names = {"grammar": question["grammar"], "instance": blob}
        try:
            exec(question["lines"], names)  # ours: grammar and instance are only names in them
        except Exception:  # whatever a library raises, these lines do not tell what is right
            return {"holds": False}, b""
        return {"holds": True}, b""

    return answer, {}


def _questions(
    grammar: Grammar, content: bytes, draft: str | None, formats: bool
) -> Iterator[tuple[str, list[str]]]:
    """Yields each validator's name and the statements that leave in `verdict` whether `instance`, the
    content, is valid for `grammar`."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        yield (
            "str",
            [
                "try:",
                "    verdict = bool(instance.decode('utf-8')) and False",
                "except UnicodeDecodeError:",
                "    verdict = False",
            ],
        )
        return
    match grammar.dialect:
        case "regex":
            # Python's own comes second, for where the other's matcher errs: `[^a]|[^b]` on "a" in 2026.11.15.
            for module in ("regex", "re"):
                yield (
                    f"{module}.fullmatch",
                    [
                        f"import {module}",
                        f"verdict = {module}.fullmatch(grammar, instance.decode()) is not None",
                    ],
                )
        case "choice":
            yield "json.loads", ["import json", "verdict = instance.decode() in json.loads(grammar)"]
        case "json_schema":
            try:
                # The content is decoded here, because `json.loads` guesses the encoding of bytes, and so
                # would take a byte-order mark or UTF-16 for JSON.
                json.loads(content.decode(), parse_constant=int)
            except (ValueError, RecursionError):
                yield (
                    "json.loads",
                    [
                        "import json",
                        "try:",
                        "    json.loads(instance.decode(), parse_constant=int)  # without NaN and Infinity",
                        "    verdict = None  # it is JSON, and the schema was not asked",
                        "except ValueError:",
                        "    verdict = False",
                    ],
                )
                return
            yield from _validators(grammar, draft, formats)


def _validators(grammar: Grammar, draft: str | None, formats: bool) -> Iterator[tuple[str, list[str]]]:
    try:
        schema = json.loads(grammar.text)
        draft = draft_of(schema, draft)
    except (ValueError, RecursionError, Unjudgeable):
        return
    name = class_name(draft)
    begin = ["import json, jsonschema, referencing"]
    end = ["verdict = validator.is_valid(json.loads(instance.decode()))"]
    yield f"jsonschema.{name}", [*begin, validator_line(draft, formats, "grammar"), *end]
    if draft in CLASSES:
        yield (
            f"jsonschema_rs.{name}",
            [
                "import json, jsonschema_rs",
                f"validator = jsonschema_rs.{name}(json.loads(grammar), validate_formats={formats}, "
                "offline=True)",
                *end,
            ],
        )
    if written := _as_python_has_them(schema):
        yield (
            f"jsonschema.{name} with the patterns of ECMA-262 written out for Python",
            [*begin, f"written_out = {written!r}", validator_line(draft, formats, "written_out"), *end],
        )


def _as_python_has_them(schema: object) -> str:
    """Returns the schema as text with each pattern written out so that Python's `re` means by it what
    ECMA-262 does; empty if it has none."""
    patterns: list[str] = []

    def rewritten(pattern: str) -> str:
        patterns.append(pattern)
        return written_out(pattern)

    def copied(value: Any) -> Any:
        if isinstance(value, list):
            return [copied(item) for item in value]
        if not isinstance(value, dict):
            return value
        copy = {name: copied(member) for name, member in value.items()}
        if isinstance(copy.get("pattern"), str):
            copy["pattern"] = rewritten(copy["pattern"])
        if isinstance(copy.get("patternProperties"), dict):
            copy["patternProperties"] = {
                rewritten(name): member for name, member in copy["patternProperties"].items()
            }
        return copy

    try:
        written = json.dumps(copied(schema))
    except (NotAPattern, RecursionError):
        return ""
    return written if patterns else ""


def _asserted(verdict: bool) -> str:
    return f"assert verdict is {verdict}"


def _shown(called: str, who: str, lines: list[str], verdict: bool) -> tuple[str, ...]:
    shown = f'print("{who}: {called} is", "valid" if verdict else "not valid")'
    asked = [*lines, shown, _asserted(verdict)]
    if who.partition(".")[0] in INSTALLED:
        missing = ["except ImportError as error:", f"    print('{called} is not judged here:', error)"]
        return ("try:", *(f"    {line}" for line in asked), *missing)
    return tuple(asked)
