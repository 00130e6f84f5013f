"""Shards of a run are shares of it, say so, and put together they are the run that one machine makes."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main, parser
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.rows.row import Row, untimed
from harness.rows.store import read_cases, read_end, read_info, read_rows, read_samples
from harness.running.merge import merge
from harness.running.session import Request, run
from harness.running.shard import Shard, parse, share

CASES = [
    {
        "description": f"letters {number}",
        "regex": f"a{{{number}}}b*",
        "tests": [{"text": "a" * number + "b", "valid": True}, {"text": "b" * (number + 1), "valid": False}],
    }
    for number in range(1, 11)
]
KEYS = [("suite", f"{number:012x}") for number in range(100)]


def walk(
    folder: Path,
    out: str,
    shard: str = "",
    resume: bool = False,
    suite: str = "",
    backends: str = "reference,unconstrained",
) -> Path:
    request = Request(
        suites=(suite or str(folder / "letters.json"),),
        backends=backends,
        vocabularies=("bytes",),
        profile="quick",
        out=folder / out,
        resume=resume,
        jobs=1,
        timeout_s=30.0,
        memory_gb=2.0,
        effort=0,
        spellings=False,
        argv=("grammarbench", "run"),
        shard=parse(shard) if shard else None,
    )
    return run(request, lambda _: None, lambda _: None).folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole run and with its three shards, by the same command."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "letters.json").write_text(json.dumps(CASES))
    walk(folder, "whole")
    for number in (1, 2, 3):
        walk(folder, f"shard{number}", f"{number}/3")
    return folder


@pytest.fixture
def shards(made: Path, tmp_path: Path) -> list[Path]:
    """Copies of the three shards, to be spoiled."""
    return [
        Path(shutil.copytree(made / f"shard{number}", tmp_path / f"shard{number}")) for number in (1, 2, 3)
    ]


def seen(rows: list[Row]) -> list[Row]:
    return [untimed(row) for row in rows]


def edit(folder: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change one line of `rows.jsonl`."""
    path = folder / "rows.jsonl"
    lines = path.read_text().splitlines()
    value = json.loads(lines[number])
    change(value)
    lines[number] = json.dumps(value)
    path.write_text("\n".join(lines) + "\n")


def cut(folder: Path, lines: int, torn: str = "") -> None:
    """Leave so many lines, and the beginning of another."""
    path = folder / "rows.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]) + torn)


# --------------------------------------------------------------------------------------------------- shares


@pytest.mark.parametrize("of", [1, 2, 3, 7, 100])
def test_shares_are_equal_disjoint_and_together_the_whole(of: int) -> None:
    shares = [share(KEYS, Shard(number, of)) for number in range(1, of + 1)]
    assert sorted(place for each in shares for place in each) == list(range(100))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert all(each == sorted(each) for each in shares)


def test_a_case_stays_in_its_share_wherever_it_stands_in_the_suite() -> None:
    turned = KEYS[::-1]
    for number in (1, 2, 3, 4):
        assert {KEYS[place] for place in share(KEYS, Shard(number, 4))} == {
            turned[place] for place in share(turned, Shard(number, 4))
        }


def test_neighbours_are_spread() -> None:
    """Cases that were made together take equally long; a share of neighbours would be the slow one."""
    assert all(sum(place < 50 for place in share(KEYS, Shard(number, 2))) < 40 for number in (1, 2))


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "1", "1/0", "-1/3", "1/3/5", "a/b", "", " 1/3", "01/3", "1/" + "9" * 5000]
)
def test_what_is_no_shard_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        parser().parse_args(["run", "--backends", "reference", f"--shard={text}"])
    assert refused.value.code == BAD_INPUT and "share, as 2/4" in capsys.readouterr().err


def test_more_shards_than_cases_are_refused(made: Path) -> None:
    with pytest.raises(BadInput, match="shard 11/11 is empty: there are 10 cases"):
        walk(made, "empty", "11/11")


def test_records_are_of_whole_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = ["run", "--backends", "reference", "--shard", "1/2", "--out", str(tmp_path / "x")]
    assert main([*shard, "--record", str(tmp_path / "r")]) == BAD_INPUT
    assert "merge the shards" in capsys.readouterr().err and not (tmp_path / "x").exists()


