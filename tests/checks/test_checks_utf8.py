"""UTF-8 without a reference: which tokens are impossible, why, and which pieces a character has.

The checks themselves are proven by the wrong adapters of test_checks_tokenization.py.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from miniatures.reference import Reference
from miniatures.wrong_bytes import FAULTS, INVALID, SPLIT, Strings, bytes_vocabulary

from harness.backend.grammar import Adapter, Grammar
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import Subject, checks, run_check, utf8
from harness.checks.utf8 import BAD, LEADS, Utf8, _strings_first, cause_of, impossible_of
from harness.checks.utf8_pieces import _characters, _splits
from harness.oracle.automaton import DEAD
from harness.rows.row import Finding

STRING = Grammar("json_schema", '{"type": "string"}')
NAMED = {mutant.__name__: mutant for mutant in FAULTS}


def case_of(grammar: Grammar, *contents: bytes, valid: bool = True) -> Case:
    return Case(
        case_id(grammar), "made", grammar, tuple(Instance(str(each), each, valid) for each in contents)
    )


def subject(adapter: Adapter, case: Case, effort: int | None = None) -> Subject:
    return Subject(adapter, case, adapter.compile(case.grammar), effort)


def run(name: str, adapter: Adapter, case: Case, effort: int | None = None) -> tuple[str, list[Finding]]:
    return run_check(name, checks()[name], subject(adapter, case, effort))


CONTINUED = [bytes(each) for count in range(4) for each in product((0x80, 0x90, 0xA0), repeat=count)]


def may_begin_text(text: bytes) -> bool:
    """Does it decode with one of these ends?

    (Python's incremental decoder takes the beginning of a surrogate for that of a character.)
    """
    return any(decodes(text + end) for end in CONTINUED)


def decodes(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.one_of(st.text().map(str.encode), st.binary(max_size=6)))
def test_the_automaton_reads_utf8_and_nothing_else(text: bytes) -> None:
    automaton = Utf8()
    assert (automaton.run(automaton.start, text) != DEAD) == may_begin_text(text)
    assert automaton.accepts(text) == decodes(text)


@pytest.mark.parametrize(
    "before", [b"", *LEADS, b'"a', b"\xf0\x9f", b"\xe6"], ids=lambda before: bytes(before).hex() or "start"
)
def test_the_impossible_tokens_are_those_that_no_decoder_takes(before: bytes) -> None:
    vocabulary = load_vocabulary("probe")
    impossible = impossible_of(vocabulary)
    found = impossible.after(impossible.state(before))
    never = {*vocabulary.special_tokens, *vocabulary.padding_tokens}
    for token, text in enumerate(vocabulary.tokens):
        assert found[token] == (bool(text) and token not in never and not may_begin_text(before + text)), text


CAUSES = {
    "overlong": ["c080", "c1bf", "c1", "e08080", "e09fbf", "f0808080", "f08fbfbf", "22c0"],
    "surrogate": ["eda080", "edbfbf", "edb0", "61edad"],
    "beyond": ["f4908080", "f5808080", "f490", "ff", "fe", "f8888080"],
    "lone_continuation": ["80", "bf", "6180", "c3a980"],
    "truncated": ["e28241", "c341", "f09f9822", "c3", "f09f98", "e2c3a9", "ede0", "f4c3"],
    "": ["", "61", "c3a9", "ed9fbf", "ee8080", "f48fbfbf", "f0908080", "e0a080"],
}


@pytest.mark.parametrize(
    ("cause", "text"), [(cause, text) for cause, texts in CAUSES.items() for text in texts]
)
def test_the_cause_of_what_is_no_utf8(cause: str, text: str) -> None:
    assert cause_of(bytes.fromhex(text)) == cause


def test_every_beginning_is_tried_with_a_byte_that_cannot_follow() -> None:
    for lead in LEADS:
        assert (
            may_begin_text(lead)
            and len([byte for byte in BAD if not may_begin_text(lead + bytes([byte]))]) >= 3
        )
    assert {cause_of(lead + bytes([byte])) for lead in (b"", *LEADS) for byte in BAD} >= set(CAUSES)


def test_what_was_accepted_along_an_instance_is_told_where_it_was() -> None:
    content = b'"ab\xc0\x80 c"'
    # Byte by byte, so that the token in question is the first byte that is impossible.
    adapter = NAMED["TakesTwoBytesForAscii"](byte_vocabulary())
    outcome, findings = run(INVALID, adapter, case_of(STRING, content, valid=False))
    assert outcome == "failed" and [finding.cause for finding in findings] == ["overlong"]
    assert all(not may_begin_text(adapter.vocabulary.decode(finding.walk)) for finding in findings)
    assert "the mask allows and accept_token takes b'\\xc" in findings[0].text and findings[0].under >= 1


def test_what_was_accepted_is_found_where_no_mask_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utf8, "_look", lambda *_: None)
    content = b'"a\xed\xa0\x80b"'
    adapter = NAMED["TakesSurrogates"](byte_vocabulary())
    (finding,) = run(INVALID, adapter, case_of(STRING, content, valid=False))[1]
    assert (finding.cause, finding.walk, finding.position) == ("surrogate", tuple(content[:4]), 3)
    assert finding.text.startswith(f"seen {len(content) - 3} times; after ")


def test_how_many_tokens_may_wrongly_follow_is_told_with_some_of_them() -> None:
    (finding,) = run(INVALID, NAMED["TakesAnyHighByte"](byte_vocabulary()), case_of(STRING, b'"a"'), 1)[1]
    assert finding.under == 11 and finding.text.endswith(", one of 11 such tokens")
    assert finding.examples == ("f5", "f7", "f9", "fb", "fd", "ff")


def test_who_takes_it_is_told() -> None:
    (finding,) = run(
        INVALID, NAMED["AcceptsSurrogatesThatItMasks"](byte_vocabulary()), case_of(STRING, b'"ab"')
    )[1]
    assert (
        "accept_token takes" in finding.text
        and "the mask" not in finding.text
        and finding.walk[-2:] == (0xED, 0xA0)
    )


def test_the_end_inside_a_character_is_told() -> None:
    (finding,) = run(
        SPLIT, NAMED["EndsInsideACharacter"](byte_vocabulary()), case_of(STRING, '"日"'.encode())
    )[1]
    assert (
        finding.cause == "truncated"
        and finding.walk[-1] == byte_vocabulary().eos_token
        and finding.text.count("accept_token") == 1
    )


def test_a_vocabulary_of_whole_characters_has_nothing_to_refuse() -> None:
    vocabulary = Vocabulary("whole", (*(each.encode() for each in '"ab日é'), b""), (6,), {6: "</s>"})
    assert run(INVALID, Strings(vocabulary), case_of(STRING, b'"a"'))[0] == (
        "skipped: every token is made of whole characters"
    )
    assert (
        run(SPLIT, Strings(vocabulary), case_of(STRING, '"日"'.encode()))[0]
        == "skipped: no character beyond ASCII can be spelled in pieces"
    )


def test_splits_need_a_character_of_several_bytes() -> None:
    assert run(SPLIT, Strings(bytes_vocabulary()), case_of(STRING, b'"ab"'))[0].startswith(
        "skipped: no valid instance that is accepted has"
    )


def test_every_split_for_which_there_are_tokens() -> None:
    probe = Reference(load_vocabulary("probe"))
    case = case_of(Grammar("choice", '["a"]'), b"a")
    for character, count in (("é", 1), ("日", 3), ("😀", 7)):
        splits = _splits(subject(probe, case), character.encode())
        assert len(splits) == len(set(splits)) == count
        assert all(
            probe.vocabulary.decode(split) == character.encode() and len(split) > 1 for split in splits
        )
        assert _splits(subject(Reference(byte_vocabulary()), case), character.encode()) == [
            tuple(character.encode())
        ]
    assert len(_splits(subject(probe, case, 4), "😀".encode())) == 4


def test_characters_of_different_lengths_are_split_first() -> None:
    content = '"éêëèàùôîáñçüäö日😀"'.encode()
    chosen = _characters(subject(Strings(bytes_vocabulary()), case_of(STRING, content), 6), [0])
    assert sorted(end - start for _, start, end in chosen) == [2, 3, 4]
    every = _characters(subject(Strings(bytes_vocabulary()), case_of(STRING, content)), [0])
    assert len(every) == 16


def test_places_inside_of_quotes_come_first() -> None:
    grammar = Grammar("choice", r'["[\"a\\\"b\", \"\"]"]')
    places = _strings_first(subject(Reference(byte_vocabulary()), case_of(grammar, rb'["a\"b", ""]')))
    inside = [place.text for place in places[:6]]
    assert set(inside) == {b'["', b'["a', rb'["a\"', rb'["a\"b', b'["a\\', rb'["a\"b", "'}
    assert b"" in {place.text for place in places[6:]}
