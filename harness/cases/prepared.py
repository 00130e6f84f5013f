"""Cases made ready to be walked, several at a time: documents for schemas without any, and verdicts.

Nearly all of the time is spent in the processes of judges and generators, so that threads that wait for them
use all processors.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Self

from harness.cases.bare_schema import misnamed_types
from harness.cases.case import Case, Instance
from harness.cases.flags import with_verdicts
from harness.cases.generated.generator import Generator
from harness.cases.spellings import spelled
from harness.cases.subschemas import lost_reference
from harness.cases.suite import deep
from harness.oracle.judge import Judge, check_schema
from harness.oracle.judge.drafts import DRAFT_URIS, draft_of
from harness.text import one_line

JUDGE_SECONDS = 5.0
MOST_WORKERS = 8
"""Each worker has a generator, which may take gigabytes."""
AHEAD = 4
"""For each worker, how many cases are read before the first of them is ready."""
CHANGED = {"exclusiveMinimum": "draft4", "exclusiveMaximum": "draft4", "required": "draft3"}
"""Keywords that were true or false in a draft, and are something else in all later ones."""


@dataclass(frozen=True)
class Prepared:
    """One case, ready to be walked."""

    case: Case
    read_otherwise: Case
    """It is the same case, in which each instance names the other readings by which its verdict would be the
    opposite."""
    contested: dict[str, list[str]] = field(default_factory=dict)
    """The names of the instances that are not judged, by reason."""
    generated: int = 0
    """The number of documents that were made for it."""


class Preparers:
    """Workers that make cases ready: as many as are asked for, at most MOST_WORKERS. Each has a judge and a
    generator of its own.

    `unicode` are the versions whose tables regular expressions are judged by too. With `respell` the
    instances of a JSON Schema become the spellings of its valid ones, and other cases get none. `made` has
    the documents that were made before, by `made_key`: how many are made in time depends on the machine.
    With `bare` none are made.
    """

    def __init__(
        self,
        workers: int,
        unicode: Collection[str],
        made: Mapping[str, tuple[Instance, ...]] | None,
        *,
        respell: bool,
        bare: bool,
    ) -> None:
        self._workers = min(workers, MOST_WORKERS)
        self._unicode = unicode
        self._made = made or {}
        self._respell = respell
        self._bare = bare
        self._tools = [(Judge(JUDGE_SECONDS), Generator()) for _ in range(self._workers)]
        self._idle: SimpleQueue[tuple[Judge, Generator]] = SimpleQueue()
        self._threads = ThreadPoolExecutor(self._workers)

    def __enter__(self) -> Self:
        for tools in self._tools:
            self._idle.put(tools)
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for judge, generator in self._tools:  # a thread that still waits for one of them gets no answer now
            judge.close()
            generator.close()
        self._threads.shutdown()

    def each(self, cases: Iterable[Case], suite: str, *, ours: bool) -> Iterator[Prepared]:
        """Yields the cases of the suite, by its name in the plan, in their order, each as soon as it and
        those before it are ready; verdicts that `ours` state are believed."""
        waiting: deque[Future[Prepared]] = deque()
        for case in cases:
            known = self._made.get(made_key(suite, case))
            waiting.append(self._threads.submit(self._prepare, case, known, ours))
            if len(waiting) >= AHEAD * self._workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _prepare(self, case: Case, known: tuple[Instance, ...] | None, ours: bool) -> Prepared:
        tools = self._idle.get()
        try:
            return self._prepared(case, known, ours, *tools)
        finally:
            self._idle.put(tools)

    def _prepared(
        self, case: Case, known: tuple[Instance, ...] | None, ours: bool, judge: Judge, generator: Generator
    ) -> Prepared:
        generated = 0
        if not case.instances and not self._bare:
            case = generator.with_instances(case) if known is None else replace(case, instances=known)
            generated = len(case.instances)
        if self._respell:
            case = spelled(case) if case.grammar.dialect == "json_schema" else replace(case, instances=())
        made = any(instance.made_for for instance in case.instances)
        questioned = not (ours or self._respell or made)
        case, contested = with_verdicts(case, judge, questioned=questioned, both=not self._respell)
        return Prepared(case, _read_otherwise(case, judge, self._unicode), contested, generated)


def made_key(suite: str, case: Case) -> str:
    """Returns by what the documents that were made for a case are kept: its id is unique only within its
    suite, and says nothing of the options by which the schema is read."""
    return f"{suite}/{case.id}/{sorted(case.options.items())}"


def problem_with(case: Case) -> str:
    """Returns what is wrong with the case's schema; empty if it is a schema, or if the grammar is of another
    dialect.

    A reference that leads nowhere, or to another file, is wrong only where the schema comes alone: who gives
    documents beside it may mean them for the rest of it, as suites do.
    """
    if case.grammar.dialect != "json_schema":
        return ""
    check: Callable[[], str | None] = lambda: check_schema(case.grammar.text, case.draft)  # noqa: E731
    problem = deep(check, case.name)
    if problem:
        return (
            f"not a JSON Schema: {deep(lambda: _misnamed(case), case.name) or problem}{_older(case, problem)}"
        )
    lost = "" if case.instances else deep(lambda: _lost_reference(case), case.name)
    if not lost:
        return ""
    where = "nowhere" if lost.startswith("#") else "out of the schema"
    advice = "" if lost.startswith("#") else ', and nothing is fetched; put what it names under "$defs"'
    return f"its reference {one_line(lost, 120, spelled=True)} leads {where}{advice}"


def _older(case: Case, problem: str) -> str:
    """Returns what to write where the schema is one by an older draft, which it does not name; else empty."""
    draft = next((draft for keyword, draft in CHANGED.items() if f".{keyword}: " in problem), None)
    text = case.grammar.text
    if draft is None or case.draft or '"$schema"' in text or check_schema(text, draft):
        return ""
    return f' (in draft {draft[-1]} it is one; add "$schema": "{DRAFT_URIS[draft]}")'


def _misnamed(case: Case) -> str:
    """Returns which types have the word of another language; empty for draft 3, where such words are no
    mistake."""
    schema = json.loads(case.grammar.text)
    found = "" if draft_of(schema, case.draft) == "draft3" else misnamed_types(schema)
    return one_line(found, 400, spelled=True)


def _lost_reference(case: Case) -> str:
    schema = json.loads(case.grammar.text)
    return lost_reference(schema, draft_of(schema, case.draft))


def _read_otherwise(case: Case, judge: Judge, unicode: Collection[str]) -> Case:
    """Returns the case with each instance's `contrary` filled in, if it is a regular expression or a Lark
    grammar: the readings by which the verdict is the opposite."""
    if case.grammar.dialect not in ("regex", "lark"):
        return case
    instances = tuple(
        instance
        if instance.valid is None
        else replace(
            instance, contrary=judge.readings_against(case.grammar, instance.content, instance.valid, unicode)
        )
        for instance in case.instances
    )
    return replace(case, instances=instances)
