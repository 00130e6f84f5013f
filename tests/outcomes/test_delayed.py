"""What failed behind another case and not alone is told on every surface, escaped, and counted nowhere."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import synthetic
from junitparser import JUnitXml
from places import ROOT, SUPPORT
from reported import on_page

from harness.cli.main import main
from harness.outcomes import delayed
from harness.outcomes.delayed import DelayedCases
from harness.outcomes.summary import each_taken_in
from harness.rows.row import Before, row_from_json, row_to_json
from harness.rows.store import read_rows

pytest_plugins = ["pytester"]

BACKEND = "miniatures.injected:Injected"
GUILTY, NEIGHBOUR, LAST = 'arms <b onclick="x">a fault</b>', "=neighbour </script><img src=x>", "last"
CASES = [
    {
        "description": "first",
        "regex": "first|ab+",
        "tests": [{"text": "abb", "valid": True}, {"text": "a", "valid": False}],
    },
    {"description": GUILTY, "regex": "arm-segfault~1|ab+", "tests": [{"text": "abb", "valid": True}]},
    {
        "description": NEIGHBOUR,
        "regex": "neighbour|ab+",
        "tests": [{"text": "abb", "valid": True}, {"text": "a", "valid": False}],
    },
    {"description": LAST, "regex": "last|ab+", "tests": [{"text": "abb", "valid": True}]},
]
SAID = " and not when walked again in a process of its own: crash in compile: killed by SIGSEGV"
LED = "failed after "
FAILED = "1 case failed after other cases in the same process, and not when walked alone"
NOBODY = f"{FAILED}; this counts against no backend"
WRONG = "1 case had a wrong outcome after other cases in the same process, and not when walked alone"
COUNTS = f"{WRONG}; this counts against the backend, in which one case changes another"
WORDS = "was wrong after mini: first and right when walked again in a process of its own"
FORGETS = [
    {"description": "first", "regex": "[ab]{2,5}c?", "tests": [{"text": "ab", "valid": True}]},
    {
        "description": "second",
        "regex": "[ab]{3}d",
        "tests": [{"text": "aabd", "valid": True}, {"text": "aab", "valid": False}],
    },
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which a fault that one case has armed befalls the next one."""
    folder = tmp_path_factory.mktemp("delayed")
    (folder / "mini.json").write_text(json.dumps(CASES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SUPPORT))
        words = [
            "--backends",
            BACKEND,
            "--vocabularies",
            "bytes",
            "--effort",
            "0",
            "--out",
            str(folder / "run"),
        ]
        assert main(["run", str(folder / "mini.json"), *words]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a backend whose cache confuses the second case with the first one."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "mini.json").write_text(json.dumps(FORGETS))
    words = ["--backends", "miniatures.of_other_cases:RemembersByTooShortAKey", "--vocabularies", "bytes"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SUPPORT))
        run = folder / "run"
        assert main(["run", str(folder / "mini.json"), *words, "--effort", "0", "--out", str(run)]) == 0
    return run


