"""Tokens that a server counts and does not send, texts that come at once, and pairs that are counted in two
ways: the time per token is of what came, or there is none."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fault_server as faults
import pytest
from live.one_request import answer, ask
from live.sessions import obeys, run, way, write_suite

from harness.cli.main import main
from harness.errors import OK
from harness.serve.live import figures, show
from harness.serve.live.answer import Answer, End, Heard, Usage
from harness.serve.requests.latency import OBJECTIVES

MS = 1_000_000


def came(
    *message_ms: int, last_ms: int, output: int | None, reasoning: int | None = None, thought: int = 0
) -> Answer:
    """Returns an answer whose messages with text, and the end behind them, came at these times."""
    times = tuple(time * MS for time in message_ms)
    heard = Heard("finished", 0, 0, times, last_ms * MS, last_ms * MS, text="12")
    return answer(replace(heard, usage=Usage(7, output, reasoning), reasoning_characters=thought))


# -------------------------------------------------------------------------------- thinking that was not sent


def test_thinking_that_was_not_sent_is_in_no_time_per_token() -> None:
    """500 tokens of thinking come before 11 tokens at 20 ms each."""
    times = range(1000, 1200, 20)
    mine = came(*times, last_ms=1200, output=511, reasoning=500)
    assert figures.tpot(mine) == 20 * MS
    assert figures.tokens_per_message([mine]) == 1.1
    assert mine.tokens == 511 and (rates := figures.rates([mine])) and rates.output_tokens == 511
    assert show.token_notes([mine]) == [
        "500 tokens of 1 answer are thinking that was not sent: they are in tok/s and not in TPOT, and their "
        "time is in TTFT",
        "1.1 tokens a message; ITL is of messages",
    ]


def test_thinking_that_was_sent_has_its_times() -> None:
    mine = came(*range(1000, 1200, 20), last_ms=1200, output=11, reasoning=6, thought=18)
    assert figures.tpot(mine) == 20 * MS and figures.tokens_per_message([mine]) == 1.1
    assert show.token_notes([mine]) == ["1.1 tokens a message; ITL is of messages"]


def test_thinking_that_came_within_the_text_has_its_times() -> None:
    """Twelve messages are more than the other six tokens."""
    mine = came(*range(0, 240, 20), last_ms=240, output=13, reasoning=7)
    assert (mine.hidden, figures.tpot(mine)) == (0, 20 * MS)


@pytest.mark.parametrize(
    ("more", "reasoning"),
    [
        ({"completion_tokens_details": {"reasoning_tokens": 500}}, 500),
        ({"completion_tokens_details": {"reasoning_tokens": 500}, "total_tokens": 518}, 500),
        # Counted beside the output's tokens.
        ({"completion_tokens_details": {"reasoning_tokens": 500}, "total_tokens": 1018}, None),
        ({"completion_tokens_details": {"reasoning_tokens": 512}}, None),
        ({"completion_tokens_details": {"reasoning_tokens": 0}}, None),
        ({"completion_tokens_details": {"reasoning_tokens": "500"}}, None),
        ({"completion_tokens_details": None}, None),
        ({}, None),
    ],
)
def test_the_count_of_thinking_is_kept_where_it_is_part_of_the_outputs(
    more: dict[str, Any], reasoning: int | None
) -> None:
    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["1", "2"], 0.02)
        await talk.event(talk.message(None, "stop"))
        await talk.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 511, **more}})
        await talk.event("[DONE]")
        await talk.raw(b"0\r\n\r\n")

    with faults.serving(behave) as server:
        mine = answer(ask(server.url))
    assert mine.heard.usage == Usage(7, 511, reasoning)
    assert mine.streamed == 511 - (reasoning or 0)


# ------------------------------------------------------------------------------------ texts that come at once


def test_a_text_that_came_at_once_has_no_time_per_token_even_if_its_end_came_later() -> None:
    async def buffers(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["a text of 50 tokens"])
        await asyncio.sleep(0.1)
        await talk.finish(tokens=50)

    with faults.serving(buffers) as server:
        mine = answer(ask(server.url))
    assert mine.heard.last_ns is not None and mine.heard.last_ns > mine.heard.message_ns[-1]
    assert figures.tpot(mine) is None and figures.in_one_read([mine]) == 1


def test_a_text_of_two_reads_has_a_time_per_token() -> None:
    mine = came(500, 600, last_ms=700, output=3)
    assert figures.tpot(mine) == 100 * MS and figures.in_one_read([mine]) == 0


# ---------------------------------------------------------------------------------- pairs counted in two ways


def as_twin(mine: Answer) -> Answer:
    return replace(mine, role="none", state="")


def test_a_pair_that_is_counted_in_two_ways_has_no_ratio() -> None:
    """Four tokens a message at the same pace; the server counts those of the twin only."""
    times = range(1000, 1400, 60)
    by_messages, by_server = (came(*times, last_ms=1420, output=output) for output in (None, 29))
    found = figures.pairs([by_messages], [as_twin(by_server)])
    assert (found.ttft, found.tpot, found.unlike) == ([0.0], [], 1)


@pytest.mark.parametrize("output", [None, 29])
def test_a_pair_that_is_counted_alike_has_its_ratio(output: int | None) -> None:
    mine = came(*range(1000, 1400, 60), last_ms=1420, output=output)
    found = figures.pairs([mine], [as_twin(mine)])
    assert (found.ttft, found.tpot, found.unlike) == ([0.0], [1.0], 0)


@pytest.mark.usefixtures("quick")
def test_a_session_says_that_its_loads_are_counted_in_two_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def behave(talk: faults.Talk) -> None:
        await faults.says(obeys, gap_s=0.01, counts=way(talk.body) is None)(talk)

    suite = write_suite(tmp_path / "mine.jsonl", {"word": {"regex": "[a-c]{3}"}})
    assert run(behave, tmp_path / "run", suite, "--grammars", "mixed", "--gate")[0] == OK
    said = " ".join(capsys.readouterr().out.split())
    assert "TPOT x" not in said and "of 8 pairs, the server counted the tokens of one answer only" in said
    assert "the server counted none (8 with a grammar, 0 without)" in said
    assert main(["live", "--show", str(tmp_path / "run"), "--json"]) == OK
    pairs = json.loads(capsys.readouterr().out)["loads"][0]["over_twin"]
    assert (pairs["pairs"], pairs["tpot_pairs"], pairs["pairs_counted_in_two_ways"]) == (8, 0, 8)


@pytest.mark.usefixtures("quick")
def test_one_pair_and_one_gap_are_said_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["ab", "c"], 0.05)
        await talk.finish(tokens=3 if way(talk.body) is None else None)

    suite = write_suite(tmp_path / "mine.jsonl", {"word": {"regex": "[a-c]{3}"}})
    assert run(behave, tmp_path / "run", suite, "--grammars", "mixed", "--requests", "1")[0] == OK
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("(1 gap between messages)") == 2
    assert "of 1 pair, the server counted the tokens of one answer only: there TPOT has no ratio" in said


# ------------------------------------------------------------------------------------- answers without a text


@pytest.mark.usefixtures("quick")
def test_answers_without_a_text_are_told_where_their_load_has_rates_of_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that thinks comes to its limit before it writes."""

    async def behave(talk: faults.Talk) -> None:
        if way(talk.body) is None:
            return await faults.says(obeys)(talk)
        await talk.head()
        await talk.finish("length", tokens=256)

    suite = write_suite(tmp_path / "mine.jsonl", {"word": {"regex": "[a-c]{3}"}})
    assert run(behave, tmp_path / "run", suite, "--grammars", "mixed")[0] == OK
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("no text") == 1 and "8/8 - - - - 0 0 8 answers have no text, and are" in said


# ----------------------------------------------------------------------------------- loads without an answer


def lost(end: End) -> Answer:
    return answer(Heard(end, 0, MS, (), None, 1000 * MS))


@pytest.mark.parametrize("end", ["failed", "dropped", "timeout", "refused"])
def test_a_load_that_a_server_left_without_an_answer_has_rates_of_0(end: End) -> None:
    """A gap would look as if nobody had asked."""
    mine = [lost(end), lost("cancelled")]
    rates = figures.rates(mine)
    assert rates is not None and rates.output_throughput == rates.request_throughput == 0
    assert figures.goodput(mine, OBJECTIVES) == 0


@pytest.mark.parametrize("mine", [[], [lost("cancelled"), lost("harness_error")]], ids=["none", "ours"])
def test_what_was_not_asked_has_no_rates(mine: list[Answer]) -> None:
    assert figures.rates(mine) is None and figures.goodput(mine, OBJECTIVES) is None
