"""Decode records whose truth is known: requests with times written by hand, and a loop that is played, not
run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from harness.measure.protocol import MeasuredArm
from harness.serve.decode.record import Child, DecodedBatch, DecodeSetup, Decoding, Judged, Loss
from harness.serve.decode.setting import Setting
from harness.serve.requests.latency import OBJECTIVES
from harness.serve.requests.words import Role
from harness.walk.loop.outcome import STEP, Account, Completed

MS = 1_000_000


def request(
    name: str = "a",
    at: Sequence[float] = (20, 30),
    *,
    arrived: float = 0,
    done: float | None = None,
    **other: Any,
) -> Completed:
    """Stepwise, one id at each of these milliseconds; whatever else is given takes its place."""
    account = Account(sampled=len(at), passes=len(at))
    usual: dict[str, Any] = {
        "end": "end_of_sequence",
        "ids": tuple(range(len(at))),
        "prompt": 4,
        "account": account,
        "admitted_ns": round(arrived * MS),
        "compile_state": "hit",
    }
    last = at[-1] if at else arrived
    return Completed(
        name=name,
        arrived_ns=round(arrived * MS),
        token_ns=tuple(round(ms * MS) for ms in at),
        done_ns=round((last if done is None else done) * MS),
        **usual | other,
    )


def judged(completed: Completed, right: Any = "valid", as_replayed: bool | None = True) -> Judged:
    return Judged(completed, right, as_replayed)


def step(rows: int, fed: int, wall_ns: int, **parts: int) -> tuple[int, ...]:
    """One row of STEP; the forward pass takes what is not said."""
    values = {
        "rows": rows,
        "fed": fed,
        "wall_ns": wall_ns,
        "forward_ns": wall_ns - sum(parts.values()),
        **parts,
    }
    return tuple(values.get(name, 0) for name in STEP)


def table(steps: Sequence[tuple[int, ...]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(steps, np.int64).reshape(-1, len(STEP))


Texts = Mapping[str, Sequence[int]]
"""For each request how many ids each of its passes brings: one is sampled, the others are written behind
it."""


@dataclass(frozen=True)
class Played:
    """A side of the loop as it is played."""

    texts: Texts
    pass_ms: float = 10.0
    noise: float = 0.0
    """The standard deviation between forks of a run, on the logarithmic scale."""
    broken: tuple[str, ...] = ()
    """Requests that the backend refuses at their last token."""
    fallback: tuple[str, ...] = ()


def play(side: Played, arm: str, role: Role, place: int, fork: int, number: int, seed: int) -> DecodedBatch:
    """One run: all rows from the start, each pass as long as the others, prompts of 4 tokens fed in the first
    one."""
    length = (
        side.pass_ms * math.exp(random.Random(f"{seed} {arm} {place} {role} {fork}").gauss(0, side.noise))
        if side.noise
        else side.pass_ms
    )
    length_ns = round(length * MS)
    passes = max(len(text) for text in side.texts.values())
    requests = []
    for name, brought in side.texts.items():
        times = tuple((index + 1) * length_ns for index, count in enumerate(brought) for _ in range(count))
        forced = sum(brought) - len(brought)
        done = request(
            name, (), ids=tuple(range(len(times))), account=Account(len(brought), forced, passes=len(brought))
        )
        done = replace(done, token_ns=times, done_ns=times[-1], compile_state="" if role == "none" else "hit")
        if name in side.broken:
            done = replace(done, end="refused", why="expected a quote", stopped_at=len(times) - 1)
        if name in side.fallback:
            done = replace(done, fallback="timeout")
        whole = name not in side.broken
        requests.append(Judged(done, "valid" if whole and role != "none" else "unjudged", whole))
    steps = []
    for index in range(passes):
        rows = [text for text in side.texts.values() if len(text) > index]
        steps.append(step(len(rows), sum(4 if not index else row[index - 1] for row in rows), length_ns))
    return DecodedBatch(
        fork,
        number,
        0,
        arm,
        role,
        place,
        passes * length_ns,
        passes,
        2**20,
        {},
        tuple(requests),
        table(steps),
        captured=0,
        repeated=0,
    )


def arm(name: str, role: str = "arm") -> MeasuredArm:
    return MeasuredArm(name, name, name, "1", "", role, "python")  # type: ignore[arg-type]


def decoding(
    settings: Mapping[Setting, Mapping[str, Played]],
    *,
    plain: Played | None = None,
    arms: Sequence[MeasuredArm] = (),
    forks: int = 5,
    rounds: int = 2,
    mechanisms: Sequence[tuple[str, Setting, Setting]] = (),
    losses: Sequence[Loss] = (),
    seed: int = 0,
) -> Decoding:
    """Returns a decoding in which each arm plays each setting, in warm rounds and a cold one; `plain` is
    beside every load."""
    every = tuple(settings)
    names = list(dict.fromkeys(name for sides in settings.values() for name in sides))
    known = tuple(arms) or tuple(arm(name) for name in names)
    batches = []
    for fork in range(forks):
        for number in range(rounds + 1):
            for name in names:
                loads: set[Setting] = set()
                for place, (setting, sides) in enumerate(settings.items()):
                    if plain is not None and setting.plain not in loads:
                        loads.add(setting.plain)
                        batches.append(play(plain, name, "none", place, fork, number, seed))
                    if name in sides:
                        batches.append(play(sides[name], name, "constrained", place, fork, number, seed))
    switches = tuple(
        {"name": name, "off": every.index(off), "on": every.index(on)} for name, off, on in mechanisms
    )
    sizes = {load.workload: [{"name": "a", "tokens": 6}, {"name": "b", "tokens": 4}] for load in every}
    setup = DecodeSetup(
        "run",
        "2026-11-22",
        "0",
        (),
        "quick",
        "tekken",
        "0" * 64,
        "tiny",
        "cpu",
        None,
        forks,
        rounds,
        known,
        every,
        {},
        "h",
        switches,
        OBJECTIVES,
    )
    children = (Child(0, 0, names[0], 1.0, 0.1, 1, {"name": "tiny", "kind": "shape"}, sizes),)
    return Decoding(Path("record"), setup, children, tuple(batches), tuple(losses), {})


def is_caught(check: Callable[[], None], module: ModuleType | type, name: str, wrong: object) -> bool:
    """Does the check, which holds as things are, fail where this wrong definition stands in for the right
    one?"""
    check()
    with patch.object(module, name, wrong):
        try:
            check()
        except AssertionError:
            return True
    return False
