"""What a GPU makes of it: mask kernels, decoding, cold grammars and the share of structured requests.

    python benchmarks/gpu.py --out DIR [--device cuda|cpu] [--within 560] [kernels decode=300 cold share]
    python benchmarks/gpu.py --out DIR [--seconds 480] --cells floor-1b,decode-1b-1-fork-1
    python benchmarks/gpu.py --out DIR smoke
    python benchmarks/gpu.py --out DIR --show

A part has --seconds, or those that stand behind it. It is made of cells (parts/gpu_plan.py). A cell is
measured in a process of its own and stored in DIR/PART.json as soon as it is done; a part begins no cell that
is not thought to end within its seconds (but for its first one, which is tried in any case), tells one that
runs 45 s past them to end, and kills it 15 s later. With --within the whole call ends within so many seconds,
and no cell begins that is not thought to end by then, the first one included. What a killed cell had measured
is stored as a part of it; if this script itself is killed, the next call does so. The same command goes on
where the last one stopped: first the cells that were never tried, then those that failed, then those of which
a part is stored, because they were killed or lost a setting by a fault of ours. --cells measures these alone,
whether or not they were measured before: the parts in the order in which cells of theirs are named, and
within each part the cells in theirs. A line names each that is not begun. DIR/gpu.md is the page of all that
is stored, written after each part. The records of `grammarbench decode` and `measure kernels` behind the
cells are in DIR-records, those of the cell that runs in DIR/running.

On a GPU the part `smoke` comes first (parts/gpu_smoke.py): what fails there ends the script before anything
is spent. It tries what the cells that are to run need, and stores nothing; what takes too long is told
and ends nothing. `smoke=0` leaves it out, with --anyway also a failure is only told, and `smoke` alone tries
everything and makes nothing else. The shapes are 1b and 8b in bfloat16; on a CPU the shape is
tiny in float32, which shows that the script works, and of speed nothing is judged. docs/gpu.md says how to
bring this to a machine without a network. Exit code 1: a figure is worse than what was asked; 2: wrong input,
or the smoke failed; 3: a part is not complete, or `smoke` alone did not come to its end.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script
from gpu_alone import alone
from gpu_machine import check_backend, device_here
from gpu_plan import COMPILE_SECONDS, PARTS, SMOKE, SMOKE_SECONDS, Cell, Plan, plan_of
from gpu_process import KILLED, POLITE, answer_of
from gpu_report import is_worse, page, summary
from gpu_running import compiles_into, make_way, open_steps, put_away, rest_of, running, salvage
from gpu_store import Store, failed, opened, refuse_another, stored, whole

from harness.backend.process.fork import die_with
from harness.cli.values import not_negative
from harness.errors import GATE_FAILED, INCOMPLETE, OK, BadInput
from harness.rows.folder import locked, now
from harness.whole_files import write_whole

SECONDS = 480.0
GRACE = 45.0
"""Seconds after a part's end when a cell that still runs is told to end."""
SMOKE_GRACE = 15.0
"""Seconds that the last step of a smoke has beyond its time."""
PAGE = 5.0
"""Seconds that --within leaves for the page and the end of the script."""
BEGAN = time.monotonic()
"""When this call began."""

# ------------------------------------------------------------------------------------ many cells, in a budget


