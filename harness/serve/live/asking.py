"""What a session asks: the case of each request, its prompt, its grammar as it is sent, and its body."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from harness.backend.grammar import Grammar
from harness.cases.case import Case, as_written, json_text
from harness.serve.live.dialects import grammar_fields
from harness.serve.live.server import Server

Grammars = Literal["warm", "cold", "mixed"]

PROMPT = "Write one text that fits this {kind}. Answer with the text alone, without a remark.\n{grammar}\n"

SHOWN = 2_000
"""The most characters of the grammar that a prompt shows."""

KINDS = {
    "json_schema": "JSON Schema",
    "regex": "regular expression",
    "ebnf": "grammar",
    "lark": "Lark grammar",
    "choice": "list of choices",
    "structural_tag": "form",
}


@dataclass(frozen=True)
class Sampling:
    """How every request is sampled."""

    limit: int
    """The most output tokens."""
    temperature: float
    prompt: str
    seed: int


@dataclass(frozen=True)
class Source:
    """A case of the run, and where it comes from."""

    suite: str
    suite_version: str
    case: Case


def order(count: int, requests: int, seed: int) -> list[int]:
    """Returns the index of the case of each request: all cases in a seeded order, again and again."""
    places = list(range(count))
    Random(seed).shuffle(places)
    return [places[number % count] for number in range(requests)]


def unique(grammar: Grammar, salt: str) -> Grammar | None:
    """Returns a grammar of the same language that, as text, no server can have seen; None where the dialect
    has no way to make one."""
    if grammar.dialect in ("ebnf", "lark"):
        return Grammar(grammar.dialect, f"{grammar.text}\n# {salt}\n")
    if grammar.dialect != "json_schema":
        return None
    schema = json.loads(grammar.text, parse_float=as_written)
    if not isinstance(schema, dict):
        return None
    described = schema.get("description", "")
    return Grammar(
        "json_schema",
        json_text({**schema, "description": f"{described} {salt}".strip()}),
    )


def salt_of(run: str, seed: int, load: int, number: int) -> str:
    """Returns eight hexadecimal digits with which a prompt begins, so that neither a twin nor a later session
    finds its prompt in the server's prefix cache. `run` is the session's id."""
    return hashlib.sha256(f"{run}:{seed}:{load}:{number}".encode()).hexdigest()[:8]


def prompt_of(case: Case, sampling: Sampling, salt: str) -> str:
    """Returns the prompt of a request; those of two twins differ in the salt only."""
    shown = case.grammar.text if len(case.grammar.text) <= SHOWN else f"{case.grammar.text[:SHOWN]} ..."
    text = sampling.prompt.replace("{kind}", KINDS[case.grammar.dialect]).replace("{name}", case.name[:200])
    return f"{salt} {text.replace('{grammar}', shown)}"


def body_of(
    server: Server, sampling: Sampling, prompt: str, number: int, grammar: Grammar | None
) -> bytes | None:
    """Returns the request's body; None if this server has no way to express the grammar."""
    fields = {} if grammar is None else grammar_fields(server.dialect, server.endpoint, grammar)
    if fields is None:
        return None
    asked: dict[str, Any] = (
        {"messages": [{"role": "user", "content": prompt}]}
        if server.endpoint == "chat"
        else {"prompt": prompt}
    )
    sampled = {"temperature": sampling.temperature, "seed": (sampling.seed + number) % (1 << 31)}
    body = {
        "model": server.model,
        **asked,
        server.limit_field: sampling.limit,
        **{name: value for name, value in sampled.items() if name not in server.left_out},
        "stream": True,
        "stream_options": {"include_usage": True},
        **fields,
    }
    return json_text(body).encode()


def not_offered(server: Server, sources: Sequence[Source]) -> dict[int, str]:
    """Returns why cases are not sent with their grammar, by the place of the case."""
    refused = {}
    offered = server.dialect.fields(server.endpoint)
    for place, source in enumerate(sources):
        dialect = source.case.grammar.dialect
        if dialect not in offered:
            refused[place] = (
                f"declined: not offered: {server.dialect.name} takes no {dialect} at {server.endpoint}"
            )
            continue
        try:
            body_of(server, sampling=_TRY, prompt="", number=0, grammar=source.case.grammar)
        except RecursionError:
            refused[place] = "declined: not offered: the grammar nests too deeply to be sent"
    return refused


_TRY = Sampling(1, 0.0, "", 0)
