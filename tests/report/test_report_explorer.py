"""The case explorer in a browser: what it shows, where it leads, that it stays quick, and that nothing in a
case can break out of it."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
from browser import Browser
from failing import find_failure
from report_schema import SCHEMA
from reported import EVIL, hostile_run, on_page, refusing_run

from harness.backend.vocabulary import load_vocabulary
from harness.report.cases.data import pack
from harness.report.page.inputs import read_inputs
from harness.report.page.page import write_report
from harness.rows.store import read_info
from harness.text import spreadsheet


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("runs") / "a 'run'; $(reboot)")


@pytest.fixture(scope="module")
def written(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([run], tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def spelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([refusing_run(tmp_path_factory.mktemp("run"))], tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize("split", [False, True])
def test_hostile_cases_are_shown_as_text_and_nothing_is_asked_of_the_network(
    run: Path, tmp_path: Path, browser: Browser, synthetic: ModuleType, split: bool
) -> None:
    page = write_report([run], tmp_path, split=split)
    browser.open(page.as_uri())
    browser.ask("window.alert = () => { document.title = 'attacked'; }; 0")
    browser.go("/cases")
    assert browser.ask("document.querySelectorAll('.rows tbody tr[aria-rowindex]').length") == 15
    shown = browser.ask("[...document.querySelectorAll('.rows td.title a')].map((each) => each.textContent)")
    assert {"</script><script>alert(9)</script>", "<!-- <script>", "line\\u2028end"} <= set(
        shown
    ) and "lone \\ud800 surrogate \\udfff" in shown
    for place in range(15):
        browser.go(f"/case/{browser.ask(f'index.cases.id[{place}]')}")
        name = browser.ask(f"shown(index.cases.name[{place}]).trim()")
        assert browser.ask("explorer.querySelector('h2').textContent") == name
        assert browser.ask("explorer.querySelectorAll('img, script, iframe, object, base').length") == 0
        assert browser.ask(
            "[...explorer.querySelectorAll('[href]')].every((each) => "
            "each.getAttribute('href').startsWith('#'))"
        )
    # Every cell of the features' table leads to the cases that it counts, whatever the tag and the backend
    # are called.
    anchors = "[...document.querySelectorAll('a')].map((each) => each.getAttribute('href'))"
    links = browser.ask(f"{anchors}.filter((each) => /^#.cases[?]backend=.*&tag=/.test(each))")
    for link in links[:40]:
        browser.go(link[1:])
        assert browser.ask("list.order.length") >= 1, link
    assert len(links) >= 15 and browser.console == [] and browser.ask("document.title") != "attacked"
    assert all(each.startswith(page.parent.as_uri()) for each in browser.requested)
    assert len(browser.requested) == (5 if split else 1)


def test_the_command_of_a_case_is_safe_to_paste_and_the_csv_is_one(
    run: Path, written: Path, browser: Browser
) -> None:
    browser.open(written.as_uri())
    browser.go("/cases")
    browser.go(f"/case/{browser.ask('index.cases.id[0]')}")
    command = browser.ask("[...explorer.querySelectorAll('[aria-label=\"command\"]')][1].textContent")
    words = shlex.split(command)
    assert words[:3] == ["grammarbench", "repro", str(run)] and words[5] == f"{EVIL[4]}:{EVIL[1]}"
    lines = list(csv.reader(io.StringIO(browser.ask("asCsv()"))))
    assert len(lines) == 31 and {len(each) for each in lines} == {12}
    assert any(each[1].startswith("'=cmd") for each in lines)
    for sign in ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "a"):
        (made,) = next(csv.reader(io.StringIO(browser.ask(f"cell({json.dumps(sign + '1')})"), newline="")))
        assert made == spreadsheet(f"{sign}1"), "as in the files of --format csv"
    assert json.loads(browser.ask("asJson()")) == json.loads((written.parent / "report.json").read_text())


@pytest.fixture(scope="module")
def shared(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two suites with one grammar in both, whose document is refused; in the second suite stands a
    grammar beside it that the backend declines."""
    one = synthetic.case(0, [("x", b"1", True)])
    cases = [("first", one), ("second", replace(one, name="the second's"))]
    rows = [
        synthetic.row(suite=suite, case=case.name, case_id=case.id, accepted=False, stopped_at=0)
        for suite, case in cases
    ]
    other = synthetic.case(1, [("y", b"2", True)])
    rows.append(
        synthetic.row(
            suite="second", case=other.name, case_id=other.id, status="unsupported", accepted=None, text="not"
        )
    )
    size = {"version": "1", "sha256": "cd" * 32, "cases": 2, "instances": 2}
    folder = synthetic.write_run(
        tmp_path_factory.mktemp("shared") / "run",
        [[(row, b"")] for row in rows],
        synthetic.info(synthetic.ARMS[:1], suites={"first": size, "second": size}),
        [*cases, ("second", other)],
    )
    return write_report([folder], folder / "report")


