"""A session as text of at most 80 columns, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from harness.backend.grammar import Dialect
from harness.rows.store import read_cases
from harness.serve.live import figures
from harness.serve.live.answer import Answer
from harness.serve.live.conformance import DialectCounts, LiveGate, conformance, gate
from harness.serve.live.figures import TIMES, Pairs
from harness.serve.live.load import Load
from harness.serve.live.record import NOT_ASKED, Lived
from harness.serve.requests.latency import Objectives, percentiles
from harness.serve.requests.titles import say
from harness.text import counted, one_line

LATE_NS = 10e6
"""The lag, in nanoseconds, beyond which a reader is warned that the client itself was late, if the lag is
also more than half of the mean gap between requests."""

ELSEWHERE = (
    *("run", "url", "dialect", "version", "model", "endpoint"),
    *("grammars", "cases", "not_offered", "loads"),
)
"""The fields of the setup that stand elsewhere in the JSON."""

WITH = {"constrained": "with", "none": "none"}


class LiveSummary:
    """A session and what is concluded from it."""

    def __init__(self, lived: Lived, objectives: Objectives | None = None) -> None:
        """`objectives` are those of goodput; None takes those that the session was asked with."""
        self.lived, self.objectives = lived, objectives or lived.setup.objectives
        dialects: dict[tuple[str, str], Dialect] = {
            (suite, case.id): case.grammar.dialect for suite, _, case in read_cases(lived.folder)
        }
        self.kept: list[DialectCounts] = conformance(lived, dialects)
        self.gate: LiveGate = gate(lived, self.kept)
        self.by_load: list[list[Answer]] = [[] for _ in lived.setup.loads]
        for answer in lived.answers:
            self.by_load[answer.load].append(answer)

    def pairs(self, load: int) -> Pairs | None:
        """Returns the pairs of a constrained load and its unconstrained twin; None if there is no twin."""
        twin = figures.twin_load(self.lived, load)
        return None if twin is None else figures.pairs(self.by_load[load], self.by_load[twin])

    def right(self, answer: Answer) -> Any:
        """Returns the judge's verdict on the answer."""
        return self.lived.right(answer).right


def session_text(summary: LiveSummary) -> str:
    """Returns the session as text for a terminal."""
    return "\n\n".join(
        "\n".join(part)
        for part in (_head(summary), _loads(summary), _outcomes(summary), _verdict(summary))
        if part
    )


def _head(summary: LiveSummary) -> list[str]:
    setup = summary.lived.setup
    model, version = (one_line(text, spelled=True) for text in (setup.model, setup.version))
    lines = [
        f"{setup.dialect}{f' {version}' if version else ''} at {setup.url} ({setup.endpoint})",
        f"model {model}; {counted(setup.cases, 'case')}, grammars {setup.grammars}, at most "
        f"{counted(setup.sampling.limit, 'token')} out",
        f"goodput: {summary.objectives}",
    ]
    if setup.left_out:
        lines.append(f"the model refuses {' and '.join(setup.left_out)}, so the model's own values are used")
    if not summary.lived.is_complete:
        lines.append("INCOMPLETE: the session has no end; no gate can pass it")
    return lines


def _loads(summary: LiveSummary) -> list[str]:
    """Returns one line for each load, and below it how its requests compare with their twins."""
    lines = [
        f"{'load':16} {'gramm.':6} {'answered':>9} {'TTFT':>7} {'p99':>7} {'TPOT':>7} {'E2E':>7} "
        f"{'tok/s':>6} {'good/s':>6}"
    ]
    for place, load in enumerate(summary.lived.setup.loads):
        mine = summary.by_load[place]
        first, per_token, whole = (
            percentiles(figures.values(mine, name)) for name in ("ttft", "tpot", "e2e")
        )
        rates = figures.rates(mine)
        good = figures.goodput(mine, summary.objectives)
        done = f"{sum(answer.is_answered for answer in mine)}/{load.requests}"
        lines.append(
            f"{load.name[:16]:16} {WITH[load.role]:6} {done:>9} {say('ttft', first['p50']):>7} "
            f"{say('ttft', first['p99']):>7} "
            f"{say('tpot', per_token['p50']):>7} {say('e2e', whole['p50']):>7} "
            f"{say('output_throughput', rates.output_throughput if rates else None):>6} "
            f"{say('goodput', good):>6}"
        )
        lines += [f"  {note}" for note in load_notes(summary, place)]
    return lines


