"""Decoding on disk: `decode.jsonl` and `decode.i64` in one folder. Both are appended to and never rewritten.

The first line says what is measured. Then come a line for each child (one arm in one fork), each run of a
setting, each setting whose texts were scored, and each loss; then the end. A line names its slice of
`decode.i64`, little-endian int64s that reach the file before it. Nothing here is a mean or a percentile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np

from harness.errors import BadInput
from harness.measure.protocol import MeasuredArm
from harness.rows.appending import Appender, Integers, RecordLines, named_figures
from harness.rows.store import read_integers, shown_by
from harness.serve.decode.goodness import PLACE_COLUMNS, Goodness, ScoredText
from harness.serve.decode.setting import Setting
from harness.serve.requests.latency import Objectives
from harness.serve.requests.words import Right, Role
from harness.shape import shaped
from harness.text import counted, our_command
from harness.walk.loop.outcome import STEP, Account, Completed

PROTOCOL = 2
"""The version of the files and of the way of measuring. A change that makes two records incomparable raises
it."""

LINES, FIGURES = "decode.jsonl", "decode.i64"

Whose = Literal["backend", "not_offered", "harness_error"]


@dataclass(frozen=True)
class DecodeSetup:
    """The first line: what is measured, with what, and on which machine."""

    run: str
    started: str
    harness: str
    argv: tuple[str, ...]
    profile: str
    vocabulary: str
    sha256: str
    """Hash of the vocabulary."""
    model: str
    """The model as it was asked for; each child's `model` says what it is."""
    device: str
    dtype: str | None
    forks: int
    rounds: int
    """Warm rounds of each fork; each fork has a cold one as well."""
    arms: tuple[MeasuredArm, ...]
    settings: tuple[Setting, ...]
    machine: dict[str, Any]
    hardware: str
    mechanisms: tuple[dict[str, Any], ...]
    """The mechanisms of the closing experiment: `name`, and the settings `off` and `on` by their places in
    `settings`."""
    objectives: Objectives
    """The objectives of goodput that were asked for."""
    protocol: int = PROTOCOL


@dataclass(frozen=True)
class Child:
    """A fresh process of one arm. Libraries and vocabulary were loaded before it was forked; the model is its
    own."""

    fork: int
    place: int
    """The arm's place in the fork's order."""
    arm: str
    load_s: float
    """Seconds to load libraries, vocabulary and adapter; 0 if they were loaded in an earlier fork."""
    build_s: float
    """Seconds to build the model."""
    threads: int
    """The model's threads on a CPU."""
    model: dict[str, Any]
    """What the model is, as `Model.describe()` says."""
    workloads: dict[str, list[dict[str, Any]]]
    """For each workload its texts: `name`, `dialect` (or null), `tokens` (end-of-sequence included), `bytes`,
    `grammar_bytes`."""


@dataclass(frozen=True)
class Judged:
    """One request as it ended, and what the judge says of its text."""

    completed: Completed
    right: Right
    """What the grammar's own judge says of the text. One that was cut at the limit is `invalid` where no
    valid text begins so. `unjudged`: the judge gave no verdict, there is no grammar, or the text did not come
    to its end."""
    as_replayed: bool | None
    """Whether the text is, byte for byte, the one that was to be replayed; None where nothing was
    replayed."""


@dataclass(frozen=True)
class DecodedBatch:
    """One run of one setting, with all of its requests."""

    fork: int
    round: int
    """The round, from 0. Round 0 is the cold run, before which the compile cache is emptied. After a loss it
    is made again in the fresh process, and the last one counts."""
    place: int
    """The run's place in the round's order."""
    arm: str
    role: Role
    setting: int
    """The setting's place in `DecodeSetup.settings`; for an unconstrained run the place of the first setting
    with this load (`Setting.plain`)."""
    wall_ns: int
    passes: int
    peak_bytes: int
    """The highest device memory in bytes; on a CPU the process's resident memory."""
    counts: dict[str, int]
    completed: tuple[Judged, ...]
    steps: Integers
    """Int64 `[passes, len(STEP)]`."""
    captured: int
    """How many sizes of pass were captured as CUDA graphs within the run. A warm run with any is made again,
    a few times at most, and the last one is what stands here."""
    repeated: int
    """How often the run was made again for that."""

    @property
    def is_cold(self) -> bool:
        """Returns whether this was the first run of its kind in its process.

        Only TTFT and compiles of such runs mean anything.
        """
        return self.round == 0


