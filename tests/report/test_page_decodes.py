"""What the page says of a decode record: what was cut, by which objectives, beside what, and of how much."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from decode_runs import Played, decoding
from html_page import Page, render
from report_folders import STEPWISE, TEXTS, write_decoding

from harness.report.page.inputs import read_inputs
from harness.report.page.sections.batches import scaling
from harness.serve.requests.latency import Objectives


def test_texts_cut_at_their_limit_are_counted_beside_the_solved(tmp_path: Path) -> None:
    made = decoding({STEPWISE: {"alpha": Played(TEXTS, 11.0)}}, forks=4)
    batches = tuple(
        replace(
            batch,
            completed=tuple(
                replace(one, right="unjudged", completed=replace(one.completed, end="limit"))
                if one.completed.name == "a"
                else one
                for one in batch.completed
            ),
        )
        for batch in made.batches
    )
    folder = write_decoding(tmp_path / "cut", replace(made, batches=batches))
    (drawn,) = scaling(read_inputs([folder]))
    assert drawn.counts == ("alpha: 8/16 requests solved; 8/16 were cut at their limit",)
    assert drawn.counts[0] in Page(render([folder])).text


def test_goodput_is_by_the_objectives_of_each_record(tmp_path: Path) -> None:
    made = decoding({replace(STEPWISE, rate=40.0): {"alpha": Played(TEXTS, 11.0)}}, plain=Played(TEXTS, 10.0))
    strict = replace(made.setup, run="strict", objectives=Objectives(ttft_ms=1))
    folders = [
        write_decoding(tmp_path / name, replace(made, setup=setup))
        for name, setup in (("usual", made.setup), ("strict", strict))
    ]
    usual, hard = scaling(read_inputs(folders))
    assert all(line[-1] != "0" for line in usual.open_loads) and all(
        line[-1] == "0" for line in hard.open_loads
    )
    text = Page(render(folders)).text
    assert "Goodput: TTFT <= 500 ms, TPOT <= 50 ms." in text and "Goodput: TTFT <= 1 ms." in text
