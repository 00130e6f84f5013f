"""What decoding keeps of its promises on a device: TPOT over the floor, what a grammar adds to it, what jump-forward wins, graphs, masks.

    python benchmarks/decode.py --out DIR [--device cuda|cpu] [--quick]

On a GPU the shapes 1b and 8b in bfloat16 at batch 1, 8, 32 and 128; on a CPU the tiny shape in float32 at batch 1 and 8, with few texts.
  1. Unconstrained TPOT over the floor: the bytes of the weights that a pass reads and of the cache at the output's mean length, over the
     bandwidth of a copy that was measured on this device. Beside it the same of a bare step: the model's pass without a loop.
  2. Constrained TPOT over the unconstrained run of equal length beside it, fills overlapped with the forward pass. Of two ways to fill
     (a call for each mask, in one thread; one call for the batch, with the backend's own threads) the better is judged, both are shown.
  3. What share of its ceiling (passes of stepwise over passes of jump-forward) jump-forward's speed-up reaches where everything is forced.
  4. A step as a captured graph, and eager; on a CPU the same static buffers without a capture. And do their logits agree?
  5. Masks: the copy to the device, and applying them there, by the device's events.
Estimates are judged; the intervals (of forks in 1 to 3, of rounds in 4 and 5; 99 %) are shown beside them. On a CPU 1 and 2 are not judged.
A part that is done is stored in DIR and not done again; after an interruption give the same command. Exit code 1: a promise is not kept.
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from harness.decode import latency, overhead
from harness.decode.figures import Cell, Decoded
from harness.decode.masks import Masks
from harness.decode.outcome import STEP
from harness.decode.record import has_decoding, read_decoding
from harness.decode.session import Request, decode
from harness.decode.setting import Setting
from harness.errors import BadInput, one_line
from harness.grammar import Adapter
from harness.kernels.clock import Call, clock_of
from harness.kernels.rounds import Effort, Samples, by_turns
from harness.kernels.timing import copy_call
from harness.machine import describe_machine, usable_processors
from harness.measure.statistics import LEVEL, interval
from harness.registry import installed_version, load, make, parse_specs
from harness.session import now
from harness.vocabulary import load_vocabulary

if TYPE_CHECKING:
    import torch

    from harness.decode.model import Model

FILE = "decode-benchmark.json"
FORMAT = 1
VOCABULARY = "tekken"
BACKENDS = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer")
PROMISED_OF = ("xgrammar", "llguidance")
"""The bitmask backends of which something is promised; others are reported."""

FORCED, MIXED, LONG = "all_forced", "function_calls", "long_arrays"
PROMPT, LIMIT = 32, 64
"""Tokens of each prompt and, at most, of each output."""
STEPS, ROUNDS = 16, 8
"""Bare steps of a round, and rounds, of a graph and of eager by turns."""
COPIED = {"cuda": 2 << 30, "cpu": 256 << 20}
"""Bytes that the copy touches: more than any cache holds."""

WIDE = 100
"""An interval whose ends are so many times apart says nothing (two forks have such ones); the file has it all the same."""

# ------------------------------------------------------------------------------------------------- promises and arithmetic


@dataclass(frozen=True)
class Promise:
    """What is promised of a figure."""

    limit: float
    at_most: bool = True
    on_cpu: bool = True
    """Is it judged on a CPU too?"""

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.limit:g}"


PROMISES = {
    "tpot_over_floor": Promise(1.3, on_cpu=False),
    "constrained_over_unconstrained": Promise(1.05, on_cpu=False),
    "jump_forward_of_ceiling": Promise(0.85, at_most=False),
    "logits_apart": Promise(0.1),
    "logits_apart_float32": Promise(1e-3),
}
"""Logits: the relative distance beyond which `load_model` refuses a model, in bfloat16 and in float32."""

TITLES = {
    "tpot_over_floor": "unconstrained TPOT over the floor",
    "step_over_floor": "a bare step over the floor",
    "constrained_over_unconstrained": "constrained TPOT over unconstrained",
    "jump_forward_of_ceiling": "jump-forward's speed-up, share of its ceiling",
    "step": "a bare step",
    "eager_over_graph": "a step eager over as a graph (CPU: static buffers, no capture)",
    "logits": "relative distance of the logits, graph and eager",
    "masks": "masks, by the device's clock",
    "host": "masks in the loop, by the host's clock: median of a step",
    "bandwidth": "bandwidth of a copy",
}


@dataclass(frozen=True)
class Figure:
    """One number."""

    what: str
    """Of TITLES."""
    of: str
    """Model, batch and subject."""
    value: float | None
    """None: not measured, as `note` says."""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    promise: str = ""
    """Of PROMISES; empty: nothing is promised of it."""
    note: str = ""


def floor_ns(read_bytes: int, cache_bytes_per_token: int, lengths: Iterable[float], bandwidth: float) -> float:
    """The least time of a pass: the weights once, and each row's cache at its length (tokens), at so many bytes a second."""
    return (read_bytes + cache_bytes_per_token * sum(lengths)) / bandwidth * 1e9


