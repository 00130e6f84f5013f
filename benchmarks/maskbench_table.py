"""A run over MaskBench as MaskBench counts, beside the table that it publishes, and as we count.

    python benchmarks/maskbench_table.py RUN ... [--differences FILE]

MaskBench counts schemas: a compile that raises is a `compile error`, a process that ends is a `segmentation
fault`, `out of memory` or `timeout`, and of the instances that go wrong the last one decides between a
`validation error` (a valid one is refused) and an `invalidation error` (an invalid one is taken). Its runner
never asks for end-of-sequence: an instance all of whose tokens are allowed counts as taken, though the output
may not end there (https://github.com/guidance-ai/jsonschemabench, maskbench/maskbench/runner.py, of 27 March
2025). A schema without instances passes as soon as it compiles. We count a case by its gravest fault, ask for
end-of-sequence, and call a case that nothing judges `not judged`; instances that we made are left out of
MaskBench's counts, and so are masks and checks. A run of some of the files shows shares beside the published
ones. --differences writes each schema on which the two counts say otherwise, as lines of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script
from maskbench_counts import FILES, MaskBenchCase, Walked, as_maskbench, as_we, differences, walked_in

from harness.errors import OK


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--differences", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    walked = [one for run in options.runs for one in walked_in(run)]
    for one in walked:
        said = "a sample" if one.is_sample else "all that are schemas"
        print(f"{one.name}: {len(one.cases):,} of {FILES:,} files, {said}; {one.timeout_s:g} s for a call")
    print(f"\nAs MaskBench counts:\n\n{as_maskbench(walked)}")
    print(f"\nAs we count the same walks:\n\n{as_we(walked)}")
    differing = list(differences(walked))
    kinds = Counter((one.name, case.count, case.ours.state) for one, case in differing)
    print(f"\nThe two counts differ on {len(differing):,} schemas:")
    for (name, theirs, ours), count in kinds.most_common():
        print(f"- {name}: {count:,} that MaskBench counts as {theirs} are {ours} for us")
    if options.differences:
        options.differences.write_text("".join(line_of(one, case) for one, case in differing))
    return OK


def line_of(one: Walked, case: MaskBenchCase) -> str:
    """Returns a line of --differences."""
    found = {
        "backend": one.backend,
        "version": one.version,
        "vocabulary": one.vocabulary,
        "schema": case.name,
        "maskbench": case.count,
        "ours": case.ours.state,
    }
    return json.dumps(found) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
