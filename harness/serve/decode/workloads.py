"""Workloads: the texts that a decode loop is asked for. Ten come from our own suite by tag; any suite, file
or folder is one too."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from harness.backend.bridge.thinking import think_end
from harness.backend.grammar import Grammar
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case, Instance
from harness.cases.suite import DECODED, UnknownSuite, find_suite, read_cases, suite_names
from harness.errors import BadInput, did_you_mean
from harness.oracle.judge import Judge, Unjudgeable, is_valid
from harness.serve.decode.setting import Mode
from harness.serve.requests.words import Right
from harness.text import counted
from harness.walk.loop.request import Request

REASONING = "reasoning"
"""The workload whose outputs think before they answer."""

WORKLOADS = (
    "function_calls",
    "nested_objects",
    "long_arrays",
    "enums",
    "regex_formats",
    "free_strings",
    "sql",
    REASONING,
    "all_forced",
    "nothing_forced",
)
"""Tags of the suite `decode`; the last two are the extremes."""

THOUGHT = (
    "Let me see what is asked. There are two ways to read the question, and the second one fits the numbers "
    "better. "
    "First I write down what is known, then I look for what is missing, and then I check the result against "
    "the first line. "
    "It agrees, so this is the answer."
)
"""The thinking part of a reasoning output. It has no line end, because that may be what ends it."""


@dataclass(frozen=True)
class ReferenceText:
    """One output to reproduce, and the grammar that judges it."""

    name: str
    grammar: Grammar
    content: bytes
    """A valid output."""
    draft: str | None = None
    assert_formats: bool = False
    reasoning: bool = False
    """Whether the output has a thinking part before `content`."""


@dataclass(frozen=True)
class Workload:
    """Texts of one kind."""

    name: str
    texts: tuple[ReferenceText, ...]
    left_out: str = ""
    """One line that says how many cases have no text, and why; it is empty if each has one."""


def own_name(wanted: str) -> str:
    """Returns the name of one of WORKLOADS as it is there, for `-` and `_` are the same; any other name as it
    was given."""
    name = wanted.replace("-", "_")
    return name if name in WORKLOADS else wanted


def find_workload(wanted: str) -> Workload:
    """Returns one of WORKLOADS by name, or the valid instances of a suite, a file or a folder. Raises
    BadInput."""
    name = own_name(wanted)
    if name in WORKLOADS:
        cases = [case for case in read_cases(find_suite(DECODED)) if name in case.tags]
        return Workload(name, _texts(cases))
    try:
        suite = find_suite(wanted)
    except UnknownSuite as error:
        known = [*WORKLOADS, *suite_names()]
        raise BadInput(
            f'unknown workload "{wanted}": no workload, suite, file or folder of that '
            f"name{did_you_mean(name, known)}"
        ) from error
    cases = list(read_cases(suite))
    texts = _texts(cases)
    if not texts:
        raise BadInput(
            f"{wanted}: no instance is marked as valid, so there is no text to decode; give a suite with "
            'valid instances ("tests" with "valid": true), because `decode` makes and judges no documents'
        )
    without = sum(not any(map(_is_text, case.instances)) for case in cases)
    why = "no instance of theirs is marked as valid, and `decode` makes and judges no documents"
    left_out = f"{suite.name}: {without} of {counted(len(cases), 'case')} without a text to decode: {why}"
    return Workload(suite.name, texts, left_out if without else "")


def _texts(cases: Iterable[Case]) -> tuple[ReferenceText, ...]:
    """Returns the valid instances as texts; a name that occurs again gets a number."""
    texts: list[ReferenceText] = []
    taken: set[str] = set()
    for case in cases:
        for instance in filter(_is_text, case.instances):
            texts.append(
                ReferenceText(
                    _free(f"{case.name}: {instance.name}", taken, " #{}"),
                    case.grammar,
                    instance.content,
                    case.draft,
                    case.asserts_formats,
                    REASONING in case.tags,
                )
            )
    return tuple(texts)


def _is_text(instance: Instance) -> bool:
    """Can a loop be asked for the instance: is it marked as valid, and no list of tokens?"""
    return instance.valid is True and not instance.tokens


def _free(name: str, taken: set[str], numbered: str, number: int = 2) -> str:
    """Returns the name, or where it is taken the first of its numbered forms that is not, from that number
    on, and takes it."""
    free = name
    while free in taken:
        free = f"{name}{numbered.format(number)}"
        number += 1
    taken.add(free)
    return free


def requests(
    workload: Workload,
    vocabulary: Vocabulary,
    *,
    count: int,
    prompt_tokens: int,
    limit: int | None = None,
    mode: Mode = "replay",
    seed: int = 0,
) -> list[Request]:
    """Returns `count` requests, taken from the texts in turn; the same arguments give the same requests.

    A prompt has exactly `prompt_tokens` ids. The grammar's text is at its end, cut at the front if it is too
    long, as users tell a model what they want; plain text drawn by `seed` is before it. `limit` is the most
    output tokens, end-of-sequence included; None means as many as the reference has. Raises BadInput.
    """
    for what, least, number in (
        ("count", 1, count),
        ("prompt_tokens", 1, prompt_tokens),
        ("limit", 1, 1 if limit is None else limit),
    ):
        if number < least:
            raise BadInput(f"workload {workload.name}: {what} is {number}; give at least {least}")
    if mode not in get_args(Mode):
        raise BadInput(
            f'workload {workload.name}: unknown mode "{mode}"; give one of {", ".join(get_args(Mode))}'
        )
    texts = workload.texts[:count]
    references = [reference(text, vocabulary) for text in texts]
    instructions = [
        _encode(vocabulary, text.grammar.text.encode("utf-8", "surrogatepass"), text.name)[-prompt_tokens:]
        for text in texts
    ]
    plain = _plain_tokens(vocabulary)
    taken: set[str] = set()
    made = []
    for number in range(count):
        at = number % len(texts)
        text, ids = texts[at], references[at]
        filler = random.Random(f"{seed} {number}").choices(plain, k=prompt_tokens - len(instructions[at]))
        request = Request(
            name=_free(text.name, taken, " ({})", number // len(texts) + 1),
            prompt=(*filler, *instructions[at]),
            limit=len(ids) if limit is None else limit,
            grammar=text.grammar,
            reference=ids if mode == "replay" else None,
            seed=seed * 1_000_003 + number if mode == "seeded" else None,
            reasoning=text.reasoning,
        )
        made.append(request)
    return made


def reference(text: ReferenceText, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Returns the canonical ids of the whole output: the thinking part if there is one, the content, and
    end-of-sequence. Raises BadInput."""
    answer = (*_encode(vocabulary, text.content, text.name), vocabulary.eos_token)
    if not text.reasoning:
        return answer
    return (*_encode(vocabulary, THOUGHT.encode(), "the thinking part"), think_end(vocabulary), *answer)