def test_a_link_leads_to_the_case_of_its_suite_and_the_command_names_that_suite(
    shared: Path, browser: Browser
) -> None:
    browser.open(shared.as_uri())
    links = browser.ask(
        "[...document.querySelectorAll(\"a[href^='#/case/']\")].map((each) => [each.textContent, "
        "each.getAttribute('href')])"
    )
    assert {title for title, _ in links} >= {"the second's"}
    for title, link in links:
        browser.go(link[1:])
        assert browser.ask("explorer.querySelector('h2').textContent") == title
        if title == "the second's":
            command = browser.ask("explorer.querySelector('[aria-label=\"command\"]').textContent")
            words = shlex.split(command)
            failure = find_failure(Path(words[2]), words[3], words[5], None, None)
            assert words[3].startswith("second/") and failure.row.suite == "second"


def test_the_list_of_failing_cases_has_as_many_as_are_promised(shared: Path, browser: Browser) -> None:
    browser.open(shared.as_uri())
    link = browser.ask("document.querySelector('#failing a[href^=\"#/cases\"]').getAttribute('href')")
    promised = browser.ask("document.querySelector('#failing').textContent")
    browser.go(link[1:])
    assert "3 cases fail, are refused or diverge" in promised and browser.ask("list.order.length") == 3


def test_in_an_empty_list_no_case_is_opened(shared: Path, browser: Browser) -> None:
    browser.open(shared.as_uri())
    browser.go("/cases?q=zzzz")
    for key in ("j", "Enter"):
        browser.press(key)
    assert browser.ask("location.hash") == "#/cases?q=zzzz" and browser.console == []


def test_a_column_that_a_link_has_sorted_turns_at_the_first_click(written: Path, browser: Browser) -> None:
    browser.open(f"{written.as_uri()}#/summary?sort=-conformance")
    head = "document.querySelector('th[data-key=conformance]')"
    before = browser.ask(f"{head}.getAttribute('aria-sort')")
    browser.ask(f"{head}.querySelector('button').click(); 0")
    assert browser.ask("location.hash") == "#/summary?sort=conformance"
    assert browser.ask(f"{head}.getAttribute('aria-sort')") != before


def test_without_the_cases_of_the_run_a_case_is_walked_again_from_its_suite(
    tmp_path: Path, browser: Browser
) -> None:
    run = refusing_run(tmp_path / "run")
    page = write_report(read_inputs([run], to_be_published=True), tmp_path / "report.html")
    browser.open(page.as_uri())
    browser.go("/cases")
    browser.go(f"/case/{browser.ask('index.cases.id[0]')}")
    words = shlex.split(browser.ask("explorer.querySelector('[aria-label=\"command\"]').textContent"))
    assert words[:4] == ["grammarbench", "run", "CORPUS/first", "--case"] and words[-2:] == ["--out", "again"]
    assert words[words.index("--vocabularies") + 1] in read_info(run).vocabularies, "and not the profile's"
    assert "grammarbench repro ." not in browser.ask("explorer.textContent")
    assert browser.console == []


