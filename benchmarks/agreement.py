"""Does the harness say of each instance what a plain loop says? Random files of MaskBench, both ways.

    python benchmarks/agreement.py [--folder FOLDER] [--files 400] [--seed 0] [--vocabulary mistral-v3] [BACKEND ...]

FOLDER holds MaskBench files (default: ../shared/corpora/maskbench). `grammarbench run` walks every instance of
the files, those that it made included, without checks; then the plain loop (`parts/plain_loops.py`, the
library's own calls) walks the same texts in a process of its own for each file. For each backend (default: all
that are installed) it prints on how many instances the two say the same, which is where the output was
refused or that it was taken to its end, and then each on which they do not. What was lost on either side (a
deadline, a crash, an exception) is counted apart: nothing was said of it. The exit code is 1 if they differ anywhere.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script
from plain_loops import PLAIN, installed

from harness.backend.process.short_child import answer_of_a_child
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case
from harness.cli.progress import progress_line
from harness.cli.values import positive
from harness.errors import GATE_FAILED, OK, BadInput
from harness.rows.row import DECLINED, Row
from harness.rows.store import read_cases, read_rows
from harness.running.session import Request, run

FOLDER = Path(__file__).parents[2] / "shared" / "corpora" / "maskbench"
SECONDS = 10.0
"""The deadline of a compile and of each walk in the harness, and of a whole file in the plain loop; MaskBench
gives a compile and a walk as much."""

REFUSED = "the schema is refused"
LOST = "lost"


def by_harness(row: Row) -> int | str | None:
    """Returns what a row says: the place of the first refused token, None where nothing is refused, REFUSED
    or LOST."""
    if row.status in DECLINED:
        return REFUSED
    return row.stopped_at if row.status == "ok" else LOST


def by_plain_loop(
    compile_schema: Callable[[str], Any],
    walk: Callable[[Any, list[int], list[int]], int | None],
    vocabulary: Vocabulary,
    case: Case,
) -> list[int | str | None]:
    """Returns the same of each instance of the case."""

    def said() -> str:
        grammar = compile_schema(case.grammar.text)
        if grammar is None:
            return json.dumps([REFUSED] * len(case.instances))
        return json.dumps([walked(grammar, each.content) for each in case.instances])

    def walked(grammar: Any, content: bytes) -> int | str | None:
        try:
            return walk(grammar, list(vocabulary.encode(content)), [])
        except Exception:
            return LOST

    answer = answer_of_a_child(said, SECONDS)
    found: list[int | str | None] = [LOST] * len(case.instances) if answer is None else json.loads(answer)
    return found


def compare(backend: str, vocabulary: Vocabulary, out: Path) -> tuple[Counter[str], list[str]]:
    """Walks the cases of a run by the plain loop. Returns how many instances were alike, different and lost,
    and a line for each different one. Raises BadInput."""
    rows = {(row.case_id, row.instance): row for row in read_rows(out) if row.backend == backend}
    compile_schema, walk = PLAIN[backend](vocabulary)
    loop = partial(by_plain_loop, compile_schema, walk, vocabulary)
    counts: Counter[str] = Counter()
    lines = []
    for _, _, case in read_cases(out):
        harness = [by_harness(rows[case.id, place]) for place in range(len(case.instances))]
        plain = [LOST] * len(harness) if set(harness) == {LOST} else loop(case)
        for instance, ours, theirs in zip(case.instances, harness, plain, strict=True):
            what = LOST if LOST in (ours, theirs) else "alike" if ours == theirs else "different"
            counts[what] += 1
            if what == "different":
                lines.append(f"{case.name} {instance.name}: harness {ours}, plain loop {theirs}")
    return counts, lines


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, 1 where the two differ, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--files", type=positive, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vocabulary", default="mistral-v3")
    parser.add_argument("backends", nargs="*")
    options = parser.parse_args(arguments)
    known = installed()
    differ = False
    if unknown := set(options.backends) - set(known):
        raise BadInput(f"no plain loop of {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    files = sorted(options.folder.glob("*.json"))
    if not files:
        raise BadInput(f"{options.folder} holds no MaskBench files; give --folder")
    chosen = random.Random(options.seed).sample(files, min(options.files, len(files)))
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Path(scratch) / "corpus"
        corpus.mkdir()
        for path in chosen:
            shutil.copy(path, corpus)
        backends, out = options.backends or known, Path(scratch) / "run"
        request = Request(
            suites=(str(corpus),),
            backends=",".join(backends),
            vocabularies=(options.vocabulary,),
            out=out,
            timeout_s=SECONDS,
            effort=0,
        )
        with progress_line(sys.stderr) as report:
            run(request, lambda _: None, report)
        vocabulary = load_vocabulary(options.vocabulary)
        for backend in backends:
            counts, lines = compare(backend, vocabulary, out)
            judged = counts["alike"] + counts["different"]
            print(
                f"{backend}: the harness says what the plain loop says of {counts['alike']:,} of "
                f"{judged:,} instances of {len(chosen)} files on {options.vocabulary}; {counts[LOST]:,} "
                "were lost to a deadline or a crash",
                *lines,
                sep="\n  ",
                flush=True,
            )
            differ = differ or bool(lines)
    return GATE_FAILED if differ else OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
