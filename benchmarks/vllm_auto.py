"""Which library vLLM's default, `--structured-outputs-config.backend auto`, names for the cases of a suite.

An engine takes only requests for which it names the library of the first one; docs/engines.md says more.

    python benchmarks/vllm_auto.py SUITE [--most N]

SUITE is what `grammarbench run` takes. Each request goes through the engine's own check
(`SamplingParams._validate_structured_outputs`) in a process of its own, for ten seconds at most; nothing is
compiled for a vocabulary. It needs the environment of docs/engines.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.process.short_child import answer_of_a_child
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case
from harness.cases.suite import find_suite, read_cases
from harness.cli.values import positive
from harness.errors import OK
from harness.text import markdown_table

SECONDS = 10.0
LIBRARIES = ("xgrammar", "guidance", "outlines")
REFUSED = "refused"
LOST = f"the check dies, or takes longer than {SECONDS:g} s"


@script
def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("suite", metavar="SUITE")
    parser.add_argument(
        "--most", type=positive, metavar="N", help="every n-th case, N in all (default: all cases)"
    )
    options = parser.parse_args(argv)
    cases = list(read_cases(find_suite(options.suite)))
    if options.most:
        cases = cases[:: max(1, len(cases) // options.most)][: options.most]
    adapter: Any = make(parse_spec("vllm:wrapper=xgrammar"), load_vocabulary("tekken"))

    def named(case: Case) -> str:
        try:
            return str(adapter.checked(case.grammar, "auto")._backend)
        except ValueError:
            return REFUSED

    counts = Counter(answer_of_a_child(partial(named, case), SECONDS) or LOST for case in cases)
    print(f"{len(cases):,} cases of {options.suite}\n")
    print(
        markdown_table(
            ["`auto` names", "requests", "share"],
            [
                [name, f"{counts[name]:,}", f"{counts[name] / len(cases):.1%}"]
                for name in (*LIBRARIES, REFUSED, LOST)
            ],
            numbers=True,
        )
    )
    return OK


if __name__ == "__main__":
    raise SystemExit(main())
