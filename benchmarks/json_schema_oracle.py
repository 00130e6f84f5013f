"""The automaton of JSON Schema on real schemas: how many have one, whether it says what the judge says, what
it costs.

    python benchmarks/json_schema_oracle.py [FOLDER] [EVERY]

FOLDER holds MaskBench files or the folders of the official test suite, one for each draft (default: both of
../shared/corpora); EVERY takes only each n-th schema. Of each instance several spellings are judged: other
white space, escapes for all characters, and members in another order. The automaton must say what the judge
says, what the second validator says, and what the test says (some tests hold formats to be
constraints, and are asked so too); a difference is printed with its document, and
the exit code is 1.

Then it prints what masks over the vocabulary tekken cost: compiling a schema, the first mask at a new place,
and a warm one, in strings and elsewhere; beside a plain walk of the same automaton, token by token without a
trie, which gives the same mask. All of it is processor time without Python's garbage collector.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cli.values import positive
from harness.errors import GATE_FAILED, OK, BadInput
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge.drafts import DIALECT_URI, DRAFTS
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.second import second_verdict
from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.oracle.trie import TokenSet, trie_of

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "corpora"
DEFAULT = (CORPORA / "maskbench", CORPORA / "json-schema-test-suite" / "tests")
JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
SECONDS = 5.0
"""Processor time that the instances of one schema may take; the rest is counted as not walked."""

PLACES = 6
"""Places of each instance at which a mask is asked for."""
EVERY_PLAIN = 50
"""One in so many places is walked plainly too."""


def spellings(value: Any) -> Iterator[bytes]:
    """Yields the value as JSON: compact, spread over lines, with only ASCII, with every character escaped,
    reversed.
    """
    yield json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    yield json.dumps(value, ensure_ascii=False, indent=1).encode()
    yield json.dumps(value).encode()
    yield _escaped(value).encode()
    yield json.dumps(_reversed(value), ensure_ascii=False).encode()


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _reversed(value[name]) for name in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


def _escaped(value: Any) -> str:
    if isinstance(value, str):
        units = value.encode("utf-16-be", "surrogatepass")
        return '"' + "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{_escaped(name)}:{_escaped(item)}" for name, item in value.items()) + "}"
    return "[" + ",".join(map(_escaped, value)) + "]" if isinstance(value, list) else json.dumps(value)


def schemas_of(folder: Path) -> Iterator[tuple[str, Any, str | None, list[Any]]]:
    """The name, schema, draft and tests of each case, in the order of their names."""
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text("utf-8"))
        if "optional" in path.parts:
            continue
        draft = path.parent.name if path.parent.name in DRAFTS else None
        for case in content if isinstance(content, list) else [content]:
            if "schema" in case:
                yield (
                    f"{path.name} {case.get('description', '')[:60]}",
                    case["schema"],
                    draft,
                    case.get("tests", []),
                )


@script
def main(arguments: Sequence[str]) -> int:
    """Prints what was found. Exit code: 0, 1 if anything differs, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("every", type=positive, nargs="?", default=1, metavar="EVERY")
    options = parser.parse_args(arguments)
    folders = [options.folder] if options.folder else list(DEFAULT)
    for folder in folders:
        if next(schemas_of(folder), None) is None:
            raise BadInput(f"{folder} holds no schemas; name a folder of MaskBench or of the test suite")
    code = max(measured(folder, options.every) for folder in folders)
    for folder in folders:
        print_costs(folder, options.every)
    return code


def is_explained(stated: bool, truth: bool, text: str, document: bytes, draft: str | None) -> bool:
    """Is what a test states what the judge says, with formats as constraints or without? A format for which
    the judge has no checker may explain it."""
    try:
        return stated == truth or stated == document_is_valid(text, document, draft, True)
    except Unjudgeable:
        return True


