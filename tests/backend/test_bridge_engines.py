"""Both engines' interfaces without the engines: wrong wrappers are caught, the adapters run on packages that
are laid out like theirs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from adapter_tools import BYTES, SMALL, failed

from harness.backend.contract import check_adapter, check_name, checks
from harness.backend.grammar import Adapter, Grammar, InvalidGrammar, UnsupportedGrammar
from harness.backend.registry import installed_version, make, parse_spec
from harness.cases.case import Case, Instance
from harness.checks import Subject, checks_of, reasoning, run_check

pytest.importorskip("torch")
import sglang_stand_ins as stand_ins


def test_a_right_wrapper_keeps_the_contract() -> None:
    results = check_adapter(stand_ins.wrapped()(SMALL))
    assert [result for result in results if result.status in ("failed", "error")] == []
    assert sum(result.status == "passed" for result in results) >= 20


WRONG: dict[type[Adapter], str] = {
    stand_ins.wrapped(stand_ins.TakesAll): "the_mask_says_what_accept_token_does",
    stand_ins.wrapped(stand_ins.BreaksOnRefusal): "a_refused_token_does_not_move",
    stand_ins.wrapped(stand_ins.GoesBackOneLess): "rollback_restores",
    stand_ins.wrapped(stand_ins.AddsToMask): "a_fill_overwrites_every_bit",
    stand_ins.wrapped(stand_ins.AllowsSpecials): "special_and_padding_tokens_are_never_allowed",
    stand_ins.wrapped(stand_ins.SharesItsCopies): "starts_are_independent",
    stand_ins.wrapped(backend_class=stand_ins.Unchecked): "a_malformed_grammar_is_declined",
}


@pytest.mark.parametrize("adapter_class", WRONG, ids=lambda each: each.__name__)
def test_what_a_wrapper_breaks_is_seen(adapter_class: type[Adapter]) -> None:
    (check,) = [each for each in checks() if check_name(each) == WRONG[adapter_class]]
    (result,) = check_adapter(adapter_class(SMALL), [check])
    assert result.status in ("failed", "error"), result


def test_a_wrapper_that_never_goes_back_has_no_rollback() -> None:
    results = check_adapter(stand_ins.wrapped(stand_ins.NeverGoesBack)(SMALL))
    assert [result for result in results if result.status in ("failed", "error")] == []
    assert any(result.text == "the adapter does not implement rollback" for result in results)


# Packages with the engines' modules and names, and nothing of theirs in them

SGLANG = {
    "sglang/__init__.py": "raise ImportError('no kernels')",
    "sglang/srt/__init__.py": "raise ImportError('no kernels')",
    "sglang/srt/constrained/__init__.py": "raise ImportError('no kernels')",
    "sglang/srt/constrained/base.py": "from sglang.srt.parser.reasoning_parser import ReasoningParser\n"
    "from sglang.srt.server_args import ServerArgs\nfrom sglang_stand_ins import Backend\n",
    "sglang/srt/constrained/reasoner_grammar_backend.py": "from sglang.srt.parser.response_template import "
    "ResponseTemplateReasoningDetector\nfrom sglang_stand_ins import ReasonerGrammarBackend\n",
    "sglang/srt/constrained/xgrammar_backend.py": "from .base import Backend as XGrammarGrammarBackend\n",
    "sglang/srt/constrained/llguidance_backend.py": "from .base import Backend as GuidanceBackend\n",
    "sglang/srt/constrained/outlines_backend.py": "from .base import Backend as OutlinesGrammarBackend\n",
}

REQUESTS = """
from types import SimpleNamespace
from vllm.exceptions import VLLMValidationError
from harness.backend.grammar import Grammar
from harness.oracle.reference import Reference

class StructuredOutputsParams:
    def __init__(self, **fields):
        ((self.kind, self.value),) = fields.items()

class SamplingParams:
    def __init__(self, structured_outputs):
        self.structured_outputs = structured_outputs

    def _validate_structured_outputs(self, model, outputs, tokenizer):
        asked = self.structured_outputs
        if asked.kind not in ("regex", "grammar") or asked.value.startswith("start:"):
            raise VLLMValidationError(f"{outputs.backend} does not support {asked.kind}")
        dialect = {"regex": "regex", "grammar": "ebnf"}[asked.kind]
        try:
            Reference(tokenizer).compile(Grammar(dialect, asked.value))
        except Exception as error:
            raise VLLMValidationError(f"Invalid grammar specification: {error}") from error
"""
BACKEND = """
from vllm_stand_ins import StandInBackend

def {name}(config, tokenizer, vocab_size):
    assert vocab_size == tokenizer.size and config.structured_outputs_config.backend == "{backend}"
    return StandInBackend(tokenizer)
