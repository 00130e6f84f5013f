"""Mistakes that the loop could make, each put into its source: the tests' own questions must notice every
one."""

from __future__ import annotations

import pytest
from decode_faulty import GOOD, Panic, faulty, finish_beside
from decode_mistakes import put_mistake
from decode_questions import (
    CASES,
    Drafts,
    both,
    ids,
    the_cache_is_that_of_the_output,
    the_draws_are_those_of_the_distribution,
    tokens_in_the_place_of_others_are_counted_apart,
)
from decode_tools import (
    EOS,
    WORDS,
    AroundAdapter,
    FakeModel,
    Locked,
    NeitherBackNorCopy,
    alone,
    regex,
    replayed,
    request,
    serve,
)

from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference
from harness.walk.loop.outcome import Account
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.jump_forward import JumpForward

MUTANTS: list[tuple[str, str, str]] = [
    # grammar, cache and output apart
    ("batch", "if self.model.length(active.row) > holds:", "if False:"),
    ("batch", "active.rewind(len(taken_back), ids[:keep])", "pass"),
    ("batch", "active.rewind(active.ahead - agreed, ids)", "pass"),
    ("batch", "accept_ns = active.accept(token)", "pass"),
    ("batch", "self.model.rollback(active.row, active.prompt_length + len(ids) - 1)", "pass"),
    ("batch", "accept_ns = active.write(written)", "accept_ns = 0"),
    ("batch", "heappush(self.free, active.row)", "heappush(self.free, 0)"),
    ("batch", "del self.by_row[active.row]\n", "del self.by_row[min(self.by_row)]\n"),
    ("step", "active.ids[done - prompt :] if", "active.ids[-1:] if"),
    ("step", "if len(pending) > chunk:", "if len(pending) > chunk + 1:"),
    ("step", "[*constrained, *free]", "[*free, *constrained]"),
    ("step", "slot += sum(len(active.draft) + 1 for active in part)",
    "slot += sum(len(active.draft) for active in part)"),
    ("step", "places += range(end - 1 - len(active.draft), end)",
    "places += range(end - len(active.draft) - 1, end)[::-1]"),
    ("active", "self.object = fresh", "pass"),
    ("active", "fresh.accept_tokens(kept)", "fresh.accept_tokens(kept[:-1]) + bool(kept)"),
    ("active", "            if not is_copy:\n                self.rewind(count, self.ids)",
    "            pass"),
    # masks and samples
    ("masks", "unpack_mask(~rows, self.size)", "unpack_mask(rows, self.size)"),
    ("loop", "masks.apply(slots[: passing.masked])", "masks.apply(slots[: passing.masked - 1])"),
    ("loop", "slots = passing.logits_of_slots(logits)[:, : self.loop.vocabulary.size]",
    "slots = passing.logits_of_slots(logits)"),
    ("loop", "self.sampler.disturb(slots[len(wanted) + place], active.request.seed, at + place)", "pass"),
    ("loop", "active.request.seed, at + place)", "active.row, at + place)"),
    ("loop", "active.request.seed, at + place)", "active.request.seed, at)"),
    ("sampling", "noise.clamp_(min=torch.finfo(noise.dtype).tiny).log_()", "noise"),
    ("sampling", "rows[row, token] += BONUS", "rows[row, token] += 1"),
    ("sampling", "NOTHING if logit == -inf else token", "token"),
    # books
    ("batch", "account.passes += 1", "account.passes += len(chosen)"),
    ("batch", "        account.sampled += agreed\n", ""),
    ("batch", "book(active.account, self.vocabulary, taken_back, written)",
    "book(active.account, self.vocabulary, [], written)"),
    ("respelling", "account.forced += len(written) - again", "account.forced += len(written)"),
    ("respelling", "        if length > there:\n            break\n", ""),
    ("batch", "active.token_ns[together:] = [now_ns] * (len(ids) - together)",
    "active.token_ns += [now_ns] * len(written)"),
    # spelling and reference
    ("respelling", "keep, ids = retokenize(vocabulary, history[start:], forced, follows=follows)",
     "keep, ids = retokenize(vocabulary, history[start:], forced, hold=False)"),
    ("respelling", "return Move(start + keep, ids) if", "return Move(len(history), ids) if"),
    ("batch", "active.reference, active.limit = reference, min(active.request.limit, len(reference))",
    "pass"),
    ("batch", "reference is None:\n                self._refuse", "False:\n                self._refuse"),
    ("batch", "if active.reference is None or token == (expected", "if True or token == (expected"),
    # faults
    ("step", "active.fault = fault.with_traceback(None)", "pass"),
    ("batch", "            if active.fault is not None:", "            if False:"),
    ("faults", "        if error is not None:", "        if isinstance(error, Exception):"),
    ("batch", "                strategies, accepts = self._take(active, mine, now_ns)",
     "                strategies, accepts = self._take(active, mine, now_ns) if not any(each.fault for each "
     "in sampling) else (0, 0)"),
]  # fmt: skip


