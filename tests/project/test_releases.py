"""benchmarks/releases.py: which releases are walked and in which order, and a run of arms of ours on a
made-up corpus, up to its page."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
import releases_page
from places import ROOT
from releases_page import Release, Walked
from scripts import script_of

from harness.cases.suite import find_suite, read_cases
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.outcomes.case_state import CaseState

SCRIPT = ROOT / "benchmarks" / "releases.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_of("releases")


OFFERED = [
    ("0.1.9", "2025-03-01"), ("0.1.10", "2025-04-01"), ("0.1.11", "2025-07-01"), ("0.2.0rc1", "2025-07-20"),
    ("0.2.0", "2025-08-01"), ("0.2.0.post1", "2025-08-09"), ("1.0.0", "2025-09-01"), ("1.0.1", "2025-09-02"),
    ("1.1.0", "2026-01-01"),
]  # fmt: skip


def test_every_minor_release_since_a_day_is_walked_and_the_one_before(script: ModuleType) -> None:
    """The order of the versions is that of numbers, not of text; pre-releases and what a later patch
    supersedes are left out."""
    found = [version for version, _ in script.chosen(reversed(OFFERED), "2025-06-01")]
    assert found == ["0.1.10", "0.1.11", "0.2.0.post1", "1.0.1", "1.1.0"]
    assert [version for version, _ in script.chosen(OFFERED, "2026-06-01")] == ["1.1.0"]


def test_a_release_has_the_day_of_its_first_file(script: ModuleType) -> None:
    files = [
        ("toy-1.0-py3-none-any.whl", "2025-07-02T10:00:00Z"),
        ("toy-1.0.tar.gz", "2025-07-01T10:00:00Z"),
        ("toy-1.0.1-py3-none-any.whl", "2025-06-01T10:00:00Z"),
        ("toy-2.0-py3-none-any.whl", None),
    ]
    page = {
        "versions": ["1.0", "1.0.1", "2.0"],
        "files": [{"filename": name, "upload-time": day} for name, day in files],
    }
    assert script.days(page) == {"1.0": "2025-07-01", "1.0.1": "2025-06-01"}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 25])
def test_every_beginning_is_spread_over_all(script: ModuleType, count: int) -> None:
    order = script.spread(count)
    assert sorted(order) == list(range(count)) and order[:2] == [count - 1, 0][:count]
    for length in range(3, count + 1):
        gaps = [after - before for before, after in pairwise(sorted(order[:length]))]
        assert max(gaps) <= 2 * min(gaps) + 1


def test_the_distributions_take_turns(script: ModuleType) -> None:
    arms = [
        Release(f"{name}=={v}", name, str(v), "")
        for name, count in (("a", 3), ("b", 1))
        for v in range(count)
    ]
    assert [arm.arm for arm in script.in_turn(arms)] == ["a==2", "b==0", "a==0", "a==1"]


def walked(**states: CaseState) -> Walked:
    return Walked(Release("a==1", "a", "1", "2025-07-01"), dict(states), {case: case for case in states})


def test_what_changed_tells_faults_from_refusals_and_deadlines() -> None:
    works, wrong, refused, late = (
        CaseState.WORKS, CaseState.SILENTLY_WRONG, CaseState.REFUSED, CaseState.TOO_SLOW,
    )  # fmt: skip
    before = walked(a=works, b=wrong, c=late, d=works, e=refused, f=works, g=works)
    after = walked(a=wrong, b=works, c=works, d=late, e=works, f=works, g=refused)
    assert releases_page.changes(before, after) == releases_page.Changes(["b"], ["a"], ["e"], ["g"], 2)


def test_the_page_names_its_files_and_has_no_long_lines(synthetic: ModuleType) -> None:
    page = releases_page.readme([walked(a=CaseState.WORKS)], [], {}, synthetic.info())
    assert "`rows.jsonl.xz`" in page and "{" not in page
    assert max(len(line) for line in page.splitlines() if not line.startswith("|")) <= 220


def test_a_schema_without_outputs_is_not_in_the_sample(script: ModuleType, tmp_path: Path) -> None:
    corpus = tmp_path / "corpora" / "maskbench"
    corpus.mkdir(parents=True)
    tests = [{"description": "it", "valid": True, "data": 1}]
    for name, outputs in (("bare", []), ("judged", tests)):
        case = {"description": name, "schema": {"const": 1, "title": name}, "tests": outputs}
        (corpus / f"{name}.json").write_text(json.dumps(case))
    options = argparse.Namespace(out=tmp_path / "out", corpora=tmp_path / "corpora", most=10, take_over=None)
    assert [file.name for file in script.schemas(options).iterdir()] == ["judged.json"]


def test_the_sample_is_that_of_the_folder_that_is_taken_over(
    script: ModuleType, tmp_path: Path, synthetic: ModuleType
) -> None:
    corpus = tmp_path / "corpora" / "maskbench"
    corpus.mkdir(parents=True)
    for number in range(9):
        tests = [{"valid": True, "data": number}]
        case = {"description": f"case {number}", "schema": {"const": number}, "tests": tests}
        (corpus / f"file_{number}.json").write_text(json.dumps(case))
    walked = [case.id for case in read_cases(find_suite(str(corpus / "file_4.json")))]
    synthetic.write_run(
        tmp_path / "published", [[(synthetic.row(case_id=case_id), b"")] for case_id in walked]
    )
    options = argparse.Namespace(
        out=tmp_path / "out", corpora=tmp_path / "corpora", most=3, take_over=tmp_path / "published"
    )
    assert [file.name for file in script.schemas(options).iterdir()] == ["file_4.json"]


def test_arms_are_found_by_version_and_options(synthetic: ModuleType, tmp_path: Path) -> None:
    fields = [
        {"backend_version": "1.2.3"},
        {"backend_version": "1.2.3", "options": "max_whitespace=20"},
        {"backend_version": "1.2.4+inner-7"},
    ]
    rows = [synthetic.row(**each) for each in fields]
    suites = {"first": {"version": "1", "sha256": "cd" * 32, "cases": 1, "instances": 1}}
    arms = synthetic.arms_of(rows)
    arms[2] = replace(arms[2], python="/somewhere/bin/python")
    synthetic.write_run(tmp_path / "run", [[(row, b"")] for row in rows], synthetic.info(arms, suites=suites))
    asked = ["alpha", "alpha:max-whitespace=20", "alpha==1.2.4", "alpha==1.2.5", "alpha==1.2.4:other=1"]
    found = releases_page.read(tmp_path, [Release(arm, "", "", "") for arm in asked])
    assert [one.release.arm for one in found] == asked[:3]


def test_an_arm_without_a_version_of_its_own_is_refused(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arm in ("xgrammar==./x.whl", "xgrammar 1"):
        assert script.main(["--out", str(tmp_path), "--arms", arm]) == BAD_INPUT
        assert arm in (said := capsys.readouterr().err) and said.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_it_is_said_why_no_arm_can_be_had(script: ModuleType) -> None:
    with pytest.raises(BadInput, match="no release can be loaded here; the first says: there is no backend"):
        script.placed([Release("xgramar", "", "", "")], "bytes", {})


def test_an_arm_of_a_run_that_has_begun_is_not_passed_over(
    script: ModuleType, synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is one that an earlier session has noted: with fewer arms the run could not be gone on with."""
    synthetic.write_run(tmp_path / "run", [[(synthetic.row(), b"")]], complete=False)
    notes = tmp_path / "refused.json"
    before = json.dumps({"alpha": "no index", "old==1": "too old"})
    notes.write_text(before)
    tried: list[list[str]] = []

    def placed(arms: list[Release], vocabulary: str, refused: dict[str, str]) -> None:
        tried.append([arm.arm for arm in arms])
        if len(tried) == 1:
            refused["alpha"] = "the index is out of reach"

    asked = []
    monkeypatch.setattr(script, "placed", placed)
    monkeypatch.setattr(script, "run", lambda request, *_: asked.append(request))
    options = argparse.Namespace(out=tmp_path, vocabulary="bytes", jobs=1, argv=(), take_over=None)
    arms = [Release(arm, arm, "", "") for arm in ("alpha", "delta", "old==1")]
    with pytest.raises(BadInput, match=r"alpha is in the run, and cannot be had now \(the index is out"):
        script.walk(options, arms, tmp_path)
    assert notes.read_text() == before
    script.walk(options, arms, tmp_path)
    assert tried == [["alpha", "delta"]] * 2 and [request.backends for request in asked] == ["alpha,delta"]
    assert json.loads(notes.read_text()) == {"old==1": "too old"}


