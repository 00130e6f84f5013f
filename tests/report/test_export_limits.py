"""What CI tools read of a large run is cut to what they bear, and of several faults the gravest is told."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import synthetic
from compared import OLD, write_run

from harness.outcomes.result import Result, result_of
from harness.outcomes.summary import arm_key
from harness.report.cases.failing import Failures, worst_kind
from harness.report.export import FORMS, bencher, benchmark_action, junit, summary, workflow_commands, write
from harness.report.page.inputs import read_inputs
from harness.report.page.page import write_report
from harness.rows.row import Finding

DOCUMENTED = Finding("a_documented_check", 1, "this is documented", "known", under=3, documented=True)
CRASH = {"status": "crash", "accepted": None, "text": "it died"}
LATE = {"status": "timeout", "phase": "fill", "accepted": None, "text": "it was late"}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run with 201 documented cases, 41 headline figures of each kind and an arm with a long name."""
    run = write_run(tmp_path_factory.mktemp("run") / "run", {OLD: {"findings": (DOCUMENTED,)}})
    result = result_of(run)
    (failing,), (count,), (arm,) = result.failing, result.counts, result.arms
    long = "a" * 2000
    figures = [
        replace(
            result.figures[0], arm=long, name=f"{number:02} {long}", title="a title",
            better=better, value=float(number), headline=True,
        )
        for better in ("lower", "higher")
        for number in range(41)
    ]  # fmt: skip
    return replace(
        result,
        arms=(replace(arm, name=long),),
        counts=(replace(count, arm=long),),
        failing=tuple(replace(failing, arm=long, case_id=str(number)) for number in range(201)),
        figures=tuple(figures),
    )


def test_junit_tells_of_at_most_200_documented_cases(large: Result) -> None:
    (text,) = junit.files(large).values()
    (told,) = ElementTree.fromstring(text.encode()).iter("system-out")
    _, *cases = (told.text or "").splitlines()
    assert [case.partition(":")[0] for case in cases] == [
        f"{large.failing[0].case} [{number}]" for number in range(200)
    ]


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_a_dashboard_is_given_at_most_40_series(large: Result, better: str) -> None:
    files = benchmark_action.files(large)
    series = json.loads(files[f"benchmark-{'smaller' if better == 'lower' else 'bigger'}-is-better.json"])
    assert [each["value"] for each in series] == list(range(40))


def test_bencher_is_given_names_as_long_as_it_takes(large: Result) -> None:
    (text,) = bencher.files(large).values()
    ((benchmark, measures),) = json.loads(text).items()
    assert len(benchmark) == 1024 and len(measures) == 41
    assert {len(measure) for measure in measures} == {64}


