"""The requests that have a row: how they get it, what becomes of the tokens that were chosen for them, and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from time import perf_counter_ns
from typing import TYPE_CHECKING

from harness.grammar import MaskFormat
from harness.loop.faults import BackendFault
from harness.loop.live import Live
from harness.loop.outcome import Completed, End
from harness.loop.respelling import book, differing, realigned
from harness.loop.sampling import NOTHING
from harness.loop.strategies.base import Move, Strategy
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    from harness.loop.forward import Forward
    from harness.loop.intake import Waiting


class Batch:
    """Grammar, cache and output of each request move together here, and nowhere else."""

    def __init__(self, model: Forward, vocabulary: Vocabulary, strategy: Strategy) -> None:
        self.model, self.vocabulary, self.strategy = model, vocabulary, strategy
        self.lives: dict[int, Live] = {}
        """By row."""
        self.free = list(range(model.rows))
        """A heap of rows."""
        self.done: dict[int, Completed] = {}
        """By the request's number."""
        self.start = perf_counter_ns()

    def admit(self, waiting: Waiting, mask_format: MaskFormat) -> tuple[int, int]:
        """Give it a row; nanoseconds in its grammar's start and the strategy, and in accepts."""
        start, accept_ns = perf_counter_ns(), 0
        live = Live(waiting, heappop(self.free), self.vocabulary, mask_format, start - self.start)
        self.lives[live.row] = live
        try:
            live.begin()
            accept_ns = self._apply(live, self.strategy.begin(live))
        except BackendFault as fault:
            self._finish(live, "fault", why=fault.why, phase=fault.phase)
        return perf_counter_ns() - start - accept_ns, accept_ns

    def let_go(self, now_ns: int) -> None:
        """Those whose clients have left."""
        for live in list(self.lives.values()):
            if live.request.cancel_ns is not None and live.request.cancel_ns <= now_ns:
                self._finish(live, "cancelled")

    def abandon(self) -> None:
        """The run has failed: give the rows back."""
        for live in list(self.lives.values()):
            self.strategy.finished(live)
            self.model.rollback(live.row, 0)
        self.lives.clear()

    def take(self, sampling: Sequence[Live], chosen: Sequence[int], now_ns: int) -> tuple[int, int]:
        """Each request takes what was chosen for it; nanoseconds in the strategy and in accepts."""
        strategy_ns = accept_ns = slot = 0
        for live in sampling:
            mine = chosen[slot : slot + len(live.draft) + 1]
            slot += len(mine)
            if live.fault is not None:
                self._finish(live, "fault", why=live.fault.why, phase=live.fault.phase)
                continue
            try:
                strategies, accepts = self._take(live, mine, now_ns)
                strategy_ns += strategies
                accept_ns += accepts
            except BackendFault as fault:
                self._finish(live, "fault", why=fault.why, phase=fault.phase)
        return strategy_ns, accept_ns

    def _take(self, live: Live, chosen: Sequence[int], now_ns: int) -> tuple[int, int]:
        """Accept what was chosen, drafts as far as they are the same; then the strategy's turn."""
        ids, account, eos = live.ids, live.account, self.vocabulary.eos_token
        account.passes += 1
        before, fresh, refused = len(ids), NOTHING, ""
        trusted = live.ahead if live.object is not None else len(live.draft)
        for place, token in enumerate(chosen):
            if token == NOTHING:
                refused = "the mask allows nothing"
            elif live.reference is not None and token != live.reference[len(ids)]:
                expected = live.reference[len(ids)]
                refused = f"the mask forbids the reference's token {expected} ({self.vocabulary.tokens[expected]!r})"
            elif place < trusted and token == live.draft[place]:
                ids.append(token)
                if token != eos:
                    continue
            else:
                fresh = token
            break
        same = len(ids) - before
        account.sampled += same
        account.accepted_drafts += same
        live.token_ns += [now_ns] * same
        strategy_ns = accept_ns = 0
        if live.ahead > same:
            start = perf_counter_ns()
            live.rewind(live.ahead - same, ids)
            strategy_ns = perf_counter_ns() - start
        if fresh != NOTHING:
            if live.object is not None:
                accept_ns = live.accept(fresh)
            ids.append(fresh)
            live.token_ns.append(now_ns)
            account.sampled += 1
        if live.draft and self.model.length(live.row) >= live.prompt_length + len(ids):
            self.model.rollback(live.row, live.prompt_length + len(ids) - 1)
        if refused:
            self._refuse(live, refused)
        elif not self._ended(live):
            start = perf_counter_ns()
            written = self._apply(live, self.strategy.advance(live), now_ns)
            strategy_ns += perf_counter_ns() - start - written
            accept_ns += written
        return strategy_ns, accept_ns

    def _apply(self, live: Live, move: Move | None, pass_ns: int = NOTHING) -> int:
        """Write what the strategy says; nanoseconds in accepts. What the pass of `pass_ns` gave goes out with it: one message a pass."""
        if move is None:
            return 0
        ids, keep, room = live.ids, move.keep, live.request.limit - move.keep
        taken_back, written = ids[keep:], list(move.ids)
        if len(written) > room:
            if taken_back:  # another spelling that does not fit; the one that is there does
                return 0
            del written[room:]
        if not taken_back and not written:
            return 0
        live.rewind(len(taken_back), ids[:keep])
        accept_ns = live.write(written)
        book(live.account, self.vocabulary, taken_back, written)
        now_ns = perf_counter_ns() - self.start
        ids[keep:] = written
        together = next((at for at in range(keep, 0, -1) if live.token_ns[at - 1] != pass_ns), 0)
        live.token_ns[together:] = [now_ns] * (len(ids) - together)
        # At least one token is left to be fed, for there are no logits else.
        holds = min(live.prompt_length + keep, live.prompt_length + len(ids) - 1)
        if self.model.length(live.row) > holds:
            self.model.rollback(live.row, holds)
        if live.reference is not None and list(live.reference[: len(ids)]) != ids:
            reference = realigned(self.vocabulary, live.request.reference or (), ids)
            if reference is None:
                self._refuse(live, "forced text differs from the reference")
                return accept_ns
            live.reference, live.limit = reference, min(live.request.limit, len(reference))
        self._ended(live)
        return accept_ns

    def _ended(self, live: Live) -> bool:
        if live.ids and live.ids[-1] == self.vocabulary.eos_token:
            self._finish(live, "end_of_sequence")
        elif len(live.ids) >= live.limit:
            self._finish(live, "limit")
        else:
            return False
        return True

    def _refuse(self, live: Live, why: str) -> None:
        reference = live.request.reference
        self._finish(live, "refused", why=why, stopped_at=None if reference is None else differing(self.vocabulary, reference, live.ids))

    def _finish(self, live: Live, end: End, *, why: str = "", phase: str = "", stopped_at: int | None = None) -> None:
        """Done: the row is free, the grammar dropped."""
        self.strategy.finished(live)
        self.model.rollback(live.row, 0)
        del self.lives[live.row]
        heappush(self.free, live.row)
        waiting = live.waiting
        live.object = live.compiled = waiting.compiled = None
        self.done[waiting.number] = Completed(
            live.request.name, end, tuple(live.ids), live.prompt_length, live.account, live.request.arrival_ns, live.admitted_ns,
            tuple(live.token_ns), perf_counter_ns() - self.start, why, phase, waiting.fallback, stopped_at, waiting.compile_state,
            waiting.compile_ns, waiting.waited_ns, (live.fill_ns, live.accept_ns),
        )  # fmt: skip
