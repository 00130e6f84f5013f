"""What benchmarks/reference.py publishes of its runs: pages, tables, outcomes, and a README under what was
written there by hand."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from further_sessions import copy_sessions
from reference_about import about
from reference_runs import LEFT_OUT, PARTS, is_sample, no_schemas_in, timeouts, walked_again
from reference_sums import write_sums
from states import state_counts

from harness.outcomes.case_state import CaseState
from harness.outcomes.expected import write_record
from harness.outcomes.result import Result, result_of
from harness.report.export import markdown, write
from harness.report.figures import estimates
from harness.report.page.inputs import read_inputs
from harness.report.page.page import write_report
from harness.report.values import number
from harness.rows.row import VERDICTS
from harness.rows.store import packed, read_end, read_info
from harness.text import markdown as cell

MOST_BYTES = 8_000_000
"""A packed file of more than this is not published."""

MARK = "<!-- From here on benchmarks/reference.py writes; what stands above is kept. -->"

TABLES = ("tables.md", "cases.csv", "figures.csv", "failing.csv.xz")
"""The files of a part that `write_tables` makes of its rows."""

HEADS = {"walks": "Walks:", "cases": "Cases:", "deadlines": "With a longer deadline:"}
"""What stands above each table of a part in the README, by what the table is of."""


def publish(out: Path, parts: Sequence[str]) -> Path:
    """Writes it of what was run, complete or not, into `out`/published, anew but for what was written by
    hand; returns the folder."""
    old, folder, aside = out / "published", out / "published.new", out / "published.old"
    if aside.exists() and not old.exists():  # the command was ended between the two renames below
        aside.rename(old)
    notes = notes_of(old / "README.md")
    shutil.rmtree(folder, ignore_errors=True)
    runs = {part: out / "runs" / part for part in parts}
    left_out, sections = [], []
    for part, where in runs.items():
        none = no_schemas_in(out, part)
        # A page of each: together they would be held against each other, and have no case in common.
        write_report(read_inputs([where], to_be_published=True), folder / part / "report.html")
        shutil.copyfile(where / "rows.jsonl", folder / part / "rows.jsonl")
        copy_sessions(where, folder / part)
        too_large = pack(folder / part / "rows.jsonl")
        left_out += too_large
        source = where if too_large else folder / part
        result = result_of(source)
        left_out += write_tables(result, part, source, none, folder / part)
        if read_end(where) and not read_info(where).checks:
            write_record(where, folder / part / "outcomes.json")
        left_out += pack(folder / part / "outcomes.json")
        if second := walked_again(out, part):
            beside = folder / second.name
            beside.mkdir()
            shutil.copyfile(second / "rows.jsonl", beside / "rows.jsonl")
            left_out += pack(beside / "rows.jsonl")
        if none:
            shutil.copyfile(out / LEFT_OUT, folder / LEFT_OUT)
        sections.append(section(part, tables_of(result, where, second, none)))
    (folder / "README.md").write_text(
        "\n".join([notes + MARK, "", about(out, runs, left_out), *sections]), "utf-8"
    )
    write_sums(folder)
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists():
        old.rename(aside)
    folder.rename(old)
    shutil.rmtree(aside, ignore_errors=True)
    return old


def write_tables(result: Result, part: str, source: Path, none: list[str], into: Path) -> list[str]:
    """Writes what the rows of `source` come to; returns what is said of the files that are too large."""
    write(run_named(result, source, part), ["markdown", "csv"], into)
    tables = into / "tables.md"
    with_intervals = cases_table(result, source, none)
    tables.write_text(
        tables.read_text("utf-8").replace(markdown.counts(result), with_intervals), "utf-8", newline="\n"
    )
    return pack(into / "failing.csv")


def run_named(result: Result, source: Path, part: str) -> Result:
    """Returns the result with the run in its commands in place of the folder on this machine: as it lies
    under the folder DIR that whoever repeats it gives as `--out`."""
    here, there = f"repro {shlex.quote(str(source))} ", f"repro DIR/runs/{part} "
    failing = tuple(replace(one, repro=one.repro.replace(here, there)) for one in result.failing)
    return replace(result, failing=failing)


def section(part: str, tables: Mapping[str, str]) -> str:
    """Returns what the README says of a part below its heads."""
    return "\n".join([f"## {PARTS[part]}\n", *(f"{HEADS[of]}\n\n{text}\n" for of, text in tables.items())])


def tables_of(result: Result, run: Path, second: Path | None, none: list[str]) -> dict[str, str]:
    """Returns the tables of a part in the README, by what they are of."""
    tables = {"walks": verdicts(result), "cases": cases_table(result, run, none)}
    return tables | ({"deadlines": deadlines(run, second)} if second else {})


def cases_table(result: Result, run: Path, none: list[str]) -> str:
    """Returns the table of cases by suite, in which the conformance of a sample has its interval."""
    suites = read_info(run).suites
    lines = markdown.counts(result).splitlines()
    for place, count in enumerate(result.counts, start=2):
        found = estimates.conformance(count)
        if is_sample(suites[count.suite], none) and found and found.bounds:
            low, high = (f"{100 * bound:.1f}" for bound in found.bounds)
            shown = number(count.conformance, "share")
            lines[place] = lines[place].replace(f"| {shown} |", f"| {shown} ({low} to {high}) |", 1)
    return "\n".join(lines)


def notes_of(readme: Path) -> str:
    """Returns what stands above MARK; empty where there is no such file.

    A README without MARK is all notes, for nobody else wrote it.
    """
    return readme.read_text("utf-8").partition(MARK)[0] if readme.exists() else ""


def pack(path: Path) -> list[str]:
    """Replaces the file by a packed one that is the same whenever it is made; returns what is said where that
    is too large, and left out."""
    if not path.exists():
        return []
    small = packed(path.read_bytes())
    path.unlink()
    if len(small) > MOST_BYTES:
        return [f"{path.parent.name}/{path.name} ({len(small) / 1e6:.1f} MB packed)"]
    path.with_name(f"{path.name}.xz").write_bytes(small)
    return []


def verdicts(result: Result) -> str:
    """Walks by verdict, a line per arm."""
    values = {
        (figure.arm, figure.name): int(figure.value) for figure in result.figures if figure.family == "all"
    }
    lines = [
        "| backend | pass | over-constrained | under-constrained | declined | broken | unjudged |",
        "| --- " + "| ---: " * len(VERDICTS) + "|",
    ]
    for name in dict.fromkeys(figure.arm for figure in result.figures):
        lines.append(
            f"| {cell(name)} | "
            + " | ".join(f"{values[name, f'walks_{verdict}']:,}" for verdict in VERDICTS)
            + " |"
        )
    return "\n".join(lines)


def deadlines(first: Path, second: Path) -> str:
    """Returns what became of the cases whose verdicts met the deadline of the first run in the second, which
    has a longer one, no checks, and maybe not all of them: a line for each arm and vocabulary."""
    late = timeouts(first)
    counts = state_counts(second, late)
    shown = [state for state in reversed(CaseState) if any(count[state] for count in counts.values())]
    walked = sum(count.total() for count in counts.values())
    lines = [
        f"Of {len(late)} cases of which a verdict met {read_info(first).timeout_s:g} s, "
        f"{walked} were walked once more, for verdicts alone and with "
        f"{read_info(second).timeout_s:g} s. They come to:",
        "",
        f"| arm | vocabulary | cases | {' | '.join(state.words.title for state in shown)} |",
        "| --- | --- " + "| ---: " * (1 + len(shown)) + "|",
    ]
    for (vocabulary, name), count in counts.items():
        numbers = [count.total(), *(count[state] for state in shown)]
        lines.append(f"| {cell(name)} | {cell(vocabulary)} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)
