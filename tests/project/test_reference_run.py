"""benchmarks/reference.py on a made-up corpus: estimated, run, interrupted, gone on with, published."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import reference_about
import reference_estimate
import reference_page
import reference_runs
import reference_walk
from reference_corpora import DRAFTS, arguments, unwrapped

from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.rows.store import read_end, read_info, read_rows
from harness.running.progress import RunProgress

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def whole(reference: ModuleType, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of both parts, complete."""
    out = tmp_path_factory.mktemp("whole")
    for part in ("maskbench", "jsts"):
        assert reference.main(arguments(corpora, out, "--only", part)) == OK
    assert reference.main(arguments(corpora, out, "--page")) == OK
    return out


def test_all_of_it_is_run_and_published(whole: Path) -> None:
    rows = {part: list(read_rows(whole / "runs" / part)) for part in ("maskbench", "jsts")}
    assert len(rows["maskbench"]) == 10 and len(rows["jsts"]) == 5, "a row for every instance"
    assert {row.suite for row in rows["jsts"]} == set(DRAFTS)
    names = {
        str(each.relative_to(whole / "published"))
        for each in (whole / "published").rglob("*")
        if each.is_file()
    }
    each_part = {
        "report.html",
        "tables.md",
        "cases.csv",
        "figures.csv",
        "failing.csv.xz",
        "outcomes.json.xz",
        "rows.jsonl.xz",
    }
    assert names == {"README.md", "SHA256SUMS"} | {f"{part}/{name}" for part in rows for name in each_part}
    readme = (whole / "published" / "README.md").read_text()
    assert [name for name in each_part if f"`{name}`" not in readme] == [], "the README names every file"
    packed = lzma.decompress((whole / "published" / "maskbench" / "rows.jsonl.xz").read_bytes())
    assert packed == (whole / "runs" / "maskbench" / "rows.jsonl").read_bytes()
    failing = lzma.decompress((whole / "published" / "maskbench" / "failing.csv.xz").read_bytes()).decode()
    assert "grammarbench repro DIR/runs/maskbench " in failing and str(whole) not in failing


def test_the_readme_says_what_was_run_under_which_deadlines(whole: Path) -> None:
    said = (whole / "published" / "README.md").read_text()
    assert (
        "MaskBench: 5 cases (maskbench 5), 10 instances; 10 s for a compile and for each walk; 10 rows in"
        in said
    )
    assert "draft4 1), 5 instances; 5 s for a compile" in said
    assert "Quote outcomes, not times" in said and "samples.i64" in said and "**interrupted" not in said
    assert "| unconstrained - bytes | maskbench | 0.0 % | 5 | 5 | 0 | 5 | 0 |" in said, (
        "what is not constrained lets the invalid instances through"
    )
    assert "| unconstrained - bytes | 5 | 0 | 5 | 0 | 0 | 0 |" in said, (
        "walks: half of them pass, half are under-constrained"
    )
    assert "Deadlines in MaskBench: no case met one." in said