def verdict(figure: Figure, device: str) -> str:
    """`kept`, `NOT KEPT`, why it is not judged, or nothing where nothing is promised."""
    if not figure.promise:
        return ""
    if figure.value is None:
        return "not measured here"
    promise = PROMISES[figure.promise]
    if device == "cpu" and not promise.on_cpu:
        return "not judged on a CPU"
    return "kept" if (figure.value <= promise.limit) == promise.at_most or figure.value == promise.limit else "NOT KEPT"


def of_logs(what: str, of: str, x: Sequence[float], unit: str = "", promise: str = "", note: str = "") -> Figure:
    """From logarithms, one a fork or a round; without an interval where there is one only."""
    if not x:
        return Figure(what, of, None, unit=unit, promise=promise, note=note or "not measured")
    found = interval(x)
    low, high = (found.low, found.high) if math.isfinite(found.high) else (None, None)
    return Figure(what, of, found.ratio, low, high, unit, promise, note)


def best_is_judged(figures: Sequence[Figure], promise: str) -> list[Figure]:
    """Of figures of one subject, lower is better: the smallest is held to the promise, the others are shown."""
    found = [each for each in figures if each.value is not None]
    best = min(found, key=lambda each: each.value or 0.0) if found else figures[0]
    return [replace(each, promise=promise if each is best else "") for each in figures]


# --------------------------------------------------------------------------------------------------- parts that call the model


def step_part(name: str, batch: int, device: str, quick: bool) -> dict[str, Any]:
    """A copy's bandwidth; then bare steps of the model, as a graph and eager by turns, and how far their logits are apart."""
    import torch

    from harness.decode.graphs import Direct, Static
    from harness.decode.model import load_model

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
    found: dict[str, list[float]] = {which: [] for which in runners}
    for number in range(2 if quick else ROUNDS):
        for which in list(runners)[:: -1 if number % 2 else 1]:
            model._runner = runners[which]
            found[which].append(bare_steps(model, batch, STEPS))
    return {
        "model": model.describe(),
        "threads": torch.get_num_threads(),
        "copy_bytes": moved,
        "copy_ns": copied,
        "length": PROMPT + (STEPS + 1) / 2,
        "step_ns": found,
        "logits_apart": apart(logits["graph"], logits["eager"]),
        "same_choice": float((logits["graph"].argmax(-1) == logits["eager"].argmax(-1)).float().mean()),
    }


def bare_steps(model: Model, batch: int, steps: int) -> float:
    """The median time of a pass by a token a row, nanoseconds, until the device is done; the rows are then as before."""
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
    """The relative distance, over all values; infinite where one is not a number."""
    found = float((ours - theirs).norm() / theirs.norm())
    return math.inf if math.isnan(found) else found


