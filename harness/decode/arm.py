"""One arm of a decoding, in a service's child: it builds the model, serves what it is told, and concludes nothing.

The service's process loads libraries, vocabulary and adapter; whatever touches a device waits for the child, which CUDA cannot outlive.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.decode import arrivals
from harness.decode.setting import OWN, Setting
from harness.decode.shapes import SHAPES, build_shape
from harness.decode.workloads import Text, Workload, answer, find_workload, reference, requests, think_end
from harness.errors import BadInput
from harness.grammar import Adapter
from harness.loop.compiling import CompileQueue
from harness.loop.loop import Loop, LoopOptions
from harness.loop.outcome import STEP, Completed, Served, is_replayed
from harness.loop.request import Request
from harness.loop.strategies import make_strategy
from harness.machine import usable_processors
from harness.registry import make, parse_specs
from harness.service.child import Answer, Handler
from harness.vocabulary import load_vocabulary
from harness.walk import describe
from harness.worker import peak_rss, reset_peak_rss

if TYPE_CHECKING:
    from harness.decode.model import Model
    from harness.vocabulary import Vocabulary

SEED = 0
BURSTINESS = 0.5
"""Of the arrivals `gamma`: in bursts."""

ROOM = 64
"""Positions of a row beyond prompt and output: what a strategy writes may be spelled longer for a moment."""


@dataclass(eq=False)
class FewerRows:
    """The same model as one of a smaller batch."""

    model: Model
    rows: int

    def __post_init__(self) -> None:
        self.positions, self.chunk = self.model.positions, self.model.chunk
        self.vocabulary_size, self.device = self.model.vocabulary_size, self.model.device
        self.extend, self.length = self.model.extend, self.model.length
        self.rollback, self.finish = self.model.rollback, self.model.finish


class NotOffered(Exception):
    """The backend has no such mechanism."""


def load_arm(spec: str, vocabulary: str, model: str, device: str, dtype: str | None) -> tuple[Handler, dict[str, Any]]:
    """The backend's adapter, with the libraries that a model needs. Raises BadInput."""
    start = time.perf_counter()
    (backend,) = parse_specs(spec)
    adapter = make(backend, load_vocabulary(vocabulary))
    _import_model(model)
    return ArmHandler(adapter, model, device, dtype), {"load_s": time.perf_counter() - start}


def _import_model(name: str) -> None:
    """What takes seconds and needs no device: a shape is built where tensors hold nothing, anything else is imported."""
    try:
        import torch
        from transformers import AutoModelForCausalLM as AutoModelForCausalLM
    except ImportError:
        return  # the child says so
    if name in SHAPES:
        build_shape(name, 1, torch.device("meta"), torch.float32, "eager")


