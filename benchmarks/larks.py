"""Writes random Lark grammars over three letters as a suite, with texts that are judged by definition.

    python benchmarks/larks.py 400 random_larks.jsonl

docs/lark.md runs it. The grammars are those with which the reference is proven
(tests/support/reference_lark.py): of each that has a reference and a sentence of up to four letters, six
such sentences and six texts that are none.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent / "parts"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from endings import script
from reference_lark import LONGEST, by_any_split, random_grammar, texts

from harness.cli.values import positive
from harness.errors import OK

EACH = 6
"""Texts of either kind, at most."""


@script
def main(arguments: Sequence[str]) -> int:
    """Writes the suite. Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=positive, metavar="COUNT")
    parser.add_argument("path", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    count, path = options.count, options.path
    random = Random(0)
    header = {"suite": path.stem, "version": "1", "description": "random Lark grammars"}
    lines = [json.dumps(header)]
    seen: set[str] = set()
    while len(lines) <= count:
        made = random_grammar(random)
        sentences = by_any_split(made)
        if not sentences or made.text in seen or made.has_no_reference:
            continue
        seen.add(made.text)
        others = [text for text in texts(LONGEST) if text not in sentences]
        tests = [
            {"text": text, "valid": valid}
            for valid, of_kind in ((True, sorted(sentences)), (False, others))
            for text in random.sample(of_kind, min(EACH, len(of_kind)))
        ]
        lines.append(json.dumps({"description": f"grammar {len(lines)}", "lark": made.text, "tests": tests}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
