"""A run from what the user asked for to its last line: found, planned, started or resumed,
walked, finished.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import harness
from harness.backend.describe import Description
from harness.backend.registry import BackendSpec, parse_specs
from harness.backend.vocabulary import prepare_vocabulary
from harness.backend.vocabulary.fetched import with_all
from harness.cases.case import Instance
from harness.cases.case_line import CASES_FILE
from harness.cases.plan import (
    PROFILES,
    Plan,
    Profile,
    check_named,
    made_documents,
    rows_owed,
    write_plan,
)
from harness.cases.suite import Suite, find_suite, refuse_unreadable, unread_lines, walked_by_default
from harness.checks import made, named_checks
from harness.errors import BadInput
from harness.rows.ends import one_end_lines
from harness.rows.folder import locked, make_writable, named_by_errors, new_run_id, now, refuse_links
from harness.rows.machine import describe_machine, usable_processors
from harness.rows.resume import resume
from harness.rows.row import RunInfo, contested_lines, makes_checks
from harness.rows.sample import sample_of
from harness.rows.sessions import add_session
from harness.rows.store import has_begun, read_info, refuse_published
from harness.rows.writer import Writer
from harness.running.coordinator import run_all
from harness.running.experiment import write_experiment
from harness.running.leftovers import OF_A_RUN, new_draft, refuse_strangers
from harness.running.limits import MEMORY_GB, Limits, memory_notes
from harness.running.looking import look_at
from harness.running.planned_cases import put_back
from harness.running.progress import RunProgress
from harness.running.ray.cluster import connected, parse_executor
from harness.running.ray.sweep import sweep
from harness.running.same_run import other_checks, refuse_changes, refuse_other_checks
from harness.running.shard import Shard, share
from harness.running.taken import refuse_others, take_over
from harness.running.work import Assignment, Work, memory_lines
from harness.text import counted, one_line
from harness.whole_files import named_where_full

SEED = 0
PLANNING_SECONDS = 10.0
"""How often it is said how far the plan of a run is."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `grammarbench run` was told; None stands for the profile's own value."""

    suites: tuple[str, ...]
    backends: str
    vocabularies: tuple[str, ...] | None = None
    profile: str = "full"
    out: Path | None = None
    resume: bool = False
    jobs: int = 1
    """How many workers run at a time; on Ray 0 for as many as the cluster has processors."""
    timeout_s: float | None = None
    memory_gb: float = MEMORY_GB
    effort: int | None = None
    spellings: bool = False
    argv: tuple[str, ...] = ()
    cases_of_ours: int | None = None
    """The most cases of each of our suites; None for what the profile says."""
    only: tuple[str, ...] = ()
    """The names or ids of the only cases that are walked; empty for all."""
    bare: bool = False
    """Whether schemas that come without documents are walked as they are. Documents that are made for them
    depend on the time that the machine has, so that another machine's run is of other ones."""
    taken_from: Path | None = None
    """A run of some of the same cases or backends, finished or not: its rows are taken over, and only what it
    did not walk is walked."""
    shard: Shard | None = None
    """The share of all cases that is walked; None for all of them."""
    executor: str = ""
    """`ray` or `ray:ADDRESS`; empty for this machine."""
    shards: int | None = None
    """The number of parts into which Ray's tasks cut the cases of each backend and vocabulary; None lets the
    sweep choose."""
    decode: bool = False
    """Whether the valid instances are decoded by each strategy too, untimed."""
    checks: tuple[str, ...] = ()
    """The names or categories of the only checks that are made; empty for all of the effort."""
    check_timeout_s: float | None = None
    """The processor time of all checks of a case, after which no further one is begun; None: timeout_s."""
    seed: int = SEED
    """The seed that chooses the cases of a sample."""


@dataclass(frozen=True)
class PreparedRun:
    """A request whose names are found, and the folder that is locked for it."""

    request: Request
    folder: Path
    run_id: str
    suites: Sequence[Suite]
    specs: Sequence[BackendSpec]
    described: Description


@dataclass(frozen=True)
class Outcome:
    """Where the run lies, and how many rows it has of each status."""

    folder: Path
    statuses: dict[str, int]
    described: Description
    """What its backends and vocabularies are, for another run of the same."""


