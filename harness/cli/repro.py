"""`repro`: one failing case, step by step, and a script that shows it without GrammarBench."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_backend, add_number, add_run, add_vocabulary
from harness.cli.output import emit, say
from harness.cli.values import whole
from harness.errors import OK, BadInput
from harness.whole_files import refuse_unwritable, write_whole


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
        help="show one failing case step by step, and a script that shows it without GrammarBench",
    )
    add_run(parser)
    parser.add_argument(
        "case", metavar="CASE", help="a case's name or id, or SUITE/ID where several suites have it"
    )
    add_backend(parser, "a backend of the run, with its options if it has several", required=True)
    add_vocabulary(parser, "which vocabulary of the run (default: the first one that fails)")
    add_number(
        parser, "--instance", whole, "which instance, from 0 (default: the one that shows the worst failure)"
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


def repro(options: argparse.Namespace) -> int:
    """Shows the case, and writes the script if asked and if there is one. Raises BadInput."""
    from harness.diagnose.repro import (
        find_failure,
        replayed,
        show,
        show_shrunk,
        shrink_failure,
        shrunk_script,
        shrunk_to_json,
        to_json,
    )

    if options.script is not None:
        _refuse(options.script)
    failure = find_failure(
        options.run,
        options.case,
        options.backend,
        options.vocabulary,
        options.instance,
        options.check,
        say=say,
    )
    if options.shrink:
        shrunk = shrink_failure(failure)
        script = shrunk_script(shrunk)
        emit(
            options,
            lambda: shrunk_to_json(failure, shrunk, script),
            lambda: show_shrunk(failure, shrunk, script),
        )
    else:
        again = replayed(failure)
        script = again.script
        emit(options, lambda: to_json(again), lambda: show(again))
    if options.script is not None:
        _write(options.script, script, is_answer_json=options.json)
    return OK


def _refuse(path: Path) -> None:
    """Raises BadInput if the script could not be written, or would overwrite another file, before the work is
    done."""
    from harness.diagnose.repro import SCRIPT
    from harness.running.leftovers import refuse_to_replace

    folder = path.parent
    if not folder.is_dir():
        raise BadInput(
            f"{path}: cannot be written: there is no folder {folder}; make it, or give another --script"
        )
    refuse_unwritable(path, "--script")
    refuse_to_replace(path, SCRIPT, "--script", "script of repro")


def _write(path: Path, script: str, *, is_answer_json: bool) -> None:
    """Writes the script, unless it is empty, and says which of the two happened. Raises BadInput."""
    if not script:
        say(f"no script was written to {path}: there is none, and the answer says why")
        return
    try:
        write_whole(path, script.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise BadInput(f"{path}: the script cannot be written: {error.strerror}") from error
    print(f"script: {path}", file=sys.stderr if is_answer_json else sys.stdout)