@pytest.mark.parametrize("index", ["https://user:s3cret@127.0.0.1/simple", "s3cret/simple"])
def test_an_index_that_cannot_be_asked_is_one_line_without_its_password(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    index: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PIP_INDEX_URL", index)
    assert script.main(["--out", str(tmp_path)]) == BAD_INPUT
    said = capsys.readouterr().err
    assert (
        "does not tell when xgrammar was released" in said and "s3cret" not in said and said.count("\n") == 1
    )


@pytest.mark.long
def test_arms_are_walked_gone_on_with_and_published(script: ModuleType, tmp_path: Path) -> None:
    """Three schemas, an arm that is right, one that allows everything, and one that cannot be had."""
    corpus = tmp_path / "corpora" / "maskbench"
    corpus.mkdir(parents=True)
    for number in range(5):
        tests = [{"valid": True, "data": number}, {"valid": False, "data": number + 1}]
        case = {"description": f"case {number}", "schema": {"const": number}, "tests": tests}
        (corpus / f"file_{number}.json").write_text(json.dumps(case))
    out = tmp_path / "out"
    asked = [
        "--out",
        str(out),
        "--corpora",
        str(tmp_path / "corpora"),
        "--most",
        "3",
        "--vocabulary",
        "bytes",
    ]
    assert script.main([*asked, "--arms", "reference,unconstrained,xgrammar==0.0.0.1", "--page"]) == BAD_INPUT
    assert script.main(asked) == OK, "the same arms as the first time, one of them refused"
    published = out / "published"
    lines = json.loads((published / "releases.json").read_text())
    assert [(line["arm"], line["works"], line["silently_wrong"]) for line in lines] == [
        ("reference", 3, 0),
        ("unconstrained", 0, 3),
    ]
    page = (published / "README.md").read_text()
    assert "| reference | - | 3 | 0 | 0 |" in page and "- xgrammar==0.0.0.1 (no day): " in page
    assert re.search(r"- \*\*unconstrained\*\*.*silently wrong 3 → 3", page)
    table = list(
        csv.reader(gzip.decompress((published / "states.csv.gz").read_bytes()).decode().splitlines())
    )
    assert table[0] == ["case_id", "case", "reference", "unconstrained"]
    assert [row[2:] for row in table[1:]] == [["works", "silently_wrong"]] * 3
    assert (published / "releases.svg").read_text().count("<svg") == 1
    first = (published / "README.md").read_bytes(), (published / "releases.svg").read_bytes()
    (out / "refused.json").unlink()
    assert script.main([*asked, "--page"]) == INCOMPLETE, "nothing says why the third is not there"
    assert script.main(asked) == INCOMPLETE
    (out / "refused.json").write_text(json.dumps({"xgrammar==0.0.0.1": "no such version"}))
    assert script.main(asked) == OK
    assert (published / "releases.svg").read_bytes() == first[1], "nothing was walked again"
