"""The decode loop: continuous batching of requests with grammars of their own. Each step fills masks, runs
the forward pass, applies masks, samples, accepts, and lets the strategy advance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns, sleep
from typing import TYPE_CHECKING, Any, Literal

from harness.backend.bridge.reasoning import with_reasoning
from harness.backend.bridge.thinking import Thinking
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput
from harness.walk.loop.batch import Batch
from harness.walk.loop.device import clock_of, sent, works_beside
from harness.walk.loop.intake import Fallback, Intake
from harness.walk.loop.masks import Masks
from harness.walk.loop.outcome import Served
from harness.walk.loop.respelling import is_canonical
from harness.walk.loop.sampling import NOTHING, Chosen, Sampler
from harness.walk.loop.step import Fills, Flight, Plan, Taken, plan
from harness.walk.loop.strategies.base import Strategy

if TYPE_CHECKING:
    import torch

    from harness.walk.loop.compiling import CompileQueue
    from harness.walk.loop.forward import Forward
    from harness.walk.loop.request import Request


@dataclass(frozen=True)
class LoopOptions:
    """The loop's mechanisms, none of which changes an output, and what ends the thinking."""

    overlap: bool = True
    """Fill masks while the model works; otherwise they are filled before the forward pass."""
    fill_threads: int = 1
    """The threads that fill with overlap. On a device that works beside the host one is the loop's own, which
    has nothing else to do until the pass ends: to wake another takes longer than many a fill, and the two
    wait for each other's Python."""
    batch_fill: bool = False
    """Fill with the adapter's own call for several objects."""
    kernel: str = ""
    """The name of the adapter's function that applies masks; empty for ours."""
    fallback: Fallback = "unconstrained"
    """What becomes of a request whose grammar cannot be had."""
    ahead: bool = True
    """On a device that works beside the host, begin a pass as soon as its tokens are chosen there, before the
    host knows and accepts them, where the strategy only samples and masks are filled with overlap."""
    canonical: bool = False
    """After the run, record for each output whether its ids are the tokenizer's own."""
    think_end: tuple[int, ...] | None = None
    """The ids that together end the thinking part of requests that have one."""


class Loop:
    """A model, a strategy and a compile queue, used for one run after another."""

    def __init__(
        self,
        model: Forward,
        vocabulary: Vocabulary,
        strategy: Strategy,
        queue: CompileQueue | None,
        options: LoopOptions | None = None,
    ) -> None:
        """Without a queue all requests run unconstrained. Raises BadInput if the parts do not fit
        together."""
        self.model = model
        self.vocabulary = vocabulary
        self.strategy = strategy
        self.queue = queue
        self.options = options or LoopOptions()
        if model.vocabulary_size < vocabulary.size:
            raise BadInput(
                f"a model of {model.vocabulary_size} logits is too narrow for vocabulary "
                f"{vocabulary.name} of {vocabulary.size}"
            )
        if self.options.overlap and self.options.fill_threads < 1:
            raise BadInput(
                f"{self.options.fill_threads} threads cannot fill masks; give 1 or more, or no overlap"
            )
        self.masks = self._new_masks()
        think_end = self.options.think_end
        self.thinking = (
            None if queue is None or think_end is None else with_reasoning(queue.adapter, think_end)
        )
        """The adapter for batches in which some requests think first."""

    def serve(self, requests: Sequence[Request]) -> Served:
        """Serves all requests from arrival to end, and returns what came of them.

        Raises BadInput for a request that does not fit the model. A fault of a backend ends its request only.
        """
        import torch

        for request in requests:
            self._check(request)
        for grammar in dict.fromkeys(request.grammar for request in requests):
            if grammar is not None and self.queue is not None:
                self.strategy.prepare(grammar)
        before = dict(self.queue.counts) if self.queue is not None else {}
        with torch.inference_mode():
            run = _Run(self, requests)
            try:
                served = run.serve()
            finally:
                run.close()
        if self.queue is not None:
            served.counts |= {name: count - before.get(name, 0) for name, count in self.queue.counts.items()}
        if self.options.canonical:
            thinks = {request.name for request in requests if request.reasoning}
            served.completed = [
                replace(done, canonical=self._is_canonical(done.ids, done.name in thinks))
                for done in served.completed
            ]
        return served

    def _is_canonical(self, ids: Sequence[int], thinks: bool) -> bool | None:
        """Like `is_canonical`, but the ids that end the thinking stand for themselves."""
        end = self.options.think_end
        thought = Thinking(self.vocabulary, end).end_in(ids) if thinks and end else None
        if not end or thought is None:
            return is_canonical(self.vocabulary, ids)
        thinking, answer = ids[: thought - len(end)], ids[thought:]
        parts = is_canonical(self.vocabulary, thinking), is_canonical(self.vocabulary, answer)
        return None if None in parts else all(parts)

    def fitting_masks(self) -> Masks | None:
        """Returns the masks in the adapter's present format: some adapters know their format only once a
        grammar is compiled. None without a queue."""
        if (
            self.queue is not None
            and self.masks is not None
            and self.masks.packed != (self.queue.adapter.mask_format == "bitmask")
        ):
            self.masks = self._new_masks()
        return self.masks

    def _new_masks(self) -> Masks | None:
        if self.queue is None:
            return None
        if self.options.batch_fill and self.queue.adapter.mask_format != "bitmask":
            raise BadInput("batch_fill is for packed masks; leave it out or take another mask format")
        slots = self.model.rows * (self.strategy.draft_tokens + 1)
        return Masks(self.queue.adapter, slots, self.model.device, self.options.kernel)

    def _check(self, request: Request) -> None:
        where, width = f"request {request.name}", self.model.vocabulary_size
        if not request.prompt or request.limit < 1 or request.reference == ():
            raise BadInput(f"{where}: a prompt, a limit and a reference have at least one token")
        if len(request.prompt) + request.limit > self.model.positions:
            raise BadInput(
                f"{where}: {len(request.prompt)} prompt and {request.limit} output tokens do not fit "
                f"{self.model.positions} positions"
            )
        if not all(0 <= token < width for token in request.prompt):
            raise BadInput(f"{where}: its prompt has ids that the model does not know; it has {width}")
        if not all(0 <= token < self.vocabulary.size for token in request.reference or ()):
            raise BadInput(
                f"{where}: its reference has ids that vocabulary {self.vocabulary.name} does not know"
            )
        if (
            request.reasoning
            and request.grammar is not None
            and self.queue is not None
            and self.thinking is None
        ):
            raise BadInput(
                f"{where}: it thinks first, and nothing says which ids end that; give the loop a think_end"
            )


