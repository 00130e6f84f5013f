"""Decoding on disk: `decode.jsonl` and `decode.i64` in one folder. Appended to, never rewritten.

The first line says what is measured; then come a line per child (one arm in one fork), per run of a setting, and per loss; then the end.
A line names its slice of `decode.i64`, little-endian int64s that reach the file before it. Nothing here is a mean or a percentile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from harness.decode.setting import Setting
from harness.errors import BadInput
from harness.loop.outcome import STEP, Account, Completed
from harness.measure.appending import Appender, Integers, named_figures, read_figures, whole_lines
from harness.measure.protocol import MeasuredArm

PROTOCOL = 1
"""Of the files and of how is measured; a change that makes two records incomparable raises it."""

LINES, FIGURES = "decode.jsonl", "decode.i64"

Role = Literal["constrained", "none"]
Right = Literal["valid", "invalid", "unjudged"]
Whose = Literal["backend", "not_offered", "harness_error"]


@dataclass(frozen=True)
class Setup:
    """The first line."""

    run: str
    started: str
    harness: str
    argv: tuple[str, ...]
    profile: str
    vocabulary: str
    sha256: str
    """Of the vocabulary."""
    model: str
    """As it was asked for; what it is, each child's `model` says."""
    device: str
    dtype: str | None
    forks: int
    rounds: int
    """Of each fork, besides the cold one."""
    arms: tuple[MeasuredArm, ...]
    settings: tuple[Setting, ...]
    machine: dict[str, Any]
    hardware: str
    mechanisms: tuple[dict[str, Any], ...] = ()
    """Of the closing experiment: `name`, and the settings `off` and `on` by their places in `settings`."""
    protocol: int = PROTOCOL


@dataclass(frozen=True)
class Child:
    """A fresh process of one arm: the libraries and the vocabulary were loaded before it was forked, the model is its own."""

    fork: int
    place: int
    """Of the arm in the fork's order."""
    arm: str
    load_s: float
    """Of libraries, vocabulary and adapter; 0 where they were there from the fork before."""
    build_s: float
    """Of the model."""
    threads: int
    """Of the model, on a CPU."""
    model: dict[str, Any]
    """`Model.describe()`."""
    workloads: dict[str, list[dict[str, Any]]]
    """By name, of each text: `name`, `dialect` (or null), `tokens` (end-of-sequence included), `bytes`, `grammar_bytes`."""


@dataclass(frozen=True)
class Judged:
    """One request's outcome, and what the judge says of its text."""

    completed: Completed
    right: Right
    """Is the text valid by its grammar's own judge? `unjudged`: nobody said, there is no grammar, or it did not come to its end."""
    as_replayed: bool | None
    """Is it, byte for byte, the text that was to be replayed? None where nothing was replayed."""


@dataclass(frozen=True)
class Batch:
    """One run of one setting: all of its requests, served."""

    fork: int
    round: int
    """From 0; the cold run is round 0, where the grammars of a setting's load were not compiled before in this process."""
    place: int
    """In the round's order."""
    arm: str
    role: Role
    setting: int
    """Its place in `Setup.settings`; for the unconstrained run that of the first setting with this load (`Setting.plain`)."""
    wall_ns: int
    passes: int
    peak_bytes: int
    """Device memory at its highest; on a CPU the process's resident memory."""
    counts: dict[str, int]
    completed: tuple[Judged, ...]
    steps: Integers
    """Shape `[passes, len(STEP)]`."""

    @property
    def is_cold(self) -> bool:
        """Was this the first run of its kind in its process? Of such runs only TTFT and compiles mean something."""
        return self.round == 0


@dataclass(frozen=True)
class Loss:
    """A setting that was not measured on an arm, or not any further."""

    fork: int
    arm: str
    setting: int
    whose: Whose
    """`backend`: its process was lost, or hung. `not_offered`: the backend has no such mechanism. `harness_error`: it was us."""
    why: str


@dataclass(frozen=True)
class Decoding:
    """A record as read."""

    folder: Path
    setup: Setup
    children: tuple[Child, ...]
    batches: tuple[Batch, ...]
    losses: tuple[Loss, ...]
    end: dict[str, Any] | None

    @property
    def is_complete(self) -> bool:
        """Did it come to its end? What did not is shown, and gates nothing."""
        return self.end is not None

    @property
    def model(self) -> dict[str, Any]:
        """What the model is; empty if no child came so far."""
        return self.children[0].model if self.children else {}

    @property
    def workloads(self) -> dict[str, list[dict[str, Any]]]:
        """See `Child.workloads`."""
        return self.children[0].workloads if self.children else {}

    def setting(self, batch: Batch) -> Setting:
        """Of the run."""
        return self.setup.settings[batch.setting]


