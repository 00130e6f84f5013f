"""The suite of known bugs: its cases are of reports, and docs/known_bugs.md speaks of all of them, and of no
others."""

from __future__ import annotations

import re
from collections import Counter

from places import ROOT

from harness.cases.suite import find_suite, read_cases

CASES = list(read_cases(find_suite("known-bugs")))
PAGE = (ROOT / "docs" / "known_bugs.md").read_text(encoding="utf-8")
FAULT = r"\*\*(?:refuses \d+|allows \d+|refuses \d+, allows \d+|crash|timeout|out of memory|exception)\*\*"
OUTCOME = re.compile(rf"(?:right|declined|{FAULT})(?: / (?:right|declined|{FAULT}))?")
BACKENDS = ["xgrammar", "llguidance", "outlines-core", "lm-format-enforcer"]


def lines_of_the_table() -> dict[str, list[str]]:
    """By case name: the cells of the page's table of cases, from the second on."""
    table = PAGE.partition("| Report and case |")[2].partition("\n\n")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in table.splitlines()
        if line.startswith("| [")
    ]
    return {re.sub(r"\[|\]|\(https://[^)]*\)", "", cells[0]): cells[1:] for cells in rows}


def test_a_case_is_named_after_a_report_and_says_whose_it_is() -> None:
    for case in CASES:
        assert re.match(r"[a-z.-]+#\d+ ", case.name), case.name
        assert re.fullmatch("category:[A-N]", case.tags[0]) and all(
            each.startswith("about:") for each in case.tags[1:]
        ), case.name
    assert len({case.name.partition(" ")[0] for case in CASES}) >= 50
    assert len({case.tags[0] for case in CASES}) >= 9


def test_a_case_forbids_something_and_allows_something_where_anything_is_allowed() -> None:
    for case in CASES:
        valid = {each.valid for each in case.instances}
        assert valid == {True, False} or case.name == "llguidance#206 empty interval of integers"


def test_the_page_has_a_line_for_every_case_and_for_no_other() -> None:
    assert set(lines_of_the_table()) == {case.name for case in CASES}


def test_the_page_says_what_happens_today_and_an_outcome_for_every_backend() -> None:
    for name, (today, *outcomes) in lines_of_the_table().items():
        assert (
            today and len(outcomes) == len(BACKENDS) and all(OUTCOME.fullmatch(each) for each in outcomes)
        ), (name, outcomes)


def test_what_the_page_calls_fixed_or_present_agrees_with_the_outcomes() -> None:
    for name, (today, *outcomes) in lines_of_the_table().items():
        home = name.partition("#")[0]
        if home in BACKENDS:
            outcome = outcomes[BACKENDS.index(home)]
            if today in ("fixed", "declined"):
                assert outcome in ("right", "declined") and (outcome == "declined") >= (
                    today == "declined"
                ), name
            if today.startswith("present"):
                assert "**" in outcome, name


def test_the_first_sentence_counts_the_cases_of_the_table() -> None:
    table = lines_of_the_table()
    first = (re.findall("^(?:fixed|present|declined)?", today)[0] for today, *_ in table.values())
    states = Counter(first)
    said = f"{len(table)} cases, {states['fixed']} are fixed, {states['present']} are present and "
    assert f"{said}{states['declined']} are declined** in" in PAGE.replace("\n", " ")
    assert f"of the other {states['']} the column *Today* says" in PAGE.replace("\n", " ")
