"""The lines with which adapters show a walk by their own library alone (`Adapter.script`), each asked in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput, one_line
from harness.grammar import Grammar
from harness.guard import forbid_network
from harness.process import ENVIRONMENT, module
from harness.registry import installed_version, make, names, parse_specs, recorded_version
from harness.row import Arm

SECONDS = 120.0
"""For all arms together, which are asked at once: importing a backend takes most of it."""
MEMORY = 16 << 30
"""Bytes of addresses of one process: options come out of a run's file."""
LONGEST = 20_000
"""Characters of one script; a longer one is none for people."""
HERE = "where this page was made"


@dataclass(frozen=True)
class Scripts:
    """What an arm's adapter brings."""

    of: dict[Grammar, str]
    """Those that it has lines for."""
    why: str
    """Why it was not asked, or did not answer to the end; empty if it did."""


def scripts(asked: Sequence[tuple[Arm, Sequence[Grammar]]]) -> list[Scripts]:
    """The lines of each arm for each of these grammars.

    Only a backend that is installed here at the arm's version is asked, and only by a name that adapters of this environment have: the
    arms are those of a file, and must not name what is imported.
    """
    with tempfile.TemporaryDirectory() as folder:
        whys = [_unfit(arm) if grammars else "nothing to show" for arm, grammars in asked]
        started = {
            number: _start(*asked[number], Path(folder) / f"question-{number}", Path(folder) / f"answer-{number}")
            for number, why in enumerate(whys)
            if not why
        }
        deadline = time.monotonic() + SECONDS
        found = []
        for number, (why, (_, grammars)) in enumerate(zip(whys, asked, strict=True)):
            if why:
                found.append(Scripts({}, why))
                continue
            process = started[number]
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            found.append(_read(Path(folder) / f"answer-{number}", grammars))
        return found


def _unfit(arm: Arm) -> str:
    """Why the arm cannot be asked; empty if it can."""
    if not arm.distribution or arm.backend not in names():
        return "no library of its own" if not arm.distribution else f"no adapter of its name {HERE}"
    found = "" if arm.python else installed_version(arm.distribution) or ""
    if not found:
        return f"{arm.distribution[:80]} {arm.version[:40]} is not installed {HERE}"
    return "" if arm.version.startswith(found) else f"{arm.distribution} {found} is installed {HERE}, not {arm.version[:40]}"


def _start(arm: Arm, grammars: Sequence[Grammar], question: Path, answer: Path) -> subprocess.Popen[bytes]:
    spec = f"{arm.backend}:{arm.options}" if arm.options else arm.backend
    texts = [[each.dialect, each.text] for each in grammars]
    question.write_text(json.dumps({"spec": spec, "version": arm.version, "grammars": texts}), "ascii")
    return subprocess.Popen(
        [*module("harness.scripts"), str(question), str(answer)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **ENVIRONMENT},
    )


def _read(answer: Path, grammars: Sequence[Grammar]) -> Scripts:
    """What was said before the end, whatever that was: a line for each grammar, or why there are none."""
    try:
        lines = answer.read_text("ascii").split("\n")[:-1]
    except OSError:
        lines = []
    said = [json.loads(each) for each in lines]
    if said and isinstance(said[0], dict):
        return Scripts({}, str(said[0]["why"]))
    of = {grammar: text for grammar, text in zip(grammars, said, strict=False) if 0 < len(text) <= LONGEST}
    return Scripts(of, "" if len(said) == len(grammars) else "its adapter ended the process that asked it, or took too long")


def main(arguments: list[str]) -> None:
    """`QUESTION ANSWER`: the second file gets a line of JSON for each grammar of the first, at once, for the next one may be the last."""
    from harness.vocabulary import byte_vocabulary

    forbid_network()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most), most))
    question = json.loads(Path(arguments[0]).read_text("ascii"))
    with open(arguments[1], "w", encoding="ascii") as file:
        try:
            (spec,) = parse_specs(question["spec"])
            adapter = make(spec, byte_vocabulary())
            if recorded_version(adapter) != question["version"]:
                raise BadInput(f"{recorded_version(adapter)} is installed {HERE}, not {question['version'][:40]}")
        except (BadInput, ValueError, OSError) as error:
            file.write(json.dumps({"why": one_line(str(error))[:300]}) + "\n")
            return
        for dialect, text in question["grammars"]:
            script = ""
            with suppress(Exception):  # what the adapter cannot turn into lines has none
                script = adapter.script(Grammar(dialect, text))
            file.write(json.dumps(script) + "\n")
            file.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
