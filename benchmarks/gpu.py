"""What a GPU makes of it: mask kernels, decoding, cold grammars and the share of structured requests.

    python benchmarks/gpu.py --out DIR [--device cuda|cpu] [--seconds 480] [kernels decode=300 cold share]
    python benchmarks/gpu.py --out DIR [--seconds 480] --cells floor-1b,decode-1b-1-fork-1
    python benchmarks/gpu.py --out DIR --show

A part has --seconds, or those that stand behind it. It is made of cells (parts/gpu_plan.py). A cell is
measured in a process of its own and stored in DIR/PART.json as soon as it is done; a part begins no cell that
is not thought to end within its seconds (but for its first one, which is tried in any case), tells one that
runs 45 s past them to end, and kills it 15 s later. What a killed cell had measured is stored as a part of
it. The same command goes on where the last one stopped: first the cells that were never tried, then those
that failed, then those of which a part is stored, because they were killed or lost a setting by a fault of
ours. --cells measures these alone, whether or not they were measured before: the parts in the order in which
cells of theirs are named, and within each part the cells in theirs; a line names each that is not begun.
DIR/gpu.md is the page of all that is stored, written after each part. The records of `grammarbench decode`
and `measure kernels` behind the cells are in DIR-records.

On a GPU the shapes are 1b and 8b in bfloat16; on a CPU the shape is tiny in float32, which shows that the
script works, and of speed nothing is judged. docs/gpu.md says how to bring this to a machine without a
network. Exit code 1: a figure is worse than what was asked; 2: wrong input; 3: a part is not complete.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script
from gpu_plan import LONG_LIMIT, PARTS, PROMPT, VOCABULARY, Cell, Plan, plan_of
from gpu_report import is_worse, page, summary
from gpu_store import Store, failed, held, opened, refuse_another, stored, whole

from harness.cli.values import not_negative
from harness.errors import GATE_FAILED, INCOMPLETE, OK, BadInput
from harness.rows.folder import locked, now
from harness.text import one_line
from harness.whole_files import write_whole

SECONDS = 480.0
GRACE = 45.0
"""Seconds after a part's end when a cell that still runs is told to end."""
POLITE = 15.0
"""Seconds that it then has to end its own processes before it is killed."""
SO_FAR = "so_far.json"
"""What a cell of a kind other than `decode` has measured so far, in its folder of records."""
ROOM = 64
"""Positions of a row beyond prompt and output, for a spelling that is longer for a moment."""

# ------------------------------------------------------------------------------------------- one cell, alone


def measured(cell: Cell, plan: Plan, device: str, folder: Path) -> dict[str, Any]:
    """Measures the cell in this process, with records in the folder, and returns its result."""
    import torch

    from harness.rows.machine import usable_processors

    if device == "cpu":
        torch.set_num_threads(max(1, usable_processors() - 1))  # as in the children of `decode`
    if cell.kind in ("times", "probes"):
        from gpu_kernels import PROBES_PLAN, kernel_cell, times_plan

        if cell.kind == "probes":
            return kernel_cell(PROBES_PLAN, cell.backend, device, folder, say)
        sizes = times_plan(cell.vocabulary, cell.dtype, plan.kernel_batches, plan.kernel_rounds)
        return kernel_cell(sizes, ",".join(plan.kernel_backends), device, folder, say)
    if cell.kind == "decode":
        from gpu_decode import decode_cell

        return decode_cell(cell, plan, device, folder, say)

    from harness.backend.vocabulary import load_vocabulary

    vocabulary = load_vocabulary(VOCABULARY)
    if cell.kind == "floor":
        from gpu_floor import floor_cell

        keep = keeper(folder, {})
        return floor_cell(cell.shape, vocabulary, sorted(plan.batches), plan.copied, device, keep)

    from gpu_loads import Bench, cold_cell, share_cell
    from gpu_paths import check_fast

    from harness.backend.registry import make, parse_specs
    from harness.serve.decode.model.model import load_model

    adapter = make(parse_specs(cell.backend)[0], vocabulary)
    positions = PROMPT + LONG_LIMIT + ROOM
    model = load_model(cell.shape, vocabulary.size, rows=cell.batch, positions=positions, device=device)
    check_fast(model.describe())
    model.prepare(PROMPT)
    run = cold_cell if cell.kind == "cold" else share_cell
    about = {"model": model.describe()}
    bench = Bench(model, vocabulary, adapter)
    return run(bench, cell.batch, plan.repeats, keeper(folder, about)) | about


