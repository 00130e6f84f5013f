"""The automaton of JSON Schema on real schemas: how many have one, whether it says what the judge says, what
it costs.

    python benchmarks/json_schema_oracle.py [FOLDER] [EVERY]

FOLDER holds MaskBench files or the folders of the official test suite, one for each draft (default: both of
../shared/corpora); EVERY takes only each n-th schema. Of each instance several spellings are judged: other
white space, escapes for all characters, and members in another order. The automaton must say what the judge
says, what the second validator says, and what the test says (some tests hold formats to be
constraints, and are asked so too); a difference is printed with its document, and
the exit code is 1.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge.drafts import DIALECT_URI, DRAFTS
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.second import second_verdict
from harness.oracle.judge.unjudgeable import Unjudgeable

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "corpora"
DEFAULT = (CORPORA / "maskbench", CORPORA / "json-schema-test-suite" / "tests")
JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
SECONDS = 5.0
"""Processor time that the instances of one schema may take; the rest is counted as not walked."""


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


def main(arguments: list[str]) -> int:
    """Prints what was found; returns 1 if anything differs."""
    every = int(arguments[1]) if len(arguments) > 1 else 1
    folders = [Path(arguments[0])] if arguments else list(DEFAULT)
    return max(measured(folder, every) for folder in folders)


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
                if test["valid"] not in (truth, document_is_valid(text, document, draft, True)):
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
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
