"""What a strategy saves and gains, on the page and in the terminal: of how many requests each figure is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from decode_runs import Played, decoding
from report_folders import write_decoding

from harness.report.page.inputs import read_inputs
from harness.report.page.sections.jumps import HEADS, gains
from harness.serve.decode import show
from harness.serve.decode.record import Decoding
from harness.serve.decode.setting import Setting

STEP = Setting("chat", mode="greedy", batch=2)
PLAIN = {"a": [1] * 10, "b": [1] * 10}


def record(jumped: dict[str, list[int]]) -> Decoding:
    """Stepwise and jump-forward, of free texts: none was replayed, so that equal texts have equal ids."""
    jump = replace(STEP, strategy="jump_forward")
    made = decoding({STEP: {"toy": Played(PLAIN)}, jump: {"toy": Played(jumped)}})
    batches = tuple(
        replace(batch, completed=tuple(replace(one, as_replayed=None) for one in batch.completed))
        for batch in made.batches
    )
    return replace(made, batches=batches)


@pytest.mark.parametrize(
    ("jumped", "saved", "ceiling", "equal"),
    [
        ({"a": [1] * 10, "b": [9, 1]}, "40.0 %", "1.67", "2 of 2"),
        ({"a": [1] * 10, "b": [9, 2]}, "42.9 %", "1.00", "1 of 2"),
        ({"a": [9, 2], "b": [9, 2]}, "81.8 %", "–", "0 of 2"),
    ],
)
def test_a_saved_share_of_all_texts_is_told_from_a_ceiling_of_equal_ones(
    jumped: dict[str, list[int]], saved: str, ceiling: str, equal: str, tmp_path: Path
) -> None:
    inputs = read_inputs([write_decoding(tmp_path / "decode", record(jumped))])
    ((_, chart),) = gains(inputs)
    found = dict(zip(HEADS, chart.rows[0], strict=True))
    assert (found["Tokens saved"], found["Ceiling"], found["Equal texts"]) == (saved, ceiling, equal)
    said = show.decoding_text(replace(record(jumped), folder=tmp_path))
    note = f"    speed-up and ceiling are of {equal} requests, those with equal texts\n"
    assert (note in said) == (equal != "2 of 2")
    assert ("speed-up and ceiling are of" in said) == (equal != "2 of 2")
    assert max(map(len, said.splitlines())) <= 80
