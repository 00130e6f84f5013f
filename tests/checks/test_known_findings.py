"""What is known to be wrong with these versions of the backends is found again by the general checks, with
tekken.

The hangs and the uneven compile times are seen in a run over MaskBench (`timeout` rows, the table's TTFM),
not here; the fault of MaskBench's own runner is not one of a backend.
"""

from __future__ import annotations

from functools import cache

import pytest

from harness.backend.grammar import Adapter, Grammar, InvalidGrammar, UnsupportedGrammar
from harness.backend.registry import installed_version, load, make, parse_spec
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import Subject, checks, run_check
from harness.rows.row import Finding

VERSIONS = {"xgrammar": "0.2.9", "llguidance": "1.9.1", "outlines-core": "0.2.14"}


@cache
def backend(name: str) -> Adapter:
    version = installed_version(load(name).distribution)
    if version != VERSIONS[name]:
        pytest.skip(f"seen on {name} {VERSIONS[name]}, not on {version}")
    return make(parse_spec(name), load_vocabulary("tekken"))


def found(name: str, pattern: str, text: str, check: str) -> list[Finding]:
    """What the check finds at every place of the walk."""
    adapter, grammar = backend(name), Grammar("regex", pattern)
    case = Case(case_id(grammar), pattern, grammar, (Instance(text, text.encode(), True),))
    outcome, findings = run_check(check, checks()[check], Subject(adapter, case, adapter.compile(grammar)))
    assert outcome in ("passed", "failed"), outcome
    return [each for each in findings if each.cause != "more"]


@pytest.mark.parametrize(
    ("name", "seen"),
    [("outlines-core", {("partial_utf8", 146, 0)}), ("xgrammar", set()), ("llguidance", set())],
)
def test_outlines_core_forbids_146_tokens_that_end_inside_a_character(
    name: str, seen: set[tuple[str, int, int]]
) -> None:
    assert {
        (each.cause, each.over, each.under) for each in found(name, '[^"]*', "ab", "the_mask_is_exact")
    } == seen


@pytest.mark.parametrize(("pattern", "text"), [("(😀|😁)+", "😀😁"), ("日本語[ぁ-ん]", "日本語ん")])
def test_xgrammars_forced_text_ends_before_a_character_as_it_documents(pattern: str, text: str) -> None:
    findings = found("xgrammar", pattern, text, "forced_text_is_found")
    assert {(each.cause, each.documented) for each in findings} <= {
        ("inside_a_character", True),
        ("starts_inside_a_character", True),
    }
    assert findings and found("xgrammar", pattern, text, "forced_text_may_end_inside_a_character") == []
    assert found("llguidance", pattern, text, "forced_text_is_found") == []


def test_llguidance_allows_only_the_canonical_token_of_forced_text() -> None:
    findings = found("llguidance", "(true|false) story", "true story", "the_mask_is_exact")
    assert {(each.cause, each.documented, each.under) for each in findings} == {("canonical_only", True, 0)}
    assert found("xgrammar", "(true|false) story", "true story", "the_mask_is_exact") == []


@pytest.mark.parametrize(("pattern", "text"), [(r"\d+", "12"), (r"\w+", "ab"), (r"a\sb", "a b")])
def test_classes_mean_different_sets(pattern: str, text: str) -> None:
    """xgrammar's are those of ECMA-262, the others have Unicode's."""
    causes = {
        name: {each.cause for each in found(name, pattern, text, "the_mask_is_exact")} for name in VERSIONS
    }
    assert (
        causes["xgrammar"] == {"regex_dialect_ecma"}
        and causes["llguidance"] == set()
        and causes["outlines-core"] <= {"partial_utf8"}
    )


def test_the_dot_differs_by_a_token() -> None:
    seen = {
        name: [(each.over, each.under) for each in found(name, ".", "a", "the_mask_is_exact")]
        for name in VERSIONS
    }
    assert seen == {"xgrammar": [(0, 1)], "llguidance": [], "outlines-core": []}, (
        "xgrammar's takes a line feed"
    )


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("outlines-core", "^abc$"), ("xgrammar", "(?i)abc"), ("xgrammar", r"\p{L}"), ("xgrammar", r"\p{L}+x")],
)
def test_what_they_do_not_compile(name: str, pattern: str) -> None:
    with pytest.raises((UnsupportedGrammar, InvalidGrammar)):
        backend(name).compile(Grammar("regex", pattern))
