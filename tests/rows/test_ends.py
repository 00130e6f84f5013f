"""What a run says of backends that know one of several ids of end-of-sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from synthetic import ARMS, info

from harness.backend.arm import Arm
from harness.backend.arm import arm as arm_of
from harness.rows.ends import ends_text, one_end_lines

LLAMA = {"9": "<|eot_id|>", "1": "<|end_of_text|>", "8": "<|eom_id|>"}
TWO = {"7": "<|im_end|>", "5": "<|endoftext|>"}


def test_one_line_for_each_backend_names_what_it_knows_and_what_it_does_not() -> None:
    knowing, *others = ARMS
    arms = (replace(knowing, knows_one_end="Its manual says so."), *others)
    vocabularies = {
        "llama3": {"size": 10, "sha256": "", "eos_tokens": LLAMA},
        "probe": {"size": 10, "sha256": "", "eos_tokens": {"2": "</s>"}},
        "qwen": {"size": 10, "sha256": "", "eos_tokens": TWO},
    }
    (line,) = one_end_lines(info(arms, vocabularies=vocabularies))
    assert line == (
        "alpha knows one end-of-sequence: of llama3 <|eot_id|>, and not <|end_of_text|> or <|eom_id|>; of "
        "qwen <|im_end|>, and not <|endoftext|>. Its manual says so. No figure here counts this against "
        "alpha."
    )
    assert ends_text(TWO) == "ends with <|im_end|> or <|endoftext|>"


def reading(arm: Arm, vocabulary: str, ends: tuple[int, ...], why: str = "") -> dict[str, Any]:
    who = {"backend": arm.backend, "version": arm.version, "options": arm.options}
    return {**who, "vocabulary": vocabulary, "ends": ends, "knows_one_end": why}


def test_the_ends_are_those_that_the_library_showed() -> None:
    one, some, *others = ARMS
    arms = (replace(one, knows_one_end="Its manual says so."), some, *others)
    vocabularies = {"qwen": {"size": 10, "sha256": "", "eos_tokens": TWO}, "llama3": {"eos_tokens": LLAMA}}
    readings = (
        reading(one, "qwen", (5,), "Its manual says so."),
        {"backend": one.backend, "version": one.version, "options": one.options, "problem": "it was lost"},
        reading(some, "qwen", (7, 5)),
        reading(some, "llama3", (9, 1), "A file has two places."),
    )
    assert one_end_lines(info(arms, vocabularies=vocabularies, readings=readings)) == (
        "alpha knows one end-of-sequence: of qwen <|endoftext|>, and not <|im_end|>; of llama3 <|eot_id|>, "
        "and not <|end_of_text|> or <|eom_id|>. Its manual says so. No figure here counts this against "
        "alpha.",
        f"{arm_of(some)} does not know every end-of-sequence: of llama3 <|eot_id|> and <|end_of_text|>, and "
        "not <|eom_id|>. A file has two places. No figure here counts this against "
        f"{arm_of(some)}.",
    )


def test_nothing_is_said_where_every_vocabulary_has_one_or_nobody_knows() -> None:
    arms = tuple(replace(arm, knows_one_end="Its manual says so.") for arm in ARMS)
    assert one_end_lines(info(arms)) == ()  # a record from before the ids were recorded
    of_one = {"probe": {"size": 10, "sha256": "", "eos_tokens": {"2": "</s>"}}}
    assert one_end_lines(info(arms, vocabularies=of_one)) == ()
    assert one_end_lines(info(vocabularies={"llama3": {"size": 10, "sha256": "", "eos_tokens": LLAMA}})) == ()
