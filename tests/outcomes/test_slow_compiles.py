"""The slowest compiles are named, in the summary of a run and on its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.cases.case import Case, case_id
from harness.cli.main import main
from harness.outcomes.slow_compiles import SECOND, Compiles


def a_run(folder: Path) -> Path:
    """20 cases through two backends; `slow` has one compile of 3 s, one of 50 ms and one that met the
    deadline."""
    arms = tuple(Arm(name, "1", "", name, ("choice",), "bitmask") for name in ("quick", "slow"))
    cases = [
        Case(case_id(grammar), f"case {number}", grammar)
        for number in range(20)
        for grammar in [Grammar("choice", f'["{number}"]')]
    ]
    tail = {3: {"compile_ns": 3 * SECOND}, 4: {"compile_ns": 50_000_000}}
    tail |= {7: {"compile_ns": None, "status": "timeout", "phase": "compile", "accepted": None}}  # type: ignore[dict-item]
    rows = []
    for number, case in enumerate(cases):
        for arm in arms:
            more = tail.get(number, {}) if arm.backend == "slow" else {}
            fields = {
                "backend": arm.backend,
                "backend_version": "1",
                "options": "",
                "case": case.name,
                "case_id": case.id,
            }
            rows.append([(synthetic.row(**{**fields, "compile_ns": 1_000_000, **more}), b"")])
    path: Path = synthetic.write_run(
        folder, rows, synthetic.info(arms, timeout_s=5.0), [("first", case) for case in cases]
    )
    return path


def test_the_summary_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path / "run")
    main(["table", str(run), "summary"])
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "slowest compile of slow 1" in said
        and ("over 5 s, case 7 (first); 2 of 20 compiles over 1 s, 3 over 10 times the median") in said
    )
    assert "1 ms, case 0 (first); 0 of 20 compiles over 1 s, 0 over 10 times the median" in said
    main(["table", str(run), "summary", "--json"])
    slow = json.loads(capsys.readouterr().out)["slow_compiles"]
    assert [each["over_a_second"] for each in slow] == [2, 0] and slow[0]["slowest"]["case"] == "case 7"


def test_the_page_names_them(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    main(["report", str(run)])
    page = (run / "report" / "report.html").read_text("utf-8")
    table = page[page.index("Slowest compiles. ") :].partition("</table>")[0]
    assert "2 of 20 compiles over 1 s, 3 over 10 times the median" in table
    assert [table.index(name) for name in ("over 5 s", "3 s", "50 ms")] == sorted(
        table.index(name) for name in ("over 5 s", "3 s", "50 ms")
    )
    assert table.index("case 7") < table.index("case 3") < table.index("case 4")


def test_a_deadline_below_a_second_makes_no_compile_of_a_second() -> None:
    unfinished = synthetic.row(compile_ns=None, status="timeout", phase="compile", accepted=None)
    for deadline, over in ((0.5, 0), (1.0, 1)):
        compiles = Compiles(deadline)
        compiles.add(unfinished)
        assert [tail.over_a_second for tail in compiles.tails()] == [over]


def test_a_refusal_is_no_compile() -> None:
    compiles = Compiles(5.0)
    for status, ns in (("unsupported", 9 * SECOND), ("ok", 7), ("invalid", 8 * SECOND)):
        compiles.add(synthetic.row(case_id=status, status=status, compile_ns=ns))
    assert [(tail.compiles, tail.over_a_second, tail.slowest.ns) for tail in compiles.tails()] == [(1, 0, 7)]
    assert [compiled.ns for compiled in compiles.slowest()] == [7]


def test_a_case_is_counted_once() -> None:
    compiles = Compiles(5.0)
    row = synthetic.row(compile_ns=7)
    for _ in range(2):
        compiles.add(row)
    assert [tail.compiles for tail in compiles.tails()] == [1]
    assert Compiles(5.0).tails() == []
