"""What decoding keeps of its promises on a device: TPOT over the floor, what a grammar adds to it, what
jump-forward wins, graphs, masks.

    python benchmarks/decode.py --out DIR [--device cuda|cpu] [--quick]

On a GPU the shapes 1b and 8b in bfloat16 at batch 1, 8, 32 and 128; on a CPU the tiny shape in float32 at
batch 1 and 8, with few texts.
  1. Unconstrained TPOT over the floor: the bytes of the weights that a pass reads and of the cache at the
     output's mean length, over the bandwidth of a copy that was measured on this device. Beside it the same
     of a bare step: the model's pass without a loop.
  2. Constrained TPOT over the unconstrained run of equal length beside it, fills overlapped with the forward
     pass. Of two ways to fill (a call for each mask, in one thread; one call for the batch, with the
     backend's own threads) the better is judged, both are shown.
  3. What share of its ceiling (passes of stepwise over passes of jump-forward) jump-forward's speed-up
     reaches where everything is forced.
  4. A step as a captured graph, and eager; on a CPU the same static buffers without a capture. And do their
     logits agree?
  5. Masks: the copy to the device, and applying them there, by the device's events. Estimates are judged; the
     intervals (of forks in 1 to 3, of rounds in 4 and 5; 99 %) are shown beside them. On a CPU 1 and 2 are
     not judged. A part that is done is stored in DIR and not done again; after an interruption give the same
     command. Exit code 1: a promise is not kept.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from decode_figures import (
    BACKENDS,
    FORCED,
    LONG,
    MIXED,
    PROMISED_OF,
    PROMISES,
    Figure,
    Part,
    Plan,
    figures_of,
    plan_of,
    table,
    verdict,
)

from harness.backend.grammar import Adapter
from harness.backend.registry import installed_version, load, make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.errors import BadInput
from harness.measure.kernels.clock import Call, clock_of
from harness.measure.kernels.rounds import Effort, Samples, by_turns
from harness.measure.kernels.timing import copy_call
from harness.rows.folder import now
from harness.rows.machine import describe_machine, usable_processors
from harness.serve.decode.record import has_decoding, read_decoding
from harness.serve.decode.session import DecodeRequest, decode
from harness.serve.decode.setting import Setting
from harness.text import one_line
from harness.walk.loop.masks import Masks

if TYPE_CHECKING:
    import torch

    from harness.serve.decode.model.model import Model

FILE = "decode-benchmark.json"
FORMAT = 1
VOCABULARY = "tekken"
PROMPT, LIMIT = 32, 64
"""Tokens of each prompt and, at most, of each output."""
STEPS, ROUNDS = 16, 8
"""Bare steps of a round, and rounds, of a graph and of eager by turns."""
COPIED = {"cuda": 2 << 30, "cpu": 256 << 20}
"""Bytes that the copy touches: more than any cache holds."""

# ---------------------------------------------------------------------------------- parts that call the model


def step_part(name: str, batch: int, device: str, quick: bool) -> dict[str, Any]:
    """Returns a copy's bandwidth; then bare steps of the model, as a graph and eager by turns, and how far
    their logits are apart."""
    import torch

    from harness.serve.decode.model.graphs import Direct, Static
    from harness.serve.decode.model.model import load_model

    clock = clock_of(device)
    call, moved = copy_call(COPIED[device] // (8 if quick else 1), device)
    call()
    copied = per_call(by_turns({"copy": call}, clock, Effort(rounds=15), rewarm=False)["copy"])
    del call
    if device == "cuda":
        torch.cuda.empty_cache()
    vocabulary = load_vocabulary(VOCABULARY)
    model = load_model(name, vocabulary.size, rows=batch, positions=PROMPT + LIMIT, device=device)
    graph = model._runner if model._runner.static else Static(model.network, model.device, capture=False)
    runners = {"graph": graph, "eager": Direct(model.network, model.device)}
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary.size, (batch, PROMPT), generator=generator).tolist()
    model.extend(dict(enumerate(ids)))
    logits = {}
    for which, runner in runners.items():
        model._runner = runner
        bare_steps(model, batch, 3)
        logits[which] = model.extend({row: [row + 1] for row in range(batch)}).float()
        for row in range(batch):
            model.rollback(row, PROMPT)
    step_ns: dict[str, list[float]] = {which: [] for which in runners}
    for number in range(2 if quick else ROUNDS):
        for which in list(runners)[:: -1 if number % 2 else 1]:
            model._runner = runners[which]
            step_ns[which].append(bare_steps(model, batch, STEPS))
    return {
        "model": model.describe(),
        "threads": torch.get_num_threads(),
        "copy_bytes": moved,
        "copy_ns": copied,
        "length": PROMPT + (STEPS + 1) / 2,
        "step_ns": step_ns,
        "logits_apart": apart(logits["graph"], logits["eager"]),
        "same_choice": float((logits["graph"].argmax(-1) == logits["eager"].argmax(-1)).float().mean()),
    }


def bare_steps(model: Model, batch: int, steps: int) -> float:
    """Returns the median time of a pass by a token a row, nanoseconds, until the device is done; the rows are
    then as before."""
    known = []
    for step in range(steps):
        tokens = {row: [step + 1] for row in range(batch)}
        start = time.perf_counter_ns()
        model.extend(tokens)
        model.finish()
        known.append(time.perf_counter_ns() - start)
    for row in range(batch):
        model.rollback(row, PROMPT)
    return statistics.median(known)


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Returns the relative distance, over all values; infinite where one is not a number."""
    distance = float((ours - theirs).norm() / theirs.norm())
    return math.inf if math.isnan(distance) else distance


