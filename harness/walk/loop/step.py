"""One step's forward pass: which rows take part with which tokens, and the fills that run beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.backend.grammar import Adapter, GrammarObject
from harness.walk.loop.device import between, sent
from harness.walk.loop.faults import ACCEPTING, FILLING, BackendFault, as_accepted

if TYPE_CHECKING:
    import torch

    from harness.walk.loop.active import ActiveRequest
    from harness.walk.loop.forward import Forward
    from harness.walk.loop.masks import Masks
    from harness.walk.loop.strategies.base import Strategy


class Plan(NamedTuple):
    """A forward pass.

    A slot is a place whose logits are used: there is one for each sampling request, and one more for each
    token of its draft.
    """

    tokens: dict[int, Sequence[int]]
    """The tokens to feed, by row. First come the requests that have a grammar and sample, then others that
    sample, then those whose prompt is not at its end."""
    sampling: Sequence[ActiveRequest]
    constrained: int
    """How many of `sampling` have a grammar; they come first."""
    slots: int
    masked: int
    """How many slots belong to requests with a grammar."""
    drafted: bool
    draft_ns: int
    """Nanoseconds spent in the strategy's drafts."""

    def logits_of_slots(self, logits: torch.Tensor) -> torch.Tensor:
        """Returns the logits `[slots, vocabulary]` out of those that the model gave."""
        if not self.drafted:
            return logits[: self.slots]
        rows: list[int] = []
        places: list[int] = []
        for row, active in enumerate(self.sampling):
            end = len(self.tokens[active.row])
            rows += [row] * (len(active.draft) + 1)
            places += range(end - 1 - len(active.draft), end)
        return logits[sent(rows, logits.device), sent(places, logits.device)]


class Taken(NamedTuple):
    """What a step took, in nanoseconds."""

    rows: int
    fed: int
    fill_ns: int
    handed_ns: int
    """What was spent on fills before the pass was given to the device."""
    accept_ns: int
    strategy_ns: int
    wall_ns: int
    marks: Sequence[Any]
    """When, by `device.clock_of`, the pass began and ended; and, if a token was sampled, when logits were
    prepared, fills were done, masks were moved and applied, and tokens were chosen."""
    ahead: bool
    """Whether the pass began before the host knew its tokens."""

    def columns(self) -> tuple[int, ...]:
        """Returns the columns of STEP, once the device is done."""
        forward, prepare, wait, move, apply, choose = (
            *(between(first, second) for first, second in pairwise(self.marks)),
            *[0] * (7 - len(self.marks)),
        )
        return (
            self.rows, self.fed, forward, self.fill_ns, self.handed_ns + wait, move, apply, prepare + choose,
            self.accept_ns, self.strategy_ns, self.wall_ns, int(self.ahead),
        )  # fmt: skip


@dataclass(frozen=True)
class Flight:
    """A pass that began before the host knew its tokens."""

    requests: Sequence[ActiveRequest]
    """In the order of the logits: first those that have a grammar."""
    logits: torch.Tensor
    marks: tuple[Any, Any]
    """When, by `device.clock_of`, it began and ended."""

    def landed(self, by_row: Mapping[int, ActiveRequest]) -> tuple[Plan, torch.Tensor]:
        """Returns the pass as one that was planned for the requests that still run, with their logits; their
        tokens are known by now."""
        live = [place for place, active in enumerate(self.requests) if by_row.get(active.row) is active]
        whole = len(live) == len(self.requests)
        sampling = self.requests if whole else [self.requests[place] for place in live]
        constrained = sum(active.object is not None for active in sampling)
        tokens: dict[int, Sequence[int]] = {active.row: active.ids[-1:] for active in sampling}
        passing = Plan(tokens, sampling, constrained, len(live), constrained, False, 0)
        return passing, self.logits if whole else self.logits[sent(live, self.logits.device)]


def plan(requests: Iterable[ActiveRequest], model: Forward, strategy: Strategy) -> Plan:
    """Returns the next pass: each row takes its next tokens, at most `chunk`, and samples if none are left
    over.

    Drafts are made only if every row feeds few tokens, because a pass is as wide as its longest row.
    """
    constrained: list[ActiveRequest] = []
    free: list[ActiveRequest] = []
    tokens: dict[int, list[int]] = {}
    rest: dict[int, list[int]] = {}
    chunk, longest = model.chunk, 0
    for active in requests:
        active.draft, active.ahead = (), 0
        done, prompt = model.length(active.row), active.prompt_length
        pending = (
            active.ids[done - prompt :] if done >= prompt else [*active.request.prompt[done:], *active.ids]
        )
        if len(pending) > chunk:
            rest[active.row] = pending[:chunk]
            longest = chunk
            continue
        tokens[active.row] = pending
        longest = max(longest, len(pending))
        (free if active.object is None else constrained).append(active)
    sampling = [*constrained, *free]
    drafted = draft_ns = 0
    if strategy.draft_tokens and longest <= strategy.draft_tokens + 1:
        for active in sampling:
            pending = tokens[active.row]
            most = min(strategy.draft_tokens, active.limit - len(active.ids) - 1, chunk - len(pending))
            if most > 0:
                start = perf_counter_ns()
                active.draft = strategy.draft(active)[:most]
                draft_ns += perf_counter_ns() - start
                active.account.drafted += len(active.draft)
                pending += active.draft
                drafted += len(active.draft)
    masked = len(constrained) + (sum(len(active.draft) for active in constrained) if drafted else 0)
    ordered: dict[int, Sequence[int]] = {active.row: tokens[active.row] for active in sampling}
    return Plan(
        ordered | rest if rest else ordered,
        sampling,
        len(constrained),
        len(sampling) + drafted,
        masked,
        drafted > 0,
        draft_ns,
    )


