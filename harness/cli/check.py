"""`check`: does an adapter keep the contract?"""

from __future__ import annotations

import argparse

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_timeout, add_vocabulary
from harness.cli.output import emit, progress_printer
from harness.errors import GATE_FAILED, OK


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "check",
        check,
        examples=["check xgrammar", "check my_module:MyAdapter --vocabularies bytes"],
        help="say whether an adapter keeps the contract",
    )
    parser.add_argument("backend", metavar="BACKEND", help="a backend, as in run --backends")
    add_vocabulary(parser, "the vocabulary that it is checked with", default="probe")
    add_timeout(parser, "seconds for each check", default=60.0)


def check(options: argparse.Namespace) -> int:
    """Goes through the checks of the contract, each in a process that may be lost; 1 if one fails.

    Raises BadInput.
    """
    from harness.backend.contract.checkup import run_checks
    from harness.backend.environments.build import environment_of
    from harness.backend.vocabulary import prepare_vocabulary

    say = progress_printer(options)
    backend, python = environment_of(options.backend)
    results = []
    for result in run_checks(str(backend), prepare_vocabulary(options.vocabulary), options.timeout, python):
        say(f"{result.status:8} {result.check}" + (f": {result.text}" if result.text else ""))
        results.append(result)
    failed = sum(result.status not in ("passed", "skipped") for result in results)
    emit(
        options,
        lambda: {"backend": options.backend, "keeps_the_contract": not failed, "checks": results},
        lambda: (
            f"{options.backend} {'breaks' if failed else 'keeps'} the contract"
            + (f" in {failed} check(s)" if failed else "")
        ),
    )
    return GATE_FAILED if failed else OK
