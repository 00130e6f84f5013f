"""Defines witnesses (documents that show that an arm is wrong) and the summary of an adjudication."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from harness.text import counted

CONTRADICTED = (
    "both validators contradict the automaton, so nothing counts against a backend there "
    "(automaton_contradicted in witnesses.jsonl)"
)

Kind = Literal["under_constrained", "over_constrained", "validators_disagree", "automaton_contradicted"]
DecidedBy = Literal["documents", "automaton", "both"]
"""`documents`: a document that both validators judged; there is no automaton that knows it. `both`: the
automaton says the same of that document. `automaton`: no document goes on with the token, and no arm finished
one."""
Decided = Literal["documents", "automaton", "both", "open"]


@dataclass(frozen=True)
class Witness:
    """One document, what both validators say of it, and the arm that says otherwise (none where the
    validators disagree, or contradict our automaton)."""

    case_id: str
    case: str
    suite: str
    vocabulary: str
    arm: str
    """The arm's name and options, as in the run."""
    version: str
    kind: Kind
    cause: str
    """Under-constrained: the violated keyword, by the second validator, or by the automaton alone (then also
    `duplicate_name`, `several_keywords`). Over-constrained: what about the
    spelling is refused (`whitespace`, `property_order`, `escapes`, `number_forms`, joined by `+`),
    `unlisted_name` (properties that no `properties` lists), `canonical_tokens` (byte by byte it is accepted),
    else where: `at_name`, `at_string`, `at_number`, ..."""
    documented: bool
    """The adapter's `documented` names every part of the cause."""
    document: str
    """The bytes of the document as hex. Of what the automaton decided alone: those up to the token with which
    no document goes on, and with it."""
    prefix: int
    """How many tokens precede the one on which the arms disagreed."""
    token: str
    """The bytes of that token as hex; empty for end-of-sequence, and for a document that an arm or the suite
    brought whole."""
    other: str
    """An arm that agrees with the validators; empty if none does."""
    refused_at: int | None
    """The canonical token of the document that an over-constrained arm refuses."""
    judge: bool | None
    """What the first validator says of the document; null where it has no verdict, which is so only of what
    the automaton decided alone."""
    second: bool | None
    formats: bool
    """Were formats assertions?"""
    decided_by: DecidedBy = "documents"
    count: int = 1
    """How many documents of the case showed the same; this is the shortest."""

    def to_json(self) -> dict[str, Any]:
        """Returns the witness as the object in a line of `witnesses.jsonl`, with the document as text for
        people."""
        return {**asdict(self), "text": bytes.fromhex(self.document).decode("utf-8", "backslashreplace")}


@dataclass
class Summary:
    """Counts over one adjudication. Every number of cases counts a case once for each vocabulary."""

    cases: int = 0
    """The number of cases that at least one arm compiled again."""
    vocabularies: int = 1
    """The number of the run's vocabularies."""
    left_out: list[str] = field(default_factory=list)
    """Which arm was not asked with which vocabulary because it did not load, and why, in one line each."""
    positions: int = 0
    """The number of positions at which at least two arms were compared."""
    decided: Counter[Decided] = field(default_factory=Counter)
    """How many disputes were decided by documents, by the automaton or by both, and how many are open."""
    freedoms: Counter[str] = field(default_factory=Counter)
    """How often each arm refuses what its own layout does not have, a disputed token or a whole document;
    they blame nobody."""
    no_reference: Counter[str] = field(default_factory=Counter)
    """The number of cases without an automaton, by the reason."""
    contradicted: int = 0
    """The number of cases in which both validators contradict our automaton, which is a failure of ours; they
    blame nobody."""
    tokens: int = 0
    """The number of disputes: tokens on which arms disagreed, of which a few are taken at each position."""
    documents: int = 0
    """The number of documents that were put to the validators."""
    unfinished: int = 0
    """The number of walks that came to no end, from such a token or alone."""
    dead_ends: Counter[str] = field(default_factory=Counter)
    """How many of these walks of each arm came to a place where nothing (or nothing but whitespace) is
    allowed and the document may not end."""
    unjudged: int = 0
    """How many of them have no verdict of both validators."""
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
        """Counts the case of a witness against the arm that it blames, if it blames one."""
        if witness.arm:
            self.blamed[witness.arm, witness.kind, witness.cause, witness.documented] += 1

    def text(self) -> str:
        """Returns the summary as text for people."""
        lines = [
            f"{counted(self.cases, 'case')}, {counted(self.positions, 'position')} compared, "
            f"{counted(self.tokens, 'disputed token')}, {counted(self.documents, 'document')} put to the "
            "validators",
            *(
                [f"every case counts once for each of {self.vocabularies} vocabularies"]
                * (self.vocabularies > 1)
            ),
            *(f"left out: {arm}" for arm in self.left_out),
            f"decided by the automaton and a document: {self.decided['both']}, by the automaton alone: "
            f"{self.decided['automaton']}, by documents alone: {self.decided['documents']}; open: "
            f"{self.decided['open']}",
            *(
                [f"failure of ours: in {counted(self.contradicted, 'case')} {CONTRADICTED}"]
                * (self.contradicted > 0)
            ),
            *(
                f"no automaton in {counted(count, 'case')}: {why}"
                for why, count in self.no_reference.most_common()
            ),
            *(
                f"{arm}: {counted(count, 'refusal')} of what its own layout lacks"
                for arm, count in sorted(self.freedoms.items())
            ),
            f"not counted against any backend: {counted(self.unfinished, 'walk')} unfinished, "
            f"{counted(self.unjudged, 'document')} without a verdict of both validators, "
            f"{self.formats_decide} decided by "
            f"formats alone, {self.tokenization_only} refused in one tokenization only; validators disagree "
            f"in {counted(self.disagreements, 'case')}",
            *(
                f"{arm}: {counted(count, 'walk')} into a dead end"
                for arm, count in sorted(self.dead_ends.items())
                if count
            ),
            *(f"{arm}: lost in {counted(count, 'case')}" for arm, count in sorted(self.lost.items())),
        ]
        for (arm, kind, cause, documented), count in sorted(
            self.blamed.items(), key=lambda entry: (entry[0][:2], -entry[1], entry[0])
        ):
            lines.append(
                f"{arm:30} {kind:18} {counted(count, 'case'):>11}  {cause}"
                f"{' (documented)' if documented else ''}"
            )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as one JSON object."""
        who = ("arm", "kind", "cause", "documented")
        blamed = [
            dict(zip(who, key, strict=True)) | {"cases": count} for key, count in sorted(self.blamed.items())
        ]
        return {**vars(self), "blamed": blamed}
