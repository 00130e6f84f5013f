"""A file that is named as an answer replaces an older answer of ours and an empty file, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import failing
import pytest
import synthetic
from synthetic import ARMS, info, row, write_run

from harness.cases.case_line import CASES_FILE
from harness.cli.main import main
from harness.errors import BAD_INPUT, OK
from harness.outcomes.expected import read_record
from harness.report.page.page import JSON, SUMMARY, write_report
from harness.rows.folder import ROWS
from harness.running.leftovers import OF_A_RUN
from harness.whole_files import refuse_unwritable

CASE = '{"regex": "a", "tests": [{"text": "a", "valid": true}]}\n'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", [[(row(), b"")]], info(ARMS[:1]))


@pytest.fixture
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """The words of a command that walks one case into the folder `walked`."""
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text(CASE)
    words = ["run", "mine.jsonl", "--backends", "unconstrained", "--vocabularies", "bytes", "--effort", "0"]
    return [*words, "--out", "walked"]


def refused(words: Sequence[str], path: Path, capsys: pytest.CaptureFixture[str], said: str = "") -> None:
    """The command says in one line why it does not replace the file, and writes nothing."""
    folder = path.parent
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    capsys.readouterr()
    assert main(words) == BAD_INPUT
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1, told
    assert told.err.startswith(f"grammarbench: {path}") and (said or "would be overwritten") in told.err
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_a_record_replaces_a_record_only(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = run.parent / "expected.json"
    words = ["compare", str(run), "--record"]
    record.touch()
    assert main([*words, str(record)]) == OK
    kept = json.loads(record.read_text())
    record.write_text(json.dumps(kept, indent=2, sort_keys=True))  # as hooks of a repository leave it
    assert main([*words, str(record)]) == OK
    record.write_text(json.dumps(kept | {"format": 1}))  # which nothing reads any more
    assert main([*words, str(record)]) == OK and read_record(record).arms
    for name in (*OF_A_RUN, "growth.jsonl"):
        refused([*words, str(run / name)], run / name, capsys, "a run's own file has this name")
    for name, content in (("c00.json", CASE), ("pyproject.toml", "[project]\n"), ("other.json", '{"a": 1}')):
        (run.parent / name).write_text(content)
        refused([*words, str(run.parent / name)], run.parent / name, capsys)


def test_a_record_that_cannot_be_is_refused_before_the_walk(
    walk: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    for path, said in (
        ("mine.jsonl", "is no record of outcomes"),
        ("walked/rows.jsonl", "a run's own file has this name"),
        ("folder", "it is a folder"),
        ("mine.jsonl/known.json", "is no folder"),
    ):
        refused([*walk, "--record", path], Path(path), capsys, said)
    assert not Path("walked").exists()
    assert main([*walk, "--record", "new/known.json"]) == OK and read_record(Path("new/known.json")).arms


def test_permission_is_asked_of_the_folder_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(os, "access", lambda path, _: asked.append(path))
    with pytest.raises(Exception, match="permission denied; give another --record"):
        refuse_unwritable(tmp_path / "a" / "b.json", "--record")
    assert asked == [tmp_path]


def test_a_record_that_fails_after_the_walk_loses_nothing(
    walk: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.whole_files.write_whole", full)
    assert main([*walk, "--record", "known.json", "--json"]) == BAD_INPUT
    told = capsys.readouterr()
    assert json.loads(told.out)["folder"] == "walked"
    assert "No space left" in told.err and "`grammarbench compare walked --record FILE`" in told.err


def test_a_stream_that_is_redirected_to_a_file_is_written_to(run: Path) -> None:
    with (run.parent / "out.txt").open("w+") as out:
        print("what stands there already", file=out, flush=True)
        words = ["compare", str(run), "--record", "/dev/stdout"]
        done = subprocess.run([sys.executable, "-m", "harness", *words], stdout=out, check=False)
    assert done.returncode == OK and '"arms"' in (run.parent / "out.txt").read_text()


def test_a_comparison_replaces_a_page_only(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_run(run.parent / "other", [[(row(), b"")]], info(ARMS[:1]))
    words = ["compare", str(run), str(other), "--html"]
    page = run.parent / "page.html"
    page.touch()
    assert main([*words, str(page)]) == OK == main([*words, str(page)])
    page.write_text("<!doctype html>\n<title>Mine</title>\n")
    refused([*words, str(page)], page, capsys)
    refused([*words, str(run / ROWS)], run / ROWS, capsys, "a run's own file has this name")
    case = run.parent / "c01.json"
    case.write_text(CASE)
    refused([*words, str(case)], case, capsys)


@pytest.mark.usefixtures("importable_miniatures")
def test_a_script_replaces_a_script_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [failing.row(0, failing.OUTLINES, 0, accepted=False, stopped_at=6)]
    cases = [("mine", each) for each in failing.CASES]
    run = synthetic.write_run(
        tmp_path / "run", [[(each, b"")] for each in rows], info((failing.OUTLINES,)), cases
    )
    words = ["repro", str(run), "star", "--backends", "outlines-core", "--script"]
    script = tmp_path / "fault.py"
    script.touch()
    assert main([*words, str(script)]) == OK
    before = script.read_text()
    assert before and main([*words, str(script)]) == OK and script.read_text() == before
    script.write_text(before.split("\n", 1)[1])  # of a library whose version is not known
    assert main([*words, str(script)]) == OK
    refused([*words, str(run / CASES_FILE)], run / CASES_FILE, capsys, "a run's own file has this name")
    script.write_text("import mine\n")
    refused([*words, str(script)], script, capsys)


def test_a_report_replaces_its_own_files_only(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run.parent / "out"
    words = ["report", str(run), "--format", "html,json,junit,summary,annotations,csv,markdown,bencher"]
    words += ["--out", str(out)]
    out.mkdir()
    (out / "summary.md").touch()
    assert main(words) == OK == main(words)
    monkeypatch.setattr("harness.report.page.inputs.read_inputs", lambda *_: pytest.fail("it went on"))
    for name in ("report.html", "report.json", "summary.md", "cases.csv", "junit.xml", "tables.md"):
        before = (out / name).read_bytes()
        (out / name).write_text("mine\n")
        refused(words, out / name, capsys)
        if name in ("report.html", JSON, SUMMARY):
            refused(["report", str(run), "--out", str(out)], out / name, capsys)
        (out / name).write_bytes(before)
    page = run.parent / "page.html"
    page.write_text("<title>Mine</title>")
    refused(["report", str(run), "--out", str(page)], page, capsys)


def test_a_page_leaves_scripts_of_others_beside_it(run: Path) -> None:
    assets = run.parent / "out" / "assets"
    assets.mkdir(parents=True)
    (assets / "cases-mine.js").write_text("mine()")
    (assets / "cases-9.js").write_text('grammarbench("cases-9", "");\n')
    write_report([run], assets.parent)
    assert [path.name for path in assets.iterdir()] == ["cases-mine.js"]
    (assets.parent / "report.html").write_text("mine")
    with pytest.raises(Exception, match="would be overwritten"):
        write_report([run], assets.parent)


def test_a_site_replaces_a_site_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(write_run(tmp_path / "run", [[(row(), b"")]], info(ARMS[:1])))
    past, site = tmp_path / "past", tmp_path / "site"
    assert main(["history", str(past), "--add", run]) == OK
    words = ["report", "--history", str(past), "--out", str(site)]
    assert main(words) == OK == main(words)
    (site / "index.html").write_text("<title>Mine</title>")
    refused(words, site / "index.html", capsys)


def test_growth_replaces_its_own_files_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    words = ["measure", "growth", "enum", "--backends", "unconstrained", "--out", str(out)]
    for name in ("growth.html", "growth.csv"):
        (out / name).write_text("mine\n")
        refused(words, out / name, capsys)
        (out / name).unlink()
    (out / "growth.csv").touch()
    assert main([*words, "--most", "2", "--forks", "1"]) == OK
    show = ["measure", "growth", "--show", str(out)]
    assert main(show) == OK == main([*words, "--most", "2", "--forks", "1", "--resume"])
    (out / "growth.csv").write_text("mine\n")
    refused(show, out / "growth.csv", capsys)
    refused([*words, "--resume"], out / "growth.csv", capsys)
