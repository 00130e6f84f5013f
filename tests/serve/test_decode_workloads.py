"""Workloads: which texts there are, the requests made of them, and who judges the outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import CORPORA

from harness.backend.bridge.thinking import think_end
from harness.backend.grammar import Grammar
from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.load import load_vocabulary
from harness.errors import BadInput
from harness.oracle.judge import Judge
from harness.serve.decode.setting import Mode
from harness.serve.decode.workloads import (
    THOUGHT,
    WORKLOADS,
    ReferenceText,
    answer,
    find_workload,
    judge,
    reference,
    requests,
)
from harness.walk.loop.request import Request

PROBE = load_vocabulary("probe")
BYTES = load_vocabulary("bytes")


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_of_ours_has_texts_that_are_valid(name: str) -> None:
    workload = find_workload(name.replace("_", "-"))
    assert workload.name == name and len(workload.texts) >= 3
    assert {judge(text, text.content) for text in workload.texts} == {"valid"}
    assert {judge(text, text.content + b"#") for text in workload.texts} == {
        "invalid"
    } or name == "nothing_forced"
    assert {text.reasoning for text in workload.texts} == {name == "reasoning"}


def test_a_suite_a_file_and_a_folder_are_workloads_of_their_valid_instances(tmp_path: Path) -> None:
    tests = [
        {"description": "yes", "data": 1, "valid": True},
        {"description": "no", "data": "1", "valid": False},
        {"data": 2},
    ]
    (tmp_path / "number.json").write_text(
        json.dumps({"schema": {"type": "integer"}, "tests": tests, "options": {"draft": "draft4"}})
    )
    for wanted in (tmp_path, tmp_path / "number.json"):
        (text,) = find_workload(str(wanted)).texts
        said = '{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}'
        assert text == ReferenceText("number: yes", Grammar("json_schema", said), b"1", "draft4")
    assert len(find_workload("speed").texts) == 15 and not find_workload("speed").left_out


def test_cases_without_a_text_are_counted(tmp_path: Path) -> None:
    (tmp_path / "bare.json").write_text('{"type": "integer"}')
    (tmp_path / "unmarked.json").write_text('{"schema": true, "tests": [{"data": 1}]}')
    with pytest.raises(BadInput, match=r"no instance is marked as valid.*`decode` makes and judges no docu"):
        find_workload(str(tmp_path / "bare.json"))
    (tmp_path / "marked.json").write_text('{"schema": true, "tests": [{"data": 1, "valid": true}]}')
    found = find_workload(str(tmp_path))
    said = f"{tmp_path.name}: 2 of 3 cases without a text to decode: no instance of theirs is marked as valid"
    assert len(found.texts) == 1 and found.left_out.startswith(said)


def test_each_text_and_each_request_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Also where an instance is called as a repetition of another would be: answers are told apart by it."""
    lines = [
        {"description": "c", "regex": regex, "tests": [{"description": name, "text": text, "valid": True}]}
        for regex, name, text in (
            ("a+", "v", "a"), ("b+", "v (2)", "b"), ("c+", "v #2", "c"), ("d+", "v", "d"), ("e+", "v", "e")
        )
    ]  # fmt: skip
    path = tmp_path / "names.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    workload = find_workload(str(path))
    assert [text.name for text in workload.texts] == ["c: v", "c: v (2)", "c: v #2", "c: v #3", "c: v #4"]
    made = requests(workload, load_vocabulary("bytes"), count=17, prompt_tokens=4)
    assert len({request.name for request in made}) == 17
    assert [request.name for request in made[5:7]] == ["c: v (3)", "c: v (2) (2)"]


def test_what_is_no_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r'unknown workload "function_cals".*did you mean "function_calls"'):
        find_workload("function_cals")
    (tmp_path / "none.json").write_text('{"schema": true, "tests": [{"data": 1, "valid": false}]}')
    with pytest.raises(BadInput, match="no instance is marked as valid"):
        find_workload(str(tmp_path))
    (tmp_path / "none.json").write_text("{")
    with pytest.raises(BadInput, match="malformed JSON"):
        find_workload(str(tmp_path))


@pytest.mark.parametrize("vocabulary", [PROBE, BYTES], ids=lambda each: each.name)
@pytest.mark.parametrize("tokens", [1, 32, 700])
def test_a_prompt_has_exactly_the_length_that_was_asked_for_and_no_specials(
    vocabulary: Vocabulary, tokens: int
) -> None:
    made = requests(find_workload("enums"), vocabulary, count=7, prompt_tokens=tokens)
    for each in made:
        assert len(each.prompt) == tokens
        assert all(
            vocabulary.tokens[token] and token not in vocabulary.special_tokens for token in each.prompt
        )


def test_the_grammar_stands_at_the_end_of_the_prompt() -> None:
    (made,) = requests(find_workload("sql"), BYTES, count=1, prompt_tokens=900)
    assert made.grammar is not None and BYTES.decode(made.prompt).endswith(made.grammar.text.encode())
    (short,) = requests(find_workload("sql"), BYTES, count=1, prompt_tokens=20)
    assert BYTES.decode(short.prompt) == made.grammar.text.encode()[-20:]


def test_the_same_arguments_give_the_same_requests_and_another_seed_others() -> None:
    workload = find_workload("free_strings")

    def made(seed: int, mode: Mode = "seeded") -> list[dict[str, object]]:
        return [
            vars(each) for each in requests(workload, PROBE, count=9, prompt_tokens=900, mode=mode, seed=seed)
        ]

    assert made(1) == made(1)
    assert all(
        left["prompt"] != right["prompt"] and left["seed"] != right["seed"]
        for left, right in zip(made(1), made(2), strict=True)
    )
    assert len({each["seed"] for each in made(1)}) == len({each["name"] for each in made(1)}) == 9
    assert len({each["prompt"] for each in made(1)}) == 9  # a text that comes again has another prompt
    assert (
        {each["seed"] for each in made(1, "greedy")}
        == {None}
        == {each["reference"] for each in made(1, "greedy")}
    )


