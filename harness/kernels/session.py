"""A run: the coordinator, which asks a service for every probe and point and writes down each answer before it asks for the next."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.errors import BadInput
from harness.kernels.plan import Plan
from harness.kernels.situations import PROBES
from harness.kernels.timing import COPY, Point
from harness.machine import describe_machine, usable_processors
from harness.service.client import Lost, Service

FILE = "kernels.jsonl"
FORMAT = 1
"""Of the file; a change that an older reader would misread raises it."""

LOADER = "harness.kernels.handler:load_kernels"
MEMORY_BYTES = 12_000_000_000
COMPILE_SECONDS = 400.0
"""For a kernel's first probe, and for all that is done at a point: a kernel may compile itself."""
PROBE_SECONDS = 60.0
HUNG = "killed after"
OURS = ("it raised", "it does not load", "no child after", "the process ended while it loaded", "the request is too long")
"""How a loss begins that no kernel has caused: a kernel's own errors are answers."""


def measure(specs: str | None, device: str, plan: Plan, out: Path, argv: Sequence[str], say: Callable[[str], None]) -> dict[str, int]:
    """Probe and time the kernels of these backends (None: of all that are installed) into `out`; how many probes had which outcome.

    Raises BadInput if there is such a file already, or if a backend or the device is not to be had.
    """
    path = out / FILE
    if path.exists():
        raise BadInput(f"{path} is there already; name another folder with --out")
    with Run(specs, device, plan, say) as run:
        run.open(1)
        out.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            return run.whole(file, argv)


