"""The requests that have a row: how they get it, what becomes of the tokens that were chosen for them, and
how they end."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from time import perf_counter_ns
from typing import TYPE_CHECKING

from harness.backend.grammar import MaskFormat
from harness.backend.vocabulary import Vocabulary
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.faults import BackendFault
from harness.walk.loop.outcome import Completed, End
from harness.walk.loop.respelling import book, differing, realigned
from harness.walk.loop.sampling import NOTHING
from harness.walk.loop.strategies.base import Move, Strategy

if TYPE_CHECKING:
    from harness.walk.loop.forward import Forward
    from harness.walk.loop.intake import Waiting


class Batch:
    """The requests in the batch. Grammar, cache and output of a request move together here, and nowhere
    else."""

    def __init__(self, model: Forward, vocabulary: Vocabulary, strategy: Strategy) -> None:
        self.model, self.vocabulary, self.strategy = model, vocabulary, strategy
        self._ends = vocabulary.eos_tokens
        self._advances = not strategy.only_samples
        self.by_row: dict[int, ActiveRequest] = {}
        """The requests in the batch, by row."""
        self.free = list(range(model.rows))
        """The free rows, as a heap, so that the lowest row is taken first."""
        self.done: dict[int, Completed] = {}
        """The finished requests, by number."""
        self.start = perf_counter_ns()

    def admit(self, waiting: Waiting, mask_format: MaskFormat) -> tuple[int, int]:
        """Gives the request a row. Returns the nanoseconds spent in the grammar's start and the strategy, and
        those in accepts."""
        start, accept_ns = perf_counter_ns(), 0
        active = ActiveRequest(waiting, heappop(self.free), self.vocabulary, mask_format, start - self.start)
        self.by_row[active.row] = active
        try:
            active.begin()
            accept_ns = self._apply(active, self.strategy.begin(active))
        except BackendFault as fault:
            self._finish(active, "fault", why=fault.why, phase=fault.phase)
        return perf_counter_ns() - start - accept_ns, accept_ns

    def let_go(self, now_ns: int) -> None:
        """Ends the requests whose clients have left."""
        for active in list(self.by_row.values()):
            if active.request.cancel_ns is not None and active.request.cancel_ns <= now_ns:
                self._finish(active, "cancelled")

    def abandon(self) -> None:
        """Gives the rows back, because the run has failed."""
        for active in list(self.by_row.values()):
            self.strategy.finished(active)
            self.model.rollback(active.row, 0)
        self.by_row.clear()

    def take(self, sampling: Sequence[ActiveRequest], chosen: Sequence[int], now_ns: int) -> tuple[int, int]:
        """Gives each request the tokens that were chosen for it. Returns the nanoseconds spent in the
        strategy and in accepts."""
        strategy_ns = accept_ns = slot = 0
        for active in sampling:
            mine = chosen[slot : slot + len(active.draft) + 1]
            slot += len(mine)
            if active.fault is not None:
                self._finish(active, "fault", why=active.fault.why, phase=active.fault.phase)
                continue
            try:
                strategies, accepts = self._take(active, mine, now_ns)
                strategy_ns += strategies
                accept_ns += accepts
            except BackendFault as fault:
                self._finish(active, "fault", why=fault.why, phase=fault.phase)
        return strategy_ns, accept_ns

    def _take(self, active: ActiveRequest, chosen: Sequence[int], now_ns: int) -> tuple[int, int]:
        """Accept what was chosen, drafts as far as they agree with it, and then let the strategy advance."""
        ids, account = active.ids, active.account
        account.passes += 1
        refused, agreed, strategy_ns, accept_ns = "", 0, 0, 0
        if active.draft:
            agreed, strategy_ns = self._take_drafted(active, chosen, now_ns)
        if not agreed or ids[-1] not in self._ends:
            token = chosen[agreed]
            refused = self._refusal(active, token)
            if not refused:
                if active.object is not None:
                    accept_ns = active.accept(token)
                ids.append(token)
                active.token_ns.append(now_ns)
                account.sampled += 1
        if active.draft and self.model.length(active.row) >= active.prompt_length + len(ids):
            self.model.rollback(active.row, active.prompt_length + len(ids) - 1)
        if refused:
            self._refuse(active, refused)
        elif not self._ended(active) and self._advances:
            start = perf_counter_ns()
            written = self._apply(active, self.strategy.advance(active), now_ns)
            strategy_ns += perf_counter_ns() - start - written
            accept_ns += written
        return strategy_ns, accept_ns

    def _take_drafted(self, active: ActiveRequest, chosen: Sequence[int], now_ns: int) -> tuple[int, int]:
        """Writes the drafted tokens that were chosen too, up to end-of-sequence, and takes back what the
        object had accepted beyond them. Returns how many, and the nanoseconds of taking back."""
        ids, account, agreed = active.ids, active.account, 0
        trusted = active.ahead if active.object is not None else len(active.draft)
        for token, drafted in zip(chosen, active.draft[:trusted], strict=False):
            if token != drafted or self._refusal(active, token):
                break
            ids.append(token)
            agreed += 1
            if token in self._ends:
                break
        account.sampled += agreed
        account.accepted_drafts += agreed
        active.token_ns += [now_ns] * agreed
        if active.ahead <= agreed:
            return agreed, 0
        start = perf_counter_ns()
        active.rewind(active.ahead - agreed, ids)
        return agreed, perf_counter_ns() - start

    def _refusal(self, active: ActiveRequest, token: int) -> str:
        """Returns why the token cannot be what comes next; empty where it can."""
        if token == NOTHING:
            return "the mask allows nothing"
        if active.reference is None or token == (expected := active.reference[len(active.ids)]):
            return ""
        return f"the mask forbids the reference's token {expected} ({self.vocabulary.tokens[expected]!r})"

    def _apply(self, active: ActiveRequest, move: Move | None, pass_ns: int | None = None) -> int:
        """Writes what the strategy wants written, and returns the nanoseconds spent in accepts.

        `pass_ns` is the time at which the pass gave its tokens, None before the first one; these get the
        time of the written ones, because one pass sends one message.
        """
        if move is None:
            return 0
        ids, keep, room = active.ids, move.keep, active.request.limit - move.keep
        taken_back, written = ids[keep:], list(move.ids)
        if len(written) > room:
            if taken_back:  # the other spelling does not fit, but the present one does
                return 0
            del written[room:]
        if not taken_back and not written:
            return 0
        active.rewind(len(taken_back), ids[:keep])
        accept_ns = active.write(written)
        book(active.account, self.vocabulary, taken_back, written)
        now_ns = perf_counter_ns() - self.start
        ids[keep:] = written
        active.moves.append((keep, len(written)))
        together = next((at for at in range(keep, 0, -1) if active.token_ns[at - 1] != pass_ns), 0)
        active.token_ns[together:] = [now_ns] * (len(ids) - together)
        # At least one token must be left to feed: without one there would be no logits.
        holds = min(active.prompt_length + keep, active.prompt_length + len(ids) - 1)
        if self.model.length(active.row) > holds:
            self.model.rollback(active.row, holds)
        if active.reference is not None and list(active.reference[: len(ids)]) != ids:
            reference = realigned(self.vocabulary, active.request.reference or (), ids)
            if reference is None:
                self._refuse(active, "forced text differs from the reference")
                return accept_ns
            active.reference, active.limit = reference, min(active.request.limit, len(reference))
        self._ended(active)
        return accept_ns

    def _ended(self, active: ActiveRequest) -> bool:
        if active.ids and active.ids[-1] in self._ends:
            self._finish(active, "end_of_sequence")
        elif len(active.ids) >= active.limit:
            self._finish(active, "limit")
        else:
            return False
        return True

    def _refuse(self, active: ActiveRequest, why: str) -> None:
        reference = active.request.reference
        self._finish(
            active,
            "refused",
            why=why,
            stopped_at=None if reference is None else differing(self.vocabulary, reference, active.ids),
        )

    def _finish(
        self,
        active: ActiveRequest,
        end: End,
        *,
        why: str = "",
        phase: str = "",
        stopped_at: int | None = None,
    ) -> None:
        """Records how the request ended, frees its row and drops its grammar."""
        self.strategy.finished(active)
        self.model.rollback(active.row, 0)
        del self.by_row[active.row]
        heappush(self.free, active.row)
        waiting = active.waiting
        active.object = active.compiled = waiting.compiled = None
        self.done[waiting.number] = Completed(
            active.request.name, end, tuple(active.ids), active.prompt_length, active.account,
            active.request.arrival_ns, active.admitted_ns,
            tuple(active.token_ns), perf_counter_ns() - self.start, why, phase, waiting.fallback, stopped_at,
            waiting.compile_state,
            waiting.compile_ns, waiting.waited_ns, (active.fill_ns, active.accept_ns),
            moves=tuple(active.moves),
        )  # fmt: skip
