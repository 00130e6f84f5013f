"""The case explorer: groups, the data on the page and beside it, and that nothing in a case can break out of
them."""

from __future__ import annotations

import html
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from html_page import render
from report_schema import SCHEMA
from reported import EVIL, Scripts, hostile_run, on_page, unpack

from harness.outcomes.summary import summarize
from harness.report.cases import data, explorer
from harness.report.cases.cases import Cases
from harness.report.cases.data import Explored, explore, fit
from harness.report.cases.explorer import LISTED
from harness.report.cases.failing import shortened
from harness.report.cases.groups import Signed, differs, grouped
from harness.report.page.lines import Line, RunSeen
from harness.report.page.page import write_report
from harness.rows.row import CHECKS_MODE, Finding
from harness.rows.store import read_end, read_info, read_rows, read_samples

# ----------------------------------------------------------------------------------------------------- groups


def test_cases_of_one_cause_fall_together() -> None:
    pattern = [Signed(("pattern", f"one{number}"), ("valid_refused", "works")) for number in range(9)]
    refs = [Signed(("$ref", "type"), ("valid_refused", "works")) for _ in range(5)]
    crash = [Signed(("pattern",), ("breaks", "breaks")) for _ in range(4)]
    fine = [Signed(("type",), ("works", "works")) for _ in range(30)]
    cases = [*pattern, *refs, *crash, *fine]
    groups = grouped(cases, range(18))
    assert [(each.vector, each.tags, each.members, each.different) for each in groups] == [
        (("valid_refused", "works"), ("pattern",), tuple(range(9)), True),
        (("valid_refused", "works"), ("$ref", "type"), tuple(range(9, 14)), True),
        (("breaks", "breaks"), ("pattern",), tuple(range(14, 18)), False),
    ]


def test_a_tag_that_is_everywhere_tells_nothing() -> None:
    cases = [
        Signed(("all", f"own{number}"), ("works" if number % 2 else "refused", "works"))
        for number in range(20)
    ]
    (group,) = grouped(cases, range(0, 20, 2))
    assert group.tags == ("all",) and len(group.members) == 10


