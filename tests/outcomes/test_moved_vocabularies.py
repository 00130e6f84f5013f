"""One tokenizer under two paths, as two checkouts have it, is one vocabulary to a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compared import NEW, OLD, REFERENCE, write_run
from measured import arm, steady, write_measurement

from harness.backend.arm import Arm
from harness.cli.main import main
from harness.outcomes.compare import compare_runs
from harness.outcomes.settings import moved_vocabularies

MEASURED = arm("toy", "arm", "toy", "2")
HERE, THERE = "hf:/a/tokenizer", "hf:/b/tokenizer"


def known(**digests: str) -> dict[str, Any]:
    return {name: {"size": 300, "sha256": digest * 32} for name, digest in digests.items()}


def run_of(folder: Path, arm: Arm, vocabulary: str, digest: str, **also: Any) -> Path:
    changed = {arm: {"vocabulary": vocabulary} | also}
    suites = {"first": {"version": "1", "sha256": "0" * 64, "cases": 1, "instances": 1}}
    return write_run(folder, changed, cases=1, suites=suites, vocabularies=known(**{vocabulary: digest}))


@pytest.mark.parametrize("also", [{}, {"accepted": False, "stopped_at": 2}], ids=["same", "worse"])
def test_a_tokenizer_under_another_path_is_compared(
    tmp_path: Path, also: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    base = run_of(tmp_path / "base", OLD, HERE, "ab")
    head = run_of(tmp_path / "head", NEW, THERE, "ab", **also)
    (pair,) = compare_runs(base, head)
    assert pair.outcomes.compared == 1
    assert main(["compare", str(base), str(head), "--gate"]) == (1 if also else 0)
    assert "UNPROVEN" not in capsys.readouterr().out


def test_counts_with_a_tokenizer_under_another_path_are_compared(tmp_path: Path) -> None:
    base, head = run_of(tmp_path / "base", NEW, HERE, "ab"), run_of(tmp_path / "head", NEW, THERE, "ab")
    for folder, vocabulary, forced in ((base, HERE, 3), (head, THERE, 2)):
        arms = {REFERENCE: steady(1, seed=1), MEASURED: steady(1, seed=2)}
        counts = {MEASURED.name: {"forced_bytes": forced}}
        write_measurement(folder, arms, vocabulary=vocabulary, counts=counts)
    (pair,) = compare_runs(base, head)
    assert {each.count for each in pair.counted} == {"forced_bytes"}


def test_another_tokenizer_under_another_path_is_not_compared(tmp_path: Path) -> None:
    base, head = run_of(tmp_path / "base", OLD, HERE, "ab"), run_of(tmp_path / "head", NEW, THERE, "cd")
    (pair,) = compare_runs(base, head)
    assert pair.outcomes.compared == 0
    assert main(["compare", str(base), str(head), "--gate"]) == 4


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ({HERE: "ab"}, {THERE: "ab"}, {THERE: HERE}),
        ({HERE: "ab"}, {THERE: "cd"}, {}),
        ({HERE: "ab"}, {HERE: "ab", THERE: "ab"}, {}),
        ({HERE: "ab", "hf:/c": "ab"}, {THERE: "ab"}, {}),
        ({"llama3": "ab"}, {THERE: "ab"}, {}),
        ({"gguf:/a/tokenizer": "ab"}, {THERE: "ab"}, {}),
    ],
)
def test_only_one_path_for_another_of_one_kind_and_digest_is_a_move(
    before: dict[str, str], after: dict[str, str], moved: dict[str, str]
) -> None:
    assert moved_vocabularies(known(**before), known(**after)) == moved


def test_another_tokenizer_of_the_same_tokens_is_told_and_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, tokenizer: str, **also: Any) -> Path:
        about = {"size": 300, "sha256": "ab" * 32}
        about |= {"tokenizer_sha256": tokenizer} if tokenizer else {}
        return write_run(tmp_path / name, {NEW: also}, vocabularies={"tiny": about})

    wrong = {"accepted": False, "stopped_at": 2}
    old, base, head = run("old", ""), run("base", "11"), run("head", "22", **wrong)
    assert main(["compare", str(base), str(head), "--gate"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "the tokenizer of tiny writes other ids or names special tokens otherwise" in told
    assert main(["compare", str(old), str(head), "--gate"]) == 1, "an older run does not tell"
    assert main(["compare", str(base), str(run("same", "11")), "--gate"]) == 0


def test_another_tokenizer_under_another_path_is_no_move() -> None:
    before, after = known(**{HERE: "ab"}), known(**{THERE: "ab"})
    before[HERE]["tokenizer_sha256"], after[THERE]["tokenizer_sha256"] = "11", "22"
    assert moved_vocabularies(before, after) == {}
    after[THERE]["tokenizer_sha256"] = "11"
    assert moved_vocabularies(before, after) == {THERE: HERE}
