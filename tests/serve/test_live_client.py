"""One request to a live server: every fault gets its own name, nothing hangs, and times are the server's."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass, replace
from time import monotonic, perf_counter_ns
from typing import Any

import fault_server as faults
import pytest
from live.one_request import PATIENT, answer, ask

from harness.serve.live import figures
from harness.serve.live.answer import Answer, Heard
from harness.serve.live.client import Client, Deadlines
from harness.serve.live.dialects import PATHS, Endpoint
from harness.serve.live.key import ApiKey
from harness.serve.live.sse import BadStream, EventReader


def deadlines(phase: str) -> Deadlines:
    """Patient in all but one."""
    short = {"first": 0.4, "stall": 0.4, "total": 0.8}.get(phase)
    return replace(PATIENT, **({} if short is None else {f"{phase}_s": short}))


KEY = "sk-a-secret-of-mine"


async def stalls_with_empty_messages(talk: faults.Talk) -> None:
    await talk.head()
    await talk.texts(["12"])
    while True:  # a message without text is no progress
        await talk.event(talk.message(None))
        await asyncio.sleep(0.02)


FAULTS: dict[str, tuple[faults.Behaviour, str, str, str]] = {
    "slow first byte": (faults.slow_first_byte, "timeout", "first", "no text within 0.4 s"),
    "headers, then nothing": (faults.headers_then_nothing, "timeout", "first", "no text within 0.4 s"),
    "role only for ever": (faults.role_only_for_ever, "timeout", "first", "no text within 0.4 s"),
    "stalls": (faults.stalls, "timeout", "stall", "nothing more within 0.4 s"),
    "stalls with empty messages": (
        stalls_with_empty_messages,
        "timeout",
        "stall",
        "nothing more within 0.4 s",
    ),
    "never ends": (faults.never_ends, "timeout", "total", "no end within 0.8 s"),
    "event that is no JSON": (faults.not_json, "malformed", "stream", "not JSON"),
    "no data field": (faults.no_field, "malformed", "stream", "no field of an event"),
    "not UTF-8": (faults.not_utf8, "malformed", "stream", "not UTF-8"),
    "choices of another type": (faults.strange_choices, "malformed", "stream", "choices that are no list"),
    "JSON too deep": (faults.deep_json, "malformed", "stream", "not JSON"),
    "huge line": (faults.huge_line, "malformed", "stream", "an event of more than 1,048,576 bytes"),
    "flood": (faults.flood, "malformed", "stream", "more than 1,048,576 characters"),
    "wrong content type": (
        faults.wrong_content_type,
        "malformed",
        "stream",
        "no stream of events but application/json",
    ),
    "no HTTP": (faults.not_http, "malformed", "status", "not HTTP"),
    "closes at once": (faults.closes_at_once, "dropped", "status", "the connection ended"),
    "drops in mid-stream": (faults.drops, "dropped", "stream", "the connection ended"),
    "resets in mid-stream": (faults.resets, "dropped", "stream", "the connection ended"),
    "ends early": (faults.ends_early, "dropped", "stream", "the stream ended before the answer did"),
    "ends within an event": (faults.ends_within_event, "dropped", "stream", "ended within an event"),
    "done without a reason": (faults.done_without_reason, "aborted", "stream", "without a reason"),
    "aborts": (faults.aborts, "aborted", "stream", "with the reason 'abort'"),
    "error in the stream": (faults.error_in_stream, "failed", "stream", "the engine died"),
    "500": (
        faults.status("500 Internal Server Error", '{"error": {"message": "broken pipe"}}'),
        "failed",
        "status",
        "500: broken pipe",
    ),
    "503 as text": (
        faults.status("503 Service Unavailable", "come back", "text/plain"),
        "failed",
        "status",
        "503: come back",
    ),
    "500 without an end": (faults.error_without_end, "failed", "status", "500"),
    "400": (
        faults.status("400 Bad Request", '{"detail": "no such grammar"}'),
        "refused",
        "status",
        "400: no such grammar",
    ),
    "422": (
        faults.status("422 Unprocessable Entity", '{"detail": [{"msg": "no"}]}'),
        "refused",
        "status",
        '422: [{"msg": "no"}]',
    ),
    "429": (faults.status("429 Too Many Requests", "{}"), "refused", "status", "429"),
    "redirect": (faults.redirects, "failed", "status", "307"),
    "truncates": (faults.truncates, "truncated", "", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_as_what_it_is(name: str) -> None:
    behaviour, end, phase, why = FAULTS[name]
    started = monotonic()
    with faults.serving(behaviour) as server:
        heard = ask(server.url, deadlines(phase))
    assert (heard.end, heard.phase) == (end, phase)
    assert why in heard.why
    assert monotonic() - started < PATIENT.total_s
    assert heard.done_ns >= heard.sent_ns >= heard.begun_ns


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        heard = ask(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert (heard.end, heard.phase, heard.status) == ("failed", "connect", None)


def test_a_connection_that_never_stands_is_a_timeout_of_its_own() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        held = [socket.socket() for _ in range(3)]
        try:
            for each in held:  # the queue of those that wait to be accepted is full now
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", port))
            heard = ask(f"http://127.0.0.1:{port}", Deadlines(0.3, 0.5, 0.5, 3.0))
        finally:
            for each in held:
                each.close()
    assert (heard.end, heard.phase) == ("timeout", "connect")


@pytest.mark.parametrize(("field", "end"), [("dat", "malformed"), ("note", "finished")])
def test_data_in_a_strange_line_is_missed_and_other_fields_are_ignored(field: str, end: str) -> None:
    """Where text of the answer is missing, what is left would be judged for what nobody wrote."""

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["12"])
        value = json.dumps(talk.message("34")) if field == "dat" else "routed to pool 7"
        await talk.chunk(f"{field}: {value}\n\n".encode())
        await talk.finish()

    with faults.serving(behave) as server:
        heard = ask(server.url)
    assert heard.end == end
    assert ("no field of an event: 'dat: " in heard.why) == (end == "malformed")


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_a_good_server_comes_out_clean(endpoint: Endpoint) -> None:
    with faults.serving(faults.says("[12, 345]", pieces=3)) as server:
        heard = ask(server.url, PATIENT, endpoint)
    assert (heard.end, heard.text, heard.why, heard.phase) == ("finished", "[12, 345]", "", "")
    assert (heard.usage.prompt, heard.usage.output, len(heard.message_ns)) == (7, 3, 3)
    assert (heard.messages, heard.empty) == ((5, 2) if endpoint == "chat" else (4, 1))


def test_messages_are_cut_anywhere_and_lines_end_in_every_way() -> None:
    with faults.serving(faults.byte_by_byte) as server:
        heard = ask(server.url)
    assert (heard.end, heard.text, len(heard.message_ns)) == ("finished", "é1", 1)


def test_messages_of_one_read_have_one_time() -> None:
    with faults.serving(faults.one_read) as server:
        heard = ask(server.url)
    assert (heard.text, len(heard.message_ns), len(set(heard.message_ns))) == ("123", 3, 1)
    assert figures.itl(answer(heard)) == []
    mine = answer(heard)
    assert mine.tokens > 1 and figures.tpot(mine) is None, "its clock says nothing of the tokens"
    assert figures.in_one_read([mine, mine]) == 2


def test_tokens_are_the_servers_and_empty_messages_are_none() -> None:
    with faults.serving(faults.several_tokens_a_message) as server:
        heard = ask(server.url)
    mine = answer(heard)
    assert (mine.tokens, len(heard.message_ns), heard.messages, heard.empty) == (12, 3, 8, 5)
    assert figures.tokens_per_message([mine]) == 4.0
    assert len(figures.itl(mine)) == 2
    assert heard.last_ns is not None
    assert figures.tpot(mine) == (heard.last_ns - heard.message_ns[0]) / 11


def test_without_a_count_messages_are_counted_and_that_is_said() -> None:
    with faults.serving(faults.says("abcdef", pieces=6, counts=False)) as server:
        mine = answer(ask(server.url))
    assert (mine.tokens, mine.heard.usage.output) == (6, None)
    assert figures.counted([mine]) == figures.AnswerCounts(by_server=0, by_messages=1)
    assert figures.tokens_per_message([mine]) is None


def test_where_messages_are_counted_the_last_one_with_text_is_the_last() -> None:
    def late(tokens: int | None) -> faults.Behaviour:
        async def behave(talk: faults.Talk) -> None:
            await talk.head()
            await talk.texts(["1", "2", "3"], 0.03)
            await asyncio.sleep(0.1)  # until end-of-sequence is sampled
            await talk.finish(tokens=tokens)

        return behave

    found = []
    for tokens in (4, None):
        with faults.serving(late(tokens)) as server:
            found.append(answer(ask(server.url)))
    by_server, by_messages = found
    assert by_server.heard.last_ns is not None
    assert figures.tpot(by_server) == (by_server.heard.last_ns - by_server.heard.message_ns[0]) / 3
    assert (
        figures.tpot(by_messages) == (by_messages.heard.message_ns[-1] - by_messages.heard.message_ns[0]) / 2
    )


FIRST_S, GAP_S, PIECES = 0.15, 0.03, 12


@dataclass
class Timed:
    """An answer, and when the server did what: the same clock, nanoseconds."""

    answer: Answer
    came: int
    written: list[int]

    @property
    def ttft(self) -> float:
        return self.written[0] - self.came

    @property
    def tpot(self) -> float:
        return (self.written[-1] - self.written[0]) / (PIECES - 1)


@pytest.fixture(scope="module")
def timed() -> list[Timed]:
    """Answers of a server that keeps a schedule, as well as the machine lets it, and notes it."""
    noted: list[list[int]] = []

    async def behave(talk: faults.Talk) -> None:
        noted.append([perf_counter_ns()])
        await talk.head()
        await talk.event(talk.message("", role="assistant"))
        for place in range(PIECES):
            await asyncio.sleep(GAP_S if place else FIRST_S)
            noted[-1].append(perf_counter_ns())
            await talk.event(talk.message("x"))
        await talk.finish(tokens=PIECES)

    with faults.serving(behave) as server:
        answers = [answer(ask(server.url)) for _ in range(4)]
    return [Timed(each, times[0], times[1:]) for each, times in zip(answers, noted, strict=True)]


def test_nothing_is_heard_before_it_is_said(timed: list[Timed]) -> None:
    for each in timed:
        heard = each.answer.heard
        assert heard.begun_ns <= heard.sent_ns <= each.came
        assert len(heard.message_ns) == PIECES
        assert all(said <= time for said, time in zip(each.written, heard.message_ns, strict=True))


def test_the_first_token_is_the_first_text_and_not_the_role(timed: list[Timed]) -> None:
    assert all(figures.ttft(each.answer) >= each.ttft >= FIRST_S * 1e9 for each in timed)
    assert min(figures.ttft(each.answer) / each.ttft for each in timed) < 1.05


def test_the_time_per_token_is_the_servers(timed: list[Timed]) -> None:
    found = [(figures.tpot(each.answer) or 0.0) / each.tpot for each in timed]
    assert min(abs(each - 1) for each in found) < 0.05
    # On a busy machine two messages may arrive at once, of which no gap is known.
    assert max(len(figures.itl(each.answer)) for each in timed) == PIECES - 1


def test_the_whole_is_its_parts(timed: list[Timed]) -> None:
    for each in timed:
        per_token = figures.tpot(each.answer)
        assert per_token is not None
        assert figures.e2e(each.answer) == pytest.approx(
            figures.ttft(each.answer) + (PIECES - 1) * per_token, rel=1e-9
        )


def test_the_key_is_sent_and_not_kept() -> None:
    said = json.dumps({"error": {"message": f"the key {KEY} has no credit"}})
    with faults.serving(faults.status("402 Payment Required", said)) as server:
        heard = ask(server.url, key=KEY)
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
    assert heard.why == "402: the key [key] has no credit"
    with faults.serving(faults.says(f"I saw {KEY}")) as server:
        assert ask(server.url, key=KEY).text == "I saw [key]"


def test_nothing_of_the_environment_is_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password something\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with faults.serving(faults.says("1")) as server:
        assert ask(server.url).end == "finished"
        assert "authorization" not in server.headers[-1]


def test_an_interrupted_request_is_handed_over_too() -> None:
    found: list[Heard] = []

    async def interrupted(url: str) -> None:
        async with Client(url, PATHS["chat"], ApiKey(), PATIENT).opened() as client:
            task = asyncio.create_task(client.ask(b"{}", True, found.append))
            await asyncio.sleep(0.2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    with faults.serving(faults.stalls) as server:
        asyncio.run(interrupted(server.url))
    assert [(each.end, each.text) for each in found] == [("cancelled", "1234")]


# ------------------------------------------------------------------------------------------------- the reader


@pytest.mark.parametrize("cut", range(1, 12))
def test_events_do_not_depend_on_where_they_are_cut(cut: int) -> None:
    whole = "data: é\r\n\r\n: no\ndata:1\ndata: 2\r\rid: 3\nretry: 4\nstrange\n\ndata\n\n".encode()
    reader = EventReader()
    found = [data for start in range(0, len(whole), cut) for data in reader.feed(whole[start : start + cut])]
    assert found == ["é", "1\n2"]
    assert (reader.strange, reader.is_within_event) == ("'strange'", False)


@pytest.mark.parametrize("cut", [1, 2, 3, 20])
def test_a_mark_of_the_byte_order_before_the_first_line_is_none_of_it(cut: int) -> None:
    whole = "\ufeffdata: 1\n\n\ufeffdata: 2\n\n".encode()
    reader = EventReader()
    found = [data for start in range(0, len(whole), cut) for data in reader.feed(whole[start : start + cut])]
    assert (found, reader.strange) == (["1"], repr("\ufeffdata: 2"))


def test_an_event_is_bounded_and_comments_are_not_counted() -> None:
    reader = EventReader(longest=100)
    for _ in range(50):
        assert list(reader.feed(b": ping ping ping\n")) == []
    assert list(reader.feed(b"data: " + b"x" * 80 + b"\n\n")) == ["x" * 80]
    with pytest.raises(BadStream, match="more than 100 bytes"):
        list(reader.feed(b"data: " + b"x" * 60 + b"\ndata: " + b"x" * 60))
