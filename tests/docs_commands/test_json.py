"""`--json` of the commands that take long: one document, with the keys that docs/ci.md promises."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import fault_server
import pages
import pytest
from docs_commands.recipes import BISECTED, DOCTOR, KERNELS, NOISY, ONE_REQUEST, SLOWER
from docs_commands.runner import first_choice
from docs_commands.seeds import Store
from json_keys import check

SEEDS = ("my_schemas", "my_cases.jsonl", "choices.jsonl", "my_run")


def right(command: str, said: Any) -> bool:
    """More than the keys."""
    if command.startswith("measure doctor"):
        return len(said["advice"]) > 3 and len(said["conclusions"]) > 1
    if command.startswith("measure kernels"):
        return bool(said["end"] and said["times"])
    if command.startswith("measure"):
        return {each["role"] for each in said["arms"]} == {"reference", "a/a"} and len(
            said["comparisons"]
        ) > 0
    if command.startswith("decode"):
        return bool(said["is_complete"] and said["cells"])
    if command.startswith("repro"):
        return bool(said["outcome"] == "over_constrained" and "llguidance" in said["script"])
    if command.startswith("adjudicate"):
        return bool(said["cases"] == 3 and said["documents"])
    if "--slower" in command:
        return bool(said["first_bad"] == "1.2" and said["ratio"][0] > 2)
    return bool(said["first_bad"] == "2.0" and said["differences"] != [])


@pytest.mark.parametrize(
    ("line", "option", "codes"),
    [
        ("measure choices.jsonl --backends llguidance --vocabularies probe --forks 1", "", NOISY),
        (DOCTOR, "", NOISY),
        (
            "decode my_cases.jsonl --backends llguidance --vocabularies probe --strategies stepwise "
            f"{ONE_REQUEST}",
            "",
            (0,),
        ),
        (f"{KERNELS} --out kernels", "", (0,)),
        ("repro my_run shelf --backends llguidance --shrink", "--shrink", (0,)),
        ("adjudicate my_run --effort 1 --tries 1", "", (0,)),
        (BISECTED, "", (0,)),
        (SLOWER, "--slower", (0,)),
    ],
    ids=["measure", "doctor", "decode", "kernels", "repro", "adjudicate", "bisect", "slower"],
)
def test_the_answer_is_one_document(
    line: str, option: str, codes: tuple[int, ...], store: Store, tmp_path: Path
) -> None:
    for each in SEEDS:
        if each in line:
            store.put(each, tmp_path / each)
    done = store.run(["grammarbench", *shlex.split(line), "--json"], tmp_path)
    assert done.returncode in codes, done.stderr
    assert right(line, check(done.stdout, pages.verb_of(line.split()), option))


def test_shares_and_their_whole(store: Store, tmp_path: Path) -> None:
    store.put("my_cases.jsonl", tmp_path / "my_cases.jsonl")
    run = "grammarbench run my_cases.jsonl --backends llguidance --vocabularies probe --effort 0 --json"
    for number in (1, 2):
        done = store.run([*run.split(), "--shard", f"{number}/2", "--out", f"run-{number}"], tmp_path)
        assert done.returncode == 0, done.stderr
        check(done.stdout, "run")
    done = store.run(["grammarbench", "merge", "whole", "run-1", "run-2", "--json"], tmp_path)
    assert done.returncode == 0, done.stderr
    said = check(done.stdout, "merge")
    assert said["statuses"] == {"ok": 6} and said["missing"] == 0
    done = store.run(["grammarbench", "merge", "part", "run-1", "--json"], tmp_path)
    assert done.returncode == 3 and check(done.stdout, "merge")["missing_shards"] == ["2/2"]


def test_a_live_session(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("httpx2")
    store.put("choices.jsonl", tmp_path / "choices.jsonl")
    with fault_server.serving(fault_server.says(first_choice)) as server:
        done = store.run(
            [
                "grammarbench",
                "live",
                server.url,
                "choices.jsonl",
                "--requests",
                "4",
                "--out",
                "lived",
                "--json",
            ],
            tmp_path,
        )
    assert done.returncode == 0, done.stderr
    said = check(done.stdout, "live")
    assert said["is_complete"] and {each["dialect"] for each in said["kept"]} == {"choice"}
