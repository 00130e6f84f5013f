"""The files of our suites as they stand there, without the harness's reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from places import ROOT

SUITES = {path.stem: path for path in sorted((ROOT / "suites").glob("*.jsonl"))}
"""Each suite's file by its name."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Returns the header of a suite's file, and behind it the cases."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def content(test: dict[str, Any]) -> bytes:
    """Returns the bytes of an instance that is no list of tokens."""
    if "bytes" in test:
        return bytes.fromhex(test["bytes"])
    text: str = test["text"] if "text" in test else json.dumps(test["data"], ensure_ascii=False)
    return text.encode()
