"""What bounding white space costs: beside the longest white space of each backend and option, how many valid
documents it refuses in each layout. The table of docs/endless.md.

    python benchmarks/endless.py --endless RUN ... --spellings RUN ...
    python benchmarks/endless.py --endless RUN ...
    python benchmarks/endless.py --publish RUN --into DIR

The runs are made with the commands that the page names: `run --checks runs_end_where_they_must`, and
`run --spellings`, over the same cases and backends. A document counts where the backend takes it in some
layout, so that what it refuses for another reason is not held against white space. Without runs over
spellings the table has in how many cases what has no end. The third form packs the rows of the check, without
those of the walks, of which there are more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script
from further_sessions import copy_sessions

from harness.backend.arm import arm, arm_names, version_key
from harness.errors import OK, BadInput
from harness.outcomes.endless import EndlessCounts, read_endless
from harness.report.tables.spelling import Count, spelling_table
from harness.rows.folder import ROWS
from harness.rows.row import CHECKS_MODE
from harness.rows.store import PACKED, packed, read_info, read_rows

LAYOUTS = ("compact", "spaced", "indented_2", "indented_tab", "padded", "blanks_16")


def labels(run: Path) -> dict[str, str]:
    """Returns for each arm of a run, by its name there, backend and options: the same arm of two runs has one
    label, whatever else the runs hold. The page names the versions. Raises BadInput for a run whose counts
    would stand under one label."""
    info = read_info(run)
    names = arm_names(info.arms)
    found = {names[version_key(one)]: arm(one) for one in info.arms}
    if len(set(found.values())) < len(found) or len(info.vocabularies) > 1:
        raise BadInput(
            f"{run}: it has several versions of a backend, or several vocabularies, which would be one line "
            "here; `grammarbench table RUN endless` has a line for each"
        )
    return found


def white_space(run: Path) -> dict[tuple[str, str], EndlessCounts]:
    """Returns what a run counted, by label and dialect."""
    names = labels(run)
    counted = read_endless(run).counts
    return {(names[one], dialect): counts for (_, one, dialect), counts in counted.items()}


def refused(run: Path) -> dict[str, dict[str, Count]]:
    """Returns how many documents of a run over spellings were accepted and refused, by label and spelling."""
    names, found = labels(run), spelling_table(read_rows(run))
    by_name = {name: found[key] for key, name in arm_names(read_info(run).arms).items() if key in found}
    return {names[name]: counts for name, counts in by_name.items()}


def longest(counts: EndlessCounts | None) -> str:
    """Returns the longest white space as a cell; it is empty where the backend compiled no case."""
    if counts is None:
        return ""
    return "no end" if counts.endless["white_space"] else str(counts.longest_white_space or 0)


def table(endless: Sequence[Path], spellings: Sequence[Path]) -> str:
    """Returns the table as Markdown, with the arms in the order of the runs."""
    counted = {key: counts for run in endless for key, counts in white_space(run).items()}
    lines = [
        f"| backend | longest white space | in structural tags | {' | '.join(LAYOUTS)} | digits | strings |",
        "| --- " * (len(LAYOUTS) + 5) + "|",
    ]
    for run in spellings:
        by_arm = refused(run)
        for label in labels(run).values():
            if label not in by_arm:
                continue
            counts, in_tags = counted.get((label, "json_schema")), counted.get((label, "structural_tag"))
            cells = [
                f"{count.refused} of {count.accepted + count.refused}"
                for count in (by_arm[label][layout] for layout in LAYOUTS)
            ]
            shares = [counts.share(kind) if counts else "" for kind in ("digits", "string")]
            lines.append(f"| {' | '.join([label, longest(counts), longest(in_tags), *cells, *shares])} |")
    return "\n".join(lines)


def counts_table(endless: Sequence[Path]) -> str:
    """Returns as Markdown how long white space goes on, and in how many of the cases where a run can begin it
    has no end, in JSON Schemas and in structural tags; and the same of digits and strings in JSON Schemas."""
    lines = [
        "| backend | white space | longest | in structural tags | longest | digits | strings |",
        "| --- " * 7 + "|",
    ]
    for run in endless:
        counted = white_space(run)
        for label in labels(run).values():
            schemas, tags = (counted.get((label, dialect)) for dialect in ("json_schema", "structural_tag"))
            cells = [
                schemas.share("white_space") if schemas else "",
                longest_that_ends(schemas),
                tags.share("white_space") if tags else "",
                longest_that_ends(tags),
                *((schemas.share(kind) if schemas else "") for kind in ("digits", "string")),
            ]
            lines.append(f"| {' | '.join([label, *cells])} |")
    return "\n".join(lines)


def longest_that_ends(counts: EndlessCounts | None) -> str:
    """Returns the longest white space that was over, in characters; empty where none was."""
    return str(counts.longest_white_space) if counts and counts.longest_white_space is not None else ""


def publish(run: Path, into: Path) -> None:
    """Packs the rows of the checks of a run."""
    with (run / ROWS).open("rb") as rows:
        kept = [line for line in rows if json.loads(line).get("mode", CHECKS_MODE) == CHECKS_MODE]
    into.mkdir(parents=True, exist_ok=True)
    (into / PACKED).write_bytes(packed(b"".join(kept)))
    copy_sessions(run, into)


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description="What bounding white space costs, as a table.")
    parser.add_argument("--endless", type=Path, nargs="+", default=[], metavar="RUN")
    parser.add_argument("--spellings", type=Path, nargs="+", default=[], metavar="RUN")
    parser.add_argument("--publish", type=Path, metavar="RUN", help="pack the rows of this run")
    parser.add_argument("--into", type=Path, metavar="DIR", help="where they are packed, with --publish")
    options = parser.parse_args(arguments)
    if (options.publish is None) != (options.into is None):
        parser.error("--publish RUN and --into DIR, a folder of results/published, go together")
    if options.publish:
        publish(options.publish, options.into)
    elif not options.endless:
        parser.error("--endless RUN ... or --publish RUN --into DIR")
    elif options.spellings:
        print(table(options.endless, options.spellings))
    else:
        print(counts_table(options.endless))
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
