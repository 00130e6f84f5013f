"""SGLang's and vLLM's own wrappers under the contract, from their wheels (tox run -e engines)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from adapter_tools import BYTES, allowed
from scripts import script_of
from synthetic import info, row, write_run

from harness.backend.arm import Arm
from harness.backend.contract import check_adapter
from harness.backend.grammar import Grammar
from harness.backend.registry import installed_version, make, parse_spec
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case, Instance
from harness.checks import Subject, checks_of, drafts, reasoning, run_check
from harness.errors import BadInput
from harness.rows.row import Finding

BROKEN = {
    "sglang:wrapper=xgrammar": {
        "a_malformed_grammar_is_declined",
        "special_and_padding_tokens_are_never_allowed",
    },
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
    "sglang:wrapper=outlines": {
        "end_of_sequence_is_accepted_exactly_when_accepting",
        "the_mask_says_what_accept_token_does",
    },
}
"""The checks that each wrapper fails; the backends behind them fail none (tests/backend/test_contract.py).
docs/engines.md says why."""


def needed(spec: str) -> None:
    """Skips where the engine's wheel, or the library behind the wrapper, is not installed; outlines has an
    environment of its own."""
    engine, _, wrapper = spec.partition(":wrapper=")
    library = import_module(f"harness.adapters.{engine}").WRAPPERS[wrapper][2]
    for distribution in (engine, library):
        if not installed_version(distribution):
            pytest.skip(f"{distribution} is not installed")


@pytest.mark.parametrize("spec", sorted(BROKEN))
def test_a_wrapper_breaks_what_the_page_says_and_no_more(spec: str) -> None:
    needed(spec)
    results = check_adapter(make(parse_spec(spec), load_vocabulary("probe")))
    assert {result.check for result in results if result.status in ("failed", "error")} == BROKEN[spec]


THINKING = Grammar("regex", "(ab|ac)[0-9]{1,3}\n?d?")
THINKING_CASE = Case(
    "0" * 12, "", THINKING, (Instance("one", b"ab12\nd", True), Instance("two", b"ac7", True))
)
NEVER_ENDS = "the_output_does_not_end_while_it_reasons"
WRONG_AT_BOUNDARIES = {
    "sglang:wrapper=xgrammar": {NEVER_ENDS},
    "sglang:wrapper=llguidance": {check.__name__.removeprefix("check_") for check in checks_of(reasoning)},
    "vllm:wrapper=xgrammar": {NEVER_ENDS},
    "vllm:wrapper=guidance": {NEVER_ENDS},
    "vllm:wrapper=outlines": {NEVER_ENDS},
}
"""The checks of drafts and of thinking that each wrapper fails, where an instance is a right one."""


@pytest.mark.parametrize("spec", sorted(WRONG_AT_BOUNDARIES))
def test_an_engines_own_manager_breaks_at_boundaries_what_the_page_says(spec: str) -> None:
    needed(spec)
    adapter = make(parse_spec(spec), load_vocabulary("probe"))
    subject = Subject(adapter, THINKING_CASE, adapter.compile(THINKING), 4)
    seen = {
        check.__name__.removeprefix("check_"): run_check("", check, subject)[0]
        for module in (drafts, reasoning)
        for check in checks_of(module)
    }
    assert {name for name, outcome in seen.items() if outcome == "failed"} == WRONG_AT_BOUNDARIES[spec]
    skipped = {name: outcome for name, outcome in seen.items() if outcome.startswith("skipped")}
    assert skipped == (
        {"rollback_crosses_the_end_of_reasoning": "skipped: the adapter does not implement rollback"}
        if spec.startswith("vllm")
        else {}
    )


def test_a_manager_that_looks_for_the_end_behind_a_draft_only_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As vLLM's was, before it looked inside: a draft with the end of the thinking in it is all thinking."""
    needed("vllm:wrapper=xgrammar")
    adapter = make(parse_spec("vllm:wrapper=xgrammar"), load_vocabulary("probe"))
    manager = import_module("harness.adapters._vllm_manager").manager_module()
    right = manager.StructuredOutputManager._get_constraint_bounds

    def wrong(self: object, request: object, tokens: list[int], *rest: object, **more: object) -> object:
        found = right(self, request, tokens, *rest, **more)
        inside = 0 < found.constraint_start < len(tokens)
        return manager.ConstraintBounds(len(tokens) + 1, len(tokens) + 1) if inside else found

    monkeypatch.setattr(manager.StructuredOutputManager, "_get_constraint_bounds", wrong)
    subject = Subject(adapter, THINKING_CASE, adapter.compile(THINKING), 4)
    outcome, (found, *_) = run_check("", reasoning.check_a_draft_may_cross_the_end_of_reasoning, subject)
    assert outcome == "failed" and found.cause == "unconstrained"


def test_lm_format_enforcers_integration_finds_neither_this_vllm_nor_this_transformers() -> None:
    needed("vllm:wrapper=lm-format-enforcer")
    with pytest.raises(BadInput, match="vllm is not installed"):
        make(parse_spec("vllm:wrapper=lm-format-enforcer"), BYTES)
    with pytest.raises(ImportError):
        import_module("vllm.transformers_utils.tokenizer")
    assert not hasattr(import_module("transformers.tokenization_utils"), "PreTrainedTokenizerBase")


