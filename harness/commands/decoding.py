"""`decode`, and the closing experiment of `run --profile decode`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from harness.decode.setting import OWN, Setting
from harness.errors import INCOMPLETE, OK, BadInput

if TYPE_CHECKING:
    from harness.decode.session import Request


def decode(options: argparse.Namespace) -> int:
    """Decode, store, and print the figures."""
    from harness.decode.session import Request

    request = Request(
        workloads=tuple(options.workloads),
        backends=options.backends,
        model=options.model,
        vocabulary=options.vocabulary,
        profile=options.profile,
        usual=usual(options),
        strategies=tuple(options.strategies.replace("-", "_").split(",")) if options.strategies else None,
        batches=_batches(options.batch) if options.batch else None,
        texts=options.texts,
        prompt_tokens=options.prompt_tokens,
        forks=options.forks,
        rounds=options.rounds,
        device=options.device,
        dtype=options.dtype,
        out=options.out,
        timeout_s=options.timeout,
        memory_gb=options.memory,
        argv=tuple(sys.argv[1:]),
    )
    return _decode(request, options)


def experiment(options: argparse.Namespace) -> int:
    """Fix the model and the load, switch one mechanism at a time, and conclude."""
    from harness.decode.mechanisms import FORKS
    from harness.decode.session import EXPERIMENT, Request

    for name in ("resume", "spellings", "record", "expect", "decode"):
        if getattr(options, name):
            raise BadInput(f"--{name} says nothing about --profile decode; leave it out")
    vocabularies = options.vocabularies.split(",") if options.vocabularies else [None]
    if len(vocabularies) > 1:
        raise BadInput(f"--profile decode takes one vocabulary, not {options.vocabularies}")
    request = Request(
        workloads=tuple(options.suites),
        backends=options.backends,
        model="tiny",
        vocabulary=vocabularies[0],
        profile=EXPERIMENT,
        usual=Setting(""),
        strategies=None,
        batches=None,
        texts=None,
        prompt_tokens=None,
        forks=FORKS,
        rounds=None,
        device="auto",
        dtype=None,
        out=options.out,
        timeout_s=options.timeout or 120.0,
        memory_gb=max(options.memory, 16.0),
        argv=tuple(sys.argv[1:]),
    )
    return _decode(request, options)


def usual(options: argparse.Namespace) -> Setting:
    """The knobs that the options set; workload, strategy and batch are the profile's matter."""
    return Setting(
        workload="",
        mode=options.mode,
        limit=options.limit,
        rate=options.rate,
        arrivals=options.arrivals,
        overlap=options.overlap == "on",
        fill_threads=options.fill_threads,
        batch_fill=options.batch_fill == "on",
        kernel=OWN if options.kernel.lower() == OWN else options.kernel,
        cache=options.cache == "on",
        compile_workers=options.compile_workers,
        compile_timeout_s=options.compile_timeout,
        poll_interval_s=options.poll_interval,
        most_polls=options.most_polls,
        fallback=options.fallback,
        draft_tokens=options.draft_tokens,
    )


def _batches(text: str) -> tuple[int, ...]:
    try:
        found = tuple(map(int, text.split(",")))
    except ValueError:
        found = ()
    if not found or min(found) < 1 or len(set(found)) < len(found):
        raise BadInput(f'--batch "{text}" cannot be read; write whole numbers above 0, each once, for example 1,8')
    return found


def _decode(request: Request, options: argparse.Namespace) -> int:
    from harness.decode import session, show
    from harness.decode.latency import objectives_of
    from harness.decode.record import read_decoding
    from harness.terminal import emit, teller, visible

    started = time.monotonic()
    objectives = objectives_of(options.objectives) if getattr(options, "objectives", None) else show.OBJECTIVES
    folder = session.decode(request, teller(options))
    found = read_decoding(folder)

    def text() -> str:
        return visible(f"\n{show.text(found, objectives)}\n\n{time.monotonic() - started:.0f} s; stored in {folder}")

    emit(options, lambda: show.to_json(found, objectives), text)
    return OK if found.is_complete else INCOMPLETE
