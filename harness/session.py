"""A run from what the user asked for to its last line: found, planned, started or resumed, walked, finished."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import harness
from harness.booking import Work
from harness.describe import Description, describe
from harness.environments import resolve
from harness.errors import BadInput
from harness.machine import describe_machine
from harness.on_ray.cluster import connected, parse_executor
from harness.on_ray.sweep import sweep
from harness.plan import PROFILES, Profile, rows_owed, write_plan
from harness.registry import parse_specs
from harness.row import RunInfo, arm, makes_checks
from harness.run import Limits, Progress, run_all
from harness.shard import Shard, share
from harness.store import Writer, has_begun, locked, read_info, resume
from harness.suite import Suite, find_suite, walked_by_default
from harness.vocabulary import prepare_vocabulary

SEED = 0

FREE = {"run", "started", "argv", "machine", "jobs", "executor"}
"""The fields of a run's first line in which two parts of one run may differ."""


@dataclass(frozen=True)
class Request:
    """What `grammarbench run` was told; None stands for the profile's own."""

    suites: tuple[str, ...]
    backends: str
    vocabularies: tuple[str, ...] | None
    profile: str
    out: Path | None
    resume: bool
    jobs: int
    """Workers at a time; on Ray 0 for as many as the cluster has processors."""
    timeout_s: float | None
    memory_gb: float
    effort: int | None
    spellings: bool
    argv: tuple[str, ...]
    cases_of_ours: int | None = None
    """Of each of our suites no more than so many; None: what the profile says."""
    only: tuple[str, ...] = ()
    """No cases but those, by name or id; empty: all."""
    shard: Shard | None = None
    """Of all cases that share only."""
    executor: str = ""
    """`ray` or `ray:ADDRESS`; empty: this machine."""
    shards: int | None = None
    """On Ray: into how many parts the cases of each backend and vocabulary are cut; None: as is fit."""
    decode: bool = False
    """Decode the valid instances by each strategy, untimed."""


@dataclass(frozen=True)
class Outcome:
    """Where the run lies, and how many rows it has of each status."""

    folder: Path
    statuses: dict[str, int]


def run(request: Request, say: Callable[[str], None], report: Callable[[Progress], None]) -> Outcome:
    """Do it. Raises BadInput, with everything that was already measured left where it is."""
    if request.decode and find_spec("torch") is None:
        raise BadInput('--decode needs torch; pip install "grammarbench[decode]", or leave it out')
    profile = PROFILES[request.profile]
    suites = [find_suite(name) for name in request.suites or walked_by_default()]
    specs = parse_specs(request.backends)
    address = parse_executor(request.executor) if request.executor else ""
    names = tuple(prepare_vocabulary(name) for name in request.vocabularies or profile.vocabularies)
    if len(set(names)) < len(names):
        raise BadInput(f"a vocabulary is named twice in {','.join(names)}; keep one")
    folder, run_id = _folder(request)
    with locked(folder):
        say(f"looking at {len(specs)} backend(s) and {len(names)} vocabulary(ies) ...")
        placed = resolve(specs, say)
        described = describe([str(spec) for spec, _ in placed], names, [python for _, python in placed])
        check_distinct(described)
        if not address:
            return _run_in(folder, run_id, request, suites, described, request.jobs, run_all, say, report)
        say(f"{'starting Ray' if address == 'local' else f'connecting to Ray at {address}'} ...")
        walk = partial(sweep, shards=request.shards, vocabularies=described.vocabularies)
        with connected(address, request.jobs) as jobs:
            return _run_in(folder, run_id, request, suites, described, jobs, walk, say, report)


def check_distinct(described: Description) -> None:
    """Rows are told apart by backend, version and options."""
    seen = set()
    for each in described.arms:
        who = (each.backend, each.version, each.options)
        if who in seen:
            raise BadInput(f"{arm(each)} {each.version} is asked for twice: a version that is installed is the same as none; keep one")
        seen.add(who)


