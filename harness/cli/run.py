"""`run`: walk cases through backends, and store what was seen."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.command import Verbs, add_command
from harness.cli.options import (
    Options,
    add_backends,
    add_memory,
    add_number,
    add_resume,
    add_run_folder,
    add_suites,
    add_timeout,
    add_vocabularies,
    asked_backends,
)
from harness.cli.output import plain, say
from harness.cli.progress import progress_line
from harness.cli.values import effort, names, positive, positive_number, shard, whole
from harness.errors import OK, BadInput, error_text
from harness.text import console, counted

if TYPE_CHECKING:
    from harness.outcomes.expected import Recorded
    from harness.running.session import Outcome, Request

SUMMARY_SECONDS = 3600.0
"""The time that the summary of a run may take; that of 100,000 rows takes some seconds."""


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
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
    add_suites(parser, "seven of ours")
    add_backends(parser)
    add_vocabularies(parser)
    parser.add_argument(
        "--profile",
        choices=["quick", "default", "gate", "full"],
        help="how much is walked (default: default, a sample of our suites; with --record gate, all of "
        "them; with --expect the record's)",
    )
    add_run_folder(parser)
    add_resume(parser)
    parser.add_argument(
        "--take-over",
        type=Path,
        metavar="RUN",
        help="take over what this run walked already, finished or published, and walk only the other cases, "
        "backends and tokenizers",
    )
    _add_walks(parser.add_argument_group("what is walked"))
    _add_expected(parser.add_argument_group("expected outcomes"))
    _add_workers(parser.add_argument_group("workers and machines"))


def _add_walks(walks: Options) -> None:
    add_number(
        walks,
        "--effort",
        effort,
        "positions of a case that each check looks at; 0: no checks, all: every one (default: the "
        "profile's, with --expect the record's)",
    )
    walks.add_argument(
        "--checks",
        type=names,
        default=(),
        metavar="NAME,...",
        help="make only these checks, by name or by category, such as masks; docs/checks.md lists both "
        "(default: all)",
    )
    walks.add_argument(
        "--decode",
        action=argparse.BooleanOptionalAction,
        help="decode the valid instances too, by each strategy, without a model: what is written, and with "
        "how many passes",
    )
    walks.add_argument(
        "--spellings",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="walk other spellings of each valid JSON text instead: whitespace, order, escapes, numbers",
    )
    walks.add_argument(
        "--bare",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="make no documents for schemas that come without any, as MaskBench does: they are compiled and "
        "not judged",
    )
    walks.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="CASE",
        help="walk only the cases of this name or id; may be given several times (default: all)",
    )
    add_number(
        walks,
        "--seed",
        whole,
        "seed that chooses the cases of a sample (default: 0, with --expect the record's)",
    )


def _add_expected(expected: Options) -> None:
    expected.add_argument(
        "--expect",
        type=Path,
        metavar="FILE",
        help="walk as these expected outcomes were recorded, and compare; exit with 1 if they differ",
    )
    expected.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write the outcomes to this file as the expected ones, of whole suites unless --profile names "
        "a sample",
    )


def _add_workers(workers: Options) -> None:
    add_number(
        workers,
        "--jobs",
        positive,
        "workers at a time (default: 1, because more disturb each other's times; on Ray all processors)",
    )
    add_timeout(workers, "seconds for a compile and for each walk (default: the profile's)")
    add_number(
        workers,
        "--check-timeout",
        positive_number,
        "processor seconds after which no further check of a case is begun (default: --timeout)",
        metavar="S",
    )
    add_memory(workers, 4.0)
    workers.add_argument(
        "--executor",
        metavar="ray[:ADDRESS]",
        help="walk on Ray: one of our own on this machine, ray:auto, or ray:HOST:PORT (default: without Ray)",
    )
    add_number(workers, "--shards", positive, "on Ray: tasks per backend (default: as many as are useful)")
    workers.add_argument(
        "--shard",
        type=shard,
        metavar="I/N",
        help="walk the I-th of N equal shares of the cases; merge puts them together",
    )


def run(options: argparse.Namespace) -> int:
    """Walks, stores, and prints the summary; 1 or 4 if the outcomes are not as expected. Raises BadInput."""
    from harness.outcomes import expected

    folder = _walked(options)
    summary = _summary(folder, options.json)
    code = OK
    try:
        if options.record:
            summary["recorded"] = _record(folder, options.record)
        if options.expect:
            verdict = expected.compare_with_record(folder, options.expect)
            summary["expected"] = expected.verdict_json(verdict)
            code = verdict.exit_code
            if not options.json:
                print(console().fit(expected.verdict_text(verdict)))
    finally:  # the summary is not lost with a record that cannot be written
        if options.json:
            print(json.dumps(plain(summary), allow_nan=False))
    return code


def _record(folder: Path, path: Path) -> int:
    """Writes the record, says so, and returns how many outcomes it holds. Raises BadInput, which says how to
    write it without another walk."""
    from harness.outcomes import expected

    try:
        written = expected.write_record(folder, path)
    except BadInput as error:
        command = shlex.join(["grammarbench", "compare", str(folder), "--record"])
        raise BadInput(f"{error}; the run is stored whole: `{command} FILE` writes its record") from error
    say(f"recorded {counted(written.outcomes, 'outcome')} in {path}")
    if late := expected.late_in_words(written):
        say(late)
    return written.outcomes


def _walked(options: argparse.Namespace) -> Path:
    """Walks, says what is stored, and returns where. A run to resume that is complete was interrupted before
    its answer, and only that is still owed. Raises BadInput."""
    from harness.rows.resume import NothingToResume

    started = time.monotonic()
    try:
        result = walk(options, sys.argv[1:])
    except NothingToResume as complete:
        say(str(complete))
        folder: Path = options.out
        return folder
    rows = sum(result.statuses.values())
    counts = ", ".join(f"{count} {status}" for status, count in result.statuses.items())
    say(f"{counted(rows, 'row')} in {time.monotonic() - started:.0f} s: {counts}; stored in {result.folder}")
    return result.folder


def walk(options: argparse.Namespace, argv: Sequence[str]) -> Outcome:
    """Walks what the options ask for, with its progress on stderr; `argv` is the command that the run
    notes. Raises BadInput."""
    from harness.outcomes import expected
    from harness.running.session import run as run_session

    if options.record:
        expected.refuse_no_record(options.record)
    recorded = expected.read_record(options.expect) if options.expect else None
    _refuse_contradictions(options, recorded)
    request = _request(options, argv, recorded)
    with progress_line(sys.stderr) as report:
        return run_session(request, say, report)


def _refuse_contradictions(options: argparse.Namespace, recorded: Recorded | None) -> None:
    """Raises BadInput if two options contradict each other, or one contradicts the record."""
    if (options.expect or options.record) and options.checks:
        raise BadInput("expected outcomes are of all checks; leave --checks out")
    if (options.expect or options.record) and options.spellings:
        raise BadInput("--spellings walks other instances than those that a record is of; leave it out")
    if recorded is not None:
        from harness.backend.vocabulary import prepare_vocabulary
        from harness.backend.vocabulary.fetched import with_all

        walked = list(map(prepare_vocabulary, with_all(options.vocabularies or recorded.vocabularies)))
        different = recorded.different(
            recorded.effort if options.effort is None else options.effort,
            recorded.decode if options.decode is None else options.decode,
            recorded.seed if options.seed is None else options.seed,
            walked,
        )
        if not different and (unknown := recorded.unrecorded(walked)):
            different = f"recorded on {', '.join(recorded.vocabularies)}, and not on {', '.join(unknown)}"
        if different:
            raise BadInput(
                f"{options.expect}: {different}; leave the option out, and the run is as recorded, or record "
                "anew"
            )
    if options.shards and not options.executor:
        raise BadInput(
            "--shards cuts the cases for --executor ray; without Ray walk one share at a time: --shard I/N"
        )
    if options.record and options.shard:
        raise BadInput(
            "a record is of a whole run: leave --record out, merge the shards, and write it with "
            "`grammarbench compare RUN --record FILE`"
        )


def _request(options: argparse.Namespace, argv: Sequence[str], recorded: Recorded | None) -> Request:
    """Returns what the run is to do; what the user leaves open is as in the record, if one is given."""
    from harness.running.session import SEED, Request

    return Request(
        suites=tuple(options.suites) or (recorded.asked if recorded else ()),
        backends=_backends(options, recorded),
        vocabularies=options.vocabularies or (recorded.vocabularies if recorded else None),
        profile=options.profile or _profile(recorded, bool(options.record)),
        out=options.out,
        resume=options.resume,
        jobs=options.jobs or (0 if options.executor else 1),
        timeout_s=options.timeout or (recorded.timeout_s if recorded else None),
        memory_gb=options.memory,
        effort=recorded.effort if recorded and options.effort is None else options.effort,
        spellings=options.spellings,
        argv=tuple(argv),
        shard=options.shard,
        executor=options.executor or "",
        shards=options.shards,
        checks=tuple(options.checks),
        check_timeout_s=options.check_timeout,
        decode=bool(recorded and recorded.decode) if options.decode is None else options.decode,
        seed=options.seed if options.seed is not None else recorded.seed if recorded else SEED,
        only=tuple(options.case),
        bare=options.bare,
        taken_from=options.take_over,
    )


def _backends(options: argparse.Namespace, recorded: Recorded | None) -> str:
    """Returns what `--backends` names, else those of the record, else all that are installed."""
    if options.backends is None and recorded is not None and recorded.backends:
        return recorded.backends
    return asked_backends(options, say)


def _profile(recorded: Recorded | None, records: bool) -> str:
    """Returns how much is walked where the user does not say: what the record is of, whole suites for a
    record, else a sample."""
    if recorded is not None:
        return recorded.profile if recorded.profile in ("quick", "default", "full") else "gate"
    return "gate" if records else "default"


def _summary(folder: Path, as_json: bool) -> dict[str, Any]:
    """Prints the run's summary, or returns it for `--json`. Raises BadInput.

    It is made in a process of its own: a table holds something of every case, the coordinator must not.
    """
    from harness.backend.process.short_child import answer_of_a_child

    answer: dict[str, Any] = json.loads(
        answer_of_a_child(lambda: _told(folder, as_json), SUMMARY_SECONDS)
        or '{"problem": "its process was lost"}'
    )
    if "problem" in answer:
        raise BadInput(
            f"the summary of {folder} failed ({answer['problem']}); the run is stored there whole: "
            "grammarbench report makes its page"
        )
    if not as_json:
        print(answer["text"])
    summary: dict[str, Any] = answer.get("value", {})
    return summary


def _told(folder: Path, as_json: bool) -> str:
    """Returns the summary of a run as a JSON object: its `value`, its `text`, or the `problem` with it."""
    from harness.report import run_summary

    try:
        summary = run_summary.read_summary(folder)
        if as_json:
            return json.dumps({"value": plain(run_summary.to_json(summary))})
        return json.dumps({"text": run_summary.summary_text(summary, console())})
    except Exception as error:
        return json.dumps({"problem": error_text(error)})
