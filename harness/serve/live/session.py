"""A live session from what the user asked for to its last line: cases are found, requests planned and sent,
and answers judged."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

import harness
from harness.backend.arm import Arm
from harness.cases.case_line import CASES_FILE, case_from_line, case_to_line
from harness.cases.plan import Plan, Profile, write_plan
from harness.cases.suite import find_suite
from harness.oracle.judge import Judge
from harness.rows.folder import locked, make_writable, named_by_errors, new_run_id, now
from harness.rows.machine import describe_machine, hardware, hardware_key, usable_processors
from harness.rows.row import RunInfo
from harness.rows.store import refuse_a_record
from harness.rows.writer import Writer
from harness.running.leftovers import OF_A_RUN, refuse_strangers
from harness.serve.live import asking
from harness.serve.live.answer import Answer, Heard, State
from harness.serve.live.asking import Grammars, Sampling, Source, body_of, prompt_of, salt_of
from harness.serve.live.client import Client, Deadlines
from harness.serve.live.dialects import PATHS, Endpoint
from harness.serve.live.judging import (
    JUDGE_SECONDS,
    judge_answer,
    options_of,
    rows,
    vocabulary_of,
    with_outputs,
)
from harness.serve.live.key import ApiKey
from harness.serve.live.load import Load, Send, drive, due
from harness.serve.live.record import FIGURES, NOT_ASKED, LiveRecorder, LiveSetup, has_session, read_session
from harness.serve.live.server import Server, base_of, find_server
from harness.serve.live.wanted import as_wanted
from harness.serve.requests.latency import Objectives
from harness.text import counted
from harness.whole_files import drafted


@dataclass(frozen=True)
class LiveRequest:
    """The arguments of `grammarbench live`."""

    url: str
    suites: tuple[str, ...]
    cases: int | None
    """The most cases of each suite."""
    dialect: str | None
    model: str | None
    endpoint: Endpoint
    key: ApiKey
    grammars: Grammars
    sampling: Sampling
    deadlines: Deadlines
    loads: tuple[Load, ...]
    objectives: Objectives
    out: Path | None
    argv: tuple[str, ...]


@dataclass(frozen=True)
class LivePlan:
    """What is fixed before the first request."""

    server: Server
    request: LiveRequest
    sources: list[Source]
    declined: dict[int, str]
    """Why sources are not sent, by the place of the source."""

    @property
    def sent(self) -> list[int]:
        """Returns the places of the sources that are sent."""
        return [place for place in range(len(self.sources)) if place not in self.declined]

    def not_asked(self, setup: LiveSetup) -> frozenset[int]:
        """Returns the places of the sources that could be sent, and for which no request is left."""
        sent = self.sent
        order = asking.order(len(sent), len(sent), setup.sampling.seed)
        return frozenset(sent[place] for place in order[setup.asked :])


def live(request: LiveRequest, say: Callable[[str], None]) -> Path:
    """Runs the session, and returns its folder. Raises BadInput; what was measured until then stays in the
    folder."""
    base = base_of(request.url)
    suites = [find_suite(name) for name in request.suites]
    run_id = new_run_id()
    folder = request.out or Path("results") / "runs" / run_id
    refuse_a_record(folder, has_session)
    refuse_strangers(folder, (*OF_A_RUN, FIGURES))
    server = find_server(
        base, request.dialect, request.model, request.endpoint, request.key, request.deadlines
    )
    server = as_wanted(server, request.sampling.temperature, request.key, request.deadlines)
    make_writable(folder)
    with locked(folder), named_by_errors(folder, request.out is None):
        refuse_a_record(folder, has_session)  # another session may have written one since
        with drafted(folder / CASES_FILE) as draft:
            profile = Profile(request.cases, JUDGE_SECONDS, ())
            workers = usable_processors()
            plan = write_plan(suites, profile, request.sampling.seed, draft, workers=workers)
            with open(draft, "rb") as file:
                sources = [Source(*parts) for parts in map(case_from_line, file)]
        for line in plan.left_out:
            say(line)
        planned = LivePlan(server, request, sources, asking.not_offered(server, sources))
        version = f" {server.version}" if server.version else ""
        say(
            f"{server.dialect.name}{version} at {base}, model {server.model}: {len(planned.sent)} of "
            f"{counted(len(sources), 'case')} can be said to it"
        )
        _run(folder, run_id, plan, planned, say)
    return folder


def _run(folder: Path, run_id: str, plan: Plan, planned: LivePlan, say: Callable[[str], None]) -> None:
    request, server = planned.request, planned.server
    loads = _loads(planned)
    setup = LiveSetup(
        run=run_id,
        started=now(),
        harness=harness.__version__,
        argv=request.argv,
        url=base_of(request.url),
        dialect=server.dialect.name,
        version=server.version,
        model=server.model,
        endpoint=server.endpoint,
        grammars=request.grammars,
        sampling=request.sampling,
        deadlines=request.deadlines,
        loads=loads,
        cases=len(planned.sources),
        not_offered=len(planned.declined),
        machine=describe_machine(),
        hardware=hardware_key(hardware()),
        left_out=server.left_out,
        objectives=request.objectives,
    )
    if setup.not_asked:
        say(f"{counted(setup.not_asked, 'case')} {NOT_ASKED}")
    with (
        LiveRecorder(folder, setup) as recorder,
        _rows_whatever_happens(folder, setup, plan, planned) as done,
    ):
        try:
            if planned.sent:
                asyncio.run(_ask_all(recorder, setup, planned, say))
        finally:
            _judge_all(folder, recorder, planned)
        recorder.finish(now())
        done()


async def _ask_all(
    recorder: LiveRecorder, setup: LiveSetup, planned: LivePlan, say: Callable[[str], None]
) -> None:
    """Send every load, one after the other; each answer is on disk as soon as it is there."""
    server, request = planned.server, planned.request
    start = perf_counter_ns()
    client = Client(
        setup.url,
        PATHS[server.endpoint],
        request.key,
        request.deadlines,
        lambda: perf_counter_ns() - start,
        refuses_in_stream=server.dialect.refuses_in_stream,
    )
    known: set[str] = set()
    async with client.opened():
        for place, load in enumerate(setup.loads):
            say(
                f"{load.name}, {'with' if load.role == 'constrained' else 'without'} grammar: "
                f"{counted(load.requests, 'request')} ..."
            )
            send = _sender(setup.run, planned, recorder, client, known, place, load)
            try:
                await drive(load, due(load, request.sampling.seed), send, client.clock)
            except ExceptionGroup as lost:  # a full disk, say
                raise lost.exceptions[0] from lost


def _sender(
    run: str,
    planned: LivePlan,
    recorder: LiveRecorder,
    client: Client,
    known: set[str],
    load_place: int,
    load: Load,
) -> Send:
    """Returns the function that sends a request of this load; bodies are made before its first request is
    due. `run` is the session's id, and `known` has the grammars that the server has answered to, as they are
    sent."""
    server, sampling, sent = planned.server, planned.request.sampling, planned.sent
    order = (
        sent
        if load.kind == "first"
        else [sent[place] for place in asking.order(len(sent), load.requests, sampling.seed)]
    )
    made: list[tuple[Source, bytes, str]] = []
    for number in range(load.requests):
        source = planned.sources[order[number]]
        salt = salt_of(run, sampling.seed, load_place, number)
        grammar = None if load.role == "none" else source.case.grammar
        if grammar is not None and planned.request.grammars == "cold":
            grammar = asking.unique(grammar, f"{load_place}-{number}-{secrets.token_hex(4)}") or grammar
        body = body_of(server, sampling, prompt_of(source.case, sampling, salt), number, grammar)
        assert body is not None
        made.append((source, body, "" if grammar is None else f"{grammar.dialect}\0{grammar.text}"))

    async def send(number: int, due_ns: int) -> None:
        source, body, key = made[number]
        state: State = "" if not key else "warm" if key in known else "cold"

        def take(heard: Heard) -> None:
            if key and heard.message_ns:
                known.add(key)
            recorder.answer(
                Answer(number, load_place, source.suite, source.case.id, load.role, state, due_ns, heard)
            )

        await client.ask(body, server.endpoint == "chat", take)

    return send


def _loads(planned: LivePlan) -> tuple[Load, ...]:
    """Returns the loads that were asked for; before them, if grammars are to be warm, one that sends each
    grammar once."""
    if not planned.sent:
        return ()
    if planned.request.grammars != "warm":
        return planned.request.loads
    return (Load("first", "constrained", len(planned.sent), concurrency=1), *planned.request.loads)


def _judge_all(folder: Path, recorder: LiveRecorder, planned: LivePlan) -> None:
    """Judge every answer after the last request, because a judge beside the client would disturb its
    clock."""
    cases = {(source.suite, source.case.id): source.case for source in planned.sources}
    lived = read_session(folder)
    with Judge(JUDGE_SECONDS) as judge:
        for answer in lived.answers:
            recorder.judgement(answer, judge_answer(judge, cases[answer.suite, answer.case_id], answer))


@contextmanager
def _rows_whatever_happens(
    folder: Path, setup: LiveSetup, plan: Plan, planned: LivePlan
) -> Iterator[Callable[[], None]]:
    """Write rows and cases of what was judged, however the block ends. The end of the run is written only if
    the block calls the function that it gets."""
    is_done = False

    def done() -> None:
        nonlocal is_done
        is_done = True

    try:
        yield done
    finally:
        lived = read_session(folder)
        with drafted(folder / CASES_FILE) as draft, open(draft, "wb") as file:
            for source in with_outputs(planned.sources, lived):
                file.write(case_to_line(source.suite, source.suite_version, source.case))
        with Writer(folder, _info(setup, plan, planned.sources)) as writer:
            for case_rows in rows(planned.sources, lived, planned.declined, planned.not_asked(setup)):
                writer.append([(row, b"") for row in case_rows])
            if is_done:
                writer.finish(now())


def _info(setup: LiveSetup, plan: Plan, sources: Sequence[Source]) -> RunInfo:
    """Returns the run's first line: the server takes the place of the backend, and the model that of the
    vocabulary."""
    dialects = tuple(sorted({source.case.grammar.dialect for source in sources}))
    return RunInfo(
        run=setup.run,
        started=setup.started,
        harness=setup.harness,
        argv=setup.argv,
        seed=setup.sampling.seed,
        profile="live",
        timeout_s=setup.deadlines.total_s,
        memory_bytes=0,
        jobs=1,
        arms=(Arm(setup.dialect, setup.version, options_of(setup.endpoint), "", dialects, "bitmask"),),
        vocabularies={vocabulary_of(setup.model): {"size": 0, "sha256": ""}},
        suites=plan.suites,
        machine=setup.machine,
    )
