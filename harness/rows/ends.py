"""Words what a run cannot compare of backends that know one id of end-of-sequence only, or some, once for
each.

Every output uses the same sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.backend.arm import Arm, arm_names, version_key
from harness.rows.row import RunInfo


def one_end_lines(info: RunInfo) -> tuple[str, ...]:
    """Returns a line for each backend that knows one id of end-of-sequence, or some, where a vocabulary
    of the run has several: which it knows of each vocabulary, which it forbids everywhere, and who says
    so."""
    names = arm_names(info.arms)
    return tuple(line for arm in info.arms if (line := _line_of(info, arm, names[version_key(arm)])))


def _line_of(info: RunInfo, arm: Arm, name: str) -> str:
    """Returns the sentences about one arm, in one line; empty if there is nothing to say of it."""
    why, most, parts = arm.knows_one_end, 0, []
    for vocabulary, about in info.vocabularies.items():
        ends = about.get("eos_tokens", {})
        read = _reading_of(info, arm, vocabulary)
        known = [str(end) for end in read.get("ends", ()) if str(end) in ends]
        if not known:  # where nobody asked the library, it is the first
            known = list(ends)[: 1 if arm.knows_one_end else None]
        others = [text for end, text in ends.items() if end not in known]
        if others:
            taken = " and ".join(ends[end] for end in known)
            parts.append(f"of {vocabulary} {taken}, and not {' or '.join(others)}")
            why, most = why or read.get("knows_one_end", ""), max(most, len(known))
    if not parts:
        return ""
    knows = "knows one end-of-sequence" if most == 1 else "does not know every end-of-sequence"
    sentences = (f"{name} {knows}: {'; '.join(parts)}.", why, f"No figure here counts this against {name}.")
    return " ".join(filter(None, sentences))


def _reading_of(info: RunInfo, arm: Arm, vocabulary: str) -> Mapping[str, Any]:
    """Returns what the backend showed of the vocabulary; empty if it was not asked, or did not answer."""
    wanted = arm.backend, arm.version, arm.options, vocabulary
    for reading in info.readings:
        if tuple(reading.get(name) for name in ("backend", "version", "options", "vocabulary")) == wanted:
            return reading
    return {}


def ends_text(eos_tokens: Mapping[str, str]) -> str:
    """Returns the printed form of each id of end-of-sequence, for a line about a vocabulary; the mapping is
    that of a run's record."""
    return f"ends with {' or '.join(eos_tokens.values())}"
