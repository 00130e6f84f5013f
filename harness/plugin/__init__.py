"""`pytest --grammarbench-backend=...`: conformance as tests of a backend's own repository. Found by pytest as an entry point.

Nothing is imported and nothing is collected unless a backend is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = "grammarbench"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our options."""
    group = parser.getgroup(MARK, "conformance of grammar backends")
    group.addoption("--grammarbench-backend", action="append", default=[], metavar="SPEC", help="as in `grammarbench run --backends`")
    group.addoption(
        "--grammarbench-suite",
        action="append",
        default=[],
        metavar="SUITE",
        help="a suite's name, a folder or a file (default: all of ours)",
    )
    group.addoption("--grammarbench-vocabulary", default="probe", metavar="V", help="as in `grammarbench run` (default: probe)")
    group.addoption(
        "--grammarbench-effort", type=int, metavar="N", help="places of a case that each check looks at (default: 0, no checks)"
    )
    group.addoption("--grammarbench-timeout", type=float, default=10.0, metavar="S", help="seconds for a compile and a walk (default: 10)")
    group.addoption("--grammarbench-jobs", type=int, default=1, metavar="N", help="workers at a time (default: 1)")
    group.addoption("--grammarbench-expect", metavar="FILE", help="a record of outcomes: recorded failures are strict xfails")


def pytest_configure(config: pytest.Config) -> None:
    """The mark that all our items carry."""
    config.addinivalue_line("markers", f"{MARK}: a case of a suite of GrammarBench, walked through a backend")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Our items come behind the repository's own, before `-k` and `-m` choose."""
    if config.getoption("grammarbench_backend"):
        from harness.plugin.items import collected

        items.extend(collected(session, config))


@pytest.hookimpl
def pytest_collection_finish(session: pytest.Session) -> None:
    """What was chosen is walked together, when the first of it is asked for."""
    from_us: Sequence[pytest.Item] = [each for each in session.items if each.get_closest_marker(MARK) and hasattr(each, "walks")]
    if from_us:
        from harness.plugin.items import chosen

        chosen(from_us)
