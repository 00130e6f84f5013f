"""A session on disk: `live.jsonl` and `live.i64` in the run's folder. Both are appended to and never
rewritten.

The first line says what is asked. Then come a line for each answer, as soon as it is there, and a line for
each judgement; then the end. An answer names its slice of `live.i64`, the times of its messages, which reach
that file before the line. Nothing here is a mean or a percentile.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import BadInput
from harness.rows.appending import Appender, Integers, RecordLines, named_figures
from harness.rows.store import read_integers, shown_by
from harness.serve.live.answer import Answer, Heard
from harness.serve.live.asking import Sampling
from harness.serve.live.client import Deadlines
from harness.serve.live.load import Load
from harness.serve.requests.latency import Objectives
from harness.serve.requests.words import Right
from harness.shape import shaped
from harness.text import our_command

PROTOCOL = 2
"""The version of the files and of the way of measuring. A change that makes two records incomparable raises
it."""

LINES, FIGURES = "live.jsonl", "live.i64"

NOT_ASKED = "not asked: there are fewer requests than cases"


@dataclass(frozen=True)
class LiveSetup:
    """The first line: what is asked, of which server, and from which machine."""

    run: str
    started: str
    harness: str
    argv: tuple[str, ...]
    url: str
    dialect: str
    """The server's dialect."""
    version: str
    """The server's version as it gives it; empty if it gives none."""
    model: str
    endpoint: str
    grammars: str
    """`warm`: each grammar was sent once before. `cold`: each is made unique, if its dialect can be. `mixed`:
    grammars are sent as they come."""
    sampling: Sampling
    deadlines: Deadlines
    loads: tuple[Load, ...]
    cases: int
    not_offered: int
    """Number of cases that the dialect has no way to express."""
    machine: dict[str, Any]
    """The client's machine, not the server's."""
    hardware: str
    left_out: tuple[str, ...]
    """The fields of sampling that the model refuses, and that no request brings."""
    objectives: Objectives
    """The objectives of goodput that were asked for."""
    protocol: int = PROTOCOL

    @property
    def asked(self) -> int:
        """Returns how many cases are asked: all loads ask the same ones in the same order, so that it is the
        longest load that counts."""
        mine = [load.requests for load in self.loads if load.role == "constrained"]
        return min(self.cases - self.not_offered, max(mine, default=0))

    @property
    def not_asked(self) -> int:
        """Returns how many cases no request is left for, though they could be sent."""
        return self.cases - self.not_offered - self.asked


@dataclass(frozen=True)
class Judgement:
    """A judge's verdict on one answer's text."""

    right: Right
    """The verdict; also `invalid` for a truncated text that nothing could complete."""
    why: str = ""
    """Why the text is unjudged."""
    fits: bool = False
    """Whether a valid text may begin with this one, which was truncated; for JSON Schema, whether it begins
    as JSON does."""


@dataclass(frozen=True)
class Lived:
    """A record as read."""

    folder: Path
    setup: LiveSetup
    answers: tuple[Answer, ...]
    judgements: dict[tuple[int, int], Judgement] = field(default_factory=dict)
    """The judgements, by load and number of the answer."""
    end: dict[str, Any] | None = None

    @property
    def is_complete(self) -> bool:
        """Returns whether the record came to its end. An incomplete record is shown, and gates nothing."""
        return self.end is not None

    def right(self, answer: Answer) -> Judgement:
        """Returns the judgement of the answer."""
        return self.judgements.get((answer.load, answer.number), Judgement("unjudged", "not judged yet"))

    @property
    def not_judged_yet(self) -> int:
        """Returns how many texts no judge has seen, because the session was killed before."""
        return sum(
            bool(answer.text_end) and (answer.load, answer.number) not in self.judgements
            for answer in self.answers
        )

    def load(self, answer: Answer) -> Load:
        """Returns the load of the answer."""
        return self.setup.loads[answer.load]


class LiveRecorder(Appender):
    """Appends the lines of a session."""

    def __init__(self, folder: Path, setup: LiveSetup) -> None:
        super().__init__(folder / LINES, folder / FIGURES, "setup", asdict(setup))

    def answer(self, answer: Answer) -> None:
        """Append the line of a request that is done."""
        flat = asdict(answer)
        times = np.array(flat["heard"].pop("message_ns"), "<i8")
        self.append("answer", flat, times.tobytes())

    def judgement(self, answer: Answer, judgement: Judgement) -> None:
        """Append the line of the judgement of an answer's text."""
        self.append("judgement", {"load": answer.load, "number": answer.number, **asdict(judgement)}, None)


def has_session(folder: Path) -> bool:
    """Returns whether the folder holds a live session."""
    return (folder / LINES).is_file()


def read_session(folder: Path) -> Lived:
    """Returns the whole record. Raises BadInput."""
    if not has_session(folder):
        instead = shown_by(folder) or f"{our_command('live', 'URL', '--out', str(folder))} makes one"
        raise BadInput(f"{folder}: no live session here (no {LINES}); {instead}")
    figures = read_integers(folder / FIGURES)
    answers: dict[tuple[int, int], Answer] = {}
    judgements: dict[tuple[int, int], Judgement] = {}
    end = None
    with RecordLines(folder / LINES, PROTOCOL, "live session") as lines:
        setup = shaped(LiveSetup, lines.first())
        for kind, line in lines:
            if kind == "answer":
                answer = _answer(line, figures, setup.loads)
                if answers.setdefault((answer.load, answer.number), answer) is not answer:
                    raise ValueError("a second answer to one request")
            elif kind == "judgement":
                key = shaped(int, line.pop("load", None)), shaped(int, line.pop("number", None))
                if key not in answers or key in judgements:
                    raise ValueError("a judgement of no answer, or a second one of the same")
                judgements[key] = shaped(Judgement, line)
            elif kind == "end":
                end = line
    return Lived(folder, setup, tuple(answers.values()), judgements, end)


def _answer(line: dict[str, Any], figures: Integers, loads: tuple[Load, ...]) -> Answer:
    """Returns the answer of a line. Raises ValueError, also for one to a request that none of the loads has,
    and for times that no clock gives."""
    message_ns = tuple(named_figures(line, figures).tolist())
    heard = shaped(Heard, shaped(dict[str, Any], line.pop("heard", None)), message_ns=message_ns)
    answer = shaped(Answer, line, heard=heard)
    if not (
        0 <= answer.load < len(loads)
        and 0 <= answer.number < loads[answer.load].requests
        and answer.role == loads[answer.load].role
    ):
        raise ValueError("its load, its number or its role is none of this session's")
    last = () if heard.last_ns is None else (heard.last_ns,)
    times = [answer.due_ns, heard.begun_ns, heard.sent_ns, *message_ns, *last, heard.done_ns]
    if times[0] < 0 or times != sorted(times):
        raise ValueError("its times are below 0, or not one after the other")
    return answer
