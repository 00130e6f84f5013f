"""Writes random Lark grammars over three letters as a suite, with texts that are judged by definition.

    python benchmarks/larks.py 400 random_larks.jsonl

docs/lark.md runs it. The grammars are those with which the reference is proven
(tests/support/reference_lark.py): of each that has a reference and a sentence of up to four letters, six
such sentences and six texts that are none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from reference_lark import LONGEST, by_any_split, random_grammar, texts

EACH = 6
"""Texts of either kind, at most."""


def main(count: int, path: Path) -> None:
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


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
