"""A test that fails because of cases before it says so: chosen alone, it passes."""

from __future__ import annotations

import json
import os

import pytest
from places import SUPPORT

pytest_plugins = ["pytester"]

CASES = [
    {"description": "first", "regex": "[ab]{2,5}c?", "tests": [{"text": "ab", "valid": True}]},
    {"description": "second", "regex": "[ab]{3}d", "tests": [{"text": "aab", "valid": False}]},
]


def test_a_case_that_fails_behind_others_only_names_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (pytester.path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    words = ["-p", "no:hypothesispytest", "--grammarbench-suite=cases.jsonl", "--grammarbench-effort=0"]
    words += ["--grammarbench-backend=miniatures.of_other_cases:RemembersByTooShortAKey"]
    said = "second (cases) was wrong after first and right when walked again in a process of its own: "
    said += "this counts against the backend"
    both = pytester.runpytest_subprocess(*words, timeout=100)
    both.assert_outcomes(passed=1, failed=1)
    assert said in both.outlines
    assert "1 case had a wrong outcome after other cases in the same process" in both.stdout.str()
    alone = pytester.runpytest_subprocess(*words, "-k", "second", timeout=100)
    alone.assert_outcomes(passed=1, deselected=1)
    assert "was wrong after" not in alone.stdout.str()
