"""`run`, and how it goes on while it runs."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import GATE_FAILED, OK, one_line

if TYPE_CHECKING:
    from harness.run import Progress


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
