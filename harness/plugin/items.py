"""A case of a suite as a test item."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import ratchet
from harness.case import Case
from harness.errors import BadInput, one_line
from harness.plugin import MARK
from harness.plugin.walks import Walks, Wrong
from harness.registry import parse_specs
from harness.suite import find_suite, read_cases, walked_by_default
from harness.table import visible

NAME = re.compile(r"[^\w.+=<>-]+")
LONGEST = 80


def collected(session: pytest.Session, config: pytest.Config) -> Iterator[pytest.Item]:
    """An item for every case of every suite and backend; what is wrong with an option ends pytest with one line."""
    try:
        yield from _collected(session, config)
    except BadInput as error:
        raise pytest.UsageError(one_line(str(error))) from error


def _collected(session: pytest.Session, config: pytest.Config) -> Iterator[pytest.Item]:
    if getattr(config.option, "numprocesses", None):
        raise BadInput("cases are walked in worker processes of their own: leave -n out and give --grammarbench-jobs N")
    expect = config.getoption("grammarbench_expect")
    recorded = ratchet.read(Path(expect)) if expect else None
    effort = config.getoption("grammarbench_effort")
    if effort is None:
        effort = recorded.effort if recorded else 0
    elif recorded and effort != recorded.effort:
        raise BadInput(f"{expect} was recorded with effort {recorded.effort}; leave --grammarbench-effort out, or record anew")
    suites = {each: list(read_cases(find_suite(each))) for each in config.getoption("grammarbench_suite") or walked_by_default()}
    for word in sorted({word for suite, cases in suites.items() for case in cases for word in words_of(find_suite(suite).name, case)}):
        config.addinivalue_line("markers", f"{word}: a suite, dialect or tag of GrammarBench's cases")
    specs = [str(each) for text in config.getoption("grammarbench_backend") for each in parse_specs(text)]
    for spec in specs:
        walks = Walks(
            spec,
            tuple(suites),
            config.getoption("grammarbench_vocabulary"),
            effort,
            config.getoption("grammarbench_timeout"),
            config.getoption("grammarbench_jobs"),
            recorded,
        )
        for suite, cases in suites.items():
            name = find_suite(suite).name
            for case in cases:
                yield CaseItem.from_parent(session, name=_named(spec, name, case), walks=walks, suite=name, case=case)


def chosen(items: Sequence[Any]) -> None:
    """Tell the walks which cases were chosen."""
    for each in items:
        each.walks.chosen.add(each.case.id)


def _named(spec: str, suite: str, case: Case) -> str:
    words = NAME.sub("_", case.name).strip("_")[:LONGEST]
    return f"{MARK}[{spec}-{suite}-{words}-{case.id}]"


def words_of(suite: str, case: Case) -> set[str]:
    """What can stand behind `-m`."""
    return {word for each in (suite, case.grammar.dialect, *case.tags) if (word := re.sub(r"\W+", "_", each).strip("_"))}


class CaseItem(pytest.Item):
    """One case through one backend. Its tags, dialect and suite are marks (`-m utf8`) and words for `-k`."""

    def __init__(self, *, walks: Walks, suite: str, case: Case, **options: Any) -> None:
        super().__init__(**options)
        self.walks, self.suite, self.case = walks, suite, case
        self.add_marker(MARK)
        for word in words_of(suite, case):
            self.keywords[word] = True
            self.own_markers.append(pytest.Mark(word, (), {}, _ispytest=True))
        self.extra_keyword_matches.update((suite, case.name, case.id))

    def setup(self) -> None:
        """Walk what was chosen, once; a failure of ours is an error here, and no backend's failure."""
        try:
            self.walks.walk()
        except BadInput as error:
            pytest.exit(f"grammarbench: {one_line(str(error))}", returncode=pytest.ExitCode.USAGE_ERROR)
        self.outcome = self.walks.outcome(self.suite, self.case)
        if self.outcome.ours:
            raise RuntimeError(f"harness error (ours): {one_line(self.outcome.ours)}")

    def runtest(self) -> None:
        """Hold the outcome against the record, or against what is right."""
        outcome = self.outcome
        if outcome.recorded and outcome.faults == outcome.recorded:
            pytest.xfail(f"recorded: {', '.join(sorted(outcome.recorded))}")
        if outcome.recorded and not outcome.faults:
            raise Wrong([f"[XPASS(strict)] recorded as failing, and right: {', '.join(sorted(outcome.recorded))}; record anew"])
        if outcome.faults == {"declined"}:
            pytest.skip(f"declined: {visible(outcome.said[0]) if outcome.said else ''}")
        if outcome.faults:
            raise Wrong(outcome.lines())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is wrong, and how to see it; no traceback of ours."""
        if isinstance(excinfo.value, Wrong):
            return "\n".join(visible(each) for each in excinfo.value.lines)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Shown as the item's place."""
        return self.path, None, self.name