def load_notes(summary: LiveSummary, place: int) -> Iterator[str]:
    """Yields what is to be known of the times of a load, a line each."""
    load, mine = summary.lived.setup.loads[place], summary.by_load[place]
    gaps = percentiles(figures.values(mine, "itl"))
    if gaps["p50"] is not None:
        between = f"{counted(int(gaps['n'] or 0), 'gap')} between messages"
        yield f"ITL {say('itl', gaps['p50'])}, p99 {say('itl', gaps['p99'])} ({between})"
    if silent := figures.without_text(mine):
        have, are = ("has", "is") if silent == 1 else ("have", "are")
        yield f"{counted(silent, 'answer')} {have} no text, and {are} in no time, no rate and no goodput"
    if at_once := figures.in_one_read(mine):
        have = "has" if at_once == 1 else "have"
        yield (
            f"{counted(at_once, 'answer')} {have} no TPOT, because all text came in one read; goodput counts "
            "that objective as kept"
        )
    by_state = {
        state: figures.values([answer for answer in mine if answer.state == state], "ttft")
        for state in ("cold", "warm")
    }
    if all(by_state.values()):
        times_by_state = ", ".join(
            f"{state} {say('ttft', percentiles(ttfts)['p50'])} ({len(ttfts)})"
            for state, ttfts in by_state.items()
        )
        yield f"TTFT by grammar: {times_by_state}"
    paired = summary.pairs(place)
    if paired is not None and paired.median_ttft is not None:
        ratio = (
            "" if paired.median_tpot is None else f", TPOT x {paired.median_tpot:.3g} ({_pairs(paired.tpot)})"
        )
        sign = "+" if paired.median_ttft >= 0 else "-"
        yield (
            "against the same load without a grammar, medians: "
            f"TTFT {sign}{say('ttft', abs(paired.median_ttft))} ({_pairs(paired.ttft)}){ratio}"
        )
    if paired is not None and paired.unlike:
        yield (
            f"of {counted(paired.unlike, 'pair')}, the server counted the tokens of one answer only: there "
            "TPOT has no ratio, and neither tok/s nor goodput can be compared with the other load's"
        )
    if (late := _late(load, mine)) is not None:
        yield f"THE CLIENT WAS LATE by {say('ttft', late)} at the median, so the load was not the stated one"


def _late(load: Load, mine: Sequence[Answer]) -> float | None:
    """Returns the median lag in nanoseconds if a reader is to be warned of it (LATE_NS); else None."""
    late, times = percentiles(figures.values(mine, "lag"))["p50"], [answer.due_ns for answer in mine]
    if load.kind in ("closed", "first") or late is None:
        return None
    mean_gap = (max(times) - min(times)) / max(1, len(times) - 1)
    return late if late > max(LATE_NS, mean_gap / 2) else None


def _pairs(values: Sequence[float]) -> str:
    return counted(len(values), "pair")


def _outcomes(summary: LiveSummary) -> list[str]:
    """Returns how requests ended, and who counted the tokens."""
    answers = summary.lived.answers
    lines = []
    for role, called in (("constrained", "with grammar"), ("none", "without")):
        mine = [answer for answer in answers if answer.role == role]
        if mine:
            lines.append(
                f"{called}: {', '.join(f'{count} {end}' for end, count in figures.ends(mine).items())}"
            )
    return [*lines, *(f"  {why}" for why in failures(answers)), *token_notes(answers)]


def failures(answers: Sequence[Answer]) -> list[str]:
    """Returns the five most frequent reasons for which requests failed, each with how often."""
    reasons: dict[str, int] = {}
    for answer in answers:
        if not answer.is_answered and answer.heard.why:
            reasons[answer.heard.why] = reasons.get(answer.heard.why, 0) + 1
    return [f"{count}: {why}" for why, count in sorted(reasons.items(), key=lambda item: -item[1])[:5]]


def token_notes(answers: Sequence[Answer]) -> list[str]:
    """Returns who counted the tokens if not the server, how many are thinking that was not sent, and how many
    came in a message."""
    lines = []
    token_counts = figures.counted(answers)
    if token_counts.by_messages:
        roles = Counter(
            answer.role for answer in figures.answered(answers) if answer.heard.usage.output is None
        )
        lines.append(
            f"tokens of {counted(token_counts.by_messages, 'answer')} are messages with text: the server "
            f"counted none ({roles['constrained']} with a grammar, {roles['none']} without)"
        )
    if hidden := [answer.hidden for answer in figures.answered(answers) if answer.hidden]:
        lines.append(
            f"{sum(hidden):,} tokens of {counted(len(hidden), 'answer')} are thinking that was not sent: "
            "they are in tok/s and not in TPOT, and their time is in TTFT"
        )
    per_message = figures.tokens_per_message(answers)
    if per_message is not None:
        lines.append(f"{per_message:.3g} tokens a message; ITL is of messages")
    return lines


