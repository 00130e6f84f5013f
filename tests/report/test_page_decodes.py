"""What the page says of a decode record: what was cut, by which objectives, beside what, and of how much."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from decode_runs import MS, Played, decoding
from html_page import Page, render
from report_folders import STEPWISE, TEXTS, write_decoding

from harness.report.page.inputs import read_inputs
from harness.report.page.sections.batches import scaling
from harness.serve.decode.record import DecodedBatch, Decoding, read_decoding
from harness.serve.decode.show import decoding_text
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


def queued(texts: int = 2, plain: float = 10.0) -> Decoding:
    """Two requests and one row: each of them waits for 100 ms, and then has its first id after 11 ms."""
    made = decoding(
        {replace(STEPWISE, texts=texts): {"alpha": Played({"a": (1,) * 4, "b": (1,) * 4}, 11.0)}},
        plain=Played({"a": (1,) * 4, "b": (1,) * 4}, plain),
    )
    if texts == 1:
        return made

    def waits(batch: DecodedBatch) -> DecodedBatch:
        late = [
            replace(
                one.completed,
                admitted_ns=100 * MS,
                token_ns=tuple(time_ns + 100 * MS for time_ns in one.completed.token_ns),
                done_ns=one.completed.done_ns + 100 * MS,
            )
            for one in batch.completed
        ]
        judged = tuple(replace(one, completed=done) for one, done in zip(batch.completed, late, strict=True))
        return replace(batch, completed=judged)

    return replace(made, batches=tuple(map(waits, made.batches)))


def test_the_queue_of_a_closed_load_is_told_and_taken_off(tmp_path: Path) -> None:
    folder = write_decoding(tmp_path / "queued", queued())
    (drawn,) = scaling(read_inputs([folder]))
    charts = {chart.title: chart.rows[0][1].split(" [")[0] for chart in drawn.charts}
    assert charts["TTFT over batch size"] == "111 ms"
    assert charts["TTFT from row over batch size"] == "11 ms"
    assert "2 at batch 1" in drawn.about and "time of the requests before" in Page(render([folder])).text
    said = decoding_text(queued())
    assert "    TTFT from row, without the waits for row and grammar: 11 ms\n" in said
    assert "2 requests, all there at the start for 1 row: TTFT, E2E and goodput have the queue" in " ".join(
        said.split()
    )
    assert max(map(len, said.splitlines())) <= 80


def test_where_each_request_has_a_row_at_once_nothing_is_said_of_a_queue(tmp_path: Path) -> None:
    (drawn,) = scaling(read_inputs([write_decoding(tmp_path / "free", queued(texts=1))]))
    assert [chart.title for chart in drawn.charts][:2] == ["TTFT over batch size", "TPOT over batch size"]
    assert "requests before" not in drawn.about
    assert "wait" not in decoding_text(queued(texts=1)).replace("waited", "")


def test_each_arm_has_its_own_line_without_a_grammar(tmp_path: Path) -> None:
    """The machine was half as fast while beta ran: its overhead is that of alpha."""
    made = decoding(
        {STEPWISE: {"alpha": Played(TEXTS, 11.0), "beta": Played(TEXTS, 22.0)}}, plain=Played(TEXTS, 10.0)
    )
    slow = decoding({STEPWISE: {"beta": Played(TEXTS, 22.0)}}, plain=Played(TEXTS, 20.0))
    batches = [batch for batch in made.batches if (batch.arm, batch.role) != ("beta", "none")]
    batches += [batch for batch in slow.batches if batch.role == "none"]
    (drawn,) = scaling(read_inputs([write_decoding(tmp_path / "two", replace(made, batches=tuple(batches)))]))
    tpot = {row[0]: row[1].split(" [")[0] for row in drawn.charts[2].rows}
    assert tpot == {
        "alpha": "11 ms",
        "beta": "22 ms",
        "no grammar, beside alpha": "10 ms",
        "no grammar, beside beta": "20 ms",
    }
    lines = re.findall(r'id="[^"]*?-((?:none-)?arm-\d+)"', drawn.charts[2].svg)
    assert sorted(lines) == ["arm-0", "arm-1", "none-arm-0", "none-arm-1"], "each is dimmed with its arm"


def test_a_decoding_without_an_end_says_how_much_was_made(tmp_path: Path) -> None:
    made = queued(texts=1)
    begun = replace(made, batches=made.batches[:3])
    whole, stopped, none = (
        write_decoding(tmp_path / name, record, finish)
        for name, record, finish in (
            ("whole", made, True),
            ("stopped", begun, False),
            ("none", replace(made, batches=()), False),
        )
    )
    asked = "5 forks of one cold and 2 warm rounds"
    for folder, said in (
        (whole, f"vocabulary tekken; {asked}"),
        (stopped, f"vocabulary tekken; 3 runs made in 1 fork, of {asked} that were asked for"),
        (none, f"vocabulary tekken; 0 runs made, of {asked} that were asked for"),
    ):
        assert said in " ".join(decoding_text(read_decoding(folder)).split())
        if folder != none:
            assert said in Page(render([folder])).text
