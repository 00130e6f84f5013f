"""The grammar of a case, which may have megabytes, is measured once for all of its rows."""

from __future__ import annotations

from collections import deque
from typing import Any

import synthetic

from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance
from harness.running.case_rows import rows_of
from harness.running.work import Ending, Task, Work


class Counting(str):
    """A text that counts how often it is encoded."""

    times = 0

    def encode(self, *arguments: Any) -> bytes:
        Counting.times += 1
        return super().encode(*arguments)


def test_a_grammar_is_encoded_once_for_all_rows_of_its_case() -> None:
    instances = tuple(Instance(f"{number}", b"a", True) for number in range(40))
    case = Case("0" * 12, "a case", Grammar("regex", Counting("é*")), instances)
    Counting.times = 0
    task = Task(0, "suite", "1", case)
    walks = rows_of(Work(synthetic.ARMS[0], "tiny", deque()), task, Ending("crash", "compile"), True)
    assert [row.grammar_bytes for row, _ in walks] == [3] * 41 and Counting.times == 1
