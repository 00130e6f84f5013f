"""The step summary of a workflow run: at most 60 kB of Markdown (GitHub drops one over 1 MiB whole)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from harness.outcomes import delayed
from harness.outcomes.case_state import CaseState
from harness.outcomes.gate import NO_BASE
from harness.outcomes.outcome import in_words, summed
from harness.outcomes.result import Result
from harness.report.export import markdown as tables
from harness.report.values import percent
from harness.serve.decode.record import Decoding
from harness.serve.decode.show import decoding_text
from harness.text import markdown

FILE, OURS = "summary.md", b"## GrammarBench: "
"""The name of the file, and how it begins."""

MOST_BYTES = 60_000
MOST_LINES = 40

SAID = {"ok": "✅ ok", "failed": "❌ failed", "incomplete": "⚠️ incomplete", "unproven": "⚠️ unproven"}


def files(result: Result) -> dict[str, str]:
    """Returns `summary.md`, whole or cut to `MOST_BYTES`."""
    return {FILE: _within("\n".join(_lines(result)) + "\n")}


def of_decoding(decoding: Decoding) -> str:
    """Returns what the terminal says of a decoding, under a title and as code, cut to `MOST_BYTES`. The title
    says if it has no end."""
    state = "decoding" if decoding.is_complete else SAID["incomplete"]
    title = f"## GrammarBench: {state}, run {markdown(decoding.setup.run)}\n"
    code = (f"    {line}".rstrip() for line in decoding_text(decoding).splitlines())
    return _within("\n".join([title, *code]) + "\n")


def _lines(result: Result) -> Iterator[str]:
    gate = result.gate
    against = f" against {markdown(gate.against)}" if gate.against else ""
    sample = f", {markdown(result.sample, 300)}" if result.sample else ""
    said = NO_BASE if gate.has_no_base else SAID[gate.verdict]
    yield f"## GrammarBench: {said}{against}{sample}\n"
    yield from (f"- {markdown(reason, 300)}" for reason in gate.reasons if reason != result.sample)
    for kind in ("worse", "better", "other"):
        mine = [change for change in result.changes if change.kind == kind]
        if mine:
            yield f"\n### {len(mine)} {kind}\n"
            yield from (
                f"- {markdown(change.arm)}: {markdown(change.what, 300)}" for change in mine[:MOST_LINES]
            )
            if len(mine) > MOST_LINES:
                yield f"- and {len(mine) - MOST_LINES} more"
    yield "\n### Cases\n"
    yield from judged(result)
    yield ""
    yield tables.counts(result)
    yield "\n### Figures\n"
    yield tables.figures(result, headline=True)
    yield from _what_fails_most(result)
    for line in delayed.lines(result.delayed):
        yield f"\n{markdown(line, 600)}\n"
    yield from (
        f"- {markdown(case.arm)}: {markdown(delayed.in_words(case), 600)}"
        for case in result.delayed[: delayed.MOST_TOLD]
    )
    yield f"\nrun {markdown(result.run)}, {markdown(result.started)}, "
    yield f"profile {markdown(result.profile)}, harness {markdown(result.harness)}"


def _what_fails_most(result: Result) -> Iterator[str]:
    """Yields a table of the faults in the most cases, of as many the gravest first, but for those of
    controls; nothing where there are none."""
    controls, gravity = result.controls, defaultdict[tuple[str, str], int](lambda: len(CaseState))
    kinds: Counter[tuple[str, str]] = Counter()
    for case in result.failing:
        if case.outcome == "failed" and case.arm not in controls:
            faults = [fault for fault in case.faults if fault not in case.documented]
            kinds.update((case.arm, fault) for fault in faults)
            # A case is in the state of its worst fault, which is the first.
            worst = case.arm, faults[0]
            gravity[worst] = min(gravity[worst], CaseState(case.state).gravity)
    if not kinds:
        return
    yield "\n### What fails most\n"
    yield "| backend | fault | cases |\n| --- | --- | ---: |"
    ordered = sorted(kinds, key=lambda kind: (-kinds[kind], gravity[kind]))
    yield from (
        f"| {markdown(arm)} | {markdown(fault)} | {kinds[arm, fault]} |"
        for arm, fault in ordered[:MOST_LINES]
    )
    if len(ordered) > MOST_LINES:
        yield f"\nand {len(ordered) - MOST_LINES} more"


def judged(result: Result) -> Iterator[str]:
    """Says for each arm, over all suites, how many cases work and how many were judged."""
    for arm in result.arms:
        total = summed(count for count in result.counts if count.arm == arm.name)
        share = (
            "nothing judged"
            if total.conformance is None
            else (f"conformance {percent(total.conformance)} ({total.works:,} of {total.judged:,})")
        )
        yield f"- {markdown(arm.name)}: {share}; {in_words(total)}"


def _within(text: str) -> str:
    """Returns the text; one that is too long is cut between two lines, and says so."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= MOST_BYTES:
        return text
    note = "\n\ncut here: the summary is longer than 60 kB; the report has all of it\n"
    kept = raw[: MOST_BYTES - len(note.encode())].decode("utf-8", "ignore")
    return kept[: kept.rfind("\n")] + note
