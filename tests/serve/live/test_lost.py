"""A text that had ended before its connection did, or before a deadline passed: it is judged, and the end
stays what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fault_server as faults
import pytest
from live.one_request import PATIENT, answer, ask
from live.sessions import CHATTER, obeys, rows_of, run, write_suite

from harness.errors import GATE_FAILED
from harness.serve.live.answer import Heard
from harness.serve.live.record import read_session

pytestmark = pytest.mark.usefixtures("quick")

DROPS = {"drops": ("dropped", "stream"), "hangs": ("timeout", "stall")}


def lost(
    how: str, text: str | Callable[[faults.Body], str], *, reason: str | None = "stop", before: bytes = b""
) -> faults.Behaviour:
    """Returns a server that sends the text and the reason of its end, and then hangs or drops the
    connection."""

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        if before:
            await talk.chunk(before)
        await talk.texts([text if isinstance(text, str) else text(talk.body)])
        if reason:
            await talk.event(talk.message(None, reason))
        if how == "hangs":
            await asyncio.sleep(faults.LONG)
        talk.writer.close()

    return behave


def heard_of(behaviour: faults.Behaviour) -> Heard:
    with faults.serving(behaviour) as server:
        return ask(server.url, replace(PATIENT, stall_s=0.3))


@pytest.mark.parametrize("how", DROPS)
@pytest.mark.parametrize(
    ("reason", "text_end"),
    [
        ("stop", "finished"),
        ("length", "truncated"),
        *((other, "") for other in (None, "abort", "tool_calls", "content_filter")),
    ],
)
def test_the_text_has_ended_where_the_reason_came(how: str, reason: str | None, text_end: str) -> None:
    heard = heard_of(lost(how, "12", reason=reason))
    assert (heard.end, heard.phase) == DROPS[how]
    assert heard.text_end == answer(heard).text_end == text_end and not answer(heard).is_answered


REFUSED = b'data: {"choices": [{"index": 0, "delta": {"refusal": "No"}}]}\n\n'
UNREAD = b'dat: {"choices": [{"index": 0, "delta": {"content": "1"}}]}\n\n'


@pytest.mark.parametrize("before", [REFUSED, UNREAD], ids=["a refusal", "a line that cannot be read"])
def test_a_text_that_is_not_all_or_not_meant_is_none(before: bytes) -> None:
    heard = heard_of(lost("drops", "12", before=before))
    assert (heard.end, heard.text_end) == ("dropped", "")


@pytest.mark.parametrize("behaviour", [faults.says("12"), faults.truncates, faults.aborts])
def test_an_exchange_that_came_to_its_end_has_no_second_one(behaviour: faults.Behaviour) -> None:
    heard = heard_of(behaviour)
    assert heard.text_end == "" and answer(heard).text_end == (heard.end if heard.end != "aborted" else "")


WORD: dict[str, dict[str, Any]] = {"word": {"regex": "[a-c]{3}"}}
OPTIONS = ("--gate", "--pairs", "off", "--grammars", "mixed", "--concurrency", "8", "--stall-timeout", "0.3")


@pytest.mark.parametrize(("how", "status"), [("drops", "backend_error"), ("hangs", "timeout")])
@pytest.mark.parametrize(("text", "is_valid"), [(obeys, True), (CHATTER, False)])
def test_a_text_that_had_ended_is_judged(
    how: str,
    status: str,
    text: str | Callable[[faults.Body], str],
    is_valid: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    suite = write_suite(tmp_path / "mine.jsonl", WORD)
    assert run(lost(how, text), tmp_path / "run", suite, *OPTIONS)[0] == GATE_FAILED
    said = " ".join(capsys.readouterr().out.split())
    assert ("regex: kept: 8/8 outputs valid" in said) == is_valid
    assert ("regex: THE SERVER IGNORES THE GRAMMAR: 0/8 outputs valid" in said) == (not is_valid)
    assert "judged, but not answered: 8 texts that ended before" in said and "0/8 - - - -" in said
    assert f"8 requests failed, the first: {DROPS[how][0]}: " in said
    rows = rows_of(tmp_path / "run")
    assert {(row.status, row.valid, row.accepted) for row in rows} == {(status, is_valid, None)}
    assert all(("without regard to the grammar" in row.text) == (not is_valid) for row in rows)
    assert read_session(tmp_path / "run").not_judged_yet == 0
