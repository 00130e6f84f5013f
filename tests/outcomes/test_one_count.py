"""One small real run, and how many cases work, failed, were refused or not judged, as each surface has it:
all say the same, in the same words."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest

import harness
from harness.cli.main import main
from harness.errors import OK
from harness.outcomes.case_state import FAILED, CaseState
from harness.outcomes.history import conformance
from harness.outcomes.metrics import METRICS

pytest.importorskip("xgrammar")
pytest.importorskip("llguidance")


class Tables(HTMLParser):
    """The tables of a page: the class of each, and its lines of cells as text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.cell = False
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append((dict(attrs).get("class") or "", []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append("")
            self.cell = True

    def handle_endtag(self, tag: str) -> None:
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.cell:
            self.tables[-1][1][-1][-1] += data


OUTCOMES = ("works", "failed", "refused", "not_judged", "not_measured")
KNOWN = (
    "cases", "judged", *OUTCOMES, "breaks", "silently_wrong", "valid_refused", "too_slow", "other_fault"
)  # fmt: skip
ARMS = ("llguidance", "xgrammar")

TITLES = {name: METRICS[name].title.lower() for name in KNOWN}
"""How people read each of them."""

Counts = dict[str, dict[str, int]]
"""The numbers of KNOWN, or of OUTCOMES, by backend."""


def glyph_and_words(state: CaseState) -> str:
    return f"{state.words.glyph} {state.words.title}"


def _text(text: str, valid: bool) -> dict[str, Any]:
    return {"description": text, "text": text, "valid": valid}


def _data(data: object, valid: bool) -> dict[str, Any]:
    return {"description": json.dumps(data), "data": data, "valid": valid}


UNIQUE = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0, "maximum": 2},
    "uniqueItems": True,
    "minItems": 3,
}
OBJECT = {
    "type": "object",
    "properties": {"b": {"enum": ["x", "y"]}},
    "required": ["b"],
    "additionalProperties": False,
}
CASES: list[dict[str, Any]] = [
    {"description": "digits", "regex": "[0-9]{1,4}", "tests": [_text("12", True), _text("a", False)]},
    # llguidance forces the canonical tokens here, and says so of itself
    {
        "description": "one word",
        "regex": "hello world",
        "tests": [_text("hello world", True), _text("hello", False)],
    },
    {"description": "bare regex", "regex": "[ab]c"},
    {"description": "choice", "choice": ["yes", "no"], "tests": [_text("yes", True), _text("maybe", False)]},
    {"description": "object", "schema": OBJECT, "tests": [_data({"b": "x"}, True), _data({"b": "z"}, False)]},
    {
        "description": "not a string",
        "schema": {"not": {"type": "string"}},
        "tests": [_data(1, True), _data("x", False)],
    },
    {"description": "bare object", "schema": OBJECT | {"title": "bare"}},
    # no document can be made that breaks it, so nothing tells whether a backend is right
    {"description": "anything", "schema": True},
    # the walks see that xgrammar ignores uniqueItems; llguidance declines it
    {"description": "bare unique items", "schema": UNIQUE},
]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which all of this is done, and what the run printed."""
    folder = tmp_path_factory.mktemp("one_count")
    (folder / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CASES))
    words = [
        "run",
        "cases.jsonl",
        "--backends",
        ",".join(ARMS),
        "--vocabularies",
        "probe",
        "--profile",
        "full",
        "--effort",
        "2",
    ]
    # In a process of its own: the summary at its end is printed by a child, straight to the terminal.
    command = [sys.executable, "-m", "harness", *words, "--jobs", "1", "--out", "run"]
    environment = os.environ | {"COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == OK, done.stderr
    printed = done.stdout
    _grammarbench(folder, "report", "run", "--format", "all", "--out", "exported")
    _grammarbench(folder, "report", "run", "--out", "page")
    _grammarbench(folder, "history", "past", "--add", "run")
    _grammarbench(folder, "report", "--history", "past", "--out", "site")
    return folder, printed


def _grammarbench(folder: Path, *words: str) -> str:
    """What the command prints, run in this process and in that folder."""
    printed = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
    ):
        patch.setenv("COLUMNS", "100")
        assert main(list(words)) == OK
    return printed.getvalue()


@pytest.fixture(scope="module")
def counts(walked: tuple[Path, str]) -> Counts:
    """What `result.json` says."""
    result = json.loads((walked[0] / "exported" / "result.json").read_text())
    found = {each["arm"].split()[0]: {name: each[name] for name in KNOWN} for each in result["counts"]}
    assert sorted(found) == sorted(ARMS)
    return found


def test_the_run_has_all_kinds_of_cases_and_each_is_counted_once(
    walked: tuple[Path, str], counts: Counts
) -> None:
    for each in counts.values():
        assert sum(each[name] for name in OUTCOMES) == each["cases"] == len(CASES)
    kinds = {name for each in counts.values() for name in OUTCOMES if each[name]}
    assert kinds == {"works", "failed", "refused", "not_judged"}
    noted = {
        (each["arm"].split()[0], each["case"]): each for each in _csv(walked[0] / "exported" / "failing.csv")
    }
    assert (
        noted["llguidance", "one word"]["outcome"] == "works"
        and "canonical_only" in noted["llguidance", "one word"]["faults"]
    )
    assert noted["xgrammar", "bare unique items"]["outcome"] == "failed"
    assert noted["llguidance", "bare unique items"]["outcome"] == "refused"
    for arm in ARMS:
        assert counts[arm]["judged"] == len(CASES) - 1, "all but the schema that allows anything"


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _of_the_terminal(text: str) -> Counts:
    """From lines such as `Judged   7   8`; a line that is 0 for all backends may be missing."""
    lines = {
        match[1]: match[2].split()
        for match in re.finditer(r"^([A-Z][a-z ]+?) {2,}([\d, ]+)$", text, re.MULTILINE)
    }
    return {
        arm: {name: int(lines.get(METRICS[name].title, "00")[place]) for name in KNOWN}
        for place, arm in enumerate(ARMS)
    }


def _of_what_a_run_prints(folder: Path, printed: str) -> Counts:
    return _of_the_terminal(printed)


def _of_the_summary(folder: Path, printed: str) -> Counts:
    return _of_the_terminal(_grammarbench(folder, "table", "run", "summary"))


def _of_the_summary_as_json(folder: Path, printed: str) -> Counts:
    found = json.loads(_grammarbench(folder, "table", "run", "summary", "--json"))["backends"]
    for each in found:
        assert {name: each["metrics"][name] for name in KNOWN} == {
            name: each["counts"][name] for name in KNOWN
        }
    return {each["backend"]: {name: each["counts"][name] for name in KNOWN} for each in found}


def _of_the_table(folder: Path, printed: str) -> Counts:
    cases, _, _ = _grammarbench(folder, "table", "run").partition(
        "WALKS"
    )  # some of the names are those of counted walks too
    return _of_the_terminal(cases)


def _of_markdown(text: str) -> Counts:
    cells = [
        [cell.strip().replace("\\", "") for cell in line.strip("| ").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    head = next(number for number, line in enumerate(cells) if "judged" in line)
    lines = [dict(zip(cells[head], line, strict=True)) for line in cells[head + 2 : head + 2 + len(ARMS)]]
    return {
        each["backend"].split()[0]: {name: int(each[title]) for name, title in TITLES.items()}
        for each in lines
    }


def _of_the_step_summary(folder: Path, printed: str) -> Counts:
    return _of_markdown((folder / "exported" / "summary.md").read_text())


def _of_the_reports_summary(folder: Path, printed: str) -> Counts:
    return _of_markdown((folder / "page" / "summary.md").read_text())


def _of_the_markdown_tables(folder: Path, printed: str) -> Counts:
    return _of_markdown((folder / "exported" / "tables.md").read_text())


def _of_cases_csv(folder: Path, printed: str) -> Counts:
    return {
        each["arm"].split()[0]: {name: int(each[name]) for name in KNOWN}
        for each in _csv(folder / "exported" / "cases.csv")
    }


def _of_figures_csv(folder: Path, printed: str) -> Counts:
    found: Counts = {}
    for each in _csv(folder / "exported" / "figures.csv"):
        if each["name"] in KNOWN:
            found.setdefault(each["arm"].split()[0], {})[each["name"]] = int(float(each["value"]))
    return found


def _of_junit(folder: Path, printed: str) -> Counts:
    found: Counts = {}
    for suite in xml.parse(folder / "exported" / "junit.xml").getroot():
        properties = {each.get("name"): each.get("value") or "" for each in suite.iter("property")}
        if "backend" not in properties:
            continue
        mine = {name: int(properties[name]) for name in KNOWN}
        told = [each.get("message", "") for each in suite.iter("skipped")]
        kinds = Counter(each.get("type") for each in suite.iter("failure"))
        assert kinds == {state.value: mine[state.value] for state in FAILED if mine[state.value]}
        assert sum(kinds.values()) == mine["failed"] == int(suite.get("failures", ""))
        assert sum(each.startswith("refused: ") for each in told) == mine["refused"]
        names = [each.get("name", "") for each in suite.iter("testcase")]
        assert f"works: {mine['works']} cases" in names and "not judged: 1 case" in names
        found[properties["backend"]] = mine
    return found


def _of_the_page(folder: Path, printed: str) -> Counts:
    ((heads, *lines),) = [
        lines for name, lines in Tables(folder / "page" / "report.html").tables if "summary" in name.split()
    ]
    first = heads.index("all")
    last = heads.index("conformance")
    found: Counts = {}
    for cells in lines:
        numbers = dict(zip(heads[first:last], cells[first:last], strict=True))
        found[cells[0].split()[0]] = {
            name: int(numbers["all" if name == "cases" else title]) for name, title in TITLES.items()
        }
    return found


def _cards(folder: Path) -> dict[str, str]:
    """The HTML of each card of the page, by backend."""
    cards = (folder / "page" / "report.html").read_text().split('<li class="card')[1:]
    return {re.findall(r'<span class="arm">([^<]*)', card)[0]: card.partition("</li>")[0] for card in cards}


def _of_the_cards(folder: Path, printed: str) -> Counts:
    found: Counts = {}
    for arm, card in _cards(folder).items():
        titles = {title: name for name, title in TITLES.items()}
        told = Counter(
            {
                titles[title.strip()]: int(number)
                for title, number in re.findall(r"</span>([^<]*)</dt><dd>(\d+)", card)
            }
        )
        failed = sum(told[state.value] for state in FAILED)
        found[arm] = {name: told[name] for name in KNOWN[2:]} | {"failed": failed}
    return found


def _of_every_case_on_the_page(folder: Path, printed: str) -> Counts:
    ((heads, *lines),) = [
        lines for name, lines in Tables(folder / "page" / "report.html").tables if "by-case" in name.split()
    ]
    found: Counts = {}
    for place, arm in enumerate(heads[1:], 1):
        # A cell begins with the glyph and the words of the state.
        counted = Counter(
            next(state.value for state in CaseState if cells[place].startswith(glyph_and_words(state)))
            for cells in lines
        )
        counted["failed"] = sum(counted[state.value] for state in FAILED)
        found[arm.strip()] = {name: counted[name] for name in KNOWN[2:]}
    return found


def _of_the_explorer(folder: Path, printed: str) -> Counts:
    """Each case is in a state on each arm; one that works but for documented faults is told apart."""
    found = json.loads((folder / "page" / "report.json").read_text())
    kinds = {each["letter"]: each for each in found["states"]}
    for state in CaseState:
        assert glyph_and_words(state) in {each["title"] for each in kinds.values() if each["name"] == state}
    counts: Counts = {}
    for arm, letters in zip(found["arms"], found["state"], strict=True):
        came_to = Counter(kinds[each]["name"].removesuffix("_as_documented") for each in letters)
        came_to["failed"] = sum(kinds[each]["fails"] for each in letters)
        counts[arm["backend"]] = {name: came_to[name] for name in KNOWN[2:]}
    return counts


def _of_the_history(folder: Path, printed: str) -> Counts:
    found: Counts = {}
    for each in conformance.read_histories(folder / "past"):
        counts = each.features[conformance.EVERY]
        assert counts.keys() <= {*KNOWN, conformance.HURRIED, conformance.BESIDE}
        found[each.backend] = {name: counts.get(name, 0) for name in KNOWN[2:]} | {
            "failed": sum(counts.get(state.value, 0) for state in FAILED),
            "judged": conformance.judged(counts),
        }
    return found


def _of_the_frames(folder: Path, printed: str) -> Counts:
    found: Counts = {}
    for arm, cases in harness.load(folder / "run").cases.groupby("backend"):
        states = Counter(cases["outcome"]) + Counter(cases[cases["outcome"] == "failed"]["state"])
        judged = int(cases["judged"].sum())
        found[str(arm)] = {name: states[name] for name in KNOWN} | {"cases": len(cases), "judged": judged}
    return found


def _of_the_table_of_a_paper(folder: Path, printed: str) -> Counts:
    """It has no column for what no case came to, and failed cases only by what goes wrong."""
    lines = (folder / "exported" / "table-outcomes.tex").read_text().partition("\\toprule\n")[2].splitlines()
    head = re.sub(r"\\shortstack\[r\]\{(.*?)\}", lambda words: words[1].replace(" \\\\", ""), lines[0])
    names = {METRICS[name].title: name for name in KNOWN}
    found: Counts = {}
    for arm, line in zip(ARMS, lines[2:4], strict=True):
        cells = dict(zip(head.split(" & "), line.split(" & "), strict=True))
        assert cells["Backend"] == arm
        told = {names[title]: int(cell) for title, cell in cells.items() if title in names}
        mine = dict.fromkeys(KNOWN, 0) | told
        found[arm] = mine | {"failed": sum(mine[state] for state in FAILED)}
    return found


def _of_the_suite_in_pytest(folder: Path, printed: str) -> Counts:
    ours = [
        f"--grammarbench-backend={','.join(ARMS)}",
        "--grammarbench-suite=cases.jsonl",
        "--grammarbench-effort=2",
    ]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=pytest.xml", *ours]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=200)
    found: Counts = {arm: dict.fromkeys(OUTCOMES, 0) for arm in ARMS}
    for case in xml.parse(folder / "pytest.xml").getroot().iter("testcase"):
        arm = re.split(r"[\[-]", case.get("name", ""))[1]
        failure, skipped, error = (case.find(each) for each in ("failure", "skipped", "error"))
        assert error is None, error.text
        message = "" if skipped is None else skipped.get("message", "")
        assert not OTHER_WORDS.search(message), message
        said = message.partition(":")[0].replace(" ", "_")
        found[arm]["failed" if failure is not None else said or "works"] += 1
    return found


SURFACES: Iterable[Callable[[Path, str], Counts]] = (
    _of_what_a_run_prints, _of_the_summary, _of_the_summary_as_json, _of_the_table, _of_the_step_summary,
    _of_the_reports_summary,
    _of_the_markdown_tables, _of_cases_csv, _of_figures_csv, _of_junit, _of_the_page, _of_the_cards,
    _of_every_case_on_the_page, _of_the_explorer, _of_the_history, _of_the_frames, _of_the_table_of_a_paper,
    _of_the_suite_in_pytest,
)  # fmt: skip


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__.removeprefix("_of_"))
def test_every_surface_counts_the_same(
    walked: tuple[Path, str], counts: Counts, surface: Callable[[Path, str], Counts]
) -> None:
    said = surface(*walked)
    assert sorted(said) == sorted(counts)
    for arm, each in said.items():
        assert each == {name: counts[arm][name] for name in each}
        assert set(OUTCOMES) <= set(each)


OTHER_WORDS = re.compile(
    r"\b(pass(ed|es|ing)?|declin(ed|es)|timed? out|under-constrained|over-constrained)\b", re.I
)
"""What a case must not be called, for these words are those of other tools and of walks."""

OF_WALKS = re.compile(r".*(walks_|\| [\w-]+ \| \d+ walks).*")
"""A line about a figure that counts walks."""


def _without_style(html: str) -> str:
    return re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.DOTALL)


def _texts(folder: Path, printed: str) -> dict[str, str]:
    """What readers see of cases, by surface; without the lines and parts that are about walks."""
    page = _without_style((folder / "page" / "report.html").read_text())
    exported, site = folder / "exported", folder / "site"
    files = [exported / name for name in ("cases.csv", "table-outcomes.tex", "annotations.txt", "junit.xml")]
    files += [exported / "summary.md", exported / "tables.md", site / "feed.xml", *site.glob("badges/*")]
    return {
        "the terminal": printed,
        "table summary": _grammarbench(folder, "table", "run", "summary"),
        "table": _grammarbench(folder, "table", "run").partition("WALKS")[0],
        "the answer": re.findall(r'<section id="answer">.*?</section>', page, re.DOTALL)[0],
        "the counts": re.findall(r'<table class="summary stacked">.*?</table>', page, re.DOTALL)[0],
        "groups": re.findall(r'<section id="disagreements">.*?</section>', page, re.DOTALL)[0],
        "the dashboard": _without_style((site / "index.html").read_text()),
        "history": _grammarbench(folder, "history", "past"),
    } | {path.name: OF_WALKS.sub("", path.read_text()) for path in files}


def test_no_surface_has_another_word_for_what_a_case_comes_to(walked: tuple[Path, str]) -> None:
    texts = _texts(*walked)
    assert {name: found.group() for name, text in texts.items() if (found := OTHER_WORDS.search(text))} == {}
    for name in ("the answer", "the counts", "the dashboard", "table", "tables.md", "table-outcomes.tex"):
        words = re.sub(r"\s+", " ", texts[name].replace("\\\\", " ")).lower()
        assert all(state in words for state in ("works", "refused", "silently wrong")), name
    failing = list(_csv(walked[0] / "exported" / "failing.csv"))
    assert failing
    for line in failing:
        assert line["state"] in {state.value for state in CaseState}
        assert line["outcome"] == ("failed" if line["state"] in FAILED else line["state"])


def test_every_state_is_explained_once_under_the_name_that_all_surfaces_have() -> None:
    glossary = (Path(__file__).parents[2] / "docs" / "words.md").read_text()
    for state in CaseState:
        assert METRICS[state.value].title.lower() == state.words.title == TITLES[state.value]
        assert glossary.count(f"| {glyph_and_words(state)} | {state.words.meaning} |") == 1
    assert len({state.words.glyph for state in CaseState}) == len(CaseState)


def test_times_are_the_same_on_every_surface_and_written_for_people(walked: tuple[Path, str]) -> None:
    folder, printed = walked
    found = re.search(r"^TBM p50 +(\S+ \S+) +(\S+ \S+)$", printed, re.MULTILINE)
    assert found is not None and all(re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", time) for time in found.groups())
    tables = (folder / "exported" / "tables.md").read_text()
    for arm, time in zip(ARMS, found.groups(), strict=True):
        assert f"TBM p50</dt><dd>{time}" in _cards(folder)[arm]
        assert re.search(rf"\| {arm} .*time between masks, p50 \| {time} \|", tables)
    assert found.group(0) in _grammarbench(folder, "table", "run")


def test_the_answer_is_the_first_line_everywhere(walked: tuple[Path, str]) -> None:
    folder, _ = walked
    answer = json.loads(_grammarbench(folder, "table", "run", "summary", "--json"))["answer"]
    shown = " ".join(_grammarbench(folder, "table", "run", "summary").split())
    assert shown.startswith(" ".join(answer["sentence"].split()))
    page = (folder / "page" / "report.html").read_text()
    (sentence,) = re.findall(r'<h2 class="sentence">(.*?)</h2>', page)
    assert re.sub(r"</?code>", "`", sentence) == answer["sentence"]
    assert answer["best"] in ARMS


def test_what_was_not_judged_is_said_first(walked: tuple[Path, str], counts: Counts) -> None:
    folder, printed = walked
    for text in (
        printed,
        (folder / "exported" / "summary.md").read_text(),
        (folder / "page" / "report.html").read_text(),
    ):
        plain = " ".join(re.sub(r"<[^>]*>|\\", " ", text).split())
        for each in counts.values():
            said = (
                f"{each['judged']} of {each['cases']} cases judged; {each['not_judged']} not judged (no "
                "instance with a known verdict)"
            )
            assert said in plain
    assert printed.index("cases judged") < printed.index("Works")


def test_the_dashboard_shows_what_was_judged(walked: tuple[Path, str], counts: Counts) -> None:
    lines = [line for _, lines in Tables(walked[0] / "site" / "index.html").tables for line in lines]
    for arm, each in counts.items():
        line = next(line for line in lines if line[0].startswith(arm))
        assert line[1].split() == f"{each['works']} of {each['judged']}".split()
