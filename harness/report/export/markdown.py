"""Markdown tables: the cases by suite, and the figures by backend."""

from __future__ import annotations

from harness.outcomes.result import Result
from harness.report.export.text import number
from harness.report.tables.instances import number as share
from harness.text import markdown


def files(result: Result) -> dict[str, str]:
    sample = f"{markdown(result.sample, 300)}\n\n" if result.sample else ""
    return {"tables.md": f"{sample}{counts(result)}\n\n{figures(result)}\n"}


def counts(result: Result) -> str:
    """A table with a line per arm and suite that counts what the cases came to."""
    lines = [
        "| backend | suite | conformance | cases | judged | passed | failed | declined | not judged | not "
        "measured |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {markdown(each.arm)} | {markdown(each.suite)} | {share(each.conformance, 'share')} "
        f"| {each.cases} | {each.judged} | {each.passed} "
        f"| {each.failed} | {each.declined} | {each.not_judged} | {each.not_measured} |"
        for each in result.counts
    ]
    return "\n".join(lines)


def figures(result: Result, *, headline: bool = False) -> str:
    """One line per figure, with its interval where it has one."""
    lines = [
        "| backend | of | figure | value | interval | unit | better |",
        "| --- | --- | --- | ---: | --- | --- | --- |",
    ]
    for each in result.figures:
        if each.headline or not headline:
            span = (
                ""
                if each.low is None or each.high is None
                else (f"{number(each.low)} to {number(each.high)}")
            )
            lines.append(
                f"| {markdown(each.arm)} | {markdown(each.family)} | {markdown(each.title)} | "
                f"{number(each.value)} | {span} "
                f"| {markdown(each.unit)} | {each.better} |"
            )
    return "\n".join(lines)
