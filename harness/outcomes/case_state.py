"""What a case is like for whoever would use the backend: does it work, and if not, what goes wrong?

The states split the outcomes of cases (`CaseOutcome`): a case that failed is in one of `FAILED`, each other
outcome is one state.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.checks import BACKEND_ERROR, category
from harness.checks.never_text import NEVER_TEXT
from harness.rows.row import Finding


class CaseState(StrEnum):
    """What a case is like on one arm, the gravest first.

    What takes a server down comes before what is wrong without a word, and that before what is wrong aloud.
    """

    BREAKS = "breaks"
    SILENTLY_WRONG = "silently_wrong"
    VALID_REFUSED = "valid_refused"
    TOO_SLOW = "too_slow"
    OTHER_FAULT = "other_fault"
    REFUSED = "refused"
    NOT_MEASURED = "not_measured"
    NOT_JUDGED = "not_judged"
    WORKS = "works"

    @property
    def gravity(self) -> int:
        """Returns the place in the order of gravity; 0 is the gravest."""
        return GRAVITY[self]

    @property
    def words(self) -> StateWords:
        """Returns how the state is written everywhere."""
        return STATES[self]


GRAVITY = {state: place for place, state in enumerate(CaseState)}

FAILED = tuple(CaseState)[:5]
"""The states of a case that failed; their counts sum up to `failed`."""


@dataclass(frozen=True)
class StateWords:
    """How a state is written."""

    glyph: str
    title: str
    meaning: str


STATES = {
    CaseState.BREAKS: StateWords("✖", "breaks", "a crash, an exception, or the memory limit"),
    CaseState.SILENTLY_WRONG: StateWords(
        "▲", "silently wrong", "it takes the case and allows output that the case forbids"
    ),
    CaseState.VALID_REFUSED: StateWords(
        "▼", "valid output refused", "it forbids output that the case allows"
    ),
    CaseState.TOO_SLOW: StateWords(
        "◔", "too slow", "a call, or the calls together, took longer than the time limit"
    ),
    CaseState.OTHER_FAULT: StateWords(
        "◆",
        "other fault",
        "a check found something else: bytes that make no character, say, or a rollback that restores too "
        "little",
    ),
    CaseState.REFUSED: StateWords("⊘", "refused", "the backend says that it cannot"),
    CaseState.NOT_MEASURED: StateWords("⚑", "not measured", "a part is missing through our own fault"),
    CaseState.NOT_JUDGED: StateWords(
        "?", "not judged", "it compiles, and nothing could tell whether its output is right"
    ),
    CaseState.WORKS: StateWords(
        "✓", "works", "every output was judged rightly and no check found an undocumented fault"
    ),
}

UNDER, OVER = "under_constrained", "over_constrained"
"""Kinds of a fault (`Outcome`): an invalid output is accepted, a valid one refused."""

WROTE_INVALID = frozenset(("invalid", "no_json"))
"""Causes of findings that show an output which the backend let through and the case forbids, unless they
count tokens: a mask can also allow what is no JSON."""

SAME_TEXT = frozenset(("canonical_only", NEVER_TEXT))
"""Causes of findings about tokens that are forbidden though others write the same text: no output is lost."""

HANDS_OVER = frozenset(("invalid_utf8_is_refused_at_once",))
"""Checks that begin a character which no output of the case needs, to see how it may go on. A model seldom
does, and whoever decodes the output replaces bytes that are no UTF-8, so that a user gets the document with
U+FFFD in it: what these checks alone show is told, and counts as no wrong document."""


UNASKED = {
    "a_refused_token_does_not_move": "a token that the mask forbids",
    "accept_tokens_stops_where_accept_token_does": "a token that the mask forbids",
    "an_id_outside_the_vocabulary_is_refused": "an id outside of the vocabulary",
    "end_of_sequence_is_refused_before_the_end": "a token that the mask forbids",
}
"""Checks that hand over what an engine does not, and what that is. Whatever else they ask is asked in walks
and by other checks too: an exception in these alone says nothing of any output."""

REASONING = "reasoning"
"""The category of the checks whose outputs think before their answer, which no case asks for."""


def only_where(finding: Finding) -> str:
    """Returns, as the beginning of a sentence, which input that nobody asked for made the backend raise;
    empty where the finding is no exception, or came of what engines do."""
    if finding.cause != BACKEND_ERROR:
        return ""
    if category(finding.check) == REASONING:
        return "only where an output thinks before its answer"
    unasked = UNASKED.get(finding.check)
    return f"only where it is handed {unasked}" if unasked else ""


def shows_output(finding: Finding) -> bool:
    """Does the finding show an output which the backend let through and the case forbids?"""
    return finding.cause in WROTE_INVALID and not (finding.over or finding.under)


def state_of_fault(kind: str, finding: Finding | None) -> CaseState:
    """Returns the state in which a fault puts its case: by the kind of the fault, and for a check's finding
    by which tokens or outputs it shows."""
    if finding is not None:
        is_drawn = finding.check not in HANDS_OVER
        if (finding.under and is_drawn) or shows_output(finding):
            return CaseState.SILENTLY_WRONG
        if finding.over and finding.cause not in SAME_TEXT:
            return CaseState.VALID_REFUSED
        is_asked = finding.cause == BACKEND_ERROR and not only_where(finding)
        return CaseState.BREAKS if is_asked else CaseState.OTHER_FAULT
    return {
        UNDER: CaseState.SILENTLY_WRONG,
        OVER: CaseState.VALID_REFUSED,
        "timeout": CaseState.TOO_SLOW,
        "declined": CaseState.REFUSED,
    }.get(kind, CaseState.BREAKS)
