"""Contract checks on cases: right adapters pass, each wrong one fails exactly its own, and what real backends
do is written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Literal, NoReturn

import miniatures
import pytest
from adapter_tools import BYTES, EMPTY, EOS, PADDING, SPECIAL, maker
from adapter_tools import SMALL as TOOLS_SMALL
from miniatures import wrong_states
from miniatures.reference import ReferenceObject

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    Dialect,
    Grammar,
    GrammarObject,
    UnsupportedGrammar,
    allowed_tokens,
)
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import (
    Check,
    Subject,
    checks_of,
    going_back,
    independence,
    lifecycle,
    lifecycle_compiling,
    masks,
    memory,
    run_check,
)
from harness.rows.row import Finding

SMALL = miniatures.small_vocabulary()


MODULES = (masks, memory, going_back, independence, lifecycle, lifecycle_compiling)
CHECKS: dict[str, Check] = {
    check.__name__.removeprefix("check_"): check for module in MODULES for check in checks_of(module)
}


def case(dialect: Dialect, text: str, *outputs: str) -> Case:
    grammar = Grammar(dialect, text)
    return Case(
        case_id(grammar), text, grammar, tuple(Instance(each, each.encode(), True) for each in outputs)
    )


DIGITS = case("regex", "[ab][0-9]{2,24}c+", "a12345678901234567c", "b3333c")
WORDS = case("choice", '["abcdefghijklmno", "abd", "é"]', "abcdefghijklmno", "é")


def mutant_named(name: str) -> Adapter:
    return next(mutant for mutant in wrong_states.MUTANTS if mutant.__name__ == name)(SMALL)


def subject_of(adapter: Adapter, chosen: Case, effort: int | None = 4, compile_ns: int = 0) -> Subject:
    return Subject(adapter, chosen, adapter.compile(chosen.grammar), effort, compile_ns)


def outcomes(adapter: Adapter, chosen: Case, effort: int | None = 4) -> dict[str, tuple[str, list[Finding]]]:
    subject = subject_of(adapter, chosen, effort)
    return {name: run_check(name, check, subject) for name, check in CHECKS.items()}


def findings(adapter: Adapter, chosen: Case, check: str, effort: int | None = 4) -> list[Finding]:
    return run_check(check, CHECKS[check], subject_of(adapter, chosen, effort))[1]


@pytest.mark.parametrize(
    ("vocabulary", "mask", "effort"),
    [
        ("small", "bitmask", 1),
        ("small", "bitmask", 4),
        ("small", "bitmask", None),
        ("small", "bool", 4),
        ("bytes", "bitmask", 4),
    ],
)
@pytest.mark.parametrize("chosen", [DIGITS, WORDS], ids=["digits", "words"])
def test_a_right_adapter_passes(
    chosen: Case, vocabulary: str, mask: Literal["bitmask", "bool"], effort: int | None
) -> None:
    seen = outcomes(
        miniatures.Reference(SMALL if vocabulary == "small" else BYTES, mask=mask), chosen, effort
    )
    assert {name: found for name, (_, found) in seen.items() if found} == {}
    skipped = {name for name, (outcome, _) in seen.items() if outcome != "passed"}
    without_specials = {"a_token_without_text_is_never_allowed"} if vocabulary == "bytes" else set()
    assert skipped == without_specials | ({"a_filler_fills_as_a_fill_does"} if mask == "bool" else set())


@pytest.mark.parametrize("name", ["FillsOneRowTwice", "FillsOneRowTwiceOnThreads"])
def test_rows_of_a_batch_are_told_apart_with_the_effort_of_a_gate(name: str) -> None:
    (found, *_) = findings(mutant_named(name), DIGITS, "a_batch_is_filled_row_by_row", effort=1)
    assert "differs in" in found.text


@pytest.mark.parametrize("mutant", wrong_states.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_adapter_fails_exactly_its_own_checks(mutant: type[Adapter]) -> None:
    seen = [each for chosen in (DIGITS, WORDS) for each in outcomes(mutant(SMALL), chosen).items()]
    assert {name for name, (outcome, _) in seen if outcome == "failed"} == wrong_states.MUTANTS[mutant]
    assert {
        found.check for _, (_, all_found) in seen for found in all_found if found.cause != "backend_error"
    } <= wrong_states.MUTANTS[mutant]


def test_every_check_fails_on_some_wrong_adapter() -> None:
    assert set().union(*wrong_states.MUTANTS.values()) == set(CHECKS)


@pytest.mark.parametrize(
    ("token", "cause"),
    [
        (EOS, "end_of_sequence"),
        (SPECIAL, "special"),
        (PADDING, "padding"),
        (EMPTY, "empty_token"),
        (ord("1"), ""),
    ],
)
def test_a_mask_that_says_otherwise_is_told_by_its_cause(token: int, cause: str) -> None:
    class Flips(ReferenceObject):
        def fill_bitmask(self, bitmask: Bitmask) -> None:
            super().fill_bitmask(bitmask)
            if len(self.taken) == 2:
                wrong_states.flip(bitmask, token)

    class FlipsOne(miniatures.Reference):
        object_class = Flips

    for effort in (9, None):
        found = findings(
            FlipsOne(TOOLS_SMALL),
            case("regex", "a[0-9]{2,5}", "a1234"),
            "the_mask_says_what_accept_does",
            effort,
        )
        assert {(each.cause, each.position, each.walk) for each in found} == {
            (cause, 2, (ord("a"), ord("1"), token))
        }


def test_another_spelling_of_what_the_backend_forces_is_told_apart() -> None:
    class Canonical(ReferenceObject):
        """Where text is forced, allows the canonical token alone, says so, and takes the others."""

        def fill_bitmask(self, bitmask: Bitmask) -> None:
            super().fill_bitmask(bitmask)
            if forced := self.forced():
                bitmask[:] = 0
                wrong_states.flip(bitmask, self.vocabulary.encode(forced)[0])

    class Silent(Canonical):
        def fast_forward_tokens(self) -> list[int]:
            return []

    class SaysIt(miniatures.Reference):
        object_class = Canonical

    class DoesNotSayIt(miniatures.Reference):
        object_class = Silent

    chosen, check = case("choice", '["ab1", "ab2"]', "ab1"), "the_mask_says_what_accept_does"
    assert {each.cause for each in findings(SaysIt(SMALL), chosen, check)} == {"canonical_only"}
    assert {each.cause for each in findings(DoesNotSayIt(SMALL), chosen, check)} == {""}


def test_what_only_a_used_object_refuses_is_a_matter_of_its_past() -> None:
    found = findings(mutant_named("SulksAfterThreeRefusals"), DIGITS, "the_mask_says_what_accept_does")
    assert {each.cause for each in found} == {"history"}


def test_what_an_adapter_does_not_implement_is_skipped() -> None:
    class CannotGoBack(ReferenceObject):
        rollback, copy = GrammarObject.rollback, GrammarObject.copy  # type: ignore[assignment]

    class CannotAfterAll(ReferenceObject):
        """As a wrapper of something that cannot."""

        def rollback(self, count: int) -> NoReturn:
            raise NotImplementedError

        def copy(self) -> NoReturn:
            raise NotImplementedError

    going_back = {name for name in CHECKS if "rollback" in name or "copy" in name}
    for wrapped in (CannotGoBack, CannotAfterAll):
        seen = outcomes(type("Wrapper", (miniatures.Reference,), {"object_class": wrapped})(SMALL), DIGITS)
        assert {
            name
            for name, (outcome, _) in seen.items()
            if outcome.startswith("skipped: the adapter does not implement")
        } == going_back
        assert {outcome for name, (outcome, _) in seen.items() if name not in going_back} == {"passed"}


def test_a_case_without_instances_and_a_slow_one_are_looked_at_where_it_makes_sense() -> None:
    seen = outcomes(miniatures.Reference(SMALL), case("regex", "[ab]+"))
    skipped = {name for name, (outcome, _) in seen.items() if outcome != "passed"}
    assert {outcome for outcome, _ in seen.values() if outcome != "passed"} == {
        "skipped: the backend accepts no token of an instance",
        "skipped: the output may end at none of the places",
    }
    assert "the_mask_says_what_accept_does" not in skipped
    slow = subject_of(miniatures.Reference(SMALL), DIGITS, compile_ns=10**9)
    name = "the_same_compile_gives_the_same_masks"
    assert run_check(name, CHECKS[name], slow)[0] == "skipped: the grammar takes too long to compile it twice"
    assert run_check(name, CHECKS[name], replace(slow, effort=None))[0] == "passed"


LARGE = Vocabulary(
    "large",
    (*BYTES.tokens, *(b"" for _ in range(9)), *(f"{number:04}".encode() for number in range(9000)), b"", b""),
    (256,),
    {256: "</s>", **{token: f"<{token}>" for token in range(257, 266)}},
    frozenset({9266, 9267}),
)


def test_of_a_large_vocabulary_a_sample_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    tried: set[int] = set()
    adapter = maker("reference", "Reference")(LARGE)
    chosen = case("regex", "[0-9]{7,40}x?", "12345678901234567890", "12341234")
    subject = subject_of(adapter, chosen)
    kind = type(subject.compiled.start())
    for method in ("fill_bitmask", "accept_token", "rollback"):
        real = getattr(kind, method)

        def counted(
            self: object, *given: int, real: Callable[..., object] = real, name: str = method
        ) -> object:
            calls[name] += 1
            if name == "accept_token":
                tried.add(given[0])
            return real(self, *given)

        monkeypatch.setattr(kind, method, counted)
    name = "the_mask_says_what_accept_does"
    assert run_check(name, CHECKS[name], subject) == ("passed", [])
    assert set(LARGE.special_tokens) | LARGE.padding_tokens <= tried
    assert calls["accept_token"] < 2500 and len({LARGE.tokens[token][:1] for token in tried}) > 100
    assert sum(len(LARGE.tokens[token]) == 4 for token in tried) > 50
    for other, check in CHECKS.items():
        if other != name:
            assert run_check(other, check, subject)[0] == "passed"
    assert calls["fill_bitmask"] < 180 and calls["accept_token"] < 3000
    calls.clear()
    assert run_check(name, CHECKS[name], replace(subject, effort=None)) == ("passed", [])
    assert tried == set(range(LARGE.size)) | tried and calls["accept_token"] > LARGE.size


class AllowsTheLongestToken(ReferenceObject):
    """Forbids in the mask all but the longest token, and takes what it forbids."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        longest = int(allowed_tokens(bitmask, self.vocabulary.size)[-1])
        bitmask[:] = 0
        wrong_states.flip(bitmask, longest)


