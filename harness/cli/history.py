"""`history`: measurements, and how many cases work, over time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.cli.command import Verbs, add_command
from harness.cli.output import emit, say
from harness.errors import GATE_FAILED, OK, UNPROVEN, BadInput
from harness.text import console


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "history",
        history,
        examples=["history past", "history past --add my_run", "history past --gate"],
        help="keep measurements and how many cases work over time, and raise an alert where times rise",
    )
    parser.add_argument("history", type=Path, metavar="DIR", help="the folder that holds the history")
    parser.add_argument(
        "--add",
        type=Path,
        metavar="RUN",
        help="append a run: its measurement, and how many cases of each feature work",
    )
    parser.add_argument(
        "--gate",
        action="store_true",
        help="exit with 1 if a series of times is in alert, and with 4 if none has a baseline yet",
    )


def history(options: argparse.Namespace) -> int:
    """Appends a run if one is named, and shows the series; with `--gate` 1 if one is in alert, and 4 if none
    has a verdict yet.

    Raises BadInput.
    """
    from harness.outcomes.history import conformance, measurements
    from harness.outcomes.history.alert_rule import EARLIER, RECENT

    if options.add:
        _append(options.history, options.add)
    emit(
        options,
        lambda: measurements.to_json(options.history),
        lambda: console().fit(
            f"{measurements.measurements_text(options.history)}\n{conformance.histories_text(options.history)}"
        ),
    )
    if not options.gate:
        return OK
    if measurements.alerts(options.history):
        return GATE_FAILED
    if measurements.has_verdict(options.history):
        return OK
    runs = RECENT + EARLIER
    say(f"grammarbench: no series of times has a baseline yet (it takes {runs} runs), so nothing is proven")
    return UNPROVEN


def _append(history: Path, run: Path) -> None:
    """Appends the run's measurement and its counts. Raises BadInput."""
    from harness.measure.record import has_measurement
    from harness.outcomes.history import conformance, measurements
    from harness.outcomes.history.files import append
    from harness.rows.store import has_begun
    from harness.serve.decode.record import has_decoding

    # A measurement is a run with rows too, as a rule: both go into the history.
    is_run = has_begun(run)
    if has_decoding(run) and not is_run:
        raise BadInput(
            f"{run} holds a decoding, and a history takes none; compare two decodings with "
            "`grammarbench compare`"
        )
    files = [measurements.times_file(history, run)] if has_measurement(run) or not is_run else []
    files += [conformance.outcomes_file(history, run)] if is_run else []
    append(files)  # once nothing more can be wrong with the run
    for file in files:
        print(f"added: {file.path}", file=sys.stderr)
