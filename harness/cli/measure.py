"""`measure`, `doctor` and `kernels`: the commands that measure times."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from harness.cli.output import emit, teller
from harness.cli.values import (
    Verbs,
    add_command,
    one_vocabulary,
    positive,
    positive_number,
)
from harness.errors import INCOMPLETE, OK, UNPROVEN
from harness.text import console, one_line


def add(verbs: Verbs) -> None:
    """Add the commands of this file and their options."""
    _add_measure(verbs)
    _add_doctor(verbs)
    _add_kernels(verbs)


def _add_measure(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "measure",
        measure,
        examples=[
            "measure --backends llguidance,xgrammar",
            "measure my_schemas/ --backends xgrammar==0.2.7,xgrammar==0.2.8 --out versions",
            "measure ./kernels --backends llguidance",
        ],
        timed=True,
        help="times that survive a noisy machine: arms interleaved, in several processes, with intervals",
    )
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help="as in run (default: the profile's); the first words doctor and kernels are commands of their "
        "own, a file or folder of that name is ./kernels",
    )
    parser.add_argument(
        "--backends",
        required=True,
        metavar="A,B==1.2,...",
        help="as in run; two versions of one backend are two arms",
    )
    parser.add_argument(
        "--base", metavar="ARM", help="the arm that all others are held against (default: the first)"
    )
    parser.add_argument(
        "--vocabularies",
        dest="vocabulary",
        type=one_vocabulary,
        default="tekken",
        metavar="NAME",
        help="as in run, one (default: tekken)",
    )
    parser.add_argument(
        "--profile", choices=["quick", "default", "full"], default="quick", help="how much (default: quick)"
    )
    parser.add_argument(
        "--forks",
        type=positive,
        metavar="N",
        help="fresh processes of every arm, exactly so many (default: the profile's, and more while "
        "undecided)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)"
    )
    parser.add_argument(
        "--timeout",
        type=positive_number,
        metavar="S",
        help="seconds for a compile and a walk (default: the profile's)",
    )
    parser.add_argument(
        "--memory",
        type=positive_number,
        default=4.0,
        metavar="GB",
        help="resident memory of a child (default: 4)",
    )
    parser.add_argument("--means", action="store_true", help="show what a ratio of means would say, too")


def _add_doctor(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "measure doctor",
        doctor,
        examples=["measure doctor", "measure doctor --backends llguidance --forks 5"],
        timed=True,
        help="what can be concluded from times on this machine: its settings and its noise",
    )
    parser.add_argument(
        "--backends",
        dest="backend",
        metavar="B",
        help="the backend that is measured against itself (default: the first that is installed)",
    )
    parser.add_argument(
        "--vocabularies",
        dest="vocabulary",
        type=one_vocabulary,
        default="tekken",
        metavar="NAME",
        help="as in run, one (default: tekken)",
    )
    parser.add_argument(
        "--forks", type=positive, metavar="N", help="fresh processes of both arms (default: 5 to 8)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)"
    )


def _add_kernels(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "measure kernels",
        kernels,
        examples=[
            "measure kernels --out my_kernels",
            "measure kernels --device cuda --out my_kernels",
            "measure kernels --show my_kernels --format markdown",
        ],
        timed=True,
        help="apply masks to logits with each backend's own kernels: right or wrong, then how fast",
    )
    parser.add_argument(
        "--backends", metavar="A,B", help="whose kernels (default: those of all that are installed)"
    )
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="where the logits are (default: cpu)"
    )
    parser.add_argument(
        "--profile",
        choices=["quick", "default"],
        default="default",
        help="quick: fewer sizes and repetitions, one thread (default: default)",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="the folder in which kernels.jsonl is written")
    where.add_argument(
        "--show", type=Path, metavar="DIR", help="measure nothing; print what is stored in this folder"
    )
    parser.add_argument(
        "--format", choices=["csv", "json", "markdown"], help="print it in this form (default: tables)"
    )


def measure(options: argparse.Namespace) -> int:
    """Measure, store, and print what was concluded."""
    from harness.measure import show
    from harness.measure.estimate import Figures, is_proven
    from harness.measure.record import read_measurement
    from harness.measure.session import MeasureRequest
    from harness.measure.session import measure as measure_session

    started = time.monotonic()
    request = MeasureRequest(
        suites=tuple(options.suites),
        backends=options.backends,
        reference=options.base,
        vocabulary=options.vocabulary,
        profile=options.profile,
        out=options.out,
        forks=options.forks,
        timeout_s=options.timeout,
        memory_gb=options.memory,
        argv=tuple(sys.argv[1:]),
    )
    folder, comparisons = measure_session(request, teller(options))
    figures = Figures(read_measurement(folder))
    proven = is_proven(comparisons, figures)

    def text() -> str:
        on = console()
        end = f"{time.monotonic() - started:.0f} s; stored in {folder}; next: grammarbench compare {folder}"
        return f"\n{show.text(figures, comparisons, means=options.means, on=on)}\n\n{on.fit(end)}"

    emit(
        options,
        lambda: {
            "folder": folder,
            "proven": proven,
            "arms": figures.measurement.arms,
            "comparisons": comparisons,
        },
        text,
    )
    return OK if proven else UNPROVEN


def doctor(options: argparse.Namespace) -> int:
    """Look at the machine, and measure its noise."""
    from harness.measure import doctor as examination

    found = examination.diagnose(
        options.backend, options.vocabulary, options.forks, options.out, teller(options)
    )
    emit(options, lambda: examination.to_json(found), lambda: "\n" + console().fit(examination.text(found)))
    return OK if found.proven else UNPROVEN


def kernels(options: argparse.Namespace) -> int:
    """Masks applied to logits: measure and store, or print what is stored."""
    from harness.measure import kernels as of_kernels

    if options.out:
        plan = of_kernels.QUICK if options.profile == "quick" else of_kernels.DEFAULT
        progress = sys.stderr if options.format or options.json else sys.stdout
        of_kernels.measure(
            options.backends,
            options.device,
            plan,
            options.out,
            sys.argv[1:],
            lambda said: print(one_line(said), file=progress, flush=True),
        )
    stored = of_kernels.read(options.out or options.show)
    emit(
        options,
        lambda: json.loads(of_kernels.text(stored, "json")),
        lambda: of_kernels.text(stored, options.format).removesuffix("\n"),
    )
    return INCOMPLETE if stored.end is None else OK
