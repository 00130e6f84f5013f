"""`repro`, `adjudicate` and `bisect`: the commands that say why, and since when."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from harness.cli.output import emit, teller
from harness.cli.table import completeness
from harness.cli.values import (
    Verbs,
    add_command,
    effort,
    one_vocabulary,
    positive,
    positive_number,
)
from harness.errors import OK, BadInput
from harness.text import console


def add(verbs: Verbs) -> None:
    """Add the commands of this file and their options."""
    _add_repro(verbs)
    _add_adjudicate(verbs)
    _add_bisect(verbs)


def _add_repro(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "repro",
        repro,
        examples=[
            "repro my_run CASE --backends xgrammar",
            "repro my_run CASE --backends xgrammar --shrink --script fault.py",
        ],
        help="show one failing case step by step, and a script that shows it without us",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("case", metavar="CASE", help="a case's name or id")
    parser.add_argument(
        "--backends",
        dest="backend",
        required=True,
        metavar="B",
        help="a backend of the run, with its options if it has several",
    )
    parser.add_argument(
        "--vocabularies",
        dest="vocabulary",
        type=one_vocabulary,
        metavar="NAME",
        help="which vocabulary of the run (default: the first one that fails)",
    )
    parser.add_argument(
        "--instance", type=int, metavar="N", help="which instance, from 0 (default: the first one that fails)"
    )
    parser.add_argument(
        "--check", metavar="CHECK", help="the failing check of the case to show, by its name in the report"
    )
    parser.add_argument(
        "--shrink", action="store_true", help="make grammar and instance small first (up to a minute or two)"
    )
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="write the stand-alone script to this file too"
    )


def _add_adjudicate(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "adjudicate",
        adjudicate,
        examples=["adjudicate my_run", "adjudicate my_run --effort all --formats"],
        help="where backends disagree on a JSON Schema: whose fault, and the document that shows it",
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="a run's folder; the findings go to its witnesses.jsonl"
    )
    parser.add_argument(
        "--effort",
        type=effort,
        default=8,
        metavar="N",
        help="places of a text at which masks are compared, or all (default: 8)",
    )
    parser.add_argument(
        "--tries",
        type=positive,
        default=3,
        metavar="N",
        help="documents finished from one disputed token (default: 3)",
    )
    parser.add_argument(
        "--timeout",
        type=positive_number,
        default=10.0,
        metavar="S",
        help="seconds for each answer (default: 10)",
    )
    parser.add_argument(
        "--formats",
        action="store_true",
        help="formats are assertions (default: annotations, as JSON Schema has it)",
    )


def _add_bisect(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "bisect",
        bisect,
        examples=[
            'bisect xgrammar 0.1.34..0.2.8 --case "pattern space"',
            "bisect xgrammar 0.1.34..0.2.8 speed --case CASE --slower compile",
        ],
        help="which release of a backend was the first to show an outcome, or the first without a fault?",
    )
    parser.add_argument("backend", metavar="BACKEND", help="a backend with its options, without a version")
    parser.add_argument(
        "versions",
        metavar="GOOD..BAD",
        help="two versions, the older one first, of which the case comes to different ends",
    )
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help="where the case is, as in run (default: all our suites)"
    )
    parser.add_argument("--case", required=True, metavar="CASE", help="a case's name or id")
    parser.add_argument(
        "--vocabularies",
        dest="vocabulary",
        type=one_vocabulary,
        default="probe",
        metavar="NAME",
        help="the vocabulary to walk it with (default: probe)",
    )
    parser.add_argument(
        "--effort",
        type=effort,
        default=2,
        metavar="N",
        help="places of the case that each check looks at; 0: no checks (default: 2)",
    )
    parser.add_argument(
        "--timeout",
        type=positive_number,
        default=10.0,
        metavar="S",
        help="seconds for a compile and for each walk (default: 10)",
    )
    parser.add_argument(
        "--slower",
        metavar="METRIC",
        help="search for a slowdown instead: compile, ttfm, cold_fill, fill, accept or matcher_new",
    )


def repro(options: argparse.Namespace) -> int:
    """One failing case, step by step."""
    from harness.diagnose.repro import (
        find_failure,
        script,
        show,
        show_shrunk,
        shrink_failure,
        shrunk_script,
        shrunk_to_json,
        to_json,
    )

    failure = find_failure(
        options.run, options.case, options.backend, options.vocabulary, options.instance, options.check
    )
    if options.shrink:
        shrunk = shrink_failure(failure)
        emit(options, lambda: shrunk_to_json(failure, shrunk), lambda: show_shrunk(failure, shrunk))
    else:
        emit(options, lambda: to_json(failure), lambda: show(failure))
    if options.script:
        options.script.write_text(
            shrunk_script(shrunk) if options.shrink else script(failure), "utf-8", errors="backslashreplace"
        )
        print(f"script: {options.script}", file=sys.stderr if options.json else sys.stdout)
    return OK


def adjudicate(options: argparse.Namespace) -> int:
    """Witnesses of who is at fault where backends disagree."""
    from harness.cli.progress import Ticker
    from harness.diagnose.adjudicate import Settings
    from harness.diagnose.adjudicate import adjudicate as adjudicate_run

    settings = Settings(
        positions=None if options.effort < 0 else options.effort,
        tries=options.tries,
        timeout_s=options.timeout,
        formats=options.formats,
    )
    with Ticker() as ticker:
        summary = adjudicate_run(options.run, settings, ticker.say, ticker.step)
    emit(options, summary.to_json, lambda: console().fit(summary.text()))
    return completeness([options.run])


def bisect(options: argparse.Namespace) -> int:
    """The first release with an outcome."""
    from harness.diagnose.bisect.outcome import Question
    from harness.diagnose.bisect.outcome import bisect as search

    good, dots, bad = options.versions.partition("..")
    if not (good and dots and bad):
        raise BadInput(f'"{options.versions}" cannot be read; write GOOD..BAD, for example 1.2.0..1.4.1')
    question = Question(
        options.backend,
        options.case,
        tuple(options.suites),
        options.vocabulary,
        options.effort,
        options.timeout,
    )
    say = teller(options)
    if options.slower:
        from harness.diagnose.bisect.slowdown import slowdown

        answer: Any = slowdown(question, options.slower, good, bad, say)
    else:
        answer = search(question, good, bad, say)
    emit(options, answer.to_json, lambda: console().fit(answer.text(options.backend)))
    return OK
