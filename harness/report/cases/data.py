"""What the case explorer is given: an index of all cases by column, and their details in shards; packed, and
cut to fit one page."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.outcomes.case_state import FAILED
from harness.outcomes.outcome import FAILURES
from harness.outcomes.summary import ArmSummary, CaseSummary, fills_of
from harness.report.cases.cases import CASE_LETTERS, LETTERS, CaseNoted, Cases, Vocabularies, details
from harness.report.cases.failing import CASE_KINDS, OUTCOMES
from harness.report.cases.groups import Group, Signed, differs, grouped
from harness.report.page.lines import Line, solving_nothing
from harness.rows.again import suite_word
from harness.text import beginning

FORMAT = 2
"""Of the index and of report.json; it is raised where a field is renamed or means something else."""
USUAL, MOST = 2_000_000, 5_000_000
"""Bytes of a page: what we aim at, and what it never exceeds."""
SHARD = 1_500_000
"""Characters of JSON in one shard: it opens at once, and many compress better than one by one."""
QUIET = "that work without a divergence, or are not judged or not measured, on every arm"
"""What is true of the cases that are left off first."""
CUTS = (4096, 1024)
"""Characters of a grammar, bytes of an instance, where the page would be too large with all of them; the
first that fits."""


@dataclass(frozen=True)
class Explored:
    """All cases of the page, the failing ones first."""

    index: dict[str, Any]
    """Columns; a case is its place in them."""
    failing: int
    cases: list[CaseNoted]
    groups: list[Group]
    details: list[dict[str, Any]]
    """The details of each case: grammar, instances, and what went wrong."""
    vocabularies: Vocabularies
    """The vocabularies of the runs that are on this machine."""
    page: dict[str, Any]
    """What the page's script is told of where the page lies, and no other reader of the index."""


@dataclass(frozen=True)
class Packed:
    """What goes onto the page, or into files beside it: gzip as base64."""

    index: str
    shards: list[str]
    stated: list[str]
    """What was left off, in words."""
    split: bool
    cases: int
    """How many of the cases the list has."""

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.index) + sum(map(len, self.shards))


def explore(cases: Cases, lines: Sequence[Line], *, is_alone: bool = False) -> Explored:
    """Returns everything that the runs say of every case, in the order of the groups. Raises BadInput.

    `is_alone`: no report.json lies beside the page.
    """
    positions = {(line.run.place, line.arm.key): line.position for line in lines}
    solve_nothing = frozenset(line.position for line in solving_nothing(lines))
    noted = sorted(cases.noted.values(), key=lambda case: (case.suite, case.name, case.id))
    signed = [Signed(case.tags, _vector(case, positions, len(lines))) for case in noted]
    chosen = [place for place, case in enumerate(noted) if case.is_shown_first]
    groups = grouped(signed, chosen, solve_nothing)
    of = {place: number for number, group in enumerate(groups) for place in group.members}
    failing = set(chosen)
    order = sorted(range(len(noted)), key=lambda place: (place not in failing, of.get(place, 0), place))
    new = {place: number for number, place in enumerate(order)}
    groups = [replace(group, members=tuple(new[place] for place in group.members)) for group in groups]
    noted, signed = [noted[place] for place in order], [signed[place] for place in order]
    folders = list(dict.fromkeys(line.run.folder for line in lines))
    vocabularies: Vocabularies = {}
    return Explored(
        _index(noted, signed, groups, lines, solve_nothing),
        len(failing),
        noted,
        groups,
        details(noted, folders, positions, vocabularies),
        vocabularies,
        _page(noted, lines, is_alone),
    )


def _page(noted: list[CaseNoted], lines: Sequence[Line], is_alone: bool) -> dict[str, Any]:
    """Returns how many cases there are in all, which runs can be reproduced, the words that name the suites
    in a command, and whether the page is alone."""
    runs = {line.run.place: line.run for line in lines}
    return {
        "in_all": len(noted),
        "repro": [run.can_repro for run in runs.values()],
        "walked_as": [suite_word(suite) for suite in dict.fromkeys(case.suite for case in noted)],
        "alone": is_alone,
    }


def _vector(case: CaseNoted, positions: dict[Any, int], arms: int) -> tuple[str, ...]:
    vector = [""] * arms
    for who in case.rows:
        vector[positions[who]] = case.kind(who)
    return tuple(vector)


