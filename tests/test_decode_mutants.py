"""Mistakes that the loop could make, each put into its source: the tests' own questions must notice every one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import pytest
from decode_tools import EOS, WORDS, AroundAdapter, FakeModel, Locked, NeitherBackNorCopy, alone, regex, replayed, request, serve
from test_decode_faults import GOOD, Panic, faulty, finish_beside
from test_decode_loop import test_the_draws_are_those_of_the_distribution
from test_decode_strategies import (
    CASES,
    Drafts,
    both,
    ids,
    test_the_cache_is_that_of_the_output,
    test_tokens_in_the_place_of_others_are_counted_apart,
)

from harness.loop.outcome import Account
from harness.loop.strategies.base import Strategy
from harness.loop.strategies.jump_forward import JumpForward
from harness.oracle.reference import Reference
from harness.vocabulary import Vocabulary

MUTANTS: list[tuple[str, str, str]] = [
    # grammar, cache and output apart
    ("batch", "if self.model.length(live.row) > holds:", "if False:"),
    ("batch", "live.rewind(len(taken_back), ids[:keep])", "pass"),
    ("batch", "live.rewind(live.ahead - same, ids)", "pass"),
    ("batch", "accept_ns = live.accept(fresh)", "pass"),
    ("batch", "self.model.rollback(live.row, live.prompt_length + len(ids) - 1)", "pass"),
    ("batch", "accept_ns = live.write(written)", "accept_ns = 0"),
    ("batch", "heappush(self.free, live.row)", "heappush(self.free, 0)"),
    ("batch", "del self.lives[live.row]\n", "del self.lives[min(self.lives)]\n"),
    ("step", "pending = live.ids[done - prompt :] if", "pending = live.ids[-1:] if"),
    ("step", "if len(pending) > chunk:", "if len(pending) > chunk + 1:"),
    ("step", "[*constrained, *free]", "[*free, *constrained]"),
    ("step", "slot += sum(len(live.draft) + 1 for live in part)", "slot += sum(len(live.draft) for live in part)"),
    ("step", "places += range(end - 1 - len(live.draft), end)", "places += range(end - len(live.draft) - 1, end)[::-1]"),
    ("live", "self.object = fresh", "pass"),
    ("live", "taken = fresh.accept_tokens(kept)", "taken = fresh.accept_tokens(kept[:-1]) + bool(kept)"),
    ("live", "            if not is_copy:\n                self.rewind(count, self.ids)", "            pass"),
    # masks and samples
    ("masks", 'axis=-1, count=self.size, bitorder="little"', 'axis=-1, count=self.size, bitorder="big"'),
    ("loop", "masks.apply(slots[: passing.masked])", "masks.apply(slots[: passing.masked - 1])"),
    ("loop", "slots = passing.logits_of_slots(logits)[:, : self.loop.vocabulary.size]", "slots = passing.logits_of_slots(logits)"),
    ("loop", "self.sampler.disturb(slots[len(wanted)], live.request.seed, place)", "pass"),
    ("loop", "live.request.seed, place)", "live.row, place)"),
    ("loop", "live.request.seed, place)", "live.request.seed, at)"),
    ("sampling", "noise.clamp_(min=torch.finfo(noise.dtype).tiny).log_()", "noise"),
    ("sampling", "rows[row, token] += BONUS", "rows[row, token] += 1"),
    ("sampling", 'if rows[at, token] != float("-inf") else NOTHING', ""),
    # books
    ("batch", "account.passes += 1", "account.passes += len(chosen)"),
    ("batch", "        account.sampled += same\n", ""),
    ("batch", "book(live.account, self.vocabulary, taken_back, written)", "book(live.account, self.vocabulary, [], written)"),
    ("respelling", "account.forced += len(written) - again", "account.forced += len(written)"),
    ("respelling", "        if length > there:\n            break\n", ""),
    ("batch", "live.token_ns[together:] = [now_ns] * (len(ids) - together)", "live.token_ns += [now_ns] * len(written)"),
    # spelling and reference
    ("respelling", "keep, ids = retokenize(vocabulary, history[start:], forced, follows=follows)",
     "keep, ids = retokenize(vocabulary, history[start:], forced, hold=False)"),
    ("respelling", "return Move(start + keep, ids) if", "return Move(len(history), ids) if"),
    ("batch", "live.reference, live.limit = reference, min(live.request.limit, len(reference))", "pass"),
    ("batch", "reference is None:\n                self._refuse", "False:\n                self._refuse"),
    ("batch", "elif live.reference is not None and token != live.reference[len(ids)]:", "elif False:"),
    # faults
    ("step", "live.fault = fault.with_traceback(None)", "pass"),
    ("batch", "            if live.fault is not None:", "            if False:"),
    ("faults", "not isinstance(error, (KeyboardInterrupt, SystemExit))", "isinstance(error, Exception)"),
    ("batch", "                strategies, accepts = self._take(live, mine, now_ns)",
     "                strategies, accepts = self._take(live, mine, now_ns) if not any(each.fault for each in sampling) else (0, 0)"),
]  # fmt: skip


EXACT = Reference(WORDS)
MIXED = [
    *GOOD[:2],
    request("free", seed=3, prompt=range(20), limit=9),
    request("greedy", regex("[a-d]{0,9}"), prompt=range(17)),
    request("short", limit=1),
]
ALONE = [alone(each, EXACT) for each in MIXED]
ZEROLESS = Vocabulary("no zero", (b"\xff", *WORDS.tokens[1:]), EOS, WORDS.special_tokens, WORDS.padding_tokens)


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
    test_tokens_in_the_place_of_others_are_counted_apart()
    for grammar, text in (("abcx|cd", b"abd"), ("abcx|ce", b"abd"), ("xa", b"xb")):
        for strategy in (Strategy, JumpForward):
            (each,) = serve([replayed("r", regex(grammar), text)], None, strategy, overlap=False)
            assert (each.end, each.stopped_at) == ("refused", 1)
    (each,) = serve([request("r", regex("a\x00"))], Reference(ZEROLESS), overlap=False)
    assert (each.end, each.ids) == ("refused", (97,))
    for kind, threads in ((NeitherBackNorCopy, 1), (Locked, 3)):
        completed = serve(MIXED, AroundAdapter(kind), Drafts, fill_threads=threads, overlap=threads > 1)
        assert [each.ids for each in completed] == ALONE
        assert all(each.account.passes - each.account.sampled + each.account.accepted_drafts in (0, 1) for each in completed)
    both([replayed(f"r{number}", *case) for number, case in enumerate(CASES)], model=FakeModel(chunk=4), overlap=False)
    test_the_cache_is_that_of_the_output()
    bad = finish_beside(faulty("fill", Panic), overlap=False)
    assert (bad.end, bad.phase) == ("fault", "fill")
    test_the_draws_are_those_of_the_distribution()


def test_without_a_mistake_there_is_nothing_to_notice() -> None:
    questions()


@pytest.mark.parametrize(("module", "right", "wrong"), MUTANTS, ids=lambda text: text.strip()[:40].replace("\n", " "))
def test_a_mistake_is_noticed(module: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = import_module(f"harness.loop.{module}")
    assert original.__file__ is not None
    with open(original.__file__, encoding="utf-8") as file:
        source = file.read()
    assert source.count(right) == 1, f"{module}: {source.count(right)} times: {right}"
    replace_by(original, source.replace(right, wrong), monkeypatch.setattr)
    with pytest.raises(BaseException):  # noqa: B017  (whatever way it shows itself)
        questions()


def replace_by(original: ModuleType, source: str, set_attribute: Callable[[object, str, object], None]) -> None:
    """Wherever something of the module was imported, put what the other source defines."""
    mutant = ModuleType(original.__name__)
    exec(compile(source, f"<mutant of {original.__name__}>", "exec"), mutant.__dict__)
    for name, value in vars(original).items():
        if getattr(value, "__module__", None) != original.__name__:
            continue
        for module in list(sys.modules.values()):
            if (
                getattr(module, "__name__", "").startswith(("harness.loop", "decode_tools", "test_decode"))
                and vars(module).get(name) is value
            ):
                set_attribute(module, name, getattr(mutant, name))