def test_a_summary_ends_with_a_whole_line(large: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = summary.files(large).values()
    for most in range(len(whole.encode()) - 300, len(whole.encode()) - 1, 7):
        monkeypatch.setattr(summary, "MOST_BYTES", most)
        (cut,) = summary.files(large).values()
        kept = cut[: cut.index("\n\ncut here")]
        assert whole.startswith(f"{kept}\n") and len(cut.encode()) <= most


@pytest.mark.parametrize("order", [(CRASH, LATE), (LATE, CRASH)], ids=["first", "last"])
def test_a_case_is_told_by_what_was_said_of_its_gravest_row(
    order: Sequence[dict[str, Any]], tmp_path: Path
) -> None:
    walks = [(synthetic.row(instance=number, **fields), b"") for number, fields in enumerate(order)]
    run = synthetic.write_run(tmp_path / "run", [walks], synthetic.info(synthetic.ARMS[:1]))
    (failing,) = result_of(run).failing
    assert failing.said == "it died" and failing.faults == ("crash", "timeout")


def test_a_fault_with_the_name_of_a_documented_one_is_told(tmp_path: Path) -> None:
    """A check may tell of one place that is documented and of another that is not."""
    found = (DOCUMENTED, replace(DOCUMENTED, documented=False))
    result = result_of(write_run(tmp_path / "run", {OLD: {"findings": found}}))
    (failing,) = result.failing
    assert (failing.outcome, failing.documented) == ("failed", ())
    (text,) = summary.files(result).values()
    assert "a_documented_check" in text.partition("### What fails most")[2]


def test_a_failing_case_is_as_bad_as_on_the_arms_that_solve_anything() -> None:
    failures = Failures()
    crashed, late = (synthetic.row(**CRASH), synthetic.row(backend="beta", **LATE))
    for row in (crashed, late):
        failures.add(row, 0)
    (case,) = failures.cases.values()
    solves_nothing = {(0, arm_key(crashed))}
    assert worst_kind(case, set()) == worst_kind(case, set(case.rows)) == "breaks"
    assert worst_kind(case, solves_nothing) == "too_slow"


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("sampled", [True, False])
def test_each_form_with_a_place_for_words_tells_which_part_of_the_suites_it_is_of(
    is_whole: bool, sampled: bool, tmp_path: Path
) -> None:
    """The files are mailed and joined, without what `report` says on the terminal."""
    suites = {"first": {"version": "1", "sha256": "0" * 64, "cases": 2, "instances": 2, "cases_in_all": 50}}
    if not sampled:
        del suites["first"]["cases_in_all"]
    run = write_run(tmp_path / "run", {OLD: {"accepted": False}}, finish=is_whole, suites=suites)
    result = result_of(run)
    assert bool(result.incomplete) is not is_whole and bool(result.sample) is sampled
    part = "; ".join(filter(None, ["" if is_whole else "incomplete", result.sample]))
    files = {
        path.name: path.read_text()
        for path in write(result, [one for one in FORMS if one != "json"], tmp_path)
    }
    for name in ("cases.csv", "figures.csv", "failing.csv"):
        assert {line["sample"] for line in csv.DictReader(files[name].splitlines())} == {part}
    series = json.loads(files["benchmark-smaller-is-better.json"])
    assert series and all(one["extra"].removeprefix("from 2 cases").lstrip("; ") == part for one in series)
    assert files["tables.md"].startswith(f"{part}\n\n| backend" if part else "| backend")
    assert ("incomplete" in files["annotations.txt"]) is not is_whole
    if is_whole:
        assert files["annotations.txt"].endswith(f"::{'; '.join(filter(None, ['1 failed case', part]))}\n")
    title = ElementTree.fromstring(files["junit.xml"].encode()).get("name", "")
    assert title.partition(", ")[2] == part
    (run / "cases.jsonl").touch()
    write_report(read_inputs([run]), tmp_path / "page")
    (told,) = json.loads((tmp_path / "page" / "report.json").read_text())["runs"]
    assert (told["sample"], bool(told["incomplete"])) == (result.sample, not is_whole)


def test_a_summary_tells_the_gravest_of_what_fails_as_often_and_how_much_is_left_off(
    large: Result,
) -> None:
    """A control, which fails most of all, is no backend; page and answer leave it out as well."""
    (arm,), failing = large.arms, large.failing[0]
    late = replace(failing, outcome="failed", documented=(), state="too_slow", faults=("timeout",))
    broken = replace(late, state="breaks", faults=("crash", "timeout"))
    many = [replace(late, faults=(f"many{number:02}",)) for number in range(39) for _ in range(3)]
    floor = replace(arm, name="floor", backend="unconstrained")
    of_floor = [replace(late, arm="floor", faults=("under_constrained",))] * 99
    counts = tuple(replace(large.counts[0], arm=name, failed=9) for name in (arm.name, "floor"))
    result = replace(
        large,
        arms=(arm, floor),
        counts=counts,
        failing=(*of_floor, *many, replace(late, faults=("slow",)), broken),
    )
    (text,) = summary.files(result).values()
    table = text.partition("### What fails most")[2]
    lines = [line for line in table.splitlines() if line.startswith("| aaa")]
    assert len(lines) == 40 and lines[-1].endswith("| crash | 1 |") and "floor" not in table
    assert "\n\nand 2 more\n" in table, "slow, and the timeout behind the crash"
    alone = replace(result, failing=(broken,))
    assert "more\n" not in summary.files(alone)["summary.md"].partition("What fails most")[2]
    (noticed,) = workflow_commands.lines(result)
    assert "title=aaa" in noticed
    control = replace(result, arms=(floor,), counts=counts[1:], failing=tuple(of_floor))
    assert "| floor | under_constrained | 99 |" in summary.files(control)["summary.md"], (
        "nothing else is there"
    )
    assert len(workflow_commands.lines(control)) == 1