def test_vllms_outlines_refuses_a_choice_that_begins_with_another() -> None:
    needed("vllm:wrapper=outlines")
    adapter = make(parse_spec("vllm:wrapper=outlines"), BYTES)
    for text, whole in (('["a1", "a12"]', False), ('["a12", "a1"]', True)):
        grammar_object = adapter.compile(Grammar("choice", text)).start()
        assert (grammar_object.accept_tokens(list(b"a12")) == 3) is whole


@pytest.mark.parametrize("backend", ["vllm:wrapper=outlines", "outlines-core"])
def test_vllms_outlines_takes_a_token_with_a_part_of_a_character_for_another(backend: str) -> None:
    needed("vllm:wrapper=outlines")
    vocabulary = Vocabulary("half", (*BYTES.tokens[:256], b"a\xe6", b""), (257,), {257: "</s>"}, frozenset())
    grammar_object = make(parse_spec(backend), vocabulary).compile(Grammar("regex", "a日")).start()
    assert allowed(grammar_object, vocabulary) == (
        {ord("a")} if backend.startswith("vllm") else {ord("a"), 256}
    )


@pytest.mark.parametrize(
    ("schema", "library"),
    [
        ('{"type": "integer"}', "xgrammar"),
        ('{"type": "integer", "multipleOf": 5}', "guidance"),
        (
            '{"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 5}}, '
            '"patternProperties": {"^b$": {}}}',
            "outlines",
        ),
    ],
)
def test_the_engines_default_names_a_library_for_each_schema(schema: str, library: str) -> None:
    needed("vllm:wrapper=xgrammar")
    adapter: Any = make(parse_spec("vllm:wrapper=xgrammar"), load_vocabulary("probe"))
    assert adapter.checked(Grammar("json_schema", schema), "auto")._backend == library
    with pytest.raises(ValueError, match="Grammar error"):
        adapter.checked(Grammar("json_schema", '{"type": "array", "uniqueItems": true}'), "auto")


@pytest.mark.parametrize("backend", ["vllm:wrapper=guidance", "llguidance"])
def test_vllms_guidance_does_not_keep_the_schema_of_a_tag(backend: str) -> None:
    needed("vllm:wrapper=guidance")
    tag = (
        '{"triggers": ["[f]"], "structures": [{"begin": "[f]", "schema": {"type": "integer"}, "end": '
        '"[/f]"}]}'
    )
    grammar_object = make(parse_spec(backend), BYTES).compile(Grammar("structural_tag", tag)).start()
    assert grammar_object.accept_tokens(list(b'[f]"no integer"[/f]')) == (
        19 if backend.startswith("vllm") else 3
    )


# The table of docs/engines.md


@pytest.fixture(scope="module")
def wrappers() -> ModuleType:
    return script_of("wrappers")


def test_what_a_wrapper_breaks_is_told_against_the_library_behind_it(
    wrappers: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = Arm("inner", "1.2", "", "inner", ("regex",), "bitmask")
    other = Arm("inner", "1.3", "", "inner", ("regex",), "bitmask")
    wrapper = Arm("engine", "0.5+inner-1.2", "wrapper=inner", "engine", ("regex",), "bitmask")
    groups = []
    for arm in (library, other, wrapper):
        who = {
            "backend": arm.backend,
            "backend_version": arm.version,
            "options": arm.options,
            "dialect": "regex",
        }
        refused = (
            {"status": "invalid", "text": "no such word\nmore", "accepted": None} if arm is wrapper else {}
        )
        found = (Finding("a_check", None, "text", "a_cause"),) if arm is wrapper else ()
        groups.append(
            [(row(**who, case="one", case_id="0" * 12, instance=number, **refused), b"") for number in (0, 1)]
        )
        groups.append([(row(**who, case="two", case_id="1" * 12, findings=found), b"")])
    run = write_run(tmp_path, groups, info((library, other, wrapper)))
    assert wrappers.main([str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| inner 1.2 | tiny | 3 | 3 | 0 | 0 | 0 | 0 | 0 |" in lines
    assert "| engine:wrapper=inner 0.5+inner-1.2 | tiny | 3 | 1 | 0 | 0 | 2 | 0 | 0 |" in lines
    assert "| engine:wrapper=inner 0.5+inner-1.2 | a_check 1 |" in lines and "| inner 1.2 | none |" in lines
    assert [each for each in lines if each.startswith("## ")] == [
        "## inner 1.2 -> engine:wrapper=inner 0.5+inner-1.2"
    ]
    assert "2 cases compared, 2 came out differently." in lines
    assert "- instances, right -> declined: 2 (regex 2)" in lines
    assert (
        "  - said 2 times: no such word" in lines
        and "  - one (first/000000000000, instance 0 (test 1))" in lines
    )
    assert wrappers.main([str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err.startswith("wrappers: ")
