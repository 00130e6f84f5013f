"""Every prompt begins with what no other prompt begins with, in this session or in another."""

from __future__ import annotations

from pathlib import Path

import fault_server as faults
import pytest
from live.sessions import obeys, run, write_suite

from harness.errors import OK
from harness.serve.live.asking import salt_of

pytestmark = pytest.mark.usefixtures("quick")


def test_a_session_sends_no_prompt_that_another_sent(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "mine.jsonl", {"word": {"regex": "[a-c]{3,5}"}})
    prompts = []
    for name in ("once", "again"):
        code, asked = run(faults.says(obeys), tmp_path / name, suite, "--seed", "1")
        assert code == OK
        prompts += [body["messages"][0]["content"] for body in asked]
    assert len(prompts) == len(set(prompts)) == 2 * (1 + 8 + 8)


def test_a_salt_is_eight_digits_of_everything_that_names_a_request() -> None:
    salts = {
        salt_of(run, seed, load, number)
        for run in ("a", "b")
        for seed in (0, 1)
        for load in (0, 1)
        for number in (0, 1)
    }
    assert len(salts) == 16 and all(len(salt) == 8 and int(salt, 16) >= 0 for salt in salts)
    assert salt_of("a", 0, 0, 0) == salt_of("a", 0, 0, 0)