def masks_part(device: str, batches: Sequence[int], quick: bool) -> dict[str, Any]:
    """For each batch, moving packed masks to the device and applying them: by torch as the loop does, and by backends' own kernels."""
    import torch

    clock, vocabulary = clock_of(device), load_vocabulary(VOCABULARY)
    where = torch.device(device)
    known = {name: make(parse_specs(name)[0], vocabulary) for name in ("unconstrained", *(each for each in PROMISED_OF if is_here(each)))}
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
        rows += [{"batch": batch, "name": name, "ns": per_call(each)} for name, each in samples.items()]
        rows += [{"batch": batch, "name": name, "ns": [], "why": why} for name, why in refused.items()]
        if device == "cpu":
            rows.append({"batch": batch, "name": "move", "ns": [], "why": "the logits are on the host, where the masks are"})
    return {"vocabulary": vocabulary.size, "rows": rows}


def own_kernel(adapter: Adapter, device: torch.device) -> tuple[str, str]:
    """The first of the backend's kernels that works here; or why none does."""
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


# ------------------------------------------------------------------------------------------------------------- parts and store


@dataclass(frozen=True)
class Part:
    """What is done, and stored, in one go: `step` and `masks` in a process of their own, `serve` by the engine."""

    kind: Literal["step", "serve", "masks"]
    model: str = ""
    batch: int = 0
    batch_fill: bool = False

    @property
    def name(self) -> str:
        """Also that of a record's folder."""
        if self.kind == "masks":
            return "masks"
        return f"{self.kind}-{self.model}-batch-{self.batch}{'-batch_fill' if self.batch_fill else ''}"


@dataclass(frozen=True)
class Plan:
    """Of a device."""

    models: tuple[str, ...]
    batches: tuple[int, ...]
    judged: int
    """The batch at which constrained runs are held against unconstrained ones."""
    texts: int
    """At batch 1; else a text a row."""
    forks: int
    rounds: int
    backends: tuple[str, ...] = BACKENDS

    def parts(self) -> Iterator[Part]:
        yield Part("masks")
        for model in self.models:
            for batch in self.batches:
                yield Part("step", model, batch)
                yield Part("serve", model, batch)
                if batch == self.judged:
                    yield Part("serve", model, batch, batch_fill=True)


def plan_of(device: str, quick: bool) -> Plan:
    if quick:
        return Plan(("tiny",), (1, 8), 8, 2, 2, 1, PROMISED_OF) if device == "cpu" else Plan(("1b",), (1, 32), 32, 4, 2, 1, PROMISED_OF)
    return Plan(("tiny",), (1, 8), 8, 3, 3, 1) if device == "cpu" else Plan(("1b", "8b"), (1, 8, 32, 128), 32, 4, 3, 2)


def main() -> None:
    parser = argparse.ArgumentParser(usage="python benchmarks/decode.py --out DIR [--device cuda|cpu] [--quick]")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", help=argparse.SUPPRESS)  # what a process of its own is to do
    wanted = parser.parse_args()
    device = wanted.device or found_device()
    if device == "cuda" and found_device() != "cuda":
        sys.exit("benchmarks/decode.py: torch finds no GPU here; leave out --device, or take cpu")
    plan = plan_of(device, wanted.quick)
    if wanted.part:
        print(json.dumps(alone(next(each for each in plan.parts() if each.name == wanted.part), plan, device, wanted.quick)))
        return
    try:
        found = whole(wanted.out, plan, device, wanted.quick)
    except BadInput as error:
        sys.exit(f"benchmarks/decode.py: {error}")
    print(table(found, device))
    if any(verdict(each, device) == "NOT KEPT" for each in found):
        sys.exit("a promise is not kept")


