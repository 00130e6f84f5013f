"""Rows that a new run takes over from an earlier one, so that a published sample becomes the whole, or a
backend is added, without a case being walked twice."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from harness.backend.arm import Arm, arm, with_version
from harness.cases.case import Case
from harness.cases.case_line import CASES_FILE, cases_in
from harness.cases.plan import rows_of
from harness.errors import BadInput
from harness.rows.row import Row, RunInfo, makes_checks
from harness.rows.store import case_identity, read_cases, read_info, read_rows
from harness.rows.writer import Writer
from harness.running.planned_cases import digested
from harness.running.same_run import first_difference, known_to_both
from harness.running.work import Work

FREE_TOO = ("suites", "shard", "arms", "vocabularies")
"""The fields of the first line in which the earlier run may differ too: it walked less."""


def refuse_others(earlier: Path, info: RunInfo) -> None:
    """Raises BadInput unless the earlier run was made by this harness with the options of the new one, and
    on the same tokens under each name of a vocabulary that both have; where the two have no suite, backend
    or vocabulary in common, so that nothing can be taken; and for a damaged run, of which all rows are read
    here, before anything of the new run is written."""
    before = read_info(earlier)
    for kind, was, is_now in (
        ("suites", before.suites, info.suites),
        ("vocabularies", before.vocabularies, info.vocabularies),
        ("backends", map(_named, before.arms), map(_named, info.arms)),
    ):
        if not (theirs := set(was)) & (ours := set(is_now)):
            raise BadInput(
                f"{earlier} has the {kind} {', '.join(sorted(theirs))}, and this run "
                f"{', '.join(sorted(ours))}, so that no rows can be taken over; leave --take-over out"
            )
    then = known_to_both(before.vocabularies, info.vocabularies)
    for name, about in known_to_both(info.vocabularies, before.vocabularies).items():
        if then.get(name, about) != about:
            raise BadInput(
                f"{earlier} was walked with another tokenizer under the name {name}, so that its rows cannot "
                "be taken over; leave --take-over out"
            )
    if different := first_difference(before, info, FREE_TOO):
        what = "another GrammarBench or adapter" if different.is_of_code else "other options"
        way = "" if different.is_of_code else "repeat its options, or "
        raise BadInput(
            f"{earlier} was made with {what} ({different.was}; now {different.is_now}), so that its rows "
            f"cannot be taken over; {way}leave --take-over out"
        )
    for _ in read_rows(earlier):
        pass


def _named(one: Arm) -> str:
    return with_version(arm(one), one.version)


def take_over(
    earlier: Path, info: RunInfo, cases: Path, works: Sequence[Work], writer: Writer
) -> tuple[int, list[str]]:
    """Writes the rows of every case of the works that the earlier run walked whole, and leaves these out of
    the works; returns how many there are, each backend and vocabulary counted apart, and the suites of which
    nothing is taken, because a published run is of other cases of them.

    `cases` is the file of the new run's plan. A case is the same if its grammar and its instances are, a
    backend if its version and options are. A published run has no cases: there a suite's version and digest
    tell, and the instances are known by their names, verdicts and lengths; a schema for which documents were
    made is walked anew. Samples of times are not taken along. Raises BadInput for a damaged run.
    """
    checked = makes_checks(info.effort, info.decode)
    planned = {(suite, case.id): case for _, suite, _, case in cases_in(cases)}
    numbers = {key: number for number, key in enumerate(planned)}
    others = _other_suites(earlier, info, cases)
    same = {key for key in _same_cases(earlier, planned) if key[0] not in others}
    arms = read_info(earlier).arms
    owed = {work.who: set(work.cases) for work in works if work.arm in arms}
    taken = 0
    for identity, group in groupby(read_rows(earlier), case_identity):
        rows, who, (suite, case_id) = list(group), identity[:4], identity[4:]
        key = suite, case_id
        if key not in same or numbers[key] not in owed.get(who, ()):
            continue
        if len(rows) == rows_of(planned[key], checked) and _are_of(rows, planned[key]):
            writer.append([(replace(row, samples=None), b"") for row in rows])
            owed[who].discard(numbers[key])
            taken += 1
    for work in works:
        if work.who in owed:
            work.cases = deque(number for number in work.cases if number in owed[work.who])
    return taken, others


def _same_cases(earlier: Path, planned: Mapping[tuple[str, str], Case]) -> set[tuple[str, str]]:
    """Returns which of the planned cases the earlier run may have walked, as far as its folder tells."""
    if (earlier / CASES_FILE).exists():
        before = read_cases(earlier)
        return {(suite, case.id) for suite, _, case in before if planned.get((suite, case.id)) == case}
    return {key for key, case in planned.items() if not any(one.made_for for one in case.instances)}


def _other_suites(earlier: Path, info: RunInfo, cases: Path) -> list[str]:
    """Returns the suites of which the earlier run, where it has no cases, is of another version or of other
    cases: not of all that are planned, nor of those of them that its rows name. A document that was made for
    one and came out differently makes them others too, since the digest is of all of them."""
    if (earlier / CASES_FILE).exists():
        return []
    before = read_info(earlier).suites
    both = {name: (before[name], about) for name, about in info.suites.items() if name in before}
    others = [name for name, (was, now) in both.items() if was["version"] != now["version"]]
    unsure = [
        name for name, (was, now) in both.items() if name not in others and was["sha256"] != now["sha256"]
    ]
    if unsure:
        walked = {(row.suite, row.case_id) for row in read_rows(earlier)}
        digests = {name: hashlib.sha256() for name in unsure}
        with open(cases, "rb") as file:
            for line in file:
                suite, case_id, text = digested(line)
                if suite in digests and (suite, case_id) in walked:
                    digests[suite].update(text)
        others += [name for name in unsure if digests[name].hexdigest() != before[name]["sha256"]]
    return others


def _are_of(rows: Sequence[Row], case: Case) -> bool:
    """Are the instances that the rows are of those of the case, by name, verdict and length?"""
    known = {
        (number, instance.name, instance.valid, len(instance.content))
        for number, instance in enumerate(case.instances)
    }
    return all(
        row.instance is None or (row.instance, row.instance_name, row.valid, row.bytes) in known
        for row in rows
    )
