"""A live session from the command to the rows: what servers do, and what is said of it."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fault_server as faults
import pytest
from live.sessions import CHATTER, obeys, rows_of, run, sharing, way, write_suite

from harness.cli.main import main
from harness.errors import BAD_INPUT, GATE_FAILED, INCOMPLETE, OK, UNPROVEN
from harness.rows.row import verdict
from harness.rows.store import read_cases, read_end, read_info
from harness.serve.live import session
from harness.serve.live.record import Lived, LiveRecorder, read_session
from harness.serve.live.server import find_server

CASES: dict[str, dict[str, Any]] = {
    "number": {"schema": {"type": "integer", "minimum": 10}},
    "word": {"regex": "[a-c]{3,5}"},
    "side": {"choice": ["left", "right"]},
    "rule": {"ebnf": 'root ::= "x" root | "y"'},
}


@pytest.fixture(scope="module", autouse=True)
def shared() -> Iterator[None]:
    with sharing():
        yield


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite") / "mine.jsonl", CASES)


def verdicts(folder: Path) -> dict[str, Counter[str]]:
    """By case."""
    found: dict[str, Counter[str]] = {}
    for row in rows_of(folder):
        found.setdefault(row.case, Counter())[verdict(row.status, row.valid, row.accepted)] += 1
    return found


# ---------------------------------------------------------------------------------------------- a good server


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, suite: Path) -> tuple[Path, int, list[Any]]:
    """A session with a server that keeps every grammar: two loads, each with its twin. It pauses between
    messages, because those that come in one read have no gap between them."""
    out = tmp_path_factory.mktemp("good") / "run"
    return out, *run(
        faults.says(obeys, pieces=3, gap_s=0.03), out, suite, "--gate", "--rate", "200", "--concurrency", "2"
    )


def test_a_good_server_passes_everywhere(good: tuple[Path, int, list[Any]]) -> None:
    out, code, asked = good
    assert code == OK
    assert verdicts(out) == {name: Counter({"pass": 5}) for name in CASES}
    assert Counter(map(way, asked)) == {"json": 5, "regex": 5, "choice": 5, "grammar": 5, None: 16}
    end = read_end(out)
    assert end is not None and end.statuses == {"ok": 20}


def test_the_twin_is_the_same_but_for_the_grammar_and_the_salt(good: tuple[Path, int, list[Any]]) -> None:
    _, _, asked = good
    constrained, plain = asked[4:12], asked[12:20]

    def same(body: faults.Body) -> tuple[str, str]:
        text = body["messages"][0]["content"]
        rest = {name: value for name, value in body.items() if name not in ("messages", "structured_outputs")}
        return re.sub("^[0-9a-f]{8} ", "", text), json.dumps(rest, sort_keys=True)

    assert sorted(map(same, constrained)) == sorted(map(same, plain))
    salts = [body["messages"][0]["content"][:8] for body in asked]
    assert len(set(salts)) == len(asked)
    assert all(body["stream_options"] == {"include_usage": True} for body in asked)


def test_the_first_requests_are_cold_and_the_others_warm(good: tuple[Path, int, list[Any]]) -> None:
    lived = read_session(good[0])
    states = {(lived.load(each).kind, each.role): Counter[str]() for each in lived.answers}
    for each in lived.answers:
        states[lived.load(each).kind, each.role][each.state] += 1
    assert states == {
        ("first", "constrained"): {"cold": 4},
        ("poisson", "constrained"): {"warm": 8},
        ("poisson", "none"): {"": 8},
        ("closed", "constrained"): {"warm": 8},
        ("closed", "none"): {"": 8},
    }
    assert [each.role for each in lived.setup.loads] == [
        "constrained",
        "constrained",
        "none",
        "none",
        "constrained",
    ]


def test_the_cases_of_the_run_hold_what_was_written(good: tuple[Path, int, list[Any]]) -> None:
    found = {case.name: case for _, _, case in read_cases(good[0])}
    assert {each.content for each in found["rule"].instances} == {b"xxy"}
    assert [each.instance for each in rows_of(good[0]) if each.case == "rule"] == list(range(5))
    assert all(each.valid for case in found.values() for each in case.instances)


@pytest.mark.parametrize(
    "command", [["table"], ["table", "--format", "csv"], ["report"], ["compare"], ["compare", "--record"]]
)
def test_the_other_commands_work_on_the_run(
    good: tuple[Path, int, list[Any]], command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {
        "report": ["--out", str(tmp_path)],
        "compare": [str(tmp_path / "record.json")] if "--record" in command else [str(good[0]), "--gate"],
    }
    verb, *options = command
    assert main([verb, str(good[0]), *options, *more.get(verb, [])]) == OK
    assert capsys.readouterr().out
    if verb == "report":
        page = (tmp_path / "report.html").read_text("utf-8")
        assert "Live servers" in page and "ebnf: kept: 5/5 outputs valid; without a grammar 0/4" in page


def test_what_is_stored_is_shown_within_80_columns(
    good: tuple[Path, int, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["live", "--show", str(good[0])]) == OK
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "regex: kept: 5/5 outputs valid; without a grammar 0/4" in said
    assert "with grammar: 20 finished" in said
    assert main(["live", "--show", str(good[0]), "--json"]) == OK
    found = json.loads(capsys.readouterr().out)
    assert found["gate"]["verdict"] == "holds"
    assert [each["over_twin"]["pairs"] for each in found["loads"] if each["over_twin"]] == [8, 8]
    gaps = found["loads"][1]["itl"]["n"]
    assert gaps > 8 and f"({gaps:.0f} gaps between messages)" in said.partition(found["loads"][1]["name"])[2]
    assert found["loads"][1]["ttft"]["n"] == 8 and found["loads"][1]["tokens_counted_by_server"] == 8


# ----------------------------------------------------------------------------------- servers that do not obey


def ignores(*ways: str) -> Callable[[faults.Body], str]:
    return lambda body: CHATTER if way(body) in ways else obeys(body)


def test_a_server_that_ignores_the_grammar_is_caught(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(
        faults.says(ignores("json", "regex", "choice", "grammar")), tmp_path / "run", suite, "--gate"
    )
    assert code == GATE_FAILED
    said = capsys.readouterr().out
    for dialect in ("json_schema", "regex", "choice", "ebnf"):
        assert f"{dialect}: THE SERVER IGNORES THE GRAMMAR: 0/3 outputs valid" in said
    assert verdicts(tmp_path / "run") == {name: Counter({"under_constrained": 3}) for name in CASES}
    assert main(["live", "--show", str(tmp_path / "run")]) == OK  # without --gate
    assert main(["repro", str(tmp_path / "run"), "word", "--backends", "vllm"]) == OK
    assert "a live server wrote it" in capsys.readouterr().out


def test_one_way_that_is_ignored_is_caught(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(faults.says(ignores("regex")), tmp_path / "run", suite, "--gate")
    assert code == GATE_FAILED
    said = capsys.readouterr().out
    assert (
        "regex: THE SERVER IGNORES THE GRAMMAR" in said
        and "json_schema: kept" in said
        and "ebnf: kept" in said
    )


def test_a_server_that_writes_valid_texts_with_and_without_is_not_accused(
    suite: Path, tmp_path: Path
) -> None:
    only = tmp_path / "only.json"
    only.write_text(json.dumps({"choice": ["left", "right"]}))
    assert run(faults.says("right"), tmp_path / "run", only, "--gate")[0] == OK


def test_now_and_then_is_broken_and_not_ignored(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = iter(range(1000))
    code, _ = run(
        faults.says(lambda body: obeys(body) + (" " if way(body) and next(count) == 2 else "")),
        tmp_path / "run",
        suite,
        "--gate",
    )
    assert code == GATE_FAILED
    assert re.search(r"BROKEN: 2/3 outputs valid; without a grammar 0/2", capsys.readouterr().out)


def refuses(every: int, held: dict[str, Any], reason: str = "stop") -> faults.Behaviour:
    """Obeys, but for every so many-th request, to which the model writes something else than text."""
    count = iter(range(1000))

    async def behave(talk: faults.Talk) -> None:
        if next(count) % every:
            await faults.says(obeys)(talk)
            return
        await talk.head()
        await talk.event({"choices": [{"index": 0, "delta": held, "finish_reason": None}]})
        await talk.finish(reason, tokens=3)

    return behave


CALLED = {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("held", "reason", "why"),
    [
        ({"refusal": "I'm sorry", "content": None}, "stop", "the model refused: I'm sorry"),
        (CALLED, "stop", "the model called a tool and wrote no text"),
        (CALLED, "tool_calls", "the model called a tool and wrote no text"),
        ({"content": "No"}, "content_filter", "a content filter cut the answer off"),
        ({}, "content_filter", "a content filter cut the answer off"),
    ],
)
def test_a_refusal_by_the_model_is_held_against_no_grammar(
    held: dict[str, Any],
    reason: str,
    why: str,
    suite: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _ = run(refuses(1, held, reason), tmp_path / "all", suite, "--gate")
    said = capsys.readouterr().out
    assert code == UNPROVEN and "IGNORES" not in said
    assert (
        "not judged: 20 answers with a refusal, a tool call or a content filter in place of text"
        in " ".join(said.split())
    )
    assert f"20: {why}" in said and re.search(
        "(finished|truncated): (refusal|tool calls|content filter)", said
    )
    assert verdicts(tmp_path / "all") == {name: Counter({"unjudged": 3}) for name in CASES}
    assert {(row.status, row.text) for row in rows_of(tmp_path / "all")} == {
        ("skipped", f"{why} (says nothing of the grammar)")
    }
    code, _ = run(refuses(3, held, reason), tmp_path / "some", suite, "--gate")
    assert code == OK and "not judged: 7 answers with a refusal" in capsys.readouterr().out


def cut(text: Callable[[faults.Body], str]) -> faults.Behaviour:
    """Truncated by the limit."""

    async def behave(talk: faults.Talk) -> None:
        await talk.head()
        await talk.texts([text(talk.body)])
        await talk.finish("length", tokens=1)

    return behave


def test_a_truncated_text_counts_only_where_nothing_could_complete_it(suite: Path, tmp_path: Path) -> None:
    beginnings = {"json": '{"a": [1, "b', "regex": "ab", "choice": "ri", "grammar": "xx"}
    assert (
        run(cut(lambda body: beginnings.get(way(body) or "", "12")), tmp_path / "a", suite, "--gate")[0]
        == UNPROVEN
    )
    assert verdicts(tmp_path / "a") == {name: Counter({"unjudged": 3}) for name in CASES}
    assert run(cut(lambda body: "Sure"), tmp_path / "b", suite, "--gate")[0] == GATE_FAILED
    assert verdicts(tmp_path / "b") == {name: Counter({"under_constrained": 3}) for name in CASES}


# --------------------------------------------------------------------------------------------- other failures


def refusing(*ways: str | None) -> faults.Behaviour:
    async def behave(talk: faults.Talk) -> None:
        refuse = way(talk.body) in ways
        await (faults.status("400 Bad Request", '{"error": "no"}') if refuse else faults.says(obeys))(talk)

    return behave


def test_a_refused_grammar_is_declined_and_no_pass(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(refusing("grammar"), tmp_path / "run", suite, "--gate")[0] == UNPROVEN
    assert "gate: unproven\n  ebnf: nothing shown: no output is judged\n" in capsys.readouterr().out
    (found,) = {
        (each.status, each.phase, each.text) for each in rows_of(tmp_path / "run") if each.case == "rule"
    }
    assert found == ("unsupported", "compile", "400: no")
    assert verdicts(tmp_path / "run")["rule"] == {"declined": 3}


def test_a_gate_does_not_hold_over_requests_that_were_turned_away(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every dialect has a judged output before the server wants no more."""
    count = iter(range(1000))

    async def behave(talk: faults.Talk) -> None:
        is_open = next(count) < len(CASES)
        await (faults.says(obeys) if is_open else faults.status("429 Too Many Requests", "later"))(talk)

    assert run(behave, tmp_path / "run", suite, "--gate", "--pairs", "off")[0] == UNPROVEN
    said = capsys.readouterr().out
    assert "gate: unproven\n  8 requests with a grammar were refused, but not for it, the first: 429:" in said


