"""`grammarbench live` against a real server: llama-cpp-python's, with every output judged and every time
compared with the server's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from live.server import Server, serving

from harness.cli.main import main
from harness.serve.live import figures
from harness.serve.live.answer import Answer
from harness.serve.live.record import Lived, read_session

RATES = (6.0, 12.0, 24.0)
"""Requests a second."""

FEW, MANY = 14, 84
"""Requests at each rate, with a grammar and as many without: 84 or 504 in all, and one for each case before
them."""

TOLERANCE = {FEW: 0.25, MANY: 0.05}
"""Between the client's times and the server's: of few requests, on a machine that does other things, one that
was held up weighs more."""

CASES = [
    {"description": "a flag", "schema": {"type": "boolean"}},
    {"description": "an enumeration", "schema": {"enum": ["red", "green", "blue", 1, None]}},
    {
        "description": "an object",
        "schema": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
            "additionalProperties": False,
        },
    },
    {
        "description": "an array",
        "schema": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
    },
    {"description": "an answer", "ebnf": 'root ::= "yes" | "no" | "perhaps"'},
    {"description": "a date", "ebnf": 'root ::= [0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" [0-3] [0-9]'},
    {"description": "letters beyond ASCII", "ebnf": 'root ::= [äöü日本]{3,5} "!"'},
]
"""Each ends after a few tokens, whatever a model of random weights makes of it."""


@dataclass(frozen=True)
class Session:
    """As it was recorded, and what was seen of it at the server's door (see serve.py), an answer a line."""

    requests: int
    lived: Lived
    door: list[str]


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.long)],
)
def session(
    server: Server, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Session:
    """Asked once for all tests."""
    folder = tmp_path_factory.mktemp("live")
    before = len(server.log.read_text("utf-8").splitlines())
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    asked = [
        "live",
        server.url,
        str(folder / "cases.jsonl"),
        "--rate",
        ",".join(map(str, RATES)),
        "--requests",
        str(request.param),
    ]
    asked += [
        "--limit",
        "20",
        "--temperature",
        "1",
        "--prompt",
        "Answer. {grammar}",
        "--first-timeout",
        "250",
    ]
    asked += ["--timeout", "300", "--out", str(folder / "run")]
    assert main(asked) == 0
    return Session(
        request.param, read_session(folder / "run"), server.log.read_text("utf-8").splitlines()[before:]
    )


def of(lived: Lived, role: str) -> list[Answer]:
    return [each for each in lived.answers if each.role == role and lived.load(each).kind != "first"]


def test_the_server_is_recognised_and_every_request_is_answered(session: Session) -> None:
    lived = session.lived
    assert lived.is_complete and lived.setup.dialect == "llama-cpp-python"
    assert Counter(each.heard.end for each in lived.answers).keys() <= {"finished", "truncated"}
    assert len(of(lived, "constrained")) == len(of(lived, "none")) == len(RATES) * session.requests


def test_every_constrained_output_is_judged_and_valid(session: Session) -> None:
    judged = [session.lived.right(each) for each in session.lived.answers if each.role == "constrained"]
    assert Counter(each.right for each in judged) == {"valid": len(judged)}


def test_without_a_grammar_the_same_model_writes_nothing_valid(session: Session) -> None:
    """So that it is the grammar that makes the others valid."""
    assert "valid" not in {session.lived.right(each).right for each in of(session.lived, "none")}


@pytest.mark.parametrize("role", ["constrained", "none"])
@pytest.mark.parametrize("figure", ["ttft", "tpot"])
def test_the_clients_times_are_the_servers(session: Session, figure: str, role: str) -> None:
    """The server reports none, so a clock stands at its door (serve.py): medians and sums over the requests
    are nearly the same."""
    pairs = [
        (mine, theirs)
        for each, at_door in matched(session)
        if each.role == role
        for mine, theirs in times(each, at_door, figure)
    ]
    assert len(pairs) > session.requests
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    assert figure == "tpot" or all(mine > at_door for mine, at_door in pairs)
    print(
        f"{figure} {role}: sums {sum(ours) / sum(theirs) - 1:+.2%}, medians "
        f"{median(ours) / median(theirs) - 1:+.2%}"
    )
    assert sum(ours) == pytest.approx(sum(theirs), rel=TOLERANCE[session.requests])
    assert median(ours) == pytest.approx(median(theirs), rel=TOLERANCE[session.requests])


def test_the_server_ends_when_its_input_does(model: Path, tmp_path: Path) -> None:
    """So that none is left behind by tests that were killed."""
    with serving(model, tmp_path) as started:
        assert started.process.stdin is not None and started.process.poll() is None
        started.process.stdin.close()
        assert started.process.wait(60) == 1


def times(answer: Answer, at_door: dict[str, list[int]], figure: str) -> Iterable[tuple[float, float]]:
    """Ours and the server's, if the answer has the figure."""
    if figure == "ttft":
        yield figures.ttft(answer), at_door["text"][0] - at_door["came"][0]
    elif (ours := figures.tpot(answer)) is not None:
        last = "text" if answer.heard.usage.output is None else "choices"
        yield ours, (at_door[last][-1] - at_door["text"][0]) / (answer.tokens - 1)


def matched(session: Session) -> list[tuple[Answer, dict[str, list[int]]]]:
    """Each answer with the door's times of it: in the order of the requests, the first that has the same
    text."""
    waiting = sorted(map(at_the_door, session.door), key=lambda each: each[1]["came"][0])
    found = []
    for answer in sorted(
        (each for each in session.lived.answers if each.heard.message_ns), key=lambda each: each.heard.sent_ns
    ):
        place = next(place for place, (text, _) in enumerate(waiting) if text == answer.heard.text)
        assert place < 20  # requests that came at nearly the same time
        found.append((answer, waiting.pop(place)[1]))
    return found


def at_the_door(line: str) -> tuple[str, dict[str, list[int]]]:
    """Of one answer: its text, and when the request came, messages with text and messages with choices went
    out."""
    answer = json.loads(line)
    text = ""
    seen: dict[str, list[int]] = {"came": [answer["came"]], "text": [], "choices": []}
    for at, piece in answer["pieces"]:
        for part in piece.splitlines():
            if part.startswith("data: {"):
                choice = json.loads(part.removeprefix("data: "))["choices"][0]
                new = choice["delta"].get("content") or ""
                text += new
                seen["choices"].append(at)
                seen["text"] += [at] if new else []
    return text, seen
