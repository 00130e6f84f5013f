"""What the service answers: which kernels there are, one probe of one kernel, one timed point, one movement.

Kernels are loaded in the child: a kernel that changes the device, compiles itself or crashes must not do so
in the process that forks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from harness.backend.process.child import Answer, Handler, Page
from harness.backend.registry import installed_version
from harness.errors import BadInput
from harness.measure.kernels.correctness import error_line, examine
from harness.measure.kernels.movement import time_movement
from harness.measure.kernels.rounds import Effort
from harness.measure.kernels.situations import PROBES
from harness.measure.kernels.subjects import KernelsFound, find_subjects
from harness.measure.kernels.timing import Point, time_point

COMPILERS = ("triton", "numba")

VARIANTS = 7
"""The most compiled variants of one function: after eight, torch silently compiles no more and runs the
function uncompiled."""


def load_kernels(
    specs: str | None, device: str, threads: int, page: Page | None = None
) -> tuple[Handler, dict[str, Any]]:
    """Returns the kernels of these backends (None: of all that are installed), for that kind of device, with
    `threads` torch threads."""
    try:
        import torch
    except ImportError as error:
        raise BadInput(
            f"the kernels work on torch tensors, and torch cannot be imported: {error}; pip install "
            '"grammarbench[backends]"'
        ) from error
    if device == "cuda" and not torch.cuda.is_available():
        raise BadInput("there is no CUDA device here; use --device cpu")
    torch.set_num_threads(threads)
    kernels_found = find_subjects(specs, page)
    kernels = [
        {
            "kernel": name,
            "form": subject.form,
            "devices": sorted(subject.kernel.devices),
            "dtypes": sorted(subject.kernel.dtypes),
            "indices": subject.kernel.indices,
            "documented": dict(subject.kernel.documented),
        }
        for name, subject in kernels_found.subjects.items()
    ]
    return KernelHandler(kernels_found, device), {
        "backends": list(kernels_found.backends),
        "kernels": kernels,
    }


class KernelHandler:
    """Answers requests on one kind of device."""

    def __init__(self, kernels_found: KernelsFound, device: str) -> None:
        self.subjects, self.device = kernels_found.subjects, device
        self.loaded: Callable[[str], Callable[..., object]] = cache(
            lambda name: self.subjects[name].kernel.load()
        )
        self.asked = ("", 0)

    def __call__(self, message: dict[str, Any], _: bytes) -> Answer:
        answers = {
            "describe": self.describe,
            "load": self.load,
            "probe": self.probe,
            "time": self.time,
            "move": self.move,
        }
        return answers[message["op"]](message), b""

    def describe(self, _: dict[str, Any]) -> dict[str, Any]:
        """Returns the device, and what kernels compile themselves with."""
        import torch

        on = {
            "name": torch.cuda.get_device_name() if self.device == "cuda" else "",
            "cuda": str(torch.version.cuda or ""),
            "torch": str(torch.__version__),
            "compilers": {compiler: installed_version(compiler) or "" for compiler in COMPILERS},
        }
        return {"on": on}

    def load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns why the kernel cannot be loaded; empty if it can."""
        try:
            self.loaded(message["kernel"])
        except BaseException as error:  # a compiler that fails raises what it likes
            return {"problem": error_line(error)}
        return {"problem": ""}

    def probe(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns the outcome of the probe of that name."""
        (probe,) = (candidate for candidate in PROBES if candidate.name == message["probe"])
        self.compile_anew(message["kernel"], VARIANTS)
        result = examine(self.loaded(message["kernel"]), probe, message["dtype"], self.device)
        return {"outcome": result.outcome, "text": result.text}

    def time(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns the rows of a point."""
        point = Point(**message["point"])
        self.compile_anew(point.dtype)
        subjects = {name: self.subjects[name] for name in message["kernels"]}
        loaded = {name: self.loaded(name) for name in subjects}
        return {"rows": time_point(subjects, loaded, point, Effort(**message["effort"]), self.device)}

    def compile_anew(self, what: str, limit: float = math.inf) -> None:
        """Forgets what torch has compiled, between two kinds of requests and after `limit` requests of one
        kind."""
        last, count = self.asked
        forget = what != last or count >= limit
        if forget and "torch._dynamo" in sys.modules:
            import torch

            torch.compiler.reset()
        self.asked = (what, 1 if forget else count + 1)

    def move(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns the rows of the movement of masks of that size."""
        return {
            "rows": time_movement(
                message["vocabulary"], message["batch"], Effort(**message["effort"]), self.device
            )
        }