@dataclass
class Run:
    """One run in the making."""

    specs: str | None
    device: str
    plan: Plan
    say: Callable[[str], None]
    unfit: dict[str, str] = field(default_factory=dict)
    """Kernels that are not asked any more, and why."""
    counts: Counter[str] = field(default_factory=Counter)
    _service: Service | None = None
    _file: IO[str] | None = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the service."""
        if self._service is not None:
            self._service.close()
            self._service = None

    @property
    def service(self) -> Service:
        """The one that is open."""
        assert self._service is not None
        return self._service

    def open(self, threads: int) -> None:
        """A service with so many threads, instead of the one before it. Raises BadInput."""
        self.close()
        # The second variable asks the driver's library, not the driver, whether there is a device: after that one can still fork.
        environment = {"OMP_NUM_THREADS": str(threads), "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
        arguments = {"specs": self.specs, "device": self.device, "threads": threads}
        self._service = Service(LOADER, arguments, MEMORY_BYTES, environment=environment)
        try:
            self._service.start()
            self._service.wait()
        except Lost as why:
            raise BadInput(f"the backends cannot be loaded for their kernels: {why}") from why

    def whole(self, file: IO[str], argv: Sequence[str]) -> dict[str, int]:
        """Everything, line by line."""
        self._file = file
        begin = time.monotonic()
        cpus = usable_processors()
        self.write(
            "run",
            format=FORMAT,
            argv=list(argv),
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            device=self.device,
            on=self.service.ask({"op": "describe"}, seconds=PROBE_SECONDS)[0]["on"],
            backends=self.service.said["backends"],
            machine=describe_machine(),
            plan=asdict(self.plan),
        )
        usable = self.load_all()
        for number, kernel in enumerate(usable):
            self.say(f"correctness {number + 1}/{len(usable)}: {kernel['kernel']}")
            self.probe_all(kernel)
        self.time_all(1)
        self.say("movement")
        for vocabulary in self.plan.vocabularies:
            for batch in self.plan.batches:
                self.move(vocabulary, batch)
        if self.device == "cpu" and self.plan.shares_on_all_threads and cpus > 1:
            self.open(cpus)
            self.time_all(cpus)
        self.write("end", seconds=round(time.monotonic() - begin, 1), counts=dict(self.counts))
        return dict(self.counts)

    def write(self, kind: str, **values: Any) -> None:
        """One line, on disk at once."""
        assert self._file is not None
        self._file.write(json.dumps({"kind": kind, **values}) + "\n")
        self._file.flush()

    def load_all(self) -> list[dict[str, Any]]:
        """A line for each kernel; those that can be asked on this device and have probes."""
        usable = []
        for kernel in self.service.said["kernels"]:
            name = kernel["kernel"]
            problem = "" if self.device in kernel["devices"] else f"exists on {', '.join(kernel['devices'])} only"
            if not problem:
                try:
                    problem = self.service.ask({"op": "load", "kernel": name}, seconds=COMPILE_SECONDS)[0]["problem"]
                except Lost as why:
                    problem = str(why)
            if problem:
                self.unfit[name] = problem
            self.write("kernel", **kernel, problem=problem)
            if not problem and kernel["form"] == "packed":
                usable.append(kernel)
        return usable

    def probe_all(self, kernel: dict[str, Any]) -> None:
        """Every probe that the kernel has the types and the arguments for."""
        seconds = COMPILE_SECONDS
        for probe in PROBES:
            if probe.rows is not None and not kernel["indices"]:
                continue
            for dtype in kernel["dtypes"] if probe.every_dtype else ["float32"]:
                if dtype not in kernel["dtypes"]:
                    continue
                seen = self.probe(kernel["kernel"], probe.name, dtype, seconds)
                seconds = PROBE_SECONDS
                self.counts[seen["outcome"]] += 1
                documented = kernel["documented"].get(probe.name, "") if seen["outcome"] == "failed" else ""
                self.write("probe", kernel=kernel["kernel"], probe=probe.name, dtype=dtype, **seen, documented=documented)
                if seen["text"].startswith(HUNG):
                    self.unfit[kernel["kernel"]] = f"hung in the probe {probe.name}"
                    return

    def probe(self, kernel: str, probe: str, dtype: str, seconds: float) -> dict[str, Any]:
        """Its outcome and text; a child that is lost in it has `crashed`."""
        message = {"op": "probe", "kernel": kernel, "probe": probe, "dtype": dtype}
        try:
            seen, _ = self.service.ask(message, seconds=seconds)
        except Lost as why:
            return {"outcome": "harness_error" if _ours(why) else "crashed", "text": str(why)}
        if seen["outcome"] == "crashed":  # the device answers nothing more in that child
            self.service.close()
        return {"outcome": seen["outcome"], "text": seen["text"]}

    def time_all(self, threads: int) -> None:
        """Every point, on so many threads."""
        last = None
        for point in self.plan.points(on_all_threads=threads > 1):
            if (now := (point.dtype, point.vocabulary)) != last:
                self.say(f"time: {point.dtype}, vocabulary {point.vocabulary}, {threads} thread{'s' * (threads > 1)}")
                last = now
            kernels = [
                each["kernel"]
                for each in self.service.said["kernels"]
                if each["kernel"] not in self.unfit and point.dtype in each["dtypes"] and self.device in each["devices"]
            ]
            for row in self.time_point(kernels, point):
                self.write("time", **row, threads=threads)

    def time_point(self, kernels: Sequence[str], point: Point) -> list[dict[str, Any]]:
        """Its rows. Where one of the kernels takes the child along, each is asked alone, and that one not again."""
        try:
            return self.ask_point(kernels, point)
        except Lost as why:
            lost = why
        rows: dict[str, dict[str, Any]] = {}
        for kernel in kernels:
            try:
                for row in self.ask_point([kernel], point):
                    rows.setdefault(row["kernel"], row | {"alone": row["kernel"] != COPY})
            except Lost as why:
                if not _ours(why):
                    self.unfit[kernel] = str(why)
                rows[kernel] = {
                    "kernel": kernel,
                    "outcome": "harness_error" if _ours(why) else "crashed",
                    "text": str(why),
                    **asdict(point),
                }
        if all(row["outcome"] not in ("crashed", "harness_error") for row in rows.values()):
            self.say(f"together they were lost ({lost}), alone none of them")
        return list(rows.values())

    def ask_point(self, kernels: Sequence[str], point: Point) -> list[dict[str, Any]]:
        """Raises Lost."""
        message = {"op": "time", "kernels": list(kernels), "point": asdict(point), "effort": asdict(self.plan.effort)}
        rows: list[dict[str, Any]] = self.service.ask(message, seconds=COMPILE_SECONDS)[0]["rows"]
        return rows

    def move(self, vocabulary: int, batch: int) -> None:
        """The rows of masks of that size."""
        message = {"op": "move", "vocabulary": vocabulary, "batch": batch, "effort": asdict(self.plan.effort)}
        try:
            rows = self.service.ask(message, seconds=COMPILE_SECONDS)[0]["rows"]
        except Lost as why:
            rows = [{"form": "", "memory": "", "company": "", "text": f"lost: {why}", "vocabulary": vocabulary, "batch": batch}]
        for row in rows:
            self.write("move", **row)


def _ours(why: Lost) -> bool:
    return str(why).startswith(OURS)
