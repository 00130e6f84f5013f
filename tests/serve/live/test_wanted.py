"""Models that refuse fields of a request by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fault_server as faults
import pytest
from live.sessions import CHATTER, rows_of, run, write_suite

from harness.errors import OK
from harness.serve.live.record import read_session

pytestmark = pytest.mark.usefixtures("quick")

OPENAI: dict[str, Any] = {"/v1/models": {"data": [{"id": "a-model", "owned_by": "openai"}]}}
RENAMED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)
OWN_ONLY = (
    "Unsupported value: 'temperature' does not support 0 with this model. "
    "Only the default (1) value is supported."
)


def newer(talk: faults.Talk) -> str | None:
    """Returns why a newer model of OpenAI's refuses the request."""
    if "max_tokens" in talk.body:
        return RENAMED
    return OWN_ONLY if talk.body.get("temperature", 1) != 1 else None


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "mine.jsonl", {"number": {"schema": {"type": "integer"}}})


def behaviour(refusal: Any) -> faults.Behaviour:
    async def behave(talk: faults.Talk) -> None:
        if (why := refusal(talk)) is not None:
            await faults.status("400 Bad Request", json.dumps({"error": {"message": why}}))(talk)
            return
        await talk.head()
        await talk.texts(["12" if "response_format" in talk.body else CHATTER])
        await talk.finish(tokens=1)

    return behave


def test_what_a_model_refuses_by_name_is_named_otherwise_or_left_out(
    tmp_path: Path, suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (renamed, hot, *sent) = run(behaviour(newer), tmp_path / "out", suite, "--gate", facts=OPENAI)
    assert code == OK
    assert {row.status for row in rows_of(tmp_path / "out")} == {"ok"}
    assert "max_tokens" in renamed and "temperature" in hot
    for body in sent:
        assert "max_completion_tokens" in body and not {"max_tokens", "temperature"} & body.keys()
        assert "seed" in body
    assert read_session(tmp_path / "out").setup.left_out == ("temperature",)
    assert "the model refuses temperature, so the model's own values are used" in capsys.readouterr().out


@pytest.mark.parametrize(
    "why",
    [
        "Could not finish the message because max_tokens was reached. Please try a higher max_tokens.",
        "The model `a-model` does not exist or you do not have access to it.",
    ],
)
def test_what_is_refused_for_another_reason_is_sent_as_it_was(tmp_path: Path, suite: Path, why: str) -> None:
    _, asked = run(behaviour(lambda _: why), tmp_path / "out", suite, facts=OPENAI)
    assert asked and all({"max_tokens", "temperature", "seed"} <= body.keys() for body in asked)
    assert read_session(tmp_path / "out").setup.left_out == ()


def test_a_server_of_an_engine_is_not_asked_first(tmp_path: Path, suite: Path) -> None:
    once = ("--requests", "1", "--pairs", "off", "--grammars", "mixed")
    _, asked = run(behaviour(lambda _: None), tmp_path / "out", suite, *once)
    assert len(asked) == 1
