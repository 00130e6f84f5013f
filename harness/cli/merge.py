"""`merge`: the shards of a run, put together."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.cli.command import Verbs, add_command
from harness.cli.output import emit
from harness.errors import INCOMPLETE, OK
from harness.text import console, counted


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "merge",
        merge,
        examples=["merge whole run-1 run-2 run-3", "merge whole run-*"],
        help="put the shards of a run together, or other runs of one plan",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder that the whole is written to")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the runs' folders")


def merge(options: argparse.Namespace) -> int:
    """Writes the whole of the shards; returns 3 if something is missing. Raises BadInput."""
    from harness.running.merge import merge as merge_runs

    merged = merge_runs(options.out, options.runs, sys.argv[1:])
    counts = ", ".join(f"{count} {status}" for status, count in merged.statuses.items())
    rows = sum(merged.statuses.values())
    of = f"{counted(rows, 'row')} of {counted(merged.runs, 'run')}"
    lines = [f"{of}: {counts or 'none'}; stored in {merged.folder}"]
    if merged.missing:
        lines.append(
            f"INCOMPLETE: {counted(merged.missing, 'case')}, counted once for each backend and vocabulary, "
            f"{'is' if merged.missing == 1 else 'are'} in none of them"
        )
        if merged.missing_shards:
            lines.append(f"missing: shard {', '.join(merged.missing_shards)}")
        lines += [
            f"{folder} has no end: complete it with grammarbench run --resume" for folder in merged.unfinished
        ]
    emit(options, lambda: vars(merged), lambda: console().fit("\n".join(lines)))
    return INCOMPLETE if merged.missing else OK
