"""What lies in the folder DIR of benchmarks/reference.py: its runs, their shares, and what is noted beside
them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import BadInput
from harness.rows.row import CHECKS_MODE
from harness.rows.store import case_identity, has_begun, read_end, read_rows

PARTS = {
    "maskbench": "MaskBench",
    "jsts": "JSON-Schema-Test-Suite, drafts 4 to 2020-12",
    "ours": "our suites",
}

LEFT_OUT = "left_out.json"
"""The names of the schemas that no run can have."""

SESSIONS = "sessions.jsonl"
"""What each walk took, and how much it took over."""

Case = tuple[str, ...]
"""A case as one backend walked it on one vocabulary: what `case_identity` returns."""


def again_name(part: str) -> str:
    return f"{part}-again"


def again(out: Path, part: str) -> Path:
    """Where the run lies in which the cases that met a deadline are walked once more."""
    return out / "runs" / again_name(part)


def walked_again(out: Path, part: str) -> Path | None:
    """Returns the run of the part with the second deadline, if it is there and complete."""
    second = again(out, part)
    return second if has_begun(second) and read_end(second) else None


def shares_of(out: Path, name: str) -> list[Path]:
    """Returns the folders of the shares of a run that are here."""
    return sorted((out / "runs").glob(f"{name}.*-of-*"))


def timeouts(run: Path) -> set[Case]:
    """Returns the cases, each of one backend and vocabulary, of which a verdict was ended by a deadline."""
    return {
        case_identity(row) for row in read_rows(run) if row.status == "timeout" and row.mode != CHECKS_MODE
    }


def no_schemas_in(folder: Path, part: str) -> list[str]:
    """Returns the names of the schemas of the part that no run can have, as the folder has them. Raises
    BadInput for a damaged list."""
    path = folder / LEFT_OUT
    if part != "maskbench" or not path.exists():
        return []
    try:
        names = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadInput(f"{path}: cannot be read ({error})") from error
    if not isinstance(names, list):
        raise BadInput(f"{path}: holds no list of names")
    return names


def is_sample(suite: Mapping[str, Any], none: list[str]) -> bool:
    """Is it a sample of the suite that was walked? Those that are no schemas are missing from no run."""
    return int(suite["cases"]) + len(none) < int(suite.get("cases_in_all", suite["cases"]))


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
