"""benchmarks/reference.py where nothing is walked: what it goes on with, puts together, takes over and
replaces."""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import reference_estimate
import reference_page
import reference_walk
from reference_runs import LEFT_OUT

from harness.backend.arm import Arm
from harness.errors import OK
from harness.outcomes.result import result_of
from harness.rows.store import has_begun, read_end
from harness.running.merge import Merged
from harness.running.shard import Shard


def options_of(out: Path, **fields: Any) -> argparse.Namespace:
    defaults: dict[str, Any] = {
        "out": out, "vocabularies": "bytes", "backends": "reference", "jobs": 1, "timeout": None, "effort": 0,
        "argv": (), "take_over": None, "shard": None, "executor": "", "most": None, "sample": 2, "chosen": {},
    }  # fmt: skip
    return argparse.Namespace(**(defaults | fields))


@pytest.mark.parametrize("name", ["bytes", "Bytes"])
def test_a_vocabulary_is_known_however_it_is_spelled(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    late = synthetic.row(backend="reference", backend_version="", vocabulary="bytes", status="timeout")
    synthetic.write_run(
        tmp_path / "runs" / "ours",
        [[(late, b"")]],
        synthetic.info(synthetic.arms_of([late])),
    )
    walked: list[argparse.Namespace] = []
    monkeypatch.setattr(reference_walk, "walk", lambda options, *_: walked.append(options))
    reference_walk.walk_again(options_of(tmp_path, vocabularies=name), [], "ours")
    assert [options.chosen for options in walked] == [{"ours": (late.case_id,)}]


@pytest.fixture
def shares(synthetic: ModuleType, tmp_path: Path) -> list[Path]:
    """Both shares of a run, complete."""
    return [
        synthetic.write_run(tmp_path / "runs" / f"maskbench.{number}-of-2", [[(synthetic.row(), b"")]])
        for number in (1, 2)
    ]


def merged(synthetic: ModuleType, is_ended: bool) -> Callable[..., Merged]:
    """Returns what merges as the command does, or is ended half way."""

    def merge(out: Path, folders: Sequence[Path], argv: Sequence[str]) -> Merged:
        assert not out.exists()
        synthetic.write_run(out, [[(synthetic.row(), b"")]], complete=not is_ended)
        if is_ended:
            raise SystemExit(143)
        return Merged(out, len(folders), {}, 0, (), ())

    return merge


def test_shares_that_were_half_put_together_are_no_run(
    synthetic: ModuleType, shares: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "runs" / "maskbench"
    monkeypatch.setattr(reference_walk, "merge", merged(synthetic, is_ended=True))
    with pytest.raises(SystemExit):
        reference_walk.is_there(tmp_path, "maskbench")
    assert not has_begun(whole)
    monkeypatch.setattr(reference_walk, "merge", merged(synthetic, is_ended=False))
    assert reference_walk.is_there(tmp_path, "maskbench") and read_end(whole)
    assert sorted(path.name for path in whole.parent.iterdir()) == [
        "maskbench",
        *(share.name for share in shares),
    ]


def test_the_schemas_that_are_none_come_along_with_a_share(
    synthetic: ModuleType, shares: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LEFT_OUT).write_text('["none"]\n')
    monkeypatch.setattr(reference_walk, "run", lambda *_: None)
    options = options_of(elsewhere, shard=Shard(1, 2), chosen={"maskbench": ()})
    reference_walk.walk(options, [], "maskbench", elsewhere / "runs" / "maskbench.1-of-2")
    shutil.copy(elsewhere / "runs" / "maskbench.1-of-2" / LEFT_OUT, shares[0])
    monkeypatch.setattr(reference_walk, "merge", merged(synthetic, is_ended=False))
    assert reference_walk.is_there(tmp_path, "maskbench")
    assert json.loads((tmp_path / LEFT_OUT).read_text()) == ["none"]


def test_a_whole_whose_shares_are_gone_wants_none(synthetic: ModuleType, tmp_path: Path) -> None:
    synthetic.write_run(tmp_path / "runs" / "ours", [[(synthetic.row(), b"")]])
    assert reference_walk.lie_where(options_of(tmp_path, shard=Shard(1, 2)), ["ours"]) == ""


def test_notes_stay_wherever_the_command_is_ended(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write_run(tmp_path / "runs" / "ours", [[(synthetic.row(), b"")]])
    readme = reference_page.publish(tmp_path, ["ours"]) / "README.md"
    readme.write_text("# By hand\n\n" + readme.read_text())
    rename = Path.rename

    def ended(path: Path, target: Path) -> Path:
        if path.name == "published.new":
            raise SystemExit(143)
        return rename(path, target)

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(Path, "rename", ended)
        reference_page.publish(tmp_path, ["ours"])
    reference_page.publish(tmp_path, ["ours"])
    assert readme.read_text().startswith("# By hand\n\n" + reference_page.MARK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["published", "runs"]


def test_the_run_stands_in_commands_whatever_its_folder_is_called(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = tmp_path / "it's, here"
    synthetic.write_run(run, [[(synthetic.row(valid=False), b"")]])
    reference_page.write_tables(result_of(run), "ours", run, [], tmp_path / "made")
    failing = lzma.decompress((tmp_path / "made" / "failing.csv.xz").read_bytes()).decode()
    assert "grammarbench repro DIR/runs/ours " in failing and "here" not in failing


def test_a_measurement_has_the_schemas_of_its_own_sample_alone(
    reference: ModuleType, corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "corpora"
    shutil.copytree(corpora, mine)
    bad = {"description": "bad", "schema": {"type": "nothing"}, "meta": {"raw_features": []}}
    (mine / "maskbench" / "none.json").write_text(json.dumps(bad))
    monkeypatch.setattr(reference, "grammarbench", lambda words: OK)
    for number, count in ((6, 5), (2, 2)):
        words = ["--out", str(tmp_path / "out"), "--corpora", str(mine), "--times", str(number)]
        assert reference.main(words) == OK
        files = {file.name for file in (tmp_path / "out" / "times" / "schemas").iterdir()}
        assert len(files) == count and "none.json" not in files


def test_the_estimate_is_of_what_is_not_taken_over_on_each_vocabulary(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"{number:012x}" for number in range(4)]
    rows = [synthetic.row(vocabulary="bytes", case_id=case) for case in ids[:3]]
    synthetic.write_run(
        tmp_path / "earlier" / "ours", [[(row, b"")] for row in rows], synthetic.info(synthetic.arms_of(rows))
    )
    described = SimpleNamespace(
        arms=(Arm("alpha", "1.2.3", "", "alpha", (), "bitmask"),), vocabularies={"bytes": {}, "probe": {}}
    )
    monkeypatch.setattr(reference_estimate, "run", lambda *_: SimpleNamespace(described=described))
    strata = {case: ((), 1) for case in ids}
    options = options_of(tmp_path, take_over=tmp_path / "earlier", chosen={"ours": ()})
    (found,) = reference_estimate.estimate(options, "ours", [], strata)
    assert found.cases == 1 + 4
    options.chosen = {"ours": tuple(ids[2:])}
    (found,) = reference_estimate.estimate(options, "ours", [], strata)
    assert found.cases == 1 + 2
