"""Two versions of a backend, measured and walked, for the tests of comparisons and exports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from measured import arm, steady, write_measurement
from synthetic import info, row

from harness.backend.arm import Arm
from harness.rows.row import RunInfo
from harness.rows.writer import Writer

OLD = Arm("toy", "1", "", "toy", ("regex",), "bitmask")


NEW = replace(OLD, version="2")


REFERENCE, COPY, HEAD = (
    arm("toy==1", "reference", "toy", "1"),
    arm("toy==1 (again)", "a/a", "toy", "1"),
    arm("toy==2", "arm", "toy", "2"),
)


def write_run(
    folder: Path, arms: dict[Arm, dict[str, Any]], *, cases: int = 2, finish: bool = True, **fields: Any
) -> Path:
    """Writes two cases, or one, on every arm, all right but for what is said of an arm's last case; `fields`
    of the first line may be other ones."""
    folder.mkdir(parents=True, exist_ok=True)
    suites = {"first": {"version": "1", "sha256": "0" * 64, "cases": 2, "instances": 2}}
    header: RunInfo = info(tuple(arms), **({"suites": suites} | fields))
    with Writer(folder, header) as writer:
        for one, changed in arms.items():
            who = {"backend": one.backend, "backend_version": one.version, "options": one.options}
            for number, name in enumerate(("one", "two")[:cases]):
                of_case = changed if number == cases - 1 else {}
                writer.append([(row(**who, case=name, case_id=f"{number}" * 12, **of_case), b"")])
        if finish:
            writer.finish("2026-11-21T12:00:00Z")
    return folder


def measured_run(folder: Path, head: float, changed: dict[str, Any] | None = None, **options: Any) -> Path:
    write_run(folder, {OLD: {}, NEW: changed or {}})
    arms = {
        REFERENCE: steady(1, seed=1),
        HEAD: steady(head, seed=2),
        COPY: steady(options.pop("copy", 1), seed=3),
    }
    write_measurement(folder, arms, vocabulary="tiny", **options)  # that of the rows
    return folder