def _index(
    noted: list[CaseNoted],
    signed: list[Signed],
    groups: list[Group],
    lines: Sequence[Line],
    solve_nothing: frozenset[int],
) -> dict[str, Any]:
    suites, dialects = (
        list(dict.fromkeys(column))
        for column in ([case.suite for case in noted], [case.dialect for case in noted])
    )
    tags = list(dict.fromkeys(tag for case in noted for tag in case.tags))
    place_of = [{name: place for place, name in enumerate(names)} for names in (suites, dialects, tags)]
    group_of = {member: number for number, group in enumerate(groups) for member in group.members}
    runs = {line.run.place: line.run for line in lines}
    times = [_times(line.arm, noted) for line in lines]
    return {
        "kind": "grammarbench report",
        "format": FORMAT,
        "runs": [{"run": run.info.run, "started": run.info.started,
        "folder": str(run.told_folder), "sample": run.sample, "incomplete": run.why_not_whole}
        for run in runs.values()],
        "arms": [
            _arm(line, list(runs).index(line.run.place), line.position in solve_nothing) for line in lines
        ],
        "states": [
            {"name": name, "letter": CASE_LETTERS[name], "title": title, "fails": name in FAILED} for name,
            title in CASE_KINDS.items()
        ],
        "outcomes": [
            {"name": name, "letter": LETTERS[name], "title": title, "fails": name in FAILURES} for name,
            title in OUTCOMES.items()
        ],
        "suites": suites,
        "dialects": dialects,
        "tags": tags,
        "groups": [{"tags": group.tags, "vector": group.vector, "cases": len(group.members),
        "different": group.different} for group in groups],
        "cases": {
            "id": [case.id for case in noted],
            "name": [case.name for case in noted],
            "suite": [place_of[0][case.suite] for case in noted],
            "dialect": [place_of[1][case.dialect] for case in noted],
            "tags": [[place_of[2][tag] for tag in case.tags] for case in noted],
            "group": [group_of.get(place, -1) for place in range(len(noted))],
            "different": [int(differs(case.vector, solve_nothing)) for case in signed],
        },
        "state": ["".join(CASE_LETTERS.get(case.vector[arm],
        ".") for case in signed) for arm in range(len(lines))],
        "compile_us": [of_case[0] for of_case in times],
        "fill_p50_us": [of_case[1] for of_case in times],
        "fill_p99_us": [of_case[2] for of_case in times],
    }  # fmt: skip


def _arm(line: Line, run: int, solves_nothing: bool) -> dict[str, Any]:
    of = line.arm
    return {
        "label": line.label,
        "backend": of.backend,
        "version": of.version,
        "options": of.options,
        "vocabulary": of.vocabulary,
        "spec": line.spec,
        "several_vocabularies": len(line.run.info.vocabularies) > 1,
        "run": run,
        "solves_nothing": solves_nothing,
        "colour": line.colour,
        "dash": line.dash,
        "marker": line.marker,
    }


