"""Plans a run: reads and checks every case of every suite, and writes it to the run's `cases.jsonl` before
anything starts."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cases.case import Case, Instance
from harness.cases.case_line import LONGEST_CASE, case_to_line, cases_in
from harness.cases.names import unused_name
from harness.cases.prepared import Prepared, Preparers, made_key, problem_with
from harness.cases.suite import Passed, Suite, read_cases
from harness.errors import LISTED, NAME, BadInput, did_you_mean
from harness.text import counted, one_line, some

NAMED = 200
"""Most characters of a contested instance's name in the run's first line."""
MOST_CONTESTED = 100
"""Contested instances of a suite that this line names for each reason; of the others it has the number."""


@dataclass(frozen=True)
class Profile:
    """How much of a suite is walked, and for how long a backend may think."""

    cases_per_suite: int | None
    timeout_s: float
    vocabularies: tuple[str, ...]
    effort: int = 0
    """How many places of a case each check looks at; 0 means no checks, -1 every place."""
    cases_of_ours: int | None = None
    """Most cases of each suite that comes with the package (None: all); a user's own cases are all walked."""


GATE_EFFORT = 1
"""Places of a case that each check looks at in a gate: few, so that the whole of our suites takes minutes."""

PROFILES = {
    "quick": Profile(20, 5.0, ("tekken",)),
    "default": Profile(None, 10.0, ("tekken", "probe"), 2, cases_of_ours=12),
    "gate": Profile(None, 10.0, ("probe",), GATE_EFFORT),
    "full": Profile(None, 30.0, ("tekken", "mistral-v3", "probe"), 16),
}


@dataclass(frozen=True)
class Plan:
    """The cases of a run, on disk.

    `offsets[i]` is where case i begins; `suites` is what the run's header says of the suites.
    """

    offsets: array[int]
    dialects: tuple[str, ...]
    suites: dict[str, dict[str, Any]]
    left_out: tuple[str, ...] = ()
    """For each suite with cases of a published corpus whose schema is none, so that no run has them, and for
    each with tools or requests that are not read: a line that counts and names them; and a line that counts
    what requests repeat."""


def write_plan(
    suites: Sequence[Suite],
    profile: Profile,
    seed: int,
    path: Path,
    respell: bool = False,
    only: Collection[str] = (),
    unicode: Collection[str] = (),
    workers: int = 1,
    made: Mapping[str, tuple[Instance, ...]] | None = None,
    bare: bool = False,
    planned: Callable[[int], None] = lambda cases: None,
) -> Plan:
    """Writes every case that is to be walked to `path`, and returns the plan.

    Raises BadInput for the first case that is none, naming more of them, before any document is made. Of a
    published corpus such cases are left out.

    Instances of regular expressions are judged by other dialects too, with the newest tables of Unicode and
    with those of `unicode`, the versions that the backends have. A JSON Schema without instances gets
    documents that are made for it. `only` selects cases by name or id. With `respell` a JSON Schema's
    instances are the spellings of its valid ones, and other cases are left out. So many `workers` judge and
    generate side by side. `made` has the documents that an earlier plan made, which are taken again. With
    `bare` none are made. `planned` is told behind each case how many there are so far.
    """
    offsets = array("q")
    dialects: list[str] = []
    described: dict[str, dict[str, Any]] = {}
    limits = [[profile.cases_per_suite, profile.cases_of_ours if suite.is_ours else None] for suite in suites]
    chosen = [
        _chosen(suite, min((most for most in some if most is not None), default=None), seed, only)
        for suite, some in zip(suites, limits, strict=True)
    ]
    refused, tools, passed = _refused(suites, chosen)
    with open(path, "wb") as file, Preparers(workers, unicode, made, respell=respell, bare=bare) as preparers:
        for suite, is_chosen, without in zip(suites, chosen, refused, strict=True):
            name = unused_name(suite.name, described)
            left_out: Counter[str] = Counter()
            about = _About(suite, name)
            cases = (case for case in _chosen_of(suite, is_chosen, left_out) if case.id not in without)
            for prepared in preparers.each(cases, name, ours=suite.is_ours):
                if prepared.case.instances or not respell:
                    offsets.append(file.tell())
                    dialects.append(prepared.case.grammar.dialect)
                    file.write(about.line_of(prepared))
                    planned(len(offsets))
            described[name] = about.described(left_out["json_schema"] if respell else left_out.total())
    lines = (*_left_out_lines(suites, refused), *_tool_lines(suites, tools), *_passed_lines(suites, passed))
    if not offsets:
        raise BadInput("; ".join(lines) or f"no case in {', '.join(suite.name for suite in suites)}")
    return Plan(offsets, tuple(dialects), described, lines)


