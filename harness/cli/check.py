"""`check`: does an adapter keep the contract?"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_number, add_timeout, add_vocabulary
from harness.cli.output import emit, say
from harness.cli.values import positive_number
from harness.errors import GATE_FAILED, OK, UNPROVEN
from harness.text import console, counted, grid, one_line

if TYPE_CHECKING:
    from harness.backend.contract import CheckResult
    from harness.backend.contract.spellings import Kept


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "check",
        check,
        examples=[
            "check xgrammar",
            "check my_module:MyAdapter",
            "check xgrammar --layout",
            "check xgrammar --tokens --vocabularies hf:my_model",
            "check xgrammar --threads",
        ],
        help="say whether an adapter keeps the contract",
    )
    parser.add_argument("backend", metavar="BACKEND", help="a backend, as in run --backends")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--layout",
        action="store_true",
        help="say instead which spellings of JSON it allows, and where it departs from its declared layout",
    )
    instead.add_argument(
        "--tokens",
        action="store_true",
        help="say instead which tokens it reads as other bytes than the tokenizer's, and where that makes a "
        "mask wrong",
    )
    instead.add_argument(
        "--threads",
        action="store_true",
        help="say instead whether grammar objects on several threads behave as each does alone, in walks "
        "that are repeated for --seconds",
    )
    add_number(parser, "--seconds", positive_number, "seconds of walks with --threads", default=15.0)
    add_vocabulary(parser, "the vocabulary that it is checked with", default="probe")
    add_timeout(parser, "seconds for each check", default=60.0)


def check(options: argparse.Namespace) -> int:
    """Goes through the checks of the contract, each in a process that may be lost; 1 if one fails, 4 if
    nothing could be tried.

    Raises BadInput.
    """
    from harness.backend.contract import NOTHING_COMPILES
    from harness.backend.contract.checkup import run_checks, spellings_kept
    from harness.backend.environments.build import environment_of
    from harness.backend.vocabulary import prepare_vocabulary

    backend, python = environment_of(options.backend, say)
    if options.layout:
        vocabulary = prepare_vocabulary(options.vocabulary)
        return _layout(options, list(spellings_kept(str(backend), vocabulary, options.timeout, python)))
    if options.tokens:
        from harness.cli.check_tokens import check_tokens

        return check_tokens(options, str(backend), prepare_vocabulary(options.vocabulary), python)
    if options.threads:
        from harness.cli.check_threads import check_threads

        return check_threads(options, str(backend), prepare_vocabulary(options.vocabulary), python)
    results: list[CheckResult] = []
    for result in run_checks(str(backend), prepare_vocabulary(options.vocabulary), options.timeout, python):
        print(_line(result, results), file=sys.stderr if options.json else sys.stdout, flush=True)
        results.append(result)
    failed = any(result.status not in ("passed", "skipped") for result in results)
    # What compiles nothing passes by having nothing to try.
    untried = any(result.text == NOTHING_COMPILES for result in results)
    emit(
        options,
        lambda: {
            "backend": options.backend,
            "keeps_the_contract": not failed and not untried,
            "checks": results,
        },
        lambda: _conclusion(options.backend, results, untried),
    )
    return GATE_FAILED if failed else UNPROVEN if untried else OK


def _told(result: CheckResult, before: Sequence[CheckResult]) -> str:
    """Returns the first of the checks before it that ended with the same error; empty if none did. Two losses
    of the process may have two causes, whatever signal they name."""
    if result.status != "failed" and not result.where:
        return ""
    same = (each.check for each in before if (each.status, each.text) == (result.status, result.text))
    return next(same, "")


def _line(result: CheckResult, before: Sequence[CheckResult]) -> str:
    """Returns the line of a check; an error that one before it ended with is not spelled again."""
    if told := _told(result, before):
        return f"{result.status:8} {result.check}: as {told}"
    where = f" (with {result.where})" if result.where else ""
    return one_line(f"{result.status:8} {result.check}" + (f": {result.text}{where}" if result.text else ""))


def _conclusion(backend: str, results: Sequence[CheckResult], untried: bool) -> str:
    """Returns the sentence on all the checks; `untried` where nothing of the backend could be tried."""
    of = Counter(result.status for result in results)
    late = f"{counted(of['timeout'], 'check')} did not end in time (--timeout)"
    if broken := of["failed"] + of["error"]:
        again = sum(bool(_told(result, results[:number])) for number, result in enumerate(results))
        more = (
            f"; {counted(again, 'more check')} end{'s' if again == 1 else ''} with the same error"
            if again
            else ""
        )
        return f"{backend} breaks the contract in {counted(broken - again, 'check')}{more}" + (
            f"; {late}" if of["timeout"] else ""
        )
    skipped = f"; {of['skipped']} had nothing to try" if of["skipped"] else ""
    if of["timeout"]:
        return f"{backend}: {late}; {of['passed']} passed{skipped}"
    if untried:
        return f"nothing is known of {backend}: it compiles none of the sample grammars{_refusals(results)}"
    return f"{backend} keeps the contract in {counted(of['passed'], 'check')}{skipped}"


def _refusals(results: Sequence[CheckResult]) -> str:
    """Returns, in parentheses, what was said where the sample grammars were refused; nothing for an adapter
    without a dialect."""
    from harness.backend.contract import check_name
    from harness.backend.contract.compiling import check_a_right_grammar_is_not_called_invalid as compiles

    told = next((result.text for result in results if result.check == check_name(compiles)), "")
    return f" ({one_line(told, 300)})" if told else ""


def _layout(options: argparse.Namespace, spellings: list[Kept]) -> int:
    """Prints which spellings the backend allows; 1 if it refuses one that its layout has, or is lost."""
    broken = [
        spelling
        for spelling in spellings
        if spelling.lost or (spelling.declared and spelling.allowed is False)
    ]
    beyond = [spelling for spelling in spellings if spelling.declared is False and spelling.allowed]

    def text() -> str:
        words = {True: "yes", False: "no", None: "-"}
        rows = [
            (
                kept.name,
                [
                    one_line(kept.text, 30, spelled=True),
                    words[kept.declared],
                    kept.lost or words[kept.allowed],
                ],
            )
            for kept in spellings
        ]
        table = grid("spelling", ["example", "its layout", "allowed"], [rows], console().width, widest=30)
        if all(kept.declared is None for kept in spellings):
            first = f"{options.backend} declares no layout"
        else:
            first = (
                f"of {len(spellings)} spellings of JSON, {options.backend} departs in {len(broken)} from "
                f"the layout that it declares, and allows {len(beyond)} beyond it"
            )
        return "\n".join(
            [first, *(f"{'lost' if kept.lost else 'refused'}: {kept.name}" for kept in broken), "", table]
        )

    emit(options, lambda: {"backend": options.backend, "spellings": [vars(kept) for kept in spellings]}, text)
    return GATE_FAILED if broken else OK