def _verdict(summary: LiveSummary) -> list[str]:
    """Returns what is found for each dialect, how many answers say nothing of it, and the gate."""
    lines = []
    for entry in summary.kept:
        lines.append(str(entry))
        lines += [f"  request {wrong.number}: {wrong.heard.text[:60]!r}" for wrong in entry.examples]
    if none := sum(bool(answer.heard.instead) for answer in summary.lived.answers):
        lines.append(
            f"not judged: {counted(none, 'answer')} with a refusal, a tool call or a content filter in place "
            "of text"
        )
    if ended := sum(bool(answer.heard.text_end) for answer in summary.lived.answers):
        lines.append(
            f"judged, but not answered: {counted(ended, 'text')} that ended before the connection was lost "
            "or a deadline passed"
        )
    setup = summary.lived.setup
    if setup.not_offered:
        lines.append(
            f"{counted(setup.not_offered, 'case')} declined: not offered by this server's "
            "interface, so not sent"
        )
    if unasked := setup.not_asked:
        lines.append(f"{counted(unasked, 'case')} {NOT_ASKED}")
    if left := summary.lived.not_judged_yet:
        lines.append(
            f"{counted(left, 'output')} not judged yet: the session was killed before its judges were done"
        )
    # A line each: the middle of a long line is left out, and with it what a dialect is called.
    return [*lines, f"gate: {summary.gate.verdict}", *(f"  {reason}" for reason in summary.gate.reasons)]


def to_json(summary: LiveSummary) -> dict[str, Any]:
    """Returns every figure of every load, the ends, and the conclusions. Times are nanoseconds."""
    setup = summary.lived.setup
    return {
        "run": setup.run,
        "folder": summary.lived.folder,
        "is_complete": summary.lived.is_complete,
        "server": {
            "url": setup.url,
            "dialect": setup.dialect,
            "version": setup.version,
            "model": setup.model,
            "endpoint": setup.endpoint,
        },
        "setup": {name: value for name, value in asdict(setup).items() if name not in ELSEWHERE},
        "grammars": setup.grammars,
        "cases": setup.cases,
        "not_offered": setup.not_offered,
        "not_asked": setup.not_asked,
        "not_judged_yet": summary.lived.not_judged_yet,
        "objectives": asdict(summary.objectives),
        "loads": [_load_json(summary, place, load) for place, load in enumerate(setup.loads)],
        "kept": [
            {
                "dialect": entry.dialect,
                "finding": entry.finding,
                "valid": entry.valid,
                "judged": entry.judged,
                "fitting": entry.fitting,
                "without_valid": entry.plain_valid,
                "without_judged": entry.plain_judged,
                "without_fitting": entry.plain_fitting,
                "examples": [
                    {"load": wrong.load, "number": wrong.number, "text": wrong.heard.text[:500]}
                    for wrong in entry.examples
                ],
            }
            for entry in summary.kept
        ],
        "gate": asdict(summary.gate),
    }


def _load_json(summary: LiveSummary, place: int, load: Load) -> dict[str, Any]:
    mine = summary.by_load[place]
    rates, paired, token_counts = figures.rates(mine), summary.pairs(place), figures.counted(mine)
    states = {state: [answer for answer in mine if answer.state == state] for state in ("cold", "warm")}
    return {
        "name": load.name,
        "kind": load.kind,
        "role": load.role,
        "requests": load.requests,
        "late": _late(load, mine) is not None,
        "ends": figures.ends(mine),
        "judgements": {
            right: sum(summary.right(answer) == right for answer in mine)
            for right in ("valid", "invalid", "unjudged")
        },
        **{name: percentiles(figures.values(mine, name)) for name in (*TIMES, "itl")},
        **{
            f"ttft_{state}": percentiles(figures.values(answers, "ttft")) for state, answers in states.items()
        },
        "output_throughput": rates.output_throughput if rates else None,
        "total_throughput": rates.total_throughput if rates else None,
        "request_throughput": rates.request_throughput if rates else None,
        "goodput": figures.goodput(mine, summary.objectives),
        "goodput_valid": figures.goodput(mine, summary.objectives, summary.right),
        "tokens_counted_by_server": token_counts.by_server,
        "tokens_counted_by_messages": token_counts.by_messages,
        "tokens_not_sent": sum(answer.hidden for answer in figures.answered(mine)),
        "tokens_per_message": figures.tokens_per_message(mine),
        "over_twin": None
        if paired is None
        else {
            "pairs": len(paired.ttft),
            "tpot_pairs": len(paired.tpot),
            "pairs_counted_in_two_ways": paired.unlike,
            "median_ttft_more": paired.median_ttft,
            "median_tpot_ratio": paired.median_tpot,
        },
    }