class Recorder(Appender):
    """Appends the lines of a decoding."""

    def __init__(self, folder: Path, setup: Setup) -> None:
        super().__init__(folder / LINES, folder / FIGURES, "setup", asdict(setup))

    def child(self, child: Child) -> None:
        """A process is ready."""
        self.append("child", asdict(child), None)

    def loss(self, loss: Loss) -> None:
        """A setting is not measured."""
        self.append("loss", asdict(loss), None)

    def batch(self, batch: Batch) -> None:
        """A run of a setting. Its slice holds the steps, then the ids and the times of each request's tokens."""
        parts = [batch.steps.ravel()]
        completed = []
        for each in batch.completed:
            done = each.completed
            parts += [np.array(done.ids, np.int64), np.array(done.token_ns, np.int64)]
            flat = asdict(done) | {"ids": len(done.ids), "token_ns": len(done.token_ns)}
            completed.append(flat | {"right": each.right, "as_replayed": each.as_replayed})
        line = {each.name: getattr(batch, each.name) for each in fields(Batch)}
        self.append("batch", line | {"completed": completed, "steps": len(batch.steps)}, np.concatenate(parts).astype("<i8").tobytes())


def has_decoding(folder: Path) -> bool:
    """Was anything decoded in this folder?"""
    return (folder / LINES).is_file()


def read_decoding(folder: Path) -> Decoding:
    """All of it. Raises BadInput."""
    if not has_decoding(folder):
        raise BadInput(f"{folder}: no decoding here (no {LINES}); `grammarbench decode --out {folder}` makes one")
    figures = read_figures(folder / FIGURES)
    setup: Setup | None = None
    children, batches, losses, end = [], [], [], None
    for number, line in whole_lines(folder / LINES):
        try:
            kind = line.pop("kind")
            if number == 1:
                if line.get("protocol") != PROTOCOL:
                    raise BadInput(f"{folder}: decoded by protocol {line.get('protocol')}, this version reads {PROTOCOL}; decode anew")
                setup = _setup(line)
            elif kind == "child":
                children.append(Child(**line))
            elif kind == "batch":
                batches.append(_batch(line, figures))
            elif kind == "loss":
                losses.append(Loss(**line))
            elif kind == "end":
                end = line
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadInput(f"{folder / LINES}:{number}: not a line of a decoding ({error!r}); the file was changed or damaged") from error
    if setup is None:
        raise BadInput(f"{folder / LINES}: empty; the decoding did not start")
    return Decoding(folder, setup, tuple(children), tuple(batches), tuple(losses), end)


def _setup(line: dict[str, Any]) -> Setup:
    arms = tuple(MeasuredArm(**each) for each in line["arms"])
    settings = tuple(map(Setting.from_json, line["settings"]))
    return Setup(**{**line, "argv": tuple(line["argv"]), "mechanisms": tuple(line["mechanisms"]), "arms": arms, "settings": settings})


def _batch(line: dict[str, Any], figures: Integers) -> Batch:
    mine = named_figures(line, figures)
    if line["role"] not in get_args(Role):
        raise ValueError(f"the role {line['role']}")
    at = line["steps"] * len(STEP)
    steps = np.asarray(mine[:at]).reshape(-1, len(STEP))
    completed = []
    for each in line["completed"]:
        right, as_replayed, ids = each.pop("right"), each.pop("as_replayed"), each["ids"]
        whole = at + ids
        token_ns = mine[whole : whole + each["token_ns"]]
        each |= {"ids": tuple(mine[at:whole].tolist()), "token_ns": tuple(token_ns.tolist()), "account": Account(**each["account"])}
        at = whole + len(token_ns)
        completed.append(Judged(Completed(**{**each, "grammar_ns": tuple(each["grammar_ns"])}), right, as_replayed))
    return Batch(**{**line, "completed": tuple(completed), "steps": steps})


def completed_from(flat: Sequence[dict[str, Any]]) -> list[Completed]:
    """The requests as a child sends them: every field, lists for tuples."""
    lists = ("ids", "token_ns", "grammar_ns")
    return [Completed(**{**each, "account": Account(**each["account"]), **{name: tuple(each[name]) for name in lists}}) for each in flat]
