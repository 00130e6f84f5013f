"""Time and memory that each vocabulary takes to load, beside those of its library alone.

    python benchmarks/vocabulary_loading.py [NAMES...]     default: tekken and all that are fetched

Each is loaded in processes of its own, THREE times, and the smallest figures count: processor seconds, wall
seconds, resident memory that stays, and the highest that it had on the way. Beside them stands what the plain
loop of the library takes for the same file: `Tokenizer.from_file`, or the ranks into `tiktoken.Encoding`.
Promised: 262,144 ids in at most 3 processor seconds and 400 MB, of which the last line says whether it holds.
"""

from __future__ import annotations

import argparse
import base64
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.errors import OK

THREE = 3
MOST_SECONDS, MOST_MB = 3.0, 400.0


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    from harness.backend.vocabulary import prepare_vocabulary
    from harness.backend.vocabulary.families import FAMILIES
    from harness.backend.vocabulary.fetched import is_fetched

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args(arguments).names
    names = [prepare_vocabulary(name) for name in given]
    names = names or ["tekken", *(name for name, one in FAMILIES.items() if is_fetched(one))]
    print(f"{'':12} {'ids':>8} {'cpu':>7} {'wall':>7} {'kept':>7} {'peak':>7} {'plain':>7} {'ratio':>6}")
    holds = True
    for name in names:
        ours, plain = best(name, "ours"), best(name, "plain")
        figures = [f"{ours['cpu']:5.2f} s", f"{ours['wall']:5.2f} s", f"{ours['kept']:4.0f} MB"]
        figures += [f"{ours['peak']:4.0f} MB", *beside(ours["cpu"], plain["cpu"])]
        print(f"{name:12} {ours['ids']:8,.0f} {' '.join(figures)}", flush=True)
        holds = holds and ours["cpu"] <= MOST_SECONDS and ours["peak"] <= MOST_MB
    print(f"each within {MOST_SECONDS:g} s and {MOST_MB:g} MB: {'yes' if holds else 'no'}")
    return OK


def beside(ours: float, plain: float) -> tuple[str, str]:
    """Returns the plain loop's seconds and the ratio to them; dashes where there is no plain loop."""
    return (f"{plain:5.2f} s", f"{ours / plain:6.2f}") if plain else (f"{'-':>7}", f"{'-':>6}")


def best(name: str, what: str) -> dict[str, float]:
    """Returns the smallest figures of several processes that load the vocabulary."""
    command = [sys.executable, __file__, "--one", name, what]
    runs = [json.loads(subprocess.run(command, check=True, stdout=-1).stdout) for _ in range(THREE)]
    return {figure: min(run[figure] for run in runs) for figure in runs[0]}


def one(name: str, what: str) -> dict[str, float]:
    """Returns the figures of one loading in this process, with the libraries imported before."""
    import sentencepiece  # noqa: F401
    import tiktoken  # noqa: F401
    import tokenizers  # noqa: F401

    from harness.backend.vocabulary import load_vocabulary

    load = loader(name) if what == "plain" else lambda: load_vocabulary(name)
    if load is None:
        return {"ids": 0.0, "cpu": 0.0, "wall": 0.0, "kept": 0.0, "peak": 0.0}
    before = resident()
    cpu, wall = time.process_time(), time.perf_counter()
    loaded = load()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "ids": float(getattr(loaded, "size", 0)),
        "cpu": cpu,
        "wall": wall,
        "kept": (resident() - before) / 1e6,
        "peak": (peak - before) / 1e6,
    }


def loader(name: str) -> Callable[[], object] | None:
    """Returns what loads the family's file with its library and nothing of ours; None for a GGUF file, which
    no library of tokenizers reads, and for a vocabulary that is no family."""
    from harness.backend.vocabulary.families import FAMILIES, FILE_NAMES
    from harness.backend.vocabulary.fetched import folder_of

    family = FAMILIES.get(name)
    if family is None or family.form == "gguf":
        return None
    path = folder_of(family) / FILE_NAMES[family.form]
    if family.form == "huggingface":
        from tokenizers import Tokenizer

        return lambda: Tokenizer.from_file(str(path))

    import tiktoken

    def ranks() -> object:
        lines = (line.split() for line in Path(path).read_bytes().splitlines())
        table = {base64.b64decode(text): int(rank) for text, rank in lines}
        return tiktoken.Encoding(name, pat_str=family.pattern, mergeable_ranks=table, special_tokens={})

    return ranks


def resident() -> int:
    """Returns the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(*sys.argv[2:])))
    else:
        sys.exit(main(sys.argv[1:]))