def _run_in(
    folder: Path,
    run_id: str,
    request: Request,
    suites: Sequence[Suite],
    described: Description,
    jobs: int,
    walk: Callable[..., None],
    say: Callable[[str], None],
    report: Callable[[Progress], None],
) -> Outcome:
    """Plan, start or resume, walk and finish, in a folder that is ours. `walk` is `run_all`, or what does its work elsewhere."""
    profile = PROFILES[request.profile]
    if request.cases_of_ours is not None:
        profile = replace(profile, cases_of_ours=request.cases_of_ours)
    draft = folder / f"cases.{secrets.token_hex(4)}.new"
    try:
        plan = write_plan(suites, profile, SEED, draft, respell=request.spellings, only=request.only)
        info = RunInfo(
            run=run_id,
            started=now(),
            harness=harness.__version__,
            argv=request.argv,
            seed=SEED,
            profile=request.profile,
            timeout_s=request.timeout_s or profile.timeout_s,
            memory_bytes=int(request.memory_gb * 1e9),
            jobs=jobs,
            effort=_effort(request, profile),
            decode=request.decode,
            shard=str(request.shard or ""),
            executor=request.executor.partition(":")[0],
            arms=described.arms,
            vocabularies=described.vocabularies,
            suites=plan.suites,
            machine=describe_machine(),
        )
        chosen = range(len(plan.offsets)) if request.shard is None else _share(draft, request.shard)
        works = [Work(arm, name, deque(chosen)) for name in info.vocabularies for arm in info.arms]
        statuses: dict[str, int] = {}
        if request.resume:
            _same(read_info(folder), info, folder)
            statuses = _leave_out_finished(folder, works, makes_checks(info.effort, info.decode))
            say(f"resuming {folder}: {sum(statuses.values())} rows are there")
        else:
            os.replace(draft, folder / "cases.jsonl")
    finally:
        draft.unlink(missing_ok=True)
    say(f"{len(chosen)} cases x {len(info.arms)} backends x {len(info.vocabularies)} vocabularies into {folder}")
    limits = Limits(info.timeout_s, info.memory_bytes, info.effort, info.decode)
    with Writer(folder, None if request.resume else info, statuses) as writer:
        walk(plan, works, limits, jobs, writer, folder / "cases.jsonl", report)
        writer.finish(now())
        return Outcome(folder, writer.statuses)


def _share(cases: Path, shard: Shard) -> list[int]:
    """The places of the shard's cases. Raises BadInput if it has none."""
    keys = rows_owed(cases, False)
    chosen = share(keys, shard)
    if not chosen:
        raise BadInput(f"shard {shard} is empty: there are {len(keys)} cases; cut them into at most so many shards")
    return chosen


def _leave_out_finished(folder: Path, works: Sequence[Work], checked: bool) -> dict[str, int]:
    """Make the run whole again, and leave in the works what it still owes; the count of its rows by status."""
    owed = rows_owed(folder / "cases.jsonl", checked)
    finished, statuses = resume(folder, owed)
    keys = list(owed)
    for work in works:
        who = (work.arm.backend, work.arm.version, work.arm.options, work.vocabulary)
        work.cases = deque(number for number in work.cases if (*who, *keys[number]) not in finished)
    return statuses


def _folder(request: Request) -> tuple[Path, str]:
    """The run's folder, made if need be, and the run's id."""
    run_id = new_run_id()
    folder = request.out or Path("results") / "runs" / run_id
    there = has_begun(folder)
    if request.resume:
        if request.out is None:
            raise BadInput("--resume needs --out: the folder of the run to go on with")
        if not there:
            raise BadInput(f"{folder}: no run here that has begun; leave --resume out")
        return folder, read_info(folder).run
    if there:
        raise BadInput(f"{folder} holds a run already; add --resume to go on with it, or give another --out")
    make_writable(folder)
    return folder, run_id


def new_run_id() -> str:
    """The time to the second, and four random digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def make_writable(folder: Path) -> None:
    """Make the folder if need be. Raises BadInput if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written ({error.strerror}); give another --out") from error


def _same(then: RunInfo, now: RunInfo, folder: Path) -> None:
    """A run can only go on as what it was."""
    for each in fields(RunInfo):
        before, after = getattr(then, each.name), getattr(now, each.name)
        if each.name not in FREE and before != after:
            was, is_now = difference(each.name, before, after)
            raise BadInput(f"{folder} was started with other options ({was}; now {is_now}); repeat its command, or give another --out")


def difference(name: str, before: Any, after: Any) -> tuple[str, str]:
    """A field with both of its values, short: of a table only what differs."""
    if name == "arms":
        before, after = ([f"{arm.backend} {arm.version} {arm.options}".strip() for arm in each] for each in (before, after))
    if isinstance(before, dict):
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        before, after = {key: before.get(key) for key in changed}, {key: after.get(key) for key in changed}
    return f"{name} {_brief(before)}", _brief(after)


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 160 else text[:157] + "..."


def now() -> str:
    """As a record has it: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _effort(request: Request, profile: Profile) -> int:
    """Spellings are only walked, unless somebody wants checks too."""
    if request.effort is not None:
        return request.effort
    return 0 if request.spellings else profile.effort
