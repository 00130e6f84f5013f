"""The checks of jump-forward: silent on the automaton itself, each wrong jumper found by its own check, and
what real backends do."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from check_cases import BRANCHES, CASES, KANJI, ONE, case
from jump_maps import language_in_rust, with_jump_map
from miniatures.wrong_jumps import JUMPERS, Exact, ExactObject, jumping_vocabulary
from out_of_time import without_its_last_call

from harness.backend.grammar import Adapter, CompiledGrammar, Grammar, GrammarObject
from harness.backend.layout import COMPACT, EVERY_SPELLING
from harness.backend.registry import load
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.cases.case import Case
from harness.checks import OurFailure, Subject, retokenizing, run_check
from harness.checks import jump_forward as jump_forward_checks
from harness.oracle.language import documents_of
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject
from harness.rows.row import Finding

CHECKS = {
    name.removeprefix("check_"): check
    for module in (jump_forward_checks, retokenizing)
    for name, check in vars(module).items()
    if name.startswith("check_")
}


def found(adapter: Adapter, cases: tuple[Case, ...], effort: int | None = None) -> dict[str, list[Finding]]:
    """By check, what it finds in any of the cases."""
    findings: dict[str, list[Finding]] = {}
    for each in cases:
        subject = Subject(adapter, each, adapter.compile(each.grammar), effort)
        for name, check in CHECKS.items():
            for finding in run_check(name, check, subject)[1]:
                findings.setdefault(name, []).append(finding)
    return findings


def causes(findings: dict[str, list[Finding]]) -> dict[str, set[str]]:
    return {name: {each.cause for each in found} - {"more"} for name, found in findings.items()}


@pytest.mark.parametrize("vocabulary", [jumping_vocabulary, byte_vocabulary])
@pytest.mark.parametrize("effort", [None, 3])
def test_the_automaton_itself_passes(vocabulary: Any, effort: int | None) -> None:
    assert found(Exact(vocabulary()), CASES, effort) == {}


def test_the_perfect_backend_passes() -> None:
    assert found(backend("reference"), (*CASES, *REGEX)) == {}


def test_every_check_has_something_to_check() -> None:
    for name, check in CHECKS.items():
        adapter = Exact(jumping_vocabulary())
        assert {
            run_check(name, check, Subject(adapter, each, adapter.compile(each.grammar)))[0] for each in CASES
        } == {"passed"}


@pytest.mark.parametrize("mutant", JUMPERS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_jumper_is_found_by_exactly_its_own_check(mutant: type[Adapter]) -> None:
    findings = found(mutant(jumping_vocabulary()), CASES)
    assert causes(findings) == JUMPERS[mutant]


def test_what_was_missed_before_the_time_was_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = named("DropsHalf")(byte_vocabulary())
    outcome, findings = without_its_last_call(monkeypatch, "forced_text_is_found", adapter, KANJI)
    assert outcome == "failed" and findings[0].text.startswith("finds ")


def test_every_check_finds_some_wrong_jumper() -> None:
    assert set(CHECKS) == {check for causes in JUMPERS.values() for check in causes}


def named(name: str) -> type[Adapter]:
    return next(each for each in JUMPERS if each.__name__ == name)


def test_a_finding_says_where_and_shows_the_other_way() -> None:
    vocabulary = jumping_vocabulary()
    polite = case("choice", ["yes, please", "yes, thanks"])
    (first,) = found(named("JumpsPastAChoice")(vocabulary), (polite,))["forced_bytes_are_truly_forced"]
    assert first.text == "after b'' it says that b'yes, p' is forced, but b'yes, t' may come instead"
    assert first.examples == (b"yes, t".hex(),) and vocabulary.decode(first.walk) == b"yes, t"
    (ends, *_) = found(named("JumpsPastAPossibleEnd")(vocabulary), (BRANCHES,))[
        "forced_bytes_are_truly_forced"
    ]
    assert ends.walk == (*vocabulary.encode(b"yes"), vocabulary.eos_token)


def test_how_much_is_found_is_counted() -> None:
    (only,) = found(named("DropsHalf")(byte_vocabulary()), (case("choice", ["abcdef"]),))[
        "forced_text_is_found"
    ]
    assert only.text.startswith("finds 3 of 6 forced bytes; it misses some at 1 of 1 places")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("JumpsPastAChoice", "past_a_choice"),
        ("JumpsPastAPossibleEnd", "past_a_possible_end"),
        ("JumpsIntoNothing", "past_a_choice"),
    ],
)
def test_without_a_reference_the_backends_own_mask_is_the_witness(name: str, cause: str) -> None:
    schema = case("json_schema", {"enum": ["abc", "abd"]}, '"abc"')
    numbers = case("json_schema", {"enum": [1, 123]}, "123")
    adapter = named(name)(jumping_vocabulary())
    assert cause in causes(found(adapter, (schema, numbers)))["forced_bytes_are_truly_forced"]
    assert found(Exact(jumping_vocabulary()), (schema, numbers)) == {}


class Halving(ReferenceObject):
    """Finds half of what is forced."""

    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        return forced[: len(forced) // 2]


class HalvingReference(Reference):
    """Says that it writes compact JSON, and finds half of what is forced in the layout that it writes."""

    writes = COMPACT

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        language = documents_of(grammar.text, layout=self.writes)

        class Compiled(ReferenceGrammar):
            def start(self) -> ReferenceObject:
                return Halving(self._adapter, language)

        return Compiled(self, language)


def test_what_is_forced_in_the_backends_own_layout_is_looked_for() -> None:
    named_value = case("json_schema", {"const": {"a": True}}, '{"a":true}')
    halving = HalvingReference(byte_vocabulary(), layout="compact")
    (missed,) = found(halving, (named_value,))["forced_text_is_found"]
    assert missed.text.startswith("finds 25 of 55 forced bytes; it misses some at 10 of 10 places")
    assert "forced_text_is_found" not in found(Reference(byte_vocabulary(), layout="compact"), (named_value,))
    # What the layout forces is not forced where the mask allows other spellings too.
    free = HalvingReference(byte_vocabulary(), layout="compact")
    free.writes = EVERY_SPELLING
    assert "forced_text_is_found" not in found(free, (named_value,))


def test_text_that_is_refused_is_not_forced() -> None:
    class RefusesWhatItForces(ExactObject):
        def accept_token(self, token: int) -> bool:
            return self.vocabulary.tokens[token] != b"d" and super().accept_token(token)

    class Wrong(Exact):
        object_class = RefusesWhatItForces

    findings = found(Wrong(byte_vocabulary()), (case("json_schema", {"enum": ["abd"]}),))
    assert causes(findings)["forced_bytes_are_truly_forced"] == {"impossible"}


def test_without_jumps_and_without_rollback_nothing_is_said() -> None:
    class Bare(Exact):
        """What an adapter looks like that has the required methods only."""

        def compile(self, grammar: Grammar) -> Any:
            inner = super().compile(grammar)

            class Compiled(CompiledGrammar):
                def start(self) -> GrammarObject:
                    return Plain(inner.start())

            return Compiled()

    class Plain(GrammarObject):
        def __init__(self, inner: ExactObject) -> None:
            self.fill_bitmask = inner.fill_bitmask  # type: ignore[method-assign]
            self.accept_token = inner.accept_token  # type: ignore[method-assign]
            self.is_accepting = inner.is_accepting  # type: ignore[method-assign]
            self.is_terminated = inner.is_terminated  # type: ignore[method-assign]

        def fill_bitmask(self, bitmask: Any) -> None: ...
        def accept_token(self, token: int) -> bool: ...  # type: ignore[empty-body]
        def is_accepting(self) -> bool: ...  # type: ignore[empty-body]
        def is_terminated(self) -> bool: ...  # type: ignore[empty-body]

    adapter = Bare(byte_vocabulary())
    subject = Subject(adapter, ONE, adapter.compile(ONE.grammar))
    said = {run_check(name, check, subject)[0] for name, check in CHECKS.items()}
    assert said == {
        "skipped: no jump_forward",
        "skipped: no fast_forward_tokens",
        "skipped: no jump_forward and no fast_forward_tokens",
        "skipped: no rollback",
    }


def test_a_mistake_in_our_jump_map_is_not_the_backends() -> None:
    adapter = with_jump_map(Exact(byte_vocabulary()))
    subject = Subject(adapter, ONE, adapter.compile(ONE.grammar))
    grammar_object: Any = subject.compiled.start()
    grammar_object.stands_for._grammar.jumps._places = None
    with pytest.raises(OurFailure, match="NoneType"):
        run_check("x", CHECKS["forced_text_may_end_inside_a_character"], subject)


def test_the_effort_bounds_how_often_a_backend_is_asked() -> None:
    asked = 0

    class Counting(ExactObject):
        def jump_forward(self) -> bytes:
            nonlocal asked
            asked += 1
            return super().jump_forward()

    class Counts(Exact):
        object_class: ClassVar[type[ExactObject]] = Counting

    adapter = Counts(byte_vocabulary())
    text = "日本語" * 30
    long = case("choice", [text], text)
    subject = Subject(adapter, long, adapter.compile(long.grammar), 4)
    assert run_check("x", CHECKS["forced_bytes_are_truly_forced"], subject) == ("passed", [])
    assert asked == 8  # four places, and four inside characters


# Real backends


@cache
def probe() -> Vocabulary:
    return load_vocabulary("probe")


@cache
def backend(name: str) -> Adapter:
    return load(name)(probe())


REGEX = (
    case("regex", "(😀|😁)+", "😀😁"),
    case("regex", "日本語[ぁ-ん]", "日本語ぁ"),
    case("regex", r'\{"name": "[a-z]*", "age": [0-9]+\}', '{"name": "bob", "age": 12}'),
    case("regex", "a{5}b*", "aaaaabb"),
)


def test_xgrammar_ends_forced_text_before_a_character_and_says_so() -> None:
    """Before 0.2.9 it raises there (`forced_text_may_end_inside_a_character`)."""
    if not backend("xgrammar").documents("inside_a_character"):
        pytest.skip("this release does not say so")
    findings = found(backend("xgrammar"), (*CASES, *REGEX))
    assert causes(findings) == {"forced_text_is_found": {"inside_a_character", "starts_inside_a_character"}}
    assert all(each.documented for each in findings["forced_text_is_found"] if each.cause != "more")


def test_llguidance_finds_all_of_the_forced_text() -> None:
    assert found(backend("llguidance"), (*CASES, *REGEX)) == {}


def test_lm_format_enforcer_cannot_be_led_into_a_character() -> None:
    findings = found(backend("lm_format_enforcer"), CASES)
    assert causes(findings) == {"retokenized_state_equals_a_replay": {"partial_utf8"}}


def test_outlines_core_with_a_jump_map_jumps_over_all_that_is_forced() -> None:
    plain, jumping = backend("outlines_core"), with_jump_map(backend("outlines_core"))
    assert found(jumping, (*CASES, *REGEX)) == {}
    subject = Subject(jumping, KANJI, jumping.compile(KANJI.grammar))
    assert run_check("x", CHECKS["forced_text_is_found"], subject) == ("passed", [])
    subject = Subject(plain, KANJI, plain.compile(KANJI.grammar))
    assert run_check("x", CHECKS["forced_text_is_found"], subject)[0] == "skipped: no jump_forward"


def test_another_dialect_of_regular_expressions_is_named() -> None:
    intersection = case("regex", "[a-z&&[^aeiou]]", "b")
    findings = found(backend("llguidance"), (intersection,))
    assert causes(findings) == {
        "forced_text_is_found": {"regex_dialect_rust"},
        "retokenized_state_equals_a_replay": {"regex_dialect_rust"},
    }
    outlines = backend("outlines_core")
    assert causes(found(with_jump_map(outlines), (intersection,))) == {
        "fast_forward_tokens_are_truly_forced": {"regex_dialect_rust"},
        "retokenized_state_equals_a_replay": {"regex_dialect_rust"},
    }
    jumping = with_jump_map(outlines, language_in_rust)
    subject = Subject(jumping, intersection, jumping.compile(intersection.grammar))
    assert run_check("x", CHECKS["fast_forward_tokens_are_truly_forced"], subject) == ("passed", [])


def test_xgrammar_takes_an_escaped_letter_for_the_letter() -> None:
    findings = found(backend("xgrammar"), (case("regex", r"\Aabc\Z", "abc"),))
    (unsound,) = findings["forced_bytes_are_truly_forced"]
    assert (
        unsound.cause == "regex_dialect_javascript"
        and unsound.documented
        and "b'AabcZ' is forced" in unsound.text
    )


@pytest.mark.parametrize("name", ["xgrammar", "llguidance"])
def test_forced_json_is_forced_by_the_backends_own_mask(name: str) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "kind": {"enum": ["red", "green"]}},
        "required": ["name", "kind"],
        "additionalProperties": False,
    }
    colours = case("json_schema", schema, '{"name": "B", "kind": "red"}')
    adapter = backend(name)
    subject = Subject(adapter, colours, adapter.compile(colours.grammar))
    assert run_check("x", CHECKS["forced_bytes_are_truly_forced"], subject) == ("passed", [])
    jumps = [
        place
        for place in subject.places("test")
        if (there := subject.reach(place.tokens)) and there.jump_forward()
    ]
    assert jumps and np.flatnonzero([place.position for place in jumps]).size