def found_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def alone(part: Part, plan: Plan, device: str, quick: bool) -> dict[str, Any]:
    """The part, in this process; `not_measured` if the device cannot do it."""
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
    """All parts that are not there yet, each stored when it is done; the figures of all."""
    out.mkdir(parents=True, exist_ok=True)
    store = opened(out / FILE, device, quick)
    for part in plan.parts():
        if part.name in store["parts"] and "not_measured" not in store["parts"][part.name]:
            continue
        began = time.monotonic()
        print(f"{part.name} ...", flush=True)
        done = served(part, plan, device, out) if part.kind == "serve" else in_process(part, device, quick, out)
        store["parts"][part.name] = done | {"seconds": round(time.monotonic() - began, 1)}
        save(out / FILE, store | {"figures": stored(figures_of(store["parts"], plan, out), device)})
    found = figures_of(store["parts"], plan, out)
    save(out / FILE, store | {"finished": now(), "figures": stored(found, device)})
    return found


def opened(path: Path, device: str, quick: bool) -> dict[str, Any]:
    """What is in the file, or a new one. Raises BadInput if it is of another device or plan."""
    told = {"format": FORMAT, "device": device, "quick": quick}
    if not path.exists():
        versions = {name: installed_version(load(name).distribution) for name in BACKENDS if is_here(name)}
        return told | {"argv": sys.argv[1:], "started": now(), "machine": describe_machine(), "versions": versions, "parts": {}}
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BadInput(f"{path} is not JSON; give another --out") from error
    if {name: found.get(name) for name in told} != told:
        raise BadInput(f"{path} is of another device, plan or format; give another --out")
    return found


