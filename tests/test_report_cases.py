"""The case explorer: groups, the data on the page and beside it, and that nothing in a case can break out of them."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from browser import CHROMIUM, Browser

from harness.report import data, write_report
from harness.report.cases import Cases
from harness.report.data import Explored, explore, fit, pack, unpack
from harness.report.groups import Signed, differs, grouped
from harness.report.page import render
from harness.report.sections import Line, RunSeen
from harness.row import Finding
from harness.seen import fold
from harness.store import read_end, read_info, read_rows, read_samples
from harness.vocabulary import load_vocabulary

SCHEMA = json.loads((Path(__file__).parents[1] / "results" / "report.schema.json").read_text())
EVIL = ("</script><script>alert(9)</script>", "<!-- <script>", "line\u2028end", "javascript:alert(8)", '"><img src=x onerror=alert(7)>')


# ---------------------------------------------------------------------------------------------------------------- groups


def test_cases_of_one_cause_fall_together() -> None:
    pattern = [Signed(("pattern", f"one{number}"), ("over_constrained", "pass")) for number in range(9)]
    refs = [Signed(("$ref", "type"), ("over_constrained", "pass")) for _ in range(5)]
    crash = [Signed(("pattern",), ("crash", "crash")) for _ in range(4)]
    fine = [Signed(("type",), ("pass", "pass")) for _ in range(30)]
    cases = [*pattern, *refs, *crash, *fine]
    groups = grouped(cases, range(18))
    assert [(each.vector, each.tags, each.members, each.different) for each in groups] == [
        (("over_constrained", "pass"), ("pattern",), tuple(range(9)), True),
        (("over_constrained", "pass"), ("$ref", "type"), tuple(range(9, 14)), True),
        (("crash", "crash"), ("pattern",), tuple(range(14, 18)), False),
    ]


def test_a_tag_that_is_everywhere_tells_nothing() -> None:
    cases = [Signed(("all", f"own{number}"), ("pass" if number % 2 else "declined", "pass")) for number in range(20)]
    (group,) = grouped(cases, range(0, 20, 2))
    assert group.tags == ("all",) and len(group.members) == 10


def test_four_hundred_failures_are_some_fifteen_groups() -> None:
    vectors = [("over_constrained", "pass"), ("pass", "declined"), ("under_constrained", "under_constrained"), ("pass", "crash")]
    causes = ["pattern", "$ref", "anyOf", "format"]
    cases = []
    for number in range(400):
        cases.append(Signed((causes[number // 4 % 4], f"noise{number % 97}", "type"), vectors[number % 4]))
    cases += [Signed(("type", f"noise{number % 97}"), ("pass", "pass")) for number in range(800)]
    groups = grouped(cases, range(400))
    assert len(groups) == 16 and sum(len(each.members) for each in groups) == 400
    assert all(each.tags[0] in causes for each in groups)


def test_an_arm_that_solves_nothing_makes_no_difference() -> None:
    assert differs(("pass", "pass", "under_constrained")) and not differs(("pass", "pass", "under_constrained"), frozenset({2}))
    assert not differs(("pass", "skipped", "")) and not differs(("pass", "harness_error"))
    cases = [Signed(("a",), ("declined", kind)) for kind in ("pass", "under_constrained", "pass", "under_constrained")]
    (group,) = grouped(cases, range(4), frozenset({1}))
    assert group.vector == ("declined", "") and not group.different


# ------------------------------------------------------------------------------------------------------------------ data


@pytest.fixture(scope="module")
def run(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile strings in every field that a case, a backend or a version can fill."""
    evil = [*EVIL, *synthetic.HOSTILE]
    arms = [
        synthetic.Arm("alpha", EVIL[0], "", "alpha", ("json_schema",), "bitmask"),
        synthetic.Arm(EVIL[4], "1", EVIL[1], EVIL[2], (), "bool"),
    ]
    cases, groups = [], []
    for number, each in enumerate(evil):
        instances = [
            (each, each.encode("utf-8", "replace"), True),
            ("broken", b'"\xff\xfe' + bytes([number]), False),
            ("x", b"1" * 1_000_000, True),
        ]
        case = synthetic.case(number, instances[: 3 if number == 4 else 2], each, json.dumps({"const": each}), [each, "type"])
        cases.append((evil[-1 - number], case))
        for arm in arms:
            fields = {"backend": arm.backend, "backend_version": arm.version, "options": arm.options, "suite": evil[-1 - number]}
            fields |= {"case": case.name, "case_id": case.id, "tags": case.tags, "text": each, "phase": "accept", "status": "backend_error"}
            finding = Finding("a check", 2, each, cause=each[:20], instance=0, over=3, under=1, examples=("fffe", "3c2f"), walk=(1, 2))
            rows = [synthetic.row(**fields, accepted=None, instance=0, instance_name=each, findings=(finding,))]
            rows.append(synthetic.row(**fields | {"status": "ok", "phase": ""}, valid=False, accepted=True, instance=1))
            groups.append([(row, synthetic.ns(1_000, 10, 3_000, 10)) for row in rows])
    folder = tmp_path_factory.mktemp("runs") / "a 'run'; $(reboot)"
    made: Path = synthetic.write_run(folder, groups, synthetic.info(arms), cases)
    return made


