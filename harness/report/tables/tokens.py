"""What the backends of a run take the tokens of its vocabularies for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.backend.arm import arm_names
from harness.backend.token_bytes.compare import kinds_text, spelled_bytes
from harness.rows.row import RunInfo
from harness.rows.store import read_info
from harness.text import one_line

LOADERS = {"library": "its own", "bytes": "bytes of ours", "": "not said"}
"""How the library came to know the tokens, in a table's words."""


@dataclass(frozen=True)
class TokensLine:
    """What one arm takes the tokens of one vocabulary for."""

    vocabulary: str
    arm: str
    loader: str
    wrong: int | None
    """How many ids it reads wrongly; None where that is not known."""
    size: int
    kinds: str
    """The kinds of differences with the number of ids, or why nothing is known."""
    example: str
    """One id with both readings."""


def token_lines(info: RunInfo) -> Iterator[TokensLine]:
    """Yields a line for each arm that shows its tokens, and vocabulary."""
    names = arm_names(info.arms)
    for reading in info.readings:
        size = int(info.vocabularies.get(reading["vocabulary"], {}).get("size", 0))
        arm = names.get((reading["backend"], reading["version"], reading["options"]), reading["backend"])
        why = reading.get("problem") or reading.get("refused")
        yield TokensLine(
            reading["vocabulary"],
            arm,
            LOADERS[reading.get("loader", "")],
            int(reading.get("wrong", 0)) if reading.get("stated") and not why else None,
            size,
            one_line(why, 300, spelled=True) if why else kinds_text(reading.get("kinds", {})),
            example_text(reading["examples"][0]) if reading.get("examples") else "",
        )


def tokens_frame(run: Path) -> pd.DataFrame:
    """Returns one line per vocabulary and arm that shows its tokens: how many ids it reads wrongly, of how
    many, the kinds of differences, and one id with both readings. Raises BadInput."""
    lines = [vars(line) for line in token_lines(read_info(run))]
    return pd.DataFrame(lines, columns=list(TokensLine.__annotations__), dtype=object)


def example_text(example: dict[str, Any]) -> str:
    """Returns an id with the bytes that it has and those that it is taken for, as people read them."""
    true, read = spelled_bytes(example["true"]), spelled_bytes(example["read"])
    return f"{example['token']} is {true}, taken for {read}"
