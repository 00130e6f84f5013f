"""The tables in pages of docs/ that are made from the runs that are published beside them.

    python benchmarks/findings.py            # writes the tables of these pages anew
    python benchmarks/findings.py --publish NAME=RUN ... --into DIR [--samples]

The second form packs the rows of runs, made with the commands that the pages name, into a folder of
results/published, from which the first form reads. A table stands between two comments, of which the first
names the run and the kind of table; a test holds that what stands there is what the published rows say.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parent / "parts"))

import pandas as pd
from endings import script
from gpu_figures import Figures
from gpu_report import anchors, asked
from gpu_store import stored
from gpu_tables import cold, cost, strategies
from growth_table import growth_compile
from maskbench_counts import Walked, as_maskbench, walked_in
from published_runs import publish
from sizes_table import sizes
from states import state_counts
from suite_tables import failed_checks, instances_by_suite
from times_table import times

from harness.backend.arm import arm_names
from harness.checks.documents import TOKENS_LEAD
from harness.checks.layouts import LAYOUT_IS_WRITTEN
from harness.errors import OK
from harness.measure.kernels.stored import read as read_kernels
from harness.measure.kernels.table import kernels_text
from harness.outcomes.case_state import CaseState
from harness.outcomes.faults import Cases, fault_frame
from harness.outcomes.keywords import table_of
from harness.outcomes.outcome import is_documented, walk_verdict
from harness.report.tables.instances import to_text
from harness.report.tables.keywords import keyword_tables
from harness.report.tables.masks import COLUMNS, masks_frame
from harness.report.tables.spelling import spelling_frame
from harness.rows.row import Row
from harness.rows.store import PACKED, read_info, read_rows

ROOT = Path(__file__).resolve().parent.parent

states_of, masks_of = cache(state_counts), cache(masks_frame)
"""Several tables are of the same run, and a large one takes seconds to read."""

DOCS = ROOT / "docs"

BLOCK = re.compile(
    r"(<!-- table (\w+) of (\S+?)(?:, newer arms of (\S+))?, made by benchmarks/findings\.py -->\n).*?"
    r"(<!-- end of the table -->)",
    re.DOTALL,
)

Of = TypeVar("Of")
Cell = TypeVar("Cell")
"""An arm, or a vocabulary and an arm, and what a table says of it."""

BROKEN = {"timeout": "timeout", "oom": "out of memory", "crash": "crash", "backend_error": "exception"}
"""What docs/known_bugs.md calls a walk that broke."""


def page(text: str) -> str:
    """Returns the page with its tables made anew.

    A table is given what stood in its place, for columns that are written by hand. One that names newer arms
    has those of a second run instead of the first one's of that name.
    """

    def made(block: re.Match[str]) -> str:
        kind, runs = block[2], [ROOT / run for run in block.group(3, 4) if run]
        table = OF_RUNS[kind](runs) if kind in OF_RUNS else TABLES[kind](runs[0], block[0])
        return f"{block[1]}{table}\n{block[5]}"

    return BLOCK.sub(made, text)


def faults(run: Path, _: str) -> str:
    """Returns the number of cases of each fault, by arm and vocabulary."""
    return to_text(fault_frame(run), "markdown").strip()


def spellings(run: Path, _: str) -> str:
    """Returns how many documents are accepted in each spelling, by arm."""
    return to_text(spelling_frame(run), "markdown").strip()


def known_bugs(run: Path, old: str) -> str:
    """Returns the table of reports: the first two columns as they were written by hand, then a cell for each
    backend.
    """
    info = read_info(run)
    rows: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in read_rows(run):
        rows[row.case, row.backend, row.vocabulary].append(row)
    lines = [line for line in old.splitlines() if line.startswith("|")]
    made = lines[:2]
    for line in lines[2:]:
        report, today = line.strip("|").split(" | ")[:2]
        case = re.sub(r"\[|\]|\(https://[^)]*\)", "", report.strip())
        cells = []
        for one in info.arms:
            cells_of_arm = [cell(rows[case, one.backend, vocabulary]) for vocabulary in info.vocabularies]
            cells.append(cells_of_arm[0] if len(set(cells_of_arm)) == 1 else " / ".join(cells_of_arm))
        made.append(f"| {report.strip()} | {today.strip()} | {' | '.join(cells)} |")
    return "\n".join(made)


def keywords(run: Path, _: str) -> str:
    """Returns how often each state occurs, and the state of each keyword, pair and place, by arm; the words
    are explained by the page."""
    return "\n".join(keyword_tables(table_of(run))).strip()


def kernels(run: Path, old: str) -> str:
    """Returns those tables of a measurement of kernels whose headings stood there, with the headings."""
    tables: dict[str, list[str]] = defaultdict(list)
    title = ""
    for line in kernels_text(read_kernels(run), "markdown").splitlines():
        if line.startswith("### "):
            title = line.lower()
        elif line.startswith("|"):
            tables[title].append(line)
    titles = [line for line in old.splitlines() if line.startswith("### ")]
    return "".join("\n" + "\n".join([title, "", *tables[title.lower()], ""]) for title in titles)


def cell(rows: Sequence[Row]) -> str:
    """Returns what one backend did with one case on one vocabulary: the first break, a refusal, or the
    instances judged wrongly."""
    if broken := next((BROKEN[row.status] for row in rows if row.status in BROKEN), ""):
        return f"**{broken}**"
    verdicts = [walk_verdict(row) for row in rows if not is_documented(row)]
    if "declined" in verdicts:
        return "declined"
    counted = {"refuses": verdicts.count("over_constrained"), "allows": verdicts.count("under_constrained")}
    wrong = ", ".join(f"{word} {count}" for word, count in counted.items() if count)
    return f"**{wrong}**" if wrong else "right"


def states(run: Path, _: str) -> str:
    """Returns the table of them with a line for each state."""
    counts, vocabularies = states_of(run), read_info(run).vocabularies
    heads = [arm if len(vocabularies) == 1 else f"{arm}, {vocabulary}" for vocabulary, arm in counts]
    lines = [f"| cases | {' | '.join(heads)} |", "| --- " + "| ---: " * len(heads) + "|"]
    for state in reversed(CaseState):
        if any(count[state] for count in counts.values()):
            lines.append(f"| {state.words.title} | {' | '.join(f'{n[state]:,}' for n in counts.values())} |")
    lines.append(f"| in all | {' | '.join(f'{count.total():,}' for count in counts.values())} |")
    return "\n".join(lines)


def states_by_vocabulary(runs: Sequence[Path]) -> str:
    """Returns the table of them with a line for each arm and vocabulary, in the order of the first run's."""
    counts = joined(map(states_of, runs))
    names = short_names(counts)
    shown = [state for state in reversed(CaseState) if any(count[state] for count in counts.values())]
    lines = [
        f"| arm | vocabulary | {' | '.join(state.words.title for state in shown)} |",
        "| --- | --- " + "| ---: " * len(shown) + "|",
    ]
    for arm, name in names.items():
        for vocabulary in read_info(runs[0]).vocabularies:
            if (count := counts.get((vocabulary, arm))) is not None:
                lines.append(
                    f"| {name} | {vocabulary} | {' | '.join(f'{count[state]:,}' for state in shown)} |"
                )
    return "\n".join(lines)


