"""`decode`: what a request costs, in our decode loop with a model."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.command import Verbs, add_command
from harness.cli.options import (
    Options,
    add_arrivals,
    add_backends,
    add_choice,
    add_forks,
    add_memory,
    add_number,
    add_objectives,
    add_profile,
    add_run_folder,
    add_switch,
    add_timeout,
    add_vocabulary,
    arrivals_of,
    asked_backends,
)
from harness.cli.output import emit, say
from harness.cli.values import not_negative, positive, positive_number, several, whole
from harness.errors import INCOMPLETE, OK, BadInput
from harness.serve.decode.profiles import MECHANISMS
from harness.serve.decode.setting import OWN, Setting
from harness.text import console, visible

if TYPE_CHECKING:
    from harness.serve.decode import session

FORKS = 3
"""Fresh processes of every arm, in all other profiles."""


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "decode",
        decode,
        examples=[
            "decode --backends llguidance,xgrammar",
            "decode sql enums --backends xgrammar --model 8b --device cuda --batch 1,32",
            "decode my_cases.jsonl --backends llguidance --strategies stepwise,jump_forward",
            "decode --profile mechanisms --backends llguidance,xgrammar",
            "decode --show results/runs/my_decoding --objectives 'ttft:200 tpot:30'",
        ],
        timed=True,
        help="measure TTFT, TPOT and throughput with a model, beside the same loop without a grammar",
    )
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help="a workload's name, a suite, a folder or a file (default: the profile's)",
    )
    parser.add_argument(
        "--show", type=Path, metavar="RUN", help="decode nothing; print what is stored in this folder"
    )
    add_backends(parser)
    add_profile(
        parser,
        ["quick", "default", "full", MECHANISMS],
        "quick",
        "; mechanisms: switch one mechanism of decoding at a time, and say what to set on this machine",
    )
    add_run_folder(parser)
    add_timeout(parser, "seconds for one run of a setting", default=120.0)
    add_memory(parser, 16.0)
    add_forks(parser, f"fresh processes of every arm (default: {FORKS}, of mechanisms 5)")
    add_number(
        parser,
        "--rounds",
        positive,
        "rounds of each fork, after a cold one (default: the profile's)",
        metavar="R",
    )
    _add_model(parser.add_argument_group("the model"))
    _add_load(parser.add_argument_group("the load"))
    _add_masks(parser.add_argument_group("masks"))
    _add_compiling(parser.add_argument_group("compiling"))
    drafts = parser.add_argument_group("drafts")
    add_number(
        drafts, "--draft-tokens", positive, "tokens that the strategy speculative proposes at once", default=4
    )


def _add_model(model: Options) -> None:
    model.add_argument(
        "--model",
        default="tiny",
        metavar="M",
        help="a shape with random weights (tiny, 0.5b, 1b, 8b), a folder, or a hub name (default: tiny)",
    )
    add_vocabulary(model, "the vocabulary (default: tekken for a shape, a real model's own)")
    add_choice(
        model, "--device", ["auto", "cpu", "cuda"], "where the model runs; auto: a GPU if any", default="auto"
    )
    add_choice(
        model,
        "--dtype",
        ["float32", "bfloat16", "float16"],
        "type of the weights (default: float32 on a CPU, else bfloat16)",
    )


def _add_load(load: Options) -> None:
    load.add_argument(
        "--strategies",
        metavar="A,B",
        help="of stepwise, jump_forward, interleaved, speculative (default: the profile's)",
    )
    load.add_argument("--batch", metavar="N,N", help="rows of the batch (default: the profile's)")
    add_number(
        load,
        "--requests",
        positive,
        "requests of a run, never fewer than rows of the batch (default: the profile's)",
    )
    add_number(load, "--prompt-tokens", positive, "tokens of each request's prompt (default: the profile's)")
    add_number(
        load,
        "--limit",
        positive,
        "most output tokens of a request (default: as many as the text to replay has)",
    )
    add_choice(
        load,
        "--mode",
        ["replay", "greedy", "seeded"],
        "write the workload's text, or what the model says",
        default="replay",
    )
    add_objectives(load)
    add_number(
        load,
        "--rate",
        positive_number,
        "requests a second, as an open loop (default: all at once)",
        metavar="R",
    )
    add_arrivals(load)


def _add_masks(masks: Options) -> None:
    add_switch(masks, "--overlap", "fill masks while the model computes", default="on")
    add_number(
        masks,
        "--fill-threads",
        positive,
        "threads that fill masks: ours (one on CUDA: the loop's own), or with --batch-fill the backend's own",
        default=1,
    )
    add_switch(masks, "--batch-fill", "fill all rows in one call of the backend", default="off")
    masks.add_argument(
        "--kernel",
        default="",
        metavar="K",
        help="what applies masks to logits: a kernel of the backend by name, or `own` for its first kernel "
        "(default: torch)",
    )


def _add_compiling(compiling: Options) -> None:
    add_switch(compiling, "--cache", "keep compiled grammars", default="on")
    add_number(
        compiling,
        "--compile-workers",
        whole,
        "threads that compile; 0: the loop compiles and waits",
        default=1,
    )
    add_number(
        compiling,
        "--compile-timeout",
        positive_number,
        "seconds until a compile is given up",
        default=60.0,
        metavar="S",
    )
    add_number(
        compiling, "--poll-interval", not_negative, "seconds that a poll waits", default=0.0, metavar="S"
    )
    add_number(compiling, "--most-polls", positive, "polls until a compile is given up (default: no limit)")
    add_choice(
        compiling,
        "--fallback",
        ["unconstrained", "abort"],
        "what becomes of a request whose compile is given up",
        default="unconstrained",
    )


def decode(options: argparse.Namespace) -> int:
    """Decodes, stores, and prints the figures, or prints a stored decoding; 3 if the record has no end, or
    nothing was measured. What an interruption leaves is printed too. Raises BadInput and KeyboardInterrupt.
    """
    from harness.serve.decode import session
    from harness.serve.decode.record import read_decoding

    if options.show:
        if options.workloads or options.out:
            raise BadInput("--show prints what is stored; leave the workloads and --out out")
        return _told(options, options.show)
    request = _request(options)
    started = time.monotonic()
    try:
        folder = session.decode(request, say)
    except session.Interrupted as stopped:
        with suppress(BadInput, OSError):
            if read_decoding(stopped.folder).batches:
                _told(options, stopped.folder)
        raise
    return _told(options, folder, f"{time.monotonic() - started:.0f} s; ")


def _told(options: argparse.Namespace, folder: Path, took: str = "") -> int:
    """Prints the record in the folder, and returns the exit code. Raises BadInput."""
    from harness.serve.decode import show
    from harness.serve.decode.as_json import to_json
    from harness.serve.decode.record import read_decoding
    from harness.serve.requests.latency import objectives_of

    objectives = objectives_of(options.objectives) if options.objectives else None
    decoding = read_decoding(folder)

    def text() -> str:
        shown = show.decoding_text(decoding, objectives, console())
        return f"\n{shown}\n\n{took}{visible(f'stored in {folder}')}"

    emit(options, lambda: to_json(decoding, objectives), text)
    return OK if decoding.is_complete and decoding.batches else INCOMPLETE


def _request(options: argparse.Namespace) -> session.DecodeRequest:
    """Returns what the options ask for. Raises BadInput."""
    from harness.serve.decode import mechanisms, session
    from harness.serve.requests.latency import objectives_of

    switches = options.profile == MECHANISMS
    if switches:
        _refuse_switched(options)
    return session.DecodeRequest(
        workloads=tuple(options.workloads),
        backends=asked_backends(options, say),
        model=options.model,
        vocabulary=options.vocabulary,
        profile=options.profile,
        usual=usual_setting(options),
        strategies=tuple(options.strategies.replace("-", "_").split(",")) if options.strategies else None,
        batches=several(options.batch, "--batch", positive) or None,
        texts=options.requests,
        prompt_tokens=options.prompt_tokens,
        forks=options.forks or (mechanisms.FORKS if switches else FORKS),
        rounds=options.rounds,
        device=options.device,
        dtype=options.dtype,
        out=options.out,
        timeout_s=options.timeout,
        memory_gb=options.memory,
        argv=tuple(sys.argv[1:]),
        objectives=objectives_of(options.objectives),
    )


def _refuse_switched(options: argparse.Namespace) -> None:
    """Raises BadInput if an option is given whose value the profile `mechanisms` sets itself."""
    given = [name for name in ("strategies", "batch") if getattr(options, name)]
    chosen, default = usual_setting(options), Setting("")
    given += [
        field.name.removesuffix("_s").replace("_", "-")
        for field in fields(Setting)
        if getattr(chosen, field.name) != getattr(default, field.name)
    ]
    if given:
        raise BadInput(f"--{given[0]}: --profile {MECHANISMS} sets it itself; leave it out")


def usual_setting(options: argparse.Namespace) -> Setting:
    """Returns the setting that the options name; workload, strategy and batch are the profile's matter."""
    return Setting(
        workload="",
        mode=options.mode,
        limit=options.limit,
        rate=options.rate,
        arrivals=arrivals_of(options),
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