EXACT = Reference(WORDS)
MIXED = [
    *GOOD[:2],
    request("free", seed=3, prompt=range(20), limit=9),
    request("greedy", regex("[a-d]{0,9}"), prompt=range(17)),
    request("short", limit=1),
]
ALONE = [alone(each, EXACT) for each in MIXED]
ZEROLESS = Vocabulary(
    "no zero", (b"\xff", *WORDS.tokens[1:]), (EOS,), WORDS.special_tokens, WORDS.padding_tokens
)


def questions() -> None:
    """What the other tests ask, in small."""
    completed = serve(MIXED, model=FakeModel(rows=3), overlap=False)
    assert [each.ids for each in completed] == ALONE
    assert all(each.account.passes == len(each.ids) for each in completed)
    spelled = request("r", regex("(c|x)dx[ab]{4}"), reference=(*b"cdxabab", EOS))
    for adapter in (EXACT, AroundAdapter(NeitherBackNorCopy)):
        (each,) = serve([spelled], adapter, JumpForward, overlap=False)
        assert each.ids == (*ids("cdx"), *b"abab", EOS)
        assert each.account == Account(sampled=6, forced=2, rolled_back=1, passes=6)
    tokens_in_the_place_of_others_are_counted_apart()
    for grammar, text in (("abcx|cd", b"abd"), ("abcx|ce", b"abd"), ("xa", b"xb")):
        for strategy in (Strategy, JumpForward):
            (each,) = serve([replayed("r", regex(grammar), text)], None, strategy, overlap=False)
            assert (each.end, each.stopped_at) == ("refused", 1)
    (each,) = serve([request("r", regex("a\x00"))], Reference(ZEROLESS), overlap=False)
    assert (each.end, each.ids) == ("refused", (97,))
    for kind, threads in ((NeitherBackNorCopy, 1), (Locked, 3)):
        completed = serve(MIXED, AroundAdapter(kind), Drafts, fill_threads=threads, overlap=threads > 1)
        assert [each.ids for each in completed] == ALONE
        assert all(
            each.account.passes - each.account.sampled + each.account.accepted_drafts in (0, 1)
            for each in completed
        )
    both(
        [replayed(f"r{number}", *case) for number, case in enumerate(CASES)],
        model=FakeModel(chunk=4),
        overlap=False,
    )
    the_cache_is_that_of_the_output()
    bad = finish_beside(faulty("fill", Panic), overlap=False)
    assert (bad.end, bad.phase) == ("fault", "fill")
    the_draws_are_those_of_the_distribution()


def test_without_a_mistake_there_is_nothing_to_notice() -> None:
    questions()


@pytest.mark.parametrize(
    ("module", "right", "wrong"), MUTANTS, ids=lambda text: text.strip()[:40].replace("\n", " ")
)
def test_a_mistake_is_noticed(module: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put_mistake(module, right, wrong, monkeypatch.setattr)
    with pytest.raises(BaseException):  # noqa: B017  (whatever way it shows itself)
        questions()
