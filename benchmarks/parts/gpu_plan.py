"""What benchmarks/gpu.py measures: four parts, each of cells. A cell is what one process measures and what
is stored in one piece, so that an interrupted part goes on with the next cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

PARTS = {
    "kernels": "mask kernels of every library against the bandwidth of a copy",
    "decode": "decoding: the bandwidth floor, what a grammar adds, and what each strategy gains",
    "cold": "a grammar that is not compiled yet comes into a warm batch",
    "share": "the share of requests with a grammar, from 0 to 100 %",
}
"""The parts by name, in the order in which they are measured, and what each measures."""

FORMAT = 1
"""The version of a part's file."""
SAME = {"device": "another device", "torch": "another torch", "versions": "other versions"}
"""The fields that must be the same in all files of a folder, and the words for a file where one is not."""

SMOKE, SMOKE_SECONDS = "smoke", 40.0
"""The name of the part that stores nothing, and for how many seconds it tries one step after the other."""

Kind = Literal["times", "probes", "floor", "decode", "cold", "share", "smoke"]

VOCABULARY = "tekken"
PROMPT, LIMIT = 32, 64
"""Tokens of each prompt and, at most, of each output."""
LONG_LIMIT = 128
"""The most tokens of an output in the part `cold`, where the others run on while a grammar is compiled."""

FORCED, MIXED, LONG = "all_forced", "function_calls", "long_arrays"
"""The workloads. Every text of LONG is longer than LONG_LIMIT, so that all rows of a batch end together."""
NO_OVERLAP = "no overlap"
"""The way to fill masks in which none is filled while the model works."""

BACKENDS = ("xgrammar", "llguidance")
"""The backends that decode."""
KERNEL_BACKENDS = ("xgrammar", "llguidance", "outlines-core")
"""The backends that have kernels which apply masks."""

JUDGED_BATCH = 32
"""The batch at which constrained runs are held against unconstrained ones."""

SHAPE_SECONDS = {"1b": 0.65, "8b": 1.0}
"""How long a cell of `decode` takes with a shape, as a share of 8b's time."""
FLOOR_SECONDS = {"1b": 36.0, "8b": 46.0}
"""Seconds that a cell `floor` takes, as an H200 took."""
DECODE_SECONDS = {1: 96.0, 8: 72.0, 32: 98.0, 128: 108.0, 512: 300.0}
"""Seconds that a cell of `decode` takes at that batch with 8b, as an H200 took; at 512 by what it took when a
cell had fewer settings. Once such a cell is measured, its own time stands in their place."""


TIMES_SECONDS = {262_208: 55.0}
"""Seconds that a cell `times` takes with so many ids, where it is not the usual 32: an H200 took 26 to 30
with 131,072 and with 32,768, and more ids are more work for the host."""
COMPILE_SECONDS = 50.0
"""Seconds more that the first cell of kernels takes on a machine, because nvcc compiles one of xgrammar's."""


@dataclass(frozen=True)
class Cell:
    """What one process measures."""

    part: str
    kind: Kind
    seconds: float
    """How long it is thought to take, until one like it was measured."""
    shape: str = ""
    batch: int = 0
    fork: int = 0
    """Cells that differ in this alone repeat one another in fresh processes; intervals are over them."""
    backend: str = ""
    dtype: str = ""
    vocabulary: int = 0
    """The ids of a kernel's logits."""

    @property
    def like(self) -> str:
        """Returns what cells that take equally long have in common."""
        parts = [self.kind, self.shape, self.batch, self.backend, self.dtype, self.vocabulary]
        return "-".join(str(part) for part in parts if part)

    @property
    def name(self) -> str:
        """Returns the cell's name, which is also that of a folder."""
        return f"{self.like}-fork-{self.fork + 1}" if self.kind == "decode" else self.like


