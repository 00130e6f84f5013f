"""Interleaved decoding: blocks of a template are written without the model, and the output stays one of the
grammar."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from decode_tools import Around, AroundGrammar, FakeModel, NeitherBackNorCopy, regex, replayed, request, serve

from harness.backend.bridge.thinking import think_end
from harness.backend.grammar import Adapter, CompiledGrammar, Grammar
from harness.backend.registry import load
from harness.backend.vocabulary.load import load_vocabulary
from harness.oracle.judge import is_valid
from harness.serve.decode.workloads import answer, find_workload, judge, requests
from harness.walk.loop.outcome import Completed
from harness.walk.loop.request import Request
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.interleaved import Interleaved
from harness.walk.loop.template import template_of

PROBE = load_vocabulary("probe")
BACKENDS = ("llguidance", "xgrammar")


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SMALL = [
    closed(
        tool={"const": "resize_picture"},
        size=closed(width={"enum": [64, 128, 640]}, unit={"enum": ["pixels", "points"]}),
        keep={"type": "boolean"},
    ),
    closed(
        name={"type": "string", "maxLength": 6},
        tags={"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        done={"const": None},
    ),
    closed(**{'an"odd name é': {"enum": ["x", "y"]}, "other": closed(inner={"enum": [1, 2]})}),
]
GRAMMARS = [Grammar("json_schema", json.dumps(schema)) for schema in SMALL]


@cache
def adapter(name: str) -> Adapter:
    return load(name)(PROBE)


def served(
    made: Sequence[Request], backend: Adapter, strategy: type[Strategy] = Interleaved, **options: Any
) -> list[Completed]:
    return serve(made, backend, strategy, FakeModel(PROBE, positions=2048, chunk=64, end=-3), **options)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_chosen_freely_is_valid_and_takes_fewer_passes(backend: str) -> None:
    made = [
        request(f"{number} {seed}", grammar, limit=400, seed=seed)
        for number, grammar in enumerate(GRAMMARS)
        for seed in range(2)
    ]
    for each, wanted in zip(served(made, adapter(backend)), made, strict=True):
        assert wanted.grammar is not None
        assert each.end == "end_of_sequence", (each.end, each.why)
        output = PROBE.decode(each.ids)
        assert is_valid(wanted.grammar, output)
        assert each.account.forced > 0 and each.account.passes < len(each.ids)
        assert each.account.passes == each.account.sampled
        blocks = template_of(wanted.grammar)
        assert blocks is not None and output.startswith(
            blocks.blocks[0]
        )  # whatever blanks the model would like


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("workload", ["function_calls", "nested_objects", "all_forced", "reasoning"])
def test_a_replay_gives_the_text_in_fewer_passes(backend: str, workload: str) -> None:
    texts = find_workload(workload).texts
    made = requests(find_workload(workload), PROBE, count=len(texts), prompt_tokens=4)
    steps, found = (
        served(made, adapter(backend), strategy, think_end=(think_end(PROBE),))
        for strategy in (Strategy, Interleaved)
    )
    for text, step, each in zip(texts, steps, found, strict=True):
        assert step.end == each.end == "end_of_sequence", (text.name, each.why)
        output = answer(text, each.ids, PROBE)
        assert output == text.content and judge(text, output) == "valid"
        template = text.grammar.dialect == "json_schema" and template_of(text.grammar)
        if template:
            assert each.account.passes < step.account.passes
            written = (
                len(PROBE.decode(each.ids))
                and each.account.forced + each.account.retokenized - each.account.rolled_back
            )
            assert each.account.passes == len(each.ids) - written
        else:
            assert each.ids == step.ids and each.account == step.account


def test_the_blocks_of_a_template_are_what_is_saved() -> None:
    """Of an object of constants only the end is left to the model."""
    (made,) = [
        each
        for each in requests(find_workload("all_forced"), PROBE, count=4, prompt_tokens=4)
        if "object of constants" in each.name
    ]
    (done,) = served([made], adapter("llguidance"))
    assert done.account.passes == 1 and done.account.forced == len(done.ids) - 1


class RefusesLong(Around):
    """Takes no more than two tokens at once: no block fits."""

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        return super().accept_tokens(tokens) if len(tokens) <= 2 else 0


class Wrapping(Adapter):
    distribution = ""
    dialects = frozenset({"json_schema"})

    def __init__(self, inner: Adapter, make: type[Around]) -> None:
        super().__init__(inner.vocabulary)
        self.inner, self.make = inner, make

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        return AroundGrammar(grammar, self.inner.compile(grammar), self.make)


@pytest.mark.parametrize("make", [RefusesLong, NeitherBackNorCopy])
def test_what_the_grammar_refuses_is_not_written(make: type[Around]) -> None:
    made = [
        request("free", GRAMMARS[0], limit=300, seed=3),
        replayed("replay", GRAMMARS[2], b'{"an\\"odd name \xc3\xa9": "x", "other": {"inner": 2}}', PROBE),
    ]
    backing = Wrapping(adapter("llguidance"), make)
    steps = served(made, backing, Strategy)
    for step, each in zip(steps, served(made, backing), strict=True):
        assert (
            each.ids == step.ids
            and each.end == step.end in ("limit", "end_of_sequence")
            and each.account == step.account
        )


def test_a_reference_in_another_style_is_replayed_as_it_is() -> None:
    open_schema = {key: value for key, value in SMALL[2].items() if key != "additionalProperties"}
    text = b'{"an\\"odd name \xc3\xa9": "x", "other": {"inner": 2}, "more": 1}'
    (done,) = served(
        [replayed("r", Grammar("json_schema", json.dumps(open_schema)), text, PROBE)], adapter("llguidance")
    )
    assert done.end == "end_of_sequence" and PROBE.decode(done.ids) == text


def test_other_grammars_and_none_are_decoded_stepwise() -> None:
    made = [
        request("regex", regex("[ab]{9}")),
        request("schema", Grammar("json_schema", '{"enum": ["ab", "cd"]}')),
        request("none"),
    ]
    steps = served(made, adapter("llguidance"), Strategy)
    assert [each.ids for each in served(made, adapter("llguidance"))] == [each.ids for each in steps]


def test_a_block_that_is_never_tried_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asking the grammar, a refused block is the end of the request."""
    from harness.walk.loop.active import ActiveRequest

    monkeypatch.setattr(ActiveRequest, "allowed_behind", lambda self, tokens: lambda token: True)
    (done,) = served(
        [request("free", GRAMMARS[0], limit=300, seed=3)], Wrapping(adapter("llguidance"), RefusesLong)
    )
    assert done.end == "fault"


def test_nothing_is_kept_of_requests_that_are_done() -> None:
    kept: list[Interleaved] = []

    def make(vocabulary: Any) -> Strategy:
        kept.append(Interleaved(vocabulary))
        return kept[-1]

    serve(
        [request(str(n), GRAMMARS[n % 3], limit=9 + n * 9, seed=n) for n in range(6)],
        adapter("llguidance"),
        make,
        FakeModel(PROBE, positions=512),
    )
    assert kept[0]._places == {}
