"""What the live sessions say: latencies of each load, and whether the server keeps the grammar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.report.page.content import Content
from harness.report.page.section import Section, Values
from harness.serve.live import figures
from harness.serve.live.record import NOT_ASKED, has_session, read_session
from harness.serve.live.show import LiveSummary, failures, load_notes, token_notes
from harness.serve.requests.latency import percentiles
from harness.serve.requests.titles import say
from harness.text import counted

HEADS = (
    "load",
    "grammar",
    "requests",
    "answered",
    "valid",
    "TTFT p50",
    "TTFT p99",
    "TPOT p50",
    "ITL p50",
    "E2E p50",
    "tok/s",
    "goodput/s",
    "over no grammar",
)


@dataclass(frozen=True)
class Session:
    """What one record of a live server says."""

    title: str
    about: str
    findings: tuple[tuple[bool, str], ...]
    """Is it good, and what is found; one for each dialect of grammar."""
    ends: tuple[str, ...]
    notes: tuple[str, ...]
    """Why requests failed, and what is to be known of the times, as the terminal has it."""
    rows: tuple[tuple[str, ...], ...]
    """One per load, a cell for each of HEADS."""


def values(page: Content) -> Values | None:
    """Returns the sessions; None where no folder holds one. Raises BadInput."""
    live_sessions = sessions(page.inputs.folders)
    return {"lived": live_sessions, "live_heads": HEADS} if live_sessions else None


SECTION = Section("live", "Live", 90, values, "serving")


def sessions(folders: Sequence[Path]) -> list[Session]:
    """Returns what the folders with a live session say, one value each. Raises BadInput."""
    return [_session(LiveSummary(read_session(folder))) for folder in folders if has_session(folder)]


def _session(summary: LiveSummary) -> Session:
    setup = summary.lived.setup
    grammars = {
        "warm": "sent once before",
        "cold": "made unique where possible",
        "mixed": "as they come",
    }.get(setup.grammars, setup.grammars)
    about = (
        f"Model {setup.model}, {setup.endpoint}; grammars {grammars}; at most {setup.sampling.limit} tokens "
        "out. "
        f"Goodput: {summary.objectives}. Times as vLLM defines them, but the first token is the first text."
    )
    if setup.not_asked:
        about += f" {counted(setup.not_asked, 'case')} {NOT_ASKED}."
    if setup.left_out:
        about += f" The model refuses {' and '.join(setup.left_out)}, so the model's own values are used."
    roles = (("with a grammar", "constrained"), ("without", "none"))
    counts = (
        (called, figures.ends(answer for answer in summary.lived.answers if answer.role == role))
        for called, role in roles
    )
    ends = tuple(
        f"{called}: {', '.join(f'{count:,} {end}' for end, count in by_end.items())}"
        for called, by_end in counts
        if by_end
    )
    findings = tuple((entry.finding == "kept", str(entry)) for entry in summary.kept)
    rows = tuple(_row(summary, place) for place in range(len(setup.loads)))
    title = f"{setup.dialect} {setup.version} at {setup.url}"
    return Session(title, about, findings, ends, tuple(_notes(summary)), rows)


def _notes(summary: LiveSummary) -> Iterator[str]:
    answers = summary.lived.answers
    yield from failures(answers)
    yield from token_notes(answers)
    for place, load in enumerate(summary.lived.setup.loads):
        grammar = "with a grammar" if load.role == "constrained" else "without"
        yield from (f"{load.name}, {grammar}: {note}" for note in load_notes(summary, place))


def _row(summary: LiveSummary, place: int) -> tuple[str, ...]:
    load, mine, pairs = summary.lived.setup.loads[place], summary.by_load[place], summary.pairs(place)
    rights = [summary.right(answer) for answer in mine]
    judged = sum(right != "unjudged" for right in rights)
    first, per_token, gap, whole = (
        percentiles(figures.values(mine, name)) for name in ("ttft", "tpot", "itl", "e2e")
    )
    rates = figures.rates(mine)
    beside = ""
    if pairs is not None and pairs.median_ttft is not None:
        sign = "+" if pairs.median_ttft >= 0 else "−"
        ratio = "" if pairs.median_tpot is None else f", TPOT × {pairs.median_tpot:.3g}"
        beside = f"TTFT {sign}{say('ttft', abs(pairs.median_ttft))}{ratio}"
    return (
        load.name,
        "with" if load.role == "constrained" else "none",
        f"{load.requests:,}",
        f"{sum(answer.is_answered for answer in mine):,}",
        f"{rights.count('valid')}/{judged}" if judged else "-",
        say("ttft", first["p50"]),
        say("ttft", first["p99"]),
        say("tpot", per_token["p50"]),
        say("itl", gap["p50"]),
        say("e2e", whole["p50"]),
        say("output_throughput", rates.output_throughput if rates else None),
        say("goodput", figures.goodput(mine, summary.objectives)),
        beside,
    )
