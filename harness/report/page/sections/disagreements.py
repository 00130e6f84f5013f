"""Disagreements: the failing cases in groups, those on which the arms differ first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.cases.cases import commonest_message
from harness.report.cases.data import Explored
from harness.report.cases.failing import CASE_KINDS
from harness.report.cases.groups import Group
from harness.report.page.content import Content
from harness.report.page.section import Section, Values

SHOWN_GROUPS, EXAMPLES, TAGS = 20, 3, 6
"""Most groups of a table, most examples of a group, and most tags that its cases share."""


def values(page: Content) -> Values:
    """Returns the groups of failing cases on which the arms differ, and of those that fail alike."""
    explored, lines, anchors = page.explored, page.inputs.tried, page.failing.anchors
    numbered = list(enumerate(explored.groups))
    arms = explored.index["arms"]
    return {
        "explored": explored,
        "lines": lines,
        "is_walked": any(line.arm.cases for line in lines),
        "differing": _shown(explored, [group for group in numbered if group[1].different], anchors),
        "alike": _shown(explored, [group for group in numbered if not group[1].different], anchors),
        "solve_nothing": [line for line, arm in zip(lines, arms, strict=True) if arm["solves_nothing"]],
    }


SECTION = Section("disagreements", "Disagreements", 110, values, "cases")


@dataclass(frozen=True)
class GroupShown:
    """One group as a line of the table."""

    number: int
    cases: int
    tags: list[str]
    states: list[str]
    """The state on each arm, in words."""
    message: str
    examples: list[tuple[str, str, str, str]]
    """Anchor of the case if it is on the page without the script, suite, id and name."""


@dataclass(frozen=True)
class GroupsShown:
    """The largest groups, and how much there is besides."""

    groups: list[GroupShown]
    left_off: int
    cases: int


def _shown(
    explored: Explored, groups: Sequence[tuple[int, Group]], anchors: dict[tuple[str, str], str]
) -> GroupsShown:
    made = [_group(explored, number, group, anchors) for number, group in groups[:SHOWN_GROUPS]]
    return GroupsShown(
        made, max(0, len(groups) - SHOWN_GROUPS), sum(len(group.members) for _, group in groups)
    )


def _group(explored: Explored, number: int, group: Group, anchors: dict[tuple[str, str], str]) -> GroupShown:
    cases = [explored.cases[member] for member in group.members[:EXAMPLES]]
    examples = [
        (anchors.get((case.suite, case.id), ""), case.suite, case.id, case.name[:60]) for case in cases
    ]
    states = [CASE_KINDS[kind] if kind else "–" for kind in group.vector]
    return GroupShown(
        number,
        len(group.members),
        list(group.tags[:TAGS]),
        states,
        commonest_message(explored.cases[member] for member in group.members)[:200],
        examples,
    )
