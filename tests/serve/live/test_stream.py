"""What streams of good servers hold besides text: usage without choices, annotations, ends of other forms."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import fault_server as faults
import pytest
from live.one_request import answer, ask

from harness.serve.live.answer import Heard
from harness.serve.live.dialects import Endpoint

ANNOTATION: dict[str, Any] = {
    "choices": [
        {"index": 0, "finish_reason": None, "content_filter_results": {}, "content_filter_offsets": {}}
    ]
}
"""The annotation that Azure's asynchronous content filter sends some time after the text."""


def streaming(*events: Any, texts: tuple[str, ...] = ("12",), end: bytes = b"") -> faults.Behaviour:
    """Returns a server that sends the texts, these events, and these bytes."""

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(texts)
        for event in events:
            await talk.event(event)
        if end:
            await talk.chunk(end)
        await talk.raw(b"0\r\n\r\n")

    return behave


def heard_of(behaviour: faults.Behaviour, endpoint: Endpoint = "chat") -> Heard:
    with faults.serving(behaviour) as server:
        return ask(server.url, endpoint=endpoint)


def reason(name: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": name, **more}]}


GOOD = {
    "usage beside choices that are null": (
        reason("stop", delta={}),
        {"choices": None, "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        "[DONE]",
    ),
    "a delta that is null beside the reason": (reason("stop", delta=None), "[DONE]"),
    "a reason without delta": (reason("stop"), "[DONE]"),
    "an annotation before the end": (ANNOTATION, reason("stop", delta={}), "[DONE]"),
    "an annotation after the end": (reason("stop", delta={}), ANNOTATION, "[DONE]"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_stream_is_an_answer(name: str) -> None:
    heard = heard_of(streaming(*GOOD[name]))
    assert (heard.end, heard.text, heard.finish_reason, heard.why) == ("finished", "12", "stop", "")
    assert (heard.messages, heard.empty) == (2, 1)
    assert heard.usage.output == (2 if "usage" in name else None)


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_an_annotation_is_no_message_and_has_no_time(endpoint: Endpoint) -> None:
    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["12"])
        await talk.event(talk.message(None, "stop"))
        await asyncio.sleep(0.5)
        await talk.event(ANNOTATION)
        await talk.event("[DONE]")
        await talk.raw(b"0\r\n\r\n")

    heard = heard_of(behave, endpoint)
    assert (heard.end, heard.messages) == ("finished", 2)
    assert heard.last_ns is not None and heard.done_ns - heard.last_ns > 0.15e9


@pytest.mark.parametrize(
    ("endpoint", "choice", "why"),
    [
        ("chat", {"message": {"content": "12"}}, "a choice without delta"),
        ("chat", {"message": {"content": "12"}, "delta": None}, "a choice without delta"),
        ("chat", {"text": "12"}, "a choice without delta"),
        ("chat", {"delta": "12"}, "a choice without delta"),
        ("completions", {"delta": {"content": "12"}}, "a choice without text"),
        ("completions", {"text": ["12"]}, "text that is no string"),
    ],
)
def test_the_text_of_another_interface_is_malformed(
    endpoint: Endpoint, choice: dict[str, Any], why: str
) -> None:
    event = {"choices": [{"index": 0, "finish_reason": "stop", **choice}]}
    heard = heard_of(streaming(event, "[DONE]", texts=()), endpoint)
    assert (heard.end, heard.why) == ("malformed", why)


def delta(**held: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": held, "finish_reason": None}]}


CALL = delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": "{}"}}])
INSTEAD = {
    "a refusal": (
        [delta(refusal="I'm", content=None), delta(refusal=" sorry")],
        "stop",
        ("finished", "refusal", "the model refused: I'm sorry"),
    ),
    "a refusal that is cut": (
        [delta(refusal="I'm")], "length", ("truncated", "refusal", "the model refused: I'm")
    ),
    "a refusal after some text": (
        [delta(content="1"), delta(refusal="No")], "stop", ("finished", "refusal", "the model refused: No")
    ),
    "a tool call": (
        [CALL], "tool_calls", ("finished", "tool calls", "the model called a tool and wrote no text")
    ),
    "a tool call that stops": (
        [CALL], "stop", ("finished", "tool calls", "the model called a tool and wrote no text")
    ),
    "a text that is filtered": (
        [delta(content="1")],
        "content_filter",
        ("truncated", "content filter", "a content filter cut the answer off"),
    ),
    "a refusal that is filtered": (
        [delta(refusal="No")], "content_filter", ("truncated", "refusal", "the model refused: No")
    ),
    "no refusal": ([delta(content="12", refusal=None, tool_calls=[])], "stop", ("finished", "", "")),
    "a tool call beside text": ([CALL, delta(content="12")], "stop", ("finished", "", "")),
    "tools as the reason without a call": (
        [delta(content="12")],
        "tool_calls",
        ("aborted", "", "the server ended the stream with the reason 'tool_calls'"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSTEAD)
def test_what_comes_in_place_of_the_text_is_told(name: str) -> None:
    events, last, wanted = INSTEAD[name]
    heard = heard_of(streaming(*events, reason(last, delta={}), "[DONE]", texts=()))
    assert (heard.end, heard.instead, heard.why) == wanted
    assert len(heard.message_ns) == len(events) and heard.empty == 1
    assert answer(heard).is_answered is (not heard.instead and heard.end != "aborted")


@pytest.mark.parametrize(("said", "counted"), [(0, 2), (-1, 2), (3, 3)])
def test_a_count_of_no_tokens_beside_text_is_none(said: int, counted: int) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": said}}
    heard = heard_of(streaming(reason("stop", delta={}), usage, "[DONE]", texts=("1", "2")))
    assert heard.usage.prompt == 7 and answer(heard).tokens == counted


@pytest.mark.parametrize(
    "later", [{"total_tokens": 9}, {"completion_tokens": 0}, {"completion_tokens": None}]
)
def test_a_usage_without_a_count_takes_nothing_from_the_count_before(later: dict[str, Any]) -> None:
    counts = [{"prompt_tokens": 7, "completion_tokens": count} for count in (3, 11)]
    usages = ({"choices": [], "usage": usage} for usage in (*counts, later))
    heard = heard_of(streaming(reason("stop", delta={}), *usages, "[DONE]"))
    assert (heard.usage.prompt, heard.usage.output) == (7, 11)


def test_a_second_choice_is_no_part_of_the_answer() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "99"}, "finish_reason": None}]}
    heard = heard_of(streaming(second, reason("stop", delta={}), "[DONE]"))
    assert (heard.end, heard.text) == ("malformed", "12")
    assert heard.why == "a choice of index 1, where one answer was asked for"


@pytest.mark.parametrize(("encoding", "end"), [("gzip", "malformed"), ("Identity", "finished")])
def test_a_packed_body_is_told_as_such(encoding: str, end: str) -> None:
    async def behave(talk: faults.Talk) -> None:
        await talk.head("200 OK", faults.EVENTS, f"content-encoding: {encoding}")
        await talk.texts(["12"])
        await talk.finish()

    heard = heard_of(behave)
    assert heard.end == end
    assert heard.why == ("a content-encoding that was not asked for: 'gzip'" if end == "malformed" else "")


def test_a_refusal_that_is_no_string_is_malformed() -> None:
    heard = heard_of(streaming(delta(refusal=["no"]), reason("stop", delta={}), texts=()))
    assert (heard.end, heard.why) == ("malformed", "text that is no string")


@pytest.mark.parametrize("wrong", [0, "", {}, False])
def test_choices_that_are_empty_but_no_list_are_malformed(wrong: Any) -> None:
    assert heard_of(streaming({"choices": wrong}, reason("stop", delta={}))).end == "malformed"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ('{"type": "overloaded_error", "message": "no capacity"}', "no capacity"),
        ('{"error": {"message": "no capacity"}}', "no capacity"),
        ('{"detail": "no capacity"}', '{"detail": "no capacity"}'),
        ("no capacity", "no capacity"),
        ('"no capacity"', '"no capacity"'),
    ],
)
def test_an_event_named_error_is_an_error_whatever_its_data(data: str, why: str) -> None:
    heard = heard_of(streaming(end=f"event: error\ndata: {data}\n\n".encode()))
    assert (heard.end, heard.why) == ("failed", f"an error within the stream: {why}")