def test_four_hundred_failures_are_some_fifteen_groups() -> None:
    vectors = [
        ("valid_refused", "works"),
        ("works", "refused"),
        ("silently_wrong", "silently_wrong"),
        ("works", "breaks"),
    ]
    causes = ["pattern", "$ref", "anyOf", "format"]
    cases = []
    for number in range(400):
        cases.append(Signed((causes[number // 4 % 4], f"noise{number % 97}", "type"), vectors[number % 4]))
    cases += [Signed(("type", f"noise{number % 97}"), ("works", "works")) for number in range(800)]
    groups = grouped(cases, range(400))
    assert len(groups) == 16 and sum(len(each.members) for each in groups) == 400
    assert all(each.tags[0] in causes for each in groups)


def test_an_arm_that_solves_nothing_makes_no_difference() -> None:
    assert differs(("works", "works", "silently_wrong")) and not differs(
        ("works", "works", "silently_wrong"), frozenset({2})
    )
    assert not differs(("works", "not_measured", "")) and not differs(("works", "not_judged"))
    assert not differs(("works", "works_as_documented"))
    cases = [
        Signed(("a",), ("refused", kind)) for kind in ("works", "silently_wrong", "works", "silently_wrong")
    ]
    (group,) = grouped(cases, range(4), frozenset({1}))
    assert group.vector == ("refused", "") and not group.different


def test_numbers_are_taken_out_of_a_message_but_not_out_of_a_word() -> None:
    assert (
        shortened("invalid utf8 is refused at once (surrogate)")
        == "invalid utf8 is refused at once (surrogate)"
    )
    assert (
        shortened("byte 12 of 0x7f3a is no UTF-8, in rule_17\nmore") == "byte # of # is no UTF-8, in rule_#"
    )
    assert shortened('keys: ["uniqueItems"]') == "keys: …"


# ------------------------------------------------------------------------------------------------------- data


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("runs") / "a 'run'; $(reboot)")


@pytest.fixture(scope="module")
def written(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([run], tmp_path_factory.mktemp("page"))


def test_the_data_comes_back_as_it_went_in(written: Path, synthetic: ModuleType) -> None:
    index, details = on_page(written.read_text())
    beside = json.loads((written.parent / "report.json").read_text())
    assert details == beside.pop("details") and len(details) == 15
    assert {
        name: value for name, value in index.items() if name not in ("shards", "detailed", "stated", "page")
    } == beside
    evil = {*EVIL, *synthetic.HOSTILE}
    assert {*index["cases"]["name"], *index["suites"]} == evil
    assert {tag for tag in evil if ":" not in tag} <= {*index["tags"]}
    assert {json.loads(each["grammar"])["const"] for each in details} == evil
    assert {note["text"] for each in details for note in each["notes"] if "text" in note} == evil


def test_what_is_long_is_cut_and_what_is_no_utf8_says_so(written: Path) -> None:
    _, details = on_page(written.read_text())
    (long,) = (each for detail in details for each in detail["instances"] if each["name"] == "x")
    assert len(long["content"]) == 65_536 and long["left_off"] == 1_000_000 - 65_536
    broken = [each for detail in details for each in detail["instances"] if each["name"] == "broken"]
    assert len(broken) == 15 and all(
        each["content"].startswith('"\\xff\\xfe') and each["invalid_utf8"] for each in broken
    )


def test_report_json_is_what_its_schema_says(written: Path) -> None:
    made = json.loads((written.parent / "report.json").read_text())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(made, SCHEMA)
    lengths = {len(column) for column in made["cases"].values()} | {
        len(made["details"]),
        *map(len, made["state"]),
    }
    assert len(lengths) == 1
    wrongs: tuple[dict[str, Any], ...] = (
        {"kind": "other"},
        {"state": ["A"]},
        {"stranger": 1},
        {"details": [{"notes": []}]},
    )
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(made | wrong, SCHEMA)


def test_summary_md_lies_beside_the_page(written: Path) -> None:
    assert "## GrammarBench" in (written.parent / "summary.md").read_text()


def test_nothing_on_the_page_leaves_it(written: Path) -> None:
    scripts = Scripts(written.read_text())
    assert [attributes for attributes, _ in scripts.elements if attributes.get("type") != "text/plain"] == [
        {}
    ]
    assert not [each for each in scripts.addresses if not each.startswith(("#", "data:,"))]
    code = scripts.elements[-1][1]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new "
        r"Function|https?://(?!www\.w3\.org/2000/svg)",
        code,
    )


def test_the_same_run_is_the_same_page(run: Path, written: Path) -> None:
    assert render([run]) == written.read_text()


# --------------------------------------------------------------------------------------------------- the caps


@pytest.fixture(scope="module")
def explored(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Explored:
    """Forty cases with instances of 20 kB that do not compress, every fourth of them failing."""
    noise = "".join(map(chr, range(33, 92)))
    cases, groups = [], []
    for number in range(40):
        text = "".join(
            noise[(number + 7) * place * place * 31 % 59 - place // 59 % 7] for place in range(20_000)
        )
        case = synthetic.case(number, [("long", text.encode(), True)])
        cases.append(("first", case))
        groups.append(
            [
                (
                    synthetic.row(case=case.name, case_id=case.id, accepted=bool(number % 4)),
                    synthetic.ns(number * 1000, 5),
                )
            ]
        )
    folder = synthetic.write_run(
        tmp_path_factory.mktemp("run"), groups, synthetic.info(synthetic.ARMS[:1]), cases
    )
    return explored_of(folder)


def explored_of(folder: Path) -> Explored:
    info, seen = read_info(folder), Cases()
    rows = list(read_rows(folder))
    for row in rows:
        seen.add(row, 0)
    run = RunSeen(0, folder, info, read_end(folder), len(rows))
    arms = summarize(rows, read_samples(folder), info)
    return explore(seen, [Line(position, arm.name, run, arm) for position, arm in enumerate(arms)])


def test_first_the_details_of_what_passes_go_then_its_rows_then_the_ends_of_texts_then_the_data(
    explored: Explored,
) -> None:
    whole = fit(explored, 0)
    assert whole.stated == [] and not whole.split and unpack(whole.index)["page"]["whole"]
    size = whole.size
    assert sum(len(unpack(each)) for each in whole.shards) == 40

    lean = fit(explored, 0, usual=size - 1, most=size)
    index = unpack(lean.index)
    assert (len(index["cases"]["id"]), index["detailed"], lean.split) == (
        40,
        10,
        False,
    ) and lean.size < size / 2
    assert f"30 cases {data.QUIET}; report.json" in lean.stated[0] and index["stated"] == lean.stated
    assert not index["page"]["whole"], "a file that is saved from the page says so"

    failing = fit(explored, 0, usual=0, most=lean.size - 1)
    index = unpack(failing.index)
    assert len(index["cases"]["id"]) == failing.cases == 10 and "are left off" in failing.stated[0]
    assert index["page"]["in_all"] == 40, "the list says of how many"
    cut = failing
    for most in (4096, 1024):
        cut = fit(explored, 0, usual=0, most=cut.size - 1)
        assert all(len(each["instances"][0]["content"]) == most for each in unpack(cut.shards[0]))
        assert all(each["instances"][0]["left_off"] == 20_000 - most for each in unpack(cut.shards[0]))
        assert f"cut after {most:,} bytes" in cut.stated[-1] and not cut.split
        assert sum("cut after" in line for line in cut.stated) == 1
    out = fit(explored, 0, usual=0, most=cut.size - 1)
    assert out.split and "assets" in out.stated[0] and unpack(out.index)["detailed"] == 40
    assert unpack(out.index)["page"]["whole"] and not unpack(cut.index)["page"]["whole"]


def test_the_page_says_how_many_cases_its_list_has(explored: Explored) -> None:
    lean = fit(explored, 0, usual=0)
    html = LISTED + " " * (data.MOST - lean.size)  # so much of a page that the quiet cases find no room
    assert explorer.with_data(html, explored, False)[0].startswith(" (10 of all 40) ")
    assert explorer.with_data(f"{LISTED}.", explored, False)[0] == "."


def test_times_are_observed_values(explored: Explored) -> None:
    number = explored.index["cases"]["name"].index("case 7")
    assert explored.index["fill_p50_us"][0][number] == explored.index["fill_p99_us"][0][number] == 7.0
    assert explored.index["compile_us"][0][number] == 1000.0


def test_a_page_that_would_be_too_large_is_split_and_says_so(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data.fit, "__defaults__", (False, 1000, 2000))
    page = write_report([run], tmp_path / "page.html")
    assert (
        "lie in the folder assets beside it" in page.read_text()
        and (tmp_path / "assets" / "index.js").exists()
    )


def test_a_split_page_has_no_inline_script_and_names_only_its_own_files(run: Path, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "cases-77.js").write_text('grammarbench("of an older page");')
    page = write_report([run], tmp_path, split=True)
    scripts = Scripts(page.read_text())
    assert scripts.elements == [({"src": "assets/report.js"}, "")]
    assert (
        "<style" not in page.read_text() and "'unsafe-inline'; script-src 'self' file:;" in page.read_text()
    )
    files = {each for each in scripts.addresses if not each.startswith(("#", "data:,"))}
    assert files == {"assets/report.css", "assets/report.js"}
    names = {each.name for each in (tmp_path / "assets").iterdir()}
    assert names == {"report.css", "report.js", "index.js", "cases-0.js"}
    registered = re.fullmatch(
        r'grammarbench\("index", "([\w+/=]+)"\);\n', (tmp_path / "assets" / "index.js").read_text()
    )
    assert registered and unpack(registered[1])["detailed"] == 15


def test_what_the_page_says_to_type_works(written: Path) -> None:
    page = html.unescape(written.read_text())
    (command,) = re.findall(r"^python (-c '[^']*report\.json[^']*')$", page, re.M)
    done = subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=written.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and "[15 rows x" in done.stdout, done.stderr


def test_without_a_script_the_groups_and_failing_cases_are_there(written: Path) -> None:
    page = written.read_text()
    assert page.count('<details class="case"') == 15
    assert "Cases that come out alike on every arm: 15" in page and "✖ breaks" in page


def test_the_notes_of_one_case_are_counted_when_they_are_too_many(synthetic: ModuleType) -> None:
    cases = Cases()
    for number in range(60):
        cases.add(synthetic.row(instance=number, accepted=False, stopped_at=0), 0)
    (case,) = cases.noted.values()
    assert len(case.notes) == 40 and case.more == 20 and len(case.walks) == 1
    assert [note.instance for note in case.worst_first()] == list(range(40))
    cases.add(synthetic.row(instance=60, valid=False), 0)
    assert [note.instance for note in case.worst_first()] == [60, *range(39)], "the worst is always kept"
    declined = replace(
        synthetic.row(status="unsupported", phase="compile", accepted=None, text="no"), case_id="ff"
    )
    for number in range(60):
        cases.add(replace(declined, instance=number), 0)
    assert len(list(cases.noted.values())[1].notes) == 1


def test_how_wrong_a_mask_is_counts_findings_that_are_not_shown(synthetic: ModuleType) -> None:
    cases = Cases()
    milder = [Finding("a_check", place, "forbids", under=1) for place in range(9)]
    worst = Finding("a_check", 9, "forbids more", over=3)
    checked = {"mode": CHECKS_MODE, "instance": None, "valid": None, "accepted": None}
    cases.add(synthetic.row(**checked, findings=(*milder, worst)), 0)
    ((note,),) = (case.worst_first() for case in cases.noted.values())
    assert len(note.row["findings"]) == 8 and all("over" not in shown for shown in note.row["findings"])
    assert (note.row["over"], note.row["under"]) == (3, 1)
