"""`check BACKEND --threads`: do grammar objects on several threads behave as each does alone?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from harness.backend.threads import THREADS, Threaded, on_threads
from harness.cli.output import emit
from harness.errors import GATE_FAILED, OK, UNPROVEN
from harness.text import console, counted, grid, one_line


def check_threads(options: argparse.Namespace, backend: str, vocabulary: str, python: str) -> int:
    """Prints whether walks on several threads go otherwise than alone; 1 if one does or the backend is lost,
    and 4 if none could be compared.

    Raises BadInput.
    """
    seen = on_threads(backend, vocabulary, options.seconds, options.timeout, python)
    fields = asdict(seen) | {"backend": options.backend, "vocabulary": vocabulary, "threads": THREADS}
    emit(options, lambda: fields, lambda: "\n".join(_lines(options.backend, seen)))
    if any(way.otherwise or way.lost for way in seen.ways):
        return GATE_FAILED
    return OK if _walks(seen) else UNPROVEN


def _walks(seen: Threaded) -> int:
    return sum(way.walks for way in seen.ways)


def _lines(backend: str, seen: Threaded) -> Iterator[str]:
    yield _answer(backend, seen)
    for grammar in seen.unsteady:
        yield f"left out, because two walks on one thread differ: {one_line(grammar, 100, spelled=True)}"
    if not _walks(seen) and not any(way.lost for way in seen.ways):
        return
    rows = [(way.way, [f"{way.walks:,}", f"{way.otherwise:,}"]) for way in seen.ways]
    yield ""
    yield grid("on several threads", ["walks", "different"], [rows], console().width, widest=30)
    for way in seen.ways:
        for text in [*way.shown, *([way.lost] if way.lost else [])]:
            yield f"{way.way}: {one_line(text, 300, spelled=True)}"


def _answer(backend: str, seen: Threaded) -> str:
    """Returns the first line; it says that what found nothing is a sample."""
    walks, otherwise = _walks(seen), sum(way.otherwise for way in seen.ways)
    if any(way.lost for way in seen.ways):
        return f"the process of {backend} is lost on {THREADS} threads, and not on one"
    if otherwise:
        return (
            f"{backend} behaves differently on {THREADS} threads than on one in {otherwise:,} of {walks:,} "
            "walks"
        )
    if not seen.compiled:
        return f"nothing is known of {backend}: it compiles none of the sample grammars"
    if not walks:
        return f"nothing is known of {backend}: even on one thread, two equal walks differ"
    return (
        f"{backend} behaves on {THREADS} threads as on one in {counted(walks, 'walk')} (a sample: a race may "
        "not show in it)"
    )
