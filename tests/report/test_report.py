"""The page: it parses, it says what the run says, and nothing in a run can break out of it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from html_page import Page, render

from harness.errors import BadInput
from harness.report.figures import charts
from harness.report.page.page import write_report
from harness.rows.row import CHECKS_MODE, Finding
from harness.text import duration


@pytest.fixture(scope="module")
def run(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = synthetic.synthetic_run(tmp_path_factory.mktemp("run"), cases=48)
    return path


@pytest.fixture(scope="module")
def html(run: Path) -> str:
    return render([run])


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_the_page_parses_and_every_id_is_unique(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids)) > 50
    # What begins with #/ is a state of the page's script, not a place.
    anchors = {
        target[1:] for _, target in page.links if target.startswith("#") and not target.startswith("#/")
    }
    assert anchors <= set(page.ids)


def test_the_page_needs_no_network(page: Page) -> None:
    assert {tag for tag, target in page.links if not target.startswith("#")} == {"link"}
    assert not any("://" in target or target.startswith("//") for _, target in page.links)
    assert "@import" not in page.content["style"] and "url(" not in page.content["style"]


def test_only_our_own_script_runs(html: str, page: Page) -> None:
    digest = base64.b64encode(hashlib.sha256(page.content["script"].encode()).digest()).decode()
    (policy,) = (value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'") and f"script-src 'sha256-{digest}'" in policy
    assert html.count("<script") == 1 + html.count('<script type="text/plain"')
    assert not [each for each in page.attributes if each[1].startswith("on")]
    assert "innerHTML" not in page.content["script"]


def test_hostile_strings_stay_text(html: str, page: Page, synthetic: ModuleType) -> None:
    html.encode("utf-8")
    assert "<img" not in html and "onload=alert(3)>" not in html.replace("&gt;", "")
    assert not set(html) & set("\x00\x07\x1b\x7f\x9b\u2028\u2029\u202e\u2066\ud800\udfff")
    for shown in (
        "</script><script>alert(1)</script>",
        '<img src=x onerror="alert(2)">',
        "{{ 7*7 }}{% raw %}",
        r"\u2028",
        r"\ud800",
    ):
        assert shown in page.text


def test_ten_thousand_levels_of_nesting_are_cut(page: Page) -> None:
    assert "[" * 4000 in page.text and "[" * 4096 not in page.text
    assert re.search(r"cut: [56],\d{3} more characters", page.text)


def test_every_arm_verdict_and_number_is_there(page: Page, synthetic: ModuleType) -> None:
    for arm in synthetic.ARMS:
        assert arm.backend in page.text and arm.version in page.text
    words = (
        "declared coverage",
        "conformance",
        "not judged",
        "compliance",
        "TTFM",
        "TBM",
        "peak RSS",
        "✓ complete",
        "Imaginary 9000",
    )
    for word in (*words, "Like for like"):
        assert word in page.text
    assert "grammarbench repro" in page.text and "--backends beta:any_whitespace=false" in page.text


def test_the_summary_counts_what_the_run_holds(synthetic: ModuleType, tmp_path: Path) -> None:
    ids = [f"{number:012x}" for number in range(4)]
    rows = [
        synthetic.row(case_id=ids[0]), synthetic.row(case_id=ids[1], accepted=False),
        synthetic.row(case_id=ids[2], valid=False),
        synthetic.row(case_id=ids[3], status="unsupported", phase="compile", accepted=None,
        text="no such keyword"),
    ]  # fmt: skip
    run = synthetic.write_run(
        tmp_path / "run",
        [[(each, synthetic.ns(1_000, 500))] for each in rows],
        synthetic.info(synthetic.ARMS[:1]),
    )
    text = Page(render([run])).text
    # cases: all, judged, passed, failed, breaks, silently wrong, valid refused, too slow, other fault,
    # declined, not judged, not measured
    assert "alpha 1.2.3 4 4 1 2 0 1 1 0 0 1 0 0 25.0 % 75.0 % 33.3 %" in text
    # walks: pass, over, under, declined, broken, unjudged, ours
    assert "alpha 1 1 1 1 0 0 0 " in text
    assert "4 of 4 cases judged" in text
    assert "ends at 25.0 %" in text and "ends at 75.0 %" in text
    assert "no such keyword" in text


def test_two_renders_are_the_same_bytes(run: Path, html: str) -> None:
    assert render([run]) == html


def test_an_incomplete_run_is_called_so(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.synthetic_run(tmp_path / "run", cases=6, complete=False)
    text = Page(render([run])).text
    assert (
        "incomplete · run" in text
        and "INCOMPLETE" in text
        and "This run is incomplete" in text
        and "✓ complete" not in text
    )


def test_rows_of_checks_are_rows_of_the_run(synthetic: ModuleType, tmp_path: Path) -> None:
    rows = [
        synthetic.row(),
        synthetic.row(mode=CHECKS_MODE, instance=None, valid=None, accepted=None, checks={"a": "passed"}),
    ]
    text = Page(
        render(
            [
                synthetic.write_run(
                    tmp_path / "run", [[(each, b"") for each in rows]], synthetic.info(synthetic.ARMS[:1])
                )
            ]
        )
    ).text
    assert "✓ complete" in text and "inconsistent" not in text


def test_a_run_without_rows_or_failures_is_a_page(synthetic: ModuleType, tmp_path: Path) -> None:
    empty = synthetic.write_run(tmp_path / "empty", [])
    page = Page(render([empty]))
    assert {"answer", "summary", "failing"} <= set(page.ids)
    assert not {"times", "masks", "compiling", "matrix", "batches", "jumps", "comparison"} & set(page.ids)
    assert "Nothing can be said yet" in page.text
    fine = synthetic.write_run(
        tmp_path / "fine", [[(synthetic.row(), b"")]], synthetic.info(synthetic.ARMS[:1])
    )
    assert "None: no case fails or is refused" in Page(render([fine])).text


@pytest.mark.long
def test_thousands_of_failures_and_huge_strings_stay_under_the_budget(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    groups: list[list[tuple[Any, bytes]]] = []
    cases = []
    for number in range(600):
        big = 1_000_000 if number == 3 else 3_000
        schema = '{"const": "' + f"<{number}>" * (big // 6) + '"}'
        name = f"case {number} " + "n" * 5_000
        case = synthetic.case(
            number,
            [("i" * 5_000, b"<&>" * (big // 3), True)] * 2,
            name,
            schema,
            ["t" * 5_000, f"tag {number}"],
        )
        cases.append((f"suite {number % 90}", case))
        for arm in synthetic.ARMS:
            fields = {
                "backend": arm.backend,
                "backend_version": arm.version,
                "options": arm.options,
                "suite": f"suite {number % 90}",
            }
            fields |= {
                "case": case.name,
                "case_id": case.id,
                "tags": case.tags,
                "accepted": False,
                "text": "<&\"'>" * 400,
                "stopped_at": 1,
            }
            findings = tuple(Finding(f"check_{each}", each, "<&>" * 600) for each in range(10))
            groups.append(
                [(synthetic.row(**fields, instance=each, findings=findings), b"") for each in range(2)]
            )
    run = synthetic.write_run(tmp_path / "run", groups, cases=cases)
    path = write_report([run], tmp_path / "out")
    assert path.stat().st_size < 2_000_000
    text = Page(path.read_text("utf-8")).text
    assert re.search(r"600 cases fail.* \d+ of them are below", text)
    assert "30 more are not shown" in text


def test_rare_failures_are_shown_beside_common_ones(synthetic: ModuleType, tmp_path: Path) -> None:
    rows = [
        synthetic.row(case_id=f"{number:012x}", case=f"common {number}", accepted=False, stopped_at=1)
        for number in range(600)
    ]
    rows.append(
        synthetic.row(case_id="f" * 12, case="the rare one", status="oom", phase="compile", accepted=None)
    )
    run = synthetic.write_run(
        tmp_path / "run", [[(row, b"")] for row in rows], synthetic.info(synthetic.ARMS[:1])
    )
    html = render([run])
    assert html.count('<details class="case"') == 100
    assert '<span class="title">the rare one</span>' in html


def test_an_arm_that_solves_nothing_crowds_out_nothing(synthetic: ModuleType, tmp_path: Path) -> None:
    """A baseline that allows everything fails on all cases; the page is about the others."""
    groups = []
    for number in range(60):
        fields = {"case_id": f"{number:012x}", "case": f"case {number}", "valid": False}
        groups.append([(synthetic.row(**fields, accepted=False, stopped_at=1), b"")])
        groups.append(
            [(synthetic.row(**fields, backend="beta", accepted=number == 50, stopped_at=None), b"")]
        )
        groups.append([(synthetic.row(**fields, backend="anything", accepted=True), b"")])
    arms = synthetic.arms_of(row for ((row, _),) in groups)
    html = render([synthetic.write_run(tmp_path / "run", groups, synthetic.info(arms))])
    assert 1 < html.count('<details class="case"') < 10
    assert '<span class="title">case 50</span>' in html
    text = Page(html).text
    assert "which solves no case, a few stand for all" in text
    but = "59 cases that every arm solves, but for anything, which solves none"
    assert f"Times on the {but}" in text and f"Compile and mask times are over the {but}." in text


def test_two_runs_stand_side_by_side(synthetic: ModuleType, tmp_path: Path) -> None:
    one = synthetic.write_run(
        tmp_path / "one", [[(synthetic.row(), b"")]], synthetic.info(synthetic.ARMS[:1], run="first-run")
    )
    newer = synthetic.row(backend_version="1.3.0", accepted=False, stopped_at=3)
    arm = synthetic.Arm("alpha", "1.3.0", "", "alpha", ("json_schema",), "bitmask")
    two = synthetic.write_run(tmp_path / "two", [[(newer, b"")]], synthetic.info([arm], run="second-run"))
    text = Page(render([one, two])).text
    for expected in ("first-run", "second-run", "alpha · 1.2.3", "alpha · 1.3.0", "end-of-sequence refused"):
        assert expected in text
    same = Page(render([one, one])).text
    assert "first-run" in same


def test_the_repro_command_is_safe_to_paste(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "a run; rm -rf ~"
    row = synthetic.row(backend="x$(reboot)", accepted=False)
    run = synthetic.write_run(folder, [[(row, b"")]], synthetic.info(synthetic.arms_of([row])))
    text = Page(render([run])).text
    assert f"grammarbench repro '{folder}' 000000000000 --backends 'x$(reboot)'" in text


def test_out_is_a_folder_or_a_file_and_must_be_writable(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run", [])
    assert write_report([run], tmp_path / "page.html") == tmp_path / "page.html"
    assert write_report([run], tmp_path / "new" / "folder") == tmp_path / "new" / "folder" / "report.html"
    with pytest.raises(BadInput, match="cannot be written"):
        write_report([run], tmp_path / "page.html" / "below")
    with pytest.raises(BadInput, match="at least one run"):
        write_report([], tmp_path)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (999.4, "999 ns"),
        (999.6, "1 µs"),
        (1_000, "1 µs"),
        (12_345, "12.3 µs"),
        (99_940, "99.9 µs"),
        (99_960, "100 µs"),
        (999_400, "999 µs"),
        (999_600, "1 ms"),
        (999_400_000, "999 ms"),
        (999_600_000, "1 s"),
        (2.5e9, "2.5 s"),
        (1.2e11, "120 s"),
    ],
)
def test_durations_are_for_people(ns: float, text: str) -> None:
    assert duration(ns) == text


def test_every_arm_looks_different() -> None:
    looks = {charts.style(position) for position in range(16)}
    assert len(looks) == 16