@dataclass(frozen=True)
class Plan:
    """What is measured on a kind of device."""

    shapes: tuple[str, ...] = ("8b", "1b")
    batches: tuple[int, ...] = (32, 1, 8, 128, 512)
    """Batches of `decode`, in the order of what matters most."""
    judged_batch: int = JUDGED_BATCH
    forks: int = 3
    rounds: int = 2
    """Warm rounds of a cell of `decode`."""
    texts: int = 4
    """How many texts are decoded at batch 1; at larger batches each row has one."""
    vocabularies: tuple[int, ...] = (131_072, 32_768, 262_208)
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    kernel_batches: tuple[int, ...] = (1, 8, 32, 128, 512)
    kernel_rounds: int = 30
    own_kernel: bool = True
    """Whether masks are also applied by the backends' own kernels."""
    cold_batches: tuple[int, ...] = (32, 8)
    share_batches: tuple[int, ...] = (32, 512)
    repeats: int = 5
    """Warm repetitions of `cold` and `share`."""
    copied: int = 2 << 30
    """Bytes that the copy touches by which bandwidth is measured: more than any cache holds."""
    backends: tuple[str, ...] = BACKENDS
    kernel_backends: tuple[str, ...] = KERNEL_BACKENDS
    own_alone: tuple[str, ...] = ()
    """The backends of which no kernel is needed but the one that a cell of `decode` takes for its own."""

    def cells(self, part: str) -> list[Cell]:
        """Returns the cells of a part, in the order in which they are measured."""
        return list(getattr(self, f"_{part}")())

    def needed_by(self, cells: Iterable[Cell]) -> Plan:
        """Returns the plan with those backends alone that the cells need: to decode with, and for their
        kernels, of which a cell of `decode` applies one too."""
        decode: set[str] = set()
        mask: set[str] = set()
        own: set[str] = set()
        for cell in cells:
            if cell.part == "kernels":
                mask |= {cell.backend} if cell.backend else {*self.kernel_backends}
            elif cell.kind != "floor":
                decode |= {cell.backend} if cell.backend else {*self.backends}
                own |= {*self.backends} if cell.kind == "decode" and self.own_kernel else set()
        return replace(
            self,
            backends=tuple(name for name in self.backends if name in decode),
            kernel_backends=tuple(name for name in self.kernel_backends if name in mask | own),
            own_alone=tuple(name for name in self.kernel_backends if name in own - mask),
        )

    def _kernels(self) -> Iterator[Cell]:
        for vocabulary in self.vocabularies:
            for dtype in self.dtypes:
                seconds = TIMES_SECONDS.get(vocabulary, 32.0)
                yield Cell("kernels", "times", seconds, dtype=dtype, vocabulary=vocabulary)
        for backend in self.kernel_backends:
            yield Cell("kernels", "probes", 120, backend=backend)

    def _decode(self) -> Iterator[Cell]:
        """Yields the first shape whole before the second, so that a short lease holds one of them whole."""
        for fork in range(self.forks):
            for shape in self.shapes:
                share = SHAPE_SECONDS.get(shape, 1)
                if fork == 0:
                    yield Cell("decode", "floor", FLOOR_SECONDS.get(shape, 40.0), shape)
                for batch in self.batches:
                    seconds = DECODE_SECONDS.get(batch, 60.0) * share
                    yield Cell("decode", "decode", seconds, shape, batch, fork)

    def _cold(self) -> Iterator[Cell]:
        yield from self._loads("cold", self.cold_batches, 72, {})

    def _share(self) -> Iterator[Cell]:
        yield from self._loads("share", self.share_batches, 36, {512: 120.0})

    def _loads(
        self, kind: Literal["cold", "share"], batches: tuple[int, ...], usual: float, others: dict[int, float]
    ) -> Iterator[Cell]:
        for batch in batches:
            for shape in self.shapes:
                for backend in self.backends:
                    yield Cell(kind, kind, others.get(batch, usual), shape, batch, backend=backend)


def plan_of(device: str) -> Plan:
    """Returns the plan of the device `cuda`; or that of `cpu`, which shows that the script works and says
    nothing about a GPU."""
    if device == "cuda":
        return Plan()
    return Plan(
        shapes=("tiny",),
        batches=(8, 1),
        judged_batch=8,
        forks=1,
        rounds=1,
        texts=2,
        vocabularies=(32_768,),
        kernel_batches=(1, 8),
        kernel_rounds=5,
        cold_batches=(4,),
        share_batches=(4,),
        repeats=2,
        copied=64 << 20,
        own_kernel=False,  # on a CPU some compile themselves for minutes
    )
