"""A run of kernels: the coordinator asks a service for every probe and point, and writes down each answer
before it asks for the next."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.registry import parse_specs
from harness.errors import BadInput
from harness.measure.kernels.plan import KernelPlan
from harness.measure.kernels.situations import PROBES
from harness.measure.kernels.subjects import AT, wanted
from harness.measure.kernels.timing import COPY, Point
from harness.rows.appending import encoded, write_lines
from harness.rows.folder import make_writable, now
from harness.rows.machine import describe_machine, usable_processors
from harness.text import counted

FILE = "kernels.jsonl"
FORMAT = 1
"""The version of the file. A change that an older reader would misread raises it."""

LOADER = "harness.measure.kernels.handler:load_kernels"
MEMORY_BYTES = 12_000_000_000
COMPILE_SECONDS = 400.0
"""The most seconds for a kernel's first probe, and for all that is done at a point: a kernel may compile
itself."""
PROBE_SECONDS = 60.0


def measure(
    specs: str | None,
    device: str,
    plan: KernelPlan,
    out: Path,
    argv: Sequence[str],
    say: Callable[[str], None],
) -> dict[str, int]:
    """Probes and times the kernels of these backends (None: of all that are installed) into `out`; returns
    the number of probes by outcome.

    Raises BadInput if there is such a file already or the folder cannot be written, and if a backend or the
    device is not to be had.
    """
    path = out / FILE
    if path.exists():
        raise BadInput(f"{path} is there already; name another folder with --out")
    if specs is not None:
        parse_specs(specs)  # a name that is misspelled leaves no folder behind
    make_writable(out)
    with KernelRun(specs, device, plan, say) as run:
        run.open(1)
        with open(path, "xb") as file:
            return run.whole(file, argv)


@dataclass
class KernelRun:
    """One run that is under way."""

    specs: str | None
    device: str
    plan: KernelPlan
    say: Callable[[str], None]
    unfit: dict[str, str] = field(default_factory=dict)
    """Why kernels are no longer asked, by kernel."""
    counts: Counter[str] = field(default_factory=Counter)
    _service: Service | None = None
    _file: IO[bytes] | None = None

    def __enter__(self) -> KernelRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the service."""
        if self._service is not None:
            self._service.close()
            self._service = None

    @property
    def service(self) -> Service:
        """Returns the service that is open."""
        assert self._service is not None
        return self._service

    def open(self, threads: int) -> None:
        """Starts a service with that many threads, in place of the one before it. Raises BadInput."""
        self.close()
        arguments = {"specs": self.specs, "device": self.device, "threads": threads}
        environment = {"OMP_NUM_THREADS": str(threads)}
        self._service = Service(LOADER, arguments, MEMORY_BYTES, environment=environment, has_page=True)
        try:
            self._service.start()
            self._service.wait()
        except Lost as why:
            at = self._service.page[AT] if self._service.page is not None else 0
            who = (
                f'backend "{wanted(self.specs)[at - 1]}" cannot be loaded for its'
                if at
                else "the backends cannot be loaded for their"
            )
            raise BadInput(f"{who} kernels: {why}") from why

    def whole(self, file: IO[bytes], argv: Sequence[str]) -> dict[str, int]:
        """Makes the whole run, line by line; returns the number of probes by outcome."""
        self._file = file
        begin = time.monotonic()
        cpus = usable_processors()
        self.write(
            "run",
            format=FORMAT,
            argv=list(argv),
            started=now(),
            device=self.device,
            on=self.service.ask({"op": "describe"}, seconds=PROBE_SECONDS)[0]["on"],
            backends=self.service.description["backends"],
            machine=describe_machine(),
            plan=asdict(self.plan),
        )
        usable = self.load_all()
        for number, kernel in enumerate(usable if self.plan.probes else ()):
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
        """Writes one line, which is on disk at once."""
        assert self._file is not None
        write_lines(self._file, [encoded({"kind": kind, **values})])

    def load_all(self) -> list[dict[str, Any]]:
        """Writes a line for each kernel; returns those that can be asked on this device and have probes."""
        usable = []
        for kernel in self.service.description["kernels"]:
            name = kernel["kernel"]
            problem = (
                "" if self.device in kernel["devices"] else f"exists on {', '.join(kernel['devices'])} only"
            )
            if not problem:
                try:
                    problem = self.service.ask({"op": "load", "kernel": name}, seconds=COMPILE_SECONDS)[0][
                        "problem"
                    ]
                except Lost as why:
                    problem = str(why)
            if problem:
                self.unfit[name] = problem
            self.write("kernel", **kernel, problem=problem)
            if not problem and kernel["form"] == "packed":
                usable.append(kernel)
        return usable

    def probe_all(self, kernel: dict[str, Any]) -> None:
        """Makes every probe for which the kernel has the types and the arguments."""
        seconds = COMPILE_SECONDS
        for probe in PROBES:
            if probe.rows is not None and not kernel["indices"]:
                continue
            for dtype in kernel["dtypes"] if probe.every_dtype else ["float32"]:
                if dtype not in kernel["dtypes"]:
                    continue
                result, hung = self.probe(kernel["kernel"], probe.name, dtype, seconds)
                seconds = PROBE_SECONDS
                self.counts[result["outcome"]] += 1
                documented = kernel["documented"].get(probe.name, "") if result["outcome"] == "failed" else ""
                self.write(
                    "probe",
                    kernel=kernel["kernel"],
                    probe=probe.name,
                    dtype=dtype,
                    **result,
                    documented=documented,
                )
                if hung:
                    self.unfit[kernel["kernel"]] = f"hung in the probe {probe.name}"
                    return

    def probe(self, kernel: str, probe: str, dtype: str, seconds: float) -> tuple[dict[str, Any], bool]:
        """Returns its outcome and text, and whether it hung; a child that is lost in it has `crashed`."""
        message = {"op": "probe", "kernel": kernel, "probe": probe, "dtype": dtype}
        try:
            answer, _ = self.service.ask(message, seconds=seconds)
        except Lost as why:
            return {"outcome": _outcome(why), "text": str(why)}, why.cause == "timeout"
        if answer["outcome"] == "crashed":  # the device answers nothing more in that child
            self.service.close()
        return {"outcome": answer["outcome"], "text": answer["text"]}, False

    def time_all(self, threads: int) -> None:
        """Times every point on that many threads."""
        last = None
        for point in self.plan.points(on_all_threads=threads > 1):
            if (this := (point.dtype, point.vocabulary)) != last:
                self.say(f"time: {point.dtype}, vocabulary {point.vocabulary}, {counted(threads, 'thread')}")
                last = this
            kernels = [
                kernel["kernel"]
                for kernel in self.service.description["kernels"]
                if kernel["kernel"] not in self.unfit
                and point.dtype in kernel["dtypes"]
                and self.device in kernel["devices"]
            ]
            for row in self.time_point(kernels, point):
                self.write("time", **row, threads=threads)

    def time_point(self, kernels: Sequence[str], point: Point) -> list[dict[str, Any]]:
        """Returns the rows of a point. If one of the kernels crashes the child, each is asked alone, and the
        crashing one not again."""
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
                if why.whose == "backend":
                    self.unfit[kernel] = str(why)
                rows[kernel] = {"kernel": kernel, "outcome": _outcome(why), "text": str(why), **asdict(point)}
        if all(row["outcome"] not in ("crashed", "harness_error") for row in rows.values()):
            self.say(f"together they were lost ({lost}), alone none of them")
        return list(rows.values())

    def ask_point(self, kernels: Sequence[str], point: Point) -> list[dict[str, Any]]:
        """Returns the rows of a point, asked once. Raises Lost."""
        message = {
            "op": "time",
            "kernels": list(kernels),
            "point": asdict(point),
            "effort": asdict(self.plan.effort),
        }
        rows: list[dict[str, Any]] = self.service.ask(message, seconds=COMPILE_SECONDS)[0]["rows"]
        return rows

    def move(self, vocabulary: int, batch: int) -> None:
        """Writes the rows of the movement of masks of that size."""
        message = {"op": "move", "vocabulary": vocabulary, "batch": batch, "effort": asdict(self.plan.effort)}
        try:
            rows = self.service.ask(message, seconds=COMPILE_SECONDS)[0]["rows"]
        except Lost as why:
            rows = [
                {
                    "form": "",
                    "memory": "",
                    "company": "",
                    "text": f"lost: {why}",
                    "vocabulary": vocabulary,
                    "batch": batch,
                }
            ]
        for row in rows:
            self.write("move", **row)


def _outcome(lost: Lost) -> str:
    """Returns the outcome of a probe or a point whose child was lost; a kernel's own errors are answers."""
    return "crashed" if lost.whose == "backend" else "harness_error"
