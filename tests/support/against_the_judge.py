"""What is wrong with the automaton of a small random JSON Schema: held against the judge on all small
documents, and on completions of what it allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from heapq import heappop, heappush
from random import Random
from typing import Any

import numpy as np
from small_schemas import documents, whole_schema

from harness.backend.layout import Layout
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.unjudgeable import Unjudgeable

DOCUMENTS = tuple(text.encode() for text in documents())
CLOSING = b'}]"'
LIKELY = b'}]"0:, e1a' + bytes(range(256))
"""The bytes that are tried for a completion, the likely ones first."""


@cache
def judged(schema: str, text: bytes) -> bool | None:
    try:
        return document_is_valid(schema, text, None, False)
    except Unjudgeable:
        return None


class DeadEnd(Exception):
    """No text leads from a state to an end."""


def completion(automaton: Automaton[Any], state: int, most: int = 1_500) -> bytes | None:
    """A short text that leads from the state to an end; None if it was not found among so many states.

    Raises DeadEnd if there are no more states.
    """
    behind: dict[int, tuple[int, int] | None] = {state: None}
    waiting = [(0, state)]
    while waiting and len(behind) < most:
        cost, here = heappop(waiting)
        if automaton.accepting(here):
            out = bytearray()
            while (step := behind[here]) is not None:
                here, byte = step
                out.append(byte)
            return bytes(out[::-1])
        automaton.expand(np.array([here], dtype=np.int32))
        row = automaton.table[here]
        for byte in np.flatnonzero(row).tolist():
            after = int(row[byte])
            if after not in behind:
                behind[after] = (here, byte)
                heappush(waiting, (cost + (1 if byte in CLOSING else 3 if byte in LIKELY[:10] else 9), after))
    if not waiting:
        raise DeadEnd
    return None


def differences(number: int) -> list[str]:
    """What is wrong with the automaton of one schema, a line each; nothing where it has none."""
    schema = json.dumps(whole_schema(number))
    try:
        return _differences(number, schema, json_schema_automaton(schema), DOCUMENTS, lambda text: True)
    except NoOracle:
        return []  # also where that shows only at a place of a document


def differences_in_layout(
    number: int, layout: Layout, texts: Iterable[bytes], is_spelled: Callable[[bytes], bool]
) -> list[str]:
    """Returns in what the automaton of one schema and a layout differs from the judge on these texts; the
    layout's spellings are those for which `is_spelled` is true."""
    schema = json.dumps(whole_schema(number))
    try:
        automaton = json_schema_automaton(schema, layout=layout)
        return _differences(number, schema, automaton, texts, is_spelled)
    except NoOracle:
        return []


def _differences(
    number: int,
    schema: str,
    automaton: Automaton[Any],
    texts: Iterable[bytes],
    is_spelled: Callable[[bytes], bool],
) -> list[str]:
    random, wrong, valid = Random(number), [], []
    for text in texts:
        truth = judged(schema, text)
        if truth is None:
            continue
        truth = truth and is_spelled(text)
        if automaton.accepts(text) != truth:
            wrong.append(f"{number}: {text!r} is {truth} in {schema}, refused from {automaton.viable(text)}")
        elif truth:
            valid.append(text)
    if automaton.start == DEAD:
        return wrong + [
            f"{number}: {text!r} is valid, and the language is said to be empty" for text in valid[:1]
        ]
    tried = [b"", *random.sample(valid, min(4, len(valid)))]
    for text in tried:
        place = random.randint(0, len(text))
        state = automaton.run(automaton.start, text[:place])
        automaton.expand(np.array([state], dtype=np.int32))
        row = automaton.table[state]
        allowed = [byte for byte in dict.fromkeys(LIKELY) if row[byte] != DEAD]
        for byte in [*allowed[:8], *random.sample(allowed, min(3, len(allowed)))]:
            document = text[:place] + bytes((byte,))
            try:
                rest = completion(automaton, int(row[byte]))
            except DeadEnd:
                wrong.append(f"{number}: nothing goes on from {document!r} in {schema}")
                continue
            document += rest or b""
            if rest is not None and (judged(schema, document) is False or not is_spelled(document)):
                wrong.append(f"{number}: {document!r} is allowed and not valid in {schema}")
    return wrong
