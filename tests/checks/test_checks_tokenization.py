"""The checks of tokenizations, special tokens and bytes: a right adapter passes, each wrong one is noticed by
its own checks."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import pytest
from adapter_tools import maker
from miniatures.reference import Reference, ReferenceObject, small_vocabulary
from miniatures.wrong_bytes import FAULTS, INVALID, MASK, SPECIAL, SPLIT, VERDICT, Strings, bytes_vocabulary
from out_of_time import without_its_last_call

from harness.backend.grammar import Adapter, Dialect, Grammar, GrammarObject
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import Subject, checks, run_check
from harness.checks.special_tokens import _is_begun
from harness.checks.tokenization import TOKENS
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding

OURS = (VERDICT, MASK, SPECIAL, INVALID, SPLIT)


def case_of(dialect: Dialect, text: str, *contents: str, valid: bool = True) -> Case:
    grammar = Grammar(dialect, text)
    return Case(
        case_id(grammar), "made", grammar, tuple(Instance(each, each.encode(), valid) for each in contents)
    )


STRING = case_of("json_schema", '{"type": "string"}', '"é日😀ab"', '"abc"', '"a日b"')
CHOICE = case_of("choice", '["ab", "ab c", "日😀"]', "ab", "ab c", "日😀")


def run(name: str, adapter: Adapter, case: Case, effort: int | None = None) -> tuple[str, list[Finding]]:
    return run_check(name, checks()[name], Subject(adapter, case, adapter.compile(case.grammar), effort))


def causes(name: str, adapter: Adapter, case: Case, effort: int | None = None) -> set[str]:
    return {finding.cause for finding in run(name, adapter, case, effort)[1]}


@pytest.mark.parametrize("effort", [1, 4, None])
@pytest.mark.parametrize("case", [STRING, CHOICE], ids=["string", "choice"])
@pytest.mark.parametrize("name", OURS)
def test_a_right_adapter_passes(name: str, case: Case, effort: int | None) -> None:
    for adapter in (Strings(bytes_vocabulary()), Strings(bytes_vocabulary(), mask="bool")):
        outcome, findings = run(name, adapter, case, effort)
        assert findings == []
        assert outcome.startswith("skipped: no place" if (name, case) == (SPECIAL, CHOICE) else "passed"), (
            outcome
        )


@pytest.mark.parametrize("mutant", FAULTS, ids=lambda mutant: str(mutant.__name__))
def test_a_wrong_adapter_is_noticed_by_its_own_checks(mutant: type[Adapter]) -> None:
    found: dict[str, set[str]] = {}
    for name in OURS:
        for case in (STRING, CHOICE):
            adapter = mutant(bytes_vocabulary())
            for finding in run(name, adapter, case)[1]:
                found.setdefault(name, set()).add(finding.cause)
                assert finding.check == name and finding.position == len(finding.walk) - 1
                assert reaches(adapter, case, finding.walk[:-1]) and finding.text and finding.examples
    assert found == FAULTS[mutant]


def reaches(adapter: Adapter, case: Case, tokens: tuple[int, ...]) -> bool:
    return adapter.compile(case.grammar).start().accept_tokens(tokens) == len(tokens)


def test_every_check_is_proven_by_a_wrong_adapter() -> None:
    assert set().union(*FAULTS.values()) == set(OURS) <= checks().keys()


@pytest.mark.parametrize("name", OURS)
def test_what_was_found_before_the_time_was_up_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for mutant, faults in FAULTS.items():
        for case in (STRING, CHOICE):
            if name in faults and run(name, mutant(bytes_vocabulary()), case)[1]:
                outcome, findings = without_its_last_call(monkeypatch, name, mutant(bytes_vocabulary()), case)
                monkeypatch.undo()
                assert outcome == "failed" and findings, (mutant, case)


def test_a_text_that_the_vocabulary_cannot_spell_stands_beside_no_special_token() -> None:
    """The vocabulary has the letters of `</s>`, and of no other text of that shape."""
    letters = [bytes([byte]) for byte in b'"</s>']
    few = Vocabulary("few", (*letters, b""), (len(letters),), {len(letters): "</s>"})
    case = case_of("json_schema", '{"enum": ["s"]}', '"s"')
    assert run(SPECIAL, Reference(few), case)[1] == []


def test_the_same_twice() -> None:
    (mutant,) = (each for each in FAULTS if each.__name__ == "KnowsWholeCharactersOnly")
    assert [run(name, mutant(bytes_vocabulary()), STRING, 2) for name in OURS] == [
        run(name, mutant(bytes_vocabulary()), STRING, 2) for name in OURS
    ]


# Where there is nothing to check


def test_bytes_alone_are_no_other_tokenization() -> None:
    for name in (VERDICT, MASK):
        outcome, _ = run(name, Strings(byte_vocabulary()), STRING)
        assert outcome.startswith("skipped: no ") and "another tokenization" in outcome


def test_what_is_not_known_to_be_valid_or_not_accepted_is_left_out() -> None:
    for case in (
        case_of("choice", '["ab"]', "ab", valid=False),
        case_of("choice", '["ab"]', "abc"),
        case_of("choice", '["ab"]'),
    ):
        for name in (VERDICT, SPLIT):
            assert run(name, Strings(bytes_vocabulary()), case)[0] == (
                "skipped: no instance that is known to be valid is accepted in its canonical tokens"
            )


def test_the_mask_is_compared_along_invalid_instances_too() -> None:
    (mutant,) = (each for each in FAULTS if each.__name__ == "ForgetsALetterAfterShortTokens")
    assert causes(
        MASK, mutant(bytes_vocabulary()), case_of("json_schema", '{"type": "string"}', '"ab abc', valid=False)
    ) == {""}


# Effort


@pytest.mark.parametrize("name", OURS)
def test_the_work_is_bounded_by_the_effort(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fills = 0
    accepts: list[int] = []

    class Counts(ReferenceObject):
        def accept_token(self, token: int) -> bool:
            accepts.append(token)
            return super().accept_token(token)

    def counted(self: Subject, grammar_object: GrammarObject, ask: object = Subject.allowed) -> TokenSet:
        nonlocal fills
        fills += 1
        return ask(self, grammar_object)  # type: ignore[operator,no-any-return]

    monkeypatch.setattr(Subject, "allowed", counted)
    contents = [f'"é日😀{each} abc ab 日日"' for each in range(12)]
    case = case_of("json_schema", '{"type": "string"}', *contents)
    adapter = type("Counting", (Strings,), {"object_class": Counts})(bytes_vocabulary())
    tested = Subject(adapter, case, adapter.compile(case.grammar), 4)
    longest = max(map(len, tested.paths))
    accepts.clear()
    assert run_check(name, checks()[name], tested)[0] == "passed"
    assert 0 < fills <= 40
    if name in (VERDICT, MASK):  # the canonical tokens of two instances, the others, and one way in any case
        assert len(accepts) <= 2 * (longest + 1) + 4 * TOKENS + 2 * 2 * max(map(len, contents))


# Documentation


def test_a_cause_that_the_backend_documents_is_labelled() -> None:
    (mutant,) = (each for each in FAULTS if each.__name__ == "MasksAllButTheCanonicalToken")

    class Documents(mutant):  # type: ignore[misc,valid-type]
        documented: ClassVar[dict[str, str]] = {"canonical_only": "It says so."}

    assert {each.documented for each in run(VERDICT, mutant(bytes_vocabulary()), CHOICE)[1]} == {False}
    assert {each.documented for each in run(VERDICT, Documents(bytes_vocabulary()), CHOICE)[1]} == {True}


class LosesDigits(ReferenceObject):
    """A backend that, behind two bytes in two tokens, allows and takes no digit but 2."""

    def may_take(self, token: int) -> bool:
        text = self.vocabulary.tokens[token]
        return super().may_take(token) and not (self.is_off and text != b"2")

    @property
    def is_off(self) -> bool:
        return len(self.taken) == 2 and len(self.text) == 2

    def fast_forward_tokens(self) -> list[int]:
        return []


class SaysThatItIsForced(LosesDigits):
    def fast_forward_tokens(self) -> list[int]:
        return [ord("2")] if self.is_off else []


@pytest.mark.parametrize(
    ("kind", "pattern", "texts", "cause"),
    [
        (LosesDigits, "[ab][0-9][0-9]c", ("a12c", "a13c"), ""),
        (SaysThatItIsForced, "[ab][0-9][0-9]c", ("a12c", "a13c"), ""),  # its other mask allows all digits
        (SaysThatItIsForced, "[ab][0-9]23</f>", ("a123</f>",), "canonical_only"),
    ],
)
def test_only_what_is_forced_is_excused_as_the_canonical_token(
    kind: type[ReferenceObject], pattern: str, texts: tuple[str, ...], cause: str
) -> None:
    class Documents(Reference):
        object_class: ClassVar[type[ReferenceObject]] = kind
        documented: ClassVar[dict[str, str]] = {"canonical_only": "It says so."}

    case = case_of("regex", pattern, *texts)
    found = run(MASK, Documents(small_vocabulary()), case)[1]
    assert {(each.cause, each.documented) for each in found} == {(cause, bool(cause))}


# Special tokens


def test_text_that_the_schema_forbids_is_no_fault() -> None:
    # The control of `</s>` is `</t>`.
    assert (
        run(SPECIAL, Reference(bytes_vocabulary()), case_of("json_schema", '{"enum": ["</t>", "a"]}', '"a"'))[
            0
        ]
        == "passed"
    )


def test_text_that_the_schema_allows_is_judged() -> None:
    (mutant,) = (each for each in FAULTS if each.__name__ == "RefusesTheTextOfTheEnd")
    Enum = type("Enum", (Reference,), {"object_class": mutant.object_class})  # type: ignore[attr-defined]
    case = case_of("json_schema", '{"enum": ["</s>", "</t>", "a"]}', '"a"')
    assert causes(SPECIAL, Enum(bytes_vocabulary()), case) == {"special_text_refused"}


def test_special_text_in_free_text_of_a_choice() -> None:
    texts = '["x</s>y", "x</t>y", "x[INST]"]'
    case = case_of("choice", texts, "x</s>y")
    assert run(SPECIAL, Reference(bytes_vocabulary()), case)[0] == "passed"
    (mutant,) = (each for each in FAULTS if each.__name__ == "RefusesTheTextOfTheEnd")
    assert causes(SPECIAL, mutant(bytes_vocabulary()), case_of("choice", texts, "x")) == {
        "special_text_refused"
    }


def test_a_trigger_is_no_free_text() -> None:
    assert (
        _is_begun(b"<tool", b"x<tool_call>")
        and _is_begun(b"</s>x", b"a</s>")
        and not _is_begun(b"<f>", b"</s>")
    )


# What the real backends do on the vocabulary of hard cases

PROBE_CASES = {
    "string": case_of("json_schema", '{"type": "string"}', '"日é ok"', '"a"'),
    "number": case_of("json_schema", '{"type": "number"}', "12.5"),
    "no quotes": case_of("regex", '[^"]*', "日é", "abc"),
    "kana": case_of("regex", "日本語[ぁ-ん]", "日本語ぁ"),
    "choices": case_of("choice", '["日本", "在线", "hello"]', "在线", "hello"),
}
MALFORMED = {"overlong", "surrogate", "beyond", "lone_continuation", "truncated"}
CANONICAL = {VERDICT: {"canonical_only"}, SPLIT: {"canonical_only"}}
PARTIAL = {VERDICT: {"partial_utf8"}, SPLIT: {"partial_utf8"}}
SEEN: dict[str, dict[str, dict[str, set[str]]]] = {
    "xgrammar": {"string": {INVALID: {"surrogate"}}, "no quotes": {INVALID: {"surrogate"}}},
    "llguidance": {"kana": CANONICAL, "choices": CANONICAL},
    "outlines_core": {"no quotes": PARTIAL, "number": {VERDICT: {"possible_end"}}},
    "lm_format_enforcer": {"string": {INVALID: MALFORMED}, "kana": PARTIAL, "choices": PARTIAL},
}
"""What is found, by backend, case and check; nothing elsewhere. A library that changes it changes
this table."""

CLASSES = {
    "xgrammar": "Xgrammar",
    "llguidance": "Llguidance",
    "outlines_core": "OutlinesCore",
    "lm_format_enforcer": "LMFormatEnforcer",
}


@cache
def on_probe(backend: str) -> Adapter:
    return maker(backend, CLASSES[backend])(probe())


@cache
def probe() -> Vocabulary:
    return load_vocabulary("probe")


# lm-format-enforcer recurses once for each character of a token, and the vocabulary has one of 1,000; numbers
# take it seconds.
PAIRS = [
    (backend, case)
    for backend in CLASSES
    for case in PROBE_CASES
    if backend[:2] != "lm" or case not in ("no quotes", "number")
]


@pytest.mark.parametrize(("backend", "case"), PAIRS)
def test_what_is_known_of_the_backends_is_found(backend: str, case: str) -> None:
    effort = 1 if (backend, case) == ("lm_format_enforcer", "string") else 4
    found = {name: causes(name, on_probe(backend), PROBE_CASES[case], effort) for name in OURS}
    assert {name: each for name, each in found.items() if each} == SEEN[backend].get(case, {})
