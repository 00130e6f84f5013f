"""Words what a reader must know first of a run that did not walk all cases of the suites that it names.

Every output uses the same sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.rows.row import RunInfo
from harness.text import counted, some

SAMPLE = "a sample"
"""How the sentence about a sample of the cases begins."""

NAMED = 3
"""The most checks that are named."""


def sample_of(info: RunInfo) -> str:
    """Returns the sentence `a sample: 12 of 407 cases of json_schema`, or the sum and then each suite, and
    which checks were made where not all were; empty for a run that walked its suites whole."""
    return "; ".join(filter(None, (cases_left_out(info), _some_checks(info.checks))))


def cases_left_out(info: RunInfo) -> str:
    """Returns the same without what is said of the checks: empty for a run that walked every case."""
    return sample(info.suites)


def _some_checks(checks: Sequence[str]) -> str:
    """Returns what is said of a run that made some checks only; empty for one that made all."""
    if not checks:
        return ""
    named = some([name.replace("_", " ") for name in checks], NAMED)
    return f"a run of {counted(len(checks), 'check')} only: {named}"


def sample(suites: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the sentence of `sample_of`, made from what a run's first line or a record of outcomes says of
    its suites."""
    parts = {
        name: (suite["cases"], suite["cases_in_all"])
        for name, suite in suites.items()
        if suite["cases"] < _in_all(suite)
    }
    if not parts:
        return ""
    if len(suites) == 1:
        ((name, (walked, in_all)),) = parts.items()
        return f"{SAMPLE}: {walked:,} of {in_all:,} cases of {name}"
    walked, in_all = sum(suite["cases"] for suite in suites.values()), sum(map(_in_all, suites.values()))
    each_part = ", ".join(f"{some:,} of {all_of_it:,} of {name}" for name, (some, all_of_it) in parts.items())
    return f"{SAMPLE}: {walked:,} of {in_all:,} cases: {each_part}"


def _in_all(suite: Mapping[str, Any]) -> int:
    """Returns how many cases the suite holds; a run of before the field `cases_in_all` walked all."""
    return int(suite.get("cases_in_all", suite["cases"]))
