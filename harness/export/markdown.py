"""Markdown tables: the cases by suite, and the figures by backend."""

from __future__ import annotations

from harness.export.text import markdown, number
from harness.result import Result


def files(result: Result) -> dict[str, str]:
    return {"tables.md": f"{counts(result)}\n\n{figures(result)}\n"}


def counts(result: Result) -> str:
    """Cases passing, failing and declined, a line per arm and suite."""
    lines = [
        "| backend | suite | cases | passing | failing | declined | not measured |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {markdown(each.arm)} | {markdown(each.suite)} | {each.cases} | {each.passing} | {each.failing} | {each.declined} "
        f"| {each.not_measured} |"
        for each in result.counts
    ]
    return "\n".join(lines)


def figures(result: Result, *, headline: bool = False) -> str:
    """One line per figure, with its interval where it has one."""
    lines = ["| backend | of | figure | value | interval | unit | better |", "| --- | --- | --- | ---: | --- | --- | --- |"]
    for each in result.figures:
        if each.headline or not headline:
            span = "" if each.low is None or each.high is None else f"{number(each.low)} to {number(each.high)}"
            lines.append(
                f"| {markdown(each.arm)} | {markdown(each.family)} | {markdown(each.title)} | {number(each.value)} | {span} "
                f"| {markdown(each.unit)} | {each.better} |"
            )
    return "\n".join(lines)
