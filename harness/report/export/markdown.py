"""Markdown tables: the cases by suite, and the figures by backend."""

from __future__ import annotations

from harness.outcomes.result import Figure, Result
from harness.report.export.csv_table import COUNTED, COUNTED_TITLES
from harness.report.values import number
from harness.text import counted, markdown


def files(result: Result) -> dict[str, str]:
    """Returns `tables.md`: the cases by arm and suite, and every figure."""
    part = f"{markdown(result.part, 300)}\n\n" if result.part else ""
    return {"tables.md": f"{part}{counts(result)}\n\n{figures(result)}\n"}


def counts(result: Result) -> str:
    """Returns a table with a line per arm and suite that counts what the cases came to."""
    heads = ["backend", "suite", "conformance", *COUNTED_TITLES.values()]
    cells = [
        [
            markdown(count.arm),
            markdown(count.suite),
            number(count.conformance, "share"),
            *(str(getattr(count, name)) for name in COUNTED),
        ]
        for count in result.counts
    ]
    rule = ["---", "---", *["---:"] * (len(heads) - 2)]
    lines = [f"| {' | '.join(line)} |" for line in (heads, rule, *cells)]
    return "\n".join(lines)


def figures(result: Result, *, headline: bool = False) -> str:
    """Returns one line per figure, with its interval where it has one, or why it has none."""
    lines = [
        "| backend | of | figure | value | interval | better |",
        "| --- | --- | --- | ---: | --- | --- |",
    ]
    for figure in result.figures:
        if figure.headline or not headline:
            span = (
                markdown(figure.why, 300)
                if figure.low is None or figure.high is None
                else f"{number(figure.low, figure.unit)} to {number(figure.high, figure.unit)}"
            )
            lines.append(
                f"| {markdown(figure.arm)} | {markdown(figure.family)} | {markdown(figure.title)} | "
                f"{_with_unit(figure)} | {span} | {figure.better} |"
            )
    return "\n".join(lines)


def _with_unit(figure: Figure) -> str:
    """Returns the value for people, with what is counted."""
    if figure.unit in ("cases", "walks"):
        return counted(int(figure.value), figure.unit.removesuffix("s"))
    return number(int(figure.value) if figure.unit == "bytes" else figure.value, figure.unit)
