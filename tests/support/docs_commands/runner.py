"""Runs a page's commands one after the other, as its reader would."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import fault_server
import pages

from docs_commands.seeds import Store

TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Recipe:
    """How the commands of a page are run.

    A key is a part of the command as it stands on the page; the longest that fits is meant.
    """

    seeds: Mapping[str, str] = field(default_factory=dict)
    """What lies there before, by path: the name of a seed."""
    smaller: Mapping[str, str] = field(default_factory=dict)
    """What is run in the place of what, so that it is quick. Each must occur."""
    codes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Exit codes other than 0."""
    says: Mapping[str, str] = field(default_factory=dict)
    """What the output has, as a regular expression."""
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Why it cannot be run here."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """The module without which it is skipped."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """FOLDER in a value is the folder that the page is run in."""
    servers: tuple[str, ...] = ()
    """Addresses at which the page has a server; one of ours stands in for it."""
    least: int = 1
    """So many commands are run, at least."""


@dataclass
class Ran:
    """What became of a page."""

    folder: Path
    codes: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """The module that is missing, by command."""
    servers: dict[str, str] = field(default_factory=dict)
    """The address of what stands in for each."""
    seconds: list[tuple[float, str]] = field(default_factory=list)
    """The seconds that each command took, and those of what lay there before."""

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """What happens inside is told as that."""
        since = time.monotonic()
        try:
            yield
        finally:
            self.seconds.append((time.monotonic() - since, what))

    def bill(self) -> str:
        """Returns how long each took, the longest first."""
        return "\n".join(f"{seconds:7.1f} s  {what}" for seconds, what in sorted(self.seconds, reverse=True))


def run_page(text: str, recipe: Recipe, folder: Path, store: Store) -> Ran:
    """Writes its files, and runs its commands in `folder`."""
    with fault_server.serving(fault_server.says(first_choice)) as server:
        ran = Ran(folder, servers={name: server.url for name in recipe.servers})
        _run_all(text, recipe, ran, store)
    return ran


def first_choice(body: fault_server.Body) -> str:
    """Returns what a server that keeps every choice says."""
    allowed: list[str] = body.get("structured_outputs", {}).get("choice", ["Sure, here you are"])
    return allowed[0]


def _run_all(text: str, recipe: Recipe, ran: Ran, store: Store) -> None:
    folder = ran.folder
    for path, name in recipe.seeds.items():
        with ran.timed(f"({path})"):
            store.put(name, folder / path)
    used: set[tuple[str, str]] = set()
    for block in pages.blocks(text):
        left, files = pages.heredocs(block.text)
        for name in re.findall(r"^mkdir (\S+)$", left, flags=re.MULTILINE):
            (folder / name).mkdir(exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(content, "utf-8")
        for command in pages.commands(block):
            _run(command, recipe, ran, store, used)
    for kind in ("smaller", "codes", "says", "not_run", "needs"):
        unused = [key for key in getattr(recipe, kind) if (kind, key) not in used]
        ran.problems += [
            f"`{key}`, of which the recipe speaks ({kind}), is on the page no more" for key in unused
        ]


def _run(command: pages.Command, recipe: Recipe, ran: Ran, store: Store, used: set[tuple[str, str]]) -> None:
    text = command.text

    def of(kind: str) -> str | None:
        """Returns the key that fits."""
        fitting = sorted((key for key in getattr(recipe, kind) if key in text), key=len)
        used.update((kind, key) for key in fitting[-1:])
        return fitting[-1] if fitting else None

    if of("not_run") is not None:
        return
    if (key := of("needs")) is not None and find_spec(recipe.needs[key]) is None:
        for kind in ("codes", "says"):
            of(kind)
        _shorter(text, recipe, used)
        ran.skipped[text] = recipe.needs[key]
        return
    words = shlex.split(_shorter(text, recipe, used), comments=True)
    words = [ran.servers.get(word, word) for word in words]
    expected = recipe.codes[key] if (key := of("codes")) is not None else (0,)
    at = f"line {command.line}: {shlex.join(words)}"
    if words[0] not in ("grammarbench", "pytest", "python"):
        ran.problems.append(f"{at}: neither run nor listed")
        return
    try:
        environ = {name: value.replace("FOLDER", str(ran.folder)) for name, value in recipe.environ.items()}
        with ran.timed(at):
            done = store.run(words, ran.folder, **environ)
    except subprocess.TimeoutExpired as error:
        ran.problems.append(f"{at}: more than {error.timeout:g} s")
        return
    output = done.stdout + done.stderr
    ran.codes[text], ran.outputs[text] = done.returncode, output
    if done.returncode not in expected:
        ran.problems.append(f"{at}: exit code {done.returncode}, not {expected}\n{output[-1500:]}")
    if TRACEBACK in output:
        ran.problems.append(f"{at}: a traceback\n{output[-1500:]}")
    if (key := of("says")) is not None and not re.search(recipe.says[key], output):
        ran.problems.append(f"{at}: does not say {recipe.says[key]!r}\n{output[-1500:]}")


def _shorter(text: str, recipe: Recipe, used: set[tuple[str, str]]) -> str:
    for long, short in recipe.smaller.items():
        if long in text:
            used.add(("smaller", long))
            text = text.replace(long, short)
    return text
