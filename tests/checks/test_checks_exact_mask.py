"""The exact-mask check: silent on the perfect backend, and each bent mask is found with its cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from miniatures.wrong_masks import WRONG_MASKS, BentObject, EcmaClasses

from harness.backend.grammar import Adapter, Grammar, GrammarObject
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import NotApplicable, Subject, run_check, stamped
from harness.checks.exact_mask import check_the_mask_is_exact
from harness.oracle.reference import Reference, ReferenceObject
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding

CHOICE = Grammar("choice", '["abc", "abd", "a日本", "a日曜", "abcabc", "zabc", "zabd"]')
LONGER = (b"ab", b"abc", "日".encode(), "日".encode()[:2], "a日".encode(), b"ab", b"", b"", b"", b"", b"")
EOS = 256 + len(LONGER) - 4
VOCABULARY = Vocabulary(
    name="small",
    tokens=(*(bytes([byte]) for byte in range(256)), *LONGER),
    eos_tokens=(EOS,),
    special_tokens={EOS: "</s>", EOS + 1: "[INST]"},
    padding_tokens=frozenset({EOS + 2, EOS + 3}),
)


def subject(adapter: Adapter, grammar: Grammar, *texts: str) -> Subject:
    instances = tuple(Instance(text, text.encode(), True) for text in texts)
    return Subject(adapter, Case(case_id(grammar), "a case", grammar, instances), adapter.compile(grammar))


def findings(adapter: Adapter, grammar: Grammar = CHOICE, *texts: str) -> list[Finding]:
    walked = subject(adapter, grammar, *(texts or ("abc", "zabd", "abcabc", "a")))
    return list(stamped("the_mask_is_exact", check_the_mask_is_exact, walked))


@pytest.mark.parametrize("mask", ["bitmask", "bool"])
def test_the_perfect_backend_has_exact_masks(mask: Any) -> None:
    assert findings(Reference(VOCABULARY, mask=mask)) == []
    assert findings(Reference(VOCABULARY, mask=mask), CHOICE, "a日本", "a日曜") == []


@pytest.mark.parametrize(
    ("wrong", "cause"), WRONG_MASKS.items(), ids=lambda each: getattr(each, "__name__", None)
)
def test_a_wrong_mask_is_found_with_its_cause(wrong: type[Reference], cause: str) -> None:
    found = findings(wrong(VOCABULARY))
    assert found and {each.cause for each in found} == {cause}
    assert all(each.over + each.under > 0 and each.walk and each.examples for each in found)


def test_a_mask_of_another_dialect_is_named() -> None:
    pattern = Grammar("regex", r"a\d*")
    assert findings(Reference(VOCABULARY), pattern, "a12") == []
    (found, *_) = findings(EcmaClasses(VOCABULARY), pattern, "a12")
    assert (found.cause, found.under) == ("regex_dialect_ecma", 0) and found.over > 0


def test_tokens_that_pass_a_possible_end_are_told_apart() -> None:
    wrong = next(each for each, cause in WRONG_MASKS.items() if cause == "possible_end")
    assert {each.cause for each in findings(wrong(VOCABULARY), CHOICE, "abc")} == {"possible_end"}


def test_the_walk_of_a_finding_shows_it_again() -> None:
    wrong = next(each for each in WRONG_MASKS if each.__name__ == "allows_the_letter_x")
    one = subject(wrong(VOCABULARY), CHOICE, "abc")
    findings = list(check_the_mask_is_exact(one))
    assert findings
    for each in findings:
        *before, token = each.walk
        reached = one.reach(tuple(before))
        assert reached is not None and token == ord("x") and one.allowed(reached)[token]
        assert len(before) == each.position


@pytest.mark.parametrize(
    ("name", "sound", "complete", "says"),
    [
        ("allows_the_letter_x", False, True, "it allows 1 token that the grammar forbids, e.g. b'x'"),
        ("forbids_the_letter_z", True, False, "it forbids 1 token that the grammar allows, e.g. b'z'"),
        (
            "never_allows_the_end",
            True,
            False,
            "it forbids 1 token that the grammar allows, e.g. </s>",
        ),
    ],
)
def test_sound_and_complete_places_are_counted_apart(
    name: str, sound: bool, complete: bool, says: str
) -> None:
    wrong = next(each for each in WRONG_MASKS if each.__name__ == name)
    one = subject(wrong(VOCABULARY), CHOICE, "abc", "zabd")
    found = list(check_the_mask_is_exact(one))
    counts = one.counted["the_mask_is_exact"]
    places = counts["places"]
    assert places == len(list(one.places("exact"))) >= len(found) > 0
    assert counts.get("sound", 0) == (places if sound else places - len(found))
    assert counts.get("complete", 0) == (places if complete else places - len(found))
    for each in found:
        assert each.text.endswith(says) and (each.over, each.under) == (not complete, not sound)


def bent(
    bend: Callable[[ReferenceObject, TokenSet], object],
    *texts: str,
    vocabulary: Vocabulary = VOCABULARY,
    **methods: Any,
) -> list[Finding]:
    """Returns what is found in a perfect backend whose masks this function changes in place."""
    kind: Any = type("Bent", (BentObject,), {"bend": staticmethod(bend), **methods})
    adapter = Reference(vocabulary)
    one = subject(adapter, CHOICE, *texts)
    one.compiled.start = lambda: kind(adapter, one.language)  # type: ignore[method-assign]
    return list(check_the_mask_is_exact(one))


def test_what_is_wrong_on_both_sides_is_told_and_a_token_that_is_forbidden_is_walked() -> None:
    def bend(_: ReferenceObject, allowed: TokenSet) -> None:
        allowed[ord("x")], allowed[ord("a")] = True, False

    first, *_ = bent(bend, "abc")
    assert (first.position, first.walk, first.over, first.under) == (0, (ord("a"),), 1, 1)
    assert first.text == (
        "after b'' it forbids 1 token that the grammar allows, e.g. b'a' and allows 1 token that the grammar "
        "forbids, e.g. b'x'"
    )
    assert first.examples == ("61", "78")


BLANK, LONE, SPECIAL = ord(" "), 0xC0, EOS + 1


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ((SPECIAL, BLANK), "special_token+whitespace"),
        ((SPECIAL, LONE), "special_token+invalid_utf8"),
        ((SPECIAL, ord("x")), ""),
        ((SPECIAL, EOS + 2), "special_token"),
        ((BLANK, ord("x")), ""),
        ((LONE, BLANK), ""),
    ],
)
def test_a_token_that_is_never_text_is_named_beside_what_else_is_wrong(
    more: tuple[int, ...], cause: str
) -> None:
    found = bent(lambda _, allowed: allowed.put(more, True), "abc")
    assert found and {each.cause for each in found} == {cause}


def test_a_mask_with_two_spellings_of_forced_text_is_not_one_of_the_canonical_only() -> None:
    def bend(here: ReferenceObject, allowed: TokenSet) -> None:
        if here._language.forced(here._states[-1], 9) == b"ab":
            allowed[[token for token, text in enumerate(VOCABULARY.tokens) if text == b"ab"]] = False

    assert [each.cause for each in bent(bend, "zabd")] == [""]


def test_what_is_forced_needs_not_be_said_where_no_piece_is_forbidden() -> None:
    def bend(here: ReferenceObject, allowed: TokenSet) -> None:
        if here._language.forced(here._states[-1], 9) == b"ab":
            allowed[:] = False
            allowed[256] = True

    says_nothing = {name: getattr(GrammarObject, name) for name in ("jump_forward", "fast_forward_tokens")}
    assert {each.cause for each in bent(bend, "zabd", **says_nothing)} == {"canonical_only"}


def test_only_whole_characters_tell_whether_a_piece_is_what_is_wrong() -> None:
    """Where no token is the whole character, nothing says that the backend knows it."""
    tokens = tuple(b"" if text in ("日".encode(), "a日".encode()) else text for text in VOCABULARY.tokens)
    without = replace(VOCABULARY, tokens=tokens, padding_tokens=frozenset(range(EOS + 2, len(tokens))))
    for vocabulary, cause in ((VOCABULARY, "partial_utf8"), (without, "")):
        found = bent(lambda _, allowed: allowed.put("日".encode()[0], False), "a", vocabulary=vocabulary)
        assert [(each.position, each.cause) for each in found] == [(1, cause)]


def test_without_a_reference_there_is_nothing_to_check() -> None:
    grammar = Grammar("json_schema", "{}")
    one = Subject(
        Reference(VOCABULARY), Case("0" * 12, "a case", grammar), Reference(VOCABULARY).compile(CHOICE)
    )
    with pytest.raises(NotApplicable):
        list(check_the_mask_is_exact(one))
    assert run_check("the_mask_is_exact", check_the_mask_is_exact, one)[0].startswith(
        "skipped: documents may be spelled in more ways than a backend must allow"
    )


def test_a_documented_divergence_is_labelled_and_still_found() -> None:
    wrong = next(each for each, cause in WRONG_MASKS.items() if cause == "canonical_only")
    stated = type("Stated", (wrong,), {"documented": {"canonical_only": "its README says so"}})
    assert {each.documented for each in findings(stated(VOCABULARY))} == {True}
    assert {each.documented for each in findings(wrong(VOCABULARY))} == {False}


def test_outlines_core_forbids_the_146_tokens_that_end_inside_a_character() -> None:
    """With tekken the other two are exact."""
    vocabulary = load_vocabulary("tekken")
    grammar = Grammar("regex", '[^"]*')
    seen = {}
    for name in ("outlines-core", "xgrammar", "llguidance"):
        (spec,) = parse_specs(name)
        seen[name] = [
            (each.cause, each.over, each.under) for each in findings(make(spec, vocabulary), grammar, "a")
        ][:1]
    assert seen == {"outlines-core": [("partial_utf8", 146, 0)], "xgrammar": [], "llguidance": []}
