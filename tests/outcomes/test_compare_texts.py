"""Measurements of one case along two texts: neither masks nor times of them are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from compared import COPY, OLD, REFERENCE, measured_run
from synthetic import info, row

from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance, case_id
from harness.cases.case_line import CASES_FILE, case_to_line
from harness.cli.main import main
from harness.measure.protocol import PROFILES
from harness.measure.session import plan_traces, workload_key
from harness.outcomes.compare import compare_runs

OTHER_MASKS = {"toy==2": {"masks_sha256": "11", "allowed": 8, "forced_bytes": 2}}
LINE = "masks and other counts of 1 case are not compared: its text or options differ"
GRAMMAR = Grammar("regex", "[0-9]{2,300}")
CASE = Case(case_id(GRAMMAR), "digits", GRAMMAR, (Instance("test 1", b"0123", True),))
LONGER = replace(CASE, instances=(Instance("test 1", b"0123456789", True),))
LATER = replace(CASE, instances=(Instance("new", b"45", True), *CASE.instances))
ASSERTED = replace(CASE, options={"format": "assert"})
TOKENS = replace(CASE, instances=(Instance("test 1", b"0123", True, tokens=(5, 6)),))


@pytest.mark.parametrize(("texts", "code"), [({}, 1), ({"speed0": "e" * 64, "speed1": "e" * 64}, 0)])
def test_masks_gate_along_the_same_text_only(
    texts: dict[str, str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = measured_run(tmp_path / "base", 1.0)
    head = measured_run(tmp_path / "head", 1.0, counts=OTHER_MASKS, texts=texts)
    assert main(["compare", str(base), str(head), "--gate"]) == code
    said = " ".join(capsys.readouterr().out.split())
    line = LINE.replace("1 case", "2 cases").replace("its", "their")
    assert (line in said) is bool(texts) and ("masks that differ" in said) is not bool(texts)


def test_a_case_of_another_text_keeps_no_other_from_being_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = measured_run(tmp_path / "base", 1.0)
    head = measured_run(tmp_path / "head", 1.0, counts=OTHER_MASKS, texts={"speed0": "e" * 64})
    pair = compare_runs(base, head)[-1]
    assert {one.case_id for one in pair.counted} == {"speed1"} and pair.count_note == LINE
    assert main(["compare", str(base), str(head), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["told"][0] == LINE


def folder_of(folder: Path, case: Case) -> Path:
    """Writes what a run stores of its cases, here of one."""
    folder.mkdir(parents=True)
    (folder / CASES_FILE).write_bytes(case_to_line("toy", "1", case))
    return folder


@pytest.mark.parametrize(
    ("case", "is_same"), [(CASE, True), (LATER, True), (LONGER, False), (ASSERTED, False), (TOKENS, False)]
)
def test_the_workload_key_knows_the_text_that_is_measured(case: Case, is_same: bool, tmp_path: Path) -> None:
    keys = []
    for name, made in (("first", CASE), ("then", case)):
        number = len(made.instances) - 1
        walked = row(suite="toy", case_id=made.id, dialect="regex", instance=number, tokens=9, backend="toy")
        walked = replace(walked, backend_version="1")
        traces, _ = plan_traces(folder_of(tmp_path / name, made), [walked], [REFERENCE, COPY])
        assert [trace.instance for trace in traces] == [number] and traces[0].solved_by
        keys.append(workload_key(info((OLD,)), traces, PROFILES["quick"]))
    assert (keys[0] == keys[1]) is is_same


def test_times_of_another_workload_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = measured_run(tmp_path / "base", 1.0, workload="older")
    head = measured_run(tmp_path / "head", 1.0)
    assert main(["compare", str(base)]) == main(["compare", str(base), str(head), "--gate"]) == 0
    assert "no baseline, the runs differ in workload older and" in " ".join(capsys.readouterr().out.split())
    past = str(tmp_path / "past")
    assert [main(["history", past, "--add", str(run)]) for run in (base, head)] == [0, 0]
    assert "workload older: 1 run" in capsys.readouterr().out
