"""`run`, and how it goes on while it runs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from harness.errors import GATE_FAILED, INCOMPLETE, OK, BadInput
from harness.terminal import emit, paper, plain, teller

if TYPE_CHECKING:
    from harness.run import Progress


def run(options: argparse.Namespace) -> int:
    """Walk, store, and print the table per backend. The profile `decode` is of another kind: mechanisms of decoding, switched."""
    if options.profile == "decode":
        if options.shard or options.executor:
            raise BadInput(
                "--profile decode measures times, on one machine: leave --executor and --shard out, or decode untimed with --decode"
            )
        from harness.commands.decoding import experiment

        return experiment(options)
    from harness import ratchet
    from harness.process import module
    from harness.session import Request
    from harness.session import run as run_session

    if options.shards and not options.executor:
        raise BadInput("--shards cuts the cases for --executor ray; without Ray walk one share at a time: --shard I/N")
    if options.record and options.shard:
        raise BadInput("a record is of a whole run: leave --record out, merge the shards, and write it with `grammarbench expect --record`")
    started = time.monotonic()
    request = Request(
        suites=tuple(options.suites),
        backends=options.backends,
        vocabularies=tuple(options.vocabularies.split(",")) if options.vocabularies else None,
        profile=options.profile,
        out=options.out,
        resume=options.resume,
        jobs=options.jobs or (0 if options.executor else 1),
        timeout_s=options.timeout,
        memory_gb=options.memory,
        effort=options.effort,
        spellings=options.spellings,
        argv=tuple(sys.argv[1:]),
        shard=options.shard,
        executor=options.executor or "",
        shards=options.shards,
        decode=options.decode,
    )

    tell = teller(options)

    def say(text: str) -> None:
        with suppress(BrokenPipeError):  # nobody listens any more, but the run goes on
            tell(text)

    with progress_line(sys.stderr if options.json else sys.stdout) as report:
        outcome = run_session(request, say, report)
    rows = sum(outcome.statuses.values())
    counts = ", ".join(f"{count} {status}" for status, count in outcome.statuses.items())
    say(f"{rows} rows in {time.monotonic() - started:.0f} s: {counts}; stored in {outcome.folder}")
    # In a process of its own: a table holds something of every case, the coordinator must not.
    command = [*module("harness"), "table", "--summary", *(["--json"] if options.json else []), "--", str(outcome.folder)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE if options.json else None)
    summary: dict[str, Any] = json.loads(done.stdout or "{}") if options.json else {}
    if options.record:
        summary["recorded"] = _record(outcome.folder, options.record)
        say(f"recorded {summary['recorded']} outcomes in {options.record}")
    code = OK
    if options.expect:
        result = ratchet.expect(outcome.folder, options.expect)
        summary["expected"] = ratchet.to_json(result)
        code = OK if result.holds else GATE_FAILED
        if not options.json:
            print(paper().fit(ratchet.text(result)))
    if options.json:
        print(json.dumps(plain(summary), allow_nan=False))
    return code


def merge(options: argparse.Namespace) -> int:
    """The whole of its shards; 3 if something is missing."""
    from harness.merge import merge as merge_runs

    merged = merge_runs(options.out, options.runs, sys.argv[1:])
    counts = ", ".join(f"{count} {status}" for status, count in merged.statuses.items())
    lines = [f"{sum(merged.statuses.values())} rows of {merged.runs} run(s): {counts or 'none'}; stored in {merged.folder}"]
    if merged.missing:
        lines.append(f"INCOMPLETE: {merged.missing} case(s) are in none of them, counted once for each backend and vocabulary")
        if merged.missing_shards:
            lines.append(f"missing: shard {', '.join(merged.missing_shards)}")
        lines += [f"{folder} has no end: complete it with grammarbench run --resume" for folder in merged.unfinished]
    emit(options, lambda: vars(merged), lambda: paper().fit("\n".join(lines)))
    return INCOMPLETE if merged.missing else OK


def expect(options: argparse.Namespace) -> int:
    """Compare a stored run with a record, or write it."""
    from harness import ratchet

    if options.record:
        count = _record(options.run, options.file)
        emit(options, lambda: {"recorded": count, "file": options.file}, lambda: f"recorded {count} outcomes in {options.file}")
        return OK
    result = ratchet.expect(options.run, options.file)
    emit(options, lambda: ratchet.to_json(result), lambda: paper().fit(ratchet.text(result)))
    return OK if result.holds else GATE_FAILED


def _record(folder: Path, path: Path) -> int:
    from harness import ratchet

    return ratchet.record(folder, path)


class progress_line:
    """Done, rate, time left and failures so far: one live line on a terminal, a plain line every ten seconds elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.started = time.monotonic()
        self.last_line = self.started
        self.first: int | None = None

    def __enter__(self) -> Callable[[Progress], None]:
        return self.show

    def __exit__(self, *_: object) -> None:
        if self.stream.isatty():
            print(file=self.stream)

    def show(self, progress: Progress) -> None:
        """Tell it."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.started = progress.done, now
        terminal = self.stream.isatty()
        if not terminal and now - self.last_line < 10 and progress.done < progress.total:
            return
        self.last_line = now
        rate = (progress.done - self.first) / max(now - self.started, 1e-9)
        left = f"{(progress.total - progress.done) / rate:.0f} s left" if rate > 0 else "time left unknown"
        share = 100 * progress.done // max(progress.total, 1)
        text = f"{progress.done}/{progress.total} cases ({share} %), {rate:.1f}/s, {left}, {progress.failures} broken"
        with suppress(BrokenPipeError):
            print(f"\r\x1b[K{text}" if terminal else text, end="" if terminal else "\n", file=self.stream, flush=True)