def works_by_vocabulary(runs: Sequence[Path]) -> str:
    """Returns how many cases work, with a line for each arm and a column for each vocabulary."""
    counts = joined(map(states_of, runs))
    works = {of: f"{states[CaseState.WORKS]:,}" for of, states in counts.items()}
    return by_vocabulary(runs[0], "works", works)


def exact_by_vocabulary(runs: Sequence[Path]) -> str:
    """Returns how many schemas have exact masks, of those with a reference, with a line for each arm and a
    column for each vocabulary."""
    return by_vocabulary(runs[0], "exact", joined(map(exact_of, runs)))


def exact_of(run: Path) -> dict[tuple[str, str], str]:
    """Returns the number of schemas of a run with exact masks, as text, by vocabulary and arm."""
    lines = (line for line in masks_of(run).to_dict("records") if line["dialect"] == "json_schema")
    return {(one["vocabulary"], one["arm"]): f"{one['exact']:,} of {one['cases']:,}" for one in lines}


def joined(of_runs: Iterable[Mapping[Of, Cell]]) -> dict[Of, Cell]:
    """Returns what runs say by arm, or by vocabulary and arm: what a later one says stands in the place of
    the same arm of an earlier one, another version of it too."""
    first, *later = of_runs
    found = dict(first)
    for of_run in later:
        assert of_run.keys() <= found.keys(), "a newer arm has the name of one in the first run"
        found.update(of_run)
    return found


