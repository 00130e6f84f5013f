"""A run takes over the rows of the same instances, and none of others that only look alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic

from harness.cases.case_line import case_to_line
from harness.running.taken import _are_of, _same_cases


def test_a_case_of_another_text_is_another_case(tmp_path: Path) -> None:
    before = synthetic.case(1, [("a", b'"a"', True)])
    now = synthetic.case(1, [("a", b'"b"', True)])
    (tmp_path / "cases.jsonl").write_bytes(case_to_line("first", "1", before))
    assert before.id == now.id
    assert _same_cases(tmp_path, {("first", now.id): now}) == set()
    assert _same_cases(tmp_path, {("first", before.id): before}) == {("first", before.id)}


@pytest.mark.parametrize("other", [{"bytes": 4}, {"valid": False}, {"instance_name": "x"}, {"instance": 1}])
def test_rows_of_another_instance_are_not_the_cases(other: dict[str, Any]) -> None:
    case = synthetic.case(1, [("test 1", b'"a"', True)])
    assert _are_of([synthetic.row(bytes=3), synthetic.row(instance=None, bytes=0)], case)
    assert not _are_of([synthetic.row(**{"bytes": 3} | other)], case)
