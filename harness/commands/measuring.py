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
    from harness.terminal import emit, paper, teller

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
    folder, comparisons = measure_session(request, teller(options))
    figures = Figures(read_measurement(folder))
    proven = is_proven(comparisons, figures)

    def text() -> str:
        on = paper()
        end = f"{time.monotonic() - started:.0f} s; stored in {folder}; next: grammarbench compare {folder}"
        return f"\n{show.text(figures, comparisons, means=options.means, on=on)}\n\n{on.fit(end)}"

    emit(options, lambda: {"folder": folder, "proven": proven, "arms": figures.measurement.arms, "comparisons": comparisons}, text)
    return OK if proven else UNPROVEN


def doctor(options: argparse.Namespace) -> int:
    """Look at the machine, and measure its noise."""
    from harness import doctor as examination
    from harness.terminal import emit, paper, teller

    found = examination.diagnose(options.backend, options.vocabulary, options.forks, options.out, teller(options))
    emit(options, lambda: examination.to_json(found), lambda: "\n" + paper().fit(examination.text(found)))
    return OK if found.proven else UNPROVEN


def compare(options: argparse.Namespace) -> int:
    """Outcomes, counts and times of two arms or of two runs."""
    from harness import compare as comparing
    from harness.decode.record import has_decoding
    from harness.measure.record import has_measurement
    from harness.terminal import emit, paper

    if has_decoding(options.base):
        return _compare_decodings(options)
    pairs = comparing.compare_runs(options.base, options.head) if options.head else comparing.compare_arms(options.base)

    def text() -> str:
        parts = [comparing.text(pairs, means=options.means, on=paper())]
        if options.head and (left_out := comparing.alone(options.base, options.head)):
            parts.append("\n".join(paper().fold(left_out)))
        parts += [comparing.measured_text(options.base, paper())] if not options.head and has_measurement(options.base) else []
        return "\n\n".join(parts)

    emit(options, lambda: comparing.to_json(pairs), text)
    if options.html:
        from harness.report.forest import write_forest

        print(f"written: {write_forest(pairs, options.html)}", file=sys.stderr)
    if not options.gate:
        return OK
    verdict, _ = comparing.gate(pairs, time=options.time)
    return {"ok": OK, "failed": GATE_FAILED, "unproven": UNPROVEN}[verdict]


def _compare_decodings(options: argparse.Namespace) -> int:
    """Of `decode`: times, ratios and counts."""
    from harness.decode import verdicts
    from harness.terminal import emit, visible

    for name in ("means", "html"):
        if getattr(options, name):
            raise BadInput(f"--{name} says nothing about records of decode; leave it out")
    changes = verdicts.compare(options.base, options.head)
    emit(options, lambda: changes, lambda: visible(verdicts.text(changes)))
    if not options.gate:
        return OK
    return {"ok": OK, "failed": GATE_FAILED, "unproven": UNPROVEN}[verdicts.gate(changes, time=options.time)]


def history(options: argparse.Namespace) -> int:
    """Append, then what the alert rule says."""
    from harness import fates
    from harness import history as past
    from harness.decode.record import has_decoding
    from harness.measure.record import has_measurement
    from harness.store import has_begun
    from harness.terminal import emit, paper

    if options.add:
        # A measurement is a run with rows too, as a rule: both go into the history.
        is_run = has_begun(options.add)
        if has_decoding(options.add) and not is_run:
            raise BadInput(f"{options.add} holds a decoding, which goes into no history; `grammarbench compare` holds it against another")
        if has_measurement(options.add) or not is_run:
            print(f"added: {past.append(options.history, options.add)}", file=sys.stderr)
        if is_run:
            print(f"added: {fates.add(options.history, options.add)}", file=sys.stderr)
    emit(
        options,
        lambda: past.to_json(options.history),
        lambda: paper().fit(f"{past.text(options.history)}\n{fates.text(options.history)}"),
    )
    return GATE_FAILED if options.gate and past.alerts(options.history) else OK


def kernels(options: argparse.Namespace) -> int:
    """Masks applied to logits: measure and store, or print what is stored."""
    from harness import kernels as of_kernels
    from harness.terminal import emit

    if options.out:
        plan = of_kernels.QUICK if options.quick else of_kernels.DEFAULT
        progress = sys.stderr if options.format or options.json else sys.stdout
        of_kernels.measure(
            options.backends, options.device, plan, options.out, sys.argv[1:], lambda said: print(one_line(said), file=progress, flush=True)
        )
    stored = of_kernels.read(options.out or options.show)
    emit(options, lambda: json.loads(of_kernels.text(stored, "json")), lambda: of_kernels.text(stored, options.format).removesuffix("\n"))
    return INCOMPLETE if stored.end is None else OK


def bisect(options: argparse.Namespace) -> int:
    """The first release with an outcome."""
    from harness.bisect import Question
    from harness.bisect import bisect as search
    from harness.terminal import emit, paper, teller

    good, dots, bad = options.versions.partition("..")
    if not (good and dots and bad):
        raise BadInput(f'"{options.versions}" cannot be read; write GOOD..BAD, for example 1.2.0..1.4.1')
    question = Question(options.backend, options.case, tuple(options.suite or ()), options.vocabulary, options.effort, options.timeout)
    say = teller(options)
    if options.slower:
        from harness.slowdown import slowdown

        answer: Any = slowdown(question, options.slower, good, bad, say)
    else:
        answer = search(question, good, bad, say)
    emit(options, answer.to_json, lambda: paper().fit(answer.text(options.backend)))
    return OK