def _times(of: ArmSummary, noted: Sequence[CaseNoted]) -> tuple[list[float | None], ...]:
    """Returns the times of each case in microseconds: compile, median and 99th percentile (an observed value)
    of the fills."""
    compile_us: list[float | None] = []
    middle: list[float | None] = []
    late: list[float | None] = []
    for case_noted in noted:
        case = of.cases.get((case_noted.suite, case_noted.id), CaseSummary())
        fills = np.sort(fills_of(of, case))
        count = len(fills)
        compile_us.append(_us(case.compile_ns))
        middle.append(_us(int(fills[(count - 1) // 2])) if count else None)
        late.append(_us(int(fills[-(-99 * count // 100) - 1])) if count else None)
    return compile_us, middle, late


def _us(ns: int | None) -> float | None:
    return None if ns is None else float(f"{ns / 1000:.3g}")


def pack(value: object) -> str:
    """Returns the value as JSON in gzip in base64: nothing in it can end a script element, and the same value
    is the same text."""
    return _zipped(_json(value))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _zipped(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


@dataclass(frozen=True)
class Shard:
    """The details of neighbouring cases, packed together."""

    first: int
    """The place of the first of them."""
    cases: int
    text: str


def fit(explored: Explored, page: int, split: bool = False, usual: int = USUAL, most: int = MOST) -> Packed:
    """Returns the data with what fits beside `page` bytes of the page itself, and what was left off in words.

    First the details of passing cases go, then passing cases; then long texts are cut; then the data leaves
    the page.
    """
    everything = len(explored.cases)
    passing = everything - explored.failing
    of_failing = _shards(explored.details[: explored.failing])
    whole = of_failing + _shards(explored.details[explored.failing :], explored.failing)
    packed = _packed(explored, everything, whole, [], split)
    if split or page + packed.size <= usual:
        return packed
    left = "" if explored.page["alone"] else "; report.json has them"
    more = "" if explored.page["alone"] else "; report.json has more of them"
    script = " (grammarbench repro --script writes them)" if any(explored.page["repro"]) else ""
    stated = (
        [f"To keep the page small, it has no grammars and instances of the {passing:,} cases {QUIET}{left}."]
        if passing
        else []
    )
    packed = _packed(explored, everything, of_failing, stated, split)
    if page + packed.size <= most:
        return packed
    if passing:
        stated = [f"To keep the page under 5 MB, the {passing:,} cases {QUIET} are left off{left}."]
        packed = _packed(explored, explored.failing, of_failing, stated, split)
    for cut in CUTS:
        if page + packed.size <= most:
            break
        said = (
            f"To keep the page under 5 MB, grammars and instances are cut after {cut:,} bytes, and there "
            f"are no scripts that need the backend alone{script}{more}."
        )
        shards = _shards([_cut(detail, cut) for detail in explored.details[: explored.failing]])
        packed = _packed(explored, explored.failing, shards, [*stated, said], split)
    if page + packed.size > most:
        stated = [
            "The cases would not fit into one page of 5 MB: they lie in the folder assets beside it, "
            "which has to be moved with it."
        ]
        packed = _packed(explored, everything, whole, stated, True)
    return packed


def _shards(details: Sequence[dict[str, Any]], first: int = 0) -> list[Shard]:
    """Returns the details in shards, the first of which starts with the case at the place `first`."""
    shards: list[Shard] = []
    lines: list[str] = []
    size = 0
    for place, detail in enumerate(details, 1):
        lines.append(_json(detail))
        size += len(lines[-1])
        if size >= SHARD or place == len(details):
            shards.append(Shard(first + place - len(lines), len(lines), _zipped(f"[{','.join(lines)}]")))
            lines, size = [], 0
    return shards


def _packed(
    explored: Explored, cases: int, shards: Sequence[Shard], stated: list[str], split: bool
) -> Packed:
    """Returns the first so many cases with the details that the shards hold."""
    more = {
        "shards": [shard.first for shard in shards],
        "detailed": sum(shard.cases for shard in shards),
        "stated": stated,
        "page": explored.page | {"whole": split or not stated},  # where it is split, nothing is left off
    }
    index = pack(_first(explored.index, cases) | more)
    return Packed(index, [shard.text for shard in shards], stated, split, cases)


def _cut(detail: dict[str, Any], limit: int) -> dict[str, Any]:
    """Returns the details with long texts cut, and how much is missing; without snippets, whose walks are cut
    out of the instances."""
    cut = {name: value for name, value in detail.items() if name != "snippets"}
    if len(detail.get("grammar", "")) > limit:
        cut |= {
            "grammar": detail["grammar"][:limit],
            "grammar_left_off": detail.get("grammar_left_off", 0) + len(detail["grammar"]) - limit,
        }
    cut["instances"] = [_cut_instance(instance, limit) for instance in detail["instances"]]
    return cut


def _cut_instance(instance: dict[str, Any], limit: int) -> dict[str, Any]:
    content, left_off = beginning(instance["content"].encode("utf-8", "surrogatepass"), limit)
    more = left_off + instance.get("left_off", 0)
    return instance | {"content": content, "left_off": more} if left_off else instance


def _first(index: dict[str, Any], cases: int) -> dict[str, Any]:
    """Returns the index with its first so many cases."""
    columns = {name: column[:cases] for name, column in index["cases"].items()}
    by_arm = {
        name: [column[:cases] for column in index[name]]
        for name in ("state", "compile_us", "fill_p50_us", "fill_p99_us")
    }
    return index | {"cases": columns} | by_arm


def as_json(explored: Explored) -> str:
    """Returns `report.json`: the index and the details of every case; texts are cut at 64 kB. Raises
    BadInput."""
    return _json(explored.index | {"details": explored.details}) + "\n"
