"""The sections about single cases, the script that explores them all, and the data that it reads, on the page or beside it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from harness.report.cases import OUTCOMES
from harness.report.data import Explored, Packed, commonest, fit
from harness.report.failing import shortened
from harness.report.groups import Group
from harness.report.sections import FailingCases, Line

SCRIPTS = ("store.js", "list.js", "detail.js", "route.js")
"""The explorer's parts of the page's one script, in order."""
ASSETS = "assets"
SHOWN_GROUPS, EXAMPLES, TAGS = 20, 3, 6
STATED, DATA = "<!--what is left off-->", "<!--the data of the cases-->"
"""Where these go, once the size of the rest is known; no text of a run can hold a bare `<`."""
NAV = (("disagreements", "Disagreements"), ("failing", "Failing cases"), ("data", "Data"))
FOOTER = "No network: it can be mailed or published as it stands. Raw rows: rows.jsonl in the run's folder."


@dataclass(frozen=True)
class CasesShown:
    """What the page's template shows of cases."""

    html: Markup
    data: Markup
    nav: tuple[tuple[str, str], ...] = NAV
    footer: str = FOOTER


@dataclass(frozen=True)
class GroupShown:
    """One group as a line of the table."""

    number: int
    cases: int
    tags: list[str]
    outcomes: list[str]
    """Per arm, in words."""
    said: str
    examples: list[tuple[str, str, str]]
    """Anchor of the case if it is on the page without the script, id and name."""


@dataclass(frozen=True)
class GroupsShown:
    """The largest groups, and how much there is besides."""

    groups: list[GroupShown]
    left_off: int
    cases: int


def sections(environment: jinja2.Environment, explored: Explored, failing: FailingCases, lines: Sequence[Line]) -> CasesShown:
    """Disagreements, failing cases and data, with a place for the explorer and one for its data."""
    numbered = list(enumerate(explored.groups))
    html = environment.get_template("cases.html.j2").render(
        explored=explored,
        failing=failing,
        lines=lines,
        differing=_shown(explored, [each for each in numbered if each[1].different], failing.anchors),
        alike=_shown(explored, [each for each in numbered if not each[1].different], failing.anchors),
        hopeless=[line for line, arm in zip(lines, explored.index["arms"], strict=True) if arm["solves_nothing"]],
        one_liners=_one_liners(lines),
        stated=Markup(STATED),
    )
    return CasesShown(Markup(html), Markup(DATA))


def _shown(explored: Explored, groups: Sequence[tuple[int, Group]], anchors: dict[tuple[str, str], str]) -> GroupsShown:
    made = [_group(explored, number, group, anchors) for number, group in groups[:SHOWN_GROUPS]]
    return GroupsShown(made, max(0, len(groups) - SHOWN_GROUPS), sum(len(group.members) for _, group in groups))


def _group(explored: Explored, number: int, group: Group, anchors: dict[tuple[str, str], str]) -> GroupShown:
    cases = [explored.cases[member] for member in group.members[:EXAMPLES]]
    examples = [(anchors.get((each.suite, each.id), ""), each.id, each.name[:60]) for each in cases]
    outcomes = [OUTCOMES[each] if each else "–" for each in group.vector]
    return GroupShown(number, len(group.members), list(group.tags[:TAGS]), outcomes, commonest(explored, group, shortened)[:200], examples)


def _one_liners(lines: Sequence[Line]) -> list[str]:
    """How to ask the data."""
    folder = lines[0].run.folder if lines else "RUN"
    rows = re.sub(r"[^\w./ -]", "_", f"{folder}/rows.jsonl")
    count = f"SELECT backend, status, count(*) FROM read_json_auto('{rows}', union_by_name=true) WHERE kind = 'row' GROUP BY ALL"
    return [
        f"duckdb -c {shlex.quote(count)}",
        "python -c \"import json, pandas; print(pandas.DataFrame(json.load(open('report.json'))['cases']))\"",
        f"python -c \"import pandas; print(pandas.read_json('{rows}', lines=True).groupby('backend').status.value_counts())\"",
        f"grammarbench table {shlex.quote(str(folder))} --format csv",
    ]


def with_data(html: str, explored: Explored, split: bool) -> tuple[str, Packed]:
    """The page with its data and with what was left off; the data lies beside the page if it is split (or had to be)."""
    packed = fit(explored, len(html.encode("utf-8", "replace")), split)
    stated = "".join(f'<p class="warning" role="note">{Markup.escape(each)}</p>\n' for each in packed.stated)
    data = "" if packed.split else "".join(f'<script type="text/plain" id="data-{name}">{text}</script>\n' for name, text in _named(packed))
    return html.replace(STATED, stated, 1).replace(DATA, data, 1), packed


def _named(packed: Packed) -> list[tuple[str, str]]:
    return [("index", packed.index), *((f"cases-{number}", text) for number, text in enumerate(packed.shards))]


def outside(html: str, packed: Packed) -> tuple[str, dict[str, str]]:
    """The page without inline style and script, for hosts that allow none, and the files beside it by path.

    The data are scripts too, for a page that is opened as a file may load no other kind.
    """
    html, stylesheet = _taken(html, "<style>", "</style>", f'<link rel="stylesheet" href="{ASSETS}/report.css">')
    html, script = _taken(html, "<script>", "</script>", f'<script src="{ASSETS}/report.js"></script>')
    html = re.sub(
        r"style-src 'unsafe-inline'; script-src 'sha256-[\w+/=]+'",
        "style-src 'self' file: 'unsafe-inline'; script-src 'self' file:",
        html,
        count=1,
    )
    data = {f"{ASSETS}/{name}.js": f'grammarbench("{name}", "{text}");\n' for name, text in _named(packed)}
    return html, {f"{ASSETS}/report.css": stylesheet.strip() + "\n", f"{ASSETS}/report.js": script + "\n"} | data


def _taken(html: str, begin: str, end: str, instead: str) -> tuple[str, str]:
    """The page with the element replaced, and what it held; only our own templates can open one."""
    before, found, rest = html.partition(begin)
    content, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page has no {begin}")
    return before + instead + after, content
