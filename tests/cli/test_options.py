"""`decode`, `live` and `adjudicate` hand each option to the field that it is for, and to no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.errors import BadInput

DECODE: list[tuple[str, str, object]] = [
    ("--model 8b", "model", "8b"),
    ("--vocabularies probe", "vocabulary", "probe"),
    ("--strategies jump-forward,stepwise", "strategies", ("jump_forward", "stepwise")),
    ("--batch 1,32", "batches", (1, 32)),
    ("--requests 11", "texts", 11),
    ("--prompt-tokens 12", "prompt_tokens", 12),
    ("--forks 13", "forks", 13),
    ("--rounds 14", "rounds", 14),
    ("--device cpu", "device", "cpu"),
    ("--dtype bfloat16", "dtype", "bfloat16"),
    ("--out folder", "out", Path("folder")),
    ("--timeout 15", "timeout_s", 15.0),
    ("--memory 6", "memory_gb", 6.0),
    ("--objectives ttft:500", "objectives.tpot_ms", None),
    ("--mode greedy", "usual.mode", "greedy"),
    ("--limit 16", "usual.limit", 16),
    ("--rate 17", "usual.rate", 17.0),
    ("--overlap off", "usual.overlap", False),
    ("--fill-threads 18", "usual.fill_threads", 18),
    ("--batch-fill on", "usual.batch_fill", True),
    ("--kernel OWN", "usual.kernel", "own"),
    ("--cache off", "usual.cache", False),
    ("--compile-workers 19", "usual.compile_workers", 19),
    ("--compile-timeout 20", "usual.compile_timeout_s", 20.0),
    ("--poll-interval 21", "usual.poll_interval_s", 21.0),
    ("--most-polls 22", "usual.most_polls", 22),
    ("--fallback abort", "usual.fallback", "abort"),
    ("--draft-tokens 23", "usual.draft_tokens", 23),
]

LIVE: list[tuple[str, str, object]] = [
    ("--connect-timeout 11", "deadlines.connect_s", 11.0),
    ("--first-timeout 12", "deadlines.first_s", 12.0),
    ("--stall-timeout 13", "deadlines.stall_s", 13.0),
    ("--timeout 14", "deadlines.total_s", 14.0),
    ("--limit 15", "sampling.limit", 15),
    ("--temperature 16", "sampling.temperature", 16.0),
    ("--prompt {name}", "sampling.prompt", "{name}"),
    ("--seed 17", "sampling.seed", 17),
    ("--cases 18", "cases", 18),
    ("--dialect vllm", "dialect", "vllm"),
    ("--model small", "model", "small"),
    ("--endpoint completions", "endpoint", "completions"),
    ("--grammars cold", "grammars", "cold"),
    ("--out folder", "out", Path("folder")),
]

ADJUDICATE: list[tuple[str, str, object]] = [
    ("--effort 11", "positions", 11),
    ("--effort all", "positions", None),
    ("--tries 12", "tries", 12),
    ("--timeout 13", "timeout_s", 13.0),
    ("--formats", "formats", True),
]

COMMANDS: dict[str, tuple[str, list[tuple[str, str, object]]]] = {
    "decode --backends reference": ("harness.serve.decode.session.decode", DECODE),
    "live http://127.0.0.1:1": ("harness.serve.live.session.live", LIVE),
    "adjudicate my_run": ("harness.diagnose.adjudicate.adjudicate", ADJUDICATE),
}
"""For each command what it calls, and options with their field and its value."""


@pytest.mark.parametrize(
    ("command", "option", "field", "value"),
    [(command, *one) for command, (_, options) in COMMANDS.items() for one in options],
)
def test_an_option_sets_its_field(
    command: str, option: str, field: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, asked = (_asked(monkeypatch, *command.split(), *given.split()) for given in ("", option))
    assert {name: asked[name] for name in asked if asked[name] != usual[name]} == {field: value}


def _asked(monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, object]:
    """The fields of what the command is about to do, by name."""
    seen: list[Any] = []

    def caught(*arguments: Any) -> None:
        seen.extend(arguments)
        raise BadInput("caught")

    calls = next(calls for command, (calls, _) in COMMANDS.items() if command.startswith(words[0]))
    monkeypatch.setattr(calls, caught)
    assert main(list(words)) == 2
    place = 1 if words[0] == "adjudicate" else 0
    return dict(_leaves(asdict(seen[place])))


def _leaves(fields: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{below}", leaf) for below, leaf in _leaves(value))
        else:
            yield name, value