def test_what_is_refused_without_a_grammar_too_is_not_the_grammars_fault(suite: Path, tmp_path: Path) -> None:
    assert run(refusing("grammar", None), tmp_path / "run", suite)[0] == OK
    assert {each.status for each in rows_of(tmp_path / "run") if each.case == "rule"} == {"skipped"}


@pytest.mark.parametrize(
    ("behaviour", "status", "end"),
    [
        (faults.status("500 Internal Server Error", "no"), "backend_error", "failed"),
        (faults.status("429 Too Many Requests", "later"), "skipped", "refused"),
        (faults.drops, "backend_error", "dropped"),
        (faults.stalls, "timeout", "timeout"),
        (faults.done_without_reason, "backend_error", "aborted"),
    ],
    ids=["500", "429", "drops", "stalls", "aborted"],
)
def test_failures_are_counted_apart(
    behaviour: faults.Behaviour,
    status: str,
    end: str,
    suite: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = (
        "--gate",
        "--stall-timeout",
        "0.2",
        "--concurrency",
        "8",
        "--pairs",
        "off",
        "--grammars",
        "mixed",
    )
    code, _ = run(behaviour, tmp_path / "run", suite, *options)
    assert code == (UNPROVEN if end == "refused" else GATE_FAILED)
    assert {each.status for each in rows_of(tmp_path / "run")} == {status}
    assert {each.heard.end for each in read_session(tmp_path / "run").answers} == {end}
    assert f"with grammar: 8 {end}" in capsys.readouterr().out


def test_a_full_disk_is_told_with_the_folder_that_was_chosen(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(LiveRecorder, "answer", full)
    with faults.serving(faults.says("12")) as server:
        assert main(["live", server.url, str(suite), "--requests", "2"]) == BAD_INPUT
    (folder,) = Path("results", "runs").iterdir()
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"No space left on device; what was measured is stored in {folder}")


def test_what_the_interface_cannot_say_is_declined_and_not_sent(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with faults.serving(faults.says("12")) as server:
        command = [
            "live",
            server.url,
            str(suite),
            "--out",
            str(tmp_path / "run"),
            "--requests",
            "2",
            "--dialect",
            "openai",
            "--gate",
        ]
        assert main(command) == OK
        assert [body for body in server.asked if "response_format" in body] and not [
            body for body in server.asked if "regex" in body
        ]
    found = {each.case: each for each in rows_of(tmp_path / "run") if each.status == "unsupported"}
    assert set(found) == {"word", "side", "rule"}
    assert found["word"].text == "declined: not offered: openai takes no regex at chat"
    assert "3 cases declined" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------ loads


def test_cold_grammars_are_new_to_the_server_every_time(suite: Path, tmp_path: Path) -> None:
    code, asked = run(faults.says(obeys), tmp_path / "run", suite, "--grammars", "cold", "--gate")
    assert code == OK
    schemas = [json.dumps(body["structured_outputs"]["json"]) for body in asked if way(body) == "json"]
    rules = [body["structured_outputs"]["grammar"] for body in asked if way(body) == "grammar"]
    assert (len(set(schemas)), len(set(rules))) == (2, 2)
    lived = read_session(tmp_path / "run")
    states = Counter((each.case_id, each.state) for each in lived.answers if each.role == "constrained")
    ids = {case.name: case.id for _, _, case in read_cases(tmp_path / "run")}
    assert (
        states[ids["number"], "cold"] == 2 and states[ids["word"], "cold"] == 1
    )  # a regex cannot be made unique


@pytest.mark.parametrize("grammars", ["cold", "mixed"])
def test_cases_that_no_request_is_left_for_are_told_and_prove_nothing(
    grammars: str, suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest was never sent, and the gate held."""
    out = tmp_path / "run"
    options = ("--gate", "--grammars", grammars, "--requests", "2", "--concurrency", "1,2")
    code, asked = run(faults.says(obeys), out, suite, *options)
    assert code == UNPROVEN and len(asked) == 8
    said = capsys.readouterr()
    told = "2 cases not asked: there are fewer requests than cases"
    assert f"\n{told}\n" in said.err and f"\n{told}\ngate: unproven\n  {told}\n" in said.out
    found = Counter((each.status, each.text, each.valid) for each in rows_of(out))
    assert found == {("ok", "", True): 4, ("skipped", told.removeprefix("2 cases "), None): 2}
    assert {each.case for each in rows_of(out)} == set(CASES)
    assert main(["live", "--show", str(out), "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["not_asked"] == 2
    assert main(["report", str(out), "--out", str(tmp_path / "page")]) == OK
    assert f"{told}." in (tmp_path / "page" / "report.html").read_text("utf-8")
    assert run(faults.says(obeys), tmp_path / "all", suite, *options, "--requests", "4")[0] == OK
    assert "not asked" not in capsys.readouterr().out


def test_each_median_over_the_twins_has_its_own_number_of_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the answers have one token, and so no TPOT."""
    count = iter(range(1000))

    async def behave(talk: faults.Talk) -> None:
        pieces = ["ri", "ght"] if next(count) % 2 else ["right"]
        await talk.head()
        await talk.texts(pieces, 0.03)
        await talk.finish(tokens=len(pieces))

    only = write_suite(tmp_path / "only.jsonl", {"side": CASES["side"]})
    assert run(behave, tmp_path / "run", only, "--grammars", "mixed")[0] == OK
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"same load without a grammar, medians: TTFT [^(]+ \(8 pairs\), TPOT x [\d.e-]+ \(4 pairs\)", said
    )
    assert main(["live", "--show", str(tmp_path / "run"), "--json"]) == OK
    over = json.loads(capsys.readouterr().out)["loads"][0]["over_twin"]
    assert (over["pairs"], over["tpot_pairs"]) == (8, 4)


def test_a_trace_that_is_shorter_than_the_requests_asked_for_is_told(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace"
    trace.write_text("0\n0\n0\n0\n")
    told = f"{trace} has 4 arrivals: its load has no more requests"
    for requests, is_told in (("8", True), ("4", False)):
        options = ("--trace", str(trace), "--grammars", "mixed", "--pairs", "off", "--requests", requests)
        assert run(faults.says(obeys), tmp_path / requests, suite, *options)[0] == OK
        assert (told in capsys.readouterr().err) == is_told


def test_a_closed_loop_keeps_its_concurrency(suite: Path, tmp_path: Path) -> None:
    under_way, most = 0, 0

    async def counting(talk: faults.Talk) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        await faults.says(obeys)(talk)

    run(counting, tmp_path / "run", suite, "--concurrency", "3", "--grammars", "mixed")
    assert most == 3


def test_an_open_loop_does_not_wait(suite: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("0\n0.1\n0.1\n0.3\n")
    run(
        faults.says(obeys, first_s=0.5), tmp_path / "run", suite, "--trace", str(trace), "--grammars", "mixed"
    )
    lived = read_session(tmp_path / "run")
    for role in ("constrained", "none"):
        mine = sorted((each for each in lived.answers if each.role == role), key=lambda each: each.number)
        start = mine[0].due_ns
        assert [round((each.due_ns - start) / 1e9, 6) for each in mine] == [0, 0.1, 0.1, 0.3]
        assert all(each.heard.begun_ns >= each.due_ns for each in mine)
        assert mine[-1].heard.sent_ns < mine[0].heard.done_ns


# --------------------------------------------------------------------------------------------- what is stored


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_session_keeps_what_it_heard(
    sent: signal.Signals, suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with faults.serving(faults.says(obeys, gap_s=0.05)) as server:
        words = [
            "live",
            server.url,
            str(suite),
            "--out",
            str(out),
            "--requests",
            "500",
            "--grammars",
            "mixed",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "harness", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # a shell's background job, as CI may be, ignores it
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (
            not (out / "live.jsonl").exists() or (out / "live.jsonl").read_bytes().count(b"\n") < 4
        ):
            time.sleep(0.05)
        process.send_signal(sent)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == INCOMPLETE
    assert "interrupted; what was measured is stored" in errors and "Traceback" not in errors
    lived = read_session(out)
    assert not lived.is_complete and read_end(out) is None
    done = [each for each in lived.answers if each.heard.end == "finished"]
    assert len(done) >= 2 and len(rows_of(out)) == len(done)
    assert {lived.right(each).right for each in done} == {"valid"}
    assert main(["live", "--show", str(out)]) == INCOMPLETE
    assert main(["compare", str(out), str(out)]) == INCOMPLETE
    assert "is compared with nothing; make it anew" in capsys.readouterr().err


def test_the_key_stands_in_no_file(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-a-secret-of-mine")
    with faults.serving(faults.says("the key sk-a-secret-of-mine is nice")) as server:
        main(
            [
                "live",
                server.url,
                str(suite),
                "--out",
                str(tmp_path / "run"),
                "--requests",
                "2",
                "--key-variable",
                "MY_KEY",
            ]
        )
        assert {each.get("authorization") for each in server.headers} == {"Bearer sk-a-secret-of-mine"}
    assert [
        path.name for path in (tmp_path / "run").iterdir() if b"sk-a-secret-of-mine" in path.read_bytes()
    ] == []


def test_a_record_is_read_as_far_as_it_is_whole(good: tuple[Path, int, list[Any]], tmp_path: Path) -> None:
    lines = (good[0] / "live.jsonl").read_bytes()
    (tmp_path / "live.i64").write_bytes((good[0] / "live.i64").read_bytes())
    (tmp_path / "live.jsonl").write_bytes(lines[: len(lines) // 2])
    found: Lived = read_session(tmp_path)
    assert not found.is_complete and 0 < len(found.answers) <= 36
    whole = read_session(good[0])
    assert found.answers == whole.answers[: len(found.answers)]
    assert read_info(good[0]).arms[0].backend == "vllm"


# -------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://127.0.0.1", "begins with http"),
        ("file:///etc/passwd", "begins with http"),
        ("127.0.0.1:8000", "begins with http"),
        ("http://", "begins with http"),
        ("http://me:secret@127.0.0.1", "GRAMMARBENCH_API_KEY"),
        ("http://127.0.0.1:x", "is no URL"),
        ("http://127.0.0.1:8000/?key=1", "leave out"),
        ("http://127.0.0.1:1/\udcff", "holds a lone surrogate"),
        ("http://127.0.0.1:9", "is the server up?"),
    ],
)
def test_a_wrong_url_is_told_in_one_line(
    url: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["live", url, "--out", str(tmp_path / "run")]) == BAD_INPUT
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1 and "secret" not in errors


@pytest.mark.parametrize(
    ("facts", "options", "said"),
    [
        ({}, [], "cannot tell what server this is"),
        ({}, ["--dialect", "vllm"], "name one with --model"),
        ({}, ["--dialect", "vlmm"], 'did you mean "vllm"?'),
        (
            {},
            ["--dialect", "openai", "--endpoint", "completions", "--model", "m"],
            "takes no grammar at completions",
        ),
        ({}, ["--rate", "0"], "cannot be read"),
        ({}, ["--concurrency", "2,2"], "cannot be read"),
        ({}, ["--burstiness", "2", "--rate", "1"], "--arrivals gamma"),
        ({}, ["--arrivals", "gamma", "--burstiness", "2"], "with --rate; give it too"),
        ({}, ["--arrivals", "poisson", "--concurrency", "2"], "with --rate; give it too"),
        ({}, ["--burstiness", "2"], "--arrivals gamma"),
        ({}, ["--key-variable", "NO_SUCH_KEY"], 'no variable "NO_SUCH_KEY"'),
        ({}, ["--key-variable", ""], 'no variable ""'),
        ({}, ["--trace", "/nowhere"], "cannot be read"),
        ({}, ["--objectives", "speed:1"], "is no objective"),
    ],
)
def test_wrong_options_are_told_in_one_line(
    facts: dict[str, Any],
    options: list[str],
    said: str,
    suite: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _ = run(faults.says("1"), tmp_path / "run", suite, *options, facts=facts)
    assert code == BAD_INPUT
    assert said in capsys.readouterr().err


def test_a_folder_is_never_written_over(
    good: tuple[Path, int, list[Any]], suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in good[0].iterdir()}
    assert run(faults.says("1"), good[0], suite)[0] == BAD_INPUT
    assert "holds a record already" in capsys.readouterr().err
    assert {path.name: path.stat().st_mtime_ns for path in good[0].iterdir()} == before


def test_of_two_sessions_with_one_folder_the_later_one_is_refused(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It looked before it asked its server, and again only where it writes."""
    out = tmp_path / "run"

    def slowly(*arguments: Any) -> Any:
        monkeypatch.setattr(session, "find_server", find_server)
        assert run(faults.says(obeys), out, suite, "--pairs", "off")[0] == OK
        before.update({path.name: path.read_bytes() for path in out.iterdir()})
        return find_server(*arguments)

    before: dict[str, bytes] = {}
    monkeypatch.setattr(session, "find_server", slowly)
    assert run(faults.says("1"), out, suite, "--pairs", "off")[0] == BAD_INPUT
    assert "holds a record already" in capsys.readouterr().err
    assert before and {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_what_a_server_calls_itself_writes_no_line_of_its_own(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = {
        "/v1/models": {"data": [{"id": "m\ngate: holds", "owned_by": "vllm"}]},
        "/version": {"version": "0.11.2\nregex: kept"},
    }
    run(faults.says("1"), tmp_path / "run", suite, "--pairs", "off", facts=facts)
    said = capsys.readouterr().out
    assert "\nvllm 0.11.2\\nregex: kept at http" in said and "\nmodel m\\ngate: holds; 4 cases" in said


def test_hostile_text_reaches_neither_terminal_nor_page(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\ud800<script>alert(1)</script>\x1b[31m\u202e\x00"
    code, _ = run(faults.says(text, pieces=1), tmp_path / "run", suite, "--gate", "--pairs", "off")
    assert code == GATE_FAILED
    assert read_session(tmp_path / "run").answers[0].heard.text == text
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "page")]) == OK
    assert main(["live", "--show", str(tmp_path / "run"), "--json"]) == OK
    said = capsys.readouterr().out
    page = (tmp_path / "page" / "report.html").read_text("utf-8")
    assert not any(each in said for each in ("\x1b", "\u202e", "\x00")) and "<script>alert(1)" not in page
