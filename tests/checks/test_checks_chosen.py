"""`run --checks`: which checks are made, that a run says so everywhere, and that no gate takes it for a whole
one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.checks import category, checks, made, named_checks
from harness.cli.main import main
from harness.errors import BadInput
from harness.rows.row import OUT_OF_TIME
from harness.rows.sample import sample_of
from harness.rows.store import read_info, read_rows

CASE = {
    "description": "small",
    "schema": {"type": "integer", "minimum": 3},
    "tests": [{"data": 4, "valid": True}, {"data": 1, "valid": False}],
}


def test_names_and_categories_are_checks_in_their_order() -> None:
    masks = tuple(name for name in checks() if category(name) == "masks")
    assert named_checks(["masks"]) == masks and len(masks) > 3
    assert named_checks(["Life-Cycle", "life cycle"]) == tuple(
        name for name in checks() if category(name) == "life cycle"
    )
    assert named_checks(["the-mask-is-exact", "masks"]) == masks
    assert named_checks([]) == ()
    with pytest.raises(BadInput, match=r'unknown check "mask"; did you mean "masks"\?'):
        named_checks(["mask"])


def test_the_categories_are_told_to_who_names_none_and_on_the_page_of_the_checks() -> None:
    categories = list(dict.fromkeys(map(category, checks())))
    with pytest.raises(BadInput) as refused:
        named_checks(["drafts and preemption"])
    assert str(refused.value).endswith(f" (categories: {', '.join(categories)})")
    page = (Path(__file__).parents[2] / "docs" / "checks.md").read_text("utf-8")
    assert [each for each in categories if f"`{each}`" not in page] == []


def test_only_they_are_made() -> None:
    assert tuple(made(1, False, named_checks(["masks"]))) == named_checks(["masks"])
    assert made(0, False, named_checks(["masks"])) == {}
    assert made(1, False, ()) == made(1, False)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two checks."""
    folder = tmp_path_factory.mktemp("chosen")
    suite = folder / "small.jsonl"
    suite.write_text(json.dumps(CASE) + "\n")
    options = ["--backends", "reference", "--vocabularies", "bytes", "--effort", "1"]
    assert main(["run", str(suite), *options, "--checks", "masks", "--out", str(folder / "run")]) == 0
    return folder / "run"


def test_a_run_has_them_alone_and_says_so_first(chosen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = (row for row in read_rows(chosen) if row.mode == "checks")
    assert tuple(row.checks) == named_checks(["masks"]) == read_info(chosen).checks
    said = "checks only: every allowed token leads to a document"
    assert said in sample_of(read_info(chosen))
    assert main(["table", str(chosen)]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_no_gate_takes_it_for_a_run_of_all(
    chosen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "record.json"
    assert main(["compare", str(chosen), "--record", str(record)]) == 2
    assert "only some checks were made, and a record is of all" in capsys.readouterr().err
    assert main(["run", "regex", "--checks", "masks", "--record", str(record)]) == 2
    assert "expected outcomes are of all checks; leave --checks out" in capsys.readouterr().err
    assert main(["run", "regex", "--checks", "masks", "--effort", "0"]) == 2
    assert "give --effort 1 or more" in capsys.readouterr().err
    assert main(["run", "regex", "--checks", "masks", "--effort", "0", "--decode"]) == 2
    assert "none of the checks that are made" in capsys.readouterr().err


def test_a_run_says_how_long_its_checks_might_take(tmp_path: Path) -> None:
    suite, out = tmp_path / "small.jsonl", tmp_path / "run"
    suite.write_text(json.dumps(CASE) + "\n")
    options = [
        "--backends",
        "reference",
        "--vocabularies",
        "bytes",
        "--effort",
        "1",
        "--check-timeout",
        "1e-6",
    ]
    assert main(["run", str(suite), *options, "--out", str(out)]) == 0
    (row,) = (row for row in read_rows(out) if row.mode == "checks")
    assert OUT_OF_TIME in row.checks.values() and read_info(out).check_timeout_s == 1e-6
    assert main(["run", str(out / "experiment.toml"), "--out", str(tmp_path / "again")]) == 0
    assert read_info(tmp_path / "again").check_timeout_s == 1e-6
