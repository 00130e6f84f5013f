"""`compare`: what differs between two arms or two runs, or between a run and a record of expected outcomes.

It is the only gate between runs.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_means
from harness.cli.output import emit, say
from harness.errors import OK, BadInput
from harness.text import console, counted

if TYPE_CHECKING:
    from harness.outcomes.compare import Pair


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "compare",
        compare,
        examples=[
            "compare base_run head_run --gate",
            "compare my_versions --gate --time",
            "compare my_run --record expected.json",
            "compare expected.json my_run --gate",
        ],
        help="show which outcomes and which times differ: between two runs, between two "
        "versions in one run, or between expected outcomes and a run",
    )
    parser.add_argument(
        "base",
        type=Path,
        metavar="BASE",
        help="the older run's folder, or a file of expected outcomes (written with --record)",
    )
    parser.add_argument(
        "head",
        type=Path,
        nargs="?",
        metavar="HEAD",
        help="the newer run's folder (default: the versions within BASE are compared)",
    )
    parser.add_argument(
        "--gate",
        action="store_true",
        help="exit with 1 if an outcome or a count is worse, or not as expected, and with 4 if nothing can "
        "be said",
    )
    parser.add_argument(
        "--time",
        action="store_true",
        help="let the gate fail on a proven slowdown too, and exit with 4 where no time is proven",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write the outcomes of the run BASE to this file as the expected ones, and compare nothing",
    )
    add_means(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the forest plot")


def compare(options: argparse.Namespace) -> int:
    """Compares what BASE and HEAD are, or writes a record; returns the exit code. Raises BadInput."""
    from harness.outcomes import expected
    from harness.serve.decode.record import has_decoding

    if options.record:
        return _record(options)
    if options.head and expected.is_record(options.head):
        raise BadInput(
            f"{options.head} is a file of expected outcomes, which must come first: "
            + shlex.join(["grammarbench", "compare", str(options.head), str(options.base)])
        )
    if expected.is_record(options.base):
        return _compare_with_record(options)
    if has_decoding(options.base):
        return _compare_decodings(options)
    return _compare_runs(options)


def _record(options: argparse.Namespace) -> int:
    """Writes the outcomes of the run BASE to a file."""
    from harness.outcomes import expected

    if options.head:
        raise BadInput("--record writes what one run came to; name that run only")
    _refuse(options, ("gate", "time", "means", "html"), "a record that is written")
    written = expected.write_record(options.base, options.record)
    emit(
        options,
        lambda: {"recorded": written.outcomes, "file": options.record},
        lambda: f"recorded {counted(written.outcomes, 'outcome')} in {options.record}",
    )
    if late := expected.late_in_words(written):
        say(late)
    return OK


def _compare_with_record(options: argparse.Namespace) -> int:
    """Compares the run HEAD with the expected outcomes in the file BASE."""
    from harness.outcomes import expected

    if not options.head:
        raise BadInput(
            f"{options.base} is a file of expected outcomes; name the run that is compared with it too"
        )
    _refuse(options, ("time", "means", "html"), "expected outcomes")
    verdict = expected.compare_with_record(options.head, options.base)
    emit(
        options, lambda: expected.verdict_json(verdict), lambda: console().fit(expected.verdict_text(verdict))
    )
    return verdict.exit_code if options.gate else OK


def _compare_decodings(options: argparse.Namespace) -> int:
    """Compares times, ratios and counts of records of `decode`."""
    from harness.outcomes.gate import EXIT_CODES
    from harness.serve.decode import verdicts

    _refuse(options, ("means", "html"), "records of decode")
    changes = verdicts.compare(options.base, options.head)
    emit(options, lambda: changes, lambda: verdicts.changes_text(changes, console()))
    return EXIT_CODES[verdicts.gate(changes, time=options.time)] if options.gate else OK


def _compare_runs(options: argparse.Namespace) -> int:
    """Compares outcomes, counts and times of two runs, or of the arms of one."""
    from harness.outcomes import compare as comparing

    if options.html:
        from harness.report.templates import refuse_no_page

        refuse_no_page(options.html, "--html")
    pairs = (
        comparing.compare_runs(options.base, options.head, gates=options.gate)
        if options.head
        else comparing.compare_arms(options.base)
    )
    emit(options, lambda: comparing.pairs_json(pairs), lambda: _text_of_runs(options, pairs))
    if options.html:
        from harness.report.figures.forest import write_forest

        print(f"written: {write_forest(pairs, options.html)}", file=sys.stderr)
    return comparing.gate_pairs(pairs, time=options.time).exit_code if options.gate else OK


def _text_of_runs(options: argparse.Namespace, pairs: Sequence[Pair]) -> str:
    """Returns the answer for people: which samples the runs are, the pairs, and what has no counterpart."""
    from harness.measure.record import has_measurement
    from harness.outcomes import compare as comparing
    from harness.rows.sample import sample_of
    from harness.rows.store import read_info

    runs = [run for run in (options.base, options.head) if run]
    samples = dict.fromkeys(sample for run in runs if (sample := sample_of(read_info(run))))
    parts = ["\n".join(line for sample in samples for line in console().fold(sample))] if samples else []
    parts.append(comparing.pairs_text(pairs, means=options.means, time=options.time, on=console()))
    if options.head:
        others = comparing.other_inputs_of(options.base, options.head)
        parts += ["\n".join(line) for line in map(console().fold, others)]
    if options.head and (left_out := comparing.not_compared(options.base, options.head)):
        parts.append("\n".join(console().fold(left_out)))
    if not options.head and has_measurement(options.base):
        parts.append(comparing.measured_text(options.base, console()))
    return "\n\n".join(parts)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], what: str) -> None:
    """Raises BadInput if one of these options is given, because it says nothing about `what`."""
    for name in names:
        if getattr(options, name):
            raise BadInput(f"--{name} says nothing about {what}; leave it out")
