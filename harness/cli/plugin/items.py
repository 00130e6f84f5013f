"""A case of a suite as a test item."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.backend.registry import parse_specs
from harness.backend.vocabulary import prepare_vocabulary
from harness.cases.case import Case
from harness.cases.names import unused_name
from harness.cases.suite import find_suite, read_cases, refuse_two_meanings, walked_by_default
from harness.cli.plugin import MARK
from harness.cli.plugin.walks import Walks, Wrong, fresh_folder
from harness.cli.streams import for_logs
from harness.errors import BadInput
from harness.outcomes import delayed, expected
from harness.outcomes.outcome import CaseOutcome
from harness.rows.sample import sample
from harness.text import one_line

NAME = re.compile(r"[^\w.+=<>-]+")
LONGEST = 80
TIMEOUT_S = 10.0
"""Seconds for a compile and a walk, where neither an option nor a record says."""


def collected(session: pytest.Session, config: pytest.Config) -> Iterator[pytest.Item]:
    """Yields an item for every case of every suite and backend.

    What is wrong with an option ends pytest with one line.
    """
    try:
        yield from _collected(session, config)
    except BadInput as error:
        raise pytest.UsageError(one_line(str(error))) from error


def _collected(session: pytest.Session, config: pytest.Config) -> Iterator[pytest.Item]:
    expect = config.getoption("grammarbench_expect")
    recorded = expected.read_record(Path(expect)) if expect else None
    effort, vocabularies, timeout_s = _settings(config, recorded)
    refuse_two_meanings(config.getoption("grammarbench_suite") or ())
    asked = tuple(
        dict.fromkeys(
            config.getoption("grammarbench_suite")
            or (recorded.asked if recorded else ())
            or walked_by_default()
        )
    )
    suites: dict[str, list[Case]] = {}
    for suite in map(find_suite, asked):
        suites[unused_name(suite.name, suites)] = list(read_cases(suite))  # as the run's rows name it
    words = {word for name, cases in suites.items() for case in cases for word in words_of(name, case)}
    marks = words - _marks_of_others(config)
    for word in sorted(marks):
        config.addinivalue_line("markers", f"{word}: a suite, dialect or tag of GrammarBench's cases")
    specs = [str(spec) for text in config.getoption("grammarbench_backend") for spec in parse_specs(text)]
    session_long = ExitStack()
    config.add_cleanup(session_long.close)
    folder = session_long.enter_context(fresh_folder(getattr(config, "cache", None)))
    arms = product(specs, short_names(vocabularies).items())
    for number, (spec, (vocabulary, short)) in enumerate(arms, 1):
        walks = Walks(
            f"{spec}-{short}" if len(vocabularies) > 1 else spec,
            spec,
            asked,
            vocabulary,
            effort,
            timeout_s,
            config.getoption("grammarbench_jobs"),
            recorded,
            folder / str(number),
        )
        for name, cases in suites.items():
            walks.cases_in_all[name] = len(cases)
            for case in cases:
                named = _named(walks.name, name, case)
                # Pytest's own id of the name is another one when it is read from its cache: --lf finds none.
                yield CaseItem.from_parent(
                    session, nodeid=f"::{named}", name=named, walks=walks, suite=name, case=case, marks=marks
                )


def _marks_of_others(config: pytest.Config) -> set[str]:
    """Returns the marks of pytest, its plug-ins and the repository, which may do more than choose."""
    return {re.split("[:(]", line)[0].strip() for line in config.getini("markers")}


def short_names(vocabularies: Sequence[str]) -> dict[str, str]:
    """Returns the last word of each vocabulary's name or path, with a number where another has the same."""
    names: dict[str, str] = {}
    for vocabulary in vocabularies:
        names[unused_name(NAME.sub("_", vocabulary.rpartition("/")[2]), names)] = vocabulary
    return {vocabulary: name for name, vocabulary in names.items()}


def _settings(
    config: pytest.Config, recorded: expected.Recorded | None
) -> tuple[int, tuple[str, ...], float]:
    """Returns effort, vocabularies and timeout: what is asked for, else the record's, else ours.

    Raises BadInput for what is not as recorded.
    """
    effort, vocabulary, timeout_s = (
        config.getoption(f"grammarbench_{name}") for name in ("effort", "vocabulary", "timeout")
    )
    if recorded is None:
        return effort or 0, (prepare_vocabulary(vocabulary or "probe"),), timeout_s or TIMEOUT_S
    effort = recorded.effort if effort is None else effort
    asked = [vocabulary] if vocabulary else recorded.vocabularies or ["probe"]
    vocabularies = tuple(map(prepare_vocabulary, asked))
    if different := recorded.different(effort, recorded.decode, recorded.seed, vocabularies):
        raise BadInput(f"{config.getoption('grammarbench_expect')}: {different}; leave the option out")
    return effort, vocabularies, timeout_s or recorded.timeout_s or TIMEOUT_S


def chosen(items: Sequence[Any]) -> None:
    """Tells the walks which cases were chosen."""
    for item in items:
        item.walks.chosen.add(item.case.id)


