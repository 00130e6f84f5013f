"""Small random structural tags, all small texts of their characters, and what is wrong with the automaton of
such a tag: it is held against both judges, text by text."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

from against_the_judge import DeadEnd, completion
from all_texts import all_texts
from recognising import recognises

from harness.backend.grammar import Grammar
from harness.diagnose.shrink.tags import tag_is_valid
from harness.oracle.automaton import DEAD
from harness.oracle.judge import is_valid
from harness.oracle.language import documents_of
from harness.oracle.structural_tag import structural_tag_automaton

SECONDS = 60.0
ALPHABETS = ("ab1", "ab1 ", 'a1"', "ab1é", "éê1", "a1[]")
SCHEMAS: tuple[Any, ...] = (
    {"const": 1},
    {"enum": [1, 11]},
    {"type": "integer"},
    {"type": "string", "maxLength": 1},
    {"enum": ["", "a", 1]},
    {"type": "array", "items": {"const": 1}, "maxItems": 1},
    {},
    False,
)


def small_tag(random: Random) -> tuple[str, dict[str, Any]]:
    """Returns an alphabet, and a tag whose triggers, begins and ends are written in it; an end may be
    empty."""
    alphabet = random.choice(ALPHABETS)

    def text(least: int, most: int) -> str:
        return "".join(random.choice(alphabet) for _ in range(random.randint(least, most)))

    triggers = [text(1, random.choice((1, 2, 3, 4))) for _ in range(random.randint(1, 3))]
    structures = [
        {
            "begin": random.choice(triggers) + text(0, 1),
            "schema": random.choice(SCHEMAS),
            "end": text(random.random() < 0.8, 2),
        }
        for _ in range(random.randint(1, 3))
    ]
    if random.random() < 0.2:  # a trigger in which a structure begins
        triggers.append(random.choice(alphabet) + random.choice(structures)["begin"])
    return alphabet, {"triggers": triggers, "structures": structures}


@cache
def _document_is_valid(schema: str, document: bytes) -> bool:
    return is_valid(Grammar("json_schema", schema), document)


def _is_output(tag: dict[str, Any], content: bytes) -> bool:
    try:
        return recognises(tag, content.decode())
    except UnicodeDecodeError:
        return False


def tag_differences(number: int) -> list[str]:
    """What is wrong with the automaton of one small tag, a line each.

    Every text of up to five or seven characters is judged by the judge of `repro --shrink`, and by the
    recogniser of the tests where that one does not decide (an empty end). Of each state that was found,
    some completion must be an output by the recogniser.
    """
    alphabet, tag = small_tag(Random(number))
    text = json.dumps(tag)
    automaton = structural_tag_automaton(text, documents_of, SECONDS)
    wrong, seen, begun = [], set[bytes](), set[bytes]()
    for output in all_texts(alphabet, 5 if len(alphabet) > 3 else 7):
        content = output.encode()
        truth = tag_is_valid(text, content, _document_is_valid)
        if truth is None:
            truth = recognises(tag, output)
        beginnings = {content[:size] for size in range(len(content) + 1)}
        seen |= beginnings
        if truth:
            begun |= beginnings
        if automaton.accepts(content) != truth:
            wrong.append(f"{number}: {output!r} is {truth} by {text}")
    states: dict[int, bytes] = {}
    for content in seen:
        state = automaton.run(automaton.start, content)
        if state != DEAD:
            states.setdefault(state, content)
        elif content in begun:
            wrong.append(f"{number}: {content!r} begins an output of {text}, and is refused")
    for state, content in states.items():
        try:
            rest = completion(automaton, state)
        except DeadEnd:
            wrong.append(f"{number}: nothing goes on from {content!r} in {text}")
            continue
        if rest is not None and not _is_output(tag, content + rest):
            wrong.append(f"{number}: {content + rest!r} is allowed by {text}")
    return wrong
