"""One arm of a decoding, in a service's child: it builds the model and serves the settings that it is sent.
It draws no conclusions.

The service's process loads libraries, vocabulary and adapter. Whatever touches a device waits for the child,
because CUDA does not survive a fork.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.backend.bridge.thinking import think_end
from harness.backend.garbage import no_garbage_collection
from harness.backend.grammar import Adapter
from harness.backend.loading import load_adapter
from harness.backend.process.child import Answer, Handler, Page
from harness.backend.process.fork import peak_rss, reset_peak_rss
from harness.errors import BadInput, error_text
from harness.rows.machine import usable_processors
from harness.serve.decode.model.graphs import NotCaptured
from harness.serve.decode.model.shapes import SHAPES, build_shape
from harness.serve.decode.scoring import scored
from harness.serve.decode.setting import OWN, Setting
from harness.serve.decode.workloads import ReferenceText, Workload, answer, find_workload, reference, requests
from harness.serve.requests import arrivals
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.outcome import STEP, Completed, Served, is_replayed
from harness.walk.loop.request import Request
from harness.walk.loop.strategies import make_strategy

if TYPE_CHECKING:
    from harness.backend.vocabulary import Vocabulary
    from harness.serve.decode.model.model import Model

SEED = 0
BURSTINESS = 0.5
"""The burstiness of the arrivals `gamma`; below 1 they come in bursts."""

ROOM = 64
"""Positions of a row beyond prompt and output, because the text that a strategy writes may have a longer
spelling for a moment."""


@dataclass(eq=False)
class FewerRows:
    """The same model, as one with fewer rows."""

    model: Model
    rows: int

    def __post_init__(self) -> None:
        self.positions, self.chunk = self.model.positions, self.model.chunk
        self.vocabulary_size, self.device = self.model.vocabulary_size, self.model.device
        self.extend, self.extend_unseen = self.model.extend, self.model.extend_unseen
        self.length = self.model.length
        self.rollback, self.finish = self.model.rollback, self.model.finish

    @property
    def began(self) -> Any:
        return self.model.began


class NotOffered(Exception):
    """The backend does not have the mechanism that a setting asks for."""


def load_arm(
    spec: str, vocabulary: str, model: str, device: str, dtype: str | None, page: Page | None = None
) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler of an arm (the backend's adapter, with the libraries that a model needs), and how
    long loading took. Raises BadInput."""
    start = time.perf_counter()
    adapter, _ = load_adapter(spec, vocabulary, page)
    _import_model(model)
    return DecodeHandler(adapter, model, device, dtype), {"load_s": time.perf_counter() - start}


def _import_model(name: str) -> None:
    """Do what takes seconds and needs no device: a shape is built where tensors hold nothing, for any other
    model transformers is imported. What fails here fails in the child too, which says so: it is no fault of
    the backend."""
    with suppress(Exception):
        import torch
        from transformers import AutoModelForCausalLM as AutoModelForCausalLM

        if name in SHAPES:
            build_shape(name, 1, torch.device("meta"), torch.float32, "eager")


