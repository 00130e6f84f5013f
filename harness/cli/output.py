"""What a command prints: its progress, and its answer as text or as one JSON document."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

from harness.text import SURROGATES, one_line, visible


def say(message: str) -> None:
    """Prints a line of progress or a note on stderr, because stdout holds the answer alone."""
    print(one_line(message), file=sys.stderr, flush=True)


def emit(options: argparse.Namespace, value: Callable[[], Any], text: Callable[[], str]) -> None:
    """Prints the command's answer on stdout: with `--json` the value as one document, else the text.

    The other one is not made.
    """
    if options.json:
        print(json.dumps(plain(value()), allow_nan=False))
    else:
        print(text())


def for_screen(text: str) -> str:
    """Returns data, such as CSV, as it is; where stdout is a terminal, without anything that steers it.

    The gate of the streams lets our colour codes through, whoever wrote them; data has none of ours, so all
    codes are spelled out.
    """
    return visible(text) if sys.stdout.isatty() else text


def plain(value: Any) -> Any:
    """Returns the value as strict JSON has it: null for a number that is not finite, text for a path, U+FFFD
    for a lone surrogate."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(map(plain, value))
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | PurePath):
        return SURROGATES.sub("\ufffd", str(value))
    return value