@pytest.mark.parametrize("named", ["event: errors\n", "event: error\n\n", "event: error\nevent: x\n"])
def test_an_event_of_another_name_is_no_error(named: str) -> None:
    """A name without data is of no event, and the last name of several counts."""

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.chunk(f"{named}data: {json.dumps(talk.message('12'))}\n\n".encode())
        await talk.finish()

    heard = heard_of(behave)
    assert (heard.end, heard.text) == ("finished", "12")


# ---------------------------------------------------------------------------------------------- the last line


async def closes(talk: faults.Talk) -> None:
    talk.writer.close()


async def ends(talk: faults.Talk) -> None:
    await talk.raw(b"0\r\n\r\n")


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("close", [closes, ends])
def test_done_with_one_line_end_is_done(
    line_end: str, close: Callable[[faults.Talk], Awaitable[None]]
) -> None:
    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["12"])
        await talk.event(talk.message(None, "stop"))
        await talk.chunk(f"data: [DONE]{line_end}".encode())
        await close(talk)

    heard = heard_of(behave)
    assert (heard.end, heard.text, heard.why) == ("finished", "12", "")


@pytest.mark.parametrize(
    "rest", ["data: [DONE]", "data:[DONE]", "data: [DON", 'data: {"choices": [\n', ": pin"]
)
def test_what_is_cut_off_behind_the_reason_of_the_end_takes_nothing_from_it(rest: str) -> None:
    heard = heard_of(streaming(reason("stop", delta={}), end=rest.encode()))
    assert (heard.end, heard.text, heard.why) == ("finished", "12", "")


@pytest.mark.parametrize(
    ("rest", "end"),
    [
        ("data: [DONE]", "aborted"),
        ("data: [DON", "dropped"),
        ('data: {"choices": [\n', "dropped"),
        ("data: 1\ndata: [DONE]", "dropped"),
        ("data: 1\ndata: [DONE]\n", "dropped"),
    ],
)
def test_without_a_reason_only_the_last_line_is_an_end(rest: str, end: str) -> None:
    heard = heard_of(streaming(end=rest.encode()))
    assert heard.end == end and ("within an event" in heard.why) == (end == "dropped")