"""
VLLM = {
    "vllm/__init__.py": "raise ImportError('no accelerator')",
    "vllm/exceptions.py": "class VLLMValidationError(Exception): pass\n",
    "vllm/sampling_params.py": REQUESTS,
    "vllm/utils/__init__.py": "",
    "vllm/utils/torch_utils.py": "PIN_MEMORY = True\n",
    "vllm/v1/__init__.py": "raise ImportError('no accelerator')",
    "vllm/v1/structured_output/__init__.py": "raise ImportError('no accelerator')",
    "vllm/v1/structured_output/request.py": "def get_structured_output_key(asked):\n"
    "    return {'regex': 'regex', 'grammar': 'ebnf'}[asked.kind], asked.value\n",
    "vllm/v1/structured_output/backend_xgrammar.py": BACKEND.format(
        name="XgrammarBackend", backend="xgrammar"
    ),
    "vllm/v1/structured_output/backend_guidance.py": BACKEND.format(
        name="GuidanceBackend", backend="guidance"
    ),
    "vllm/v1/structured_output/backend_outlines.py": BACKEND.format(
        name="OutlinesBackend", backend="outlines"
    ),
    "vllm/v1/structured_output/backend_lm_format_enforcer.py": BACKEND.format(
        name="LMFormatEnforcerBackend", backend="lm-format-enforcer"
    ),
}


@pytest.fixture(params=["sglang", "vllm"])
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The adapter's module, with such a package under the engine's name.

    A vocabulary is its own tokenizer, for transformers' sake.
    """
    name: str = request.param
    if installed_version(name):
        pytest.skip(f"{name} itself is installed: tests/backend/test_engines.py")
    for path, text in (SGLANG if name == "sglang" else VLLM).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    module = import_module(f"harness.adapters.{name}")
    monkeypatch.setattr(module, "huggingface_tokenizer", lambda vocabulary: vocabulary)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("VLLM_CONFIGURE_LOGGING", "0")
    before = set(sys.modules)
    yield module
    for each in set(sys.modules) - before:
        if each.partition(".")[0] == name:
            del sys.modules[each]


def test_the_adapter_runs_every_wrapper_of_a_package_that_is_laid_out_like_the_engine(engine: Any) -> None:
    name = engine.__name__.rpartition(".")[2]
    for wrapper in engine.WRAPPERS:
        adapter = make(parse_spec(f"{name}:wrapper={wrapper}"), BYTES)
        grammar_object = adapter.compile(Grammar("regex", "ab+")).start()
        assert grammar_object.accept_tokens(list(b"abb")) == 3 and grammar_object.is_accepting()
        assert adapter.wraps == engine.WRAPPERS[wrapper][2]
    assert failed(make(parse_spec(name), SMALL)) == set()


def test_what_the_engine_answers_is_declined(engine: Any) -> None:
    adapter = make(parse_spec(engine.__name__.rpartition(".")[2]), BYTES)
    with pytest.raises(InvalidGrammar):
        adapter.compile(Grammar("regex", "("))
    with pytest.raises(UnsupportedGrammar, match="not support"):
        adapter.compile(Grammar("json_schema", "{}"))
    adapter_class: Any = type(adapter)
    with pytest.raises(ValueError, match="wrapper is 'no such one'"):
        adapter_class(BYTES, wrapper="no such one")


def test_lark_goes_to_the_engine_in_the_field_of_ebnf(engine: Any) -> None:
    """The stand-ins know EBNF only, and so the text is one."""
    name = engine.__name__.rpartition(".")[2]
    adapter = make(parse_spec(f"{name}:wrapper={'guidance' if name == 'vllm' else 'llguidance'}"), BYTES)
    grammar_object = adapter.compile(Grammar("lark", 'root ::= "ab"')).start()
    assert grammar_object.accept_tokens(list(b"ab")) == 2 and grammar_object.is_accepting()
    if name == "sglang":
        with pytest.raises(UnsupportedGrammar, match="xgrammar no Lark"):
            make(parse_spec("sglang:wrapper=xgrammar"), BYTES).compile(Grammar("lark", 'start: "a"'))


# Thinking by the engines' own means


TEXT = Grammar("regex", "(ab|ac)[0-9]{1,3}\n?d?")
CASE = Case("0" * 12, "", TEXT, (Instance("one", b"ab12\nd", True), Instance("two", b"ac7", True)))


def outcomes(adapter: Adapter) -> dict[str, str]:
    """What each check of thinking comes to."""
    subject = Subject(adapter, CASE, adapter.compile(TEXT), 4)
    return {
        check.__name__.removeprefix("check_"): run_check("", check, subject)[0]
        for check in checks_of(reasoning)
    }


NEVER_ENDS = "the_output_does_not_end_while_it_reasons"


def test_an_engine_that_thinks_is_asked_by_its_own_means(engine: Any) -> None:
    name = engine.__name__.rpartition(".")[2]
    seen = outcomes(make(parse_spec(name), SMALL))
    if name == "vllm":  # its manager is the package's own `__init__`, which raises here
        why = "vLLM's manager of grammars cannot be imported: no accelerator"
        assert set(seen.values()) == {f"skipped: {why}"}
    else:  # while it thinks its masks are left alone
        assert seen.pop(NEVER_ENDS) == "failed" and set(seen.values()) == {"passed"}


WRONG_REASONERS: dict[type[stand_ins.ReasonerGrammar], set[str]] = {
    stand_ins.NeverTakesItsGrammarBack: {
        "a_draft_may_cross_the_end_of_reasoning",
        "rollback_crosses_the_end_of_reasoning",
    },
    stand_ins.ShowsTheEndToItsGrammar: {
        "the_answer_begins_behind_the_end_of_reasoning",
        "a_draft_may_cross_the_end_of_reasoning",
        "a_request_that_reasons_is_taken_up_anew",
    },
}


@pytest.mark.parametrize("wrong", WRONG_REASONERS, ids=lambda wrong: wrong.__name__)
def test_an_engine_that_thinks_wrongly_is_seen(
    engine: Any, wrong: type[stand_ins.ReasonerGrammar], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = engine.__name__.rpartition(".")[2]
    if name == "vllm":
        pytest.skip("it has no manager here")
    monkeypatch.setattr(stand_ins.ReasonerGrammarBackend, "grammar_class", wrong)
    seen = outcomes(make(parse_spec(name), SMALL))
    assert {check for check, outcome in seen.items() if outcome == "failed"} - {
        NEVER_ENDS
    } == WRONG_REASONERS[wrong]