class _Run:
    """The state of one run."""

    def __init__(self, loop: Loop, requests: Sequence[Request]) -> None:
        self.loop = loop
        self.model = loop.model
        options, queue = loop.options, loop.queue
        self.batch = Batch(loop.model, loop.vocabulary, loop.strategy)
        self.intake = Intake(requests, queue, options.fallback)
        self.leaving = any(request.cancel_ns is not None for request in requests)
        # A device is given its work first, and fills begin while it works; a CPU's pass is work of this
        # thread.
        beside = works_beside(self.model.device)
        threads = options.fill_threads if options.overlap else 0
        self.fills_begin: Literal["before the pass", "beside it", "in its wait"]
        if not beside or not threads:
            self.fills_begin = "before the pass"
        elif threads > 1:
            self.fills_begin = "beside it"
        else:
            self.fills_begin, threads = "in its wait", 0  # the loop's own thread fills
        self.fills = (
            None if queue is None else Fills(loop.thinking or queue.adapter, threads, options.batch_fill)
        )
        self.goes_ahead = options.ahead and options.overlap and beside and loop.strategy.only_samples
        self.flight: Flight | None = None
        """The pass that began ahead."""
        self.in_vain = 0
        """How many passes began ahead for requests that all had ended."""
        self.clock = clock_of(self.model.device)
        self.is_told = self.model.device.type != "cpu"
        """Whether the model is asked when a pass began, which on a device is later than it was asked for."""
        self.taken: list[Taken] = []
        self.sampler = Sampler(self.model.device)
        self.served = Served()
        # The clock starts last: making threads and masks of ours is no part of any request.
        self.start = self.batch.start = perf_counter_ns()

    def serve(self) -> Served:
        intake = self.intake
        while True:
            began, queued = perf_counter_ns(), intake.queue_ns
            now = began - self.start
            intake.advance(now)
            if self.leaving:
                self.batch.let_go(now)
            grammar_ns, accept_ns = self._admit()
            if self.batch.by_row:
                self._step(began + intake.queue_ns - queued, grammar_ns, accept_ns)
            else:
                idle = intake.idle_ns(perf_counter_ns() - self.start)
                if idle is None:
                    break
                if intake.is_pending:
                    intake.advance(perf_counter_ns() - self.start, idle / 1e9)
                elif idle:
                    sleep(idle / 1e9)
        served = self.served
        served.wall_ns = perf_counter_ns() - self.start
        self.model.finish()
        served.steps = [taken.columns() for taken in self.taken]
        served.passes = len(served.steps)
        done = self.batch.done | intake.ended
        served.completed = [done[number] for number in sorted(done)]
        served.counts = dict(intake.counts)
        if in_vain := self.in_vain + (self.flight is not None):
            served.counts["passes_in_vain"] = in_vain
        if self.fills is not None and self.fills.batch_faults:
            served.counts["batch_fill_faults"] = self.fills.batch_faults
        return served

    def close(self) -> None:
        """Ends the fill threads. After a failure of ours, gives back rows and tickets too."""
        if self.fills is not None:
            self.fills.close()
        self.intake.abandon()
        self.batch.abandon()

    def _admit(self) -> tuple[int, int]:
        """Gives rows to the requests that are ready. Returns the two sums of nanoseconds of `Batch.admit`."""
        strategy_ns = accept_ns = 0
        while self.batch.free and (waiting := self.intake.next_ready()) is not None:
            queue, thinking = self.loop.queue, self.loop.thinking
            if thinking is not None and waiting.request.reasoning and waiting.compiled is not None:
                waiting.compiled = thinking.wrap(waiting.compiled)
            strategies, accepts = self.batch.admit(
                waiting, queue.adapter.mask_format if queue is not None else "bitmask"
            )
            strategy_ns += strategies
            accept_ns += accepts
        return strategy_ns, accept_ns

    def _step(self, began: int, strategy_ns: int, accept_ns: int) -> None:
        """Runs one forward pass and all that follows from it."""
        model, fills, begin = self.model, self.fills, self.fills_begin
        landed = self._landed()
        passing = landed[0] if landed else plan(self.batch.by_row.values(), model, self.loop.strategy)
        masks = self.loop.fitting_masks() if passing.constrained else None
        planned = perf_counter_ns()
        if masks is not None and fills is not None and begin == "before the pass":
            fills.begin(passing, masks)
        submitted = perf_counter_ns()
        if landed:
            _, logits, marks = landed
        else:
            logits, both = self._timed(lambda: model.extend(passing.tokens, every=passing.drafted))
            marks = [*both]
        if masks is not None and fills is not None and begin == "beside it":
            fills.begin(passing, masks)
        fill_ns = 0
        if not passing.slots:
            model.finish()
        else:
            # All that follows is queued behind the pass while it runs; only sampling waits for the device.
            slots = passing.logits_of_slots(logits)[:, : self.loop.vocabulary.size]
            self._prefer(passing, slots)
            marks.append(self.clock())
            if masks is not None and fills is not None:
                if begin == "in its wait":
                    fills.begin(passing, masks)
                fills.wait()
            marks.append(self.clock())
            if masks is not None:
                masks.move(passing.masked)
            marks.append(self.clock())
            if masks is not None:
                masks.apply(slots[: passing.masked])
            marks.append(self.clock())
            chosen = self.sampler.choose(slots)
            marks.append(self.clock())
            if self.goes_ahead:
                self._go_ahead(passing, chosen)
            ids = chosen.known()
            known = perf_counter_ns()
            fill_ns = sum(active.last_fill_ns for active in passing.sampling[: passing.constrained])
            strategies, accepts = self.batch.take(passing.sampling, ids, known - self.start)
            strategy_ns += strategies
            accept_ns += accepts
        self.taken.append(
            Taken(
                len(passing.tokens), sum(map(len, passing.tokens.values())), fill_ns, submitted - planned,
                accept_ns, strategy_ns + passing.draft_ns, perf_counter_ns() - began, marks,
                landed is not None,
            )
        )  # fmt: skip

    def _timed(self, begin: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, tuple[Any, Any]]:
        """Begins a pass, and returns its logits and when, by the device's clock, it begins and ends."""
        asked = None if self.is_told else self.clock()
        logits = begin()
        return logits, (self.model.began if self.is_told else asked, self.clock())

    def _landed(self) -> tuple[Plan, torch.Tensor, list[Any]] | None:
        """Returns the pass that began ahead, its logits, and when it began and ended; None if there is none,
        or if all of its requests ended with the tokens that it was given."""
        flight, self.flight = self.flight, None
        if flight is None:
            return None
        passing, logits = flight.landed(self.batch.by_row)
        if not passing.sampling:
            self.in_vain += 1
            return None
        return passing, logits, [*flight.marks]

    def _go_ahead(self, passing: Plan, chosen: Chosen) -> None:
        """Begins the next pass with the tokens that were just chosen, if it has the rows of this one: those
        that end with this token, as far as that is known, are left out, and nobody else waits for a row's
        first pass."""
        if len(passing.sampling) < len(self.batch.by_row):
            return
        tokens = chosen.there
        going = [at for at, active in enumerate(passing.sampling) if len(active.ids) + 1 < active.limit]
        if not going or tokens is None:
            return
        requests = [passing.sampling[at] for at in going]
        if len(going) < len(passing.sampling):
            tokens = tokens[sent(going, tokens.device)]
        logits, marks = self._timed(
            lambda: self.model.extend_unseen([active.row for active in requests], tokens)
        )
        self.flight = Flight(requests, logits, marks)

    def _prefer(self, passing: Plan, slots: torch.Tensor) -> None:
        """Changes the logits before the masks are applied: the bonus for reference tokens, and the noise of
        draws."""
        wanted: list[int] = []
        replayed = False
        for active in passing.sampling:
            reference, at, places = active.reference, len(active.ids), len(active.draft) + 1
            if reference is not None:
                named = reference[at : at + places]
                wanted += named
                places -= len(named)
                replayed = True
            elif active.request.seed is not None:
                for place in range(places):
                    self.sampler.disturb(slots[len(wanted) + place], active.request.seed, at + place)
            if places:
                wanted += [NOTHING] * places
        if replayed:
            self.sampler.favour(slots, wanted)
