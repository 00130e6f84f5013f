"""One step's forward pass: which rows take part with which tokens, and the fills that run beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple

from harness.grammar import Adapter, GrammarObject
from harness.loop.faults import BackendFault, blaming

if TYPE_CHECKING:
    import torch

    from harness.loop.forward import Forward
    from harness.loop.live import Live
    from harness.loop.masks import Masks
    from harness.loop.strategies.base import Strategy


class Plan(NamedTuple):
    """A forward pass. A slot is a place whose logits are used: one for each sampling request, one more for each token of its draft."""

    tokens: dict[int, Sequence[int]]
    """By row: requests that have a grammar and sample, then others that sample, then those whose prompt is not at its end."""
    sampling: Sequence[Live]
    constrained: int
    """How many of `sampling`, which come first, have a grammar."""
    slots: int
    masked: int
    """The slots of these."""
    drafted: bool
    draft_ns: int
    """Spent in the strategy's drafts."""

    def logits_of_slots(self, logits: torch.Tensor) -> torch.Tensor:
        """`[slots, vocabulary]` of what the model gave."""
        if not self.drafted:
            return logits[: self.slots]
        import torch

        rows: list[int] = []
        places: list[int] = []
        for row, live in enumerate(self.sampling):
            end = len(self.tokens[live.row])
            rows += [row] * (len(live.draft) + 1)
            places += range(end - 1 - len(live.draft), end)
        return logits[torch.tensor(rows, device=logits.device), torch.tensor(places, device=logits.device)]


def plan(lives: Iterable[Live], model: Forward, strategy: Strategy) -> Plan:
    """Each row takes its next tokens, at most `chunk`; it samples if none are left over. Drafts are only made behind short rows."""
    constrained: list[Live] = []
    free: list[Live] = []
    tokens: dict[int, list[int]] = {}
    rest: dict[int, list[int]] = {}
    chunk, longest = model.chunk, 0
    for live in lives:
        live.draft, live.ahead = (), 0
        done, prompt = model.length(live.row), live.prompt_length
        pending = live.ids[done - prompt :] if done >= prompt else [*live.request.prompt[done:], *live.ids]
        if len(pending) > chunk:
            rest[live.row] = pending[:chunk]
            longest = chunk
            continue
        tokens[live.row] = pending
        longest = max(longest, len(pending))
        (free if live.object is None else constrained).append(live)
    sampling = [*constrained, *free]
    drafted = draft_ns = 0
    if strategy.draft_tokens and longest <= strategy.draft_tokens + 1:
        for live in sampling:
            pending = tokens[live.row]
            most = min(strategy.draft_tokens, live.limit - len(live.ids) - 1, chunk - len(pending))
            if most > 0:
                start = perf_counter_ns()
                live.draft = strategy.draft(live)[:most]
                draft_ns += perf_counter_ns() - start
                live.account.drafted += len(live.draft)
                pending += live.draft
                drafted += len(live.draft)
    masked = len(constrained) + (sum(len(live.draft) for live in constrained) if drafted else 0)
    ordered: dict[int, Sequence[int]] = {live.row: tokens[live.row] for live in sampling}
    return Plan(ordered | rest if rest else ordered, sampling, len(constrained), len(sampling) + drafted, masked, drafted > 0, draft_ns)


Work = Callable[[], None]


class Fills:
    """Fills the masks of a pass, in threads or at once. What a backend raises is the request's fault, which `live.fault` keeps.

    An executor's futures would cost the loop more than many a fill: so threads of our own, and one queue to each side.
    """

    def __init__(self, adapter: Adapter, threads: int, batch: bool) -> None:
        """`threads` 0: at once. `batch`: with the adapter's own call for several objects, where there is no draft."""
        self._adapter = adapter
        self._batch = batch
        self._wanted: SimpleQueue[Work | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        """For each piece of work what it raised."""
        self._running = 0
        self._threads = [Thread(target=_work, args=(self._wanted, self._done), name=f"fill {each}", daemon=True) for each in range(threads)]
        for each in self._threads:
            each.start()
        self.batch_faults = 0
        """Batches that raised though each of their objects did not."""

    def begin(self, plan: Plan, masks: Masks) -> None:
        """Without threads, they are done when this returns."""
        lives = plan.sampling[: plan.constrained]
        if self._batch and not plan.drafted:
            self._run(partial(self._fill_batch, lives, masks, 0))
            return
        share, slot = -(-len(lives) // max(len(self._threads), 1)), 0
        for start in range(0, len(lives), share):
            part = lives[start : start + share]
            self._run(partial(_fill_each, part, masks, slot, self._adapter.vocabulary.eos_token))
            slot += sum(len(live.draft) + 1 for live in part) if plan.drafted else len(part)

    def wait(self) -> None:
        """Until all are done; raises what was our own failure."""
        failure: BaseException | None = None
        while self._running:
            failure = self._done.get() or failure
            self._running -= 1
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Wait for what runs and end the threads."""
        for _ in self._threads:
            self._wanted.put(None)
        for each in self._threads:
            each.join()

    def _run(self, work: Work) -> None:
        if self._threads:
            self._running += 1
            self._wanted.put(work)
        else:
            work()

    def _fill_batch(self, lives: Sequence[Live], masks: Masks, slot: int) -> None:
        objects: list[GrammarObject] = [live.object for live in lives if live.object is not None]
        bitmasks, fill = masks.batch(len(lives)), self._adapter.fill_bitmasks
        start = perf_counter_ns()
        try:
            with blaming("fill"):
                fill(objects, bitmasks)
        except BackendFault:  # of one of them, but whose? Each is asked alone
            _fill_each(lives, masks, slot, -1)
            self.batch_faults += all(live.fault is None for live in lives)
            return
        spent = perf_counter_ns() - start
        for live in lives:
            live.last_fill_ns = spent // len(lives)
            live.fill_ns += live.last_fill_ns


def _work(wanted: SimpleQueue[Work | None], done: SimpleQueue[BaseException | None]) -> None:
    """What a thread does until it is told to end."""
    while (work := wanted.get()) is not None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # an interrupt too goes to who waits
            failure = error
        del work
        done.put(failure)


def _fill_each(lives: Sequence[Live], masks: Masks, slot: int, eos_token: int) -> None:
    """From `slot` on: the masks of each, along its draft as far as the grammar goes along."""
    for live in lives:
        live.last_fill_ns = 0
        try:
            _fill_along(live, masks, slot, eos_token)
        except BackendFault as fault:
            live.fault = fault.with_traceback(None)
            fault.__cause__ = fault.__context__ = None  # it holds frames, and they the objects
        live.fill_ns += live.last_fill_ns
        slot += len(live.draft) + 1


def _fill_along(live: Live, masks: Masks, slot: int, eos_token: int) -> None:
    grammar = live.object
    assert grammar is not None
    fill = grammar.fill_bitmask if masks.packed else grammar.fill_bool_mask
    for place in range(len(live.draft) + 1):
        row = masks.rows[slot + place]
        start = perf_counter_ns()
        with blaming("fill"):
            fill(row)
        live.last_fill_ns += perf_counter_ns() - start
        if place == len(live.draft):
            return
        start = perf_counter_ns()
        with blaming("accept"):
            accepted = grammar.accept_token(live.draft[place])
        spent = perf_counter_ns() - start
        live.last_fill_ns += spent
        if not accepted:
            return
        live.ahead += 1
        if live.draft[place] == eos_token:
            return
