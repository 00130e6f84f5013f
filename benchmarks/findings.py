"""The tables of docs/faults.md and docs/known_bugs.md, made from the runs that are published beside them.

    python benchmarks/findings.py            # writes the tables of both pages anew
    python benchmarks/findings.py --publish FOUND SPELLED ADJUDICATED KNOWN_BUGS [--into DIR]

The second form packs the rows of four runs, made with the commands that the pages name, into a folder of
results/published, from which the first form reads. A table stands between two comments, of which the first
names the run and the kind of table; a test holds that what stands there is what the published rows say.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.backend.arm import arm
from harness.diagnose.adjudicate import WITNESSES
from harness.outcomes.faults import fault_frame
from harness.outcomes.outcome import is_documented, walk_verdict
from harness.report.tables.instances import to_text
from harness.report.tables.spelling import spelling_frame
from harness.rows.row import Row
from harness.rows.store import read_info, read_rows

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "docs" / "faults.md", ROOT / "docs" / "known_bugs.md")
RUNS = ("found", "spelled", "adjudicated", "known_bugs")

BLOCK = re.compile(
    r"(<!-- table (\w+) of (\S+), made by benchmarks/findings\.py -->\n).*?(<!-- end of the "
    r"table -->)",
    re.DOTALL,
)

BROKEN = {"timeout": "timeout", "oom": "out of memory", "crash": "crash", "backend_error": "exception"}
"""What docs/known_bugs.md calls a walk that broke."""

SPELLING = {"whitespace", "property_order", "escapes", "escapes_in_names", "number_forms"}
"""Causes of a refusal that are about how a value is written, not about the value."""


def page(text: str) -> str:
    """Returns the page with its tables made anew.

    A table is given what stood in its place, for columns that are written by hand.
    """
    return BLOCK.sub(
        lambda block: f"{block[1]}{TABLES[block[2]](ROOT / block[3], block[0])}\n{block[4]}", text
    )


def faults(run: Path, _: str) -> str:
    """Returns the number of cases of each fault, by arm and vocabulary."""
    return to_text(fault_frame(run), "markdown").strip()


def spellings(run: Path, _: str) -> str:
    """Returns how many documents are accepted in each spelling, by arm."""
    return to_text(spelling_frame(run), "markdown").strip()


def adjudicated(run: Path, _: str) -> str:
    """Returns the number of cases in which each arm is blamed, by the kind of its fault; a case may stand in
    several lines."""
    with gzip.open(run / f"{WITNESSES}.gz", "rt", encoding="utf-8") as file:
        witnesses = [json.loads(line) for line in file]
    arms = [arm(run_arm) for run_arm in read_info(run).arms]
    cases: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for witness in witnesses:
        if witness["kind"] != "validators_disagree":
            cases[kind_of(witness["kind"], witness["cause"])][witness["arm"]].add(witness["case_id"])
    lines = [f"| fault | {' | '.join(arms)} |", f"| --- |{' --- |' * len(arms)}"]
    for kind in sorted(cases, key=lambda kind: (kind.startswith("refuses"), kind)):
        lines.append(f"| {kind} | {' | '.join(str(len(cases[kind][name])) for name in arms)} |")
    return "\n".join(lines)


def kind_of(kind: str, cause: str) -> str:
    """Returns what the page calls a fault: what is accepted or refused wrongly."""
    if kind == "under_constrained":
        return "accepts what is no JSON" if cause == "no_json" else "accepts JSON that the schema forbids"
    causes = set(cause.split("+"))
    if causes <= SPELLING:
        return "refuses a valid value in one spelling (whitespace, order, escapes, number forms)"
    if "raw_delete_character" in causes:
        return "refuses a valid document with a raw U+007F"
    if causes & {"unlisted_name", "name_characters"}:
        return "refuses a property that no `properties` lists, or the characters of its name"
    return "refuses a valid document otherwise"


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


TABLES: dict[str, Callable[[Path, str], str]] = {
    "faults": faults,
    "spellings": spellings,
    "adjudicated": adjudicated,
    "known_bugs": known_bugs,
}


def publish(runs: Sequence[Path], into: Path) -> None:
    """Pack the rows of each run, and the witnesses of an adjudication, without the samples of times."""
    for name, run in zip(RUNS, runs, strict=True):
        folder = into / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in ("rows.jsonl", WITNESSES):
            if (run / file).exists():
                (folder / f"{file}.gz").write_bytes(gzip.compress((run / file).read_bytes(), 9, mtime=0))


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the pages; the exit code is 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--publish",
        nargs=len(RUNS),
        type=Path,
        metavar="RUN",
        help="pack these runs first: " + ", ".join(RUNS),
    )
    parser.add_argument("--into", type=Path, metavar="DIR", help="where they are packed, with --publish")
    options = parser.parse_args(argv)
    if options.publish:
        if options.into is None:
            parser.error("--publish needs --into DIR, a folder of results/published")
        publish(options.publish, options.into)
    for path in PAGES:
        path.write_text(page(path.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
