"""A live session from what the user asked for to its last line: found, planned, asked, judged, finished."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

import harness
from harness.case import case_from_line, case_to_line
from harness.errors import BadInput
from harness.judge import Judge
from harness.live import asking
from harness.live.answer import Answer, Heard, State
from harness.live.asking import Grammars, Sampling, Source, body_of, prompt_of, salt_of
from harness.live.client import Client, Deadlines, Key
from harness.live.dialects import PATHS, Endpoint
from harness.live.judging import JUDGE_SECONDS, judge_answer, options_of, rows, vocabulary_of, with_outputs
from harness.live.load import Load, Send, drive, due
from harness.live.record import Recorder, Setup, has_session, read_session
from harness.live.server import Server, base_of, find_server
from harness.machine import describe_machine, hardware, hardware_key
from harness.plan import Plan, Profile, write_plan
from harness.row import Arm, RunInfo
from harness.session import make_writable, new_run_id, now
from harness.store import Writer, has_begun, locked
from harness.suite import find_suite


@dataclass(frozen=True)
class Request:
    """What `grammarbench live` was told."""

    url: str
    suites: tuple[str, ...]
    cases: int | None
    """Of each suite at most."""
    dialect: str | None
    model: str | None
    endpoint: Endpoint
    key: Key
    grammars: Grammars
    sampling: Sampling
    deadlines: Deadlines
    loads: tuple[Load, ...]
    out: Path | None
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Planned:
    """What is fixed before the first request."""

    server: Server
    request: Request
    sources: list[Source]
    declined: dict[int, str]
    """By the place of a source: why it is not sent."""

    @property
    def sent(self) -> list[int]:
        """The places of the sources that are sent."""
        return [place for place in range(len(self.sources)) if place not in self.declined]


def live(request: Request, say: Callable[[str], None]) -> Path:
    """Do it; the folder. Raises BadInput, with everything that was already measured left where it is."""
    base = base_of(request.url)
    suites = [find_suite(name) for name in request.suites]
    run_id = new_run_id()
    folder = request.out or Path("results") / "runs" / run_id
    if has_session(folder) or has_begun(folder):
        raise BadInput(f"{folder} holds a record already; give another --out")
    server = find_server(base, request.dialect, request.model, request.endpoint, request.key, request.deadlines)
    make_writable(folder)
    with locked(folder):
        draft = folder / f"cases.{secrets.token_hex(4)}.new"
        try:
            plan = write_plan(suites, Profile(request.cases, JUDGE_SECONDS, ()), request.sampling.seed, draft)
            with open(draft, "rb") as file:
                sources = [Source(*each) for each in map(case_from_line, file)]
            os.replace(draft, folder / "cases.jsonl")
        finally:
            draft.unlink(missing_ok=True)
        planned = Planned(server, request, sources, asking.not_offered(server, sources))
        version = f" {server.version}" if server.version else ""
        say(
            f"{server.dialect.name}{version} at {base}, model {server.model}: {len(planned.sent)} of {len(sources)} cases can be said to it"
        )
        _run(folder, run_id, plan, planned, say)
    return folder


def _run(folder: Path, run_id: str, plan: Plan, planned: Planned, say: Callable[[str], None]) -> None:
    request, server = planned.request, planned.server
    loads = _loads(planned)
    setup = Setup(
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
    )
    with Recorder(folder, setup) as recorder, _rows_whatever_happens(folder, setup, plan, planned) as done:
        try:
            if planned.sent:
                asyncio.run(_ask_all(recorder, setup, planned, say))
        finally:
            _judge_all(folder, recorder, planned)
        recorder.finish(now())
        done()


async def _ask_all(recorder: Recorder, setup: Setup, planned: Planned, say: Callable[[str], None]) -> None:
    """Every load, one after the other; each answer is on disk when it is there."""
    server, request = planned.server, planned.request
    client = Client(setup.url, PATHS[server.endpoint], request.key, request.deadlines)
    start = perf_counter_ns()
    client.clock = lambda: perf_counter_ns() - start
    asked = Asked(planned, recorder, client)
    async with client.opened():
        for place, load in enumerate(setup.loads):
            say(f"{load.name}, {'with' if load.role == 'constrained' else 'without'} grammar: {load.requests} requests ...")
            try:
                await drive(load, due(load, request.sampling.seed), asked.sender(place, load), client.clock)
            except ExceptionGroup as lost:  # a full disk, say
                raise lost.exceptions[0] from lost


class Asked:
    """Sends the requests of a load and keeps what they share: which grammars the server has answered to."""

    def __init__(self, planned: Planned, recorder: Recorder, client: Client) -> None:
        self.planned, self.recorder, self.client = planned, recorder, client
        self.known: set[str] = set()
        """Of grammars as they are sent."""

    def sender(self, load_place: int, load: Load) -> Send:
        """Of this load; bodies are made before its first request is due."""
        planned = self.planned
        server, sampling = planned.server, planned.request.sampling
        sent = planned.sent
        order = sent if load.kind == "first" else [sent[each] for each in asking.order(len(sent), load.requests, sampling.seed)]
        made: list[tuple[Source, bytes, str]] = []
        for number in range(load.requests):
            source = planned.sources[order[number]]
            salt = salt_of(sampling.seed, load_place, number)
            grammar = None if load.role == "none" else source.case.grammar
            if grammar is not None and planned.request.grammars == "cold":
                grammar = asking.unique(grammar, f"{load_place}-{number}-{secrets.token_hex(4)}") or grammar
            body = body_of(server, sampling, prompt_of(source.case, sampling, salt), number, grammar)
            assert body is not None
            made.append((source, body, "" if grammar is None else f"{grammar.dialect}\0{grammar.text}"))

        async def send(number: int, due_ns: int) -> None:
            source, body, key = made[number]
            state: State = "" if not key else "warm" if key in self.known else "cold"

            def take(heard: Heard) -> None:
                if key and heard.message_ns:
                    self.known.add(key)
                self.recorder.answer(Answer(number, load_place, source.suite, source.case.id, load.role, state, due_ns, heard))

            await self.client.ask(body, server.endpoint == "chat", take)

        return send


def _loads(planned: Planned) -> tuple[Load, ...]:
    """Those asked for; before them, where grammars are to be warm, each grammar once."""
    if not planned.sent:
        return ()
    if planned.request.grammars != "warm":
        return planned.request.loads
    return (Load("first", "constrained", len(planned.sent), concurrency=1), *planned.request.loads)


def _judge_all(folder: Path, recorder: Recorder, planned: Planned) -> None:
    """Every answer, after the last request: a judge beside the client would disturb its clock."""
    cases = {(each.suite, each.case.id): each.case for each in planned.sources}
    lived = read_session(folder)
    with Judge(JUDGE_SECONDS) as judge:
        for each in lived.answers:
            recorder.judgement(each, judge_answer(judge, cases[each.suite, each.case_id], each))


@contextmanager
def _rows_whatever_happens(folder: Path, setup: Setup, plan: Plan, planned: Planned) -> Iterator[Callable[[], None]]:
    """Writes rows and cases of what was judged, however the block ends; with an end only if it says that it is done."""
    is_done = False

    def done() -> None:
        nonlocal is_done
        is_done = True

    try:
        yield done
    finally:
        lived = read_session(folder)
        fresh = folder / f"cases.{secrets.token_hex(4)}.new"
        with open(fresh, "wb") as file:
            for each in with_outputs(planned.sources, lived):
                file.write(case_to_line(each.suite, each.suite_version, each.case))
        os.replace(fresh, folder / "cases.jsonl")
        with Writer(folder, _info(setup, plan, planned.sources)) as writer:
            for found in rows(planned.sources, lived, planned.declined):
                writer.append([(row, b"") for row in found])
            if is_done:
                writer.finish(now())


def _info(setup: Setup, plan: Plan, sources: Sequence[Source]) -> RunInfo:
    """The run's first line: the server stands where a run has its backend, the model where it has the vocabulary."""
    dialects = tuple(sorted({each.case.grammar.dialect for each in sources}))
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
