"""`check BACKEND --tokens`: what does a backend take the tokens of a vocabulary for?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from harness.backend.token_bytes.compare import KINDS, spelled_bytes
from harness.backend.token_bytes.look import Looked, look
from harness.cli.output import emit
from harness.errors import GATE_FAILED, OK, UNPROVEN
from harness.text import counted, one_line

LISTED = 5
"""How many ids of a kind are listed on a terminal; the JSON has all."""

LOADERS = {
    "library": "its own loader read the tokenizer's files",
    "bytes": "the adapter handed it the bytes of each id",
    "": "the adapter does not say how it came to know them",
}


def check_tokens(options: argparse.Namespace, backend: str, vocabulary: str, python: str) -> int:
    """Prints which ids the backend reads wrongly; 1 if there are any, or it does not take the vocabulary, or
    was lost over a question, and 4 if it could be asked nothing.

    Raises BadInput.
    """
    looked = look(backend, vocabulary, options.timeout, python)
    fields = asdict(looked) | {"backend": options.backend, "vocabulary": vocabulary}
    emit(options, lambda: fields, lambda: "\n".join(_lines(options.backend, vocabulary, looked)))
    if looked.wrong or looked.misread or looked.reading.refused or looked.lost:
        return GATE_FAILED
    return OK if _is_known(looked) else UNPROVEN


def _is_known(looked: Looked) -> bool:
    """Did the backend show its tokens, or a mask?"""
    return looked.reading.stated or looked.probed > 0


def _lines(backend: str, vocabulary: str, looked: Looked) -> Iterator[str]:
    reading = looked.reading
    yield _answer(backend, vocabulary, looked)
    if reading.refused:
        return
    yield f"{LOADERS[reading.loader]}; {_how(looked)}"
    for kind, count in reading.kinds.items():
        yield ""
        yield f"{KINDS[kind]}: {counted(count, 'id')}"
        of_kind = [each for each in looked.wrong if each["kind"] == kind]
        width = max(len(spelled_bytes(each["true"])) for each in of_kind[:LISTED])
        for each in of_kind[:LISTED]:
            true, read = spelled_bytes(each["true"]), spelled_bytes(each["read"])
            yield f"  {each['token']:>7}  is {true:{width}}  taken for {read}"
        if count > LISTED:
            yield f"  and {count - LISTED:,} more (--json lists all)"
        if kind in looked.shown:
            yield f"  {_shown(looked.shown[kind])}"
        else:
            yield "  no mask was found that is wrong because of it"
    if looked.misread:
        yield ""
        yield f"wrong masks for ids whose bytes the backend shows rightly: {len(looked.misread)}"
        for each in looked.misread[:LISTED]:
            yield f"  {each['token']:>7}  {_shown(each)}"
    for loss in looked.lost:
        yield f"a question was not answered: {one_line(loss, 300, spelled=True)}"


def _answer(backend: str, vocabulary: str, looked: Looked) -> str:
    if looked.reading.refused:
        refused = one_line(looked.reading.refused, 300, spelled=True)
        return f"{backend} does not take {vocabulary}: {refused}"
    wrong = looked.reading.wrong + len(looked.misread)
    if wrong:
        return f"{backend} reads {wrong:,} of {looked.size:,} ids of {vocabulary} wrongly"
    if not _is_known(looked):
        return f"nothing is known of how {backend} reads {vocabulary}: no mask could be asked"
    probed = counted(looked.probed, "probed id")
    of = f"all {looked.size:,} ids" if looked.reading.stated else f"the {probed}"
    return f"{backend} reads {of} of {vocabulary} rightly"


def _how(looked: Looked) -> str:
    if looked.reading.stated:
        return f"it shows the bytes of each id; compared with masks too: {counted(looked.probed, 'id')}"
    return f"it does not show its tokens; looked for in masks: {counted(looked.probed, 'id')}"


def _shown(mask: dict[str, Any]) -> str:
    where = f" behind {spelled_bytes(mask['before'])}" if mask["before"] else " at the start"
    verb = "allows" if mask["allowed"] else "forbids"
    grammar = one_line(mask["choice"], 160, spelled=True)
    return f"the choice {grammar} {verb} id {mask['token']}{where}"