def test_a_replay_is_the_text_and_its_end() -> None:
    workload = find_workload("nested_objects")
    for text, made in zip(
        workload.texts, requests(workload, PROBE, count=len(workload.texts), prompt_tokens=8), strict=True
    ):
        assert made.name == text.name and made.grammar == text.grammar and made.reference is not None
        assert made.reference[-1] == PROBE.eos_token and PROBE.decode(made.reference) == text.content
        assert made.limit == len(made.reference) and not made.reasoning
        assert answer(text, made.reference, PROBE) == text.content


def test_a_reasoning_output_thinks_first() -> None:
    workload = find_workload("reasoning")
    for vocabulary in (PROBE, BYTES, load_vocabulary("mistral-v3")):
        end = think_end(vocabulary)
        for text, made in zip(
            workload.texts, requests(workload, vocabulary, count=9, prompt_tokens=8), strict=False
        ):
            assert made.reasoning and made.reference is not None
            at = made.reference.index(end)
            assert (
                vocabulary.decode(made.reference[:at]) == THOUGHT.encode() and made.reference.count(end) == 1
            )
            assert answer(text, made.reference, vocabulary) == text.content
            assert answer(text, made.reference[:at], vocabulary) == b""


def test_the_end_of_thinking_is_a_special_where_there_is_one() -> None:
    def vocabulary(*specials: str) -> Vocabulary:
        return Vocabulary("made", (b"\n", b"a", *(b"" for _ in specials)), (2,), dict(enumerate(specials, 2)))

    assert think_end(vocabulary("</s>", "<|reserved_0|>", "</think>")) == 4
    assert think_end(vocabulary("<|reserved_eos|>", "<unk>", "<|reserved_0|>")) == 4
    assert think_end(vocabulary("</s>", "<unk>")) == 0
    with pytest.raises(BadInput, match="no token"):
        think_end(Vocabulary("made", (b"a", b""), (1,), {1: "</s>"}))


def test_an_output_is_limited_by_its_reference_and_by_the_limit() -> None:
    workload = find_workload("all_forced")
    made = requests(workload, PROBE, count=len(workload.texts), prompt_tokens=8)
    assert [request.limit for request in made] == [len(reference(text, PROBE)) for text in workload.texts]
    assert all(request.limit == len(request.reference or ()) for request in made)
    assert {request.limit for request in requests(workload, PROBE, count=4, prompt_tokens=8, limit=9)} == {9}
    greedy = requests(workload, PROBE, count=4, prompt_tokens=8, mode="greedy", limit=50)
    assert {(request.limit, request.reference) for request in greedy} == {(50, None)}


@pytest.mark.parametrize("wrong", [{"count": 0}, {"prompt_tokens": 0}, {"limit": 0}, {"mode": "beam"}])
def test_what_cannot_be_asked_for_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=next(iter(wrong))):
        requests(find_workload("enums"), PROBE, **({"count": 1, "prompt_tokens": 8} | wrong))  # type: ignore[arg-type]


def test_a_text_that_the_vocabulary_cannot_spell_is_refused() -> None:
    with pytest.raises(BadInput, match="has no token for byte"):
        requests(
            find_workload("enums"),
            Vocabulary("made", (b"a", b""), (1,), {1: "</s>"}),
            count=1,
            prompt_tokens=8,
        )


def test_who_judges() -> None:
    schema = ReferenceText("date", Grammar("json_schema", '{"format": "date"}'), b'"2026-01-01"')
    assert judge(schema, b'"monday"') == "valid"
    assert (
        judge(ReferenceText("date", schema.grammar, schema.content, assert_formats=True), b'"monday"')
        == "invalid"
    )
    assert judge(schema, b'"mon') == "invalid"
    assert (
        judge(ReferenceText("tag", Grammar("structural_tag", '{"triggers": [], "structures": []}'), b""), b"")
        == "unjudged"
    )
    assert judge(ReferenceText("wrong", Grammar("json_schema", '{"type": 3}'), b"1"), b"1") == "unjudged"
    ebnf = ReferenceText("ebnf", Grammar("ebnf", 'root ::= "a" root | "b"\n'), b"ab")
    assert [judge(ebnf, output) for output in (b"ab", b"a", b"ba", b"")] == [
        "valid",
        "invalid",
        "invalid",
        "invalid",
    ]
    slow = ReferenceText("slow", Grammar("regex", "(a*)*c"), b"c")
    with Judge() as judging:
        assert judge(schema, b'"monday"', judging) == "valid"
        assert (
            judge(
                ReferenceText("date", schema.grammar, schema.content, assert_formats=True),
                b'"monday"',
                judging,
            )
            == "invalid"
        )
    with Judge(deadline=0.5) as judging:
        assert judge(slow, b"a" * 40, judging) in ("unjudged", "invalid")


@pytest.mark.corpora
def test_maskbench_is_a_workload() -> None:
    folder = CORPORA / "maskbench"
    if not folder.is_dir():
        pytest.skip("no shared/corpora/maskbench beside the repository")
    workload = find_workload(str(folder))
    made: list[Request] = requests(workload, BYTES, count=40, prompt_tokens=16)
    assert len(workload.texts) > 100 and len({each.name for each in workload.texts}) == len(workload.texts)
    assert len({each.name for each in made}) == 40
    assert {judge(text, text.content) for text in workload.texts[:40]} == {"valid"}
