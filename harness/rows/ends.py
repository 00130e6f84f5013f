"""Words what a run cannot compare of backends that know one id of end-of-sequence only, once for each.

Every output uses the same sentences."""

from __future__ import annotations

from collections.abc import Mapping

from harness.backend.arm import arm_names
from harness.rows.row import RunInfo


def one_end_lines(info: RunInfo) -> tuple[str, ...]:
    """Returns a sentence for each backend that knows one id of end-of-sequence where a vocabulary of the run
    has several: which it knows of each vocabulary, which it forbids everywhere, and who says so."""
    several = {
        name: tuple(about["eos_tokens"].values())
        for name, about in info.vocabularies.items()
        if len(about.get("eos_tokens", ())) > 1
    }
    of_vocabularies = "; ".join(
        f"of {name} {first}, and not {' or '.join(others)}" for name, (first, *others) in several.items()
    )
    names = arm_names(info.arms)
    return tuple(
        f"{names[arm.backend, arm.version, arm.options]} knows one end-of-sequence, {of_vocabularies}; no "
        f"figure here counts that. {arm.knows_one_end}"
        for arm in info.arms
        if arm.knows_one_end and several
    )


def ends_text(eos_tokens: Mapping[str, str]) -> str:
    """Returns the printed form of each id of end-of-sequence, for a line about a vocabulary; the mapping is
    that of a run's record."""
    return f"ends with {' or '.join(eos_tokens.values())}"
