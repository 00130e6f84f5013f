"""The pages of the documentation, taken apart: commands, links, and what stands between backticks."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from places import ROOT

from harness.cli.main import parser

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

each_page = pytest.mark.parametrize("page", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])

PROGRAMS = ("grammarbench", "pytest", "tox", "python", "pip")


@dataclass(frozen=True)
class Block:
    """Lines that are set apart, without their indentation."""

    line: int
    """The line in which the block begins, from 1."""
    language: str
    """The language of a fenced block; empty for an indented one."""
    text: str


@dataclass(frozen=True)
class Command:
    """One line of a shell block: its words, comments gone.

    `files`: those that the lines up to it have written, by name.
    """

    line: int
    words: tuple[str, ...]
    text: str


def blocks(text: str) -> Iterator[Block]:
    """Fenced blocks, and those indented by four spaces after an empty line."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line, start = lines[number], number
        if line.startswith("```"):
            number = next(
                following for following in range(number + 1, len(lines)) if lines[following].startswith("```")
            )
            yield Block(start + 1, line[3:].strip(), "\n".join(lines[start + 1 : number]))
        elif line.startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number].strip()):
                number += 1
            yield Block(start + 1, "", "\n".join(line[4:] for line in lines[start:number]).rstrip())
            continue
        number += 1


def heredocs(text: str) -> tuple[str, dict[str, str]]:
    """Returns the block without `cat > FILE <<'END' ... END`, whose lines are left empty; and these files."""
    files: dict[str, str] = {}

    def take(match: re.Match[str]) -> str:
        files[match["file"]] = match["content"]
        return "\n" * match[0].count("\n")

    left = re.sub(
        r"^cat > (?P<file>\S+) <<'(?P<end>\w+)'\n(?P<content>.*?^)(?P=end)$",
        take,
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    return left, files


def commands(block: Block) -> Iterator[Command]:
    """Yields the commands of the programs above."""
    if block.language not in ("", "sh", "bash", "shell", "console"):
        return
    for number, line in enumerate(heredocs(block.text)[0].splitlines(), block.line):
        for part in re.split(r" && | \| ", line):
            if part.split(" ")[0] in PROGRAMS:
                yield Command(number, tuple(shlex.split(part, comments=True)), part)


def prose(text: str) -> str:
    """Returns the page without its blocks, comments and fences."""
    lines = text.splitlines()
    for block in blocks(text):
        extra = 2 if block.language or lines[block.line - 1].startswith("```") else 0
        for number in range(block.line - 1, block.line - 1 + len(block.text.splitlines()) + extra):
            lines[number] = ""
    return "\n".join(lines)


def spans(text: str) -> set[str]:
    """Returns what stands between backticks in the prose."""
    return {span.strip() for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose(text))}


def links(text: str) -> set[str]:
    """Returns the targets of links and pictures."""
    without_code = re.sub(r"`[^`\n]+`", "", prose(text))
    return set(re.findall(r"\]\(([^()\s]+)\)", without_code))


def anchors(text: str) -> set[str]:
    """Returns the anchors that GitHub makes of the headings; a second one of the same name has `-1`."""
    counts: dict[str, int] = {}
    made = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(text), flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        made.add(f"{slug}-{counts[slug]}" if slug in counts else slug)
        counts[slug] = counts.get(slug, 0) + 1
    return made


def exists(path: str) -> bool:
    """Is it in the checkout?"""
    return (ROOT / path).exists()


def text_of(path: str) -> str:
    """Returns the text of a file of the checkout."""
    return (ROOT / path).read_text("utf-8")


@cache
def pytest_options() -> frozenset[str]:
    """Everything that pytest takes beside our benchmarks."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ".", "benchmarks", "--help"],
        capture_output=True, text=True, check=True, cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
    )  # fmt: skip
    return frozenset(re.findall(r"--[\w-]+", done.stdout))


def verbs() -> dict[str, argparse.ArgumentParser]:
    """Our commands."""
    subcommands = next(
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(subcommands.choices)


def verb_of(words: Sequence[str]) -> str:
    """Returns the command that these arguments name, of one word or of two."""
    both = " ".join(words[:2])
    return both if both in verbs() else words[0]


def our_options() -> set[str]:
    """Returns the options of all of our commands."""
    return {
        option
        for command_parser in (parser(), *verbs().values())
        for option in command_parser._option_string_actions
    }