def test_a_token_that_is_taken_though_it_is_forbidden_is_not_mistaken_for_a_refused_one() -> None:
    tokens = (*(b"a" * count for count in range(1, 40)), b"")
    vocabulary = Vocabulary("of one letter", tokens, (39,), {39: "</s>"})
    adapter = type("Allows", (miniatures.Reference,), {"object_class": AllowsTheLongestToken})(vocabulary)
    for count in range(60, 80):
        chosen = case("regex", f"a{{{count}}}", "a" * count)
        assert findings(adapter, chosen, "accept_tokens_stops_where_accept_token_does", 3) == []


class ForbidsEverything(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bitmask[:] = 0


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (ForbidsEverything, "where the mask forbids any tokens, some of them are taken"),
        (ReferenceObject, "nothing is refused at any of the places"),
    ],
)
def test_why_no_refusal_was_looked_at_is_told(kind: type[ReferenceObject], why: str) -> None:
    adapter = type("Adapter", (miniatures.Reference,), {"object_class": kind})(BYTES)
    subject = subject_of(adapter, case("regex", r"[\x00-\xff]*", "ab"))
    name = "a_refused_token_does_not_move"
    assert run_check(name, CHECKS[name], subject) == (f"skipped: {why}", [])


# Real backends


BACKENDS = {
    "reference": maker("reference", "Reference"),
    "xgrammar": maker("xgrammar", "Xgrammar"),
    "llguidance": maker("llguidance", "Llguidance"),
    "outlines_core": maker("outlines_core", "OutlinesCore"),
    "lm_format_enforcer": maker("lm_format_enforcer", "LMFormatEnforcer"),
}