def run_part(
    part: str,
    plan: Plan,
    store: Store,
    out: Path,
    seconds: float,
    began: float | None = None,
    only: Sequence[Cell] = (),
    ends: float = math.inf,
) -> None:
    """Measures the part's open cells, or those of `only`, for so many seconds, and stores each as it ends. A
    first cell is tried however long it is thought to take, unless that is beyond `ends`, the moment at which
    a cell is told to end in any case."""
    deadline = (time.monotonic() if began is None else began) + seconds
    cells = plan.cells(part)
    tried = store.cells
    begun = [cell for cell in cells if cell.name in tried and not whole(tried[cell.name])]
    waiting = [cell for cell in cells if cell.name not in tried]
    waiting += sorted(begun, key=lambda cell: not failed(tried[cell.name]))
    done = len(cells) - len(waiting)
    waiting = list(only) or waiting
    print(f"{part}: {done} of {len(cells)} cells are stored", flush=True)
    store.save()  # which says of what device and versions a record is that is all that is left of a cell
    first = True
    for cell in waiting:
        left = min(deadline, ends) - time.monotonic()
        thought = expected(cell, cells, tried)
        if first and part == "kernels":
            thought += COMPILE_SECONDS
        if left < thought and not (first and time.monotonic() + thought <= ends):
            if only or first:
                print(
                    f"  {cell.name} not begun: thought to take {thought:.0f} s, {max(left, 0):.0f} s left",
                    flush=True,
                )
            continue
        first = False
        print(f"  {cell.name} ({left:.0f} s left) ...", flush=True)
        start = time.monotonic()
        result = in_process(cell, store.device, out, min(max(left, 0) + GRACE, ends - start))
        took = round(time.monotonic() - start, 1)
        if failed(result):
            result = rest_of(cell, running(out, cell), result["error"])
        store.add(cell.name, result | {"seconds": took, "at": now()})
        put_away(out, cell)
        if failed(result):
            print(f"    failed: {result['error']}", flush=True)
        elif not whole(result):
            print(f"    partial: {result['partial']}", flush=True)


def expected(cell: Cell, cells: Sequence[Cell], tried: Mapping[str, dict[str, Any]]) -> float:
    """Returns how many seconds the cell will take: a tenth more than the longest one like it that was
    measured, or else the plan's estimate; and in any case a tenth more than one like it that came to no end
    had taken by then, where that is known."""
    alike = [tried[other.name] for other in cells if other.like == cell.like and other.name in tried]
    ended: list[float] = [one["seconds"] for one in alike if whole(one) and "seconds" in one]
    unended: list[float] = [one.get("seconds", 0.0) for one in alike if not whole(one)]
    return max([1.1 * max(ended) if ended else cell.seconds, *(1.1 * seconds for seconds in unended)])


def in_process(
    cell: Cell, device: str, out: Path, seconds: float, needing: Sequence[Cell] = ()
) -> dict[str, Any]:
    """Measures the cell in a process of its own, whose end gives the device's memory back; returns its
    result, or `error`. The records of an earlier try are gone before it begins. A smoke tries what the cells
    `needing` need."""
    make_way(out, cell)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, __file__, "--out", str(out), "--device", device]
        command += ["--seconds", str(cell.seconds), "--cell", cell.name, "--answer", str(answer)]
        command += ["--parent", str(os.getpid()), "--cells", ",".join(other.name for other in needing)]
        return answer_of(subprocess.Popen(command, env=compiles_into(out)), answer, seconds)


# ------------------------------------------------------------------------------------------------- command