# ----------------------------------------------------------------------------------------------- what is said


def test_a_shard_says_that_it_is_one(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_info(made / "shard2").shard == "2/3" and read_info(made / "whole").shard == ""
    for arguments in (["table"], ["report", "--format", "json", "--out", str(tmp_path / "export")]):
        for run_of, is_said in (("shard2", True), ("whole", False)):
            assert main([arguments[0], str(made / run_of), *arguments[1:]]) == OK
            assert ("shard 2/3 of a run" in capsys.readouterr().err) == is_said
    assert main(["report", str(made / "shard2"), "--out", str(tmp_path / "page")]) == OK
    page = (tmp_path / "page" / "report.html").read_text()
    assert (
        "shard 2/3 of a run" in capsys.readouterr().err
        and "(shard 2/3)" in page
        and "shard 2/3 of a run" in page
    )
    assert main(["table", str(made / "shard2"), "summary"]) == OK
    assert "shard 2/3 of a run" in capsys.readouterr().out
    assert main(["table", "--json", str(made / "shard2"), "summary"]) == OK
    assert json.loads(capsys.readouterr().out)["shard"] == "2/3"


def test_a_shard_is_not_taken_for_the_whole(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard, whole = str(made / "shard1"), str(made / "whole")
    record = str(tmp_path / "r")
    for arguments in (
        ["compare", whole, shard],
        ["compare", shard, "--record", record],
        ["history", str(tmp_path), "--add", shard],
    ):
        assert main(arguments) == BAD_INPUT
        assert "put the shards together first" in capsys.readouterr().err
    assert main(["compare", whole, "--record", record]) == OK
    assert main(["compare", record, shard, "--gate"]) == OK, (
        "each share can be held against the record of the whole"
    )


# --------------------------------------------------------------------------------------------------- merge


def test_merged_shards_are_the_run_of_one_machine(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [made / f"shard{number}" for number in (3, 1, 2)]
    assert main(["merge", str(tmp_path / "out"), *map(str, folders)]) == OK
    assert "40 rows of 3 runs: 40 ok" in capsys.readouterr().out
    merged, whole = list(read_rows(tmp_path / "out")), list(read_rows(made / "whole"))
    assert seen(merged) == seen(whole) and len(merged) == 40
    assert (tmp_path / "out" / "cases.jsonl").read_bytes() == (made / "whole" / "cases.jsonl").read_bytes()
    end, info, one = read_end(tmp_path / "out"), read_info(tmp_path / "out"), read_info(made / "whole")
    assert end is not None and end.rows == 40 and info.shard == ""
    assert (info.suites, info.arms, info.vocabularies) == (one.suites, one.arms, one.vocabularies)
    # Each row has its own samples, wherever they now stand.
    into = read_samples(tmp_path / "out")
    moved = {(row.backend, row.case_id, row.instance): row for row in merged}
    for folder in folders:
        samples = read_samples(folder)
        for row in read_rows(folder):
            there = moved[row.backend, row.case_id, row.instance]
            assert row.samples is not None and there.samples is not None
            mine, theirs = (
                samples[row.samples[0] :][: row.samples[1]],
                into[there.samples[0] :][: there.samples[1]],
            )
            assert mine.tolist() == theirs.tolist() and len(mine)
            assert replace(row, samples=None) == replace(there, samples=None), "times too are kept"
    assert len(into) == sum(len(read_samples(folder)) for folder in folders)


DIGITS = [
    {
        "description": name,
        "regex": r"\d" + more,
        "tests": [{"text": "٣", "valid": True}, {"text": "x", "valid": False}],
    }
    for name, more in (("digit", ""), ("digits", "+"), ("few digits", "{1,3}"), ("perhaps digits", "*"))
]


@pytest.mark.parametrize("suite", ["digits.json", pytest.param("regex", marks=pytest.mark.long)])
def test_shards_of_cases_that_are_read_otherwise_are_merged(tmp_path: Path, suite: str) -> None:
    """Other dialects read these cases otherwise; that stands in cases.jsonl, and is not in the digest."""
    (tmp_path / "digits.json").write_text(json.dumps(DIGITS))
    named = str(tmp_path / suite) if suite.endswith(".json") else suite
    folders = [walk(tmp_path, f"shard{n}", f"{n}/2", suite=named, backends="unconstrained") for n in (1, 2)]
    assert any(instance.contrary for _, _, case in read_cases(folders[0]) for instance in case.instances)
    assert merge(tmp_path / "out", folders, ()).missing == 0


def test_a_backend_that_is_named_twice_is_refused(shards: list[Path], tmp_path: Path) -> None:
    for folder in shards:
        edit(folder, 0, lambda line: line["arms"].append(line["arms"][0]))
    with pytest.raises(BadInput, match=r"rows\.jsonl names one backend twice"):
        merge(tmp_path / "out", shards, ())


def test_a_share_of_too_many_digits_is_told_in_one_line(shards: list[Path], tmp_path: Path) -> None:
    edit(shards[0], 0, lambda line: line.update(shard="1/" + "9" * 5000))
    with pytest.raises(BadInput, match="not a line of a run: shard: ") as refused:
        merge(tmp_path / "out", shards[:1], ())
    assert len(str(refused.value)) < 500


def test_a_missing_shard_is_told_and_the_run_can_be_completed(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["merge", str(out), str(made / "shard1"), str(made / "shard3")]) == INCOMPLETE
    said = capsys.readouterr().out
    assert "INCOMPLETE: 6 cases" in said and "missing: shard 2/3" in said
    assert read_end(out) is None
    shutil.copy(made / "letters.json", tmp_path)
    walk(tmp_path, "out", resume=True)
    assert read_end(out) is not None
    both = [sorted(seen(list(read_rows(each))), key=str) for each in (out, made / "whole")]
    assert both[0] == both[1]


@pytest.mark.parametrize("torn", ["", '{"kind":"row","back'])
def test_a_shard_that_was_killed_gives_its_whole_cases(shards: list[Path], tmp_path: Path, torn: str) -> None:
    cut(shards[1], 4, torn)  # the header, one case of two rows, and half of another
    merged = merge(tmp_path / "out", shards, ())
    assert merged.missing == 5 and merged.unfinished == (shards[1],) and merged.missing_shards == ()
    assert sum(merged.statuses.values()) == 40 - 10 and read_end(tmp_path / "out") is None


def test_machines_are_told_side_by_side(shards: list[Path], tmp_path: Path) -> None:
    edit(shards[1], 0, lambda line: line["machine"].update(cpu_model_name="another", gpu={"name": "x"}))
    merge(tmp_path / "out", shards, ())
    was, is_now = read_info(shards[0]).machine, read_info(tmp_path / "out").machine
    assert (
        is_now["cpu_model_name"] == f"{was.get('cpu_model_name', '')} | another"
        and is_now["python"] == was["python"]
    )


def test_the_whole_began_with_its_first_part_and_tells_of_the_most_jobs(
    shards: list[Path], tmp_path: Path
) -> None:
    edit(shards[1], 0, lambda line: line.update(started="2001-01-01T00:00:00Z", jobs=7))
    cut(shards[2], 1)
    merged = merge(tmp_path / "out", shards, ("grammarbench", "merge"))
    info = read_info(tmp_path / "out")
    assert (info.started, info.jobs, info.argv) == ("2001-01-01T00:00:00Z", 7, ("grammarbench", "merge"))
    assert info.run not in {read_info(shard).run for shard in shards}
    assert merged.runs == 3 and merged.unfinished == (shards[2],)
    assert merged.missing == 6 and merged.missing_shards == (), "it is there, and has no rows"


def test_rows_that_two_runs_hold_must_agree(made: Path, shards: list[Path], tmp_path: Path) -> None:
    merged = merge(tmp_path / "out", [*shards, made / "whole"], ())
    assert merged.missing == 0 and sum(merged.statuses.values()) == 40
    edit(shards[2], 2, lambda line: line.update(wall_ns=1, peak_rss_bytes=2))
    assert merge(tmp_path / "slower", [*shards, made / "whole"], ()).missing == 0
    edit(shards[2], 2, lambda line: line.update(accepted=not line["accepted"]))
    with pytest.raises(BadInput, match=r"both walked reference .* and it came out differently"):
        merge(tmp_path / "other", [*shards, made / "whole"], ())
    assert not (tmp_path / "other").exists()


SPOILT: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "harness": (lambda line: line.update(harness="0.0.1"), "there harness .*; here 0.0.1"),
    "version": (lambda line: line["arms"][0].update(version="9"), "arms .*reference 9"),
    "adapter": (
        lambda line: line["arms"][0]["dialects"].append("other"),
        "dialects of reference.* without other; here with other.*made with the same adapters",
    ),
    "options": (lambda line: line.update(timeout_s=31.0), "timeout_s 30.0; here 31.0"),
    "effort": (lambda line: line.update(effort=2), "effort 0; here 2"),
    "plan": (lambda line: line["suites"]["letters"].update(sha256="0" * 64), "there suites"),
    "vocabulary": (lambda line: line["vocabularies"]["bytes"].update(sha256="0" * 64), "there vocabularies"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_runs_that_do_not_belong_together_are_refused(shards: list[Path], tmp_path: Path, name: str) -> None:
    change, said = SPOILT[name]
    edit(shards[2], 0, change)
    with pytest.raises(BadInput, match=f"shard3 does not belong to .*shard1.*{said}"):
        merge(tmp_path / "out", shards, ())
    assert not (tmp_path / "out").exists()


def _append(folder: Path, number: int) -> None:
    path = folder / "rows.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:-1], *lines[number : number + 2], lines[-1]]))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no cases": (lambda folder: (folder / "cases.jsonl").unlink(), "cases.jsonl: cannot be read"),
    "other cases": (
        lambda folder: (folder / "cases.jsonl").write_bytes(b"{}\n"),
        "holds other cases than|a line that is no case",
    ),
    "no rows": (lambda folder: (folder / "rows.jsonl").unlink(), "no run here"),
    "not rows": (lambda folder: (folder / "rows.jsonl").write_text("[]\n"), "not a line of a run"),
    "a stranger's rows": (
        lambda folder: edit(folder, 1, lambda line: line.update(suite="x")),
        "which its run did not plan",
    ),
    "a row too few": (
        lambda folder: edit(folder, 1, lambda line: line.update(case_id="0" * 12)),
        "did not plan",
    ),
    "no samples": (lambda folder: (folder / "samples.i64").unlink(), "no samples.i64"),
    "rows twice": (lambda folder: _append(folder, 1), "too many or too few rows"),
    "samples": (
        lambda folder: edit(folder, 1, lambda line: line.update(samples=[10**15, 4])),
        "samples.i64: shorter",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("place", [0, 1])
def test_damage_is_told_in_one_line(shards: list[Path], tmp_path: Path, name: str, place: int) -> None:
    change, said = DAMAGE[name]
    change(shards[place])
    with pytest.raises(BadInput, match=said):
        merge(tmp_path / "out", shards, ())


def test_a_changed_case_is_told(shards: list[Path], tmp_path: Path) -> None:
    """The same in every shard, but not what the header tells of."""
    for folder in shards:
        path = folder / "cases.jsonl"
        path.write_text(path.read_text().replace("a{1}b*", "a{1}c*"))
    with pytest.raises(BadInput, match="not what its run was planned with"):
        merge(tmp_path / "out", shards, ())


def test_a_folder_that_holds_a_run_is_left_alone(shards: list[Path]) -> None:
    with pytest.raises(BadInput, match="holds a run already"):
        merge(shards[0], shards, ())


def test_a_merge_that_found_no_room_can_be_repeated(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(_: Path, to: Path) -> None:
        to.write_bytes(b'{"suite"')
        raise OSError(errno.ENOSPC, "No space left on device")

    words = ["merge", *map(str, [tmp_path / "whole", *shards])]
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", torn)
        assert main(words) == 2
    assert main(words) == 0
