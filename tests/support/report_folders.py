"""Folders of synthetic runs, measurements and decodings, for the tests of the page and of comparisons."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from decode_runs import Played, decoding
from measured import arm, steady, write_measurement

from harness.backend.arm import Arm
from harness.serve.decode.record import DecodeRecorder, Decoding
from harness.serve.decode.setting import Setting

ALPHA, BETA = (
    Arm("alpha", "1.2.3", "", "alpha", ("json_schema",), "bitmask"),
    Arm("beta", "2", "", "beta", ("json_schema",), "bitmask"),
)


def write_rows(
    synthetic: ModuleType,
    folder: Path,
    arms: tuple[Arm, ...] = (ALPHA, BETA),
    cases: int = 120,
    wrong: int = 0,
    untimed: int = 0,
) -> Path:
    """Writes a run in which every arm compiles and fills every case, the later arms slower; the last arm
    accepts `wrong` invalid texts. The first `untimed` cases have no samples, as if they were taken over."""
    random = np.random.default_rng(1)
    groups = []
    for number in range(cases):
        for place, one in enumerate(arms):
            fills = random.lognormal(9 + place, 0.3, 20).astype(np.int64)
            samples = np.stack([fills, np.full(20, 700)], 1).astype("<i8").tobytes()
            bad = place == len(arms) - 1 and number < wrong
            fields: dict[str, Any] = {
                "backend": one.backend,
                "backend_version": one.version,
                "options": one.options,
                "case_id": f"{number:012x}",
            }
            fields |= {
                "compile_ns": int(10**6 * (1 + place) * random.lognormal(0, 0.2)),
                "first_fill_ns": int(fills[0]),
            }
            fields |= {"tags": ("pattern",) if number % 2 else ("type",), "valid": not bad, "accepted": True}
            groups.append([(synthetic.row(**fields), samples if number >= untimed else b"")])
    path: Path = synthetic.write_run(folder, groups, synthetic.info(arms))
    return path


def write_decoding(folder: Path, record: Decoding, finish: bool = True) -> Path:
    """Returns the record as the session writes it."""
    folder.mkdir(parents=True)
    with DecodeRecorder(folder, record.setup) as recorder:
        for child in record.children:
            recorder.child(child)
        for batch in record.batches:
            recorder.batch(batch)
        for loss in record.losses:
            recorder.loss(loss)
        if finish:
            recorder.finish("2026-11-22T01:00:00Z")
    return folder


STEPWISE = Setting("calls", batch=1, texts=2)


TEXTS = {"a": (1,) * 12, "b": (1,) * 8}


def played(noise: float = 0.001, forks: int = 4) -> Decoding:
    """Masks cost a tenth; jumping halves the passes."""
    jump = replace(STEPWISE, strategy="jump_forward")
    sides = {
        setting: {"alpha": Played(texts, 11.0, noise)}
        for batch in (1, 8)
        for setting, texts in (
            (replace(STEPWISE, batch=batch), TEXTS),
            (replace(jump, batch=batch), {name: (2,) * (len(steps) // 2) for name, steps in TEXTS.items()}),
        )
    }
    record = decoding(sides, plain=Played(TEXTS, 10.0, noise), forks=forks)
    arms = tuple(replace(recorded, version="1.2.3") for recorded in record.setup.arms)
    return replace(record, setup=replace(record.setup, arms=arms, vocabulary="tiny"))


def measured_run(synthetic: ModuleType, folder: Path, slower: float, control: float = 1.0) -> Path:
    """Returns two versions of a backend, measured; rows of both."""
    old, new = (Arm("alpha", version, "", "alpha", ("json_schema",), "bitmask") for version in ("1", "2"))
    write_rows(synthetic, folder, (old, new), cases=4)
    arms = {
        arm("alpha==1", "reference"): steady(1.0),
        arm("alpha==1 (again)", "a/a"): steady(control, seed=2),
        arm("alpha==2", version="2"): steady(slower, seed=1),
    }
    write_measurement(folder, arms, forks=8)
    return folder


def write_kernels(folder: Path, evil: str = "", times: bool = True, finish: bool = True) -> Path:
    """Returns a record of two kernels and a copy, in the lines of `grammarbench measure kernels`."""
    names = (f"alpha/torch{evil}", "plain/masked_fill", "copy")
    lines: list[dict[str, Any]] = [
        {
            "kind": "run",
            "format": 1,
            "started": "2026-11-22T01:00:00Z",
            "device": "cpu",
            "on": {"name": "", "torch": "2.13"},
        }
        | {"machine": {"cpu_model_name": f"CPU{evil}", "cpus_usable": 2}, "backends": []}
    ]
    lines += [{"kind": "kernel", "kernel": name, "problem": ""} for name in names[:2]]
    probe = {"kind": "probe", "dtype": "float32", "documented": "", "text": evil}
    lines += [
        probe | {"kernel": names[0], "probe": "a_row_is_left_out", "outcome": outcome}
        for outcome in ("passed", "failed", "refused")
    ]
    for place, name in enumerate(names if times else ()):
        for vocabulary in (1000, 2000):
            for batch in (8, 1):
                point = {
                    "threads": 1,
                    "dtype": "float32",
                    "vocabulary": vocabulary,
                    "share": 0.5,
                    "batch": batch,
                }
                point |= {"outcome": "ok", "text": ""}
                cost = 1000 * (place + 1) * batch * vocabulary // 1000
                lines.append(
                    {
                        "kind": "time",
                        "kernel": name,
                        "bytes": 4096 * batch * vocabulary,
                        "calls": 1,
                        "totals_ns": [cost, cost, cost * 9],
                    }
                    | point
                )
    lines += [{"kind": "end"}] if finish else []
    folder.mkdir(parents=True)
    (folder / "kernels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
