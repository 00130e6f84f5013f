"""What one exact mask costs: every token of a 131k vocabulary, by the reference automaton and the
vocabulary's trie.

    python benchmarks/oracle.py [VOCABULARY]         (default: tekken)

Prints for each state
  1. the median processor time of a mask over warm passes, against what we promise; and by the clock, which on
     a shared machine counts other processes' turns too;
  2. the time of the first mask, which finds the automaton's states;
  3. the ratio to a plain walk in Python over a trie of nested dicts, with `automaton.step` for each byte,
     which gives the same mask. All on one processor. The plain walk takes its turns between the passes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.errors import OK
from harness.oracle.automaton import DEAD, Automaton
from harness.oracle.regex.automaton import regex_automaton
from harness.oracle.trie import TokenSet, TokenTrie

VOCABULARY = "tekken"
SUITE = Path(__file__).parents[1] / "suites" / "ebnf.jsonl"
PASSES, TURNS = 12, 5
"""Warm passes in each turn; each turn ends with one plain walk."""


@dataclass(frozen=True)
class State:
    """A place in a language: after these bytes."""

    name: str
    automaton: Callable[[], Automaton[Any]]
    after: bytes
    promised_ms: float


def json_automaton() -> Automaton[Any]:
    from harness.oracle.ebnf.automaton import ebnf_automaton

    cases = [json.loads(line) for line in SUITE.read_text(encoding="utf-8").split("\n") if line]
    (grammar,) = (case["ebnf"] for case in cases if case.get("description") == "JSON")
    return ebnf_automaton(grammar)


STATES = (
    State('regex [^"]*, at the start', lambda: regex_automaton('[^"]*', "python"), b"", 3),
    State('regex "[^"\\\\]*", in the string', lambda: regex_automaton(r'"[^"\\]*"', "python"), b'"abc', 3),
    State(r"regex \w+, at the start", lambda: regex_automaton(r"\w+", "python"), b"", 3),
    State("EBNF, JSON, in a string", json_automaton, b'{"name": "abc', 10),
)


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("vocabulary", nargs="?", default=VOCABULARY, metavar="VOCABULARY")
    wanted: str = parser.parse_args(arguments).vocabulary
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    vocabulary = load_vocabulary(wanted)
    seconds, trie = timed(lambda: TokenTrie(vocabulary))
    nested = nested_dicts(vocabulary)
    gc.collect()
    gc.freeze()  # or each collection would look at the dicts
    print(f"{vocabulary.name}, {vocabulary.size:,} tokens; its trie, made once: {seconds:.2f} s")
    print(f"median of {PASSES * TURNS} warm masks, one processor:")
    for state in STATES:
        print(f"  {measured(state, trie, nested)}", flush=True)
    return OK


def measured(state: State, trie: TokenTrie, nested: Nested) -> str:
    automaton = state.automaton()
    here = automaton.run(automaton.start, state.after)
    first, mask = timed(lambda: trie.mask(automaton, here))
    warm: list[float] = []
    clock: list[float] = []
    plain: list[float] = []
    for _ in range(TURNS):
        for _ in range(PASSES):
            begun = time.perf_counter()
            warm.append(timed(lambda: trie.mask(automaton, here))[0])
            clock.append(time.perf_counter() - begun)
        seconds, walked = timed(lambda: plain_mask(trie.vocabulary, nested, automaton, here))
        plain.append(seconds)
        assert np.array_equal(mask, walked)
    median, median_clock, median_plain = (
        statistics.median(seconds) * 1e3 for seconds in (warm, clock, plain)
    )
    return (
        f"{state.name:32} {median:5.2f} ms (promised: at most {state.promised_ms:g}; by the clock "
        f"{median_clock:.2f}), first "
        f"{first * 1e3:.0f} ms, {mask.sum():,} allowed, {len(automaton):,} states; plain walk "
        f"{median_plain:.0f} ms, "
        f"ratio {median_plain / median:.0f}"
    )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time, and the result."""
    start = time.thread_time()
    result = call()
    return time.thread_time() - start, result


@dataclass
class Nested:
    """A node of a trie as one writes it down: children by byte, and the tokens that end here."""

    children: dict[int, Nested]
    tokens: list[int]


def nested_dicts(vocabulary: Vocabulary) -> Nested:
    root = Nested({}, [])
    for token, text in enumerate(vocabulary.tokens):
        if text and token not in vocabulary.special_tokens and token not in vocabulary.padding_tokens:
            node = root
            for byte in text:
                node = node.children.setdefault(byte, Nested({}, []))
            node.tokens.append(token)
    return root


def plain_mask(vocabulary: Vocabulary, root: Nested, automaton: Automaton[Any], state: int) -> TokenSet:
    mask = np.zeros(vocabulary.size, dtype=np.bool_)
    waiting = [(root, state)]
    while waiting:
        node, here = waiting.pop()
        for byte, child in node.children.items():
            after = automaton.step(here, byte)
            if after != DEAD:
                mask[child.tokens] = True
                waiting.append((child, after))
    mask[vocabulary.eos_token] = automaton.accepting(state)
    return mask


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