def answer(text: ReferenceText, ids: Sequence[int], vocabulary: Vocabulary) -> bytes:
    """Returns the output's bytes without the thinking part; empty if that never ends."""
    if text.reasoning:
        end = think_end(vocabulary)
        ids = ids[list(ids).index(end) + 1 :] if end in ids else ()
    return vocabulary.decode(ids)


def judge(text: ReferenceText, output: bytes, judging: Judge | None = None) -> Right:
    """Returns whether the output (of `answer`) is in the language of the text's grammar.

    `judging` limits the time of a verdict; without it there is no limit. The verdict is `unjudged` if the
    grammar has no judge, if its judge cannot read it, and if a deadline was missed.
    """
    if judging is not None:
        valid = judging.verdict(text.grammar, output, draft=text.draft, assert_formats=text.assert_formats)
    else:
        try:
            valid = is_valid(text.grammar, output, draft=text.draft, assert_formats=text.assert_formats)
        except Unjudgeable:
            valid = None
    return "unjudged" if valid is None else "valid" if valid else "invalid"


def judge_cut(text: ReferenceText, output: bytes, judging: Judge) -> Right:
    """Returns `invalid` where no valid text begins with the output (of `answer`), which was cut at its limit,
    as far as that can be decided; else `unjudged`."""
    return "invalid" if judging.membership(text.grammar, output) == "neither" else "unjudged"


def _encode(vocabulary: Vocabulary, content: bytes, what: str) -> list[int]:
    try:
        return vocabulary.encode(content)
    except ValueError as error:
        raise BadInput(f"{what}: {error}; take another vocabulary") from error


def _plain_tokens(vocabulary: Vocabulary) -> list[int]:
    """Returns the ids of printable ASCII, ascending."""
    return sorted(
        token
        for text, token in vocabulary.ids_by_bytes.items()
        if text.isascii() and text.decode("ascii").isprintable()
    )
