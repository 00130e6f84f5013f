"""The suite of structural tags in the new form, whose validities were written by hand: against the judge of
the tests, and the automaton."""

from __future__ import annotations

from typing import Any

import pytest
from recognising_formats import is_output, is_output_of_tokens
from suite_files import SUITES, content, lines_of

from harness.backend.tag_formats import read_tag
from harness.backend.tag_formats.forms import has_tokens
from harness.backend.tag_formats.read import READERS
from harness.backend.tag_formats.tokens import token_id
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.cases.suite import find_suite, read_cases
from harness.oracle.language import outputs_of

HEADER, *CASES = lines_of(SUITES["tag_formats"])
BYTES, PROBE = byte_vocabulary(), load_vocabulary("probe")
OF_TEXTS = [case for case in CASES if "token_ids" not in case["tags"]]
OF_TOKENS = [case for case in CASES if "token_ids" in case["tags"]]


def with_ids(value: Any, vocabulary: Vocabulary) -> Any:
    """Returns the form with the ids of a vocabulary in the place of tokens' names."""
    if isinstance(value, list):
        return [with_ids(each, vocabulary) for each in value]
    if not isinstance(value, dict):
        return value
    form = {name: with_ids(each, vocabulary) for name, each in value.items()}
    for name in ("exclude_tokens", "trigger_tokens"):
        if name in form:
            form[name] = [token_id(vocabulary, each) for each in form[name]]
    if isinstance(form.get("token"), str):
        form["token"] = token_id(vocabulary, form["token"])
    if form.get("type") == "token_dispatch":
        form["rules"] = [[token_id(vocabulary, token), content] for token, content in form["rules"]]
    return form


def allows_tokens(form: dict[str, Any], ids: list[int], vocabulary: Vocabulary) -> bool:
    texts = [text.decode() if text.isascii() else "" for text in vocabulary.tokens]
    return is_output_of_tokens(with_ids(form, vocabulary), ids, texts, frozenset(vocabulary.eos_tokens))


def allows(form: dict[str, Any], content: bytes) -> bool:
    if has_tokens(read_tag(form)):
        return allows_tokens(form, [*content], BYTES)
    try:
        return is_output(form, content.decode())
    except UnicodeDecodeError:
        return False


def names(case: dict[str, Any]) -> str:
    return str(case["description"])


@pytest.mark.parametrize("case", OF_TEXTS, ids=names)
def test_judge_and_automaton_say_what_was_written_by_hand(case: dict[str, Any]) -> None:
    (read,) = [each for each in read_cases(find_suite("tag_formats")) if each.name == case["description"]]
    automaton = outputs_of(read.grammar, vocabulary=BYTES)
    written = {content(test): test["valid"] for test in case["tests"]}
    assert {output: allows(case["structural_tag"], output) for output in written} == written
    states = {output: automaton.start for output in written}
    for output in written:
        for byte in output:
            states[output] = automaton.after_token(states[output], byte, bytes((byte,)))
    assert {output: automaton.accepting(states[output]) for output in written} == written


@pytest.mark.parametrize("case", OF_TOKENS, ids=names)
def test_judge_and_automaton_say_of_tokens_what_was_written_by_hand(case: dict[str, Any]) -> None:
    (read,) = [each for each in read_cases(find_suite("tag_formats")) if each.name == case["description"]]
    automaton = outputs_of(read.grammar, vocabulary=PROBE)
    assert len(read.instances) == len(case["tests"])
    for instance in read.instances:
        ids = instance.ids(PROBE)
        assert allows_tokens(case["structural_tag"], ids, PROBE) is instance.valid, instance.name
        state = automaton.start
        for token in ids:
            state = automaton.after_token(state, token, PROBE.tokens[token])
        assert automaton.accepting(state) is instance.valid, instance.name


def types_in(value: Any) -> set[str]:
    parts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    own = {value["type"]} if isinstance(value, dict) and isinstance(value.get("type"), str) else set()
    return own.union(*map(types_in, parts))


def test_every_form_has_a_case() -> None:
    used = set().union(*(types_in(case["structural_tag"]["format"]) for case in CASES))
    assert set(READERS) - {"qwen_xml_parameter"} <= used


def test_the_suite_covers_what_it_promises() -> None:
    topics = (
        "empty nested overlap excludes trigger prefix unicode multibyte max_chars several_calls ambiguous"
    )
    assert set(topics.split()) <= {tag for case in CASES for tag in case["tags"]}
    assert len(CASES) >= 60


def test_the_file_has_the_form_of_a_suite() -> None:
    assert (
        HEADER.keys() == {"suite", "version", "default", "description"} and HEADER["suite"] == "tag_formats"
    )
    for case in CASES:
        assert case.keys() - {"notes"} == {"description", "structural_tag", "tests", "tags"}
        read_tag(case["structural_tag"])