@dataclass(eq=False)
class ArmHandler:
    """Holds the model, the compile queues and what came out, until the child ends."""

    adapter: Adapter
    name: str
    """Of the model."""
    device: str
    dtype: str | None
    model: Model | None = None
    queues: dict[tuple[Any, ...], CompileQueue] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    outputs: dict[Setting, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    """By `Setting.plain`, by request: what the first constrained run wrote; its unconstrained runs are of equal length."""

    def __call__(self, message: dict[str, Any], _: bytes) -> Answer:
        operations: dict[str, Callable[..., Answer]] = {"open": self.open, "run": self.run}
        try:
            return operations[message["op"]](**{name: each for name, each in message.items() if name not in ("op", "number")})
        except BadInput as error:
            return {"bad_input": str(error)}, b""
        except NotOffered as error:
            return {"not_offered": str(error)}, b""
        except Exception as error:
            return {"harness_error": describe(error)}, b""

    @property
    def vocabulary(self) -> Vocabulary:
        """That of adapter and model."""
        return self.adapter.vocabulary

    def open(self, rows: int, loads: dict[str, int], prompt_tokens: int, limit: int | None, draft_tokens: int) -> Answer:
        """Build the model; what it is, how long that took, and the lengths of the workloads' texts. `loads`: requests of each workload."""
        import torch

        from harness.decode.model import load_model

        start = time.perf_counter()
        device = self.device if self.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cuda" and not torch.cuda.is_available():
            raise BadInput("--device cuda: torch finds no GPU here; leave it out, or take cpu")
        if device == "cpu":
            torch.set_num_threads(max(1, usable_processors() - 1))  # the other one is for masks
        self.workloads = {name: find_workload(name) for name in loads}
        asked = [
            each
            for name, count in loads.items()
            for each in requests(self.workloads[name], self.vocabulary, count=count, prompt_tokens=prompt_tokens, limit=limit)
        ]
        self.model = load_model(
            self.name,
            self.vocabulary.size,
            rows=rows,
            positions=max(len(each.prompt) + each.limit for each in asked) + draft_tokens + ROOM,
            device=device,
            dtype=self.dtype,
        )
        self.model.prepare((1, self.model.chunk))
        said = {
            "build_s": time.perf_counter() - start,
            "threads": torch.get_num_threads(),
            "model": self.model.describe(),
            "workloads": {name: [self._lengths(each) for each in found.texts] for name, found in self.workloads.items()},
        }
        gc.collect()
        gc.freeze()
        return said, b""

    def _lengths(self, text: Text) -> dict[str, Any]:
        return {
            "name": text.name,
            "dialect": text.grammar.dialect,
            "tokens": len(reference(text, self.vocabulary)),
            "bytes": len(text.content),
            "grammar_bytes": len(text.grammar.text.encode("utf-8", "surrogatepass")),
        }

    def run(self, role: str, setting: dict[str, Any]) -> Answer:
        """Serve the setting's requests once; as int64s the steps, `[passes, len(STEP)]`."""
        asked = Setting.from_json(setting)
        made = self._requests(asked, plain=role == "none")
        assert self.model is not None
        strategy = make_strategy(asked.strategy, self.vocabulary, asked.draft_tokens)
        queue = self._queue(asked) if role == "constrained" else None
        loop = Loop(
            FewerRows(self.model, asked.batch), self.vocabulary, strategy, queue, self._options(asked, constrained=role == "constrained")
        )
        gc.collect()
        gc.disable()
        try:
            self._reset_peak()
            served = loop.serve(made)
        finally:
            gc.enable()
        if role == "constrained":
            self.outputs.setdefault(asked.plain, {each.name: each.ids for each in served.completed})
        return self._answer(asked, made, served)

    def _answer(self, asked: Setting, made: Sequence[Request], served: Served) -> Answer:
        texts = self.workloads[asked.workload].texts
        numbers = {each.name: number for number, each in enumerate(made)}
        said: dict[str, Any] = {
            "wall_ns": served.wall_ns,
            "passes": served.passes,
            "peak_bytes": self._peak(),
            "counts": served.counts,
            "completed": [asdict(each) for each in served.completed],
            "numbers": [numbers[each.name] for each in served.completed],
            "texts": [],
            "as_replayed": [],
        }
        for each in served.completed:
            number = numbers[each.name]
            said["texts"].append(answer(texts[number % len(texts)], each.ids, self.vocabulary).hex())
            said["as_replayed"].append(self._as_replayed(made[number], each) if asked.mode == "replay" else None)
        return said, np.array(served.steps, "<i8").reshape(-1, len(STEP)).tobytes()

    def _as_replayed(self, request: Request, done: Completed) -> bool:
        assert request.reference is not None
        return is_replayed(done, self.vocabulary.decode(done.ids), self.vocabulary.decode(request.reference))

    def _requests(self, asked: Setting, *, plain: bool) -> list[Request]:
        """Those of the setting. The unconstrained ones replay what was replayed, or else what the first constrained run wrote."""
        made = requests(
            self.workloads[asked.workload],
            self.vocabulary,
            count=asked.texts,
            prompt_tokens=asked.prompt_tokens,
            limit=asked.limit,
            mode=asked.mode,
            seed=SEED,
        )
        if asked.rate is not None:
            times = _arrivals(asked.arrivals, len(made), asked.rate)
            made = [replace(each, arrival_ns=time_ns) for each, time_ns in zip(made, times, strict=True)]
        if not plain:
            return made
        free = [replace(each, grammar=None, reasoning=False, seed=None) for each in made]
        if asked.mode == "replay":
            return free
        wrote = self.outputs.get(asked, {})
        return [replace(each, reference=ids, limit=len(ids)) if (ids := wrote.get(each.name)) else each for each in free]

    def _queue(self, asked: Setting) -> CompileQueue:
        """One for each way to compile, for as long as the process lives: its cache is what a server's would be."""
        key = (asked.cache, asked.compile_workers, asked.compile_timeout_s, asked.poll_interval_s, asked.most_polls)
        if key not in self.queues:
            self.queues[key] = CompileQueue(
                self.adapter,
                cache=asked.cache,
                workers=asked.compile_workers,
                timeout_s=asked.compile_timeout_s,
                poll_interval_s=asked.poll_interval_s,
                most_polls=asked.most_polls,
            )
        return self.queues[key]

    def _options(self, asked: Setting, *, constrained: bool) -> LoopOptions:
        if not constrained:
            return LoopOptions()
        if asked.batch_fill and type(self.adapter).fill_bitmasks is Adapter.fill_bitmasks:
            raise NotOffered("the backend has no call that fills several masks")
        return LoopOptions(
            overlap=asked.overlap,
            fill_threads=asked.fill_threads,
            batch_fill=asked.batch_fill,
            kernel=self._kernel(asked.kernel),
            fallback=asked.fallback,
            canonical=True,
            think_end=think_end(self.vocabulary) if any(each.reasoning for each in self.workloads[asked.workload].texts) else None,
        )

    def _kernel(self, wanted: str) -> str:
        """The name of a kernel that works on the model's device; empty for torch."""
        if not wanted:
            return ""
        assert self.model is not None
        device = self.model.device.type
        for name, kernel in self.adapter.kernels().items():
            if wanted in (name, OWN) and device in kernel.devices and "float32" in kernel.dtypes:
                try:
                    kernel.load()
                except ImportError as error:
                    raise NotOffered(f"the kernel {name} is not to be had here: {error}") from error
                return name
        raise NotOffered(f"the backend has no kernel{'' if wanted == OWN else f' {wanted}'} for float32 logits on {device}")

    @property
    def _on_cpu(self) -> bool:
        return self.model is None or self.model.device.type == "cpu"

    def _reset_peak(self) -> None:
        if self._on_cpu:
            reset_peak_rss()
            return
        import torch

        torch.cuda.reset_peak_memory_stats()

    def _peak(self) -> int:
        if self._on_cpu:
            return peak_rss()
        import torch

        return torch.cuda.max_memory_allocated()


def _arrivals(kind: str, count: int, rate: float) -> tuple[int, ...]:
    if kind == "fixed":
        return arrivals.fixed(count, rate)
    return arrivals.poisson(count, rate, SEED) if kind == "poisson" else arrivals.gamma(count, rate, BURSTINESS, SEED)
