"""`pytest --grammarbench-backend=...`: conformance as tests of a backend's own repository.

Found by pytest as an entry point.

Nothing but the options' values is imported, and nothing is collected, unless a backend is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.cli.values import effort, positive, positive_number
from harness.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = "grammarbench"

LATER = pytest.StashKey[list[str]]()
"""Lines for the end of the session."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds our options."""
    group = parser.getgroup(MARK, "conformance of grammar backends")
    group.addoption(
        "--grammarbench-backend",
        action="append",
        default=[],
        metavar="SPEC",
        help="as in `grammarbench run --backends`",
    )
    group.addoption(
        "--grammarbench-suite",
        action="append",
        default=[],
        metavar="SUITE",
        help="a suite's name, a folder or a file (default: the record's, else seven of ours)",
    )
    group.addoption(
        "--grammarbench-vocabulary",
        metavar="V",
        help="as in `grammarbench run` (default: all of the record's, else probe)",
    )
    group.addoption(
        "--grammarbench-effort",
        type=effort,
        metavar="N",
        help="places of a case that each check looks at (default: the record's, else 0: no checks)",
    )
    group.addoption(
        "--grammarbench-timeout",
        type=positive_number,
        metavar="S",
        help="seconds for a compile and a walk (default: the record's, else 10)",
    )
    group.addoption(
        "--grammarbench-jobs", type=positive, default=1, metavar="N", help="workers at a time (default: 1)"
    )
    group.addoption(
        "--grammarbench-expect",
        metavar="FILE",
        help="a record of outcomes: recorded failures are strict xfails",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Adds the mark that all our items carry. Refuses to share out cases by pytest-xdist.

    Its controller collects nothing, and each of its workers would walk by itself what falls to it.
    """
    is_shared_out = config.getoption("dist", "no") != "no" and config.getoption("tx", None)
    if config.getoption("grammarbench_backend") and is_shared_out:
        raise pytest.UsageError(
            "cases are walked in worker processes of their own: leave -n out (or give -n0) and give "
            "--grammarbench-jobs N"
        )
    config.addinivalue_line("markers", f"{MARK}: a case of a suite of GrammarBench, walked through a backend")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Says what a reader must know first of the record that outcomes are compared with."""
    if not config.getoption("grammarbench_backend"):
        return []
    from harness.cli.plugin.items import header

    try:
        return header(config)
    except BadInput:
        return []  # collecting tells it


def pytest_report_collectionfinish(items: Sequence[pytest.Item]) -> list[str]:
    """Says which sample of the suites the chosen cases are."""
    if not any(item.get_closest_marker(MARK) for item in items):
        return []
    from harness.cli.plugin.items import sampled

    return sampled(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Adds our items behind the repository's own, before `-k` and `-m` choose."""
    if config.getoption("grammarbench_backend"):
        from harness.cli.plugin.items import collected

        ours = list(collected(session, config))
        items.extend(ours)
        # What is not told of is not counted as collected, and is taken off where -k leaves it out.
        report = pytest.CollectReport(MARK, "passed", None, [*ours])
        config.hook.pytest_collectreport(report=report)


@pytest.hookimpl
def pytest_collection_finish(session: pytest.Session) -> None:
    """Notes what was chosen, which is walked together when the first of it is asked for."""
    if from_us := _ours(session):
        from harness.cli.plugin.items import chosen

        chosen(from_us)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keeps for the end what failed behind other cases and not alone, which is no test's failure."""
    if from_us := _ours(session):
        from harness.cli.plugin.items import delayed_lines

        session.config.stash[LATER] = delayed_lines(from_us)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes the lines that were kept for the end."""
    for line in terminalreporter.config.stash.get(LATER, []):
        terminalreporter.write_line(line)


def _ours(session: pytest.Session) -> Sequence[pytest.Item]:
    """Returns our items of the session."""
    return [item for item in session.items if item.get_closest_marker(MARK) and hasattr(item, "walks")]
