"""`measure`, `measure doctor` and `measure kernels`: what a call costs."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from textwrap import indent

from harness.cli.command import Verbs, add_command
from harness.cli.options import (
    add_backend,
    add_backends,
    add_choice,
    add_forks,
    add_means,
    add_memory,
    add_profile,
    add_run_folder,
    add_suites,
    add_timeout,
    add_vocabulary,
    asked_backends,
)
from harness.cli.output import emit, for_screen, say
from harness.errors import INCOMPLETE, OK, UNPROVEN
from harness.text import command, console

VOCABULARY = "tekken"
"""The vocabulary, if none is named."""


def add(verbs: Verbs) -> None:
    """Adds the commands of this file and their options."""
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
        help="measure times that survive a noisy machine: arms interleaved, in several processes, with "
        "intervals",
    )
    add_suites(
        parser,
        "the profile's",
        "; doctor, kernels and growth are commands: write ./kernels for a file or folder of such a name",
    )
    add_backends(
        parser,
        "the backends, with versions and options; two versions of one backend are two arms (default: all "
        "that are installed)",
    )
    parser.add_argument(
        "--base", metavar="ARM", help="the arm that all others are compared with (default: the first)"
    )
    add_vocabulary(parser, "the vocabulary", default=VOCABULARY)
    add_profile(parser, ["quick", "default", "full"], "quick")
    add_forks(
        parser, "fresh processes of every arm, exactly N (default: the profile's, and more while undecided)"
    )
    add_run_folder(parser)
    add_timeout(parser, "seconds for a compile and a walk (default: the profile's)")
    add_memory(parser, 4.0)
    add_means(parser)


def _add_doctor(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "measure doctor",
        doctor,
        examples=["measure doctor", "measure doctor --backends llguidance --forks 5"],
        timed=True,
        help="say what can be concluded from times on this machine: its settings and its noise",
    )
    add_backend(
        parser,
        "the backend that is measured against itself (default: the first that is installed)",
        required=False,
    )
    add_vocabulary(parser, "the vocabulary", default=VOCABULARY)
    add_forks(
        parser, "fresh processes of both arms, exactly N (default: those of the profile quick, 3 to 10)"
    )
    add_run_folder(parser)


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
        help="apply masks to logits with each backend's own kernels: are they right, and how fast?",
    )
    add_backends(
        parser, "whose kernels are measured (default: those of all that are installed)", metavar="A,B"
    )
    add_choice(parser, "--device", ["cpu", "cuda"], "where the logits are", default="cpu")
    add_profile(parser, ["quick", "default"], "default", "; quick: fewer sizes and repetitions, one thread")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="the folder in which kernels.jsonl is written")
    where.add_argument(
        "--show", type=Path, metavar="DIR", help="measure nothing; print what is stored in this folder"
    )
    add_choice(parser, "--format", ["csv", "json", "markdown"], "print it in this form (default: tables)")


def measure(options: argparse.Namespace) -> int:
    """Measures, stores, and prints what is concluded; 4 if it is unproven. Raises BadInput."""
    from harness.measure import show
    from harness.measure.estimate import is_proven
    from harness.measure.figures import Figures
    from harness.measure.record import read_measurement
    from harness.measure.session import MeasureRequest
    from harness.measure.session import measure as measure_session

    started = time.monotonic()
    request = MeasureRequest(
        suites=tuple(options.suites),
        backends=asked_backends(options, say),
        reference=options.base,
        vocabulary=options.vocabulary,
        profile=options.profile,
        out=options.out,
        forks=options.forks,
        timeout_s=options.timeout,
        memory_gb=options.memory,
        argv=tuple(sys.argv[1:]),
    )
    folder, comparisons = measure_session(request, say)
    figures = Figures(read_measurement(folder))
    proven = is_proven(comparisons)

    def text() -> str:
        on = console()
        end = on.fit(f"{time.monotonic() - started:.0f} s; stored in {folder}; next:")
        copied = indent(command(["grammarbench", "compare", str(folder)], on.width - 2), "  ")
        return f"\n{show.text(figures, comparisons, means=options.means, on=on)}\n\n{end}\n{copied}"

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
    """Looks at the machine and measures its noise; 4 if nothing can be proven here. Raises BadInput."""
    from harness.measure import doctor as examination

    diagnosis = examination.diagnose(options.backend, options.vocabulary, options.forks, options.out, say)
    emit(
        options,
        lambda: examination.to_json(diagnosis),
        lambda: f"\n{console().fit(examination.diagnosis_text(diagnosis))}",
    )
    return OK if diagnosis.proven else UNPROVEN


def kernels(options: argparse.Namespace) -> int:
    """Measures and stores the kernels that apply masks, or prints what is stored. Raises BadInput."""
    from harness.measure import kernels as of_kernels

    if options.out:
        plan = of_kernels.QUICK if options.profile == "quick" else of_kernels.DEFAULT
        of_kernels.measure(options.backends, options.device, plan, options.out, sys.argv[1:], say)
    stored = of_kernels.read(options.out or options.show)
    emit(
        options,
        lambda: json.loads(of_kernels.kernels_text(stored, "json")),
        lambda: for_screen(of_kernels.kernels_text(stored, options.format).removesuffix("\n")),
    )
    return INCOMPLETE if stored.end is None else OK