@dataclass(eq=False)
class DecodeHandler:
    """Holds the model, the compile queues and the outputs until the child ends."""

    adapter: Adapter
    name: str
    """Model name."""
    device: str
    dtype: str | None
    model: Model | None = None
    queues: dict[tuple[Any, ...], CompileQueue] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    outputs: dict[Setting, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    """What the first constrained run of each load (`Setting.plain`) wrote, by the request's name. The load's
    unconstrained runs write outputs of the same lengths."""

    def __call__(self, message: dict[str, Any], _: bytes) -> Answer:
        operations: dict[str, Callable[..., Answer]] = {
            "open": self.open,
            "run": self.run,
            "score": self.score,
        }
        try:
            return operations[message["op"]](
                **{name: value for name, value in message.items() if name != "op"}
            )
        except BadInput as error:
            if message["op"] == "open" or not isinstance(error, NotCaptured):
                raise
            return self._failed(error, sound=True)
        except NotOffered as error:
            return {"not_offered": str(error)}, b""
        except Exception as error:
            return self._failed(error, sound=message["op"] == "score")

    def _failed(self, error: Exception, *, sound: bool) -> Answer:
        """Returns the answer that says what failed here. If `sound`, and if the device still works, it says
        so: then this process can be asked for more. After some errors of CUDA every later call fails."""
        answer: dict[str, Any] = {"harness_error": error_text(error)}
        if sound and self.model is not None:
            with suppress(Exception):
                self.model.finish()
                answer["sound"] = True
        return answer, b""

    @property
    def vocabulary(self) -> Vocabulary:
        """Returns the vocabulary of adapter and model."""
        return self.adapter.vocabulary

    def open(
        self, rows: int, loads: dict[str, int], prompt_tokens: int, limit: int | None, draft_tokens: int
    ) -> Answer:
        """Build the model. The answer says what it is, how long that took in seconds, and the lengths of the
        workloads' texts.

        `loads` has the number of requests of each workload.
        """
        import torch

        from harness.serve.decode.model.model import load_model

        start = time.perf_counter()
        device = self.device if self.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cuda" and not torch.cuda.is_available():
            raise BadInput("--device cuda: torch finds no GPU here; leave it out, or take cpu")
        if device == "cpu":
            torch.set_num_threads(max(1, usable_processors() - 1))  # the other one is for masks
        self.workloads = {name: find_workload(name) for name in loads}
        asked = [
            request
            for name, count in loads.items()
            for request in requests(
                self.workloads[name], self.vocabulary, count=count, prompt_tokens=prompt_tokens, limit=limit
            )
        ]
        self.model = load_model(
            self.name,
            self.vocabulary.size,
            rows=rows,
            positions=max(len(request.prompt) + request.limit for request in asked) + draft_tokens + ROOM,
            device=device,
            dtype=self.dtype,
        )
        self.model.prepare(max(len(request.prompt) for request in asked), draft_tokens)
        reply = {
            "build_s": time.perf_counter() - start,
            "threads": torch.get_num_threads(),
            "model": self.model.describe(),
            "workloads": {
                name: [self._lengths(text) for text in workload.texts]
                for name, workload in self.workloads.items()
            },
        }
        gc.collect()
        gc.freeze()
        return reply, b""

    def _lengths(self, text: ReferenceText) -> dict[str, Any]:
        return {
            "name": text.name,
            "dialect": text.grammar.dialect,
            "tokens": len(reference(text, self.vocabulary)),
            "bytes": len(text.content),
            "grammar_bytes": len(text.grammar.text.encode("utf-8", "surrogatepass")),
        }

    def run(self, role: str, setting: dict[str, Any], cold: bool = False) -> Answer:
        """Serve the setting's requests once, if `cold` with an empty compile cache. The answer's bytes are
        the steps, as int64 `[passes, len(STEP)]`; `captured` is how many sizes of pass were captured as
        graphs meanwhile, each of which takes many times as long as the pass."""
        asked = Setting.from_json(setting)
        made = self._requests(asked, plain=role == "none")
        assert self.model is not None
        strategy = make_strategy(asked.strategy, self.vocabulary, asked.draft_tokens)
        queue = self._queue(asked, cold=cold) if role == "constrained" else None
        options = self._options(asked, constrained=role == "constrained")
        before, captured = self.adapter.threads, self.model.captured
        try:
            if options.batch_fill and asked.fill_threads > 1:
                self.adapter.threads = asked.fill_threads
            loop = Loop(FewerRows(self.model, asked.batch), self.vocabulary, strategy, queue, options)
            gc.collect()
            with no_garbage_collection():
                self._reset_peak()
                served = loop.serve(made)
        finally:
            self.adapter.threads = before
        if role == "constrained":
            self.outputs.setdefault(asked.plain, {done.name: done.ids for done in served.completed})
        reply, steps = self._answer(asked, made, served)
        return reply | {"captured": self.model.captured - captured}, steps

    def score(self, setting: dict[str, Any], outputs: list[dict[str, Any]]) -> Answer:
        """Score what a constrained run of the setting wrote, as `scoring.scored` says. It is asked for only
        when this process has no run to make any more."""
        asked = Setting.from_json(setting)
        assert self.model is not None
        think_end = self._options(asked, constrained=True).think_end
        return scored(self.model, self.adapter, self._requests(asked, plain=False), outputs, think_end)

    def _answer(self, asked: Setting, made: Sequence[Request], served: Served) -> Answer:
        texts = self.workloads[asked.workload].texts
        reply: dict[str, Any] = {
            "wall_ns": served.wall_ns,
            "passes": served.passes,
            "peak_bytes": self._peak(),
            "counts": served.counts,
            "completed": [asdict(done) for done in served.completed],
            "texts": [],
            "as_replayed": [],
        }
        for number, done in enumerate(served.completed):
            reply["texts"].append(answer(texts[number % len(texts)], done.ids, self.vocabulary).hex())
            reply["as_replayed"].append(
                self._as_replayed(made[number], done) if asked.mode == "replay" else None
            )
        return reply, np.array(served.steps, "<i8").reshape(-1, len(STEP)).tobytes()

    def _as_replayed(self, request: Request, done: Completed) -> bool:
        assert request.reference is not None
        return is_replayed(done, self.vocabulary.decode(done.ids), self.vocabulary.decode(request.reference))

    def _requests(self, asked: Setting, *, plain: bool) -> list[Request]:
        """Returns the setting's requests.

        An unconstrained run replays what was replayed, or else what the first constrained run wrote.
        """
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
            made = [
                replace(request, arrival_ns=time_ns) for request, time_ns in zip(made, times, strict=True)
            ]
        if not plain:
            return made
        free = [replace(request, grammar=None, reasoning=False, seed=None) for request in made]
        if asked.mode == "replay":
            return free
        wrote = self.outputs.get(asked, {})
        return [
            replace(request, reference=ids, limit=len(ids)) if (ids := wrote.get(request.name)) else request
            for request in free
        ]

    def _queue(self, asked: Setting, *, cold: bool) -> CompileQueue:
        """Returns the compile queue of these compile options; if `cold` a new one.

        Otherwise it lives on, so that its cache is what a server's would be. The settings of a load share
        their grammars, so that what the cold run of one compiles is there for the warm runs of the others.
        """
        key = (
            asked.cache,
            asked.compile_workers,
            asked.compile_timeout_s,
            asked.poll_interval_s,
            asked.most_polls,
        )
        if cold and key in self.queues:
            self.queues.pop(key).close()
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
        if asked.batch_fill and asked.fill_threads > 1 and self.adapter.threads is None:
            raise NotOffered("the backend has no threads of its own")
        return LoopOptions(
            overlap=asked.overlap,
            fill_threads=1 if asked.batch_fill else asked.fill_threads,
            batch_fill=asked.batch_fill,
            kernel=self._kernel(asked.kernel),
            fallback=asked.fallback,
            canonical=True,
            think_end=(think_end(self.vocabulary),)
            if any(text.reasoning for text in self.workloads[asked.workload].texts)
            else None,
        )

    def _kernel(self, wanted: str) -> str:
        """Returns the name of a kernel that works on the model's device; empty for torch's operations. Raises
        NotOffered."""
        if not wanted:
            return ""
        assert self.model is not None
        device = self.model.device.type
        fitting = {
            name: kernel
            for name, kernel in self.adapter.kernels().items()
            if device in kernel.devices and "float32" in kernel.dtypes
        }
        name = next(iter(fitting), "") if wanted == OWN else wanted
        if name not in fitting:
            text = f"the backend has no kernel{f' {name}' if name else ''} for float32 logits on {device}"
            raise NotOffered(f"{text}; it has {', '.join(fitting)}" if fitting else text)
        try:
            fitting[name].load()
        except ImportError as error:
            raise NotOffered(f"the kernel {name} is not to be had here: {error}") from error
        return name

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
        on_device = None if self.model is None else self.model.peak_bytes()
        return peak_rss() if on_device is None else on_device


def _arrivals(kind: str, count: int, rate: float) -> tuple[int, ...]:
    if kind == "fixed":
        return arrivals.fixed(count, rate)
    return (
        arrivals.poisson(count, rate, SEED)
        if kind == "poisson"
        else arrivals.gamma(count, rate, BURSTINESS, SEED)
    )