@pytest.fixture(scope="module")
def written(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([run], tmp_path_factory.mktemp("page"))


class Scripts(HTMLParser):
    """The script elements: attributes and content; and every address that the page names."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"
        if self.inside:
            self.found.append((dict(attrs), ""))
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, text: str) -> None:
        if self.inside:
            self.found[-1] = self.found[-1][0], self.found[-1][1] + text


def on_page(html: str) -> tuple[dict[str, Any], list[Any]]:
    """Index and details, as the page's own script reads them."""
    texts = {attributes["id"]: text for attributes, text in Scripts(html).found if attributes.get("type") == "text/plain"}
    index = unpack(texts["data-index"])
    return index, [each for number in range(len(index["shards"])) for each in unpack(texts[f"data-cases-{number}"])]


def test_the_data_comes_back_as_it_went_in(written: Path, synthetic: ModuleType) -> None:
    index, details = on_page(written.read_text())
    beside = json.loads((written.parent / "report.json").read_text())
    assert details == beside.pop("details") and len(details) == 15
    assert {name: value for name, value in index.items() if name not in ("shards", "detailed", "stated")} == beside
    evil = {*EVIL, *synthetic.HOSTILE}
    assert {*index["cases"]["name"], *index["suites"]} == evil and evil <= {*index["tags"]}
    assert {json.loads(each["grammar"])["const"] for each in details} == evil
    assert {note["text"] for each in details for note in each["notes"] if "text" in note} == evil


def test_what_is_long_is_cut_and_what_is_no_utf8_says_so(written: Path) -> None:
    _, details = on_page(written.read_text())
    (long,) = (each for detail in details for each in detail["instances"] if each["name"] == "x")
    assert len(long["content"]) == 65_536 and long["left_off"] == 1_000_000 - 65_536
    broken = [each for detail in details for each in detail["instances"] if each["name"] == "broken"]
    assert len(broken) == 15 and all(each["content"].startswith('"\\xff\\xfe') and each["invalid_utf8"] for each in broken)


def test_report_json_is_what_its_schema_says(written: Path) -> None:
    made = json.loads((written.parent / "report.json").read_text())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(made, SCHEMA)
    lengths = {len(column) for column in made["cases"].values()} | {len(made["details"]), *map(len, made["outcome"])}
    assert len(lengths) == 1
    wrongs: tuple[dict[str, Any], ...] = ({"kind": "other"}, {"outcome": ["A"]}, {"stranger": 1}, {"details": [{"notes": []}]})
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(made | wrong, SCHEMA)


def test_summary_md_lies_beside_the_page(written: Path) -> None:
    assert "## GrammarBench" in (written.parent / "summary.md").read_text()


def test_nothing_on_the_page_leaves_it(written: Path) -> None:
    scripts = Scripts(written.read_text())
    assert [attributes for attributes, _ in scripts.found if attributes.get("type") != "text/plain"] == [{}]
    assert not [each for each in scripts.addresses if not each.startswith(("#", "data:,"))]
    code = scripts.found[-1][1]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|https?://(?!www\.w3\.org/2000/svg)", code
    )


def test_the_same_run_is_the_same_page(run: Path, written: Path) -> None:
    assert render([run]) == written.read_text()


# --------------------------------------------------------------------------------------------------------------- the caps


