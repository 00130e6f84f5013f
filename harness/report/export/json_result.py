"""The result itself, as JSON."""

from __future__ import annotations

import json

from harness.outcomes.result import Result


def files(result: Result) -> dict[str, str]:
    """Returns `result.json`, the whole result."""
    return {"result.json": json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n"}
