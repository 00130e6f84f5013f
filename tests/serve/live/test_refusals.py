"""What a refusal says of the grammar, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fault_server as faults
import pytest
from live.one_request import ask
from live.sessions import obeys, rows_of, run, way, write_suite

from harness.errors import OK, UNPROVEN
from harness.serve.live.dialects import DIALECTS

pytestmark = pytest.mark.usefixtures("quick")

SGLANG: dict[str, Any] = {
    "/v1/models": {"data": [{"id": "a-model", "owned_by": "sglang"}]},
    "/get_server_info": {"version": "0.5.5"},
}
WHY = "Failed to compile regex grammar: unsupported lookahead"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "mine.jsonl", {"word": {"regex": "[a-c]{3}"}})


def kinds(folder: Path) -> set[tuple[str, str, str]]:
    return {(row.status, row.phase, row.text) for row in rows_of(folder)}


# ------------------------------------------------------------------------------------------ within the stream


def says_error(code: Any, *before: str) -> faults.Behaviour:
    """Returns a server that sends the texts and then an error, as SGLang does."""

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(before)
        await talk.event({"error": {"object": "error", "message": WHY, "param": None, "code": code}})
        await talk.event("[DONE]")
        await talk.raw(b"0\r\n\r\n")

    return behave


@pytest.mark.parametrize(
    ("refuses_in_stream", "code", "before", "end"),
    [
        (True, 400, (), "refused"),
        (True, 422, (), "refused"),
        (True, 400, ("12",), "failed"),
        (True, 500, (), "failed"),
        (True, None, (), "failed"),
        (True, True, (), "failed"),
        (False, 400, (), "failed"),
    ],
)
def test_an_error_within_the_stream_refuses_only_as_sglang_says_it(
    refuses_in_stream: bool, code: Any, before: tuple[str, ...], end: str
) -> None:
    with faults.serving(says_error(code, *before)) as server:
        heard = ask(server.url, refuses_in_stream=refuses_in_stream)
    assert (heard.end, heard.phase) == (end, "stream")
    assert WHY in heard.why and heard.why.startswith("4") == (end == "refused")


def test_only_sglang_is_heard_so() -> None:
    assert [name for name, dialect in DIALECTS.items() if dialect.refuses_in_stream] == ["sglang"]


def test_a_grammar_that_sglang_does_not_compile_is_declined(suite: Path, tmp_path: Path) -> None:
    async def behave(talk: faults.Talk) -> None:
        await (says_error(400) if "regex" in talk.body else faults.says("abc"))(talk)

    code, _ = run(behave, tmp_path / "run", suite, "--gate", facts=SGLANG)
    assert code == UNPROVEN
    assert kinds(tmp_path / "run") == {("unsupported", "compile", f"400: an error within the stream: {WHY}")}


def test_what_sglang_refuses_without_a_grammar_too_is_not_the_grammars_fault(
    suite: Path, tmp_path: Path
) -> None:
    run(says_error(400), tmp_path / "run", suite, facts=SGLANG)
    assert {status for status, _, _ in kinds(tmp_path / "run")} == {"skipped"}


# ------------------------------------------------------------------------------------------------ by a status


@pytest.mark.parametrize(
    "status",
    ["429 Too Many Requests", "401 Unauthorized", "404 Not Found", "503 Service Unavailable"],
)
def test_a_twin_that_was_lost_does_not_speak_for_the_grammar(
    status: str, suite: Path, tmp_path: Path
) -> None:
    """The server declines the grammar, and answers one twin of the same case with this status."""
    lost = iter([True])

    async def behave(talk: faults.Talk) -> None:
        if way(talk.body):
            await faults.status("400 Bad Request", '{"error": "no regex here"}')(talk)
        elif next(lost, False):
            await faults.status(status, "not now", "text/plain")(talk)
        else:
            await faults.says("abc")(talk)

    run(behave, tmp_path / "run", suite)
    assert kinds(tmp_path / "run") == {("unsupported", "compile", "400: no regex here")}


@pytest.mark.parametrize(
    "status",
    ["401 Unauthorized", "402 Payment Required", "403 Forbidden", "404 Not Found", "405 No", "407 No"],
)
def test_a_status_that_says_nothing_of_the_grammar_declines_none(
    status: str, suite: Path, tmp_path: Path
) -> None:
    behaviour = faults.status(status, '{"error": {"message": "not for you"}}')
    code, _ = run(behaviour, tmp_path / "run", suite, "--pairs", "off", "--gate")
    assert code == UNPROVEN
    assert kinds(tmp_path / "run") == {
        ("skipped", "status", f"{status[:3]}: not for you (says nothing of the grammar)")
    }


@pytest.mark.parametrize("status", ["400 Bad Request", "413 Too Large", "422 Unprocessable Entity"])
def test_a_status_that_may_be_of_the_grammar_declines_it(status: str, suite: Path, tmp_path: Path) -> None:
    async def behave(talk: faults.Talk) -> None:
        await (faults.status(status, '{"error": "no"}') if way(talk.body) else faults.says(obeys))(talk)

    assert run(behave, tmp_path / "run", suite)[0] == OK
    assert kinds(tmp_path / "run") == {("unsupported", "compile", f"{status[:3]}: no")}
