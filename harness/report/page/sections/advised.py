"""What an engine makes of the cases, and rewrites of schemas that mean the same and work on more."""

from __future__ import annotations

import json

from harness.report.page.content import Content
from harness.report.page.section import Section, Values

MOST_CHANGES = 40


def values(page: Content) -> Values | None:
    """Returns what was advised on the runs; None where nobody asked for advice. Raises BadInput."""
    advices = list(page.inputs.advices.values())
    if not advices:
        return None
    changes = [change for advice in advices for change in advice.changes]
    return {
        "advices": advices,
        "changes": [(change, _indented(change.schema)) for change in changes[:MOST_CHANGES]],
        "left_off": max(0, len(changes) - MOST_CHANGES),
        "unchanged": [name for advice in advices for name in advice.unchanged],
        "not_looked_at": sum(advice.not_looked_at for advice in advices),
    }


def _indented(schema: str) -> str:
    try:
        return json.dumps(json.loads(schema), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return schema


SECTION = Section("advised", "What to change", 6, values, "answer")
