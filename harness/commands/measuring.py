"""Commands about times: measured, compared, kept over time."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from harness.errors import GATE_FAILED, INCOMPLETE, OK, UNPROVEN, BadInput, one_line


def measure(options: argparse.Namespace) -> int:
    """Measure, store, and print what was concluded."""
    from harness.measure import show
    from harness.measure.estimate import Figures, is_proven
    from harness.measure.record import read_measurement
    from harness.measure.session import Request
    from harness.measure.session import measure as measure_session
    from harness.table import visible

    started = time.monotonic()
    request = Request(
        suites=tuple(options.suites),
        backends=options.backends,
        reference=options.reference,
        vocabulary=options.vocabulary,
        profile=options.profile,
        out=options.out,
        forks=options.forks,
        timeout_s=options.timeout,
        memory_gb=options.memory,
        argv=tuple(sys.argv[1:]),
    )
    folder, comparisons = measure_session(request, lambda said: print(one_line(said), flush=True))
    figures = Figures(read_measurement(folder))
    print("\n" + visible(show.text(figures, comparisons, means=options.means)))
    print(f"\n{time.monotonic() - started:.0f} s; stored in {folder}; next: grammarbench compare {folder}")
    return OK if is_proven(comparisons, figures) else UNPROVEN


def doctor(options: argparse.Namespace) -> int:
    """Look at the machine, and measure its noise."""
    from harness import doctor as examination

    found = examination.diagnose(
        options.backend, options.vocabulary, options.forks, options.out, lambda said: print(one_line(said), flush=True)
    )
    print("\n" + examination.text(found))
    return OK if found.proven else UNPROVEN


def compare(options: argparse.Namespace) -> int:
    """Outcomes, counts and times of two arms or of two runs."""
    from harness import compare as comparing
    from harness.measure.record import has_measurement
    from harness.table import visible

    pairs = comparing.compare_runs(options.base, options.head) if options.head else comparing.compare_arms(options.base)
    if options.json:
        print(json.dumps(comparing.to_json(pairs)))
    else:
        print(visible(comparing.text(pairs, means=options.means)))
        if not options.head and has_measurement(options.base):
            print("\n" + visible(comparing.measured_text(options.base)))
    if options.html:
        from harness.report.forest import write_forest

        print(f"written: {write_forest(pairs, options.html)}", file=sys.stderr)
    if not options.gate:
        return OK
    changes = [each for each in pairs if each.is_of_one_backend]
    if any(each.counts_worse or (options.time and each.slower) for each in changes):
        return GATE_FAILED
    measured = all(each.times and not each.unproven for each in changes)
    return OK if changes and (measured or not options.time) else UNPROVEN


def history(options: argparse.Namespace) -> int:
    """Append, then what the alert rule says."""
    from harness import history as past
    from harness.table import visible

    if options.add:
        print(f"added: {past.append(options.history, options.add)}", file=sys.stderr)
    print(json.dumps(past.to_json(options.history)) if options.json else visible(past.text(options.history)))
    return GATE_FAILED if options.gate and past.alerts(options.history) else OK


def kernels(options: argparse.Namespace) -> int:
    """Masks applied to logits: measure and store, or print what is stored."""
    from harness import kernels as of_kernels

    if options.out:
        plan = of_kernels.QUICK if options.quick else of_kernels.DEFAULT
        progress = sys.stderr if options.format else sys.stdout
        of_kernels.measure(
            options.backends, options.device, plan, options.out, sys.argv[1:], lambda said: print(one_line(said), file=progress, flush=True)
        )
    stored = of_kernels.read(options.out or options.show)
    print(of_kernels.text(stored, options.format), end="")
    return INCOMPLETE if stored.end is None else OK


def bisect(options: argparse.Namespace) -> int:
    """The first release with an outcome."""
    from harness.bisect import Question
    from harness.bisect import bisect as search
    from harness.table import visible

    good, dots, bad = options.versions.partition("..")
    if not (good and dots and bad):
        raise BadInput(f'"{options.versions}" cannot be read; write GOOD..BAD, for example 1.2.0..1.4.1')
    question = Question(options.backend, options.case, tuple(options.suite or ()), options.vocabulary, options.effort, options.timeout)
    stream = sys.stderr if options.json else sys.stdout

    def say(said: str) -> None:
        print(one_line(said), file=stream, flush=True)

    if options.slower:
        from harness.slowdown import slowdown

        answer: Any = slowdown(question, options.slower, good, bad, say)
    else:
        answer = search(question, good, bad, say)
    print(json.dumps(answer.to_json(), indent=2) if options.json else visible(answer.text(options.backend)))
    return OK
