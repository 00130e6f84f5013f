"""The part `smoke`: whether what the other parts run works on this device, on small shapes, before time is
spent on large ones. What fails ends the script; nothing of it is stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from gpu_decode import request_of
from gpu_machine import check_backend
from gpu_plan import MIXED, PROMPT, Plan
from gpu_running import OPEN_STEPS

from harness.backend.process.lost import Lost
from harness.errors import BadInput
from harness.measure.kernels.plan import KernelPlan
from harness.measure.kernels.session import KernelRun
from harness.measure.kernels.situations import PROBES
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import read_decoding
from harness.serve.decode.session import decode
from harness.serve.decode.setting import Setting
from harness.walk.loop.outcome import ANSWERED
from harness.whole_files import write_whole

SHAPE = "tiny"
BATCHES, TOKENS = (1, 8), 32
"""The batches that are decoded, and the most tokens of each output."""
STRATEGIES = ("stepwise", "jump_forward", "speculative")
ANSWER_SECONDS = 30.0
"""The most seconds for one run of a setting, or one call of a kernel: what hangs is a failure."""
LEFT_OUT = ("xgrammar/cuda",)
"""Kernels that nvcc compiles at their first call, for most of a minute."""

Say = Callable[[str], None]
Step = tuple[str, Callable[[], None]]


def smoke(plan: Plan, device: str, folder: Path, seconds: float, say: Say) -> list[str]:
    """Makes one step after the other, for so many seconds, and returns the names of those for which no time
    was left. A step that was begun is made whole; while it is, a file in the folder has its name and those
    behind it. Raises BadInput, with the step's name, for the first that fails."""
    ends = time.monotonic() + seconds
    every = list(steps(plan, device, folder, say))
    names = [name for name, _ in every]
    folder.mkdir(parents=True, exist_ok=True)
    for index, (name, step) in enumerate(every):
        began = time.monotonic()
        if began >= ends:
            return names[index:]
        write_whole(folder / OPEN_STEPS, json.dumps(names[index:]))
        try:
            step()
        except (BadInput, Lost) as error:
            raise BadInput(f"{name}: {error}") from error
        say(f"{name}: works ({time.monotonic() - began:.1f} s)")
    return []


def steps(plan: Plan, device: str, folder: Path, say: Say) -> Iterator[Step]:
    """Yields the steps by name, those first without which least can be measured: of the plan's backends
    alone."""
    for backend in dict.fromkeys((*plan.kernel_backends, *plan.backends)):
        yield f"the library {backend}", partial(check_backend, backend)
    if plan.backends:
        yield f"decoding with the shape {SHAPE}", partial(_decoded, plan, device, folder / "decode")
    for backend in plan.kernel_backends:
        yield f"the kernels of {backend}", partial(_masked, backend, device, say)


def settings() -> tuple[Setting, ...]:
    """Returns a setting of each strategy at each batch; masks are filled beside the pass."""
    return tuple(
        Setting(MIXED, strategy, batch=batch, texts=batch, prompt_tokens=PROMPT, limit=TOKENS)
        for batch in BATCHES
        for strategy in STRATEGIES
    )


def _decoded(plan: Plan, device: str, folder: Path) -> None:
    """Decodes a setting of each strategy, by each backend. Raises BadInput for the first that is lost, has a
    text that its grammar does not allow, or writes other tokens than those that it replays."""
    request = request_of(plan.backends, SHAPE, settings(), device, folder, ANSWER_SECONDS)
    decode(request, lambda _: None)
    decoding = read_decoding(folder)
    for loss in decoding.losses:
        raise BadInput(f"{loss.arm}, {decoding.setup.settings[loss.setting].name}: {loss.why}")
    for cell in Decoded(decoding).cells:
        where = f"{cell.arm}, {cell.setting.name}"
        if not cell.warm:
            raise BadInput(f"{where}: it has no warm run")
        for judged in cell.judged:
            done = judged.completed
            if done.end not in ANSWERED or done.fallback:
                raise BadInput(f"{where}: {done.name} ended as {done.end}: {done.why or done.fallback}")
            if judged.right == "invalid" or judged.as_replayed is False:
                raise BadInput(f"{where}: {done.name} wrote another text than it was to write")


def _masked(backend: str, device: str, say: Say) -> None:
    """Applies a mask by each kernel of the backend, and compares with `masked_fill`. Raises BadInput or Lost
    for the first that does anything else; one that cannot be loaded is told."""
    with KernelRun(backend, device, KernelPlan(vocabularies=()), say) as run:
        run.open(1)
        for kernel in run.service.description["kernels"]:
            name = kernel["kernel"]
            if not name.startswith(f"{backend}/") or name in LEFT_OUT or device not in kernel["devices"]:
                continue
            problem = run.service.ask({"op": "load", "kernel": name}, seconds=ANSWER_SECONDS)[0]["problem"]
            if problem:
                say(f"{name} cannot be loaded: {problem}")
                continue
            result, _ = run.probe(name, PROBES[0].name, "float32", ANSWER_SECONDS)
            if result["outcome"] != "passed":
                raise BadInput(f"{name}: a mask that it applied {result['outcome']}: {result['text']}")
