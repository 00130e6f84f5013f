"""The API key: a secret is kept out of all that is stored or shown, and a placeholder changes no answer."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fault_server as faults
import pytest
from live.one_request import PATIENT, ask
from live.sessions import obeys, rows_of, run, write_suite

from harness.errors import OK, UNPROVEN, BadInput
from harness.serve.live.key import KEY_VARIABLE, ApiKey
from harness.serve.live.record import read_session
from harness.serve.live.server import find_server, key_of

KEY = "sk-VERYSECRET-0123456789abcdef"
BEGINNING = KEY[:8]
"""Some of the key, which is too much."""

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize("placeholder", ["EMPTY", "none", "right"])
def test_a_placeholder_stays_in_the_answers(
    placeholder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, placeholder)
    suite = write_suite(tmp_path / "mine.jsonl", {"side": {"choice": ["left", "right"]}})
    assert run(faults.says(obeys), tmp_path / "run", suite, "--gate")[0] == OK
    assert {row.valid for row in rows_of(tmp_path / "run")} == {True}


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_an_answer_that_held_the_key_is_not_judged(
    reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    suite = write_suite(tmp_path / "mine.jsonl", {"key": {"choice": [KEY, "left"]}})

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts([KEY[:5], KEY[5:]])
        await talk.finish(reason)

    assert run(behave, tmp_path / "run", suite, "--gate", "--pairs", "off")[0] == UNPROVEN
    rows = rows_of(tmp_path / "run")
    assert {(row.status, row.valid, row.text) for row in rows} == {("ok", None, "the text held the API key")}
    assert {answer.heard.text for answer in read_session(tmp_path / "run").answers} == {"[key]"}


def test_an_answer_that_held_no_key_says_so() -> None:
    with faults.serving(faults.says("12")) as server:
        assert ask(server.url, key=KEY).held_key is False


# ------------------------------------------------------------------------------------- scrubbed, and then cut


def at(place: int) -> str:
    """Returns a text in which the key begins so many characters from the start, at a cut or near it."""
    return "." * place + KEY + "." * 400


def error_page(text: str) -> faults.Behaviour:
    return faults.status("502 Bad Gateway", text, "text/plain")


def error_object(text: str) -> faults.Behaviour:
    return faults.status("502 Bad Gateway", json.dumps({"error": {"message": [text]}}))


def says_it(event: str) -> faults.Behaviour:
    """Returns a server that sends this text as an event, where there should be JSON."""

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.event(event)
        await talk.finish()

    return behave


def strange_line(text: str) -> faults.Behaviour:
    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.chunk(f"{text}\n".encode())
        await talk.raw(b"0\r\n\r\n")

    return behave


def reason(text: str) -> faults.Behaviour:
    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["12"])
        await talk.finish(text)

    return behave


CUT = {
    "the body of a status": error_page(at(400 - 12)),
    "a body of another form": error_object(at(400 - 30)),
    "an event that is not JSON": says_it(at(60 - 12)),
    "an event that is no object": says_it(json.dumps([at(60 - 12)])),
    "choices of another type": says_it(json.dumps({"choices": at(60 - 24)})),
    "an error within the stream": says_it(json.dumps({"error": {"message": [at(300 - 14)]}})),
    "a line that is no field": strange_line(at(60 - 12)),
    "a reason of the end": reason(at(40 - 12)),
}


@pytest.mark.parametrize("name", CUT)
def test_a_key_at_a_cut_leaves_nothing_of_itself(name: str) -> None:
    with faults.serving(CUT[name]) as server:
        heard = ask(server.url, key=KEY)
    assert "[key" in heard.why
    assert BEGINNING not in repr(heard)


def test_names_of_times_are_cut_after_the_key_is() -> None:
    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts(["12"])
        await talk.event({"choices": [], "timings": {at(40 - 12): 1.0}})
        await talk.finish()

    with faults.serving(behave) as server:
        heard = ask(server.url, key=KEY)
    assert len(heard.timings) == 1 and BEGINNING not in repr(heard)


def test_a_key_in_the_servers_version_is_cut_out_first() -> None:
    facts = {**faults.FACTS, "/version": {"version": "0.11.2+" + at(80 - 20)}}
    with faults.serving(faults.says("1"), facts) as server:
        found = find_server(server.url, None, None, "chat", ApiKey(KEY), PATIENT)
    assert len(found.version) == 80 and "[key]" in found.version and BEGINNING not in found.version


@pytest.mark.parametrize("model", [None, f"ft:{KEY}"])
def test_a_model_whose_name_holds_the_key_is_not_asked(model: str | None) -> None:
    facts = {**faults.FACTS, "/v1/models": {"data": [{"id": f"m-{KEY}", "owned_by": "vllm"}]}}
    with (
        faults.serving(faults.says("1"), facts) as server,
        pytest.raises(BadInput, match="holds the API key"),
    ):
        find_server(server.url, None, model, "chat", ApiKey(KEY), PATIENT)


QUOTED = 'sk-"quoted\\key"/0123456789<'


@pytest.mark.parametrize(
    "spelled",
    [
        QUOTED,
        json.dumps(QUOTED)[1:-1],
        json.dumps(QUOTED)[1:-1].replace("/", r"\/").replace("<", r"\u003C"),
        "".join(rf"\u{ord(character):04x}" for character in QUOTED),
    ],
)
def test_a_key_is_found_as_json_spells_it(spelled: str) -> None:
    assert ApiKey(QUOTED).scrub(f"a {spelled} b") == "a [key] b"


@pytest.mark.parametrize("behaviour", [error_object(QUOTED), says_it(json.dumps([QUOTED]))])
def test_a_key_that_json_spells_otherwise_is_cut_out(behaviour: faults.Behaviour) -> None:
    with faults.serving(behaviour) as server:
        heard = ask(server.url, key=QUOTED)
    assert "[key]" in heard.why and "quoted" not in repr(heard)


# ----------------------------------------------------------------------------------- from the environment


@pytest.mark.parametrize(("value", "key"), [(f"{KEY} ", KEY), (f"\t{KEY}\n", KEY), (" ", ""), ("", "")])
def test_blanks_around_the_key_are_none_of_it(value: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, value)
    assert key_of(None) == ApiKey(key)


@pytest.mark.parametrize("value", [None, "", " \n"])
@pytest.mark.parametrize("name", ["MY_KEY", "A=B", ""])
def test_a_variable_that_is_named_holds_a_key(
    name: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None and name == "MY_KEY":
        monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=f'no variable "{name}", or no key in it'):
        key_of(name)


@pytest.mark.parametrize(("value", "said"), [("", "wants a key"), (KEY, "wants another key")])
def test_a_server_that_wants_a_key_is_given_that_of_the_variable_in_use(value: str, said: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        with listening.accept()[0] as talk:
            talk.recv(1 << 16)
            talk.sendall(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")

    with listening, ThreadPoolExecutor() as pool:
        pool.submit(refuse)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(BadInput, match=rf"{said} \(status 401\); put it into .* variable MY_KEY$"):
            find_server(url, None, None, "chat", ApiKey(value, "MY_KEY"), PATIENT)


def test_a_key_that_the_library_does_not_send_is_not_printed() -> None:
    with faults.serving(faults.says("1")) as server, pytest.raises(BadInput) as raised:
        find_server(server.url, None, None, "chat", ApiKey(f"{KEY} "), PATIENT)
    assert "[key]" in str(raised.value) and BEGINNING not in str(raised.value)
