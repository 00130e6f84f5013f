"""Says whether a failure that was walked again was seen again, and behind which cases it was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.diagnose.repro.find import Failure
from harness.diagnose.repro.replay import NOT_HERE
from harness.outcomes.outcome import fault_of
from harness.rows.row import BROKEN, CHECKS_MODE, verdict
from harness.text import one_line

WALKED = ("load", "compile", "start", "fill", "accept", "end", "walk")
"""The phases of a run through which the replay goes as the run did. Of others, as what a check does besides
walking, it cannot say that they no longer fail."""
WHY_NOT = "it may need the cases before it in the same process, or not come each time"


def behind(failure: Failure) -> list[str]:
    """Returns the line that names the cases behind which alone the failure was seen; none where the row says
    of no such cases."""
    row = failure.row
    if not row.behind or row.delayed:
        return []
    names = ", ".join(one_line(case.case, spelled=True) for case in row.behind)
    return [f"behind    {names}: not seen when the run walked the case alone, in a process of its own"]


def seen_again(failure: Failure, messages: Sequence[dict[str, Any]]) -> bool | None:
    """Returns whether the walk shows the failure again; None where it cannot tell, as of what a check does
    besides walking, of what was not walked to its end, and where it fails in another way."""
    row, judged = failure.row, verdict(failure.row.status, failure.row.valid, failure.row.accepted)
    lost = [message["lost"] for message in messages if "lost" in message]
    steps = [message["step"] for message in messages if "step" in message]
    if NOT_HERE in lost or failure.finding is not None:
        return None
    if row.status in BROKEN:
        raised = [message["said"] for message in messages if "said" in message][1:]  # the first heads them
        if lost or raised:
            return True if row.status in _statuses(lost, raised) else None
        return None if row.mode == CHECKS_MODE or row.phase not in WALKED else False
    if lost or not steps or judged not in ("over_constrained", "under_constrained"):
        return None
    is_taken = all(allowed and accepted for _, _, allowed, accepted in steps)
    return is_taken == (judged == "under_constrained")


def _statuses(lost: Sequence[str], raised: Sequence[str]) -> set[str]:
    """Returns the statuses that a run would have given to a walk that was lost so, or has raised this."""
    found = {"oom" if text.startswith("MemoryError") else "backend_error" for text in raised}
    for text in lost:
        is_late = text.startswith(("killed after ", "its calls had taken"))
        found.add("timeout" if is_late else "oom" if text.startswith("killed at ") else "crash")
    return found


def in_words(failure: Failure, messages: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the line that says that the failure was not seen again, or that a walk alone need not show it;
    none where it was seen, and where nothing can be said."""
    seen = seen_again(failure, messages)
    if seen is False:
        return [f"not seen again: {WHY_NOT}"]
    steps = [message["step"] for message in messages if "step" in message]
    finding = failure.finding
    if finding is None or finding.under or fault_of(finding).wrote or not steps:
        return []
    is_taken = all(allowed and accepted for _, _, allowed, accepted in steps)
    is_cut = any("lost" in message or message.get("count") == 0 for message in messages)
    return ["this walk need not show the finding: its check may do more than to walk"] * (
        is_taken and not is_cut
    )