def header(config: pytest.Config) -> list[str]:
    """Returns what a reader must know first of the record. Raises BadInput.

    It is of what sample the record is.
    """
    if not config.getoption("grammarbench_expect"):
        return []
    recorded = expected.read_record(Path(config.getoption("grammarbench_expect")))
    if not recorded.sample:
        return []
    return [f"grammarbench: the record is of {for_logs(recorded.sample)}; what else fails, fails"]


def sampled(items: Sequence[pytest.Item]) -> list[str]:
    """Returns a line for each backend of which not all cases of the suites were chosen."""
    lines = []
    ours = [item for item in items if isinstance(item, CaseItem)]
    for walks in {id(item.walks): item.walks for item in ours}.values():
        mine = Counter(item.suite for item in ours if item.walks is walks)
        suites = {
            name: {"cases": mine[name], "cases_in_all": count} for name, count in walks.cases_in_all.items()
        }
        if part := sample(suites):
            lines.append(f"grammarbench: {for_logs(walks.name)}: {for_logs(part)}")
    return lines


def delayed_lines(items: Sequence[Any]) -> list[str]:
    """Returns a line for each backend and kind of what failed behind others in one process and not alone."""
    every = {id(item.walks): item.walks for item in items}.values()
    return [
        f"grammarbench: {for_logs(one_line(line))}"
        for walks in every
        for line in delayed.lines(walks.delayed)
    ]


def _named(walks: str, suite: str, case: Case) -> str:
    words = NAME.sub("_", case.name).strip("_")[:LONGEST]
    return f"{MARK}[{walks}-{suite}-{words}-{case.id}]"


def words_of(suite: str, case: Case) -> set[str]:
    """Returns the words that can stand behind `-k`, and behind `-m` where they are nobody else's marks."""
    return {
        word
        for name in (suite, case.grammar.dialect, *case.tags)
        if (word := re.sub(r"\W+", "_", name).strip("_"))
    }


class CaseItem(pytest.Item):
    """One case through one backend. Its tags, dialect and suite are words for `-k`.

    Those that are in `marks` are marks too (`-m utf8`).
    """

    def __init__(
        self, *, walks: Walks, suite: str, case: Case, marks: Collection[str], **options: Any
    ) -> None:
        super().__init__(**options)
        self.walks, self.suite, self.case = walks, suite, case
        self.add_marker(MARK)
        words = words_of(suite, case)
        for word in words.intersection(marks):
            self.keywords[word] = True
            self.own_markers.append(pytest.Mark(word, (), {}, _ispytest=True))
        self.extra_keyword_matches.update((suite, case.name, case.id, *words))

    def setup(self) -> None:
        """Walks what was chosen, once, unless only a plan is wanted (--setup-plan); a failure of ours is an
        error here, and no backend's failure."""
        if self.config.getoption("setupplan", False):
            return
        try:
            self.walks.walk()
        except (BadInput, OSError) as error:  # a full disk is an OSError
            pytest.exit(f"grammarbench: {one_line(str(error))}", returncode=pytest.ExitCode.USAGE_ERROR)
        self.outcome = self.walks.outcome(self.suite, self.case)
        for failure in self.outcome.delayed:
            if not failure.counts:  # of what counts the report of the failed test says it
                self.add_report_section("setup", MARK, for_logs(delayed.in_words(failure)))
        if self.outcome.ours:
            pytest.fail(f"harness error (ours): {for_logs(one_line(self.outcome.ours))}", pytrace=False)

    def runtest(self) -> None:
        """Compares the outcome with the record, or with what is right."""
        outcome = self.outcome
        passes = outcome.came_to in (CaseOutcome.WORKS, CaseOutcome.NOT_JUDGED)
        if outcome.differs_by_a_timeout:
            pytest.skip("differs from the record by a missed deadline, which depends on the machine")
        if outcome.new_checks and outcome.change is None:
            pytest.skip(
                f"fails {', '.join(outcome.new_checks)}, new in this GrammarBench since the record was made; "
                "record anew to gate on it"
            )
        if outcome.recorded and outcome.change is None and not passes:
            pytest.xfail(f"recorded: {', '.join(sorted(outcome.faults))}")
        if outcome.change is not None and not outcome.faults:
            raise Wrong(
                [
                    "[XPASS(strict)] recorded as failing, and right: "
                    f"{', '.join(sorted(outcome.change.gone))}; record anew"
                ]
            )
        if outcome.came_to == CaseOutcome.FAILED or outcome.change is not None:
            raise Wrong(outcome.lines())
        if outcome.came_to == CaseOutcome.REFUSED:
            pytest.skip(f"refused: {for_logs(one_line(outcome.refusal, 500)) or 'without a reason'}")
        if outcome.came_to == CaseOutcome.NOT_JUDGED:
            pytest.skip(
                "not judged: no instance of it has a known verdict, and no check compared its masks "
                "with the truth"
            )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Returns what is wrong, and how to see it, without a traceback of ours."""
        if isinstance(excinfo.value, Wrong):
            return "\n".join(for_logs(line) for line in excinfo.value.lines)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Returns what is shown as the item's place: a line too, which pytest wants of what a mark skips."""
        return self.path, 0, self.name