Work = Callable[[], None]


class Fills:
    """Fills the masks of a pass, in threads or at once.

    What a backend raises is attributed to the request, in `active.fault`. An executor's futures would cost
    the loop more than many a fill, so it has threads of its own and one queue in each direction.
    """

    def __init__(self, adapter: Adapter, threads: int, batch: bool) -> None:
        """With `threads` 0 masks are filled at once. `batch` fills with the adapter's own call for several
        objects, where there is no draft."""
        self._adapter = adapter
        self._batch = batch
        self._wanted: SimpleQueue[Work | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        """For each piece of work the exception that it raised, or None."""
        self._running = 0
        self._threads = [
            Thread(target=_work, args=(self._wanted, self._done), name=f"fill {number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()
        self.batch_faults = 0
        """How many batched fills raised although each of their objects could be filled alone."""

    def begin(self, plan: Plan, masks: Masks) -> None:
        """Begins the fills of a pass. Without threads they are done when this returns."""
        requests = plan.sampling[: plan.constrained]
        if self._batch and not plan.drafted:
            self._run(partial(self._fill_batch, requests, masks, 0))
            return
        share, slot = -(-len(requests) // max(len(self._threads), 1)), 0
        for start in range(0, len(requests), share):
            part = requests[start : start + share]
            self._run(partial(_fill_each, part, masks, slot, self._adapter.vocabulary.eos_tokens))
            slot += sum(len(active.draft) + 1 for active in part) if plan.drafted else len(part)

    def wait(self) -> None:
        """Waits until all fills are done. Raises what went wrong in code of ours."""
        failure: BaseException | None = None
        while self._running:
            failure = self._done.get() or failure
            self._running -= 1
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Waits for what runs and ends the threads."""
        for _ in self._threads:
            self._wanted.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self, work: Work) -> None:
        if self._threads:
            self._running += 1
            self._wanted.put(work)
        else:
            work()

    def _fill_batch(self, requests: Sequence[ActiveRequest], masks: Masks, slot: int) -> None:
        objects: list[GrammarObject] = [active.object for active in requests if active.object is not None]
        bitmasks, fill = masks.batch(len(requests)), self._adapter.fill_bitmasks
        start = perf_counter_ns()
        try:
            with FILLING:
                fill(objects, bitmasks)
        except BackendFault:  # one object raised; each is filled alone to find out which
            _fill_each(requests, masks, slot, ())
            self.batch_faults += all(active.fault is None for active in requests)
            return
        spent = perf_counter_ns() - start
        for active in requests:
            active.last_fill_ns = spent // len(requests)
            active.fill_ns += active.last_fill_ns


def _work(wanted: SimpleQueue[Work | None], done: SimpleQueue[BaseException | None]) -> None:
    """Does work from the queue until None comes, and reports what each piece raised."""
    while (work := wanted.get()) is not None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # an interrupt too goes to the thread that waits
            failure = error
        del work
        done.put(failure)


def _fill_each(requests: Sequence[ActiveRequest], masks: Masks, slot: int, ends: Sequence[int]) -> None:
    """Fills the masks of each request from `slot` on, along its draft as far as the grammar accepts it."""
    for active in requests:
        active.last_fill_ns = 0
        try:
            _fill(active, masks, slot)
            if active.draft:
                _fill_along(active, masks, slot, ends)
        except BackendFault as fault:
            active.fault = fault.with_traceback(None)
            fault.__cause__ = fault.__context__ = None  # these hold frames, and frames hold the objects
        active.fill_ns += active.last_fill_ns
        slot += len(active.draft) + 1


def _fill(active: ActiveRequest, masks: Masks, slot: int) -> None:
    """Fills the mask of what comes next."""
    grammar, row = active.object, masks.rows[slot]
    assert grammar is not None
    fill = grammar.fill_bitmask if masks.packed else grammar.fill_bool_mask
    start = perf_counter_ns()
    with FILLING:
        fill(row)
    active.last_fill_ns += perf_counter_ns() - start


def _fill_along(active: ActiveRequest, masks: Masks, slot: int, ends: Sequence[int]) -> None:
    """Accepts the drafted tokens one after another, and fills the mask behind each, until one is refused or
    ends the sequence."""
    grammar = active.object
    assert grammar is not None
    for place, token in enumerate(active.draft):
        start = perf_counter_ns()
        with ACCEPTING:
            accepted: Any = grammar.accept_token(token)
        active.last_fill_ns += perf_counter_ns() - start
        if not as_accepted(accepted):
            return
        active.ahead += 1
        if token in ends:
            return
        _fill(active, masks, slot + place + 1)