def run(
    request: Request,
    say: Callable[[str], None],
    report: Callable[[RunProgress], None],
    described: Description | None = None,
) -> Outcome:
    """Walk what is asked for, and return where its rows lie.

    `described` is what an earlier run of the same backends and vocabularies found out about them, which takes
    as long as importing them all. Raises BadInput, with everything that was already measured left where it
    is.
    """
    if request.decode and find_spec("torch") is None:
        raise BadInput('--decode needs torch; pip install "grammarbench[decode]", or leave it out')
    profile = PROFILES[request.profile]
    request = replace(request, checks=named_checks(request.checks))
    if request.checks and not made(_effort(request, profile), request.decode, request.checks):
        raise BadInput(
            "--checks names none of the checks that are made: give --effort 1 or more (--decode for those of "
            "decoding), or leave it out"
        )
    suites = [find_suite(name) for name in request.suites or walked_by_default()]
    specs = parse_specs(request.backends)
    address = parse_executor(request.executor) if request.executor else ""
    names = tuple(map(prepare_vocabulary, with_all(request.vocabularies or profile.vocabularies)))
    if len(set(names)) < len(names):
        raise BadInput(f"a vocabulary is named twice in {','.join(names)}; keep one")
    folder, run_id = _folder(request)
    check_named(suites, request.only)
    with locked(folder), named_by_errors(folder, request.out is None):
        if not request.resume:
            _refuse_occupied(folder)  # another run may have written there since
        if described is None:
            refuse_unreadable(suites)
            described = look_at(specs, names, say)
        prepared = PreparedRun(request, folder, run_id, suites, specs, described)
        if not address:
            return _walk_prepared(prepared, request.jobs, run_all, say, report)
        say(f"{'starting Ray' if address == 'local' else f'connecting to Ray at {address}'} ...")
        walk = partial(sweep, shards=request.shards, vocabularies=described.vocabularies)
        with connected(address, request.jobs) as jobs:
            return _walk_prepared(prepared, jobs, walk, say, report)


def _walk_prepared(
    prepared: PreparedRun,
    jobs: int,
    walk: Callable[..., None],
    say: Callable[[str], None],
    report: Callable[[RunProgress], None],
) -> Outcome:
    """Plan, start or resume, walk and finish, in a folder that is ours.

    `walk` is `run_all`, or what does its work elsewhere.
    """
    request, folder = prepared.request, prepared.folder
    profile = PROFILES[request.profile]
    if request.cases_of_ours is not None:
        profile = replace(profile, cases_of_ours=request.cases_of_ours)
    draft = new_draft(folder)
    try:
        with named_where_full(folder / CASES_FILE):
            plan = _plan(prepared, profile, draft, say)
        info = _info_of(prepared, profile, plan, jobs)
        chosen = range(len(plan.offsets)) if request.shard is None else _share(draft, request.shard)
        works = [Work(arm, name, deque(chosen)) for name in info.vocabularies for arm in info.arms]
        statuses: dict[str, int] = {}
        if request.taken_from:
            refuse_others(request.taken_from, info)
        if request.resume:
            refuse_changes(read_info(folder), info, folder)
            refuse_other_checks(folder, made(info.effort, info.decode, info.checks))
            if put_back(draft, folder):
                say(f"{folder}/cases.jsonl was not as planned, or missing: it is put back")
            statuses = _leave_out_finished(folder, works, makes_checks(info.effort, info.decode), say)
            say(f"resuming {folder} with {counted(sum(statuses.values()), 'row')}")
            add_session(folder, info)
        else:
            os.replace(draft, folder / CASES_FILE)
            write_experiment(folder, request, prepared.specs, info)
    finally:
        draft.unlink(missing_ok=True)
    memory = [] if request.executor else memory_notes(jobs, info.memory_bytes)
    for note in (sample_of(info), *one_end_lines(info), *memory):
        if note:
            say(one_line(note, spelled=True))
    say(
        f"{counted(len(chosen), 'case')} x {counted(len(info.arms), 'backend')} x "
        f"{counted(len(info.vocabularies), 'tokenizer')} into {folder}"
    )
    limits = Limits(
        info.timeout_s, info.memory_bytes, info.effort, info.decode, info.checks, info.check_timeout_s
    )
    with Writer(folder, None if request.resume else info, statuses) as writer:
        if request.taken_from:
            _take_over(request.taken_from, folder, info, works, writer, say)
        walk(Assignment(plan, folder / CASES_FILE, works, limits, writer, report), jobs)
        for line in memory_lines(works, info.memory_bytes, jobs):
            say(one_line(line, spelled=True))
        writer.finish(now())
        return Outcome(folder, writer.statuses, prepared.described)


def _plan(prepared: PreparedRun, profile: Profile, draft: Path, say: Callable[[str], None]) -> Plan:
    """Writes the plan of the run's cases to `draft`, and says what of them is not read or not judged."""
    request = prepared.request
    plan = write_plan(
        prepared.suites,
        profile,
        request.seed,
        draft,
        respell=request.spellings,
        only=request.only,
        unicode={one.unicode for one in prepared.described.arms},
        workers=usable_processors(),
        made=None if request.spellings else _made_before(request, prepared.folder, say),
        bare=request.bare,
        planned=_planned(say),
    )
    for line in (*unread_lines(prepared.suites), *plan.left_out, *contested_lines(plan.suites)):
        say(one_line(line, spelled=True))
    return plan