def masks_part(device: str, batches: Sequence[int], quick: bool) -> dict[str, Any]:
    """For each batch, moving packed masks to the device and applying them: by torch as the loop does, and by
    backends' own kernels."""
    import torch

    clock, vocabulary = clock_of(device), load_vocabulary(VOCABULARY)
    where = torch.device(device)
    known = {
        name: make(parse_specs(name)[0], vocabulary)
        for name in ("unconstrained", *(kernel for kernel in PROMISED_OF if is_here(kernel)))
    }
    rows = []
    for batch in batches:
        logits = torch.randn((batch, vocabulary.size), device=where)
        calls: dict[str, Call] = {}
        refused: dict[str, str] = {}
        for name, adapter in known.items():
            kernel, why = ("", "") if name == "unconstrained" else own_kernel(adapter, where)
            if why:
                refused[f"apply, {name}"] = why
                continue
            masks = Masks(adapter, batch, where, kernel)
            allowed = np.random.default_rng(0)
            for mask in masks.rows:
                mask[:] = allowed.integers(-(1 << 31), 1 << 31, len(mask), dtype=np.int32)
            masks.move(batch)
            if not kernel and device == "cuda":
                calls["move"] = partial(masks.move, batch)
            title = f"apply, {name} {kernel}" if kernel else "apply, the loop's own"
            call: Call = partial(masks.apply, logits)
            try:
                call()
                calls[title] = clock.prepare(call)[0]
            except Exception as error:  # a kernel may compile itself, and fail in its own way
                refused[title] = one_line(repr(error))[:200]
        samples = by_turns(calls, clock, Effort(rounds=5 if quick else 15), rewarm=True)
        rows += [{"batch": batch, "name": name, "ns": per_call(call)} for name, call in samples.items()]
        rows += [{"batch": batch, "name": name, "ns": [], "why": why} for name, why in refused.items()]
        if device == "cpu":
            rows.append(
                {
                    "batch": batch,
                    "name": "move",
                    "ns": [],
                    "why": "the logits are on the host, where the masks are",
                }
            )
    return {"vocabulary": vocabulary.size, "rows": rows}


def own_kernel(adapter: Adapter, device: torch.device) -> tuple[str, str]:
    """Returns the first of the backend's kernels that works here; or why none does."""
    why = "it has no kernel for float32"
    for name in adapter.kernels():
        try:
            Masks(adapter, 1, device, name)
        except BadInput as error:
            why = str(error)
            continue
        return name, ""
    return "", why


def per_call(samples: Samples) -> list[float]:
    """Nanoseconds of a call, one a sample."""
    return [total / samples.calls for total in samples.totals_ns]


def is_here(backend: str) -> bool:
    """Is its library installed?"""
    try:
        return bool(installed_version(load(backend).distribution))
    except BadInput:
        return False


# ------------------------------------------------------------------------------------------ command and store


