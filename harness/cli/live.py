"""`live`: what a request costs at a live server, and whether its outputs are right."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.command import Verbs, add_command
from harness.cli.options import (
    Options,
    add_arrivals,
    add_choice,
    add_number,
    add_objectives,
    add_run_folder,
    add_suites,
    add_switch,
    arrivals_of,
)
from harness.cli.output import emit, say
from harness.cli.values import not_negative, positive, positive_number, several, whole
from harness.errors import GATE_FAILED, INCOMPLETE, OK, UNPROVEN, BadInput
from harness.text import console, counted, visible

if TYPE_CHECKING:
    from harness.serve.live.load import Load
    from harness.serve.requests.latency import Objectives
    from harness.serve.requests.words import Role


SUITES = ("speed",)
"""The suites that are asked where none is named."""

REQUESTS = 100
"""How many requests a load has where nothing else is said."""


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "live",
        live,
        examples=[
            "live http://127.0.0.1:8000",
            "live http://127.0.0.1:8000 my_schemas/ --rate 2,8 --requests 500 --gate",
            "live --show results/runs/my_session",
        ],
        help="ask a live OpenAI-compatible server: every output is judged, TTFT, TPOT and goodput measured",
    )
    parser.add_argument("url", nargs="?", metavar="URL", help="http(s)://HOST:PORT of the server")
    add_suites(parser, ", ".join(SUITES))
    parser.add_argument(
        "--show", type=Path, metavar="RUN", help="ask nothing; print what is stored in this folder"
    )
    add_run_folder(parser)
    parser.add_argument(
        "--gate",
        action="store_true",
        help="exit with 1 if an output is invalid or a request failed, with 4 if no output of a dialect is "
        "judged, if requests were refused for the key or the load, or if cases were not asked",
    )
    _add_server(parser.add_argument_group("the server"))
    _add_load(
        parser.add_argument_group(
            "the load, one after the other where several are named (default: --concurrency 1)"
        )
    )
    _add_asked(parser.add_argument_group("what is asked"))
    deadlines = parser.add_argument_group("deadlines, in seconds")
    for option, help, default in (
        ("--connect-timeout", "until a connection is there", 5.0),
        ("--first-timeout", "until the first text comes", 60.0),
        ("--stall-timeout", "between two messages with text", 30.0),
        ("--timeout", "for a whole request", 120.0),
    ):
        add_number(deadlines, option, positive_number, help, default=default, metavar="S")


def _add_server(server: Options) -> None:
    server.add_argument(
        "--dialect",
        metavar="D",
        help="openai, vllm, vllm-guided, sglang, llama.cpp or llama-cpp-python (default: what the server "
        "says it is)",
    )
    server.add_argument(
        "--model", metavar="M", help="the model's name (default: the first that the server lists)"
    )
    add_choice(server, "--endpoint", ["chat", "completions"], "which interface is asked", default="chat")
    server.add_argument(
        "--key-variable",
        metavar="NAME",
        help="the environment variable that holds the API key (default: GRAMMARBENCH_API_KEY)",
    )


def _add_load(load: Options) -> None:
    add_number(
        load, "--requests", positive, f"requests of each load (default: {REQUESTS}, or a trace's length)"
    )
    load.add_argument(
        "--rate",
        metavar="R,R",
        help="requests a second, whether or not the server is ready for them (an open loop)",
    )
    add_arrivals(load)
    add_number(
        load,
        "--burstiness",
        positive_number,
        "with --arrivals gamma: below 1 bursts, above 1 evener arrivals (default: 1)",
        metavar="B",
    )
    load.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="a file of recorded arrivals, in seconds after the start, one a line",
    )
    load.add_argument(
        "--concurrency", metavar="N,N", help="requests that are always under way (a closed loop)"
    )
    add_choice(
        load,
        "--grammars",
        ["warm", "cold", "mixed"],
        "warm: each grammar is sent once beforehand; cold: each request's grammar is made unique where "
        "possible; mixed: neither is done",
        default="warm",
    )
    add_switch(
        load, "--pairs", "send every request without a grammar too, in a load of its own", default="on"
    )


def _add_asked(asked: Options) -> None:
    add_number(asked, "--cases", positive, "most cases of each suite (default: all)")
    add_number(asked, "--limit", positive, "most output tokens of a request", default=256)
    add_number(asked, "--temperature", not_negative, "temperature of sampling", default=0.0, metavar="T")
    asked.add_argument(
        "--prompt",
        metavar="TEXT",
        help="the prompt, with {grammar}, {kind} and {name} for the case's (default: shows the grammar)",
    )
    add_number(asked, "--seed", whole, "seed of arrivals, order and sampling", default=0)
    add_objectives(asked)


def live(options: argparse.Namespace) -> int:
    """Asks a live server, judges every output, stores, and prints the figures; or prints a stored session.

    Returns 3 if the session has no end, and with `--gate` 1 or 4. Raises BadInput.
    """
    from harness.serve.live import show
    from harness.serve.live.record import read_session
    from harness.serve.requests.latency import objectives_of

    objectives = objectives_of(options.objectives)
    is_named = bool(options.objectives.split())
    if options.show and options.url:
        raise BadInput("--show prints what is stored; leave out the URL")
    if not options.show and not options.url:
        raise BadInput("no server is named; give its URL, for example http://127.0.0.1:8000, or --show RUN")
    folder = options.show or _ask(options, objectives)
    summary = show.LiveSummary(read_session(folder), objectives if is_named else None)

    def text() -> str:
        return console().fit(visible(f"\n{show.session_text(summary)}\n\nstored in {folder}"))

    emit(options, lambda: show.to_json(summary), text)
    if not summary.lived.is_complete:
        return INCOMPLETE
    codes = {"fails": GATE_FAILED, "unproven": UNPROVEN}
    return codes.get(summary.gate.verdict, OK) if options.gate else OK


def _ask(options: argparse.Namespace, objectives: Objectives) -> Path:
    """Asks the server, and returns the session's folder. Raises BadInput."""
    from harness.serve.live import session
    from harness.serve.live.asking import PROMPT, Sampling
    from harness.serve.live.client import Deadlines
    from harness.serve.live.server import key_of

    prompt = PROMPT if options.prompt is None else options.prompt
    request = session.LiveRequest(
        url=options.url,
        suites=tuple(options.suites) or SUITES,
        cases=options.cases,
        dialect=options.dialect,
        model=options.model,
        endpoint=options.endpoint,
        key=key_of(options.key_variable),
        grammars=options.grammars,
        sampling=Sampling(options.limit, options.temperature, prompt, options.seed),
        deadlines=Deadlines(
            options.connect_timeout, options.first_timeout, options.stall_timeout, options.timeout
        ),
        loads=loads(options),
        objectives=objectives,
        out=options.out,
        argv=tuple(sys.argv[1:]),
    )
    return session.live(request, say)


