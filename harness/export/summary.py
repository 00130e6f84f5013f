"""The step summary of a workflow run: at most 60 kB of Markdown (GitHub drops one over 1 MiB whole)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.export import markdown as tables
from harness.export.text import markdown
from harness.result import Result

MOST_BYTES = 60_000
MOST_LINES = 40

SAID = {"ok": "✅ ok", "failed": "❌ failed", "incomplete": "⚠️ incomplete", "unproven": "⚠️ unproven"}


def files(result: Result) -> dict[str, str]:
    return {"summary.md": _within("\n".join(_lines(result)) + "\n")}


def _lines(result: Result) -> Iterator[str]:
    gate = result.gate
    against = f" against {markdown(gate.against)}" if gate.against else ""
    yield f"## GrammarBench: {SAID[gate.verdict]}{against}\n"
    yield from (f"- {markdown(each, 300)}" for each in gate.reasons)
    for kind in ("worse", "better", "other"):
        mine = [each for each in result.changes if each.kind == kind]
        if mine:
            yield f"\n### {len(mine)} {kind}\n"
            yield from (f"- {markdown(each.arm)}: {markdown(each.what, 300)}" for each in mine[:MOST_LINES])
            if len(mine) > MOST_LINES:
                yield f"- and {len(mine) - MOST_LINES} more"
    yield "\n### Cases\n"
    yield tables.counts(result)
    yield "\n### Figures\n"
    yield tables.figures(result, headline=True)
    kinds = Counter((each.arm, fault) for each in result.failing if not each.declined for fault in each.faults)
    if kinds:
        yield "\n### What fails most\n"
        yield "| backend | fault | cases |\n| --- | --- | ---: |"
        yield from (f"| {markdown(arm)} | {markdown(fault)} | {count} |" for (arm, fault), count in kinds.most_common(MOST_LINES))
    yield f"\nrun {markdown(result.run)}, {markdown(result.started)}, "
    yield f"profile {markdown(result.profile)}, harness {markdown(result.harness)}"


def _within(text: str) -> str:
    """Cut between two lines, saying so."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= MOST_BYTES:
        return text
    note = "\n\ncut here: the summary is longer than 60 kB; the report has all of it\n"
    kept = raw[: MOST_BYTES - len(note.encode())].decode("utf-8", "ignore")
    return kept[: kept.rfind("\n")] + note
