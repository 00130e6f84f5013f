"""Adjudication of JSON Schema: where the arms of a run disagree, whose fault is it, and which document shows it?

Each arm lives in a service of its own, as isolated as a worker. Along the cases' instances, and along documents that the arms write
themselves, masks are compared. From a token on which they disagree an arm that allows it finishes a document; two independent
validators judge that document, and it is replayed on every arm. Invalid: whoever accepts it is under-constrained. Valid: whoever
refuses its canonical tokenization is over-constrained. Without the same verdict of both validators nobody is blamed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.adjudicate.trial import Settings, Trial
from harness.adjudicate.verdicts import Validators
from harness.adjudicate.witness import Summary as Summary
from harness.adjudicate.witness import Witness as Witness
from harness.case import Case, case_from_line
from harness.environments import python_of
from harness.errors import one_line
from harness.judge import Judge
from harness.row import DECLINED, Arm, Row, RunInfo, arm_names
from harness.service.client import Lost, Service
from harness.store import locked, read_info, read_rows
from harness.vocabulary import load_vocabulary

WITNESSES = "witnesses.jsonl"


@dataclass(frozen=True)
class _Work:
    """A run, and how it is to be adjudicated."""

    folder: Path
    info: RunInfo
    compiled: dict[tuple[str, str, str], set[str]]
    """The arms that compiled a JSON Schema, by vocabulary, suite and case."""
    settings: Settings
    summary: Summary
    say: Callable[[str], None]

    @property
    def cases(self) -> str:
        return str(self.folder / "cases.jsonl")


@dataclass(frozen=True)
class _Docket:
    """Which arms compiled which case, in one vocabulary."""

    suite: str
    offset: int
    case: Case
    arms: frozenset[str]


def adjudicate(
    folder: Path,
    *,
    positions: int | None = 8,
    followed: int = 24,
    tries: int = 3,
    timeout_s: float = 10.0,
    formats: bool = False,
    say: Callable[[str], None] = print,
) -> Summary:
    """Adjudicate a finished run, into its `witnesses.jsonl`. Raises BadInput.

    `positions` is at how many of a text's tokens masks are compared (None: all), `followed` how many disputed tokens of a case are
    followed up, `tries` how many documents are finished from one of them, `timeout_s` what one answer of an arm or a validator may
    take, `formats` whether formats are assertions.
    """
    with locked(folder):
        info = read_info(folder)
        work = _Work(
            folder,
            info,
            _compiled(read_rows(folder), arm_names(info.arms)),
            Settings(positions, followed, tries, timeout_s, max(timeout_s, info.timeout_s)),
            Summary(),
            say,
        )
        part = folder / f"{WITNESSES}.part"
        second = Service("harness.adjudicate.second:load_second", {"cases": work.cases}, info.memory_bytes)
        with open(part, "w") as file, Judge(timeout_s) as judge:
            try:
                validators = Validators(judge, second, timeout_s, formats)
                for vocabulary in info.vocabularies:
                    for witness in _in_vocabulary(work, vocabulary, validators):
                        work.summary.add(witness)
                        file.write(json.dumps(witness.to_json()) + "\n")
                        file.flush()
            finally:
                second.close()
        os.replace(part, folder / WITNESSES)
    return work.summary


def _compiled(rows: Iterator[Row], names: dict[tuple[str, str, str], str]) -> dict[tuple[str, str, str], set[str]]:
    found: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        if row.dialect == "json_schema" and row.compile_ns is not None and row.status not in DECLINED and row.phase != "compile":
            name = names[row.backend, row.backend_version, row.options]
            found.setdefault((row.vocabulary, row.suite, row.case_id), set()).add(name)
    return found


def _in_vocabulary(work: _Work, name: str, validators: Validators) -> Iterator[Witness]:
    """The witnesses of all cases, one case after another."""
    vocabulary = load_vocabulary(name)
    names = arm_names(work.info.arms)
    arms = {names[each.backend, each.version, each.options]: each for each in work.info.arms}
    versions = {each: its_arm.version for each, its_arm in arms.items()}
    services = {
        each: Service(
            "harness.adjudicate.arm:load_arm",
            {"spec": _spec(its_arm), "vocabulary": name, "cases": work.cases},
            work.info.memory_bytes,
            python_of(its_arm, work.say),
        )
        for each, its_arm in arms.items()
    }
    try:
        for service in services.values():
            service.start()
        for each, service in list(services.items()):
            try:
                service.wait()
            except Lost as why:
                work.say(f"{each} is left out: {why}")
                del services[each]
        dockets = list(_dockets(work, name))
        for number, docket in enumerate(dockets, 1):
            asked = {each: service for each, service in services.items() if each in docket.arms}
            trial = Trial(docket.case, docket.suite, docket.offset, vocabulary, asked, versions, validators, work.settings, work.summary)
            witnesses = trial.run()
            work.say(f"{name} {number}/{len(dockets)} {one_line(docket.case.name)}: {_blame(witnesses)}")
            yield from witnesses
    finally:
        for service in services.values():
            service.close()


def _blame(witnesses: list[Witness]) -> str:
    """In one line."""
    causes: dict[str, list[str]] = {}
    for each in witnesses:
        causes.setdefault(f"{each.arm or 'nobody'} {each.kind}", []).append(each.cause)
    return "; ".join(f"{who} ({', '.join(what)})" for who, what in causes.items()) or "nobody is blamed"


def _dockets(work: _Work, vocabulary: str) -> Iterator[_Docket]:
    """Every case that some arm compiled, once, whatever suites it stands in."""
    seen: set[str] = set()
    offset = 0
    with open(work.cases, "rb") as file:
        for line in file:
            suite, _, case = case_from_line(line)
            arms = work.compiled.get((vocabulary, suite, case.id))
            if arms and case.id not in seen:
                seen.add(case.id)
                yield _Docket(suite, offset, case, frozenset(arms))
            offset += len(line)


def _spec(each: Arm) -> str:
    """The arm with the version that the run saw, where there is one: another version must not answer for it."""
    version = f"=={each.version}" if each.version else ""
    return each.backend + version + (f":{each.options}" if each.options else "")
