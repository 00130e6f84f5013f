"""A check whose time is up just before its last call of the backend."""

from __future__ import annotations

from itertools import count

import pytest

from harness import checks as checks_module
from harness.backend.grammar import Adapter
from harness.cases.case import Case
from harness.checks import SLOW, Subject, checks, run_check
from harness.rows.row import Finding
from harness.walk import watched


def without_its_last_call(
    patch: pytest.MonkeyPatch, name: str, adapter: Adapter, case: Case, effort: int | None = None
) -> tuple[str, list[Finding]]:
    """Returns what the check says if the last call that it would make is one too many."""
    whole = Subject(adapter, case, adapter.compile(case.grammar), effort)
    before = whole.progress[4]
    run_check(name, checks()[name], whole)
    calls = whole.progress[4] - before
    assert calls
    ticks = count(1)  # a clock that each call moves on by one
    patch.setattr(watched, "perf_counter", lambda: next(ticks))
    patch.setattr(checks_module, "perf_counter", lambda: 0)
    seconds = (calls - 1) / SLOW
    cut = Subject(adapter, case, adapter.compile(case.grammar), effort, seconds=seconds)
    made = next(ticks)
    patch.setattr(checks_module, "perf_counter", lambda: made)
    return run_check(name, checks()[name], cut)