def measured(folder: Path, every: int) -> int:
    """Prints what was found of one folder; 1 if anything differs."""
    cases = list(schemas_of(folder))[::every]
    reasons: Counter[str] = Counter()
    compiles: list[float] = []
    walked = different = 0
    for name, schema, draft, tests in cases:
        text = json.dumps(schema)
        began = time.process_time()
        if isinstance(schema, dict) and not DIALECT_URI.fullmatch(schema.get("$schema", JSON_SCHEMA)):
            reasons["its meta-schema is its own"] += 1
            continue
        try:
            automaton = json_schema_automaton(text, draft)
        except NoOracle as error:
            reasons[str(error)[:70]] += 1
            continue
        compiles.append(time.process_time() - began)
        for test in tests:
            for document in spellings(test["data"]):
                if time.process_time() - began > SECONDS:
                    reasons["not walked to the end: too slow"] += 1
                    break
                try:
                    truth, answer = (
                        document_is_valid(text, document, draft, False),
                        automaton.accepts(document),
                    )
                except Unjudgeable:
                    continue
                except NoOracle as error:
                    reasons[str(error)[:70]] += 1
                    break
                walked += 1
                others = {truth, second_verdict(text, document, draft, False)[0]} - {None}
                if not is_explained(test["valid"], truth, text, document, draft):
                    others.add(test["valid"])
                if others != {answer}:
                    different += 1
                    print(f"{name}: the automaton says {answer}, the judge {truth}: {document[:200]!r}")
            else:
                continue
            break
    share = len(compiles) / len(cases) if cases else 0.0
    median = sorted(compiles)[len(compiles) // 2] * 1000 if compiles else 0.0
    print(f"{folder.name}: {len(compiles)} of {len(cases)} schemas have an automaton ({share:.1%})")
    print(f"compile: median {median:.1f} ms of processor time")
    print(f"{walked} spellings of instances judged by all; {different} differ")
    for reason, count in reasons.most_common():
        print(f"  {count} {reason}")
    return GATE_FAILED if different else OK


def print_costs(folder: Path, every: int) -> None:
    """Prints what compiling and masks cost at places of valid instances."""
    vocabulary = load_vocabulary("tekken")
    trie = trie_of(vocabulary)
    gc.collect()
    gc.freeze()  # or a collection, which may fall into any mask, would look at the vocabulary and its trie
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    ratios: list[float] = []
    for _, schema, draft, tests in list(schemas_of(folder))[::every]:
        documents = [
            json.dumps(test["data"], ensure_ascii=False).encode("utf-8", "surrogatepass")
            for test in tests
            if test["valid"]
        ]
        try:
            compiling, automaton = timed(json_schema_automaton, json.dumps(schema), draft)
            seconds["compile"].append(compiling)
            for document in documents[:2]:
                for end in range(0, len(document), max(1, len(document) // PLACES)):
                    state = automaton.run(automaton.start, document[:end])
                    if state == DEAD:
                        break
                    first, mask = timed(trie.mask, automaton, state)
                    warm = min(timed(trie.mask, automaton, state)[0] for _ in range(3))
                    seconds["new place"].append(first)
                    is_inside = automaton.place(state) in ("string", "name", "escape")
                    seconds["warm in a string" if is_inside else "warm elsewhere"].append(warm)
                    if len(seconds["new place"]) % EVERY_PLAIN == 1:
                        plain, same = timed(plain_mask, vocabulary, automaton, state)
                        assert np.array_equal(mask, same)
                        ratios.append(plain / warm)
        except NoOracle:
            continue
    for name, found in seconds.items():
        found.sort()
        median, most, worst = (1e3 * found[place] for place in (len(found) // 2, len(found) * 9 // 10, -1))
        print(f"{name}: median {median:.2f} ms, 90 % {most:.2f} ms, worst {worst:.1f} ms, n = {len(found)}")
    if ratios:
        ratio = statistics.median(ratios)
        print(f"a plain walk takes {ratio:.0f} times as long as a warm mask (median of {len(ratios)})")


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Returns the seconds of processor time that the call took, and its result. Python's garbage collector is
    off meanwhile: it would fall into some calls, for what all of them left behind."""
    gc.disable()
    began = time.thread_time()
    result = call(*arguments)
    seconds = time.thread_time() - began
    gc.enable()
    return seconds, result


def plain_mask(vocabulary: Vocabulary, automaton: Automaton[Any], state: int) -> TokenSet:
    """Returns the mask of a state, found by walking each token by itself."""
    mask = np.zeros(vocabulary.size, dtype=np.bool_)
    for token, text in vocabulary.plain_tokens().items():
        mask[token] = automaton.run(state, text) != DEAD
    mask[vocabulary.eos_token] = automaton.accepting(state)
    return mask


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