def test_a_case_says_which_token_was_refused_what_is_right_and_how_to_see_it_again(
    spelled: Path, browser: Browser, tmp_path: Path
) -> None:
    vocabulary = load_vocabulary("probe")
    tokens = vocabulary.encode('{"a": "été"}'.encode())
    browser.open(spelled.as_uri())
    browser.go("/cases?state=failing")
    browser.press("j")
    browser.press("Enter")
    browser.until("location.hash.startsWith('#/case/') && explorer.querySelector('.came-out')")
    text = browser.ask("explorer.textContent")
    offset = len(b"".join(vocabulary.tokens[each] for each in tokens[:3]))
    assert (
        f"at token 3 of {len(tokens)}" in text
        and "; 17 tokens were allowed there" in text
        and f"at byte {offset}" in text
    )
    assert vocabulary.tokens[tokens[3]].hex() in {
        note.get("token") for each in on_page(spelled.read_text())[1] for note in each["notes"]
    }
    snippet = browser.ask("explorer.querySelector('[aria-label=\"snippet\"]').textContent")
    judged = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, timeout=60)
    assert judged.stdout.endswith(": the instance is valid\n")
    assert "# the case says: valid" in snippet
    issue = browser.ask("explorer.querySelector('[aria-label^=\"issue text\"]').textContent")
    assert "alpha 1.2.3" in issue and "--script repro.py" in issue and '{"a": "été"}' in issue
    for key, end in (("j", "#/case/"), ("Escape", "#/cases?state=failing"), ("Escape", "#disagreements")):
        before = browser.ask("location.hash")
        browser.press(key)
        browser.until(
            f"location.hash !== {json.dumps(before)} && location.hash.startsWith({json.dumps(end)})"
        )
    assert browser.console == []


def test_the_address_is_the_whole_state(spelled: Path, browser: Browser) -> None:
    browser.open(spelled.as_uri() + "#/cases?backend=alpha&state=valid&tag=properties&sort=-p99&q=case")
    browser.until("explorer.dataset.ready")
    names = "[...document.querySelectorAll('.rows td.title')].map((each) => each.textContent)"
    assert browser.ask(names) == ["case 3", "case 2", "case 1", "case 0"]
    assert browser.ask("document.querySelector('th[aria-sort=descending]').textContent").startswith(
        "Fill p99"
    )
    for query, found in (
        ("backend=beta&state=failing", 0),
        ("is=different&state=failing", 4),
        ("is=alike", 2),
        ("group=0", 4),
        ("tag=none", 0),
        ("q=CASE 5", 1),
        ("sort=__proto__&tag=none", 0),
        ("sort=constructor&group=0", 4),
    ):
        browser.go(f"/cases?{query}")
        assert browser.ask("list.order.length") == found, query
    browser.ask("location.hash = '#matrix'")
    browser.press("/")
    browser.until("document.activeElement && document.activeElement.name === 'q'")
    browser.ask("history.back()")
    browser.until("location.hash === '#matrix'")  # what was read is one step back
    browser.go("/case/nobody")
    assert "There is no case nobody" in browser.ask("explorer.textContent")
    assert browser.console == []


@pytest.mark.parametrize(("sort", "places"), [("compile", [1, 2, 0]), ("-compile", [2, 1, 0])])
def test_what_was_not_timed_comes_last_either_way_round(
    spelled: Path, browser: Browser, sort: str, places: list[int]
) -> None:
    browser.open(spelled.as_uri())
    browser.go("/cases")
    times = "index.compile_us.forEach((column) => [null, 5, 7].forEach((us, i) => { column[i] = us; })); 0"
    browser.ask(times)
    browser.go(f"/cases?sort={sort}")
    order = browser.ask("list.order")
    assert [place for place in order if place < 3] == places and order[-1] == 0


def test_the_list_says_of_how_many_cases_it_is_and_the_navigation_follows(
    spelled: Path, browser: Browser
) -> None:
    browser.open(spelled.as_uri())
    browser.press("/")
    browser.until("document.activeElement.name === 'q'")
    marked = "document.querySelector('nav a[aria-current]').dataset.tab"
    assert browser.ask(marked) == "cases", "the explorer is open, whatever was before"
    status = "explorer.querySelector('[role=status]').textContent"
    assert browser.ask(status).startswith("4 of 6 cases. ")
    browser.ask("index.page.in_all = 9; 0")
    browser.go("/cases")
    assert browser.ask(status).startswith("6 of 9 cases (the others are left off). ")
    browser.go("/cases?state=failing")
    assert browser.ask(status).startswith("4 of the 6 cases on this page (of 9, the others are left off). ")