@dataclass(frozen=True)
class Loss:
    """A setting that was not measured on an arm, or not any further."""

    fork: int
    arm: str
    setting: int
    whose: Whose
    """Whose fault it is. `backend`: its process was lost, or hung. `not_offered`: the backend has no such
    mechanism. `harness_error`: the fault is ours."""
    why: str


@dataclass(frozen=True)
class Decoding:
    """A record as read."""

    folder: Path
    setup: DecodeSetup
    children: tuple[Child, ...]
    batches: tuple[DecodedBatch, ...]
    losses: tuple[Loss, ...]
    end: dict[str, Any] | None
    goodness: tuple[Goodness, ...] = ()
    """What was scored; nothing for a shape."""

    @property
    def is_complete(self) -> bool:
        """Returns whether the record came to its end. An incomplete record is shown, and gates nothing."""
        return self.end is not None

    @property
    def often(self) -> str:
        """Returns how many forks and rounds were made; of a record without an end, how many runs of those
        that were asked for."""
        asked = (
            f"{counted(self.setup.forks, 'fork')} of one cold and {counted(self.setup.rounds, 'warm round')}"
        )
        if self.is_complete:
            return asked
        forks = len({batch.fork for batch in self.batches})
        where = f" in {counted(forks, 'fork')}" if forks else ""
        return f"{counted(len(self.batches), 'run')} made{where}, of {asked} that were asked for"

    @property
    def model(self) -> dict[str, Any]:
        """Returns what the model is; empty if no child was ready."""
        return self.children[0].model if self.children else {}

    @property
    def workloads(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the workloads of the first child (see `Child.workloads`); empty if no child was ready."""
        return self.children[0].workloads if self.children else {}

    def setting(self, batch: DecodedBatch) -> Setting:
        """Returns the setting of the run."""
        return self.setup.settings[batch.setting]


class DecodeRecorder(Appender):
    """Appends the lines of a decoding."""

    def __init__(self, folder: Path, setup: DecodeSetup) -> None:
        super().__init__(folder / LINES, folder / FIGURES, "setup", asdict(setup))

    def child(self, child: Child) -> None:
        """Append the line of a child that is ready."""
        self.append("child", asdict(child), None)

    def loss(self, loss: Loss) -> None:
        """Append the line of a setting that is not measured."""
        self.append("loss", asdict(loss), None)

    def goodness(self, goodness: Goodness) -> None:
        """Append the line of a setting whose texts were scored. Its slice of the figures holds the places of
        each text in turn."""
        line = {column.name: getattr(goodness, column.name) for column in fields(Goodness)}
        texts = [
            {"name": text.name, "ids": text.ids, "other": text.other, "places": len(text.places)}
            for text in goodness.texts
        ]
        parts = [np.zeros(0, np.int64), *(text.places.ravel() for text in goodness.texts)]
        figures = np.concatenate(parts).astype("<i8").tobytes()
        self.append("goodness", line | {"texts": texts}, figures)

    def batch(self, batch: DecodedBatch) -> None:
        """Append the line of a run of a setting.

        Its slice of the figures holds the steps, then the ids and the times of each request's tokens.
        """
        parts = [batch.steps.ravel()]
        completed = []
        for judged in batch.completed:
            done = judged.completed
            parts += [np.array(done.ids, np.int64), np.array(done.token_ns, np.int64)]
            flat = asdict(done) | {"ids": len(done.ids), "token_ns": len(done.token_ns)}
            completed.append(flat | {"right": judged.right, "as_replayed": judged.as_replayed})
        line = {column.name: getattr(batch, column.name) for column in fields(DecodedBatch)}
        self.append(
            "batch",
            line | {"completed": completed, "steps": len(batch.steps)},
            np.concatenate(parts).astype("<i8").tobytes(),
        )


def has_decoding(folder: Path) -> bool:
    """Returns whether the folder holds a decoding."""
    return (folder / LINES).is_file()


def read_decoding(folder: Path) -> Decoding:
    """Returns the whole record. Raises BadInput."""
    if not has_decoding(folder):
        instead = shown_by(folder) or f"{our_command('decode', '--out', str(folder))} makes one"
        raise BadInput(f"{folder}: no decoding here (no {LINES}); {instead}")
    figures = read_integers(folder / FIGURES)
    children, batches, losses, goodness, end = [], [], [], [], None
    with RecordLines(folder / LINES, PROTOCOL, "decoding") as lines:
        setup = _setup(lines.first())
        for kind, line in lines:
            if kind == "child":
                children.append(shaped(Child, line))
            elif kind == "batch":
                batches.append(_batch(line, figures))
                _check_named(setup, batches[-1].arm, batches[-1].setting)
            elif kind == "loss":
                losses.append(shaped(Loss, line))
                _check_named(setup, losses[-1].arm, losses[-1].setting)
            elif kind == "goodness":
                goodness.append(_goodness(line, figures))
                _check_named(setup, goodness[-1].arm, goodness[-1].setting)
            elif kind == "end":
                end = line
    return Decoding(folder, setup, tuple(children), tuple(batches), tuple(losses), end, tuple(goodness))


def _setup(line: dict[str, Any]) -> DecodeSetup:
    setup = shaped(DecodeSetup, line)
    for mechanism in setup.mechanisms:
        if not all(0 <= shaped(int, mechanism.get(name)) < len(setup.settings) for name in ("off", "on")):
            raise ValueError("a mechanism is switched between settings that are none of this record")
    return setup


def _check_named(setup: DecodeSetup, arm: str, setting: int) -> None:
    """Raises ValueError for an arm or a setting that the first line does not name."""
    if arm not in {measured.name for measured in setup.arms} or not 0 <= setting < len(setup.settings):
        raise ValueError("its arm or its setting is none of this record's")


class _Lengths(TypedDict):
    steps: int
    completed: list[dict[str, Any]]


class _Request(TypedDict):
    ids: int
    token_ns: int
    right: Right
    as_replayed: bool | None


class _Text(TypedDict):
    name: str
    ids: int
    other: int | None
    places: int


class _Texts(TypedDict):
    texts: list[_Text]


def _goodness(line: dict[str, Any], figures: Integers) -> Goodness:
    mine, texts = named_figures(line, figures), shaped(_Texts, line)["texts"]
    counts = [text["places"] for text in texts]
    if any(count < 0 for count in counts) or sum(counts) * len(PLACE_COLUMNS) != len(mine):
        raise ValueError("it names other figures than its texts have places")
    table, at, scored = np.asarray(mine).reshape(-1, len(PLACE_COLUMNS)), 0, []
    for text in texts:
        places = table[at : at + text["places"]]
        scored.append(ScoredText(text["name"], text["ids"], text["other"], places))
        at += len(places)
    rest = {name: value for name, value in line.items() if name != "texts"}
    return shaped(Goodness, rest, texts=tuple(scored))


def _batch(line: dict[str, Any], figures: Integers) -> DecodedBatch:
    mine, lengths = named_figures(line, figures), shaped(_Lengths, line)
    requests = [(shaped(_Request, request), request) for request in lengths["completed"]]
    behind = sum(lengths_of["ids"] + lengths_of["token_ns"] for lengths_of, _ in requests)
    at = lengths["steps"] * len(STEP)
    if (
        at < 0
        or any(min(lengths_of["ids"], lengths_of["token_ns"]) < 0 for lengths_of, _ in requests)
        or at + behind != len(mine)
    ):
        raise ValueError("it names other figures than its steps and requests have")
    steps = np.asarray(mine[:at]).reshape(-1, len(STEP))
    completed = []
    for lengths_of, request in requests:
        ids, token_ns = (
            mine[at : at + lengths_of["ids"]],
            mine[at + lengths_of["ids"] : at + lengths_of["ids"] + lengths_of["token_ns"]],
        )
        at += len(ids) + len(token_ns)
        rest = {name: value for name, value in request.items() if name not in _Request.__annotations__}
        done = shaped(Completed, rest, ids=tuple(ids.tolist()), token_ns=tuple(token_ns.tolist()))
        completed.append(Judged(done, lengths_of["right"], lengths_of["as_replayed"]))
    rest = {name: value for name, value in line.items() if name not in _Lengths.__annotations__}
    return shaped(DecodedBatch, rest, completed=tuple(completed), steps=steps)


def completed_from(flat: Sequence[dict[str, Any]]) -> list[Completed]:
    """Returns the requests out of a child's answer, which has every field, and lists for tuples."""
    lists = ("ids", "token_ns", "grammar_ns")
    return [
        Completed(
            **{
                **request,
                "account": Account(**request["account"]),
                **{name: tuple(request[name]) for name in lists},
                "moves": tuple((keep, count) for keep, count in request["moves"]),
            }
        )
        for request in flat
    ]
