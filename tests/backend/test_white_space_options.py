"""The options that bound white space: each backend keeps the layout that it declares with them, to the
character, and refuses options that contradict each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.backend.adapter_parts import bounded_white_space
from harness.backend.grammar import Adapter, Grammar
from harness.backend.layout import COMPACT
from harness.backend.registry import installed_version, make, parse_specs
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case, Instance
from harness.checks.documents import check_every_allowed_token_leads_to_a_document
from harness.checks.endless import RUNS_END, check_runs_end_where_they_must
from harness.checks.layouts import check_every_document_of_its_layout_can_be_written
from harness.checks.subject import Subject
from harness.errors import BadInput
from harness.rows.row import Finding

BYTES = byte_vocabulary()
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "boolean"}}, "b": {"type": "null"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
DOCUMENTS = (
    b'{"a":[true,false],"b":null}',
    b'{"a": [true, false], "b": null}',
    b'{  "a" :\t[ ],\n "b":  null }',
)
TAG = {"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}]}


def backend(spec: str) -> Adapter:
    (parsed,) = parse_specs(spec)
    try:
        adapter = make(parsed, BYTES)
    except (ImportError, BadInput) as error:
        pytest.skip(str(error))
    if adapter.distribution and not installed_version(adapter.distribution):
        pytest.skip(f"no {adapter.distribution}")
    return adapter


def looked_at(
    adapter: Adapter, dialect: Any, grammar: Any, *texts: bytes
) -> tuple[list[Finding], int | None]:
    """Returns what the three checks of masks find that the backend does not document, and the longest run of
    white space; None where it has no end."""
    value = Grammar(dialect, json.dumps(grammar))
    case = Case("0" * 12, "a case", value, tuple(Instance("a document", text, None) for text in texts))
    subject = Subject(adapter, case, adapter.compile(value))
    findings = [
        finding
        for check in (
            check_runs_end_where_they_must,
            check_every_document_of_its_layout_can_be_written,
            check_every_allowed_token_leads_to_a_document,
        )
        for finding in check(subject)
        if not adapter.documents(finding.cause)
    ]
    counted = subject.counted[RUNS_END]
    return findings, None if counted.get("white_space_endless") else counted.get("white_space_longest", 0)


LIBRARIES = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer")


def bounded() -> Iterator[tuple[str, int | None]]:
    """Yields backends with an option, each with the longest white space that follows from it."""
    for library in LIBRARIES:
        yield library, None
        yield f"{library}:whitespace=compact", 0
        # outlines-core has it twice in an empty array, and says so.
        yield f"{library}:max_whitespace=1", 2 if library == "outlines-core" else 1
        if library != "outlines-core":
            yield f"{library}:max_whitespace=3", 3
    for wrapper in ("xgrammar", "guidance"):
        yield f"vllm:wrapper={wrapper}", None
        yield f"vllm:wrapper={wrapper}:disable_any_whitespace=true", 0
    yield "sglang:wrapper=xgrammar:disable_any_whitespace=true", 1
    yield "sglang:wrapper=llguidance:disable_any_whitespace=true", 0
    yield "sglang:wrapper=xgrammar:max_whitespace=3", 3
    yield "sglang:wrapper=llguidance:max_whitespace=3", 3


@pytest.mark.parametrize(("spec", "longest"), list(bounded()))
def test_white_space_ends_where_the_option_says(spec: str, longest: int | None) -> None:
    adapter = backend(spec)
    findings, seen = looked_at(adapter, "json_schema", SCHEMA, *DOCUMENTS)
    assert (findings, seen) == ([], longest)


@pytest.mark.parametrize(
    ("spec", "longest"),
    [
        ("xgrammar:max_whitespace=3", 3),
        ("llguidance:max_whitespace=3", 3),
        ("llguidance:whitespace=compact", 0),
        # The engines do not hand their option on to xgrammar in a structural tag, nor SGLang to llguidance.
        ("vllm:wrapper=xgrammar:disable_any_whitespace=true", None),
        # vLLM hands it on to llguidance, in a form of which llguidance keeps nothing (test_engines.py).
        ("vllm:wrapper=guidance:disable_any_whitespace=true", None),
        ("sglang:wrapper=xgrammar:max_whitespace=3", None),
        ("sglang:wrapper=llguidance:max_whitespace=3", None),
    ],
)
def test_in_structural_tags_too_where_it_is_handed_on(spec: str, longest: int | None) -> None:
    tag = json.loads(json.dumps(TAG).replace("<f", "=f").replace("</f>", "=/f"))
    texts = [b"=f>" + text + b"=/f" for text in DOCUMENTS]
    _, seen = looked_at(backend(spec), "structural_tag", tag, *texts)
    assert seen == longest


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "options",
    ["whitespace=compact:max_whitespace=2", "max_whitespace=-1", "max_whitespace=99999999999999999999"],
)
def test_options_that_contradict_each_other_are_refused(library: str, options: str) -> None:
    backend(library)
    with pytest.raises(ValueError, match="max_whitespace"):
        make(parse_specs(f"{library}:{options}")[0], BYTES)


def test_a_layout_is_bounded_only_where_it_is_free() -> None:
    free = replace(COMPACT, separators=None)
    assert bounded_white_space(free, 0) == free and bounded_white_space(COMPACT, 0) == COMPACT
    assert bounded_white_space(free, 2) == replace(free, longest_run=2)
    for layout, most in ((COMPACT, 1), (replace(free, longest_run=1), 2), (free, -1)):
        with pytest.raises(ValueError, match="max_whitespace"):
            bounded_white_space(layout, most)


def test_a_choice_of_the_engine_that_it_has_not_is_refused() -> None:
    for spec in ("vllm:wrapper=outlines:disable_any_whitespace=true",):
        backend("vllm")
        with pytest.raises(ValueError, match="disable_any_whitespace"):
            make(parse_specs(spec)[0], BYTES)
