"""SGLang's and vLLM's own wrappers under the contract, from their wheels (tox run -e engines)."""

from __future__ import annotations

from importlib import import_module

import pytest

from harness.contract import check_adapter
from harness.errors import BadInput
from harness.grammar import Grammar
from harness.registry import installed_version, make, parse_spec
from harness.vocabulary import load_vocabulary

BROKEN = {
    "sglang:wrapper=xgrammar": {"a_malformed_grammar_is_declined", "special_and_padding_tokens_are_never_allowed"},
    "sglang:wrapper=llguidance": {
        "a_refused_token_does_not_move",
        "a_right_token_is_accepted_after_a_refused_one",
        "accept_tokens_stops_at_a_refusal",
        "a_refused_end_of_sequence_does_not_move",
        "the_mask_says_what_accept_token_does",
    },
    "vllm:wrapper=xgrammar": {"special_and_padding_tokens_are_never_allowed"},
    "vllm:wrapper=guidance": {
        "a_refused_token_does_not_move",
        "a_right_token_is_accepted_after_a_refused_one",
        "accept_tokens_stops_at_a_refusal",
        "a_refused_end_of_sequence_does_not_move",
        "a_right_grammar_is_not_called_invalid",
        "the_mask_says_what_accept_token_does",
    },
    "vllm:wrapper=outlines": {"a_valid_output_is_accepted_to_its_end"},
}
"""The checks that each wrapper fails; the backends behind them fail none (tests/test_contract.py). docs/engines.md says why."""


def needed(spec: str) -> None:
    """Skips where the engine's wheel is not installed."""
    distribution = spec.partition(":")[0]
    if not installed_version(distribution):
        pytest.skip(f"{distribution} is not installed")


@pytest.mark.parametrize("spec", sorted(BROKEN))
def test_a_wrapper_breaks_what_the_page_says_and_no_more(spec: str) -> None:
    needed(spec)
    results = check_adapter(make(parse_spec(spec), load_vocabulary("probe")))
    assert {result.check for result in results if result.status in ("failed", "error")} == BROKEN[spec]


def test_lm_format_enforcers_integration_does_not_find_this_vllm() -> None:
    needed("vllm:")
    with pytest.raises(ImportError):
        import_module("vllm.transformers_utils.tokenizer")
    with pytest.raises(BadInput, match="vllm is not installed"):
        make(parse_spec("vllm:wrapper=lm-format-enforcer"), load_vocabulary("bytes"))


def test_vllms_outlines_refuses_a_choice_that_begins_with_another() -> None:
    needed("vllm:")
    adapter = make(parse_spec("vllm:wrapper=outlines"), load_vocabulary("bytes"))
    for text, whole in (('["a1", "a12"]', False), ('["a12", "a1"]', True)):
        grammar_object = adapter.compile(Grammar("choice", text)).start()
        assert (grammar_object.accept_tokens(list(b"a12")) == 3) is whole
