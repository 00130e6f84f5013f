"""What becomes of tool calls: of each family of models and choice of tools, how many outputs each backend
judges rightly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from harness.backend.arm import arm_names
from harness.errors import BadInput
from harness.outcomes.keywords import ArmName
from harness.rows.row import OURS, Row, verdict
from harness.rows.store import read_info, read_rows

Line = tuple[str, str, int]
"""The family of models, the choice of tools, and the number of tools."""

WORDS = {
    "over_constrained": "refuses {} valid",
    "under_constrained": "takes {} wrong",
    "declined": "declines {}",
    "broken": "breaks on {}",
    "unjudged": "{} not judged",
}
"""What is said of the outputs that are not judged rightly, by their verdict."""


def tool_counts(rows: Iterable[Row]) -> dict[Line, dict[ArmName, Counter[str]]]:
    """Returns how many outputs had which verdict, by line and arm; rows of other cases are passed over."""
    counts: dict[Line, dict[ArmName, Counter[str]]] = {}
    for row in rows:
        line = _line_of(row.tags)
        if line is None or row.valid is None:
            continue
        ours = row.status in OURS
        what = "unjudged" if ours else verdict(row.status, row.valid, row.accepted)
        counts.setdefault(line, {}).setdefault(row.version_key, Counter())[what] += 1
    return counts


def tools_frame(run: Path) -> pd.DataFrame:
    """Returns one line per family, choice and number of tools, with what each arm makes of the outputs.
    Raises BadInput for a run without such cases."""
    counts = tool_counts(read_rows(run))
    if not counts:
        raise BadInput(f"{run} has no cases of tool calls; make some with grammarbench run tools")
    names = arm_names(read_info(run).arms)
    arms = list(dict.fromkeys(arm for of_line in counts.values() for arm in of_line))
    lines = [
        {"family": family, "choice": choice, "tools": tools}
        | {names.get(arm, arm[0]): _cell(of_line.get(arm, Counter())) for arm in arms}
        for (family, choice, tools), of_line in counts.items()
    ]
    return pd.DataFrame(lines, dtype=object)


def _line_of(tags: Iterable[str]) -> Line | None:
    values = {name: value for name, _, value in (tag.partition(":") for tag in tags)}
    if not {"family", "choice", "tools"} <= values.keys() or not values["tools"].isdecimal():
        return None
    return values["family"], values["choice"], int(values["tools"][:9])


def _cell(counts: Counter[str]) -> str:
    """Returns a cell's words: that all is right, or what is not."""
    total = counts.total()
    if not total:
        return "not run"
    wrong = [WORDS[what].format(counts[what]) for what in WORDS if counts[what]]
    if counts["declined"] == total:
        return "declines all"
    if counts["broken"] == total:
        return "breaks on all"
    return f"{counts['pass']}/{total} right" + (f": {', '.join(wrong)}" if wrong else "")
