"""What each backend of a run takes the tokens of each vocabulary for, asked once, before any walk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from harness.backend.declared import refuse_wrongly_declared
from harness.backend.grammar import Adapter
from harness.backend.process.short_child import answer_of_a_child
from harness.backend.registry import load, make, parse_specs
from harness.backend.token_bytes.look import reading_of
from harness.backend.vocabulary import Vocabulary
from harness.errors import error_text

SECONDS = 120.0
"""The time that a backend has to load one vocabulary and to show it."""


def shows_tokens(name: str) -> bool:
    """Returns whether the adapter of that name can say what its backend takes tokens for."""
    return load(name).token_bytes is not Adapter.token_bytes


def readings_of(
    arms: Sequence[tuple[str, dict[str, str]]], vocabularies: Mapping[str, Vocabulary]
) -> list[dict[str, Any]]:
    """Returns one object for each arm and vocabulary (`Description.readings`); `arms` are each a backend as
    the user writes it, and the fields that name the arm. Each is asked in a child of this process."""
    return [
        who
        | {"vocabulary": name}
        | json.loads(
            answer_of_a_child(partial(_reading, text, vocabulary), SECONDS)
            or json.dumps({"problem": f"it was lost, or took longer than {SECONDS:g} s"})
        )
        for name, vocabulary in vocabularies.items()
        for text, who in arms
    ]


def _reading(text: str, vocabulary: Vocabulary) -> str:
    (spec,) = parse_specs(text)
    try:
        adapter = make(spec, vocabulary)
        refuse_wrongly_declared(adapter, text)
        return json.dumps(asdict(reading_of(adapter)))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        return json.dumps({"problem": error_text(error)[:500]})
