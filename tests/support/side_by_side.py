"""Two automata walked side by side, byte by byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, Automaton


def first_difference(
    own: Automaton[Any], other: Automaton[Any], most: int, other_may_have_more: bool = False
) -> str | None:
    """After which text the automata differ in the bytes that may come or in whether the output may end; None
    if they do not, in so many pairs of states. `other_may_have_more` looks only for what `own` has more."""
    behind: dict[tuple[int, int], bytes] = {(own.start, other.start): b""}
    waiting = list(behind)
    for here in waiting:
        text = behind[here]
        own.expand(np.array(here[:1], dtype=np.int32))
        other.expand(np.array(here[1:], dtype=np.int32))
        rows = own.table[here[0]], other.table[here[1]]
        ends = own.accepting(here[0]), other.accepting(here[1])
        if ends[0] > ends[1] or (ends[0] < ends[1] and not other_may_have_more):
            return f"{text!r}: {ends[0]} that it may end, and by the other {ends[1]}"
        wrong = (rows[0] != DEAD) & (rows[1] == DEAD)
        if not other_may_have_more:
            wrong |= (rows[0] == DEAD) & (rows[1] != DEAD)
        if wrong.any():
            return f"{text!r}: they differ in {bytes(np.flatnonzero(wrong).tolist())!r}"
        for byte in np.flatnonzero(rows[0]).tolist():
            after = int(rows[0][byte]), int(rows[1][byte])
            if after not in behind and len(behind) < most:
                behind[after] = text + bytes((byte,))
                waiting.append(after)
    return None