def test_what_is_saved_from_the_page_says_what_the_page_leaves_off(spelled: Path, browser: Browser) -> None:
    browser.open(spelled.as_uri())
    browser.go("/cases")
    whole = json.loads(browser.ask("asJson()"))
    assert browser.ask("csvName()") == "cases.csv"
    left = {"stated": ["3 are left off."], "in_all": 9, "detailed": 6}
    browser.ask("index.page.in_all = 9; index.page.whole = false; index.stated = ['3 are left off.']; 0")
    assert json.loads(browser.ask("asJson()")) == whole | left and not left.keys() & whole.keys()
    jsonschema.validate(whole | left, SCHEMA)
    browser.ask("download = (name) => { document.title = name; }; 0")
    browser.ask("[...document.querySelectorAll('#downloads button')][1].click(); 0")
    browser.until("document.title === 'cases-6-of-9.csv'")


def test_fifty_thousand_rows_stay_quick(spelled: Path, browser: Browser, tmp_path: Path) -> None:
    html = spelled.read_text()
    index, _ = on_page(html)
    many = 50_000
    index["cases"] = {"id": [f"{each:012x}" for each in range(many)],
    "name": [f"case {each} of very many" for each in range(many)]} | {
        name: [index["cases"][name][each % 6] for each in range(many)] for name in ("suite", "dialect",
        "tags", "group", "different")
    }  # fmt: skip
    for name in ("compile_us", "fill_p50_us", "fill_p99_us"):
        index[name] = [[each * 7919 % 50_021 / 10 for each in range(many)] for _ in index["arms"]]
    index["state"] = [column[0] * many for column in index["state"]]
    page = tmp_path / "report.html"
    page.write_text(re.sub(r'(id="data-index">)[^<]*', lambda found: found[1] + pack(index), html))
    browser.open(page.as_uri() + "#/cases")
    browser.until("explorer.dataset.ready")
    rows = "document.querySelectorAll('.rows tbody tr').length"
    assert browser.ask("list.order.length") == many and 10 < browser.ask(rows) <= 100
    assert float(browser.ask("explorer.dataset.opened")) < 1000
    browser.ask("document.querySelector('.rows').scrollTop = 1e9; 0")
    browser.until(
        "[...document.querySelectorAll('.rows td.title')].some((each) => each.textContent === "
        "'case 49999 of very many')"
    )
    assert browser.ask(rows) <= 100
    for query in ("sort=-p99", "q=9999", "sort=name&state=failing"):
        browser.go(f"/cases?{query}")
        assert float(browser.ask("explorer.dataset.opened")) < 1000 and browser.ask(rows) <= 100
    assert browser.console == []


def test_with_scripts_off_the_page_is_whole(spelled: Path, browser: Browser) -> None:
    browser.open(spelled.as_uri(), scripts=False)
    visible = (
        "[...document.querySelectorAll('#disagreements, #failing .case, #explorer')].map((each) => "
        "each.getClientRects().length > 0)"
    )
    assert browser.ask(visible) == [False, True, *[True] * 4]
    browser.open(spelled.as_uri())
    assert browser.ask("document.querySelectorAll('#failing .case').length") == 0
    assert browser.ask("document.querySelector('#disagreements a').getAttribute('href')").startswith("#/")


def test_a_page_whose_data_is_gone_says_so(spelled: Path, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(re.sub(r'(id="data-index">)[^<]*', r"\1!!", spelled.read_text()))
    browser.open(page.as_uri() + "#/cases")
    browser.until("explorer.textContent.includes('could not be opened')")


def test_an_old_browser_keeps_what_needs_no_script(spelled: Path, browser: Browser, tmp_path: Path) -> None:
    """Without DecompressionStream the page is as it is without a script, and says why."""
    browser.open("about:blank#x")
    identifier = browser.send(
        "Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.DecompressionStream"
    )["identifier"]
    try:
        browser.open(spelled.as_uri())
        assert browser.ask("document.querySelectorAll('#failing .case').length") == 4
        assert "cannot open the page's data" in browser.ask("document.body.textContent")
    finally:
        browser.send("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)
