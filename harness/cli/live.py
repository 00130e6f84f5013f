"""`live`: cases against a live server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.output import emit, teller
from harness.cli.values import (
    Verbs,
    add_command,
    not_negative,
    positive,
    positive_number,
    whole,
)
from harness.errors import GATE_FAILED, INCOMPLETE, OK, UNPROVEN, BadInput
from harness.text import console

if TYPE_CHECKING:
    from harness.serve.live.answer import Role
    from harness.serve.live.load import Load


def add(verbs: Verbs) -> None:
    """Add the command and its options."""
    parser = add_command(
        verbs,
        "live",
        live,
        examples=[
            "live http://127.0.0.1:8000",
            "live http://127.0.0.1:8000 my_schemas/ --rate 2,8 --requests 500 --gate",
            "live --show results/runs/my_session",
        ],
        help="cases against a live OpenAI-compatible server: every output judged, TTFT, TPOT, goodput",
    )
    parser.add_argument("url", nargs="?", metavar="URL", help="http(s)://HOST:PORT of the server")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="as in run (default: speed)")
    parser.add_argument(
        "--show", type=Path, metavar="RUN", help="ask nothing; print what is stored in this folder"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)"
    )
    parser.add_argument(
        "--gate",
        action="store_true",
        help="exit code 1 if an output is invalid or a request failed, 4 if nothing could be judged",
    )
    server = parser.add_argument_group("the server")
    server.add_argument(
        "--dialect",
        metavar="D",
        help="openai, vllm, vllm-guided, sglang, llama.cpp or llama-cpp-python (default: what the server "
        "says it is)",
    )
    server.add_argument(
        "--model", metavar="M", help="the model's name (default: the first that the server lists)"
    )
    server.add_argument(
        "--endpoint",
        choices=["chat", "completions"],
        default="chat",
        help="which of the interfaces (default: chat)",
    )
    server.add_argument(
        "--key-variable",
        metavar="NAME",
        help="the environment variable that holds the API key (default: GRAMMARBENCH_API_KEY)",
    )
    load = parser.add_argument_group(
        "the load, one after the other where several are named (default: --concurrency 1)"
    )
    load.add_argument(
        "--requests", type=positive, metavar="N", help="of each load (default: 100, or a trace's length)"
    )
    load.add_argument(
        "--rate",
        metavar="R,R",
        help="requests a second, whether or not the server is ready for them (an open loop)",
    )
    load.add_argument(
        "--arrivals",
        choices=["poisson", "gamma", "fixed"],
        default="poisson",
        help="with --rate (default: poisson)",
    )
    load.add_argument(
        "--burstiness",
        type=positive_number,
        metavar="B",
        help="of gamma: below 1 bursts, above it evener (default: 1)",
    )
    load.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="arrivals that were recorded: seconds after the start, one a line",
    )
    load.add_argument(
        "--concurrency", metavar="N,N", help="so many requests always under way (a closed loop)"
    )
    load.add_argument(
        "--grammars",
        choices=["warm", "cold", "mixed"],
        default="warm",
        help="warm: each was sent once before; cold: each request's is made unique, where that is possible "
        "(default: warm)",
    )
    load.add_argument(
        "--pairs",
        choices=["on", "off"],
        default="on",
        help="send every request without a grammar too, in a load of its own (default: on)",
    )
    asked = parser.add_argument_group("what is asked")
    asked.add_argument("--cases", type=positive, metavar="N", help="of each suite at most (default: all)")
    asked.add_argument(
        "--limit", type=positive, default=256, metavar="N", help="output tokens at most (default: 256)"
    )
    asked.add_argument(
        "--temperature", type=not_negative, default=0.0, metavar="T", help="of sampling (default: 0)"
    )
    asked.add_argument(
        "--prompt",
        metavar="TEXT",
        help="with {grammar}, {kind} and {name} for the case's (default: shows the grammar)",
    )
    asked.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="of arrivals, order and sampling (default: 0)"
    )
    asked.add_argument(
        "--objectives",
        metavar="O",
        help="of goodput, milliseconds: 'ttft:500 tpot:50 e2e:2000' (default: ttft:500 tpot:50)",
    )
    deadlines = parser.add_argument_group("deadlines, seconds")
    deadlines.add_argument(
        "--connect-timeout",
        type=positive_number,
        default=5.0,
        metavar="S",
        help="of a connection (default: 5)",
    )
    deadlines.add_argument(
        "--first-timeout",
        type=positive_number,
        default=60.0,
        metavar="S",
        help="until the first text (default: 60)",
    )
    deadlines.add_argument(
        "--stall-timeout",
        type=positive_number,
        default=30.0,
        metavar="S",
        help="between messages (default: 30)",
    )
    deadlines.add_argument(
        "--timeout",
        type=positive_number,
        default=120.0,
        metavar="S",
        help="of a whole request (default: 120)",
    )


SUITES = ("speed",)
"""The suites that are asked where none is named."""

REQUESTS = 100
"""How many requests a load has where nothing else is said."""


def live(options: argparse.Namespace) -> int:
    """Ask a live server, judge every output, store, and print the figures; or print those of a stored
    session."""
    from harness.serve.live import figures, show
    from harness.serve.live.record import read_session
    from harness.serve.requests.latency import objectives_of
    from harness.text import visible

    objectives = objectives_of(options.objectives) if options.objectives else figures.OBJECTIVES
    if options.show and options.url:
        raise BadInput("--show prints what is stored; leave out the URL")
    if not options.show and not options.url:
        raise BadInput("live of which server? Give its URL, for example http://127.0.0.1:8000, or --show RUN")
    folder = options.show or _ask(options, teller(options))
    seen = show.LiveSummary(read_session(folder), objectives)

    def text() -> str:
        return console().fit(visible(f"\n{show.text(seen)}\n\nstored in {folder}"))

    emit(options, lambda: show.to_json(seen), text)
    if not seen.lived.is_complete:
        return INCOMPLETE
    codes = {"fails": GATE_FAILED, "unproven": UNPROVEN}
    return codes.get(seen.gate.verdict, OK) if options.gate else OK


def _ask(options: argparse.Namespace, say: Any) -> Any:
    from harness.serve.live import session
    from harness.serve.live.asking import PROMPT, Sampling
    from harness.serve.live.client import Deadlines
    from harness.serve.live.server import KEY_VARIABLE, key_of

    prompt = PROMPT if options.prompt is None else options.prompt
    request = session.LiveRequest(
        url=options.url,
        suites=tuple(options.suites) or SUITES,
        cases=options.cases,
        dialect=options.dialect,
        model=options.model,
        endpoint=options.endpoint,
        key=key_of(options.key_variable or KEY_VARIABLE),
        grammars=options.grammars,
        sampling=Sampling(options.limit, options.temperature, prompt, options.seed),
        deadlines=Deadlines(
            options.connect_timeout, options.first_timeout, options.stall_timeout, options.timeout
        ),
        loads=loads(options),
        out=options.out,
        argv=tuple(sys.argv[1:]),
    )
    return session.live(request, say)


def loads(options: argparse.Namespace) -> tuple[Load, ...]:
    """The loads in the order in which they were named, each with its unconstrained twin before or behind it
    by turns. Raises BadInput."""
    from harness.serve.live.load import Load, read_trace

    count = options.requests or REQUESTS
    found: list[tuple[Any, dict[str, Any]]] = []
    if options.burstiness is not None and options.arrivals != "gamma":
        raise BadInput("--burstiness belongs to --arrivals gamma")
    for rate in _numbers(options.rate, "--rate", float):
        found.append(
            (options.arrivals, {"requests": count, "rate": rate, "burstiness": options.burstiness or 1.0})
        )
    for concurrency in _numbers(options.concurrency, "--concurrency", int):
        found.append(("closed", {"requests": count, "concurrency": concurrency}))
    if options.trace:
        times = read_trace(options.trace)
        times = times[: options.requests] if options.requests else times
        found.append(("trace", {"requests": len(times), "trace_s": times}))
    if not found:
        found.append(("closed", {"requests": count, "concurrency": 1}))
    made = []
    for place, (kind, fields) in enumerate(found):
        roles: list[Role] = ["constrained"] if options.pairs == "off" else ["constrained", "none"]
        made += [Load(kind, role, **fields) for role in (roles if place % 2 == 0 else reversed(roles))]
    return tuple(made)


def _numbers(text: str | None, option: str, kind: type[int] | type[float]) -> list[Any]:
    if text is None:
        return []
    try:
        found = [kind(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < each < float("inf") for each in found) or len(set(found)) < len(found):
        raise BadInput(f'{option} "{text}" cannot be read; write numbers above 0, each once, for example 1,8')
    return found
