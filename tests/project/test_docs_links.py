"""What the documentation links to and names is there, and the pages that follow the code follow it."""

from __future__ import annotations

import re
from pathlib import Path

import pages
from pages import each_page, exists, our_options, pytest_options, text_of

from harness.backend.contract import check_name
from harness.backend.contract import checks as contract_checks
from harness.checks import checks
from harness.report.reference_page import page as reference_page

FOLDERS = ("adapters", "benchmarks", "docs", "harness", "reports", "results", "suites", "tests", ".github")
"""What a path in backticks begins with, if it is one of ours."""

OTHERS_OPTIONS = frozenset(
    {
        "--adapter",
        "--file",
        "--structured-outputs-config",
        "--constrained-json-max-whitespace-cnt",
        "--constrained-json-whitespace-pattern",
        "--tokenizer-mode",
        "--constrained-json-disable-any-whitespace",
    }
)
"""Options that pages name of programs that are not ours."""


def broken_links(page: Path, text: str) -> list[str]:
    wrong = []
    for link in pages.links(text):
        if not re.match(r"[a-z]+:", link):
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            if not target.exists() or (anchor and anchor not in pages.anchors(target.read_text("utf-8"))):
                wrong.append(link)
    return sorted(wrong)


def unknown_names(text: str) -> list[str]:
    """Paths of ours that are not there, and options that nobody has, in backticks."""
    wrong = []
    for span in pages.spans(text):
        if re.fullmatch(rf"(?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*", span) and not exists(span):
            wrong.append(span)
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", span):
            if (
                option not in our_options()
                and option not in pytest_options()
                and option not in OTHERS_OPTIONS
            ):
                wrong.append(option)
    return sorted(wrong)


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text("utf-8")) == []


@each_page
def test_paths_and_options_in_backticks_exist(page: Path) -> None:
    assert unknown_names(page.read_text("utf-8")) == []


def test_planted_links_and_names_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    linked = "[a](#one-heading) [b](#two) [c](gone.md) [d](https://x.org)"
    text = f"# One heading\n\n{linked} `harness/gone.py` `--gone` `--backends` `harness/cli/main.py`\n"
    page.write_text(text, "utf-8")
    assert broken_links(page, text) == ["#two", "gone.md"]
    assert unknown_names(text) == ["--gone", "harness/gone.py"]


def test_every_page_is_in_the_index() -> None:
    linked = pages.links(text_of("docs/README.md"))
    assert {each.name for each in pages.PAGES if each.parent.name == "docs"} - {"README.md"} <= linked


# --------------------------------------------------------------------------------- pages that follow the code


def test_the_reference_is_that_of_the_code() -> None:
    assert text_of("docs/reference.md") == reference_page(), (
        "run: python -m harness.report.reference_page > docs/reference.md"
    )


def entries(text: str) -> set[str]:
    """The facts that have a row with how they are tried and what cannot be seen."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return {
        cells[0].replace(" ", "_")
        for cells in rows
        if len(cells) == 3 and all(len(each) > 5 for each in cells[1:])
    }


def test_every_check_is_told_with_what_it_cannot_see() -> None:
    of_cases, of_adapters = text_of("docs/checks.md").split("## The contract checks")
    heads = {"the_fact"}
    assert entries(of_cases) - heads == set(checks())
    assert entries(of_adapters) - heads == set(map(check_name, contract_checks()))


def test_an_entry_that_says_nothing_is_none() -> None:
    assert entries("| a fact | how | |\n| another fact | how it goes | no limit |\n") == {"another_fact"}
