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

from harness.backend.process.lost import Lost, lost_in_time
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
"""The most seconds for one run of a setting, or one call of a kernel. Of what takes longer, as where it is
compiled for the first time, it is not known whether it works."""
LEFT_OUT = ("xgrammar/cuda",)
"""Kernels that nvcc compiles at their first call, for most of a minute."""

Say = Callable[[str], None]
Step = tuple[str, Callable[[], None]]


class TooSlow(Exception):
    """A step was ended before it was known whether what it tries works."""


def smoke(plan: Plan, device: str, folder: Path, seconds: float, say: Say) -> list[str]:
    """Makes one step after the other, for so many seconds, and returns the names of those of which it is not
    known whether they work: no time was left for them, or they were too slow, which stops none of the others.
    A step that was begun is made whole; while it is, a file in the folder has its name and those behind it.
    Raises BadInput, with the step's name, for the first that fails."""
    ends = time.monotonic() + seconds
    every = list(steps(plan, device, folder, say))
    names = [name for name, _ in every]
    folder.mkdir(parents=True, exist_ok=True)
    unknown: list[str] = []
    for index, (name, step) in enumerate(every):
        began = time.monotonic()
        if began >= ends:
            return unknown + names[index:]
        write_whole(folder / OPEN_STEPS, json.dumps(names[index:]))
        try:
            step()
        except (BadInput, Lost) as error:
            raise BadInput(f"{name}: {error}") from error
        except TooSlow as slow:
            unknown.append(f"{name} ({slow})")
            continue
        say(f"{name}: works ({time.monotonic() - began:.1f} s)")
    return unknown


def steps(plan: Plan, device: str, folder: Path, say: Say) -> Iterator[Step]:
    """Yields the steps by name, those first without which least can be measured: of the plan's backends
    alone."""
    for backend in dict.fromkeys((*plan.kernel_backends, *plan.backends)):
        yield f"the library {backend}", partial(check_backend, backend)
    if plan.backends:
        yield f"decoding with the shape {SHAPE}", partial(_decoded, plan, device, folder / "decode")
    for backend in plan.kernel_backends:
        own = backend in plan.own_alone
        yield f"the kernels of {backend}", partial(_masked, backend, device, say, own)


def settings() -> tuple[Setting, ...]:
    """Returns a setting of each strategy at each batch; masks are filled beside the pass."""
    return tuple(
        Setting(MIXED, strategy, batch=batch, texts=batch, prompt_tokens=PROMPT, limit=TOKENS)
        for batch in BATCHES
        for strategy in STRATEGIES
    )


def _decoded(plan: Plan, device: str, folder: Path) -> None:
    """Decodes a setting of each strategy, by each backend. Raises BadInput for the first that is lost, has a
    text that its grammar does not allow, or writes other tokens than those that it replays; TooSlow, behind
    these, for the first that was ended because it took too long."""
    request = request_of(plan.backends, SHAPE, settings(), device, folder, ANSWER_SECONDS)
    decode(request, lambda _: None)
    decoding = read_decoding(folder)
    late = str(lost_in_time(ANSWER_SECONDS))
    slow = []
    for loss in decoding.losses:
        said = f"{loss.arm}, {decoding.setup.settings[loss.setting].name}: {loss.why}"
        if late not in loss.why:
            raise BadInput(said)
        slow.append(said)
    for cell in Decoded(decoding).cells:
        where = f"{cell.arm}, {cell.setting.name}"
        if not cell.warm and not slow:
            raise BadInput(f"{where}: it has no warm run")
        for judged in cell.judged:
            done = judged.completed
            if done.end not in ANSWERED or done.fallback:
                raise BadInput(f"{where}: {done.name} ended as {done.end}: {done.why or done.fallback}")
            if judged.right == "invalid" or judged.as_replayed is False:
                raise BadInput(f"{where}: {done.name} wrote another text than it was to write")
    if slow:
        raise TooSlow(slow[0])


def _masked(backend: str, device: str, say: Say, own: bool = False) -> None:
    """Applies a mask by each kernel of the backend, or only by the `own` one of a decoding, and compares with
    `masked_fill`. Raises BadInput or Lost for the first that does anything else, and TooSlow, behind all,
    for those that did not answer in time; one that cannot be loaded is told."""
    slow = []
    with KernelRun(backend, device, KernelPlan(vocabularies=()), say) as run:
        run.open(1)
        fitting = [
            kernel["kernel"]
            for kernel in run.service.description["kernels"]
            if kernel["kernel"].startswith(f"{backend}/")
            and device in kernel["devices"]
            and "float32" in kernel["dtypes"]
        ]
        for name in fitting[:1] if own else fitting:
            if name in LEFT_OUT:
                continue
            try:
                _applied(run, name, say)
            except TooSlow:
                slow.append(name)
    if slow:
        raise TooSlow(f"no answer within {ANSWER_SECONDS:g} s by {', '.join(slow)}")


def _applied(run: KernelRun, name: str, say: Say) -> None:
    """Applies a mask by that kernel; raises as `_masked` says."""
    try:
        problem = run.service.ask({"op": "load", "kernel": name}, seconds=ANSWER_SECONDS)[0]["problem"]
    except Lost as lost:
        if lost.cause == "timeout":
            raise TooSlow(name) from lost
        raise
    if problem:
        say(f"{name} cannot be loaded: {problem}")
        return
    result, hung = run.probe(name, PROBES[0].name, "float32", ANSWER_SECONDS)
    if hung:
        raise TooSlow(name)
    if result["outcome"] != "passed":
        raise BadInput(f"{name}: a mask that it applied {result['outcome']}: {result['text']}")