@pytest.fixture(scope="module")
def explored(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Explored:
    """Forty cases with instances of 20 kB that do not compress, every fourth of them failing."""
    noise = "".join(map(chr, range(33, 92)))
    cases, groups = [], []
    for number in range(40):
        text = "".join(noise[(number + 7) * place * place * 31 % 59 - place // 59 % 7] for place in range(20_000))
        case = synthetic.case(number, [("long", text.encode(), True)])
        cases.append(("first", case))
        groups.append([(synthetic.row(case=case.name, case_id=case.id, accepted=bool(number % 4)), synthetic.ns(number * 1000, 5))])
    folder = synthetic.write_run(tmp_path_factory.mktemp("run"), groups, synthetic.info(synthetic.ARMS[:1]), cases)
    return explored_of(folder)


def explored_of(folder: Path) -> Explored:
    info, seen = read_info(folder), Cases()
    rows = list(read_rows(folder))
    for row in rows:
        seen.add(row, 0)
    run = RunSeen(0, folder, info, read_end(folder), len(rows))
    arms = fold(rows, read_samples(folder), info)
    return explore(seen, [Line(position, arm.name, run, arm) for position, arm in enumerate(arms)])


def test_first_the_details_of_what_passes_go_then_its_rows_then_the_ends_of_texts_then_the_data(explored: Explored) -> None:
    whole = fit(explored, 0)
    assert whole.stated == [] and not whole.split
    size = whole.size
    assert sum(len(unpack(each)) for each in whole.shards) == 40

    lean = fit(explored, 0, usual=size - 1, most=size)
    index = unpack(lean.index)
    assert (len(index["cases"]["id"]), index["detailed"], lean.split) == (40, 10, False) and lean.size < size / 2
    assert "30 cases that fail nowhere" in lean.stated[0] and index["stated"] == lean.stated

    failing = fit(explored, 0, usual=0, most=lean.size - 1)
    assert len(unpack(failing.index)["cases"]["id"]) == 10 and "are left off" in failing.stated[0]
    cut = fit(explored, 0, usual=0, most=failing.size - 1)
    assert all(len(each["instances"][0]["content"]) == 4096 for each in unpack(cut.shards[0]))
    assert all(each["instances"][0]["left_off"] == 20_000 - 4096 for each in unpack(cut.shards[0]))
    assert "cut after 4,096 bytes" in cut.stated[-1] and not cut.split
    out = fit(explored, 0, usual=0, most=cut.size - 1)
    assert out.split and "assets" in out.stated[0] and unpack(out.index)["detailed"] == 40


def test_times_are_observed_values(explored: Explored) -> None:
    number = explored.index["cases"]["name"].index("case 7")
    assert explored.index["fill_p50_us"][0][number] == explored.index["fill_p99_us"][0][number] == 7.0
    assert explored.index["compile_us"][0][number] == 1000.0


def test_a_page_that_would_be_too_large_is_split_and_says_so(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data.fit, "__defaults__", (False, 1000, 2000))
    page = write_report([run], tmp_path / "page.html")
    assert "lie in the folder assets beside it" in page.read_text() and (tmp_path / "assets" / "index.js").exists()


def test_a_split_page_has_no_inline_script_and_names_only_its_own_files(run: Path, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "cases-77.js").write_text("of an older page")
    page = write_report([run], tmp_path, split=True)
    scripts = Scripts(page.read_text())
    assert scripts.found == [({"src": "assets/report.js"}, "")]
    assert "<style" not in page.read_text() and "'unsafe-inline'; script-src 'self' file:;" in page.read_text()
    files = {each for each in scripts.addresses if not each.startswith(("#", "data:,"))}
    assert files == {"assets/report.css", "assets/report.js"}
    names = {each.name for each in (tmp_path / "assets").iterdir()}
    assert names == {"report.css", "report.js", "index.js", "cases-0.js"}
    registered = re.fullmatch(r'grammarbench\("index", "([\w+/=]+)"\);\n', (tmp_path / "assets" / "index.js").read_text())
    assert registered and unpack(registered[1])["detailed"] == 15


def test_what_the_page_says_to_type_works(written: Path) -> None:
    (line,) = re.findall(r"^python -c .*report\.json.*$", written.read_text().replace("&#34;", '"').replace("&#39;", "'"), re.M)
    done = subprocess.run([sys.executable, *shlex.split(line)[1:]], cwd=written.parent, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "[15 rows x 7 columns]" in done.stdout, done.stderr


def test_without_a_script_the_groups_and_failing_cases_are_there(written: Path) -> None:
    html = written.read_text()
    assert html.count('<details class="case"') == 15
    assert "Cases that come out alike on every arm: 15" in html and "▲ under-constrained" in html


# ------------------------------------------------------------------------------------------------------------ the browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


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
        assert browser.ask("[...explorer.querySelectorAll('[href]')].every((each) => each.getAttribute('href').startsWith('#'))")
    # Every cell of the features' table leads to the cases that it counts, whatever the tag and the backend are called.
    anchors = "[...document.querySelectorAll('a')].map((each) => each.getAttribute('href'))"
    links = browser.ask(f"{anchors}.filter((each) => /^#.cases[?]backend=.*&tag=/.test(each))")
    for link in links[:40]:
        browser.go(link[1:])
        assert browser.ask("list.order.length") >= 1, link
    assert len(links) >= 15 and browser.said == [] and browser.ask("document.title") != "attacked"
    assert all(each.startswith(page.parent.as_uri()) for each in browser.requested)
    assert len(browser.requested) == (5 if split else 1)


def test_the_command_of_a_case_is_safe_to_paste_and_the_csv_is_one(run: Path, written: Path, browser: Browser) -> None:
    browser.open(written.as_uri())
    browser.go("/cases")
    browser.go(f"/case/{browser.ask('index.cases.id[0]')}")
    command = browser.ask("[...explorer.querySelectorAll('[aria-label=\"command\"]')][1].textContent")
    words = shlex.split(command)
    assert words[:3] == ["grammarbench", "repro", str(run)] and words[5] == f"{EVIL[4]}:{EVIL[1]}"
    lines = list(csv.reader(io.StringIO(browser.ask("asCsv()"))))
    assert len(lines) == 31 and {len(each) for each in lines} == {12}
    assert any(each[1].startswith("'=cmd") for each in lines)
    assert json.loads(browser.ask("asJson()")) == json.loads((written.parent / "report.json").read_text())


@pytest.fixture(scope="module")
def spelled(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two backends, a vocabulary that is here, and a token refused."""
    vocabulary = load_vocabulary("probe")
    content = '{"a": "été"}'.encode()
    tokens = vocabulary.encode(content)
    schema = '{"type": "object", "properties": {"a": {"type": "string"}}}'
    cases, groups = [], []
    for number in range(6):
        case = synthetic.case(
            number,
            [("good", content, True), ("bad", b'{"a": 1}', False)],
            f"case {number}",
            schema[:-1] + f', "title": "{number}"}}',
            ["properties"],
        )
        cases.append(("first", case))
        for arm in synthetic.ARMS[:2]:
            fields = {
                "backend": arm.backend,
                "backend_version": arm.version,
                "options": arm.options,
                "vocabulary": "probe",
                "case": case.name,
            }
            fields |= {"case_id": case.id, "tags": case.tags, "tokens": len(tokens)}
            refused = number < 4 and arm.backend == "alpha"
            good = synthetic.row(**fields, accepted=not refused, stopped_at=3 if refused else None)
            groups.append(
                [
                    (good, synthetic.ns(2_000 * (number + 1), 5)),
                    (synthetic.row(**fields, instance=1, valid=False, accepted=False, stopped_at=2), b""),
                ]
            )
    info = synthetic.info(synthetic.ARMS[:2], vocabularies={"probe": {"size": vocabulary.size, "sha256": vocabulary.sha256}})
    return write_report([synthetic.write_run(tmp_path_factory.mktemp("run"), groups, info, cases)], tmp_path_factory.mktemp("page"))


def test_a_case_says_which_token_was_refused_what_is_right_and_how_to_see_it_again(spelled: Path, browser: Browser, tmp_path: Path) -> None:
    vocabulary = load_vocabulary("probe")
    tokens = vocabulary.encode('{"a": "été"}'.encode())
    browser.open(spelled.as_uri())
    browser.go("/cases?outcome=failing")
    browser.press("j")
    browser.press("Enter")
    browser.until("location.hash.startsWith('#/case/') && explorer.querySelector('.came-out')")
    text = browser.ask("explorer.textContent")
    offset = len(b"".join(vocabulary.tokens[each] for each in tokens[:3]))
    assert f"refused token 3 of {len(tokens)}" in text and f"at byte {offset}" in text
    assert vocabulary.tokens[tokens[3]].hex() in {note.get("token") for each in on_page(spelled.read_text())[1] for note in each["notes"]}
    snippet = browser.ask("explorer.querySelector('[aria-label=\"snippet\"]').textContent")
    assert subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, timeout=60).stdout == "valid\n"
    assert "# expected: valid" in snippet
    issue = browser.ask("explorer.querySelector('[aria-label^=\"issue text\"]').textContent")
    assert "alpha 1.2.3" in issue and "--script repro.py" in issue and '{"a": "été"}' in issue
    for key, end in (("j", "#/case/"), ("Escape", "#/cases?outcome=failing"), ("Escape", "#disagreements")):
        before = browser.ask("location.hash")
        browser.press(key)
        browser.until(f"location.hash !== {json.dumps(before)} && location.hash.startsWith({json.dumps(end)})")
    assert browser.said == []


def test_the_address_is_the_whole_state(spelled: Path, browser: Browser) -> None:
    browser.open(spelled.as_uri() + "#/cases?backend=alpha&outcome=over&tag=properties&sort=-p99&q=case")
    browser.until("explorer.dataset.ready")
    names = "[...document.querySelectorAll('.rows td.title')].map((each) => each.textContent)"
    assert browser.ask(names) == ["case 3", "case 2", "case 1", "case 0"]
    assert browser.ask("document.querySelector('th[aria-sort=descending]').textContent").startswith("Fill p99")
    for query, found in (
        ("backend=beta&outcome=failing", 0),
        ("is=different&outcome=failing", 4),
        ("is=alike", 2),
        ("group=0", 4),
        ("tag=none", 0),
        ("q=CASE 5", 1),
    ):
        browser.go(f"/cases?{query}")
        assert browser.ask("list.order.length") == found, query
    browser.press("/")
    browser.until("document.activeElement.name === 'q'")
    browser.go("/case/nobody")
    assert "There is no case nobody" in browser.ask("explorer.textContent")
    assert browser.said == []


def test_fifty_thousand_rows_stay_quick(spelled: Path, browser: Browser, tmp_path: Path) -> None:
    html = spelled.read_text()
    index, _ = on_page(html)
    many = 50_000
    index["cases"] = {"id": [f"{each:012x}" for each in range(many)], "name": [f"case {each} of very many" for each in range(many)]} | {
        name: [index["cases"][name][each % 6] for each in range(many)] for name in ("suite", "dialect", "tags", "group", "different")
    }  # fmt: skip
    for name in ("compile_us", "fill_p50_us", "fill_p99_us"):
        index[name] = [[each * 7919 % 50_021 / 10 for each in range(many)] for _ in index["arms"]]
    index["outcome"] = [column[0] * many for column in index["outcome"]]
    page = tmp_path / "report.html"
    page.write_text(re.sub(r'(id="data-index">)[^<]*', lambda found: found[1] + pack(index), html))
    browser.open(page.as_uri() + "#/cases")
    browser.until("explorer.dataset.ready")
    rows = "document.querySelectorAll('.rows tbody tr').length"
    assert browser.ask("list.order.length") == many and 10 < browser.ask(rows) <= 100
    assert float(browser.ask("explorer.dataset.opened")) < 1000
    browser.ask("document.querySelector('.rows').scrollTop = 1e9; 0")
    browser.until("[...document.querySelectorAll('.rows td.title')].some((each) => each.textContent === 'case 49999 of very many')")
    assert browser.ask(rows) <= 100
    for query in ("sort=-p99", "q=9999", "sort=name&outcome=failing"):
        browser.go(f"/cases?{query}")
        assert float(browser.ask("explorer.dataset.opened")) < 1000 and browser.ask(rows) <= 100
    assert browser.said == []


def test_with_scripts_off_the_page_is_whole(spelled: Path, browser: Browser) -> None:
    browser.open(spelled.as_uri(), scripts=False)
    visible = "[...document.querySelectorAll('#disagreements, #failing .case, #explorer')].map((each) => each.getClientRects().length > 0)"
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
    identifier = browser.send("Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.DecompressionStream")["identifier"]
    try:
        browser.open(spelled.as_uri())
        assert browser.ask("document.querySelectorAll('#failing .case').length") == 4
        assert "cannot open the page's data" in browser.ask("document.body.textContent")
    finally:
        browser.send("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)


def test_the_notes_of_one_case_are_counted_when_they_are_too_many(synthetic: ModuleType) -> None:
    cases = Cases()
    for number in range(60):
        cases.add(synthetic.row(instance=number, accepted=False, stopped_at=0), 0)
    (case,) = cases.seen.values()
    assert len(case.notes) == 40 and case.more == 20 and len(case.walks) == 1
    declined = replace(synthetic.row(status="unsupported", phase="compile", accepted=None, text="no"), case_id="ff")
    for number in range(60):
        cases.add(replace(declined, instance=number), 0)
    assert len(list(cases.seen.values())[1].notes) == 1
