"""`adjudicate`: who is at fault where backends disagree."""

from __future__ import annotations

import argparse

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_number, add_run, add_timeout
from harness.cli.output import emit
from harness.cli.table import completeness
from harness.cli.values import effort, positive
from harness.text import console

EFFORT = 8
"""Positions of a text at which masks are compared, if the user does not say."""


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "adjudicate",
        adjudicate,
        examples=["adjudicate my_run", "adjudicate my_run --effort all --formats"],
        help="find whose fault it is where backends disagree on a JSON Schema, and a document that shows it",
    )
    add_run(parser, "the run's folder; the findings go to its witnesses.jsonl")
    add_number(
        parser, "--effort", effort, "positions of a text at which masks are compared, or all", default=EFFORT
    )
    add_number(
        parser,
        "--tries",
        positive,
        "how many documents at most the backends finish from one disputed token",
        default=3,
    )
    add_timeout(parser, "seconds for each answer", default=10.0)
    parser.add_argument(
        "--formats",
        action="store_true",
        help="take formats as assertions (default: annotations, as JSON Schema has it)",
    )


def adjudicate(options: argparse.Namespace) -> int:
    """Writes the witnesses and prints their summary; 3 if the run has no end. Raises BadInput."""
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