def main() -> None:
    parser = argparse.ArgumentParser(
        usage="python benchmarks/decode.py --out DIR [--device cuda|cpu] [--quick]"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", help=argparse.SUPPRESS)  # what a process of its own is to do
    wanted = parser.parse_args()
    device = wanted.device or device_here()
    if device == "cuda" and device_here() != "cuda":
        sys.exit("benchmarks/decode.py: torch finds no GPU here; leave out --device, or take cpu")
    plan = plan_of(device, wanted.quick)
    if wanted.part:
        print(
            json.dumps(
                alone(
                    next(part for part in plan.parts() if part.name == wanted.part),
                    plan,
                    device,
                    wanted.quick,
                )
            )
        )
        return
    try:
        figures = whole(wanted.out, plan, device, wanted.quick)
    except BadInput as error:
        sys.exit(f"benchmarks/decode.py: {error}")
    print(table(figures, device))
    if any(verdict(figure, device) == "NOT KEPT" for figure in figures):
        sys.exit("a promise is not kept")


def device_here() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def alone(part: Part, plan: Plan, device: str, quick: bool) -> dict[str, Any]:
    """Returns the part, in this process; `not_measured` if the device cannot do it."""
    import torch

    if device == "cpu":
        torch.set_num_threads(max(1, usable_processors() - 1))  # as in the engine's children
    try:
        if part.kind == "masks":
            return masks_part(device, plan.batches, quick)
        return step_part(part.model, part.batch, device, quick)
    except (BadInput, torch.OutOfMemoryError) as error:
        return {"not_measured": one_line(str(error))}


def whole(out: Path, plan: Plan, device: str, quick: bool) -> list[Figure]:
    """Plays the parts that are not stored yet, stores each when it is done, and returns the figures of
    all."""
    out.mkdir(parents=True, exist_ok=True)
    store = opened(out / FILE, device, quick)
    for part in plan.parts():
        if part.name in store["parts"] and "not_measured" not in store["parts"][part.name]:
            continue
        began = time.monotonic()
        print(f"{part.name} ...", flush=True)
        done = (
            served(part, plan, device, out) if part.kind == "serve" else in_process(part, device, quick, out)
        )
        store["parts"][part.name] = done | {"seconds": round(time.monotonic() - began, 1)}
        save(out / FILE, store | {"figures": stored(figures_of(store["parts"], plan, out), device)})
    figures = figures_of(store["parts"], plan, out)
    save(out / FILE, store | {"finished": now(), "figures": stored(figures, device)})
    return figures


def opened(path: Path, device: str, quick: bool) -> dict[str, Any]:
    """Returns what is in the file, or a new one. Raises BadInput if it is of another device or plan."""
    settings = {"format": FORMAT, "device": device, "quick": quick}
    if not path.exists():
        versions = {name: installed_version(load(name).distribution) for name in BACKENDS if is_here(name)}
        return settings | {
            "argv": sys.argv[1:],
            "started": now(),
            "machine": describe_machine(),
            "versions": versions,
            "parts": {},
        }
    try:
        store: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BadInput(f"{path} is not JSON; give another --out") from error
    if {name: store.get(name) for name in settings} != settings:
        raise BadInput(f"{path} is of another device, plan or format; give another --out")
    return store


def save(path: Path, store: dict[str, Any]) -> None:
    """Replaces the file in one piece: the old one stays until the new one is whole."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(store, indent=1) + "\n", "utf-8")
    os.replace(beside, path)


def stored(figures: Sequence[Figure], device: str) -> list[dict[str, Any]]:
    return [
        asdict(figure)
        | {
            "promised": str(PROMISES[figure.promise]) if figure.promise else "",
            "verdict": verdict(figure, device),
        }
        for figure in figures
    ]


def in_process(part: Part, device: str, quick: bool, out: Path) -> dict[str, Any]:
    """Plays the part in a process of its own, whose end gives the device's memory back; returns its
    result."""
    command = [
        sys.executable,
        __file__,
        "--out",
        str(out),
        "--device",
        device,
        "--part",
        part.name,
        *(["--quick"] if quick else []),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return {"not_measured": f"its process ended with {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def served(part: Part, plan: Plan, device: str, out: Path) -> dict[str, Any]:
    """Makes the part's decode record in a folder of its own and returns the result; a record that was
    interrupted is made anew."""
    folder = out / part.name
    if has_decoding(folder) and not read_decoding(folder).is_complete:
        shutil.rmtree(folder)
    if not has_decoding(folder):
        able = [backend for backend in plan.backends if is_here(backend)]
        if part.batch_fill:
            able = [name for name in able if load(name).fill_bitmasks is not Adapter.fill_bitmasks]
        request = DecodeRequest(
            workloads=(FORCED, MIXED) if part.batch == 1 else (MIXED, LONG),
            backends=",".join(able),
            model=part.model,
            vocabulary=VOCABULARY,
            profile="quick",
            usual=Setting("", limit=LIMIT, batch_fill=part.batch_fill),
            strategies=("stepwise", "jump_forward") if part.batch == 1 else ("stepwise",),
            batches=(part.batch,),
            texts=plan.texts if part.batch == 1 else part.batch,
            prompt_tokens=PROMPT,
            forks=plan.forks,
            rounds=plan.rounds,
            device=device,
            dtype=None,
            out=folder,
            timeout_s=300.0,
            memory_gb=32.0,
            argv=tuple(sys.argv[1:]),
        )
        try:
            decode(request, lambda message: print(f"  {one_line(message)}", flush=True))
        except BadInput as error:
            shutil.rmtree(folder, ignore_errors=True)
            return {"not_measured": one_line(str(error))}
    return {"record": part.name}


if __name__ == "__main__":
    main()
