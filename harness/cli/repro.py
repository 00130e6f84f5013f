"""`repro`: one failing case, step by step, and a script that shows it without us."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_backend, add_number, add_run, add_vocabulary
from harness.cli.output import emit
from harness.cli.values import whole
from harness.errors import OK


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
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
    add_run(parser)
    parser.add_argument("case", metavar="CASE", help="a case's name or id")
    add_backend(parser, "a backend of the run, with its options if it has several", required=True)
    add_vocabulary(parser, "which vocabulary of the run (default: the first one that fails)")
    add_number(parser, "--instance", whole, "which instance, from 0 (default: the first one that fails)")
    parser.add_argument(
        "--check", metavar="CHECK", help="the failing check of the case to show, by its name in the report"
    )
    parser.add_argument(
        "--shrink", action="store_true", help="make grammar and instance small first (up to a minute or two)"
    )
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="write the stand-alone script to this file too"
    )


def repro(options: argparse.Namespace) -> int:
    """Shows the case, and writes the script if asked. Raises BadInput."""
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