def _refused(
    suites: Sequence[Suite], chosen: Sequence[Callable[[Case], bool]]
) -> tuple[list[dict[str, tuple[str, str]]], list[list[str]], list[Passed]]:
    """Returns, for each suite, the chosen cases of a published corpus whose schema is none: their names and
    what is wrong with them, by id; the tools that are not read beside the chosen cases; and what was passed
    over. Raises BadInput if other cases have such a schema."""
    refused: list[dict[str, tuple[str, str]]] = []
    tools: list[list[str]] = []
    passed: list[Passed] = []
    problems: list[tuple[str, str]] = []
    for suite, is_chosen in zip(suites, chosen, strict=True):
        refused.append({})
        beside: dict[str, None] = {}
        passed.append(Passed())
        for case in filter(is_chosen, read_cases(suite, passed[-1])):
            beside |= dict.fromkeys(case.left_out)
            if (problem := problem_with(case)) and case.is_published:
                refused[-1][case.id] = case.name, problem
            elif problem:
                where = suite.files[0] if len(suite.files) == 1 else suite.name
                problems.append((f"{where}: {case.name}: {problem}", case.name))
        tools.append([*(beside | passed[-1].left_out)])
    if problems:
        (first, _), *others = problems
        more = f" (and {len(others)} more like it: {_some(name for _, name in others)})" if others else ""
        raise BadInput(f"{first}{more}")
    return refused, tools, passed


def _left_out_lines(
    suites: Sequence[Suite], refused: Sequence[Mapping[str, tuple[str, str]]]
) -> tuple[str, ...]:
    """Returns a line for each suite of which published cases are left out."""
    return tuple(
        f"{suite.name}: {counted(len(without), 'case')} of MaskBench left out, whose schema is none: "
        f"{_some(name for name, _ in without.values())} (the first: {next(iter(without.values()))[1]})"
        for suite, without in zip(suites, refused, strict=True)
        if without
    )