@script
def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is asked for, and returns the exit code."""
    parser = argparse.ArgumentParser(
        usage="python benchmarks/gpu.py --out DIR [--device cuda|cpu] [--seconds S] [--within S] [--show] "
        "[PART[=S] ...]"
    )
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("--seconds", type=not_negative, default=SECONDS)
    parser.add_argument(
        "--within", type=not_negative, default=math.inf, help="the whole call ends within so many seconds"
    )
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--anyway", action="store_true", help="measure also where the smoke fails")
    parser.add_argument(
        "--cells",
        default="",
        metavar="NAME,...",
        help="these cells alone, anew: the parts in the order in which cells of theirs are named, and within "
        "each part the cells in theirs; where parts are named too, each cell is of one of them",
    )
    parser.add_argument("--cell", help=argparse.SUPPRESS)  # what a process of its own is to do
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    wanted = parser.parse_intermixed_args(arguments)
    if wanted.cell:
        if wanted.parent:
            die_with(wanted.parent)  # however it ends: what runs on would disturb the next call
        plan = plan_of(wanted.device)
        known = {cell.name: cell for part in PARTS for cell in plan.cells(part)}
        cell = known.get(wanted.cell) or Cell(SMOKE, "smoke", wanted.seconds)
        if cell.kind == "smoke":
            plan = plan.needed_by(known[name] for name in wanted.cells.split(",") if name)
        alone(cell, plan, wanted.device, wanted.out, wanted.answer)
        return OK
    parts = budgets(wanted.parts or list(PARTS), wanted.seconds)
    tried = parts.pop(SMOKE, None)
    only_tries = bool(tried) and not parts
    if tried == 0 and not parts:
        parts = dict.fromkeys(PARTS, wanted.seconds)
    names = [name for name in wanted.cells.split(",") if name]
    ends = BEGAN + wanted.within - POLITE - PAGE
    all_tried = wanted.show or measure(parts, wanted.out, wanted.device, names, tried, ends, wanted.anyway)
    if only_tries:
        return OK if all_tried else INCOMPLETE
    return show(wanted.out, list(parts))


def budgets(asked: Sequence[str], usual: float) -> dict[str, float]:
    """Returns the parts, and for how many seconds each is measured: those behind its name (`decode=300`), or
    the usual ones. Raises BadInput."""
    found = {}
    for one in asked:
        part, has, seconds = one.partition("=")
        if part not in (*PARTS, SMOKE):
            raise BadInput(f'there is no part "{part}"; name {", ".join(PARTS)}, or none for all')
        if has and not seconds.isdecimal():
            raise BadInput(f'"{one}": behind the = stands a number of seconds, as in {part}=300')
        found[part] = float(seconds) if has else SMOKE_SECONDS if part == SMOKE else usual
    return found


def measure(
    parts: Mapping[str, float],
    out: Path,
    device: str | None,
    names: Sequence[str] = (),
    tried: float | None = None,
    ends: float = math.inf,
    anyway: bool = False,
) -> bool:
    """Measures the parts, each for its seconds and none beyond `ends`; where cells are named, only those, by
    parts in the order in which these are first met among them. Before that, it tries on small shapes what
    they need (where there is no part, everything) for `tried` seconds, by default on CUDA alone, and returns
    whether all of this was tried that was to be. Raises BadInput where there is no such device or
    cell, where a cell is of none of the parts, where a backend is not to be had, where the folder holds
    another device's results, where another process fills it, and where a try fails (unless `anyway`)."""
    here = device_here()
    device = device or here
    if device == "cuda" and here != "cuda":
        raise BadInput("torch finds no GPU here; --device cpu shows that the script works")
    out.mkdir(parents=True, exist_ok=True)
    plan = plan_of(device)
    known = {cell.name: cell for part in PARTS for cell in plan.cells(part)}
    for name in names:
        if name not in known:
            raise BadInput(f'there is no cell "{name}"; the cells are {", ".join(known)}')
        if known[name].part not in parts:
            raise BadInput(f"{name} is of the part {known[name].part}, which is not named; name it too")
    wanted = list(dict.fromkeys(known[name].part for name in names) if names else parts)
    with locked(out):
        refuse_another(out, device)
        for backend in plan.kernel_backends if "kernels" in wanted else plan.backends:
            check_backend(backend)
        for name in salvage(out):
            print(f"{name}: a part of it is stored, which an earlier call had left", flush=True)
        seconds = tried if tried is not None else SMOKE_SECONDS if device == "cuda" else 0
        all_tried = True
        if seconds:
            needing = [known[name] for name in names] or open_cells(plan, out, wanted or list(PARTS))
            all_tried = try_out(device, out, seconds, ends, needing, anyway)
        for part in wanted:
            began = time.monotonic()
            only = [known[name] for name in names if known[name].part == part]
            store = opened(out / f"{part}.json", part, device, sys.argv)
            run_part(part, plan, store, out, parts[part], began, only, ends)
            try_page(out)
    return all_tried