def by_vocabulary(run: Path, title: str, cells: Mapping[tuple[str, str], str]) -> str:
    """Returns a table of the cells, which go by vocabulary and arm."""
    vocabularies = read_info(run).vocabularies
    lines = [f"| {title} | {' | '.join(vocabularies)} |", "| --- " + "| ---: " * len(vocabularies) + "|"]
    for arm, name in short_names(cells).items():
        lines.append(f"| {name} | {' | '.join(cells[vocabulary, arm] for vocabulary in vocabularies)} |")
    return "\n".join(lines)


def short_names(counts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns what each arm of (vocabulary, arm) is called: without its options where no other has its
    backend, so that a narrow screen shows the numbers too."""
    arms = list(dict.fromkeys(arm for _, arm in counts))
    backends = Counter(arm.partition(":")[0] for arm in arms)
    return {arm: arm.partition(":")[0] if backends[arm.partition(":")[0]] == 1 else arm for arm in arms}


def maskbench(folders: Sequence[Path]) -> str:
    """Returns what the run, or those in a folder, come to as MaskBench counts, beside what it publishes."""
    return as_maskbench([*joined(map(walked_below, folders)).values()])


def walked_below(folder: Path) -> dict[tuple[str, str], Walked]:
    """Returns what each backend of the run, or of the runs in the folder, has walked, by vocabulary and
    backend, of each of which there is one version."""
    walked = [one for rows in sorted(folder.rglob(PACKED)) for one in walked_in(rows.parent)]
    found = {(one.vocabulary, one.backend): one for one in walked}
    assert len(found) == len(walked), f"{folder}: a backend is there in two versions, or with two options"
    return found


def masks(runs: Sequence[Path]) -> str:
    """Returns at how many places the masks are right, by vocabulary, arm and dialect."""
    lines = joined(map(mask_lines, runs)).values()
    frame = pd.DataFrame([line for of_arm in lines for line in of_arm], columns=COLUMNS, dtype=object)
    return to_text(frame, "markdown").strip()


def mask_lines(run: Path) -> dict[tuple[str, str], list[dict[Hashable, Any]]]:
    """Returns the lines of a run in that table, by vocabulary and arm."""
    lines: dict[tuple[str, str], list[dict[Hashable, Any]]] = {}
    for line in masks_of(run).to_dict("records"):
        lines.setdefault((line["vocabulary"], line["arm"]), []).append(line)
    return lines


def mask_causes(runs: Sequence[Path]) -> str:
    """Returns in how many cases each cause makes masks of JSON Schema and structural tags wrong, by arm; a
    case may stand in several lines. Causes of few cases stand in one line together."""
    arms = joined(map(causes_of, runs))
    kinds = list(dict.fromkeys(kind for of_arm in arms.values() for kind in of_arm))
    lines = [f"| tokens are | cause | {' | '.join(arms)} |", f"| --- | --- |{' --- |' * len(arms)}"]
    for wrong in WRONG.values():
        cases = {
            kind: [of_arm.get(kind, Cases()) for of_arm in arms.values()]
            for kind in kinds
            if kind[0] == wrong
        }
        counts = {kind: sum(len(one.cases) for one in of_kind) for kind, of_kind in cases.items()}
        for kind in sorted(cases, key=lambda kind: (-counts[kind], kind)):
            if counts[kind] >= FEW:
                cells = [
                    f"{len(one.cases)}{' (documented)' if one.cases and not one.undocumented else ''}"
                    for one in cases[kind]
                ]
                lines.append(f"| {wrong} | `{kind[1]}` | {' | '.join(cells)} |")
        if rare := [kind for kind in cases if counts[kind] < FEW]:
            cells = [
                str(len({case for one in of_arm if one.undocumented for case in one.cases}))
                for of_arm in zip(*(cases[kind] for kind in rare), strict=True)
            ]
            lines.append(f"| {wrong} | {len(rare)} rarer causes, if not documented | {' | '.join(cells)} |")
    return "\n".join(lines)


def causes_of(run: Path) -> dict[str, dict[tuple[str, str], Cases]]:
    """Returns the cases of each way of being wrong and cause, by arm. A finding without a wrong token, as of
    an exception, is none."""
    info = read_info(run)
    names = arm_names(info.arms)
    arms: dict[str, dict[tuple[str, str], Cases]] = {name: {} for name in names.values()}
    for row in read_rows(run):
        of_arm = arms[names[row.backend, row.backend_version, row.options]]
        for finding in row.findings:
            if finding.check in WRONG and finding.cause != "more" and (finding.over or finding.under):
                cases = of_arm.setdefault((WRONG[finding.check], finding.cause), Cases())
                cases.cases.add((row.suite, row.case_id))
                cases.undocumented |= not finding.documented
    return arms


def gpu(section: Callable[[Figures], Iterator[str]]) -> Callable[[Path, str], str]:
    """Returns what makes the table of that section of the page of benchmarks/gpu.py."""
    return lambda out, _: "\n".join(line for line in section(Figures(stored(out))) if line.startswith("|"))


WRONG = {TOKENS_LEAD: "wrongly allowed", LAYOUT_IS_WRITTEN: "wrongly forbidden"}
FEW = 8
"""Causes of fewer cases, over all arms, have no line of their own."""

OF_RUNS: dict[str, Callable[[Sequence[Path]], str]] = {
    "states_by_vocabulary": states_by_vocabulary,
    "works_by_vocabulary": works_by_vocabulary,
    "exact_by_vocabulary": exact_by_vocabulary,
    "maskbench": maskbench,
    "masks": masks,
    "mask_causes": mask_causes,
}
"""The tables that can have newer arms of a second run."""

TABLES: dict[str, Callable[[Path, str], str]] = {
    "faults": faults,
    "spellings": spellings,
    "known_bugs": known_bugs,
    "keywords": keywords,
    "states": states,
    "times": times,
    "kernels": kernels,
    "growth_compile": growth_compile,
    "sizes": sizes,
    "instances_by_suite": instances_by_suite,
    "failed_checks": failed_checks,
    "gpu_asked": gpu(asked),
    "gpu_anchors": gpu(anchors),
    "gpu_cost": gpu(cost),
    "gpu_strategies": gpu(strategies),
    "gpu_cold": gpu(cold),
}


@script
def main(argv: Sequence[str] | None = None) -> int:
    """Writes the pages. Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--publish", nargs="+", metavar="NAME=RUN", help="pack these runs first, each under its name"
    )
    parser.add_argument("--samples", action="store_true", help="keep the samples of times too")
    parser.add_argument("--into", type=Path, metavar="DIR", help="where they are packed, with --publish")
    options = parser.parse_args(argv)
    if (options.publish is None) != (options.into is None):
        parser.error("--publish NAME=RUN ... and --into DIR, a folder of results/published, go together")
    if options.publish:
        publish(options.publish, options.into, options.samples)
    for path in sorted(DOCS.glob("*.md")):
        if (made := page(text := path.read_text("utf-8"))) != text:
            path.write_text(made, "utf-8")
    return OK


if __name__ == "__main__":
    sys.exit(main())
