"""Defines witnesses (documents that show that an arm is wrong) and the summary of an adjudication."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["under_constrained", "over_constrained", "validators_disagree"]


@dataclass(frozen=True)
class Witness:
    """One document, what both validators say of it, and the arm that says otherwise (none where the
    validators disagree)."""

    case_id: str
    case: str
    suite: str
    vocabulary: str
    arm: str
    """The arm's name and options, as in the run."""
    version: str
    kind: Kind
    cause: str
    """Under-constrained: the violated keyword, by the second validator. Over-constrained: what about the
    spelling is refused (`whitespace`, `property_order`, `escapes`, `number_forms`, joined by `+`),
    `unlisted_name` (properties that no `properties` lists), `canonical_tokens` (byte by byte it is accepted),
    else where: `at_name`, `at_string`, `at_number`, ..."""
    documented: bool
    """The adapter's `documented` names every part of the cause."""
    document: str
    """The bytes of the document as hex."""
    prefix: int
    """How many tokens precede the one on which the arms disagreed."""
    token: str
    """The bytes of that token as hex; empty for end-of-sequence, and for a document that an arm or the suite
    brought whole."""
    other: str
    """An arm that agrees with the validators; empty if none does."""
    refused_at: int | None
    """The canonical token of the document that an over-constrained arm refuses."""
    judge: bool
    second: bool
    formats: bool
    """Were formats assertions?"""
    count: int = 1
    """How many documents of the case showed the same; this is the shortest."""

    def to_json(self) -> dict[str, Any]:
        """Returns the witness as the object in a line of `witnesses.jsonl`, with the document as text for
        people."""
        return {**asdict(self), "text": bytes.fromhex(self.document).decode("utf-8", "backslashreplace")}


@dataclass
class Summary:
    """Counts over one adjudication."""

    cases: int = 0
    """The number of cases that at least one arm compiled again."""
    positions: int = 0
    """The number of positions at which at least two arms were compared."""
    tokens: int = 0
    """The number of tokens on which arms disagreed and that were followed up."""
    documents: int = 0
    """The number of documents that were judged."""
    unfinished: int = 0
    """The number of walks that came to no end, from such a token or alone."""
    dead_ends: Counter[str] = field(default_factory=Counter)
    """How many of these walks of each arm came to a place where nothing (or nothing but whitespace) is
    allowed and the document may not end."""
    unjudged: int = 0
    """The number of documents without a verdict of both validators."""
    formats_decide: int = 0
    """The number of documents whose validity depends on whether formats are assertions; they blame nobody."""
    tokenization_only: int = 0
    """The number of valid documents that an arm refuses in one tokenization and accepts in the canonical one;
    they blame nobody."""
    blamed: Counter[tuple[str, str, str, bool]] = field(default_factory=Counter)
    """The number of cases by arm, kind, cause and whether the cause is documented."""
    disagreements: int = 0
    """The number of cases in which the validators disagree on a document."""
    lost: Counter[str] = field(default_factory=Counter)
    """The number of cases in which an arm's process was lost or raised, by arm."""
    troubles: list[str] = field(default_factory=list)
    """How each of them was lost, in one line each."""

    def judged(self, valid: bool | None, formats_decide: bool, disagree: bool) -> None:
        """Counts a document."""
        self.documents += 1
        self.formats_decide += formats_decide
        self.unjudged += valid is None and not formats_decide and not disagree

    def lose(self, arm: str, how: str) -> None:
        """Counts a case that an arm left."""
        self.lost[arm] += 1
        self.troubles.append(how)

    def add(self, witness: Witness) -> None:
        """Counts the case of a witness."""
        if witness.kind == "validators_disagree":
            self.disagreements += 1
        else:
            self.blamed[witness.arm, witness.kind, witness.cause, witness.documented] += 1

    def text(self) -> str:
        """Returns the summary as text for people."""
        lines = [
            f"{self.cases} cases, {self.positions} positions compared, {self.tokens} tokens followed up, "
            f"{self.documents} documents judged",
            f"blaming nobody: {self.unfinished} walks unfinished, {self.unjudged} documents unjudged, "
            f"{self.formats_decide} decided by "
            f"formats alone, {self.tokenization_only} refused in one tokenization only; validators disagree "
            f"in {self.disagreements} cases",
            *(
                f"{arm}: {count} walks into a dead end"
                for arm, count in sorted(self.dead_ends.items())
                if count
            ),
            *(f"{arm}: lost in {count} cases" for arm, count in sorted(self.lost.items())),
        ]
        for (arm, kind, cause, documented), count in sorted(
            self.blamed.items(), key=lambda entry: (entry[0][:2], -entry[1], entry[0])
        ):
            lines.append(
                f"{arm:30} {kind:18} {count:5} cases  {cause}{' (documented)' if documented else ''}"
            )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as one JSON object."""
        who = ("arm", "kind", "cause", "documented")
        blamed = [
            dict(zip(who, key, strict=True)) | {"cases": count} for key, count in sorted(self.blamed.items())
        ]
        return {**vars(self), "blamed": blamed}
