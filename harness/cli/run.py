"""`run` and `merge`: the commands that walk cases and store rows."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.output import emit, plain, teller
from harness.cli.progress import progress_line
from harness.cli.values import (
    Verbs,
    add_command,
    effort,
    names,
    positive,
    positive_number,
    shard,
)
from harness.errors import INCOMPLETE, OK, BadInput
from harness.text import console

if TYPE_CHECKING:
    from harness.outcomes import expected


def add(verbs: Verbs) -> None:
    """Add the commands of this file and their options."""
    _add_run(verbs)
    _add_merge(verbs)


def _add_run(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "run",
        run,
        examples=[
            "run --backends xgrammar,llguidance --out my_run",
            "run my_schemas/ --backends xgrammar==0.2.7,xgrammar==0.2.8 --vocabularies tekken --out versions",
            "run --backends llguidance --expect results/baseline/default.json",
        ],
        help="walk suites through backends and store what was seen",
    )
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help="a suite's name, a folder or a file (default: all our suites)",
    )
    parser.add_argument(
        "--backends",
        required=True,
        metavar="A,B==1.2,C:OPTION=VALUE",
        help="which backends, at which versions and options",
    )
    parser.add_argument(
        "--vocabularies",
        type=names,
        metavar="NAME,...",
        help="built-in names, hf:NAME_OR_FOLDER, tiktoken:NAME_OR_FILE (default: the profile's)",
    )
    parser.add_argument(
        "--profile",
        choices=["quick", "default", "gate", "full", "decode"],
        help="how much (default: default, a sample of our suites; with --record gate, all of them; with "
        "--expect the record's);"
        " decode: switch one mechanism of decoding at a time, over workloads for suites",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in --out that was interrupted"
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="workers at a time (default: 1, more disturb each other's timings; on Ray all processors)",
    )
    parser.add_argument(
        "--executor",
        metavar="ray[:ADDRESS]",
        help="walk on Ray: one of our own on this machine, ray:auto, or ray:HOST:PORT (default: here)",
    )
    parser.add_argument(
        "--shards",
        type=positive,
        metavar="N",
        help="on Ray: cut the cases of each backend into N tasks (default: as is fit)",
    )
    parser.add_argument(
        "--timeout",
        type=positive_number,
        metavar="S",
        help="seconds for a compile and for each walk (default: the profile's)",
    )
    parser.add_argument(
        "--memory",
        type=positive_number,
        default=4.0,
        metavar="GB",
        help="resident memory of a child (default: 4)",
    )
    parser.add_argument(
        "--effort",
        type=effort,
        metavar="N",
        help="places of a case that each check looks at; 0: no checks, all: every one (default: the "
        "profile's, with --expect the record's)",
    )
    parser.add_argument(
        "--decode",
        action="store_true",
        help="decode the valid instances too, by each strategy, without a model: what is written, and with "
        "how many passes",
    )
    parser.add_argument(
        "--spellings",
        action="store_true",
        help="walk other spellings of each valid JSON text instead: whitespace, order, escapes, numbers",
    )
    parser.add_argument(
        "--shard",
        type=shard,
        metavar="I/N",
        help="walk the I-th of N equal shares of the cases; merge puts them together",
    )
    parser.add_argument(
        "--expect",
        type=Path,
        metavar="FILE",
        help="walk as this record was made, and compare the outcomes with it; 1 if they differ",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write the outcomes to this record, of whole suites unless --profile names a sample",
    )


def _add_merge(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "merge",
        merge,
        examples=["merge whole run-1 run-2 run-3", "merge whole run-*"],
        help="put the shards of a run together, or other runs of one plan",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder of the whole")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")


def run(options: argparse.Namespace) -> int:
    """Walk, store, and print the table per backend.

    The profile `decode` is of another kind: mechanisms of decoding, switched.
    """
    if options.profile == "decode":
        if options.shard or options.executor:
            raise BadInput(
                "--profile decode measures times, on one machine: leave --executor and --shard out, or "
                "decode untimed with --decode"
            )
        from harness.cli.decode import experiment

        return experiment(options)
    from harness.backend.process.system import module
    from harness.outcomes import expected
    from harness.run.session import SEED, Request
    from harness.run.session import run as run_session

    if options.shards and not options.executor:
        raise BadInput(
            "--shards cuts the cases for --executor ray; without Ray walk one share at a time: --shard I/N"
        )
    if options.record and options.shard:
        raise BadInput(
            "a record is of a whole run: leave --record out, merge the shards, and write it with "
            "`grammarbench compare RUN --record FILE`"
        )
    recorded = expected.read_record(options.expect) if options.expect else None
    started = time.monotonic()
    request = Request(
        suites=tuple(options.suites),
        backends=options.backends,
        vocabularies=options.vocabularies or (recorded.vocabularies if recorded else None),
        profile=options.profile or _profile(recorded, bool(options.record)),
        out=options.out,
        resume=options.resume,
        jobs=options.jobs or (0 if options.executor else 1),
        timeout_s=options.timeout,
        memory_gb=options.memory,
        effort=recorded.effort if recorded and options.effort is None else options.effort,
        spellings=options.spellings,
        argv=tuple(sys.argv[1:]),
        shard=options.shard,
        executor=options.executor or "",
        shards=options.shards,
        decode=options.decode or bool(recorded and recorded.decode),
        seed=recorded.seed if recorded else SEED,
    )

    say = teller(options)
    with progress_line(sys.stderr if options.json else sys.stdout) as report:
        outcome = run_session(request, say, report)
    rows = sum(outcome.statuses.values())
    counts = ", ".join(f"{count} {status}" for status, count in outcome.statuses.items())
    say(f"{rows} rows in {time.monotonic() - started:.0f} s: {counts}; stored in {outcome.folder}")
    # In a process of its own: a table holds something of every case, the coordinator must not.
    command = [
        *module("harness"),
        "table",
        *(["--json"] if options.json else []),
        "--",
        str(outcome.folder),
        "summary",
    ]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE if options.json else None)
    summary: dict[str, Any] = json.loads(done.stdout or "{}") if options.json else {}
    if options.record:
        summary["recorded"] = expected.write_record(outcome.folder, options.record)
        say(f"recorded {summary['recorded']} outcomes in {options.record}")
    code = OK
    if options.expect:
        result = expected.compare_with_record(outcome.folder, options.expect)
        summary["expected"] = expected.verdict_json(result)
        code = result.exit_code
        if not options.json:
            print(console().fit(expected.verdict_text(result)))
    if options.json:
        print(json.dumps(plain(summary), allow_nan=False))
    return code


def merge(options: argparse.Namespace) -> int:
    """The whole of its shards; 3 if something is missing."""
    from harness.run.merge import merge as merge_runs

    merged = merge_runs(options.out, options.runs, sys.argv[1:])
    counts = ", ".join(f"{count} {status}" for status, count in merged.statuses.items())
    lines = [
        f"{sum(merged.statuses.values())} rows of {merged.runs} run(s): {counts or 'none'}; stored in "
        f"{merged.folder}"
    ]
    if merged.missing:
        lines.append(
            f"INCOMPLETE: {merged.missing} case(s) are in none of them, counted once for each "
            "backend and vocabulary"
        )
        if merged.missing_shards:
            lines.append(f"missing: shard {', '.join(merged.missing_shards)}")
        lines += [
            f"{folder} has no end: complete it with grammarbench run --resume" for folder in merged.unfinished
        ]
    emit(options, lambda: vars(merged), lambda: console().fit("\n".join(lines)))
    return INCOMPLETE if merged.missing else OK


def _profile(recorded: expected.Recorded | None, records: bool) -> str:
    """How much is walked where the user does not say: what the record is of, whole suites for a record, else
    a sample."""
    if recorded is not None:
        return recorded.profile if recorded.profile in ("quick", "default", "full") else "gate"
    return "gate" if records else "default"
