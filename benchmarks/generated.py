"""For how many bare schemas and keywords can documents be made that keep and that break the keyword?

    python benchmarks/generated.py ../shared/corpora/maskbench

Takes the schemas of all files in the folders, without their instances, and prints how many got a valid and an
invalid document, and for each keyword at how many of its places documents were made that keep and that break
it, and in how many schemas with the keyword that was so at one place at least; then the time that the making
took, as processor time of one process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.cases.generated.documents import documents_for
from harness.cases.json_reading import parse_json
from harness.cases.subschemas import ASSERTIONS, pointer, subschemas
from harness.cases.suite import find_suite, read_cases
from harness.cli.values import positive
from harness.errors import OK, BadInput


@script
def main(arguments: Sequence[str]) -> int:
    """Prints the table. Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--every", type=positive, default=1, help="take one file in so many")
    options = parser.parse_args(arguments)
    places, kept, broken = Counter[str](), Counter[str](), Counter[str]()
    having, kept_in, broken_in = Counter[str](), Counter[str](), Counter[str]()
    seconds = []
    schemas = both = 0
    for number, case in enumerate(read_cases(find_suite(options.folder))):
        if number % options.every or case.grammar.dialect != "json_schema":
            continue
        started = time.process_time()
        documents = documents_for(case.grammar.text, case.draft, case.asserts_formats)
        seconds.append(time.process_time() - started)
        schemas += 1
        both += len({document.valid for document in documents}) == 2
        served = {(place, document.valid) for document in documents for place in document.pointers}
        here: dict[str, set[bool]] = {}
        for path, node in subschemas(parse_json(case.grammar.text, case.name)):
            for keyword in node if isinstance(node, dict) else ():
                if keyword in ASSERTIONS:
                    place = pointer((*path, keyword))
                    places[keyword] += 1
                    kept[keyword] += (place, True) in served
                    broken[keyword] += (place, False) in served
                    here.setdefault(keyword, set()).update(
                        valid for valid in (True, False) if (place, valid) in served
                    )
        having.update(here.keys())
        kept_in.update(keyword for keyword, done in here.items() if True in done)
        broken_in.update(keyword for keyword, done in here.items() if False in done)
    if not seconds:
        raise BadInput(f"{options.folder}: holds no JSON Schema")
    print(f"{both} of {schemas} schemas have a valid and an invalid document")
    print(f"processor time: median {statistics.median(seconds):.2f} s, most {max(seconds):.1f} s, "
          f"all {sum(seconds):.0f} s")  # fmt: skip
    heads = ("places", "kept", "broken", "schemas", "kept in", "broken in")
    print(f"{'keyword':24}" + "".join(f"{head:>10}" for head in heads))
    for keyword, count in places.most_common():
        figures = (kept, broken, having, kept_in, broken_in)
        print(f"{keyword:24}{count:10}" + "".join(f"{counter[keyword]:10}" for counter in figures))
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
