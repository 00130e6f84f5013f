"""Latencies and rates of a session as vLLM names them, each with its definition. Input is in nanoseconds;
results are nanoseconds and numbers.

Times run from the moment at which the connection stood and the request began to go out. A message is a
message with new text: role-only and empty ones count only for the end (vLLM takes the first message with
`choices` for the first token, empty or not).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from harness.serve.live.answer import OURS, Answer
from harness.serve.live.record import Lived
from harness.serve.requests.latency import Objectives, Rates
from harness.serve.requests.words import Right


def answered(answers: Iterable[Answer]) -> list[Answer]:
    """Returns the answers that came to their end or their limit, with at least one message of text."""
    return [answer for answer in answers if answer.is_answered and answer.heard.message_ns]


def ttft(answer: Answer) -> float:
    """Time to first token: from the request until the first message with text. It includes queue, compile,
    prefill and first mask."""
    return float(answer.heard.message_ns[0] - answer.heard.sent_ns)


def tpot(answer: Answer) -> float | None:
    """Time per output token: (last - first message with text) / (tokens - 1). None if there is one token, or
    if all text came in one read, whose clock says nothing of its tokens, even if the end came later. Tokens
    of thinking that was not sent came before the first text and are not counted.

    If the server counts the tokens, the last message is the last one with `choices`: it is often empty and
    has the reason of the end, and it came when end-of-sequence was sampled, which servers count. If we count
    messages, it is the last of those that we count.
    """
    heard = answer.heard
    last = heard.last_ns if heard.usage.output is not None else heard.message_ns[-1]
    if answer.streamed < 2 or last is None or heard.message_ns[-1] == heard.message_ns[0]:
        return None
    return (last - heard.message_ns[0]) / (answer.streamed - 1)


def e2e(answer: Answer) -> float:
    """End to end: from the request until the last message with `choices`."""
    last = answer.heard.last_ns
    return float((answer.heard.done_ns if last is None else last) - answer.heard.sent_ns)


def itl(answer: Answer) -> list[float]:
    """Inter-token latency as vLLM reads it: one gap for each message, however many tokens it brings. Messages
    of one read count as one."""
    return [float(after - before) for before, after in pairwise(sorted(set(answer.heard.message_ns)))]


def lag(answer: Answer) -> float:
    """Our own delay: from when the request was due until we began with it."""
    return float(answer.heard.begun_ns - answer.due_ns)


def connect(answer: Answer) -> float:
    """Returns the time from when we began until the connection stood, which is in none of the other times of
    a request."""
    return float(answer.heard.sent_ns - answer.heard.begun_ns)


def server_tpot(answer: Answer) -> float | None:
    """TPOT by the server's own clock (llama.cpp's `timings`): `predicted_ms` / (`predicted_n` - 1)."""
    spent, count = answer.heard.timings.get("predicted_ms"), answer.heard.timings.get("predicted_n")
    return None if spent is None or count is None or count < 2 else spent * 1e6 / (count - 1)


def server_ttft(answer: Answer) -> float | None:
    """Returns the prompt's time by the server's own clock (llama.cpp's `timings`): `prompt_ms`, without the
    queue before it."""
    spent = answer.heard.timings.get("prompt_ms")
    return None if spent is None else spent * 1e6


TIMES: dict[str, Callable[[Answer], float | None]] = {
    "ttft": ttft,
    "tpot": tpot,
    "e2e": e2e,
    "lag": lag,
    "connect": connect,
    "server_ttft": server_ttft,
    "server_tpot": server_tpot,
}
"""The figures with one value for each request."""


def values(answers: Iterable[Answer], name: str) -> list[float]:
    """Returns the figure's values over the answered requests that have it; for `itl` all gaps, pooled, and
    for `lag`, which is ours, that of every request, however it ended."""
    if name == "itl":
        return [gap for answer in answered(answers) for gap in itl(answer)]
    if name == "lag":
        return [lag(answer) for answer in answers]
    times = (TIMES[name](answer) for answer in answered(answers))
    return [answer for answer in times if answer is not None]


def rates(answers: Sequence[Answer]) -> Rates | None:
    """Returns the rates over the time from when we began with the first request, before its connection stood,
    to the end of the last one, answered or not. They are 0 if the server answered nothing; None if nothing
    was asked of it, because we failed or went away."""
    if all(answer.heard.end in OURS for answer in answers):
        return None
    good = answered(answers)
    span = max(answer.heard.done_ns for answer in answers) - min(answer.heard.begun_ns for answer in answers)
    prompts = sum(answer.heard.usage.prompt or 0 for answer in good)
    return Rates(span / 1e9, len(good), sum(answer.tokens for answer in good), prompts) if span > 0 else None


def is_good(answer: Answer, objectives: Objectives) -> bool:
    """Returns whether the request was answered within every objective. With a single token, or with all
    text in one read, TPOT does not apply and counts as kept, as in vLLM."""
    if not (answer.is_answered and answer.heard.message_ns):
        return False
    return objectives.are_kept(ttft(answer), tpot(answer), e2e(answer))


def goodput(
    answers: Sequence[Answer], objectives: Objectives, right: Callable[[Answer], Right] | None = None
) -> float | None:
    """Good requests a second, over the same time as the throughput, 0 and None as there; with `right`,
    requests with an invalid text are not good."""
    throughput = rates(answers)
    if throughput is None:
        return None
    good = sum(
        is_good(answer, objectives) and (right is None or right(answer) != "invalid") for answer in answers
    )
    return good / throughput.seconds


def tokens_per_message(answers: Iterable[Answer]) -> float | None:
    """Output tokens over messages with text, where the server counts tokens; 1 if each message brings one.
    End-of-sequence may be among the tokens; thinking that was not sent is not."""
    counted = [answer for answer in answered(answers) if answer.heard.usage.output is not None]
    messages = sum(len(answer.heard.message_ns) for answer in counted)
    return sum(answer.streamed for answer in counted) / messages if messages else None


@dataclass(frozen=True)
class AnswerCounts:
    """Counts the answers whose tokens the server counted, and those whose tokens we counted by messages."""

    by_server: int
    by_messages: int


def counted(answers: Iterable[Answer]) -> AnswerCounts:
    """Returns the counts over the answered requests."""
    is_counted = [answer.heard.usage.output is not None for answer in answered(answers)]
    return AnswerCounts(sum(is_counted), len(is_counted) - sum(is_counted))


def without_text(answers: Iterable[Answer]) -> int:
    """Returns how many requests came to their end or their limit without any text: a model that thinks may
    come to the limit before it writes."""
    return sum(answer.is_answered and not answer.heard.message_ns for answer in answers)


def in_one_read(answers: Iterable[Answer]) -> int:
    """Returns how many answered requests of several tokens have no TPOT, because all text came in one
    read."""
    return sum(answer.streamed > 1 and tpot(answer) is None for answer in answered(answers))


def ends(answers: Iterable[Answer]) -> dict[str, int]:
    """Returns the number of requests by how they ended; a timeout with its phase, and what came in place of
    the text."""
    return dict(Counter(map(_ending, answers)).most_common())


def _ending(answer: Answer) -> str:
    heard = answer.heard
    more = heard.phase if heard.end == "timeout" else heard.instead
    return f"{heard.end}: {more}" if more else heard.end


@dataclass(frozen=True)
class Pairs:
    """Constrained requests beside their unconstrained twins."""

    ttft: list[float]
    """Constrained less unconstrained, in nanoseconds."""
    tpot: list[float]
    """Constrained over unconstrained. The outputs differ in length, so this is a ratio of times per token.
    Pairs that are counted in two ways have none."""
    unlike: int
    """How many pairs are counted in two ways: the tokens of one answer by the server, those of the other by
    messages."""

    @property
    def median_ttft(self) -> float | None:
        return median(self.ttft) if self.ttft else None

    @property
    def median_tpot(self) -> float | None:
        return median(self.tpot) if self.tpot else None


def pairs(constrained: Iterable[Answer], plain: Iterable[Answer]) -> Pairs:
    """Returns the pairs of requests that were both answered."""
    twins = {answer.number: answer for answer in answered(plain)}
    first, per_token, unlike = [], [], 0
    for answer in answered(constrained):
        twin = twins.get(answer.number)
        if twin is None:
            continue
        first.append(ttft(answer) - ttft(twin))
        if (answer.heard.usage.output is None) != (twin.heard.usage.output is None):
            unlike += 1
            continue
        mine, other = tpot(answer), tpot(twin)
        if mine is not None and other:
            per_token.append(mine / other)
    return Pairs(first, per_token, unlike)


def twin_load(lived: Lived, load: int) -> int | None:
    """Returns the place of the unconstrained load beside this one; None if there is none."""
    mine = lived.setup.loads[load]
    if mine.role == "none" or mine.kind == "first":
        return None
    near = (load + 1, load - 1)
    for place in near:
        if 0 <= place < len(lived.setup.loads):
            other = lived.setup.loads[place]
            if other.role == "none" and _pattern(other) == _pattern(mine):
                return place
    return None


def _pattern(load: object) -> dict[str, object]:
    return {name: value for name, value in vars(load).items() if name != "role"}