def open_cells(plan: Plan, out: Path, parts: Sequence[str]) -> list[Cell]:
    """Returns the cells of the parts of which the folder holds no whole result."""
    held = stored(out)
    missing = {part: held[part].missing() for part in parts if part in held}
    every = [cell for part in parts for cell in plan.cells(part)]
    return [cell for cell in every if cell.name in missing.get(cell.part, [cell.name])]


def try_out(
    device: str, out: Path, seconds: float, ends: float, needing: Sequence[Cell], anyway: bool = False
) -> bool:
    """Tries what the cells need on small shapes, in a process of its own, for so many seconds, and stores
    nothing. Returns whether all of it was tried and ended: what did not end or was not reached in that time
    is told, and does not stop the others. Raises BadInput for what fails, unless it is to go on `anyway`."""
    if not needing:
        return True
    limit = min(seconds + SMOKE_GRACE, ends - time.monotonic())
    if limit <= 0:
        print(f"{SMOKE} not begun: no time was left for it, and nothing was tried", flush=True)
        return False
    print(f"{SMOKE}: what the cells need, once, on small shapes ({seconds:.0f} s)", flush=True)
    cell = Cell(SMOKE, "smoke", seconds)
    result = in_process(cell, device, out, limit, needing)
    unended = open_steps(running(out, cell))
    put_away(out, cell)
    if not failed(result):
        if result["untried"]:
            print(f"  not known to work, for lack of time: {', '.join(result['untried'])}", flush=True)
        return not result["untried"]
    if not result["error"].startswith(KILLED):
        if not anyway:
            raise BadInput(f"{SMOKE}: {result['error']}; nothing was measured, and {SMOKE}=0 leaves this out")
        print(f"  {SMOKE} failed: {result['error']}; the cells are measured all the same", flush=True)
        return False
    if not unended:
        print(f"  no step began within {limit:.0f} s, and nothing was tried", flush=True)
        return False
    hung, *untried = unended
    print(f"  not known to work, as it did not end within {limit:.0f} s in all: {hung}", flush=True)
    if untried:
        print(f"  no time was left for {', '.join(untried)}", flush=True)
    return False


def write_page(out: Path) -> None:
    """Replaces DIR/gpu.md by what is stored now."""
    write_whole(out / "gpu.md", page(stored(out)))


def try_page(out: Path) -> None:
    """Replaces DIR/gpu.md between two parts. A fault of the page is told, and costs the next part nothing:
    what was measured is stored, and the end of the call makes the page again."""
    try:
        write_page(out)
    except Exception:
        traceback.print_exc()


def show(out: Path, parts: Sequence[str]) -> int:
    """Prints what is stored, beside what was asked and published; returns the exit code."""
    if out.is_dir():
        with suppress(BadInput), locked(out):  # while another process fills it, its cell is left alone
            salvage(out)
    stores = stored(out)
    if not stores:
        raise BadInput(f"{out} holds no part; leave out --show to measure one")
    write_page(out)
    print(summary(stores))
    print(f"\nAll tables: {out / 'gpu.md'}")
    missing = {part: stores[part].missing() if part in stores else ["all"] for part in parts}
    for part, cells in missing.items():
        if cells:
            print(f"{part}: not complete; missing {', '.join(cells[:4])}{' ...' if len(cells) > 4 else ''}")
    if any(missing.values()):
        print("the same command goes on where this one stopped")
        return INCOMPLETE
    return GATE_FAILED if is_worse(stores) else OK


class Ended(KeyboardInterrupt):
    """This process was told to end. Whatever lets an interruption pass lets this pass too, which a SystemExit
    is not: a library may raise one when it is imported."""


def ended(*_: object) -> None:
    """Ends this process as after an interruption, so that the processes that it began end too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would interrupt that
    raise Ended


def until_ended(call: Callable[[], int]) -> int:
    """Returns the call's exit code, or that of a process that was told to end: without a traceback, whatever
    the call made of Ended on its way."""
    try:
        return call()
    except KeyboardInterrupt:
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:  # Ctrl-C
            raise
        return 128 + signal.SIGTERM


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    sys.exit(until_ended(main))
