"""`decode`, and the closing experiment of `run --profile decode`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.output import emit, teller
from harness.cli.values import (
    Verbs,
    add_command,
    not_negative,
    one_vocabulary,
    positive,
    positive_number,
    whole,
)
from harness.errors import INCOMPLETE, OK, BadInput
from harness.serve.decode.setting import OWN, Setting

if TYPE_CHECKING:
    from harness.serve.decode.session import DecodeRequest


def add(verbs: Verbs) -> None:
    """Add the command and its options."""
    parser = add_command(
        verbs,
        "decode",
        decode,
        examples=[
            "decode --backends llguidance,xgrammar",
            "decode sql enums --backends xgrammar --model 8b --device cuda --batch 1,32",
            "decode my_cases.jsonl --backends llguidance --strategies stepwise,jump_forward",
        ],
        timed=True,
        help="TTFT, TPOT and throughput with a real model loop, beside the same loop without a grammar",
    )
    switch = ["on", "off"]
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help="a workload's name, a suite, a folder or a file (default: the profile's)",
    )
    parser.add_argument("--backends", required=True, metavar="A,B==1.2,C:OPTION=VALUE", help="as in run")
    parser.add_argument(
        "--profile", choices=["quick", "default", "full"], default="quick", help="how much (default: quick)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the record's folder (default: results/runs/<run>)"
    )
    parser.add_argument(
        "--timeout",
        type=positive_number,
        default=120.0,
        metavar="S",
        help="seconds for one run of a setting (default: 120)",
    )
    parser.add_argument(
        "--memory",
        type=positive_number,
        default=16.0,
        metavar="GB",
        help="resident memory of a child (default: 16)",
    )
    parser.add_argument(
        "--forks", type=positive, default=3, metavar="N", help="fresh processes of every arm (default: 3)"
    )
    parser.add_argument(
        "--rounds", type=positive, metavar="R", help="of each fork, after a cold one (default: the profile's)"
    )
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--model",
        default="tiny",
        metavar="M",
        help="a shape with random weights (tiny, 0.5b, 1b, 8b), a folder, or a hub name (default: tiny)",
    )
    model.add_argument(
        "--vocabularies",
        dest="vocabulary",
        type=one_vocabulary,
        metavar="NAME",
        help="as in run, one (default: tekken for a shape, a real model's own)",
    )
    model.add_argument(
        "--device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="auto: a GPU where there is one (default)",
    )
    model.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "float16"],
        help="of the weights (default: float32 on a CPU, else bfloat16)",
    )
    load = parser.add_argument_group("the load")
    load.add_argument(
        "--strategies",
        metavar="A,B",
        help="of stepwise, jump_forward, interleaved, speculative (default: the profile's)",
    )
    load.add_argument("--batch", metavar="N,N", help="rows of the batch (default: the profile's)")
    load.add_argument(
        "--requests",
        type=positive,
        metavar="N",
        help="requests of a run; never fewer than rows (default: the profile's)",
    )
    load.add_argument(
        "--prompt-tokens", type=positive, metavar="N", help="of each request (default: the profile's)"
    )
    load.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="output tokens at most (default: as many as the text to replay has)",
    )
    load.add_argument(
        "--mode",
        choices=["replay", "greedy", "seeded"],
        default="replay",
        help="write the workload's text, or what the model says (default: replay)",
    )
    load.add_argument(
        "--objectives",
        metavar="O",
        help="of goodput, milliseconds: 'ttft:500 tpot:50 e2e:2000' (default: ttft:500 tpot:50)",
    )
    load.add_argument(
        "--rate",
        type=positive_number,
        metavar="R",
        help="requests a second, as an open loop (default: all at once)",
    )
    load.add_argument(
        "--arrivals",
        choices=["poisson", "gamma", "fixed"],
        default="poisson",
        help="with --rate (default: poisson)",
    )
    masks = parser.add_argument_group("masks")
    masks.add_argument(
        "--overlap", choices=switch, default="on", help="fill them while the model computes (default: on)"
    )
    masks.add_argument("--fill-threads", type=positive, default=1, metavar="N", help="that fill (default: 1)")
    masks.add_argument(
        "--batch-fill",
        choices=switch,
        default="off",
        help="one call for all rows, with the backend's threads (default: off)",
    )
    masks.add_argument(
        "--kernel",
        default="",
        metavar="K",
        help="what applies them: a kernel of the backend, or own: its first (default: torch)",
    )
    compiling = parser.add_argument_group("compiling")
    compiling.add_argument(
        "--cache", choices=switch, default="on", help="keep compiled grammars (default: on)"
    )
    compiling.add_argument(
        "--compile-workers",
        type=whole,
        default=1,
        metavar="N",
        help="threads; 0: the loop compiles and waits (default: 1)",
    )
    compiling.add_argument(
        "--compile-timeout",
        type=positive_number,
        default=60.0,
        metavar="S",
        help="seconds until a compile is given up (default: 60)",
    )
    compiling.add_argument(
        "--poll-interval",
        type=not_negative,
        default=0.0,
        metavar="S",
        help="how long a poll waits (default: 0)",
    )
    compiling.add_argument(
        "--most-polls", type=positive, metavar="N", help="until a compile is given up (default: no limit)"
    )
    compiling.add_argument(
        "--fallback",
        choices=["unconstrained", "abort"],
        default="unconstrained",
        help="of a request whose compile is given up (default: unconstrained)",
    )
    drafts = parser.add_argument_group("drafts")
    drafts.add_argument(
        "--draft-tokens",
        type=positive,
        default=4,
        metavar="N",
        help="proposed at once by the strategy speculative (default: 4)",
    )


def decode(options: argparse.Namespace) -> int:
    """Decode, store, and print the figures."""
    from harness.serve.decode.session import DecodeRequest

    request = DecodeRequest(
        workloads=tuple(options.workloads),
        backends=options.backends,
        model=options.model,
        vocabulary=options.vocabulary,
        profile=options.profile,
        usual=usual(options),
        strategies=tuple(options.strategies.replace("-", "_").split(",")) if options.strategies else None,
        batches=_batches(options.batch) if options.batch else None,
        texts=options.requests,
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
    from harness.serve.decode.mechanisms import FORKS
    from harness.serve.decode.session import EXPERIMENT, DecodeRequest

    for name in ("resume", "spellings", "record", "expect", "decode"):
        if getattr(options, name):
            raise BadInput(f"--{name} says nothing about --profile decode; leave it out")
    vocabularies = options.vocabularies or [None]
    if len(vocabularies) > 1:
        raise BadInput(f"--profile decode takes one vocabulary, not {','.join(options.vocabularies)}")
    request = DecodeRequest(
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
        raise BadInput(
            f'--batch "{text}" cannot be read; write whole numbers above 0, each once, for example 1,8'
        )
    return found


def _decode(request: DecodeRequest, options: argparse.Namespace) -> int:
    from harness.serve.decode import session, show
    from harness.serve.decode.record import read_decoding
    from harness.serve.requests.latency import objectives_of
    from harness.text import visible

    started = time.monotonic()
    objectives = (
        objectives_of(options.objectives) if getattr(options, "objectives", None) else show.OBJECTIVES
    )
    folder = session.decode(request, teller(options))
    found = read_decoding(folder)

    def text() -> str:
        return visible(
            f"\n{show.text(found, objectives)}\n\n{time.monotonic() - started:.0f} s; stored in {folder}"
        )

    emit(options, lambda: show.to_json(found, objectives), text)
    return OK if found.is_complete else INCOMPLETE
