"""Writes the lines with which a script asks an independent validator about its instance; each of them has
been run before it is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.backend.grammar import Grammar
from harness.oracle.judge.drafts import CLASSES, class_name, draft_of, validator_line
from harness.oracle.judge.pattern import NotAPattern, written_out
from harness.oracle.judge.unjudgeable import Unjudgeable

LONGEST = 4000
"""Most characters of the instance as a script spells it; a longer one is not judged there."""
SECONDS = 20.0
"""The seconds that one trial of the lines may take, because a pattern may take for ever."""
MEMORY = 4 << 30

INSTALLED = ("jsonschema", "jsonschema_rs", "regex")
"""The validators that a reader of the script may lack; the others come with Python."""


@dataclass(frozen=True)
class Evidence:
    """An independent validator's verdict on the instance, and the lines that ask for it."""

    lines: tuple[str, ...]
    """Statements that ask the validator, print its verdict and assert that it is the one found here; they
    need the variable `grammar`. Where the validator is not installed they say so, and the script goes on."""
    who: str
    """The validator's name, e.g. `jsonschema.Draft7Validator`."""
    agrees: bool
    """Does the validator agree with the case on the instance?"""


def evidence(
    grammar: Grammar, content: bytes, valid: bool, draft: str | None, formats: bool
) -> Evidence | None:
    """Returns the first validator that agrees with the case on the content; otherwise one that says the
    opposite, if all that answer do. None where none answers, and where only one of two that were asked says
    the opposite, because the truth is unknown then."""
    if len(repr(content)) > LONGEST:
        return None
    asked = list(_questions(grammar, content, draft, formats))
    for who, lines in asked:
        if _holds(grammar, content, [*lines, _asserted(valid)]):
            return Evidence(_shown(content, who, lines, valid), who, True)
    opposite = [
        (who, lines) for who, lines in asked if _holds(grammar, content, [*lines, _asserted(not valid)])
    ]
    if opposite and (len(opposite) == len(asked) > 1 or grammar.dialect != "json_schema"):
        who, lines = opposite[0]
        return Evidence(_shown(content, who, lines, not valid), who, False)
    return None


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
                json.loads(content, parse_constant=int)
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
    end = ["verdict = validator.is_valid(json.loads(instance))"]
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
            [
                *begin,
                f"written_out = {written!r}",
                validator_line(draft, formats, "written_out"),
                *end,
            ],
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


def _shown(content: bytes, who: str, lines: list[str], verdict: bool) -> tuple[str, ...]:
    shown = f'print("{who}: the instance is", "valid" if verdict else "not valid")'
    asked = [*lines, shown, _asserted(verdict)]
    if who.partition(".")[0] in INSTALLED:
        missing = ["except ImportError as error:", "    print('the instance is not judged here:', error)"]
        asked = ["try:", *(f"    {line}" for line in asked), *missing]
    return (f"instance = {content!r}", *asked)


def _holds(grammar: Grammar, content: bytes, lines: list[str]) -> bool:
    """Do these lines run to their end? They run in a process of their own, because grammar and content may
    come from anybody."""
    limited = (
        f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
        if os.name == "posix"
        else ""
    )
    text = "\n".join([f"{limited}grammar = {grammar.text!r}", f"instance = {content!r}", *lines])
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-"],
            input=text.encode("utf-8", "backslashreplace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return False
    return done.returncode == 0