def _tool_lines(suites: Sequence[Suite], tools: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Returns a line for each suite with tools that are left out."""
    return tuple(
        f"{suite.name}: {counted(len(names), 'tool')} left out, not read: {_some(names)}"
        for suite, names in zip(suites, tools, strict=True)
        if names
    )


def _passed_lines(suites: Sequence[Suite], passed: Sequence[Passed]) -> Iterator[str]:
    """Yields a line for each suite with requests that hold nothing, and for each in which they repeat what
    they hold."""
    for suite, over in zip(suites, passed, strict=True):
        if over.unheld:
            requests, places = counted(len(over.unheld), "request"), _some(over.unheld)
            yield f"{suite.name}: {requests} left out, without tools or a format that is read: {places}"
        if over.repeated:
            repetitions = counted(over.repeated, "repetition")
            yield f"{suite.name}: {repetitions} of requests' tools and formats left out"


def _some(names: Iterable[str]) -> str:
    """Returns the first few of the names, and how many more there are."""
    return some([one_line(name, NAME, spelled=True) for name in names], LISTED)


class _About:
    """What the run's first line says of a suite, of whose cases lines are written."""

    def __init__(self, suite: Suite, name: str) -> None:
        self.suite, self.name = suite, name
        self.digest = hashlib.sha256()
        self.cases = self.instances = self.generated = 0
        self.contested: dict[str, list[str]] = {}
        self.contested_more: Counter[str] = Counter()

    def line_of(self, prepared: Prepared) -> bytes:
        """Returns the line of one more case. Raises BadInput for one that is too long."""
        case, version = prepared.case, self.suite.version
        # The other readings are not in the digest: the same cases are the same, whichever backends they are
        # judged for.
        line = case_to_line(self.name, version, prepared.read_otherwise)
        if len(line) > LONGEST_CASE:
            raise BadInput(
                f"{self.suite.name}: {case.name}: a case of {len(line) >> 20} MiB as a run stores it; the "
                f"most is {LONGEST_CASE >> 20} MiB"
            )
        self.digest.update(case_to_line(self.name, version, case))
        self.cases += 1
        self.instances += len(case.instances)
        self.generated += prepared.generated
        for why, names in prepared.contested.items():
            named = self.contested.setdefault(why, [])
            more = names[: MOST_CONTESTED - len(named)]
            named += [f"{case.name}: {name}"[:NAMED] for name in more]
            self.contested_more[why] += len(names) - len(more)
        return line

    def described(self, left_out: int) -> dict[str, Any]:
        """Returns what is said of the suite, of which so many cases have no line."""
        about: dict[str, Any] = {
            "version": self.suite.version,
            "sha256": self.digest.hexdigest(),
            "cases": self.cases,
            "cases_in_all": self.cases + left_out,
            "instances": self.instances,
        }
        if self.generated:
            about["generated"] = self.generated
        if self.contested:
            about["contested"] = self.contested
        if more := {why: count for why, count in self.contested_more.items() if count}:
            about["contested_more"] = more
        return about


def made_documents(path: Path) -> dict[str, tuple[Instance, ...]]:
    """Returns the documents that the plan at `path` made for cases without any, by `made_key`; none, where
    none could be made."""
    return {
        made_key(suite, case): case.instances
        for _, suite, _, case in cases_in(path)
        if all(one.made_for for one in case.instances)
    }


def rows_owed(path: Path, checked: bool) -> dict[tuple[str, str], int]:
    """Returns how many rows each case of a plan must have in the end, by suite and case id, in the plan's
    order.

    That is one for each instance, or 1 for a case without any, and one more for the checks."""
    return {(suite, case.id): rows_of(case, checked) for _, suite, _, case in cases_in(path)}


def rows_of(case: Case, checked: bool) -> int:
    """Returns how many rows the case has in the end, by the rule of `rows_owed`."""
    return max(1, len(case.instances)) + int(checked)


def _chosen(suite: Suite, limit: int | None, seed: int, only: Collection[str]) -> Callable[[Case], bool]:
    """Returns a function that says whether a case is walked: those named in `only` by name or id, or else
    all, or a sample of `limit`.

    The sample has the same cases for the same seed, wherever they stand in the suite: of cases with one
    grammar, whose numbers follow their order, the ranks go by what else they hold.
    """
    if only:
        wanted = frozenset(only)
        return lambda case: case.id in wanted or case.name in wanted
    if limit is None:
        return lambda case: True

    def rank(case_id: str) -> str:
        return hashlib.sha256(f"{seed}:{case_id}".encode()).hexdigest()

    repeated: dict[str, list[tuple[str, str]]] = {}
    for case in read_cases(suite):
        content = "" if suite.is_ours else _content_hash(case)  # the order of ours is always the same
        repeated.setdefault(case.id.partition("-")[0], []).append((content, case.id))
    ranked = sorted(
        (rank(of_number), case_id)
        for cases in repeated.values()
        for (_, of_number), (_, case_id) in zip(cases, sorted(cases, key=lambda one: one[0]), strict=True)
    )
    chosen = {case_id for _, case_id in ranked[:limit]}
    return lambda case: case.id in chosen


def _content_hash(case: Case) -> str:
    """Returns a hash of what a case holds beside its grammar and its words for people."""
    instances = [(one.content, one.valid, one.tokens) for one in case.instances]
    return hashlib.sha256(repr((instances, sorted(case.options.items()))).encode()).hexdigest()


def _chosen_of(suite: Suite, chosen: Callable[[Case], bool], left_out: Counter[str]) -> Iterator[Case]:
    """Yields the chosen cases of the suite, and counts the others by dialect."""
    for case in read_cases(suite):
        if chosen(case):
            yield case
        else:
            left_out[case.grammar.dialect] += 1


def check_named(suites: Sequence[Suite], wanted: Collection[str]) -> None:
    """Raises BadInput, in one short line, if cases are named of which the suites do not have each."""
    if not wanted:
        return
    missing = dict.fromkeys(wanted)
    names = []
    for case in (case for suite in suites for case in read_cases(suite)):
        missing.pop(case.id, None)
        missing.pop(case.name, None)
        if not missing:
            return
        names.append(case.name)
    first, *others = missing
    where = some([suite.name for suite in suites], LISTED)
    are = "is" if len(others) == 1 else "are"
    more = f" (and {len(others)} more that {are} not there)" if others else ""
    raise BadInput(f'no case "{first[:100]}" in {where}{more}{did_you_mean(first, names)}')
