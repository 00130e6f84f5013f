"""benchmarks/reference.py walks a sample, which later becomes a larger one or the whole."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import reference_walk
from reference_corpora import arguments, unwrapped
from stratified import stratified

from harness.errors import OK
from harness.rows.row import Row
from harness.rows.store import read_rows

pytestmark = pytest.mark.long

MASKBENCH = ("--only", "maskbench")


@pytest.fixture(scope="module")
def sample(reference: ModuleType, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two of the five schemas, and what is published of it."""
    out = tmp_path_factory.mktemp("sample")
    assert reference.main(arguments(corpora, out, *MASKBENCH, "--most", "2")) == OK
    return out


def test_a_stratified_sample_has_its_share_of_every_construct_and_size() -> None:
    strata = {
        f"case {number}": (("rare", "common") if number % 10 == 0 else ("common",), number)
        for number in range(1000)
    }
    chosen = stratified(strata, 100)
    assert len(set(chosen)) == 100 and chosen == stratified(strata, 100)
    rare = sum("rare" in strata[case][0] for case in chosen)
    small = sum(strata[case][1] < 500 for case in chosen)
    assert rare == 10 and 49 <= small <= 51
    assert stratified(strata, 5000) == tuple(sorted(strata))


def test_a_sample_says_of_how_many_it_is_one(sample: Path) -> None:
    assert (
        "MaskBench: a stratified sample of 2 of 5 cases" in (sample / "published" / "README.md").read_text()
    )


def test_the_conformance_of_a_sample_has_its_interval(
    reference: ModuleType, corpora: Path, sample: Path, tmp_path: Path
) -> None:
    for name in ("README.md", "maskbench/tables.md"):
        assert "| maskbench | 0.0 % (0.0 to 76.8) | 2 |" in (sample / "published" / name).read_text()
    assert reference.main(arguments(corpora, tmp_path, *MASKBENCH)) == OK
    said = (tmp_path / "published" / "README.md").read_text()
    assert "| maskbench | 0.0 % | 5 |" in said, "of the whole there is none"


def test_a_published_sample_becomes_the_whole(
    reference: ModuleType, corpora: Path, sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert reference.main(arguments(corpora, whole, *MASKBENCH)) == OK
    assert "taken over" not in capsys.readouterr().out
    assert reference.main(arguments(corpora, out, *MASKBENCH, "--take-over", str(sample / "published"))) == OK
    assert "2 cases taken over" in capsys.readouterr().out
    said = unwrapped(out / "published" / "README.md")
    of_earlier = f"without the time of the 2 (cases on a backend and a vocabulary) taken over from {sample}"
    assert of_earlier in said
    lines = [json.loads(line) for line in (out / "sessions.jsonl").read_text().splitlines()]
    (out / "sessions.jsonl").write_text(
        "".join(json.dumps({name: line[name] for name in ("part", "seconds")}) + "\n" for line in lines)
    )
    assert reference.main(arguments(corpora, out, "--take-over", str(sample / "published"), "--page")) == OK
    said = unwrapped(out / "published" / "README.md")
    assert f"were taken over from {sample / 'published'} is not stored, and their time is not" in said
    anew, once = (sorted(map(seen, read_rows(folder / "runs" / "maskbench"))) for folder in (out, whole))
    assert anew == once


def seen(row: Row) -> tuple[str, int, bool]:
    return row.case, row.instance or 0, bool(row.accepted)


def test_a_published_sample_becomes_a_larger_one(
    reference: ModuleType, corpora: Path, sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*MASKBENCH, "--most", "4", "--take-over", str(sample / "published"))
    assert reference.main(arguments(corpora, tmp_path, *words)) == OK
    assert "2 cases taken over" in capsys.readouterr().out
    assert "a stratified sample of 4 of 5 cases" in (tmp_path / "published" / "README.md").read_text()
    of_two, of_four = (reference_walk.sampled_in(out / "runs" / "maskbench") for out in (sample, tmp_path))
    assert of_two < of_four and (len(of_two), len(of_four)) == (2, 4)


def test_a_larger_sample_holds_the_smaller_and_every_case_is_as_likely() -> None:
    strata = {f"case {number:03}": (("any",), number) for number in range(1000)}
    small = set(stratified(strata, 100))
    large = set(reference_walk.chosen_of(200, strata, small))
    assert small < large and len(large) == 200
    halves = [sum(strata[case][1] < 500 for case in cases) for cases in (small, large)]
    assert abs(halves[0] - 50) <= 1 and abs(halves[1] - 100) <= 2
    assert set(reference_walk.chosen_of(200, strata, large)) == large, "the same command goes on with it"
    assert set(reference_walk.chosen_of(50, strata, large)) < large
    assert reference_walk.chosen_of(None, strata, set()) == ()


def test_a_run_that_was_not_walked_to_its_end_is_no_sample(sample: Path, tmp_path: Path) -> None:
    shutil.copytree(sample / "runs" / "maskbench", tmp_path / "run")
    assert len(reference_walk.sampled_in(tmp_path / "run")) == 2
    rows = tmp_path / "run" / "rows.jsonl"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    assert reference_walk.sampled_in(tmp_path / "run") == set()
    assert reference_walk.sampled_in(None) == set()