def _take_over(
    earlier: Path,
    folder: Path,
    info: RunInfo,
    works: Sequence[Work],
    writer: Writer,
    say: Callable[[str], None],
) -> None:
    """Takes over the rows of an earlier run, and says of how many cases, whether other checks were made of
    these, and of which suites none."""
    taken, others = take_over(earlier, info, folder / CASES_FILE, works, writer)
    say(f"{counted(taken, 'case')} taken over from {earlier}")
    if taken:
        add_session(folder, read_info(earlier))
        if apart := other_checks(earlier, made(info.effort, info.decode, info.checks)):
            say(f"they were walked with another GrammarBench, and have its checks alone ({apart})")
    if others:
        names = one_line(", ".join(others), spelled=True)
        say(f"its cases of {names} were others, or cannot be told from others: walked anew")


def _planned(say: Callable[[str], None]) -> Callable[[int], None]:
    """Returns what says every PLANNING_SECONDS how many cases are planned: judging ten thousand takes
    minutes."""
    told = time.monotonic()

    def planned(cases: int) -> None:
        nonlocal told
        if (moment := time.monotonic()) - told >= PLANNING_SECONDS:
            told = moment
            say(f"reading and judging the cases: {cases:,} so far ...")

    return planned


def _made_before(
    request: Request, folder: Path, say: Callable[[str], None]
) -> dict[str, tuple[Instance, ...]] | None:
    """Returns the documents that were made for the run that goes on, or that rows are taken over from; None
    for a new run, where a published one does not have them, and where those of a run that goes on were
    damaged: the ones that are made now may be the same. Where rows are taken over, a case that has none there
    gets its own, because that run may have made none (`--bare`)."""
    before = folder if request.resume else request.taken_from
    if before is None or not (before / CASES_FILE).is_file():
        return None
    try:
        made = made_documents(before / CASES_FILE)
        return made if request.resume else {key: documents for key, documents in made.items() if documents}
    except BadInput as error:
        if not request.resume:
            raise
        say(f"{folder}/{error}")
        return None


def _info_of(prepared: PreparedRun, profile: Profile, plan: Plan, jobs: int) -> RunInfo:
    """Returns the first line of the run's rows."""
    request, described = prepared.request, prepared.described
    return RunInfo(
        run=prepared.run_id,
        started=now(),
        harness=harness.__version__,
        argv=request.argv,
        seed=request.seed,
        profile=request.profile,
        timeout_s=request.timeout_s or profile.timeout_s,
        memory_bytes=int(request.memory_gb * 1e9),
        jobs=jobs,
        effort=_effort(request, profile),
        decode=request.decode,
        checks=request.checks,
        check_timeout_s=request.check_timeout_s,
        shard=str(request.shard or ""),
        executor=request.executor.partition(":")[0],
        asked=request.suites,
        arms=described.arms,
        vocabularies=described.vocabularies,
        readings=described.readings,
        suites=plan.suites,
        machine=describe_machine(),
    )


def _share(cases: Path, shard: Shard) -> list[int]:
    """Returns the places of the shard's cases. Raises BadInput if it has none."""
    keys = rows_owed(cases, False)
    chosen = share(keys, shard)
    if not chosen:
        are = "is" if len(keys) == 1 else "are"
        raise BadInput(
            f"shard {shard} is empty: there {are} {counted(len(keys), 'case')}; cut them into at most so "
            "many shards"
        )
    return chosen


def _leave_out_finished(
    folder: Path, works: Sequence[Work], checked: bool, say: Callable[[str], None]
) -> dict[str, int]:
    """Make the run whole, leave in the works what it owes, and return the count of its rows by status."""
    owed = rows_owed(folder / CASES_FILE, checked)
    finished, statuses = resume(folder, owed, say)
    keys = list(owed)
    for work in works:
        work.cases = deque(number for number in work.cases if (*work.who, *keys[number]) not in finished)
    return statuses


def _folder(request: Request) -> tuple[Path, str]:
    """Returns the run's folder, which is made if need be, and the run's id. Raises BadInput."""
    run_id = new_run_id()
    folder = request.out or Path("results") / "runs" / run_id
    if request.resume:
        if request.out is None:
            raise BadInput("--resume needs --out: the folder of the run to continue")
        refuse_published(folder, "resumed", "give another --out")
        if not has_begun(folder):
            raise BadInput(f"{folder}: no run here that has begun; leave --resume out")
        refuse_links(folder, OF_A_RUN)
        make_writable(folder, "make it writable, or go on in a copy")
        return folder, read_info(folder).run
    _refuse_occupied(folder)
    make_writable(folder)
    return folder, run_id


def _refuse_occupied(folder: Path) -> None:
    """Raises BadInput if a new run would write over something in the folder."""
    if has_begun(folder):
        raise BadInput(f"{folder} holds a run already; add --resume to continue it, or give another --out")
    refuse_strangers(folder, OF_A_RUN)


def _effort(request: Request, profile: Profile) -> int:
    """Returns the effort of the checks; spellings are only walked, unless somebody wants checks too."""
    if request.effort is not None:
        return request.effort
    return 0 if request.spellings else profile.effort