REAL_CASES = {
    "digits": case("regex", "[ab][0-9]{2,8}", "a12345", "b12"),
    "choice": case("choice", '["yes", "no", "yesterday", "é"]', "yes", "é", "yesterday"),
    "object": case(
        "json_schema",
        '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, '
        '"required": ["name", "age"]}',
        '{"name": "Zoë", "age": 12}',
    ),
    "nested": case("ebnf", 'root ::= "[" root "]" | "1"\n', "[[[1]]]"),
    "tree": case("json_schema", '{"type": "array", "items": {"$ref": "#"}, "maxItems": 2}', "[[[[]]]]"),
    "counted": case("regex", "[a-z]{1,129}", "hello"),
}

FAULTS = {
    # A root rule that refers to itself: tokens that close two levels at once are taken, but masked out.
    ("xgrammar", "nested"): ("", "the mask forbids 1 token that accept_token takes, e.g. b']]'"),
    ("xgrammar", "tree"): ("", "tokens that accept_token takes, e.g. b']]', b'],', b'[]]'"),
    # The mask allows a token that begins rightly and goes on with half a character (E0 and F0 alone, of all
    # lead bytes).
    ("xgrammar", "counted"): (
        "",
        "the mask allows 2 tokens that accept_token refuses, e.g. b'a\\xe0', b'a\\xf0'",
    ),
    # By design, where only one text can follow: its canonical token alone is allowed.
    ("llguidance", "nested"): (
        "canonical_only",
        "the mask forbids 1 token that accept_token takes, e.g. b']'",
    ),
    ("llguidance", "choice"): (
        "canonical_only",
        "the mask forbids 1 token that accept_token takes, e.g. b'a'",
    ),
}
"""All of them of the check `the_mask_says_what_accept_does`: cause and text."""


@cache
def real_adapter(backend: str) -> Adapter:
    return BACKENDS[backend](load_vocabulary("probe"))


@pytest.mark.parametrize("name", REAL_CASES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_backends_do(backend: str, name: str) -> None:
    adapter, chosen = real_adapter(backend), REAL_CASES[name]
    try:
        adapter.compile(chosen.grammar)
    except UnsupportedGrammar as error:
        pytest.skip(str(error))
    seen = outcomes(adapter, chosen, 2 if backend == "lm_format_enforcer" else 5)
    failed = [each for _, found in seen.values() for each in found]
    fault = FAULTS.get((backend, name))
    if fault is None:
        assert failed == []
    else:
        assert {(each.check, each.cause) for each in failed} == {("the_mask_says_what_accept_does", fault[0])}
        assert any(each.text.endswith(fault[1]) for each in failed)
