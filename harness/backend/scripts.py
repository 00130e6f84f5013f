"""The lines with which adapters show a walk by their own library alone (`Adapter.script`), each asked in a
process of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from harness.backend.arm import Arm, pinned
from harness.backend.grammar import Adapter, Grammar
from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.registry import installed_version, make, names, parse_specs, recorded_version
from harness.backend.vocabulary import byte_vocabulary
from harness.errors import BadInput
from harness.text import one_line

SECONDS = 120.0
"""The time for all arms together, which import their backends at once: importing takes most of it."""
MEMORY_BYTES = 16 << 30
"""The resident memory of one process; it is limited because the options come out of a run's file."""
LONGEST = 20_000
"""The most characters of one script; nobody reads a longer one."""
LOST = "its adapter ended the process that asked it, or took too long"
HERE = "where this page was made"
FORCED = "# forced: "
"""The beginning of a last line of an adapter's script that is left out unless forced text is in question."""


def parts_of_script(script: str) -> tuple[str, str]:
    """Returns an adapter's script without its line that begins with FORCED, and what stands in that line,
    which is empty where there is none."""
    walked, _, forced = script.strip("\n").partition(f"\n{FORCED}")
    return walked, forced


@dataclass(frozen=True)
class Scripts:
    """What an arm's adapter answers."""

    of: dict[Grammar, str]
    """The lines for each grammar that it has lines for."""
    why: str
    """Why it was not asked, or did not answer to the end; empty if it did."""


def scripts(asked: Sequence[tuple[Arm, Sequence[Grammar]]]) -> list[Scripts]:
    """Returns the lines of each arm for each of these grammars.

    Only a backend that is installed here at the arm's version is asked, and only by a name that adapters of
    this environment have: the arms are those of a file, and must not name what is imported.
    """
    reasons = [_unfit(arm) if grammars else "nothing to show" for arm, grammars in asked]
    loader = f"{__name__}:{open_scripts.__name__}"
    services = [None if why else Service(loader, memory_bytes=MEMORY_BYTES) for why in reasons]
    deadline = time.monotonic() + SECONDS
    try:
        for service in filter(None, services):
            service.start()
        losses = [_open(service, arm) for service, (arm, _) in zip(services, asked, strict=True)]
        return [
            _ask(service, grammars, deadline) if service and not (why or loss) else Scripts({}, why or loss)
            for service, (_, grammars), why, loss in zip(services, asked, reasons, losses, strict=True)
        ]
    finally:
        for service in filter(None, services):
            service.close()


def _open(service: Service | None, arm: Arm) -> str:
    """Has the service import the arm's backend, without waiting for it; returns why it cannot be asked, or
    nothing."""
    if service is None:
        return ""
    try:
        service.post({"spec": pinned(arm, ""), "version": arm.version})
    except Lost as lost:
        return f"{LOST} ({lost})"
    return ""


def _ask(service: Service, grammars: Sequence[Grammar], deadline: float) -> Scripts:
    """Returns the scripts of an adapter that was opened, as far as it gave them until the deadline."""
    shown: dict[Grammar, str] = {}
    try:
        opened, _ = service.take(max(0.0, deadline - time.monotonic()))
        if opened["why"]:
            return Scripts({}, opened["why"])
        for grammar in grammars:
            question = {"dialect": grammar.dialect, "text": grammar.text}
            answer, _ = service.ask(question, seconds=max(0.0, deadline - time.monotonic()))
            if 0 < len(answer["script"]) <= LONGEST:
                shown[grammar] = answer["script"]
    except Lost as lost:
        return Scripts(shown, f"{LOST} ({lost})")
    return Scripts(shown, "")


def _unfit(arm: Arm) -> str:
    """Returns why the arm cannot be asked; empty if it can."""
    if not arm.distribution or arm.backend not in names():
        return "no library of its own" if not arm.distribution else f"no adapter of its name {HERE}"
    installed = "" if arm.python else installed_version(arm.distribution) or ""
    if not installed:
        return f"{arm.distribution[:80]} {arm.version[:40]} is not installed {HERE}"
    return (
        ""
        if arm.version.startswith(installed)
        else (f"{arm.distribution} {installed} is installed {HERE}, not {arm.version[:40]}")
    )


def open_scripts() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler of the process that imports one backend and then asks its adapter for scripts."""
    opened: list[Adapter] = []

    def answer(question: dict[str, Any], blob: bytes) -> Answer:
        if "spec" not in question:
            script = ""
            with suppress(Exception):  # what the adapter cannot turn into lines has none
                script = opened[0].script(Grammar(question["dialect"], question["text"]))
            return {"script": script}, b""
        try:
            (spec,) = parse_specs(question["spec"])
            adapter = make(spec, byte_vocabulary())
        except (BadInput, ValueError, OSError) as error:
            return {"why": one_line(str(error))[:300]}, b""
        opened.append(adapter)
        version = recorded_version(adapter)
        is_other = version != question["version"]
        return {"why": f"{version} is installed {HERE}, not {question['version'][:40]}" * is_other}, b""

    return answer, {}
