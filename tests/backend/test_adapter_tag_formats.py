"""Structural tags in the new form through the adapters: xgrammar has them, and the others decline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_formats import tag

from harness.backend.grammar import (
    Adapter,
    InvalidGrammar,
    UnsupportedGrammar,
    allocate_bitmask,
    unpack_mask,
)
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import Vocabulary
from harness.oracle.language import outputs_of
from harness.oracle.trie import trie_of

SPECIALS = {256: "<call>", 257: "</call>", 258: "</s>"}
VOCABULARY = Vocabulary(
    "bytes and calls", (*(bytes([byte]) for byte in range(256)), b"", b"", b""), (258,), SPECIALS
)


def adapter(spec: str) -> Adapter:
    pytest.importorskip(spec.partition(":")[0])
    return make(parse_spec(spec), VOCABULARY)


DIGITS = {"type": "regex", "pattern": "[0-9]+"}
CALL = {"type": "tag", "begin": {"token": "<call>"}, "content": DIGITS, "end": {"token": 257}}
CALLS = {"type": "tags_with_separator", "tags": [CALL], "separator": ", "}


@pytest.mark.parametrize(
    ("format", "tokens"),
    [
        (CALLS, [256, 49, 50, 257, 44, 32, 256, 48, 257]),
        ({"type": "token_triggered_tags", "trigger_tokens": [256], "tags": [CALL]}, [65, 256, 49, 257, 66]),
        ({"type": "any_tokens", "exclude_tokens": ["<call>", 65]}, [66, 257, 66]),
        ({"type": "sequence", "elements": [{"type": "token", "token": 65}, DIGITS]}, [65, 49, 50]),
    ],
)
def test_xgrammar_has_the_masks_of_the_reference_over_tokens(
    format: dict[str, Any], tokens: list[int]
) -> None:
    compiled = adapter("xgrammar").compile(tag(format))
    outputs = outputs_of(tag(format), vocabulary=VOCABULARY)
    state, grammar_object = outputs.start, compiled.start()
    bitmask = allocate_bitmask(VOCABULARY.size)
    for token in [*tokens, 258]:
        grammar_object.fill_bitmask(bitmask)
        truth = trie_of(VOCABULARY).mask(outputs, state)
        assert np.array_equal(unpack_mask(bitmask, VOCABULARY.size), truth), token
        assert truth[token] and grammar_object.accept_token(token)
        if token != 258:
            state = outputs.after_token(state, token, VOCABULARY.tokens[token])


def test_tags_without_tokens_know_no_special_token() -> None:
    """Where no part is about tokens, the library is not told the special tokens' names."""
    grammar_object = adapter("xgrammar").compile(tag({"type": "any_text"})).start()
    bitmask = allocate_bitmask(VOCABULARY.size)
    grammar_object.fill_bitmask(bitmask)
    assert np.flatnonzero(unpack_mask(bitmask, VOCABULARY.size)[256:]).tolist() == [2]


@pytest.mark.parametrize("spec", ["llguidance", "outlines_core", "lmformatenforcer"])
def test_the_others_decline(spec: str) -> None:
    pytest.importorskip(spec)
    name = {"outlines_core": "outlines-core", "lmformatenforcer": "lm-format-enforcer"}.get(spec, spec)
    with pytest.raises(UnsupportedGrammar):
        make(parse_spec(name), VOCABULARY).compile(tag(CALLS))


@pytest.mark.parametrize("spec", ["xgrammar", "llguidance", "reference"])
def test_a_wrong_form_is_called_wrong(spec: str) -> None:
    wrong = tag({"type": "sequence", "elements": [{"type": "any_txt"}]})
    with pytest.raises((InvalidGrammar, UnsupportedGrammar), match="at /format/elements/0/type"):
        make(parse_spec(spec), VOCABULARY).compile(wrong)


def test_any_order_is_a_field_of_the_schema() -> None:
    with pytest.raises(UnsupportedGrammar, match="any_order"):
        adapter("xgrammar:any_order=true").compile(tag({"type": "any_text"}))
