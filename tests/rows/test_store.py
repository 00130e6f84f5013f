"""A run on disk: appended, checked on write and on read, made whole after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.cases import case_line
from harness.cases.case import Case
from harness.cases.case_line import case_to_line
from harness.cases.plan import rows_owed
from harness.errors import BadInput
from harness.rows import store
from harness.rows.appending import Appender
from harness.rows.line import problem_with
from harness.rows.resume import resume, stored
from harness.rows.row import (
    Finding,
    Row,
    RunInfo,
    identity,
    row_from_json,
    row_to_json,
    verdict,
)
from harness.rows.store import (
    PACKED,
    TornLine,
    has_begun,
    lines,
    packed,
    read_end,
    read_info,
    read_rows,
    read_samples,
)
from harness.rows.writer import Writer
from harness.running.taken import _same_cases

ROW = Row(
    backend="b", backend_version="1", options="", vocabulary="v", suite="s", suite_version="1", case="c",
    case_id="0123456789ab",
    dialect="regex", tags=("x",), instance=0, instance_name="i", mode="replay", jump_forward=False, repeat=0,
    status="ok", phase="",
    signal="", text="", valid=True, accepted=True, stopped_at=None, tokens=1, bytes=1, grammar_bytes=1,
    compile_ns=5, matcher_new_ns=1,
    first_fill_ns=10, wall_ns=99, peak_rss_bytes=1, samples=None,
)  # fmt: skip

INFO = RunInfo(
    "r",
    "now",
    "0.1",
    (),
    0,
    "default",
    1.0,
    1,
    1,
    (Arm("b", "1", "", "d", ("regex",), "bitmask"),),
    {"v": {"size": 300, "sha256": "ab" * 32}},
    {},
    {},
)


def nanoseconds(*values: int) -> bytes:
    return np.array(values, dtype="<i8").tobytes()


def write_run(folder: Path, cases: int = 3, finish: bool = True) -> list[Row]:
    """`cases` cases of two instances each."""
    with Writer(folder, INFO) as writer:
        for number in range(cases):
            case = replace(ROW, case_id=f"{number:012x}")
            writer.append(
                [(case, nanoseconds(10, 2, 30, 4)), (replace(case, instance=1), nanoseconds(number, 1))]
            )
        if finish:
            writer.finish("later")
    return list(read_rows(folder))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    rows = write_run(tmp_path)
    assert [(row.case_id, row.instance) for row in rows] == [
        (f"{n:012x}", i) for n in range(3) for i in range(2)
    ]
    assert read_info(tmp_path) == INFO
    end = read_end(tmp_path)
    assert end is not None and (end.rows, end.statuses) == (6, {"ok": 6})
    samples = read_samples(tmp_path)
    assert rows[3].samples is not None
    assert list(samples[rows[3].samples[0] : sum(rows[3].samples)]) == [1, 1]


def test_a_row_is_in_the_file_before_append_returns(tmp_path: Path) -> None:
    with Writer(tmp_path, INFO) as writer:
        writer.append([(ROW, nanoseconds(1, 2))])
        assert len(list(read_rows(tmp_path))) == 1
        assert len(read_samples(tmp_path)) == 2


def test_a_line_that_the_schema_forbids_is_not_written(tmp_path: Path) -> None:
    with Writer(tmp_path, INFO) as writer, pytest.raises(ValueError, match="schema forbids"):
        writer.append([(replace(ROW, status="fine"), b"")])  # type: ignore[arg-type]
    assert list(read_rows(tmp_path)) == []


def test_a_duplicate_and_a_foreign_line_are_told(tmp_path: Path) -> None:
    with Writer(tmp_path, INFO) as writer:
        writer.append([(ROW, b"")])
        writer.append([(ROW, b"")])
    with pytest.raises(BadInput, match=r"rows.jsonl:3: the same walk stands here twice"):
        list(read_rows(tmp_path))
    (tmp_path / "rows.jsonl").write_text("[]\n")
    with pytest.raises(BadInput, match=r"rows.jsonl:1: not a line of a run"):
        read_info(tmp_path)


@pytest.mark.parametrize("of", ["backend", "backend_version", "options"])
def test_a_row_of_no_arm_of_the_run_is_told(tmp_path: Path, of: str) -> None:
    stray: dict[str, Any] = {of: "other\x1b[2J"}
    with Writer(tmp_path, INFO) as writer:
        writer.append([(ROW, b"")])
        writer.append([(replace(ROW, case_id="f" * 12, **stray), b"")])
    with pytest.raises(BadInput, match=r"rows.jsonl:3: a row of .*other\\x1b\[2J.*, no arm of this run"):
        list(read_rows(tmp_path))


def test_another_format_is_told(tmp_path: Path) -> None:
    write_run(tmp_path)
    path = tmp_path / "rows.jsonl"
    path.write_text(path.read_text().replace('"format":1', '"format":2', 1))
    with pytest.raises(BadInput, match="format"):
        read_info(tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_run_cut_anywhere_is_made_whole_and_loses_only_its_last_case(
    tmp_path: Path, data: st.DataObject
) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    rows = write_run(tmp_path, finish=False)
    content = (tmp_path / "rows.jsonl").read_bytes()
    header = content.index(b"\n") + 1
    cut = data.draw(st.integers(header, len(content)))
    (tmp_path / "rows.jsonl").write_bytes(content[:cut])
    owed = {("s", f"{number:012x}"): 2 for number in range(3)}
    done, statuses = resume(tmp_path, owed)
    left = list(read_rows(tmp_path))
    assert len(left) % 2 == 0 and len(left) == 2 * len(done) and left == rows[: len(left)]
    assert len(left) >= 2 * (content[:cut].count(b"\n") - 1) // 2 - 1
    assert statuses == ({"ok": len(left)} if left else {})
    assert len(read_samples(tmp_path)) == 6 * len(done)
    with Writer(tmp_path, None, statuses) as writer:
        for row in rows[len(left) :: 2]:
            writer.append(
                [
                    (row, nanoseconds(10, 2, 30, 4)),
                    (replace(row, instance=1), nanoseconds(int(row.case_id, 16), 1)),
                ]
            )
        writer.finish("later")
    assert list(read_rows(tmp_path)) == rows and read_end(tmp_path) is not None


def test_a_complete_run_is_not_resumed(tmp_path: Path) -> None:
    write_run(tmp_path)
    with pytest.raises(BadInput, match="complete"):
        resume(tmp_path, {})


@pytest.mark.parametrize("size", [0, 8, 40, 47])
def test_samples_that_the_machine_lost_are_not_made_up(tmp_path: Path, size: int) -> None:
    rows = write_run(tmp_path, finish=False)
    with open(tmp_path / "samples.i64", "r+b") as file:
        file.truncate(size)
    said: list[str] = []
    done, _ = resume(tmp_path, {("s", f"{number:012x}"): 2 for number in range(3)}, said.append)
    assert len(done) == size // 48 and list(read_rows(tmp_path)) == rows[: 2 * len(done)]
    (told,) = said
    assert f"{6 - 2 * len(done)} rows without times are given up" in told


def test_rows_are_not_given_up_where_the_samples_are_not_there(tmp_path: Path) -> None:
    write_run(tmp_path, finish=False)
    before = (tmp_path / "rows.jsonl").read_bytes()
    samples = (tmp_path / "samples.i64").read_bytes()
    (tmp_path / "samples.i64").unlink()
    with pytest.raises(BadInput, match=r"no samples.i64 here, which has the times of 6 rows; .* --take-over"):
        resume(tmp_path, {})
    assert (tmp_path / "rows.jsonl").read_bytes() == before
    (tmp_path / "samples.i64").write_bytes(samples)
    said: list[str] = []
    assert len(resume(tmp_path, {}, said.append)[0]) == 3 and not said


def test_a_run_without_any_samples_needs_no_file_of_them(tmp_path: Path) -> None:
    with Writer(tmp_path, INFO) as writer:
        writer.append([(replace(ROW, status="unsupported"), b"")])
    (tmp_path / "samples.i64").unlink(missing_ok=True)
    assert len(resume(tmp_path, {})[0]) == 1


def test_the_rows_of_a_case_are_taken_in_once_each(tmp_path: Path) -> None:
    with Writer(tmp_path, INFO) as writer:
        writer.append([(replace(ROW, instance=number), b"") for number in range(300)])
    (case,) = stored(tmp_path, {}).cases
    assert case.statuses == ["ok"] * 300


def test_a_last_case_without_samples_does_not_tell_of_those_before_it(tmp_path: Path) -> None:
    with Writer(tmp_path, INFO) as writer:
        for number in range(2):
            writer.append([(replace(ROW, case_id=f"{number:012x}"), nanoseconds(1, 2))])
        writer.append([(replace(ROW, case_id=f"{2:012x}", status="unsupported"), b"")])
    with open(tmp_path / "samples.i64", "r+b") as file:
        file.truncate(16)
    done, _ = resume(tmp_path, {})
    assert [identity[-1] for identity in done] == [f"{0:012x}"]
    assert (tmp_path / "samples.i64").stat().st_size == 16 and len(list(read_rows(tmp_path))) == 1


def test_a_run_with_a_torn_last_line_is_one_without_end(tmp_path: Path) -> None:
    write_run(tmp_path)
    path, rows = tmp_path / "rows.jsonl", list(read_rows(tmp_path))
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    assert list(read_rows(tmp_path)) == rows and read_end(tmp_path) is None
    with pytest.raises(TornLine, match="--resume` completes the run"):
        list(lines(tmp_path))
    path.write_bytes(content[: content.rindex(b'{"kind":"end"') - 5])
    assert list(read_rows(tmp_path)) == rows[:-1] and read_end(tmp_path) is None


def test_a_published_run_with_a_torn_last_line_is_damaged(tmp_path: Path) -> None:
    write_run(tmp_path)
    path = tmp_path / "rows.jsonl"
    (tmp_path / PACKED).write_bytes(packed(path.read_bytes()[:-5]))
    path.unlink()
    with pytest.raises(TornLine):
        list(read_rows(tmp_path))


def test_a_first_line_that_is_torn_is_no_run_to_complete(tmp_path: Path) -> None:
    write_run(tmp_path)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(TornLine, match=r"the run did not start; repeat its command \(without --resume\)"):
        read_info(tmp_path)
    assert not has_begun(tmp_path)


def test_a_line_from_before_a_field_is_read_with_what_the_field_holds_there() -> None:
    line = row_to_json(ROW)
    for name in ("checks", "counted", "allowed", "contested", "delayed", "behind", "checking"):
        del line[name]
    first, second = row_from_json(line), row_from_json(line)
    assert first == second == ROW and first.checks is not second.checks


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"samples": [0.0, 4.0]}, "samples/0"),
        ({"instance": 0.0}, "instance"),
        ({"compile_ns": 1e9}, "compile_ns"),
        ({"findings": [{"check": "c", "position": 1.0, "text": "t"}]}, "findings/0/position"),
        ({"counted": {"c": {"n": 2.0}}}, "counted/c/n"),
    ],
)
def test_a_whole_number_that_is_written_as_a_fraction_is_refused(
    tmp_path: Path, fields: dict[str, Any], path: str
) -> None:
    assert problem_with(row_to_json(ROW) | fields) == f"{path}: a fraction where a whole number is expected"
    write_run(tmp_path, cases=1, finish=False)
    with open(tmp_path / "rows.jsonl", "a") as file:
        file.write(json.dumps(row_to_json(replace(ROW, case_id="f" * 12)) | fields) + "\n")
    for read in (lambda: list(read_rows(tmp_path)), lambda: resume(tmp_path, {})):
        with pytest.raises(BadInput, match=f"not a line of a run: {path}: a fraction"):
            read()


def test_seconds_and_what_a_machine_says_may_be_fractions() -> None:
    line = {"kind": "run", **asdict(replace(INFO, timeout_s=1.5, machine={"load": [0.5]}))}
    assert problem_with(json.loads(json.dumps(line))) == ""


texts = st.text(st.characters(), max_size=20)


@given(
    texts,
    texts,
    st.none() | st.booleans(),
    st.lists(st.builds(Finding, texts.filter(bool), st.none() | st.integers(0, 9), texts)),
)
def test_any_row_survives_its_line(case: str, text: str, flag: bool | None, findings: list[Finding]) -> None:
    row = replace(
        ROW, case=case, text=text, valid=flag, accepted=flag, findings=tuple(findings), samples=(0, 2)
    )
    line = json.loads(json.dumps(row_to_json(row)))
    assert (
        problem_with(line) == ""
        and row_from_json(line) == row
        and identity(row_from_json(line)) == identity(row)
    )


@pytest.mark.parametrize(
    ("status", "valid", "accepted", "said"),
    [
        ("ok", True, True, "pass"),
        ("ok", False, False, "pass"),
        ("ok", True, False, "over_constrained"),
        ("ok", False, True, "under_constrained"),
        ("ok", None, True, "unjudged"),
        ("ok", True, None, "unjudged"),
        ("unsupported", True, None, "declined"),
        ("invalid", False, None, "declined"),
        ("crash", True, None, "broken"),
        ("timeout", None, None, "broken"),
        ("oom", True, None, "broken"),
        ("backend_error", True, None, "broken"),
        ("harness_error", True, None, "unjudged"),
        ("skipped", True, None, "unjudged"),
    ],
)
def test_verdicts(status: str, valid: bool | None, accepted: bool | None, said: str) -> None:
    assert verdict(status, valid, accepted) == said


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: list(store.read_cases(folder)),
        lambda folder: rows_owed(folder / "cases.jsonl", False),
        lambda folder: _same_cases(folder, {}),
    ],
    ids=["the cases of a run", "the rows that are owed", "the cases of a run to take over"],
)
def test_a_line_of_cases_is_bounded(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = case_to_line("s", "1", Case("0123456789ab", "a case", Grammar("regex", "a")))
    (tmp_path / "cases.jsonl").write_bytes(line + line.rstrip() + b" " * 1000 + b"\n")
    monkeypatch.setattr(case_line, "LONGEST_CASE", len(line))
    with pytest.raises(BadInput, match=r"cases\.jsonl:2: a line of more than"):
        read(tmp_path)


def test_a_single_case_is_read_no_further_than_a_case_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = case_to_line("s", "1", Case("0123456789ab", "a case", Grammar("regex", "a")))
    (tmp_path / "cases.jsonl").write_bytes(line)
    assert case_line.case_at(str(tmp_path / "cases.jsonl"), 0).name == "a case"
    monkeypatch.setattr(case_line, "LONGEST_CASE", len(line) // 2)
    with pytest.raises(BadInput, match=r"cases\.jsonl: not JSON"):
        case_line.case_at(str(tmp_path / "cases.jsonl"), 0)


def test_a_row_on_another_vocabulary_is_no_row_of_the_run(tmp_path: Path) -> None:
    write_run(tmp_path)
    stored = tmp_path / "rows.jsonl"
    stored.write_text(stored.read_text().replace('"vocabulary":"v"', '"vocabulary":"w"', 1))
    with pytest.raises(
        BadInput, match="a row on w, no vocabulary of this run; the file was changed or damaged"
    ):
        list(read_rows(tmp_path))


def test_both_files_are_closed_where_the_disk_is_full(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"), Writer(tmp_path, INFO) as writer:
        writer.samples = open("/dev/full", "wb")  # noqa: SIM115 - closed by the writer
        writer.samples.write(b"12345678")
    assert writer.samples.closed and writer.rows.closed
    with (
        pytest.raises(OSError, match="No space left"),
        Appender(tmp_path / "lines", tmp_path / "figures", "setup", {}) as appender,
    ):
        appender.figures = open("/dev/full", "wb")  # noqa: SIM115 - closed by the appender
        appender.figures.write(b"12345678")
    assert appender.figures.closed and appender.lines.closed