def keeper(folder: Path, about: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Returns what writes down how far a cell is, in its folder of records, with what is known about it."""
    folder.mkdir(parents=True, exist_ok=True)
    return lambda so_far: write_whole(folder / SO_FAR, json.dumps(so_far | about))


def say(message: str) -> None:
    """Print a line of progress."""
    print(f"    {one_line(message)}", flush=True)


# ------------------------------------------------------------------------------------ many cells, in a budget


def run_part(
    part: str,
    plan: Plan,
    store: Store,
    out: Path,
    seconds: float,
    began: float | None = None,
    only: Sequence[Cell] = (),
) -> None:
    """Measures the part's open cells, or those of `only`, for so many seconds, and stores each as it ends. A
    first cell is tried however long it is thought to take."""
    deadline = (time.monotonic() if began is None else began) + seconds
    cells = plan.cells(part)
    tried = store.cells
    begun = [cell for cell in cells if cell.name in tried and not whole(tried[cell.name])]
    waiting = [cell for cell in cells if cell.name not in tried]
    waiting += sorted(begun, key=lambda cell: not failed(tried[cell.name]))
    done = len(cells) - len(waiting)
    waiting = list(only) or waiting
    print(f"{part}: {done} of {len(cells)} cells are stored", flush=True)
    first = True
    for cell in waiting:
        left = deadline - time.monotonic()
        thought = expected(cell, cells, tried)
        if not first and left < thought:
            if only:
                print(
                    f"  {cell.name} not begun: thought to take {thought:.0f} s, {left:.0f} s left", flush=True
                )
            continue
        first = False
        print(f"  {cell.name} ({left:.0f} s left) ...", flush=True)
        start = time.monotonic()
        result = in_process(cell, store.device, out, max(left, 0) + GRACE)
        took = round(time.monotonic() - start, 1)
        if failed(result):
            result = rest_of(cell, records(out, cell), result["error"])
        store.add(cell.name, result | {"seconds": took, "at": now()})
        if failed(result):
            print(f"    failed: {result['error']}", flush=True)
        elif not whole(result):
            print(f"    partial: {result['partial']}", flush=True)


def rest_of(cell: Cell, folder: Path, why: str) -> dict[str, Any]:
    """Returns what is kept of a cell that came to no end, out of what stands in its folder of records;
    `error` where that is nothing."""
    if cell.kind == "decode":
        from gpu_decode import salvaged

        return salvaged(folder, why)
    try:
        kept: dict[str, Any] = json.loads((folder / SO_FAR).read_text("utf-8"))
    except (OSError, ValueError):
        return {"error": why}
    return kept | {
        "partial": f"{why}; {held(kept)} {'batches' if cell.kind == 'floor' else 'runs'} are stored"
    }


def expected(cell: Cell, cells: Sequence[Cell], tried: Mapping[str, dict[str, Any]]) -> float:
    """Returns how many seconds the cell will take: a tenth more than the longest one like it that was
    measured, or else the plan's estimate; and in any case a tenth more than one like it that came to no end
    had taken by then."""
    alike = [tried[other.name] for other in cells if other.like == cell.like and other.name in tried]
    ended: list[float] = [one["seconds"] for one in alike if whole(one)]
    unended: list[float] = [one["seconds"] for one in alike if not whole(one)]
    return max([1.1 * max(ended) if ended else cell.seconds, *(1.1 * seconds for seconds in unended)])


def records(out: Path, cell: Cell) -> Path:
    """Returns the folder of the records behind the cell."""
    return out.with_name(f"{out.name}-records") / cell.name


def in_process(cell: Cell, device: str, out: Path, seconds: float) -> dict[str, Any]:
    """Measures the cell in a process of its own, whose end gives the device's memory back; returns its
    result, or `error`. The records of an earlier try are gone before it begins."""
    shutil.rmtree(records(out, cell), ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, __file__, "--out", str(out), "--device", device]
        process = subprocess.Popen([*command, "--cell", cell.name, "--answer", str(answer)])
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return {"error": f"killed after {seconds:.0f} s; give the part more --seconds"}
        finally:
            end(process)
        if answer.exists():
            result: dict[str, Any] = json.loads(answer.read_text("utf-8"))
            return result
        return {"error": f"its process ended with {code}"}


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process if it still runs: first it is asked to, and then it ends its own processes."""
    process.terminate()
    try:
        process.wait(POLITE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def alone(name: str, plan: Plan, device: str, out: Path, answer: Path) -> None:
    """Writes the result of the cell of that name to the file; `error` where it cannot be had."""
    import torch

    cell = next(cell for part in PARTS for cell in plan.cells(part) if cell.name == name)
    try:
        result = measured(cell, plan, device, records(out, cell))
    except (BadInput, torch.OutOfMemoryError) as error:
        result = {"error": one_line(str(error))[:500]}
    except Exception as error:  # ours or a library's: it is told, and the other cells are measured
        import traceback

        traceback.print_exc()
        result = {"error": one_line(repr(error))[:500]}
    answer.write_text(json.dumps(result), "utf-8")


# ------------------------------------------------------------------------------------------------- command


@script
def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is asked for, and returns the exit code."""
    parser = argparse.ArgumentParser(
        usage="python benchmarks/gpu.py --out DIR [--device cuda|cpu] [--seconds S] [--show] [PART[=S] ...]"
    )
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("--seconds", type=not_negative, default=SECONDS)
    parser.add_argument("--show", action="store_true")
    parser.add_argument(
        "--cells",
        default="",
        metavar="NAME,...",
        help="these cells alone, anew: the parts in the order in which cells of theirs are named, and within "
        "each part the cells in theirs; where parts are named too, each cell is of one of them",
    )
    parser.add_argument("--cell", help=argparse.SUPPRESS)  # what a process of its own is to do
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args(arguments)
    if wanted.cell:
        alone(wanted.cell, plan_of(wanted.device), wanted.device, wanted.out, wanted.answer)
        return OK
    parts = budgets(wanted.parts or list(PARTS), wanted.seconds)
    if not wanted.show:
        measure(parts, wanted.out, wanted.device, [name for name in wanted.cells.split(",") if name])
    return show(wanted.out, list(parts))


def budgets(asked: Sequence[str], usual: float) -> dict[str, float]:
    """Returns the parts, and for how many seconds each is measured: those behind its name (`decode=300`), or
    the usual ones. Raises BadInput."""
    found = {}
    for one in asked:
        part, has, seconds = one.partition("=")
        if part not in PARTS:
            raise BadInput(f'there is no part "{part}"; name {", ".join(PARTS)}, or none for all')
        if has and not seconds.isdecimal():
            raise BadInput(f'"{one}": behind the = stands a number of seconds, as in {part}=300')
        found[part] = float(seconds) if has else usual
    return found


def measure(parts: Mapping[str, float], out: Path, device: str | None, names: Sequence[str] = ()) -> None:
    """Measures the parts, each for its seconds; where cells are named, only those, by parts in the order in
    which these are first met among them. Raises BadInput where there is no such device or cell, where a cell
    is of none of the parts, where the folder holds another device's results, or where another process fills
    it."""
    from gpu_machine import device_here

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
    with locked(out):
        refuse_another(out, device)
        for part in dict.fromkeys(known[name].part for name in names) if names else parts:
            began = time.monotonic()
            only = [known[name] for name in names if known[name].part == part]
            store = opened(out / f"{part}.json", part, device, sys.argv)
            run_part(part, plan, store, out, parts[part], began, only)
            write_page(out)


def write_page(out: Path) -> None:
    """Replaces DIR/gpu.md by what is stored now."""
    write_whole(out / "gpu.md", page(stored(out)))


def show(out: Path, parts: Sequence[str]) -> int:
    """Prints what is stored, beside what was asked and published; returns the exit code."""
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


def ended(*_: object) -> None:
    """Ends this process as after an interruption, so that the processes that it began end too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would interrupt that
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    sys.exit(main())