def test_what_is_done_is_not_done_again(
    reference: ModuleType, corpora: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (whole / "runs" / "jsts" / "rows.jsonl").read_bytes()
    assert reference.main(arguments(corpora, whole, "--only", "jsts")) == OK
    assert "jsts: done already" in capsys.readouterr().out
    assert (whole / "runs" / "jsts" / "rows.jsonl").read_bytes() == before


def test_an_interrupted_run_is_published_as_such_and_gone_on_with(
    reference: ModuleType, corpora: Path, tmp_path: Path
) -> None:
    assert reference.main(arguments(corpora, tmp_path, "--only", "maskbench")) == OK
    rows = tmp_path / "runs" / "maskbench" / "rows.jsonl"
    lines = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(b"".join(lines[:5]))  # the header, and two cases
    readme = tmp_path / "published" / "README.md"
    made = readme.read_text()
    assert made.startswith(reference_page.MARK)
    readme.write_text("# By hand\n\nFive findings.\n\n" + made.replace("Walks:", "Something else:"))
    assert reference.main(arguments(corpora, tmp_path, "--only", "maskbench", "--page")) == INCOMPLETE
    said = readme.read_text()
    assert "**interrupted" in said and "Something else:" not in said
    assert said.startswith("# By hand\n\nFive findings.\n\n" + reference_page.MARK), (
        "what was written at the top stays"
    )
    assert not (tmp_path / "published" / "maskbench" / "outcomes.json.xz").exists(), (
        "no record of an incomplete run"
    )
    rows.write_bytes(b"".join(lines[:5]) + lines[5][:40])  # and a row cut off
    assert reference.main(arguments(corpora, tmp_path, "--only", "maskbench")) == OK
    end = read_end(tmp_path / "runs" / "maskbench")
    assert end is not None and end.rows == 10 == len(list(read_rows(tmp_path / "runs" / "maskbench")))
    assert rows.read_bytes().startswith(b"".join(lines[:5])), "what was there has stayed"
    assert "(2 sessions)" in (tmp_path / "published" / "README.md").read_text()


def test_verdicts_that_met_a_deadline_are_walked_once_more_and_the_run_stays(
    reference: ModuleType, corpora: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(corpora, tmp_path, "--only", "maskbench")
    assert reference.main([*given, "--again"]) == BAD_INPUT and "not complete" in capsys.readouterr().err
    shutil.copytree(whole / "runs", tmp_path / "runs")
    first, second = tmp_path / "runs" / "maskbench", tmp_path / "runs" / "maskbench-again"
    rows = first / "rows.jsonl"
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    lines[4] |= {
        "status": "timeout",
        "phase": "fill",
        "text": "killed after 10 s",
        "accepted": None,
    }  # the second instance of case 1
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    planted = rows.read_bytes()
    assert reference.main([*given, "--again"]) == OK
    assert "1 cases met a deadline" in capsys.readouterr().out and rows.read_bytes() == planted
    assert [row.case_id for row in read_rows(second)] == [list(read_rows(first))[3].case_id] * 2, (
        "it alone was walked again"
    )
    published = tmp_path / "published"
    said = (published / "README.md").read_text()
    assert "cases that met 10 s: unconstrained 1. Walked once more in " in said
    assert "Of 1 cases of which a verdict met 10 s, 1 were walked once more" in said
    assert "with 60 s. They come to:" in said and "| unconstrained | bytes | 1 | 1 |" in said
    assert lzma.decompress((published / "maskbench" / "rows.jsonl.xz").read_bytes()) == planted
    assert reference.main(["--verify", str(published)]) == OK
    other = tmp_path / "other"
    shutil.copytree(first, other / "runs" / "maskbench")
    given[given.index("--out") + 1] = str(other)
    assert reference.main([*given, "--take-over", str(published), "--again"]) == OK
    assert "1 case taken over" in capsys.readouterr().out, "a published second walk stays"
    of_earlier = (
        f"without the time of the 1 (cases on a backend and a vocabulary) taken over from {published}"
    )
    assert of_earlier in unwrapped(other / "published" / "README.md")
    anew = list(read_rows(other / "runs" / "maskbench-again"))
    assert [(row.case_id, row.status) for row in anew] == [
        (row.case_id, row.status) for row in read_rows(second)
    ]
    (published / "README.md").write_text(said.replace("| bytes | 1 | 1 |", "| bytes | 1 | 0 |"))
    assert reference.main(["--verify", str(published)]) == 1
    assert "another table of deadlines" in capsys.readouterr().out


def test_the_second_deadline_takes_over_the_verdicts_of_other_backends(
    reference: ModuleType, corpora: Path, tmp_path: Path
) -> None:
    """A case that one backend was too slow in is in the second run with all of them, each judged; what a
    check had found does not come along."""
    given = arguments(corpora, tmp_path, "--only", "maskbench", "--vocabularies", "bytes,probe")
    given[given.index("--effort") + 1] = "1"
    assert reference.main(given) == OK
    rows = tmp_path / "runs" / "maskbench" / "rows.jsonl"
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    late = next(line for line in lines if line.get("mode") == "replay" and line["vocabulary"] == "probe")
    late |= {"status": "timeout", "phase": "compile", "accepted": None}
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert reference.main([*given, "--again"]) == OK
    found = list(read_rows(tmp_path / "runs" / "maskbench-again"))
    assert {row.case_id for row in found} == {late["case_id"]}
    assert {(row.vocabulary, row.status, row.mode) for row in found} == {
        ("bytes", "ok", "replay"),
        ("probe", "ok", "replay"),
    }


def test_other_options_do_not_mix_into_a_run(
    reference: ModuleType, corpora: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    rows = tmp_path / "runs" / "jsts" / "rows.jsonl"
    rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:-1]))
    assert reference.main(arguments(corpora, tmp_path, "--only", "jsts", "--timeout", "7")) == BAD_INPUT
    assert "was started with other options (timeout_s 5.0; now 7.0)" in capsys.readouterr().err


