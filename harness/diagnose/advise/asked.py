"""Where the cases of a user come from: lists of tools, and the fields of requests to model servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.cases.case import OF_TOOL
from harness.cases.suite import Passed, Suite, read_cases


@dataclass
class Asked:
    """What the user's own cases are asked for as."""

    tools: int = 0
    """How often a case is a tool."""
    others: int = 0
    """The number of cases that are something else."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    """For each field of a request that holds its answer to something, such as `response_format`, the names of
    the cases that stand there; of a case that stands in two fields, the request with the second one."""

    def note(self, place: str, name: str) -> None:
        """Takes in the place at which a case is asked for: a tool, or the field of a request."""
        if place == OF_TOOL:
            self.tools += 1
        elif place:
            self.fields.setdefault(place, []).append(name)

    def names_at(self, beginnings: tuple[str, ...]) -> dict[str, list[str]]:
        """Returns the fields that begin so, with the names of their cases."""
        return {place: names for place, names in self.fields.items() if place.startswith(beginnings)}


def asked_of(suites: Iterable[Suite]) -> Asked:
    """Returns what the cases of the user's own suites are asked for as. Raises BadInput for the first case
    that cannot be read, before any backend is looked at."""
    asked = Asked()
    for suite in (suite for suite in suites if not suite.is_ours):
        passed = Passed()
        for case in read_cases(suite, passed):
            asked.others += case.asked_at != OF_TOOL
            asked.note(case.asked_at, case.name)
        for (place, _), request in passed.asked_elsewhere.items():
            asked.note(place, request)
    return asked
