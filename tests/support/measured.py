"""Measurements whose truth is known, written by the engine's own recorder."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from harness.measure.estimate import Comparison, conclude
from harness.measure.figures import Figures
from harness.measure.protocol import AGAIN, PROFILES, MeasuredArm, Role
from harness.measure.record import Measurement, MeasureRecorder, Slot, Trace, read_measurement

FILLS = (2000.0, 3000.0, 9000.0, 2500.0)
"""Nanoseconds of the fills of a text of four tokens, on an arm of factor 1."""

Where = Callable[[str, str, int, int], bool]
"""Returns whether something holds for an arm, a case, a fork and a round."""

Factor = Callable[[str, int, int], float]
"""Of a metric (`compile`, `fill`, `accept`), fork and round: how much slower than FILLS an arm is."""


def steady(factor: float, noise: float = 0.002, seed: int = 0) -> Factor:
    """Returns a factor that is the same everywhere, but for noise of so much between forks and half as much
    between rounds."""

    def of(metric: str, fork: int, number: int) -> float:
        between = random.Random(f"{seed} {metric} {fork}").gauss(0, noise)
        within = random.Random(f"{seed} {metric} {fork} {number}").gauss(0, noise / 2)
        return factor * math.exp(between + within)

    return of


def concluded(folder: Path) -> list[Comparison]:
    """Returns the comparisons of a stored measurement."""
    return conclude(Figures(read_measurement(folder)))


def arm(
    name: str, role: Role = "arm", backend: str = "", version: str = "1", options: str = ""
) -> MeasuredArm:
    """Returns an arm of that name."""
    return MeasuredArm(
        name, name, backend or name.removesuffix(AGAIN).partition("==")[0], version, options, role, "python"
    )


def write_measurement(
    folder: Path,
    arms: Mapping[MeasuredArm, Factor],
    *,
    forks: int = 5,
    confirming: Sequence[int] = (),
    families: Sequence[str] = ("speed",),
    cases: int = 2,
    unsolved: Mapping[str, Mapping[str, str]] | None = None,
    run: str = "run",
    started: str = "2026-11-21T12:00:00+00:00",
    hardware: str = "h" * 12,
    workload: str = "w" * 12,
    vocabulary: str = "probe",
    finish: bool = True,
    counts: Mapping[str, Mapping[str, object]] | None = None,
    left_out: Where = lambda *_: False,
    warm: Where = lambda *_: False,
    lost: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
) -> None:
    """Four rounds of three passes in each fork; the reference's copy is one of the arms.

    `counts`: by arm, what differs from the usual. `left_out`: where there is no slot, and `warm`, where it
    has no fresh compile. `lost`: by arm, the case in which it was lost. `texts`: by case, the digest of
    another text than the usual.
    """
    unsolved = unsolved or {}
    traces = []
    for family in families:
        for number in range(cases):
            case = f"{family}{number}"
            solved = tuple(
                made.name for made in arms if case not in unsolved.get(made.name.removesuffix(AGAIN), {})
            )
            digest = (texts or {}).get(case, "d" * 64)
            traces.append(Trace(0, family, family, case, f"case {case}", 0, solved, digest))
    text = {name: dict(why) for name, why in unsolved.items()}
    measurement = Measurement(
        run,
        started,
        "quick",
        vocabulary,
        tuple(arms),
        tuple(traces),
        text,
        hardware,
        workload,
        {"python": "3.11.7"},
        None,
        PROFILES["quick"].forks,
    )
    folder.mkdir(parents=True, exist_ok=True)
    with MeasureRecorder(folder, measurement) as recorder:
        for fork in range(forks + len(confirming)):
            for number in range(4):
                for trace in traces:
                    for place, (made, factor) in enumerate(arms.items()):
                        where = made.name, trace.case_id, fork, number
                        if made.name in trace.solved_by and not left_out(*where):
                            fresh = not warm(*where)
                            line, figures = slot(
                                fork, number, place, made.name, trace.case_id, factor, fresh=fresh
                            )
                            recorder.append("slot", line, figures)
            recorder.append(
                "fork",
                {"fork": fork, "confirming": fork >= forks, "load_s": 1.0, "measure_s": 1.0, "clock_ns": {}},
            )
        for name, case in (lost or {}).items():
            recorder.append("lost", {"arm": name, "case_id": case, "fork": 1, "text": "killed"})
        for trace in traces:
            for made in arms:
                if made.role != "a/a" and made.name in trace.solved_by:
                    usual = {
                        "masks": 4,
                        "masks_sha256": "00",
                        "allowed": 9,
                        "forced_bytes": 3,
                        "serialized_bytes": 1000,
                    }
                    changed = (counts or {}).get(made.name, {})
                    recorder.append(
                        "counts", {"arm": made.name, "case_id": trace.case_id, **usual, **changed}
                    )
        if finish:
            recorder.finish("2026-11-21T12:05:00+00:00")


def slot(
    fork: int, number: int, place: int, arm: str, case: str, factor: Factor, *, fresh: bool = True
) -> tuple[dict[str, object], bytes]:
    """One slot's line and figures, as `MeasureHandler.round` answers them."""
    fills = np.array(FILLS) * factor("fill", fork, number)
    accepts = np.full(len(FILLS), 800.0) * factor("accept", fork, number)
    steps = np.stack([fills, accepts], axis=1)
    sums = np.tile(steps.sum(axis=0) * 1.5, (3, 1))
    of_compile: list[Any] = [[5e5 * factor("compile", fork, number), 900.0], (steps * 3).ravel()]
    parts = [*(of_compile if fresh else []), [700.0], steps.ravel(), sums.ravel()]
    figures = np.rint(np.concatenate(parts)).astype("<i8").tobytes()
    line = asdict(
        Slot(fork, number, 0, place, arm, case, fresh, 3, len(FILLS), 10**7, 10**7, 0, 0.0, 0.5, (0, 0))
    )
    del line["figures"]
    return line, figures
