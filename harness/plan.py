"""What a run will walk: every case of every suite read, checked and written to the run's `cases.jsonl` before anything starts."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.case import Case, case_from_line, case_to_line
from harness.errors import BadInput, did_you_mean
from harness.judge import Judge, check_schema
from harness.spellings import spelled
from harness.suite import Suite, deep, read_cases

JUDGE_SECONDS = 5.0
ALL = -1


@dataclass(frozen=True)
class Profile:
    """How much of a suite is walked, and for how long a backend may think."""

    cases_per_suite: int | None
    timeout_s: float
    vocabularies: tuple[str, ...]
    effort: int = 0
    """How many places of a case each check looks at; 0: no checks, ALL: every place."""
    cases_of_ours: int | None = None
    """Of each suite that comes with the package no more than so many; a user's own cases are all walked."""


PROFILES = {
    "quick": Profile(20, 5.0, ("tekken",)),
    "default": Profile(None, 10.0, ("tekken", "probe"), 2, cases_of_ours=12),
    "full": Profile(None, 30.0, ("tekken", "mistral-v3", "probe"), 16),
}


@dataclass(frozen=True)
class Plan:
    """The cases of a run, on disk. `offsets[i]` is where case i begins; `suites` is what the run's header says of the suites."""

    offsets: array[int]
    dialects: tuple[str, ...]
    suites: dict[str, dict[str, Any]]


def write_plan(suites: Sequence[Suite], profile: Profile, seed: int, path: Path, respell: bool = False, only: Collection[str] = ()) -> Plan:
    """Read every case into `path`. Raises BadInput for the first case that is none, saying how many more there are.

    With `only`, no case but those, by name or id. With `respell` a JSON Schema's instances are the spellings of its valid ones,
    and other cases are left out.
    """
    offsets = array("q")
    dialects: list[str] = []
    told: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    with open(path, "wb") as file, Judge(JUDGE_SECONDS) as judge:
        for suite in suites:
            name = _unused_name(suite.name, told)
            digest = hashlib.sha256()
            counts = {"cases": 0, "instances": 0}
            limits = [profile.cases_per_suite, profile.cases_of_ours if suite.is_ours else None]
            limit = min((each for each in limits if each is not None), default=None)
            for case in _chosen(suite, limit, seed) if not only else _named(suite, only):
                if problem := _problem(case):
                    problems.append(f"{suite.files[0] if len(suite.files) == 1 else suite.name}: {case.name}: {problem}")
                    continue
                if respell:
                    case = spelled(case) if case.grammar.dialect == "json_schema" else replace(case, instances=())
                    if not case.instances:
                        continue
                line = case_to_line(name, suite.version, _judged(case, judge))
                digest.update(line)
                offsets.append(file.tell())
                dialects.append(case.grammar.dialect)
                file.write(line)
                counts["cases"] += 1
                counts["instances"] += len(case.instances)
            told[name] = {"version": suite.version, "sha256": digest.hexdigest(), **counts}
    if problems:
        more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
        raise BadInput(f"{problems[0]}{more}")
    if not offsets and only:
        names = [case.name for suite in suites for case in read_cases(suite)]
        wanted = next(iter(only))
        raise BadInput(f'no case "{wanted}" in {", ".join(each.name for each in suites)}{did_you_mean(wanted, names[:2000])}')
    if not offsets:
        raise BadInput(f"no case in {', '.join(each.name for each in suites)}")
    return Plan(offsets, tuple(dialects), told)


def rows_owed(path: Path, checked: bool) -> dict[tuple[str, str], int]:
    """How many rows each case of a plan owes, by suite and case id, in the plan's order.

    Its instances, or 1 for a case without; and one for the checks.
    """
    checks = int(checked)
    with open(path, "rb") as file:
        return {(suite, case.id): max(1, len(case.instances)) + checks for suite, _, case in map(case_from_line, file)}


def _unused_name(name: str, taken: dict[str, Any]) -> str:
    """Two folders of one name are two suites: the second is called `name-2`."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def _chosen(suite: Suite, limit: int | None, seed: int) -> Iterator[Case]:
    """All cases, or a sample of that many: the same ones for the same seed, wherever they stand in the suite."""
    if limit is None:
        return read_cases(suite)

    def rank(case_id: str) -> str:
        return hashlib.sha256(f"{seed}:{case_id}".encode()).hexdigest()

    ranked = sorted((rank(case.id), case.id) for case in read_cases(suite))
    chosen = {case_id for _, case_id in ranked[:limit]}
    return (case for case in read_cases(suite) if case.id in chosen)


def _named(suite: Suite, wanted: Collection[str]) -> Iterator[Case]:
    return (case for case in read_cases(suite) if case.id in wanted or case.name in wanted)


def _problem(case: Case) -> str:
    """What is wrong with a schema that is no schema; empty if it is one."""
    if case.grammar.dialect != "json_schema":
        return ""
    check: Callable[[], str | None] = lambda: check_schema(case.grammar.text, case.options.get("draft"))  # noqa: E731
    said = deep(check, case.name)
    return f"not a JSON Schema: {said}" if said else ""


def _judged(case: Case, judge: Judge) -> Case:
    """The case with a verdict on each instance of which nobody said whether it is valid, if there is a judge for its dialect."""
    if all(each.valid is not None for each in case.instances):
        return case
    draft, formats = case.options.get("draft"), case.options.get("format") == "assert"
    instances = tuple(
        each
        if each.valid is not None
        else replace(each, valid=judge.verdict(case.grammar, each.content, draft=draft, assert_formats=formats))
        for each in case.instances
    )
    return replace(case, instances=instances)
