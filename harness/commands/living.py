"""`live`: cases against a server."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from harness.errors import GATE_FAILED, INCOMPLETE, OK, UNPROVEN, BadInput

if TYPE_CHECKING:
    from harness.live.answer import Role
    from harness.live.load import Load

SUITES = ("speed",)
"""If none is named."""

REQUESTS = 100


def live(options: argparse.Namespace) -> int:
    """Ask a live server, judge every output, store, and print the figures; or print those of a stored session."""
    from harness.decode.latency import objectives_of
    from harness.live import figures, show
    from harness.live.record import read_session
    from harness.terminal import emit, paper, teller, visible

    objectives = objectives_of(options.objectives) if options.objectives else figures.OBJECTIVES
    if options.show and options.url:
        raise BadInput("--show prints what is stored; leave out the URL")
    if not options.show and not options.url:
        raise BadInput("live of which server? Give its URL, for example http://127.0.0.1:8000, or --show RUN")
    folder = options.show or _ask(options, teller(options))
    seen = show.Seen(read_session(folder), objectives)

    def text() -> str:
        return paper().fit(visible(f"\n{show.text(seen)}\n\nstored in {folder}"))

    emit(options, lambda: show.to_json(seen), text)
    if not seen.lived.is_complete:
        return INCOMPLETE
    codes = {"fails": GATE_FAILED, "unproven": UNPROVEN}
    return codes.get(seen.gate.verdict, OK) if options.gate else OK


def _ask(options: argparse.Namespace, say: Any) -> Any:
    from harness.live import session
    from harness.live.asking import PROMPT, Sampling
    from harness.live.client import Deadlines
    from harness.live.server import KEY_VARIABLE, key_of

    prompt = PROMPT if options.prompt is None else options.prompt
    request = session.Request(
        url=options.url,
        suites=tuple(options.suites) or SUITES,
        cases=options.cases,
        dialect=options.dialect,
        model=options.model,
        endpoint=options.endpoint,
        key=key_of(options.key_variable or KEY_VARIABLE),
        grammars=options.grammars,
        sampling=Sampling(options.limit, options.temperature, prompt, options.seed),
        deadlines=Deadlines(options.connect_timeout, options.first_timeout, options.stall_timeout, options.timeout),
        loads=loads(options),
        out=options.out,
        argv=tuple(sys.argv[1:]),
    )
    return session.live(request, say)


def loads(options: argparse.Namespace) -> tuple[Load, ...]:
    """The loads in the order in which they were named, each with its unconstrained twin before or behind it by turns. Raises BadInput."""
    from harness.live.load import Load, read_trace

    count = options.requests or REQUESTS
    found: list[tuple[Any, dict[str, Any]]] = []
    if options.burstiness is not None and options.arrivals != "gamma":
        raise BadInput("--burstiness belongs to --arrivals gamma")
    for rate in _numbers(options.rate, "--rate", float):
        found.append((options.arrivals, {"requests": count, "rate": rate, "burstiness": options.burstiness or 1.0}))
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
