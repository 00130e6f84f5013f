"""A session on disk: `live.jsonl` and `live.i64` in the run's folder. Appended to, never rewritten.

The first line says what is asked; then come a line per answer, as soon as it is there, and a line per judgement; then the end. An answer
names its slice of `live.i64`, the times of its messages, which reach the file before it. Nothing here is a mean or a percentile.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from harness.errors import BadInput
from harness.live.answer import ENDS, Answer, Heard, Usage
from harness.live.asking import Sampling
from harness.live.client import Deadlines
from harness.live.load import Load
from harness.measure.appending import Appender, Integers, named_figures, read_figures, whole_lines

PROTOCOL = 1
"""Of the files and of how is measured; a change that makes two records incomparable raises it."""

LINES, FIGURES = "live.jsonl", "live.i64"

Right = Literal["valid", "invalid", "unjudged"]


@dataclass(frozen=True)
class Setup:
    """The first line."""

    run: str
    started: str
    harness: str
    argv: tuple[str, ...]
    url: str
    dialect: str
    """Of the server."""
    version: str
    """Of the server, as it says; empty where it does not."""
    model: str
    endpoint: str
    grammars: str
    """`warm`: each was sent once before. `cold`: each is made unique, where its dialect can. `mixed`: as they come."""
    sampling: Sampling
    deadlines: Deadlines
    loads: tuple[Load, ...]
    cases: int
    not_offered: int
    """Cases that the dialect has no way to say."""
    machine: dict[str, Any]
    """The client's, not the server's."""
    hardware: str
    protocol: int = PROTOCOL


@dataclass(frozen=True)
class Judgement:
    """What a judge says of one answer's text."""

    right: Right
    """`invalid` too for a truncated text that nothing could complete."""
    why: str = ""
    """Why it is unjudged."""


@dataclass(frozen=True)
class Lived:
    """A record as read."""

    folder: Path
    setup: Setup
    answers: tuple[Answer, ...]
    judgements: dict[tuple[int, int], Judgement] = field(default_factory=dict)
    """By load and number."""
    end: dict[str, Any] | None = None

    @property
    def is_complete(self) -> bool:
        """Did it come to its end? What did not is shown, and gates nothing."""
        return self.end is not None

    def right(self, answer: Answer) -> Judgement:
        """Of the answer."""
        return self.judgements.get((answer.load, answer.number), Judgement("unjudged", "not judged yet"))

    def load(self, answer: Answer) -> Load:
        """Of the answer."""
        return self.setup.loads[answer.load]


class Recorder(Appender):
    """Appends the lines of a session."""

    def __init__(self, folder: Path, setup: Setup) -> None:
        super().__init__(folder / LINES, folder / FIGURES, "setup", asdict(setup))

    def answer(self, answer: Answer) -> None:
        """One request is done."""
        flat = asdict(answer)
        times = np.array(flat["heard"].pop("message_ns"), "<i8")
        self.append("answer", flat, times.tobytes())

    def judgement(self, answer: Answer, judgement: Judgement) -> None:
        """Its text is judged."""
        self.append("judgement", {"load": answer.load, "number": answer.number, **asdict(judgement)}, None)


def has_session(folder: Path) -> bool:
    """Was a live server asked in this folder?"""
    return (folder / LINES).is_file()


def read_session(folder: Path) -> Lived:
    """All of it. Raises BadInput."""
    if not has_session(folder):
        raise BadInput(f"{folder}: no live session here (no {LINES}); `grammarbench live URL --out {folder}` makes one")
    figures = read_figures(folder / FIGURES)
    setup: Setup | None = None
    answers: list[Answer] = []
    judgements: dict[tuple[int, int], Judgement] = {}
    end = None
    for number, line in whole_lines(folder / LINES):
        try:
            kind = line.pop("kind")
            if number == 1:
                if line.get("protocol") != PROTOCOL:
                    raise BadInput(f"{folder}: asked by protocol {line.get('protocol')}, this version reads {PROTOCOL}; ask anew")
                setup = _setup(line)
            elif kind == "answer":
                answers.append(_answer(line, figures))
            elif kind == "judgement":
                key = line.pop("load"), line.pop("number")
                judgements[key] = _judgement(line)
            elif kind == "end":
                end = line
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadInput(
                f"{folder / LINES}:{number}: not a line of a live session ({error!r}); the file was changed or damaged"
            ) from error
    if setup is None:
        raise BadInput(f"{folder / LINES}: empty; the session did not start")
    return Lived(folder, setup, tuple(answers), judgements, end)


def _setup(line: dict[str, Any]) -> Setup:
    parts = {
        "argv": tuple(line["argv"]),
        "sampling": Sampling(**line["sampling"]),
        "deadlines": Deadlines(**line["deadlines"]),
        "loads": tuple(map(Load.from_json, line["loads"])),
    }
    return Setup(**{**line, **parts})


def _answer(line: dict[str, Any], figures: Integers) -> Answer:
    mine = named_figures(line, figures)
    heard = line.pop("heard")
    if heard["end"] not in ENDS:
        raise ValueError(f"the end {heard['end']}")
    usage = Usage(**heard.pop("usage"))
    return Answer(**line, heard=Heard(**heard, usage=usage, message_ns=tuple(mine.tolist())))


def _judgement(line: dict[str, Any]) -> Judgement:
    if line["right"] not in get_args(Right):
        raise ValueError(f"the judgement {line['right']}")
    return Judgement(**line)