def told(run: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main([words[0], str(run), *words[1:]]) == 0
    return capsys.readouterr().out


def test_the_row_names_the_cases_before_it(run: Path) -> None:
    rows = {row.case: row for row in read_rows(run) if row.delayed}
    assert list(rows) == [f"mini: {NEIGHBOUR}"]
    (row,) = rows.values()
    assert row.status == "ok" and row.accepted is True and row.instance == 0
    assert [each.case for each in row.behind] == ["mini: first", f"mini: {GUILTY}"] and row.behind[
        1
    ].suite == "mini"
    assert row_from_json(json.loads(json.dumps(row_to_json(row)))) == row


def test_the_terminal_tells_it_in_one_line_and_counts_nothing(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(run, "table", "summary", capsys=capsys)
    assert f"{NOBODY}: mini: =neighbour" in " ".join(said.split())
    assert "no failure" in said and "100.0 %" in said
    found = json.loads(told(run, "table", "summary", "--json", capsys=capsys))
    assert found["worst"] is None and found["statuses"] == {"ok": 6}
    (each,) = found["delayed"]
    assert each["case"] == f"mini: {NEIGHBOUR}" and [one["case"] for one in each["behind"]] == [
        "mini: first",
        f"mini: {GUILTY}",
    ]
    assert found["backends"][0]["counts"]["works"] == found["backends"][0]["counts"]["cases"] == 4


def test_the_page_tells_it_escaped_with_links(run: Path) -> None:
    main(["report", str(run)])
    html = (run / "report" / "report.html").read_text("utf-8")
    section = html[html.index('<section id="failing">') :].partition("</section>")[0]
    assert f"{NOBODY}: mini: =neighbour &lt;/script&gt;&lt;img" in section
    assert SAID in section and LED in section and "None: no case fails" in section
    rows = {row.case: row.case_id for row in read_rows(run)}
    for name in (NEIGHBOUR, GUILTY, "first"):
        assert f'data-go="#/case/{rows[f"mini: {name}"]}?suite=' in section
    assert "<img" not in section and "<b onclick" not in section
    index, details = on_page(html)
    (place,) = (place for place, each in enumerate(details) if "delayed" in each)
    assert (
        index["cases"]["name"][place] == f"mini: {NEIGHBOUR}"
        and index["state"][0][place] == index["state"][0][0]
    )
    (each,) = details[place]["delayed"]
    assert SAID in each["said"] and [one["name"] for one in each["behind"]] == [
        "mini: first",
        f"mini: {GUILTY}",
    ]
    schema = json.loads((ROOT / "results" / "report.schema.json").read_text())
    jsonschema.validate(json.loads((run / "report" / "report.json").read_text()), schema)
    summary = (run / "report" / "summary.md").read_text()
    assert NOBODY in summary
    assert (
        "SIGSEGV" in summary
        and "arms" in summary
        and "<b" not in summary
        and "What fails most" not in summary
    )


def test_its_own_page_tells_it_too(run: Path, browser: Any) -> None:
    main(["report", str(run)])
    neighbour = next(row.case_id for row in read_rows(run) if row.delayed)
    browser.open((run / "report" / "report.html").as_uri())
    browser.go(f"/case/{neighbour}")
    shown = browser.ask("document.querySelector('#explorer').innerText")
    assert "Behind other cases only" in shown and f"{LED}mini: first, mini: {GUILTY}{SAID}" in shown
    assert (
        browser.ask(
            "[...document.querySelectorAll('#explorer a')].filter((each) => "
            "each.textContent.includes('arms')).length"
        )
        == 1
    )


def test_a_failing_case_tells_it_without_a_script(tmp_path: Path) -> None:
    behind = (Before("first", "0" * 16, "<i>one</i>"),)
    row = synthetic.row(
        valid=True, accepted=False, stopped_at=1, delayed="timeout in fill: killed after 2 s", behind=behind
    )
    path = synthetic.write_run(tmp_path / "run", [[(row, b"")]])
    main(["report", str(path)])
    html = (path / "report" / "report.html").read_text("utf-8")
    case = html[html.index('<details class="case"') :].partition("</section>")[0]
    assert (
        "Behind other cases only" in case
        and "killed after 2 s" in case
        and (f"{LED}&lt;i&gt;one&lt;/i&gt; and not when") in case
    )


def test_exports_tell_it_and_count_nothing(run: Path, tmp_path: Path) -> None:
    main(["report", str(run), "--format", "all", "--out", str(tmp_path)])
    result = json.loads((tmp_path / "result.json").read_text())
    assert [each["case"] for each in result["delayed"]] == [f"mini: {NEIGHBOUR}"] and result["failing"] == []
    assert result["counts"][0]["works"] == 4 and result["gate"]["verdict"] == "ok"
    xml = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    skipped = [suite.name for suite in xml for case in suite if case.result]
    assert (xml.failures, xml.errors, xml.skipped, skipped) == (0, 0, 1, ["gate"])
    out = (tmp_path / "junit.xml").read_text()
    assert FAILED in out and "SIGSEGV" in out and "&lt;/script&gt;" in out
    assert FAILED in (tmp_path / "summary.md").read_text()


def test_the_table_of_walks_has_its_columns(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = list(csv.DictReader(io.StringIO(told(run, "table", "--format", "csv", capsys=capsys))))
    (line,) = (each for each in lines if each["delayed"])
    assert (
        "SIGSEGV" in line["delayed"]
        and line["behind"] == f"mini: first; mini: {GUILTY}"
        and line["status"] == "ok"
    )


def test_pytest_tells_it_at_its_end(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    (pytester.path / "mini.json").write_text(json.dumps(CASES))
    words = [
        f"--grammarbench-backend={BACKEND}",
        "--grammarbench-suite=mini.json",
        "--grammarbench-vocabulary=bytes",
    ]
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rP", *words)
    done.assert_outcomes(passed=4)
    out = done.stdout.str()
    assert f"grammarbench: {NOBODY}: mini: =neighbour" in out
    assert re.search(rf"{LED}mini: first, mini: arms.*{SAID}", out)


def test_a_failure_of_ours_that_did_not_come_again_has_its_own_words() -> None:
    first = synthetic.row(delayed="harness_error in worker: x")
    every = DelayedCases()
    rows = [first, synthetic.row(), replace(first, behind=(Before("s", "1", "one"),))]
    assert list(each_taken_in(rows, every.add)) == rows
    behind, once = delayed.lines(every.cases)
    assert behind.startswith(f"{FAILED};")
    assert once.startswith("1 case failed once, and not when walked again;")
    assert "failed once and not when walked again" in delayed.in_words(every.cases[0])
    assert "failed after one and not when walked again" in delayed.in_words(every.cases[1])
    assert "and 2 more" in delayed.lines([every.cases[0]] * 6)[0] and delayed.lines([]) == []


def test_a_wrong_outcome_behind_other_cases_counts_and_is_told_once_for_all_its_rows(
    wrong: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = " ".join(told(wrong, "table", "summary", capsys=capsys).split())
    assert said.count(f"{COUNTS}: mini: second (mini, ") == 1 and "counts against no backend" not in said
    found = json.loads(told(wrong, "table", "summary", "--json", capsys=capsys))
    (each,) = found["delayed"]
    assert each["counts"] is True and each["text"] == "" and found["worst"] is not None
    assert [one["case"] for one in each["behind"]] == ["mini: first"]

    main(["report", str(wrong), "--format", "all", "--out", str(tmp_path)])
    result = json.loads((tmp_path / "result.json").read_text())
    assert [(each["case"], each["counts"]) for each in result["delayed"]] == [("mini: second", True)]
    assert [each["case"] for each in result["failing"]] == ["mini: second"]
    for name in ("junit.xml", "summary.md"):
        text = (tmp_path / name).read_text()
        assert WRONG in text and text.count(WORDS) == 1, name


def test_the_page_of_a_case_names_the_cases_behind_which_alone_it_is_wrong(wrong: Path) -> None:
    main(["report", str(wrong)])
    html = (wrong / "report" / "report.html").read_text("utf-8")
    section = html[html.index('<section id="failing">') :].partition("</section>")[0]
    assert f"{COUNTS}: mini: second" in section
    case = section[section.index('<details class="case"') :]
    assert case.count("Behind other cases only") == 1 and case.count("was wrong after mini: first and") == 1
    _, details = on_page(html)
    (detail,) = (detail for detail in details if "delayed" in detail)
    (each,) = detail["delayed"]
    assert each["led"] == "was wrong after " and [one["name"] for one in each["behind"]] == ["mini: first"]
