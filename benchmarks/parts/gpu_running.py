"""Where the records of a cell lie while it runs and behind it, and what is kept of one that came to no end.

A running cell's records lie inside DIR, so that they are there wherever DIR is brought to. When it has ended,
and its result is stored, they are put away into DIR-records."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpu_plan import Cell
from gpu_store import failed, held, stored

from harness.errors import BadInput
from harness.rows.folder import now
from harness.whole_files import write_whole

RUNNING = "running"
"""The folder in DIR with the records of the cell that runs, in a folder of the cell's name."""
SO_FAR = "so_far.json"
"""What a cell of a kind other than kernels has measured so far, in its folder of records; of `decode` only
beside a large record."""
PLANNED = "planned"
"""The field of SO_FAR that says how many runs, or batches of a floor, the cell has when it is whole."""
OPEN_STEPS = "open_steps.json"
"""The steps of a smoke that have not ended, the one that runs first, in its folder of records."""
CUT_OFF = "the call was killed"
"""Why there is no more of a cell whose script could not say so itself."""
COMPILED = "TORCH_EXTENSIONS_DIR"
"""The variable that says where torch keeps what nvcc compiled."""


def running(out: Path, cell: Cell) -> Path:
    """Returns the folder of the cell's records while it runs."""
    return out / RUNNING / cell.name


def records(out: Path, cell: Cell) -> Path:
    """Returns the folder of the cell's records when it has ended."""
    return beside(out) / cell.name


def beside(out: Path) -> Path:
    """Returns DIR-records, whatever way DIR is named in; also as `.`."""
    whole = out.resolve()
    return whole.with_name(f"{whole.name}-records")


def make_way(out: Path, cell: Cell) -> None:
    """Removes the records of an earlier try."""
    for folder in (running(out, cell), records(out, cell)):
        shutil.rmtree(folder, ignore_errors=True)


def put_away(out: Path, cell: Cell) -> None:
    """Moves the records of a cell that has ended out of DIR. Where they cannot be moved, as to a disk that is
    full, they are removed: what is kept of them is stored, and they must not stop the next cell."""
    if running(out, cell).exists():
        try:
            records(out, cell).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(running(out, cell), records(out, cell))
        except (OSError, shutil.Error):
            shutil.rmtree(running(out, cell), ignore_errors=True)
    with suppress(OSError):
        (out / RUNNING).rmdir()


def salvage(out: Path) -> list[str]:
    """Stores what the folder has of cells that ran when an earlier call was killed, and puts their records
    away; returns the names of those that are stored now, which are not those of which more is stored. How
    long a cell ran is not known then. What is not a cell's is left alone."""
    found = []
    for store in stored(out).values():
        for cell in store.plan.cells(store.part):
            if not running(out, cell).is_dir():
                continue
            result = rest_of(cell, running(out, cell), CUT_OFF)
            if not failed(result) and store.add(cell.name, result | {"at": now()}):
                found.append(cell.name)
            shutil.rmtree(records(out, cell), ignore_errors=True)
            put_away(out, cell)
    return found


def keeper(folder: Path, about: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Returns what writes down how far a cell is, in its folder of records, with what is known about it."""
    folder.mkdir(parents=True, exist_ok=True)
    return lambda so_far: write_whole(folder / SO_FAR, json.dumps(so_far | about))


def rest_of(cell: Cell, folder: Path, why: str) -> dict[str, Any]:
    """Returns what is kept of a cell that came to no end, out of what stands in its folder of records: the
    whole where all was measured by then, and `error` where that is nothing."""
    if cell.kind == "decode":
        from gpu_decode import salvaged

        return salvaged(folder, why)
    kept: dict[str, Any] = {}
    if cell.kind in ("times", "probes"):
        from gpu_kernels import stored_cell

        with suppress(BadInput):
            kept = stored_cell(folder)
    else:
        with suppress(OSError, ValueError):
            kept = json.loads((folder / SO_FAR).read_text("utf-8"))
    planned = kept.pop(PLANNED, math.inf)
    if not held(kept):
        return {"error": why}
    if held(kept) >= planned:
        return kept
    what = {"floor": "batches", "times": "times", "probes": "probes"}.get(cell.kind, "runs")
    return kept | {"partial": f"{why}; {held(kept)} {what} are stored"}


def open_steps(folder: Path) -> list[str]:
    """Returns the steps of a smoke that was killed which had not ended, the one that ran first; none where
    none had begun."""
    with suppress(OSError, ValueError):
        steps: list[str] = json.loads((folder / OPEN_STEPS).read_text("utf-8"))
        return steps
    return []


def compiles_into(out: Path) -> dict[str, str]:
    """Returns the environment of a cell, in which torch keeps what nvcc compiled in a folder of ours, unless
    the user has named one. A compile that was killed leaves a lock there, for which every later one would
    wait without end; it is removed, because only one cell runs at a time."""
    if COMPILED in os.environ:
        return dict(os.environ)
    folder = beside(out) / "compiled"
    for lock in folder.glob("*/lock"):
        lock.unlink(missing_ok=True)
    return os.environ | {COMPILED: str(folder)}
