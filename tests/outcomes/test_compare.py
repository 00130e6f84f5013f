"""Two arms of a run, or two runs: what is told, what gates, and what is not comparable."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import synthetic
from compared import COPY, HEAD, NEW, OLD, REFERENCE, measured_run, write_run
from measured import arm, steady, write_measurement
from report_folders import played, write_decoding

from harness.cli.main import main
from harness.measure.record import ROUNDS, read_measurement
from harness.outcomes.compare import compare_arms, compare_runs, gate_pairs, not_compared
from harness.outcomes.compare.times import NO_BASELINE, why_not_comparable
from harness.outcomes.result import build
from harness.report.figures.forest import plot
from harness.report.page.content import Content
from harness.report.page.inputs import read_inputs
from harness.report.page.sections import comparing, ratios
from harness.report.page.verdict import verdict
from harness.rows.row import Row


def test_versions_of_one_run_are_compared_in_outcomes_and_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured_run(tmp_path, 1.2, {"accepted": False, "stopped_at": 2})
    (pair,) = compare_arms(folder)
    assert [each.name for each in pair.outcomes.cases] == ["two"] and pair.outcomes.cases[0].kind == "worse"
    assert {each.metric: each.verdict for each in pair.times}["fill"] == "regressed"
    assert main(["compare", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert (
        "new faults: 1 case" in shown
        and "SLOWER" in shown
        and "toy==1  ->  toy==2" in shown
        and "proven" in shown
    )


@pytest.mark.parametrize(
    ("head", "changed", "options", "gate", "timed"),
    [
        (1.0, {}, {}, 0, 0),
        (1.2, {}, {}, 0, 1),  # a slowdown gates only when it is asked for
        (1.0, {"accepted": False, "stopped_at": 1}, {}, 1, 1),
        (
            1.0,
            {"status": "timeout", "phase": "compile", "accepted": None},
            {},
            0,
            0,
        ),  # depends on the machine
        (1.0, {}, {"copy": 1.4}, 0, 4),
        (1.0, {}, {"counts": {"toy==2": {"masks_sha256": "11", "allowed": 8}}}, 1, 1),
        (1.0, {}, {"counts": {"toy==2": {"forced_bytes": 2}}}, 1, 1),
        (1.0, {}, {"counts": {"toy==2": {"forced_bytes": 4}}}, 0, 0),
        (1.0, {}, {"counts": {"toy==2": {"serialized_bytes": 1040}}}, 0, 0),
        (1.0, {}, {"counts": {"toy==2": {"serialized_bytes": 1100}}}, 1, 1),
        (1.0, {}, {"counts": {"toy==2": {"error": "it raised RuntimeError"}}}, 1, 1),
    ],
)
def test_the_gate(
    tmp_path: Path, head: float, changed: dict[str, Any], options: dict[str, Any], gate: int, timed: int
) -> None:
    folder = measured_run(tmp_path, head, changed, **options)
    assert main(["compare", str(folder), "--gate"]) == gate
    assert main(["compare", str(folder), "--gate", "--time"]) == timed


WRONG = {"accepted": False, "stopped_at": 2}
SETTING = replace(OLD, options="wrapper=other")


def two_settings(folder: Path) -> Path:
    """One version with two settings, the second of which is wrong and three times slower."""
    write_run(folder, {OLD: {}, SETTING: WRONG})
    plain, other, copy = (
        arm("toy", "reference", "toy"),
        arm("toy:wrapper=other", "arm", "toy", "1", "wrapper=other"),
        arm("toy (again)", "a/a", "toy"),
    )
    write_measurement(folder, {plain: steady(1, seed=1), other: steady(3, seed=2), copy: steady(1, seed=3)})
    return folder


def test_two_settings_of_a_backend_are_no_change_on_any_surface(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = two_settings(tmp_path / "run")
    (pair,) = compare_arms(folder)
    assert pair.counts_worse and pair.slower and not pair.is_change, "the difference is there to be seen"
    for timed in ([], ["--time"]):
        assert main(["compare", str(folder), "--gate", *timed]) == 4
        said = capsys.readouterr().out
        assert (
            "toy 1 -> toy:wrapper=other 1 (two settings: no change)" in said
            and ("gate: UNPROVEN: no two versions") in said
        )
    assert main(["compare", str(folder), "--json", "--html", str(tmp_path / "page.html")]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["is_change"], told["worse"]) == (False, False)
    assert "Two settings: what differs is no change." in (tmp_path / "page.html").read_text()
    assert main(["report", str(folder), "--format", "json", "--out", str(tmp_path / "out")]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["gate"]["verdict"] == "ok" and result["changes"] == []
    inputs = read_inputs([folder])
    assert verdict(inputs).word == "NO BASELINE" and comparing.run_pairs(inputs) == []
    assert [each.note for each in comparing.against(inputs, comparing.NOTES)] == [
        comparing.NOTES["settings"],
        comparing.NOTES["control"],
    ]


def test_a_page_draws_the_chart_of_each_pair_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def noted(name: str, pairs: Any) -> Any:
        drawn.append(name)
        return plot(name, pairs)

    monkeypatch.setattr(comparing, "plot", noted)
    page = cast(Content, SimpleNamespace(inputs=read_inputs([two_settings(tmp_path / "run")]), trend=None))
    assert comparing.values(page) is None and ratios.values(page)
    assert sorted(drawn) == ["against0x0", "against0x1"], "two settings, and the control"


def test_a_verdict_reads_no_rows_that_its_page_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = measured_run(tmp_path, 1.0, WRONG)
    write_run(tmp_path / "later", {OLD: WRONG})
    write_run(tmp_path / "earlier", {OLD: {}})
    pages = [read_inputs([versions]), read_inputs([tmp_path / "earlier", tmp_path / "later"])]
    monkeypatch.delattr(build, "read_rows")
    assert [verdict(each).word for each in pages] == ["REGRESSED", "REGRESSED"]


def test_each_setting_is_compared_with_its_own_older_version(tmp_path: Path) -> None:
    arms = [OLD, SETTING, NEW, replace(SETTING, version="2")]
    folder = write_run(tmp_path / "run", {arms[0]: {}, arms[1]: WRONG, arms[2]: {}, arms[3]: WRONG})
    found = {(each.base.name, each.head.name): each.is_change for each in compare_arms(folder)}
    assert found == {
        ("toy==1", "toy==1:wrapper=other"): False,
        ("toy==1", "toy==2"): True,
        ("toy==1:wrapper=other", "toy==2:wrapper=other"): True,
    }
    assert main(["compare", str(folder), "--gate"]) == 0, "the setting is as wrong as it was"
    assert verdict(read_inputs([folder])).word == "PASS"
    worse = write_run(tmp_path / "worse", {arms[0]: {}, arms[1]: {}, arms[2]: {}, arms[3]: WRONG})
    assert main(["compare", str(worse), "--gate"]) == 1
    assert verdict(read_inputs([worse])).word == "REGRESSED"


@pytest.mark.long
def test_two_settings_of_a_real_backend_are_no_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With compact white space xgrammar refuses the document that it takes otherwise."""
    pytest.importorskip("xgrammar")
    case = {
        "description": "spaced",
        "schema": {"type": "array"},
        "tests": [{"text": "[ 1, 2 ]", "valid": True}],
    }
    (tmp_path / "suite.json").write_text(json.dumps([case]))
    run = [
        str(tmp_path / "suite.json"),
        "--backends",
        "xgrammar,xgrammar:whitespace=compact",
        "--vocabularies",
        "probe",
        "--effort",
        "0",
    ]
    assert main(["run", *run, "--out", str(tmp_path / "run")]) == 0
    (pair,) = compare_arms(tmp_path / "run")
    assert pair.counts_worse and not pair.is_change
    assert main(["compare", str(tmp_path / "run"), "--gate"]) == 4
    assert verdict(read_inputs([tmp_path / "run"])).word == "NO BASELINE"