def save(path: Path, store: dict[str, Any]) -> None:
    """In one piece: what was there stays until the new one is whole."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(store, indent=1) + "\n", "utf-8")
    os.replace(beside, path)


def stored(figures: Sequence[Figure], device: str) -> list[dict[str, Any]]:
    return [
        asdict(each) | {"promised": str(PROMISES[each.promise]) if each.promise else "", "verdict": verdict(each, device)}
        for each in figures
    ]


def in_process(part: Part, device: str, quick: bool, out: Path) -> dict[str, Any]:
    """A process of its own, whose end gives the device's memory back."""
    command = [sys.executable, __file__, "--out", str(out), "--device", device, "--part", part.name, *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return {"not_measured": f"its process ended with {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def served(part: Part, plan: Plan, device: str, out: Path) -> dict[str, Any]:
    """A decode record in a folder of its own; one that was interrupted is made anew."""
    folder = out / part.name
    if has_decoding(folder) and not read_decoding(folder).is_complete:
        shutil.rmtree(folder)
    if not has_decoding(folder):
        able = [each for each in plan.backends if is_here(each)]
        if part.batch_fill:
            able = [each for each in able if load(each).fill_bitmasks is not Adapter.fill_bitmasks]
        request = Request(
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
            decode(request, lambda said: print(f"  {one_line(said)}", flush=True))
        except BadInput as error:
            shutil.rmtree(folder, ignore_errors=True)
            return {"not_measured": one_line(str(error))}
    return {"record": part.name}


# --------------------------------------------------------------------------------------------------------------------- figures


def figures_of(parts: dict[str, dict[str, Any]], plan: Plan, out: Path) -> list[Figure]:
    """Of all that was done; what could not be measured is named where something is promised of it."""
    found: list[Figure] = []
    for model in plan.models:
        for batch in plan.batches:
            title = f"{model} batch {batch}"
            step = parts.get(Part("step", model, batch).name, {})
            bare = {} if "not_measured" in step else step
            found += of_steps(bare, title, batch) if bare else missing(step, ("logits", "logits_apart"), title)
            serve = parts.get(Part("serve", model, batch).name, {})
            ways = [serve, parts.get(Part("serve", model, batch, batch_fill=True).name, {})]
            records = [Decoded(read_decoding(out / each["record"])) for each in ways if "record" in each]
            if batch == 1:
                kept: tuple[str, ...] = ("tpot_over_floor", "jump_forward_of_ceiling")
                if not records:
                    found += [each for what in kept for each in missing(serve, (what, what), title)]
                    continue
                found += over_floor(records[0], bare, title)
                found += jumps(records[0], title)
            elif batch == plan.judged and not records:
                found += missing(serve, ("constrained_over_unconstrained",) * 2, title)
            found += constrained(records, title, judged=batch == plan.judged)
            found += [each for record in records[:1] for each in of_masks(record, title)]
    for row in parts.get("masks", {}).get("rows", []):
        logs = [math.log(each / 1e3) for each in row["ns"]]
        found.append(of_logs("masks", f"batch {row['batch']} {row['name']}", logs, "us", note=row.get("why", "")))
    order = list(TITLES)
    return sorted(found, key=lambda each: order.index(each.what))


def missing(part: dict[str, Any], what: tuple[str, str], title: str) -> list[Figure]:
    """Nothing, where the part was not tried yet."""
    return [Figure(what[0], title, None, promise=what[1], note=part["not_measured"])] if "not_measured" in part else []


def bandwidth(step: dict[str, Any]) -> float:
    """Bytes a second, of the median copy."""
    return float(step["copy_bytes"] / statistics.median(step["copy_ns"]) * 1e9)


def of_steps(step: dict[str, Any], title: str, batch: int) -> Iterator[Figure]:
    model, times = step["model"], step["step_ns"]
    least = floor_ns(model["read_bytes"], model["cache_bytes_per_token"], [step["length"]] * batch, bandwidth(step))
    yield of_logs("bandwidth", title, [math.log(step["copy_bytes"] / each) for each in step["copy_ns"]], "GB/s")
    yield of_logs("step_over_floor", title, [math.log(each / least) for each in times["graph"]], note=f"floor {least / 1e3:.0f} us")
    for which in ("graph", "eager"):
        yield of_logs("step", f"{title} {which}", [math.log(each / 1e3) for each in times[which]], "us")
    pairs = zip(times["eager"], times["graph"], strict=True)
    yield of_logs("eager_over_graph", title, [math.log(eager / graph) for eager, graph in pairs])
    promise = "logits_apart_float32" if model["dtype"] == "float32" else "logits_apart"
    yield Figure("logits", title, step["logits_apart"], promise=promise, note=f"{step['same_choice']:.0%} of rows choose the same id")


def over_floor(decoded: Decoded, step: dict[str, Any], title: str) -> list[Figure]:
    """The TPOT of the unconstrained runs, all arms' alike; by fork the mean of the logarithms."""
    if not step:
        return [Figure("tpot_over_floor", title, None, promise="tpot_over_floor", note="no bandwidth was measured")]
    rate, model = bandwidth(step), decoded.decoding.model
    logs: dict[int, list[float]] = {}
    for cell in (each for each in decoded.cells if each.role == "none"):
        for run in cell.warm:
            for done in latency.answered(each.completed for each in run.completed):
                took = latency.tpot(done)
                if took:
                    length = done.prompt + (len(done.ids) + 1) / 2
                    least = floor_ns(model["read_bytes"], model["cache_bytes_per_token"], [length], rate)
                    logs.setdefault(run.fork, []).append(math.log(took / least))
    return [of_logs("tpot_over_floor", title, [statistics.mean(each) for each in logs.values()], promise="tpot_over_floor")]


def constrained(records: Sequence[Decoded], title: str, *, judged: bool) -> list[Figure]:
    """Stepwise of every backend and workload, by each way to fill."""
    ways: dict[tuple[str, str], list[Figure]] = {}
    for decoded in records:
        backend = {each.name: each.backend for each in decoded.decoding.setup.arms}
        for cell in decoded.cells:
            if cell.strategy == "stepwise":
                over = decoded.over_none(cell)
                left = over.left_out if over else 0
                of = f"{title} {cell.setting.workload} {cell.arm}{' *' if cell.setting.batch_fill else ''}"
                note = f"{left} requests left out" if left else ""
                one = of_logs("constrained_over_unconstrained", of, over.x if over else (), note=note)
                ways.setdefault((backend[cell.arm], cell.setting.workload), []).append(one)
    promised = {key for key in ways if judged and key[0] in PROMISED_OF}
    return [
        each
        for key, found in ways.items()
        for each in (best_is_judged(found, "constrained_over_unconstrained") if key in promised else found)
    ]


def jumps(decoded: Decoded, title: str) -> list[Figure]:
    """Where everything is forced the promise; the other workload is shown. A backend that forces nothing has no ceiling to reach."""
    backend = {each.name: each.backend for each in decoded.decoding.setup.arms}
    found = []
    for cell in (each for each in decoded.cells if each.strategy == "jump_forward"):
        promise = "jump_forward_of_ceiling" if cell.setting.workload == FORCED and backend[cell.arm] in PROMISED_OF else ""
        found.append(of_ceiling(decoded.speed_up(cell), f"{title} {cell.setting.workload} {cell.arm}", promise))
    return found


def of_ceiling(gain: overhead.SpeedUp | None, of: str, promise: str) -> Figure:
    """Speed-up over ceiling."""
    what = "jump_forward_of_ceiling"
    if gain is None or gain.ceiling is None or not gain.found.x:
        return Figure(what, of, None, promise=promise, note="no text came out the same as stepwise")
    if gain.saved <= 0:
        return Figure(what, of, None, note="it saves no pass")
    note = f"of a ceiling of {gain.ceiling:.2f}"
    return of_logs(what, of, [each - math.log(gain.ceiling) for each in gain.found.x], promise=promise, note=note)


def of_masks(decoded: Decoded, title: str) -> Iterator[Figure]:
    """What the loop's host waits: medians over the steps of the warm constrained runs."""
    for cell in (each for each in decoded.cells if each.strategy == "stepwise" and each.warm):
        for name in ("exposed_ns", "move_ns", "apply_ns", "accept_ns"):
            yield Figure("host", f"{title} {cell.setting.workload} {cell.arm} {name[:-3]}", of_column(cell, name) / 1e3, unit="us")


def of_column(cell: Cell, name: str) -> float:
    """The median over all steps of the warm runs, nanoseconds."""
    return float(np.median(np.concatenate([run.steps[:, STEP.index(name)] for run in cell.warm])))


# ----------------------------------------------------------------------------------------------------------------------- table


def table(figures: Sequence[Figure], device: str) -> str:
    """Everything but the host's times, which are in the file; at most 80 columns."""
    lines = [f"* filled by one call for the whole batch; [interval at {LEVEL:.0%}]"]
    for what, title in TITLES.items():
        if what == "host":
            continue
        lines += ["", title] + [line for each in figures if each.what == what for line in told(each, device)]
    return "\n".join(lines)


def told(figure: Figure, device: str) -> list[str]:
    said = verdict(figure, device)
    promised = f"promised {PROMISES[figure.promise]}: {said}" if figure.promise else ""
    if figure.value is None:
        return [
            f"  {figure.of[:44]:44} not measured",
            *([f"    {figure.note}"[:80]] if figure.note else []),
            *([f"    {promised}"] if promised else []),
        ]
    bounds = ""
    if figure.low is not None and figure.high is not None:
        bounds = f" [{short(figure.low)}, {short(figure.high)}]" if figure.high < WIDE * figure.low else " [wide]"
    more = "; ".join(each for each in (promised, figure.note) if each)
    return [f"  {figure.of[:44]:44} {short(figure.value)}{bounds} {figure.unit}".rstrip()[:80], *([f"    {more}"[:80]] if more else [])]


def short(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


if __name__ == "__main__":
    main()
