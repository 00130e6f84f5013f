"""The automaton of JSON Schema on real schemas: how many have one, whether it says what the judge says, what
it costs.

    python benchmarks/json_schema_oracle.py [FOLDER] [EVERY]

FOLDER holds MaskBench files (default: ../shared/corpora/maskbench); EVERY takes only each n-th of them. Of
each instance several spellings are judged: other white space, escapes for all characters, and members in
another order. A difference between automaton and judge is printed with its document, and the exit code is 1.
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
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.unjudgeable import Unjudgeable

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "corpora" / "maskbench"
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


def main(arguments: list[str]) -> int:
    """Prints what was found; returns 1 if anything differs."""
    folder = Path(arguments[0]) if arguments else DEFAULT
    files = sorted(folder.glob("*.json"))[:: int(arguments[1]) if len(arguments) > 1 else 1]
    reasons: Counter[str] = Counter()
    compiles: list[float] = []
    walked = different = 0
    for path in files:
        case = json.loads(path.read_text("utf-8"))
        text = json.dumps(case["schema"])
        began = time.process_time()
        try:
            automaton = json_schema_automaton(text)
        except NoOracle as error:
            reasons[str(error)[:70]] += 1
            continue
        compiles.append(time.process_time() - began)
        for test in case.get("tests", []):
            for document in spellings(test["data"]):
                if time.process_time() - began > SECONDS:
                    reasons["not walked to the end: too slow"] += 1
                    break
                try:
                    truth, found = document_is_valid(text, document, None, False), automaton.accepts(document)
                except Unjudgeable:
                    continue
                except NoOracle as error:
                    reasons[str(error)[:70]] += 1
                    break
                walked += 1
                if truth != found:
                    different += 1
                    said = f"judged {truth}, the automaton says {found}"
                    print(f"{path.name}: {said}: {document[:200]!r}")
            else:
                continue
            break
    share = len(compiles) / len(files) if files else 0.0
    median = sorted(compiles)[len(compiles) // 2] * 1000 if compiles else 0.0
    print(f"{len(compiles)} of {len(files)} schemas have an automaton ({share:.1%})")
    print(f"compile: median {median:.1f} ms of processor time")
    print(f"{walked} spellings of instances judged by both; {different} differ")
    for reason, count in reasons.most_common():
        print(f"  {count} {reason}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
