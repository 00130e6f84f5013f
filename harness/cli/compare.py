"""`compare`, `expect` and `history`: what differs between runs, and over time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.cli.output import emit
from harness.cli.values import (
    Verbs,
    add_command,
)
from harness.errors import GATE_FAILED, OK, UNPROVEN, BadInput
from harness.text import console


def add(verbs: Verbs) -> None:
    """Add the commands of this file and their options."""
    _add_compare(verbs)
    _add_expect(verbs)
    _add_history(verbs)


def _add_compare(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "compare",
        compare,
        examples=["compare base head --gate", "compare versions", "compare measured --gate --time"],
        help="what came out differently and what takes another time: two arms of a run, or two runs",
    )
    parser.add_argument("base", type=Path, metavar="BASE", help="a run's folder")
    parser.add_argument(
        "head", type=Path, nargs="?", metavar="HEAD", help="another one (default: the versions within BASE)"
    )
    parser.add_argument(
        "--gate",
        action="store_true",
        help="exit code 1 if an outcome or a count is worse, 4 if nothing can be said",
    )
    parser.add_argument(
        "--time",
        action="store_true",
        help="the gate fails on a proven slowdown too, and with 4 where none can be proven",
    )
    parser.add_argument("--means", action="store_true", help="show what a ratio of means would say, too")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the forest plot")


def _add_expect(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "expect",
        expect,
        examples=["expect a b"],
        help="compare a stored run with a record of outcomes, or write the record",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="the record, e.g. results/baseline/default.json"
    )
    parser.add_argument("--record", action="store_true", help="write the record instead")


def _add_history(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "history",
        history,
        examples=["history past", "history past --add my_run", "history past --gate"],
        help="measurements over time, and the alert rule",
    )
    parser.add_argument("history", type=Path, metavar="DIR", help="the folder that holds them")
    parser.add_argument(
        "--add",
        type=Path,
        metavar="RUN",
        help="append a run: its measurement, and how many cases of each kind passed",
    )
    parser.add_argument("--gate", action="store_true", help="exit code 1 if a series is in alert")


def compare(options: argparse.Namespace) -> int:
    """Outcomes, counts and times of two arms or of two runs."""
    from harness.measure.record import has_measurement
    from harness.outcomes import compare as comparing
    from harness.rows.sample import sample_of
    from harness.rows.store import read_info
    from harness.serve.decode.record import has_decoding

    if has_decoding(options.base):
        return _compare_decodings(options)
    pairs = (
        comparing.compare_runs(options.base, options.head)
        if options.head
        else comparing.compare_arms(options.base)
    )

    def text() -> str:
        samples = dict.fromkeys(
            said for run in (options.base, options.head) if run and (said := sample_of(read_info(run)))
        )
        parts = ["\n".join(line for said in samples for line in console().fold(said))] if samples else []
        parts.append(comparing.text(pairs, means=options.means, on=console()))
        if options.head and (left_out := comparing.alone(options.base, options.head)):
            parts.append("\n".join(console().fold(left_out)))
        parts += (
            [comparing.measured_text(options.base, console())]
            if not options.head and has_measurement(options.base)
            else []
        )
        return "\n\n".join(parts)

    emit(options, lambda: comparing.to_json(pairs), text)
    if options.html:
        from harness.report.figures.forest import write_forest

        print(f"written: {write_forest(pairs, options.html)}", file=sys.stderr)
    if not options.gate:
        return OK
    verdict, _ = comparing.gate(pairs, time=options.time)
    return {"ok": OK, "failed": GATE_FAILED, "unproven": UNPROVEN}[verdict]


def _compare_decodings(options: argparse.Namespace) -> int:
    """Of `decode`: times, ratios and counts."""
    from harness.serve.decode import verdicts
    from harness.text import visible

    for name in ("means", "html"):
        if getattr(options, name):
            raise BadInput(f"--{name} says nothing about records of decode; leave it out")
    changes = verdicts.compare(options.base, options.head)
    emit(options, lambda: changes, lambda: visible(verdicts.text(changes)))
    if not options.gate:
        return OK
    return {"ok": OK, "failed": GATE_FAILED, "unproven": UNPROVEN}[verdicts.gate(changes, time=options.time)]


def expect(options: argparse.Namespace) -> int:
    """Compare a stored run with a record, or write it."""
    from harness.outcomes import expected

    if options.record:
        count = expected.record(options.run, options.file)
        emit(
            options,
            lambda: {"recorded": count, "file": options.file},
            lambda: f"recorded {count} outcomes in {options.file}",
        )
        return OK
    result = expected.expect(options.run, options.file)
    emit(options, lambda: expected.to_json(result), lambda: console().fit(expected.text(result)))
    return result.exit_code


def history(options: argparse.Namespace) -> int:
    """Append, then what the alert rule says."""
    from harness.measure.record import has_measurement
    from harness.outcomes.history import conformance, measurements
    from harness.rows.store import has_begun
    from harness.serve.decode.record import has_decoding

    if options.add:
        # A measurement is a run with rows too, as a rule: both go into the history.
        is_run = has_begun(options.add)
        if has_decoding(options.add) and not is_run:
            raise BadInput(
                f"{options.add} holds a decoding, which goes into no history; `grammarbench "
                "compare` holds it against another"
            )
        if has_measurement(options.add) or not is_run:
            print(f"added: {measurements.append(options.history, options.add)}", file=sys.stderr)
        if is_run:
            print(f"added: {conformance.add(options.history, options.add)}", file=sys.stderr)
    emit(
        options,
        lambda: measurements.to_json(options.history),
        lambda: console().fit(f"{measurements.text(options.history)}\n{conformance.text(options.history)}"),
    )
    return GATE_FAILED if options.gate and measurements.alerts(options.history) else OK
