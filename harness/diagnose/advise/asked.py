"""Where the cases of a user come from: lists of tools, and the fields of requests to model servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.cases.case import OF_TOOL
from harness.cases.suite import Suite, read_cases


@dataclass
class Asked:
    """What the user's own cases are asked for as."""

    tools: int = 0
    """The number of cases that are tools."""
    others: int = 0
    """The number of all others."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    """For each field of a request that holds its answer to something, such as `response_format`, the names of
    the cases that stand there."""

    def names_at(self, beginnings: tuple[str, ...]) -> dict[str, list[str]]:
        """Returns the fields that begin so, with the names of their cases."""
        return {place: names for place, names in self.fields.items() if place.startswith(beginnings)}


def asked_of(suites: Iterable[Suite]) -> Asked:
    """Returns what the cases of the user's own suites are asked for as. Raises BadInput for the first case
    that cannot be read, before any backend is looked at."""
    asked = Asked()
    for case in (case for suite in suites if not suite.is_ours for case in read_cases(suite)):
        if case.asked_at == OF_TOOL:
            asked.tools += 1
            continue
        asked.others += 1
        if case.asked_at:
            asked.fields.setdefault(case.asked_at, []).append(case.name)
    return asked