def test_two_runs_are_compared_by_backend_and_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = write_run(tmp_path / "base", {OLD: {}})
    head = write_run(tmp_path / "head", {NEW: {"accepted": False, "stopped_at": 0}})
    (pair,) = compare_runs(base, head)
    assert pair.counts_worse and not pair.times
    assert main(["compare", str(base), str(head), "--gate"]) == 1
    assert main(["compare", str(head), str(base), "--gate"]) == 0  # a fault that is gone fails nothing
    capsys.readouterr()
    assert main(["compare", str(base), str(head), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["base"]["version"] == "1" and told["head"]["version"] == "2" and told["worse"]
    assert told["outcomes"][0]["case"] == "two"


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ({"effort": 1}, "base was walked with effort 0, HEAD with 1"),
        ({"effort": -1}, "base was walked with effort 0, HEAD with all"),
        ({"decode": True}, "base was walked with decode false, HEAD with true"),
        ({"checks": ("a", "b")}, "base was walked with checks all, HEAD with a, b"),
    ],
)
def test_two_runs_with_other_settings_are_refused_in_one_line(
    tmp_path: Path, header: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = write_run(tmp_path / "base", {OLD: {}}), write_run(tmp_path / "head", {NEW: {}}, **header)
    for words in (
        ["compare", str(base), str(head)],
        ["compare", str(base), str(head), "--gate"],
        ["report", str(head), "--against", str(base), "--format", "json", "--out", str(tmp_path / "out")],
    ):
        assert main(words) == 2
        line = capsys.readouterr().err.splitlines()[-1]  # a report says first that the run is a sample
        assert told.replace("HEAD", str(head)) in line and "walk one of them again" in line


def test_another_seed_is_told_and_gates_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_run(tmp_path / "base", {OLD: {}}, effort=1)
    head = write_run(tmp_path / "head", {NEW: {}}, effort=1, seed=7)
    assert main(["compare", str(base), str(head)]) == 0
    assert "gate: UNPROVEN" in capsys.readouterr().out
    assert main(["compare", str(base), str(head), "--gate"]) == 2
    assert "walked with seed 0" in capsys.readouterr().err


def test_a_seed_that_drew_nothing_may_be_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head = write_run(tmp_path / "base", {OLD: {}}), write_run(tmp_path / "head", {NEW: {}}, seed=7)
    assert main(["compare", str(base), str(head), "--gate"]) == 0
    assert "gate: OK" in capsys.readouterr().out


ELSE = replace(OLD, backend="else")
OURS = {"status": "harness_error", "accepted": None}
OTHER = {"vocabulary": "other"}
PART = {"first": {"version": "1", "sha256": "0" * 64, "cases": 1, "cases_in_all": 2, "instances": 1}}
MORE = {"second": {"version": "1", "sha256": "1" * 64, "cases": 1, "instances": 1}}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"arms": {OLD: {}}}, "has no backend else, which"),
        ({}, {"cases": 1, "suites": PART}, "1 case of"),
        ({"suites": PART | MORE}, {"suites": PART}, "has no suite second, which"),
        ({}, {"cases": 1, "arms": {OLD: {}, ELSE: OURS}}, "no case of else 1 could be compared"),
        ({"arms": {OLD: {}, ELSE: OTHER}}, {}, "no case of else 1 on other could be compared"),
    ],
    ids=["an arm", "a sample", "a suite", "our failure", "a vocabulary"],
)
def test_a_gate_between_runs_is_unproven_and_names_what_is_missing(
    tmp_path: Path,
    before: dict[str, Any],
    after: dict[str, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    both: dict[str, Any] = {
        "arms": {OLD: {}, ELSE: {}},
        "vocabularies": {name: {"size": 300, "sha256": "ab" * 32} for name in ("tiny", "other")},
    }
    base, head = (
        str(write_run(tmp_path / name, **(both | one))) for name, one in (("base", before), ("head", after))
    )
    assert main(["compare", base, base, "--gate"]) == main(["compare", head, head]) == 0
    capsys.readouterr()
    assert main(["compare", base, head, "--gate"]) == 4
    shown = capsys.readouterr().out
    assert "gate: UNPROVEN" in shown and said in " ".join(shown.split())
    words = ["report", head, "--against", base, "--format", "json", "--out", str(tmp_path)]
    assert main(words) == 0
    gate = json.loads((tmp_path / "result.json").read_text())["gate"]
    assert gate["verdict"] == "unproven" and said in "; ".join(gate["reasons"])


def test_a_page_judges_versions_beside_a_run_that_is_no_match(tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", {ELSE: {}})
    versions = write_run(tmp_path / "versions", {OLD: {}, NEW: WRONG})
    found = verdict(read_inputs([other, versions]))
    assert found.word == "REGRESSED" and "in common" in found.reasons[0]


def test_a_page_of_a_run_that_is_no_match_proves_nothing_of_it(tmp_path: Path) -> None:
    base, same = write_run(tmp_path / "base", {OLD: {}}), write_run(tmp_path / "same", {NEW: {}})
    other = write_run(tmp_path / "other", {NEW: {}}, effort=1)
    assert verdict(read_inputs([base, same])).word == "PASS"
    found = verdict(read_inputs([base, same, other]))
    assert found.word == "UNPROVEN" and "base was walked with effort 0" in found.reasons[0]


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"hardware": "x" * 12}, "hardware"), ({"workload": "x" * 12}, "workload"), ({}, "")],
)
def test_times_of_two_runs_are_told_only_where_they_are_comparable(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    base = measured_run(tmp_path / "base", 1.0)
    head = measured_run(tmp_path / "head", 1.5, **changed)
    told = compare_runs(base, head)[-1].time_notes
    if why:
        assert [NO_BASELINE in each and why in each for each in told] == [True]
    else:
        (line,) = [each for each in told if each.startswith("fill speed")]
        assert "(+4" in line or "(+5" in line
    assert not compare_runs(base, head)[-1].times  # told, never judged


def test_a_page_with_a_forest_plot(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "run", 1.2, {"accepted": False, "stopped_at": 2})
    assert main(["compare", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1 and ">▸ slower<" in page and "toy==2" in page
    assert main(["compare", str(folder), "--html", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    folder = tmp_path / "run"
    write_run(folder, {OLD: {}, NEW: {"accepted": False, "stopped_at": 0, "instance_name": hostile}})
    assert main(["compare", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    assert hostile not in (tmp_path / "page.html").read_text()


def test_what_cannot_be_compared_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = write_run(tmp_path / "whole", {OLD: {}})
    other = write_run(tmp_path / "other", {replace(OLD, backend="else"): {}})
    assert main(["compare", str(whole), str(other)]) == 2
    assert "no backend with the same options in common" in capsys.readouterr().err
    assert main(["compare", str(whole)]) == 0
    assert "nothing to compare" in capsys.readouterr().out
    assert main(["compare", str(whole), "--gate"]) == 4  # a gate that looked at nothing has proven nothing


def test_what_only_one_run_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_run(tmp_path / "base", {OLD: {}})
    head = write_run(tmp_path / "head", {NEW: {}, replace(OLD, backend="else"): {}})
    assert main(["compare", str(base), str(head)]) == 0
    assert "not compared: else (in" in capsys.readouterr().out and not_compared(base, base) == ""


@pytest.mark.parametrize("order", [1, -1])
def test_each_arm_is_held_against_its_own_version_or_the_newest(order: int, tmp_path: Path) -> None:
    wrong = {"accepted": False, "stopped_at": 0}
    base = write_run(tmp_path / "base", {NEW: {}})
    head = write_run(tmp_path / "head", dict([(OLD, {}), (NEW, wrong)][::order]))
    pairs = compare_runs(base, head, gates=True)
    assert [(pair.base.arm, pair.head.arm) for pair in pairs] == [(NEW, OLD), (NEW, NEW)][::order]
    assert gate_pairs(pairs, time=False).verdict == "failed" and not_compared(base, head) == ""
    both = write_run(tmp_path / "both", dict([(OLD, {}), (NEW, {})][::order]))
    later = write_run(tmp_path / "later", {replace(NEW, version="3"): {}})
    (pair,) = compare_runs(both, later)
    assert pair.base.arm == NEW
    assert not_compared(both, later) == f"not compared: {OLD.backend}==1 (in {both} only)"


def test_other_masks_fail_a_gate_and_nobody_says_which_are_right(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "run", 1.0, counts={"toy==2": {"masks_sha256": "11", "allowed": 8}})
    (pair,) = compare_arms(folder)
    assert pair.what_is_worse.startswith(
        "masks that differ (only a run with checks can say which are right) in "
    )
    (found,) = comparing.run_pairs(
        read_inputs([folder])
    )  # versions within one run are listed on the page too
    assert found.title == "toy==1 → toy==2" and found.counted == pair.counted and found.counted


def test_what_the_head_could_not_count_is_told_and_what_it_does_not_solve_is_no_count(tmp_path: Path) -> None:
    counts = {"toy==2": {"error": "it raised\nRuntimeError"}}
    (pair,) = compare_arms(measured_run(tmp_path / "run", 1.0, counts=counts))
    assert pair.what_is_worse.startswith("counts that could not be made in ")
    assert {(one.count, one.before, one.after, one.worse) for one in pair.counted} == {
        ("counts", "made", "it raised RuntimeError", True)
    }
    late = {"toy==2": {"error": "killed after 10 s", "cause": "timeout"}}  # depends on the machine
    for name, other in (("base", {"toy==1": counts["toy==2"]}), ("late", late)):
        (pair,) = compare_arms(measured_run(tmp_path / name, 1.0, counts=other))
        assert pair.counted == ()


def test_what_has_no_end_is_compared_and_kept_by_nobody_and_the_exit_code_is_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, torn = (
        str(write_run(tmp_path / name, {OLD: {}}, finish=name == "whole")) for name in ("whole", "torn")
    )
    half_measured = str(measured_run(tmp_path / "half measured", 1.0, finish=False))
    half_decoded = str(write_decoding(tmp_path / "half decoded", played(), finish=False))
    record, past = str(tmp_path / "record.json"), str(tmp_path / "past")
    assert main(["compare", whole, "--record", record]) == 0
    for command in (
        ["compare", whole, torn],
        ["compare", torn, whole, "--gate"],
        ["compare", half_measured, "--gate"],
        ["compare", half_decoded],
        ["compare", record, torn],
        ["compare", torn, "--record", str(tmp_path / "other.json")],
        ["history", past, "--add", torn],
        ["history", past, "--add", half_measured],
        ["report", whole, "--against", torn, "--format", "json", "--out", str(tmp_path / "exported")],
    ):
        capsys.readouterr()
        assert main(command) == 3, command
        said = capsys.readouterr()
        assert (
            ("incomplete" in said.err or "no end" in said.err) and said.err.count("\n") == 1 and not said.out
        ), command
    assert not (tmp_path / "past").exists() and not (tmp_path / "other.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("RUN RECORD", "expected outcomes, which must come first: grammarbench compare RECORD RUN"),
        ("RECORD", "name the run that is compared with it too"),
        ("RECORD RUN --time", "--time says nothing about expected outcomes"),
        ("RUN --record RECORD --gate", "--gate says nothing about a record that is written"),
        ("RUN RUN --record RECORD", "name that run only"),
        ("nosuch.json RUN", "nosuch.json"),
    ],
)
def test_a_record_in_the_wrong_place_is_told_in_one_line(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, record = str(write_run(tmp_path / "run", {OLD: {}})), str(tmp_path / "record.json")
    assert main(["compare", run, "--record", record]) == 0
    capsys.readouterr()
    places = {"RUN": run, "RECORD": record}
    assert main(["compare", *(places.get(word, word) for word in words.split())]) == 2
    error = capsys.readouterr().err
    for word, place in places.items():
        said = said.replace(f" {word}", f" {place}")
    assert said in error and error.count("\n") == 1


def named(*names: str, wrong: str = "") -> list[tuple[Row, bytes]]:
    """Returns the rows of one case with these instances."""
    return [
        (synthetic.row(instance=place, instance_name=name, accepted=name != wrong), b"")
        for place, name in enumerate(names)
    ]


def walked(folder: Path, *rows: tuple[Row, bytes]) -> Path:
    return synthetic.write_run(folder, [[one] for one in rows], synthetic.info(synthetic.ARMS[:1]))


@pytest.mark.parametrize(
    ("after", "code", "said"),
    [
        (named("new", "x", "y", "y"), 0, "1 part (instances, checks) of cases on both sides"),
        (named("new", "x", "y", "y", wrong="x"), 1, "instance 1 (x): right -> over_constrained"),
        (named("new", "y", "y", wrong="y"), 1, "instance 2 (y): right -> over_constrained"),
        (named("other", "names"), 4, "1 case that both sides hold has no instance in common"),
    ],
    ids=["right", "wrong", "of one name", "nothing in common"],
)
def test_an_instance_keeps_its_counterpart_where_another_is_put_before_it(
    tmp_path: Path,
    after: list[tuple[Row, bytes]],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = (synthetic.row(case_id="1" * 12), b"")
    base = walked(tmp_path / "base", *named("x", "y", "y"), other)
    head = walked(tmp_path / "head", *after, other)
    assert main(["compare", str(base), str(head), "--gate"]) == code
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("after", "decode", "code", "told"),
    [
        ({"passes": 10}, True, 1, [("passes", 9, 10, True)]),
        ({"passes": 8}, True, 0, [("passes", 9, 8, False)]),
        ({"passes": 10, "ids": 14}, True, 0, []),
        ({"passes": 10, "written": 0}, True, 0, []),
        ({"passes": 10, "texts": 2}, True, 0, []),
        ({}, True, 0, []),
        ({"passes": 10}, False, 0, []),
    ],
    ids=["more", "fewer", "other ids", "not written", "other texts", "the same", "without --decode"],
)
def test_more_passes_for_the_same_texts_gate(
    tmp_path: Path, after: dict[str, int], decode: bool, code: int, told: list[tuple[str, int, int, bool]]
) -> None:
    before = {"texts": 1, "written": 1, "ids": 12, "passes": 9}
    others = {"the_mask_is_exact": {"places": 1, "passes": 1}}
    base, head = (
        write_run(
            tmp_path / name,
            {arm: {"counted": {"jump_forward_writes_the_instance": one} | others}},
            decode=decode,
        )
        for name, arm, one in (("base", OLD, before), ("head", NEW, before | after))
    )
    (pair,) = compare_runs(base, head)
    assert [(one.count, one.before, one.after, one.worse) for one in pair.counted] == told
    assert {one.case for one in pair.counted} == ({"two, jump_forward"} if told else set())
    assert pair.what_is_worse == ("more passes in 1 case" if code else "")
    assert main(["compare", str(base), str(head), "--gate"]) == code


def test_times_are_of_one_reference_and_one_python(tmp_path: Path) -> None:
    old = read_measurement(measured_run(tmp_path, 1.0))
    first, *arms = old.measurement.arms
    changes: list[tuple[dict[str, Any], str]] = [
        ({"software": {"python": "3.11.9"}}, ""),
        ({"software": {"python": "3.12.7"}}, "Python 3.11 and 3.12"),
        ({"arms": (replace(first, version="9"), *arms)}, "reference toy==1 1 and toy==1 9"),
        ({"arms": (replace(first, options="x"), *arms)}, "reference toy==1 1 and toy==1 1"),
        ({"arms": (first, replace(arms[0], version="9"), *arms[1:])}, ""),
    ]
    for changed, why in changes:
        new = replace(old, measurement=replace(old.measurement, **changed))
        assert why_not_comparable(old, new) == why


@pytest.mark.parametrize("was_wrong", [False, True])
def test_other_masks_are_what_was_wanted_where_a_fault_is_gone(tmp_path: Path, was_wrong: bool) -> None:
    write_run(tmp_path, {OLD: {"accepted": False, "stopped_at": 0} if was_wrong else {}, NEW: {}})
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(1, seed=2), COPY: steady(1, seed=3)}
    counts = {"toy==2": {"masks_sha256": "11", "allowed": 8, "forced_bytes": 4}}
    write_measurement(tmp_path, arms, cases=1, counts=counts)
    rounds = tmp_path / ROUNDS  # the case that was measured is the one that was wrong
    rounds.write_text(rounds.read_text().replace("speed0", "1" * 12))
    (pair,) = compare_arms(tmp_path)
    assert [(one.count, one.worse) for one in pair.counted] == [
        ("masks", not was_wrong),
        ("forced_bytes", False),
    ]
    assert gate_pairs([pair], time=False).verdict == ("ok" if was_wrong else "failed")