def loads(options: argparse.Namespace) -> tuple[Load, ...]:
    """Returns the loads in the order in which they were named. Raises BadInput.

    Each has its unconstrained twin before it or behind it, by turns.
    """
    from harness.serve.live.load import Load, read_trace

    count = options.requests or REQUESTS
    kinds: list[tuple[Any, dict[str, Any]]] = []
    arrivals = arrivals_of(options)
    if options.burstiness is not None and arrivals != "gamma":
        raise BadInput("--burstiness belongs to --arrivals gamma")
    for rate in several(options.rate, "--rate", positive_number):
        kinds.append((arrivals, {"requests": count, "rate": rate, "burstiness": options.burstiness or 1.0}))
    for concurrency in several(options.concurrency, "--concurrency", positive):
        kinds.append(("closed", {"requests": count, "concurrency": concurrency}))
    if options.trace:
        times = read_trace(options.trace)
        if options.requests and len(times) < options.requests:
            say(f"{options.trace} has {counted(len(times), 'arrival')}: its load has no more requests")
        times = times[: options.requests] if options.requests else times
        kinds.append(("trace", {"requests": len(times), "trace_s": times}))
    if not kinds:
        kinds.append(("closed", {"requests": count, "concurrency": 1}))
    made: list[Load] = []
    for place, (kind, fields) in enumerate(kinds):
        roles: list[Role] = ["constrained"] if options.pairs == "off" else ["constrained", "none"]
        made += [Load(kind, role, **fields) for role in (roles if place % 2 == 0 else reversed(roles))]
    return tuple(made)
