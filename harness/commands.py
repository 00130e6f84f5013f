"""What each command does: calls into the modules that know, and prints."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput, one_line

if TYPE_CHECKING:
    from harness.run import Progress

OK, GATE_FAILED, INCOMPLETE, UNPROVEN = 0, 1, 3, 4


def run(options: argparse.Namespace) -> int:
    """Walk, store, and print the table per backend."""
    from harness.process import module
    from harness.session import Request
    from harness.session import run as run_session

    started = time.monotonic()
    request = Request(
        suites=tuple(options.suites),
        backends=options.backends,
        vocabularies=tuple(options.vocabularies.split(",")) if options.vocabularies else None,
        profile=options.profile,
        out=options.out,
        resume=options.resume,
        jobs=options.jobs,
        timeout_s=options.timeout,
        memory_gb=options.memory,
        effort=options.effort,
        spellings=options.spellings,
        argv=tuple(sys.argv[1:]),
    )

    def say(text: str) -> None:
        with suppress(BrokenPipeError):  # nobody listens any more, but the run goes on
            print(one_line(text), flush=True)

    with progress_line() as report:
        outcome = run_session(request, say, report)
    rows = sum(outcome.statuses.values())
    counts = ", ".join(f"{count} {status}" for status, count in outcome.statuses.items())
    print(f"{rows} rows in {time.monotonic() - started:.0f} s: {counts}", flush=True)
    # In a process of its own: a table holds something of every case, the coordinator must not.
    subprocess.run([*module("harness"), "table", str(outcome.folder.resolve())], check=False)
    print(f"\nstored in {outcome.folder}; next: grammarbench report {outcome.folder}")
    if options.record:
        _record(outcome.folder, options.record)
    return _expect(outcome.folder, options.expect) if options.expect else OK


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


def expect(options: argparse.Namespace) -> int:
    """Compare a stored run with a record, or write it."""
    if options.record:
        _record(options.run, options.file)
        return OK
    return _expect(options.run, options.file)


def _record(folder: Path, path: Path) -> None:
    from harness import ratchet

    print(f"recorded {ratchet.record(folder, path)} outcomes in {path}")


def _expect(folder: Path, path: Path) -> int:
    from harness import ratchet
    from harness.table import visible

    result = ratchet.expect(folder, path)
    print(visible(ratchet.text(result)))
    return OK if result.holds else GATE_FAILED


class progress_line:
    """Done, rate, time left and failures so far: one live line on a terminal, a plain line every ten seconds elsewhere."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.last_line = self.started
        self.first: int | None = None

    def __enter__(self) -> Callable[[Progress], None]:
        return self.show

    def __exit__(self, *_: object) -> None:
        if sys.stdout.isatty():
            print()

    def show(self, progress: Progress) -> None:
        """Tell it."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.started = progress.done, now
        terminal = sys.stdout.isatty()
        if not terminal and now - self.last_line < 10 and progress.done < progress.total:
            return
        self.last_line = now
        rate = (progress.done - self.first) / max(now - self.started, 1e-9)
        left = f"{(progress.total - progress.done) / rate:.0f} s left" if rate > 0 else "time left unknown"
        share = 100 * progress.done // max(progress.total, 1)
        text = f"{progress.done}/{progress.total} cases ({share} %), {rate:.1f}/s, {left}, {progress.failures} broken"
        with suppress(BrokenPipeError):
            print(f"\r\x1b[K{text}" if terminal else text, end="" if terminal else "\n", flush=True)


def report(options: argparse.Namespace) -> int:
    """One HTML page."""
    from harness.report import write_report

    out = options.out or options.runs[0] / "report"
    page = write_report(options.runs, out)
    print(f"written: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    return completeness(options.runs)


def table(options: argparse.Namespace) -> int:
    """One line per instance, or the table per backend."""
    from harness import table as tables

    if options.keywords:
        return _keywords(options)
    if options.faults or options.spellings or options.ceilings or options.times:
        from harness.ceiling_table import ceiling_frame
        from harness.faults import fault_frame
        from harness.spelling_table import spelling_frame
        from harness.time_table import time_frame

        frames = {"faults": fault_frame, "spellings": spelling_frame, "ceilings": ceiling_frame, "times": time_frame}
        frame_of = next(frame for name, frame in frames.items() if getattr(options, name))
        text = tables.to_text(frame_of(options.run), options.format or "markdown")
        print(tables.visible(text) if sys.stdout.isatty() else text, end="")
    elif options.format:
        text = tables.instance_text(options.run, options.format)
        print(tables.visible(text) if sys.stdout.isatty() else text, end="")
    else:
        print(tables.terminal_text(options.run))
    return completeness([options.run])


def completeness(folders: list[Path]) -> int:
    """0, or 3 with a word on stderr if a run has no end."""
    from harness.store import read_end

    missing = [folder for folder in folders if read_end(folder) is None]
    for folder in missing:
        print(
            f"grammarbench: {folder} is incomplete (no end); `grammarbench run --resume --out {folder} ...` completes it", file=sys.stderr
        )
    return INCOMPLETE if missing else OK


def repro(options: argparse.Namespace) -> int:
    """One failing case, step by step."""
    from harness.repro import find_failure, script, show, show_shrunk, shrink_failure, shrunk_script

    failure = find_failure(options.run, options.case, options.backend, options.vocabulary, options.instance, options.check)
    if options.shrink:
        shrunk = shrink_failure(failure)
        print(show_shrunk(failure, shrunk))
    else:
        print(show(failure))
    if options.script:
        options.script.write_text(shrunk_script(shrunk) if options.shrink else script(failure), "utf-8", errors="backslashreplace")
        print(f"script: {options.script}")
    return OK


def adjudicate(options: argparse.Namespace) -> int:
    """Witnesses of who is at fault where backends disagree."""
    from harness.adjudicate import adjudicate as adjudicate_run
    from harness.table import visible

    positions = None if options.effort < 0 else options.effort
    summary = adjudicate_run(
        options.run,
        positions=positions,
        tries=options.tries,
        timeout_s=options.timeout,
        formats=options.formats,
        say=lambda said: print(one_line(said), flush=True),
    )
    print(visible(summary.text()))
    return completeness([options.run])


def check(options: argparse.Namespace) -> int:
    """The contract checklist, each check in a process that may be lost."""
    from harness.checkup import run_checks
    from harness.environments import environment_of
    from harness.vocabulary import prepare_vocabulary

    failed = 0
    backend, python = environment_of(options.backend)
    for result in run_checks(str(backend), prepare_vocabulary(options.vocabulary), options.timeout, python):
        print(f"{result.status:8} {result.check}" + (f": {one_line(result.text)}" if result.text else ""), flush=True)
        failed += result.status not in ("passed", "skipped")
    print(f"{options.backend} {'breaks' if failed else 'keeps'} the contract" + (f" in {failed} check(s)" if failed else ""))
    return GATE_FAILED if failed else OK


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


def backends(options: argparse.Namespace) -> int:
    """Every adapter that can be found."""
    from harness.describe import catalogue

    for each in catalogue():
        version = f"{each['distribution']} {each['version']}" if each["version"] else each["problem"] or "no distribution"
        print(f"{each['name']:20} {one_line(version)}")
        if each["dialects"]:
            print(f"{'':20} {', '.join(each['dialects'])}")
        for option in each["options"]:
            print(f"{'':20} {option}")
    print("\nothers: an entry point in the group harness.adapters, or module:Class")
    return OK


def suites(options: argparse.Namespace) -> int:
    """Our suites."""
    from harness.suite import find_suite, read_cases, suite_names

    for name in suite_names():
        suite = find_suite(name)
        sizes = [len(case.instances) for case in read_cases(suite)]
        print(f"{name:18} version {suite.version}, {len(sizes)} cases, {sum(sizes)} instances: {suite.description}")
    print("\nyour own: a folder or a file of cases, MaskBench files, JSON-Schema-Test-Suite files, or bare JSON Schemas")
    return OK


def vocabularies(options: argparse.Namespace) -> int:
    """Built-in vocabularies, and how to name others."""
    from harness.vocabulary import load_vocabulary, vocabulary_names

    for name in vocabulary_names():
        vocabulary = load_vocabulary(name)
        specials, padding = len(vocabulary.special_tokens), len(vocabulary.padding_tokens)
        print(f"{name:12} {vocabulary.size:>7} ids, {specials} special, {padding} padding, sha256 {vocabulary.sha256[:12]}")
    print("\nothers: hf:NAME or hf:FOLDER (a Hugging Face tokenizer), tiktoken:NAME or tiktoken:FILE")
    return OK


def fetch(options: argparse.Namespace) -> int:
    """A public corpus at its pinned commit."""
    from harness.corpora import fetch_corpus

    print(f"{options.corpus} is in {fetch_corpus(options.corpus, options.out)}")
    return OK


def _keywords(options: argparse.Namespace) -> int:
    from harness.keywords import truth_table as keywords
    from harness.store import read_rows

    folded = keywords.truth_table(read_rows(options.run))
    forms = {"json": keywords.as_json, "markdown": keywords.markdown, None: keywords.text}
    if options.format not in forms:
        raise BadInput("the table of keywords has no csv; give --format json or markdown")
    print(forms[options.format](folded), end="")
    return completeness([options.run])


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    each.__name__: each
    for each in (
        run,
        measure,
        doctor,
        compare,
        history,
        expect,
        report,
        table,
        repro,
        adjudicate,
        check,
        bisect,
        kernels,
        backends,
        suites,
        vocabularies,
        fetch,
    )
}