def test_the_estimate_is_told_before_anything_is_run(
    reference: ModuleType, corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(corpora, tmp_path, "--only", "maskbench", "--estimate")
    assert reference.main([*given, "--sample", "3"]) == OK
    assert (
        "maskbench  unconstrained" in (said := capsys.readouterr().out)
        and "for 5 cases" in said
        and ("a sample of 3 cases") in said
    )
    assert not (tmp_path / "runs").exists()
    (line,) = (tmp_path / "estimate.jsonl").read_text().splitlines()
    assert json.loads(line)["sampled"] == 3


def test_a_clock_counts_from_the_first_case_on() -> None:
    times = iter([100.0, 104.0, 110.0])
    clock = reference_estimate.Clock(lambda: next(times))
    assert clock.seconds_per_case() == 0
    for done in (0, 1, 1, 3, 6):  # loading, and a report without news, are not in it
        clock(RunProgress(done, 6, 0))
    assert clock.seconds_per_case() == pytest.approx(2.0)


def test_a_sample_is_the_same_wherever_the_files_lie(
    reference: ModuleType, corpora: Path, tmp_path: Path
) -> None:
    for number, file in enumerate(sorted((corpora / "maskbench").iterdir(), reverse=True)):
        (tmp_path / f"{number}.json").write_bytes(file.read_bytes())
    here, there = reference.strata_of([str(corpora / "maskbench")]), reference.strata_of([str(tmp_path)])
    assert here == there and len(here) == 5
    chosen = reference.stratified(here, 3)
    assert chosen == reference.stratified(there, 3) and len(set(chosen)) == 3


def test_the_estimate_of_a_share_walks_whole_samples_and_tells_of_the_share(
    reference: ModuleType, corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A share of a sample could be empty."""
    given = ["--out", str(tmp_path / "out"), "--corpora", str(corpora), "--only", "maskbench", "--estimate"]
    given += ["--backends", "unconstrained", "--vocabularies", "bytes", "--jobs", "1", "--effort", "0"]
    assert reference.main([*given, "--sample", "2", "--shard", "5/5"]) == OK
    assert "for 1 cases" in capsys.readouterr().out
    assert reference.main([*given, "--sample", "2", "--most", "4"]) == OK
    assert "for 4 cases" in capsys.readouterr().out


def test_corpora_are_found_as_fetched_too_and_asked_for_where_they_are_not(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"grammarbench fetch maskbench --out '.*/my corpora'"):
        reference_walk.suites_of("maskbench", tmp_path / "my corpora")
    (tmp_path / "maskbench" / "maskbench" / "data").mkdir(parents=True)
    assert reference_walk.suites_of("maskbench", tmp_path) == [str(tmp_path / "maskbench/maskbench/data")]
    (tmp_path / "json-schema-test-suite" / "tests" / "draft2020-12").mkdir(parents=True)
    with pytest.raises(BadInput, match=r"draft\d.*: no such folder"):
        reference_walk.suites_of("jsts", tmp_path)


def test_what_is_large_when_packed_is_left_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"x" * 10_000)
    assert (
        reference_page.pack(path) == []
        and lzma.decompress((tmp_path / "rows.jsonl.xz").read_bytes()) == b"x" * 10_000
    )
    monkeypatch.setattr(reference_page, "MOST_BYTES", 10)
    path.write_bytes(b"x" * 10_000)
    (said,) = reference_page.pack(path)
    assert f"{tmp_path.name}/rows.jsonl" in said and not path.exists()
    assert reference_page.pack(tmp_path / "nothing") == []


# ---------------------------------------------------------------------------------- shares, samples and proof


def test_shares_are_put_together_once_none_is_missing(
    reference: ModuleType, corpora: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(corpora, tmp_path, "--only", "maskbench")
    assert reference.main([*given, "--shard", "1/2"]) == OK, "its own share is complete"
    said = capsys.readouterr().out
    assert f"the share 1/2 lies in {tmp_path}/runs/maskbench.1-of-2" in said and "missing: 2/2" in said
    assert reference.main([*given, "--page"]) == BAD_INPUT
    assert "of its shares are missing: 2/2" in capsys.readouterr().err
    assert reference.main([*given, "--shard", "2/2"]) == OK
    keys = [(row.case_id, row.instance, row.accepted) for row in read_rows(tmp_path / "runs" / "maskbench")]
    assert keys == [
        (row.case_id, row.instance, row.accepted) for row in read_rows(whole / "runs" / "maskbench")
    ]
    assert read_info(tmp_path / "runs" / "maskbench").argv == tuple(given), "the command of the whole"


def test_the_readme_adds_up_what_shares_took_and_knows_what_it_does_not(
    reference: ModuleType, corpora: Path, tmp_path: Path
) -> None:
    given = arguments(corpora, tmp_path, "--only", "maskbench")
    for share in ("1/2", "2/2"):
        assert reference.main([*given, "--shard", share]) == OK
    sessions, readme = tmp_path / "sessions.jsonl", tmp_path / "published" / "README.md"
    lines = [json.loads(line) | {"seconds": 100} for line in sessions.read_text().splitlines()]
    sessions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert reference.main([*given, "--page"]) == OK
    assert "10 rows in 3 min (2 sessions of 2 shares)." in readme.read_text()
    sessions.write_text(json.dumps(lines[0]) + "\n")
    assert reference.main([*given, "--page"]) == OK
    assert "10 rows in 2 min, without maskbench.2-of-2, whose time is not stored here." in readme.read_text()
    sessions.unlink()
    assert reference.main([*given, "--page"]) == OK
    assert "10 rows in a time that is not stored here." in readme.read_text()


def test_machines_of_shares_that_differ_are_each_named_once() -> None:
    sizes = "16000000000 | 8000000000 | 16000000001"
    machine = {"cpu_model_name": "A | B", "cpus_usable": "2", "memory_bytes": sizes}
    said = reference_about.machine_text(machine | {"platform": "Linux", "python": "3.11.7"})
    assert said == "A and B, 2 processors, 16 and 8 GB, Linux, Python 3.11.7."


@pytest.mark.parametrize(
    ("loads", "said"), [("0.88", "0.88"), ("9.1 | 0.88 | 10.0", "0.88 to 10.0"), ("", "unknown")]
)
def test_the_loads_at_the_beginnings_are_a_range(synthetic: ModuleType, loads: str, said: str) -> None:
    info = synthetic.info(machine={"load_avg_1min": loads})
    assert reference_about.begun(info).endswith(f" with a load of {said}")


def test_each_run_has_its_own_command_beside_its_rows(
    reference: ModuleType, corpora: Path, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    assert reference.main(["--out", str(tmp_path), "--page"]) == OK
    said = (tmp_path / "published" / "README.md").read_text()
    for part, name in reference_runs.PARTS.items():
        if part != "ours":
            command = " ".join(arguments(corpora, whole, "--only", part))
            assert f"{name}:\n\n    python benchmarks/reference.py {command}\n" in said


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--most", "-3"),
        ("--most", "0"),
        ("--times", "0"),
        ("--jobs", "0"),
        ("--timeout", "0"),
        ("--timeout", "-1"),
        ("--timeout", "nan"),
        ("--effort", "-1"),
        ("--sample", "-1"),
    ],
)
def test_a_number_that_cannot_be_is_refused(
    reference: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        reference.main(["--out", str(tmp_path), option, value])
    assert ended.value.code == BAD_INPUT
    assert f"argument {option}: invalid" in capsys.readouterr().err and not any(tmp_path.iterdir())


def test_masks_are_compared_where_there_is_a_reference(
    reference: ModuleType, corpora: Path, tmp_path: Path
) -> None:
    assert reference.main(arguments(corpora, tmp_path, "--only", "maskbench", "--effort", "1")) == OK
    checked = [row for row in read_rows(tmp_path / "runs" / "maskbench") if row.mode == "checks"]
    assert len(checked) == 5 and {tuple(row.checks) for row in checked} == {reference_walk.MASKS}
    assert all(row.findings for row in checked), "what is not constrained allows tokens without a document"


def test_a_schema_that_is_none_is_left_out_and_named(
    reference: ModuleType, corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "corpora"
    shutil.copytree(corpora, mine)
    bad = {
        "description": "bad",
        "schema": {"enum": [1, 1], "$schema": "http://json-schema.org/draft-04/schema#"},
        "meta": {"raw_features": []},
    }
    (mine / "maskbench" / "none.json").write_text(json.dumps(bad))
    assert reference.main(arguments(mine, tmp_path / "out", "--only", "maskbench")) == OK
    assert "left out, being no schema by its own draft: none" in capsys.readouterr().out
    readme = (tmp_path / "out" / "published" / "README.md").read_text()
    assert "all 6 cases but none, whose schemas are none by their own draft" in readme
    assert "a sample" not in (tmp_path / "out" / "published" / "maskbench" / "tables.md").read_text()
