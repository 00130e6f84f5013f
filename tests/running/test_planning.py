"""A run says how far its plan is, where that takes long."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.running import session


@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 3), (3600.0, 0)])
def test_a_long_plan_says_how_many_cases_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, lines: int
) -> None:
    suite = tmp_path / "suite.json"
    tests = [{"text": "a", "valid": True}]
    suite.write_text(
        json.dumps([{"description": name, "regex": f"a{name}?", "tests": tests} for name in "bcd"])
    )
    monkeypatch.setattr(session, "PLANNING_SECONDS", seconds)
    said: list[str] = []
    request = session.Request(
        suites=(str(suite),), backends="reference", vocabularies=("bytes",), out=tmp_path / "run", effort=0
    )
    session.run(request, said.append, lambda _: None)
    told = [line for line in said if line.startswith("reading and judging the cases")]
    assert len(told) == lines and all("3 so far" in line for line in told[2:])
