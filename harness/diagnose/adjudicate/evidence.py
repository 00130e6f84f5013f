"""Judges documents, replays them on the arms of a case, and keeps what that shows: the witnesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness.backend.grammar import are_documented
from harness.cases.case import Case
from harness.diagnose.adjudicate.arms import Arms
from harness.diagnose.adjudicate.reference import Reference
from harness.diagnose.adjudicate.refusal import Refusal
from harness.diagnose.adjudicate.verdicts import DocumentVerdict, Validators
from harness.diagnose.adjudicate.witness import DecidedBy, Kind, Summary, Witness

RESPELLED = 200
"""Most spellings that one arm is asked about in one case; what it refuses after that only repeats what is
known."""


@dataclass(frozen=True)
class Origin:
    """Where a document comes from: how many tokens precede the disputed one, that token's bytes, and the arm
    that wrote the rest."""

    prefix: int = 0
    token: bytes = b""
    by: str = ""


@dataclass(frozen=True)
class Replayed:
    """Is the document valid (None: nobody knows), and which arms refuse its canonical tokens, at
    which one?
    """

    valid: bool | None
    refused_at: Mapping[str, int]
    guilty: frozenset[str] = frozenset()
    """The arms that the document shows to be under-constrained."""


@dataclass(frozen=True)
class Blame:
    """What a document shows to be wrong, and with which arm."""

    arm: str
    """The arm's name; empty where the validators disagree, or contradict the automaton, and no arm is
    blamed."""
    kind: Kind
    cause: str
    decided_by: DecidedBy
    other: str = ""
    """An arm that agrees with the validators; empty if none does."""
    refused_at: int | None = None
    """The index of the canonical token that the arm refuses; None if it refuses none."""


@dataclass(eq=False)
class Evidence:
    """The documents of one case that were judged, and the witnesses among them."""

    case: Case
    suite: str
    vocabulary: str
    """The vocabulary's name."""
    arms: Arms
    versions: Mapping[str, str]
    validators: Validators
    reference: Reference
    summary: Summary
    witnesses: dict[tuple[str, Kind, str], Witness] = field(default_factory=dict)
    known: dict[bytes, Replayed] = field(default_factory=dict)
    respelled: Counter[str] = field(default_factory=Counter)
    found_valid: dict[bytes, bool] = field(default_factory=dict)

    def consider(self, document: bytes, origin: Origin) -> Replayed:
        """Judges the document and replays it on all arms; keeps what that shows."""
        if document in self.known:
            return self.known[document]
        replays = {name: answer for name, (answer, _) in self.arms.ask({"op": "replay"}, document).items()}
        refused_at = {
            name: answer["refused_at"] for name, answer in replays.items() if answer["refused_at"] is not None
        }
        refusing, accepting = refused_at.keys(), replays.keys() - refused_at.keys()
        verdict = self.validators.verdict(self.case, document)
        self.summary.judged(verdict.valid, verdict.formats_decide, verdict.disagree)
        decided_by = self._decided_by(document, verdict)
        valid, guilty = verdict.valid, frozenset[str]()
        if verdict.disagree:
            blame = Blame("", "validators_disagree", verdict.keyword, "documents")
            self._keep(document, origin, verdict, blame)
        elif decided_by is None:
            valid = None
            self._contradict(document, origin, verdict)
        elif valid is False:
            right = min(refusing - {origin.by}, default="")
            guilty = frozenset(accepting | ({origin.by} & {*self.arms.names}))
            for name in sorted(guilty):
                blame = Blame(name, "under_constrained", verdict.keyword, decided_by, right)
                self._keep(document, origin, verdict, blame)
        elif valid:
            right = min(accepting, default="")
            for name in sorted(refusing - {origin.by}):
                if self._is_free(name, document):
                    self.summary.freedoms[name] += 1
                elif self.respelled[name] < RESPELLED:
                    cause = self._cause(name, document, replays[name]["bytes"])
                    blame = Blame(name, "over_constrained", cause, decided_by, right, refused_at[name])
                    self._keep(document, origin, verdict, blame)
        self.known[document] = Replayed(valid, refused_at, guilty)
        return self.known[document]

    def accuse(self, names: frozenset[str], before: bytes, origin: Origin, cause: str, right: str) -> bool:
        """Keeps that these arms allow a token with which no document goes on; the witness is the text up to
        the token, or up to the end that they allow. Returns whether they are accused.

        Nobody is where a validator calls that text a valid document, be it only without formats: where both
        do, the automaton is wrong, and where one does, nobody knows.
        """
        text = before + origin.token
        verdict = self.validators.verdict(self.case, text)
        if verdict.valid:
            self._contradict(text, origin, verdict)
        elif verdict.disagree:
            blame = Blame("", "validators_disagree", verdict.keyword, "documents")
            self._keep(text, origin, verdict, blame)
        elif not (verdict.judge or verdict.formats_decide):
            for name in sorted(names):
                blame = Blame(name, "under_constrained", cause, "automaton", right)
                self._keep(text, origin, verdict, blame)
            return True
        return False

    def _decided_by(self, document: bytes, verdict: DocumentVerdict) -> DecidedBy | None:
        """Returns who says whether the document is valid; None where the validators contradict the
        automaton."""
        answer = self.reference.is_document(document)
        if verdict.valid is None or answer in ("unknown", "formats"):
            return "documents"
        return "both" if (answer == "yes") is verdict.valid else None

    def _contradict(self, document: bytes, origin: Origin, verdict: DocumentVerdict) -> None:
        """Keeps the document that shows our automaton to be wrong, and takes back what only it said."""
        self.reference.contradict()
        for key, witness in list(self.witnesses.items()):
            if witness.decided_by == "automaton":
                del self.witnesses[key]
        blame = Blame("", "automaton_contradicted", verdict.keyword, "documents")
        self._keep(document, origin, verdict, blame)

    def _is_free(self, name: str, document: bytes) -> bool:
        """Is the document one that the arm, by its own word, does not write?"""
        layout = self.arms.layouts[name]
        return layout is not None and self.reference.is_outside(document, layout)

    def _cause(self, name: str, document: bytes, accepted: int) -> str:
        """Returns why the arm refuses a valid document."""

        def accepts(text: bytes, by_byte: bool) -> bool:
            self.respelled[name] += 1
            return self.arms.accepts(name, text, by_byte)

        return Refusal(self.case.grammar.text, document, accepted, accepts, self._is_valid).cause()

    def _is_valid(self, document: bytes) -> bool:
        """Do both validators call the document valid?

        Their answers are remembered, because each arm's experiments are on the same documents."""
        if document not in self.found_valid:
            self.found_valid[document] = self.validators.verdict(self.case, document).valid is True
        return self.found_valid[document]

    def _keep(self, document: bytes, origin: Origin, verdict: DocumentVerdict, blame: Blame) -> None:
        """Keeps the shortest document of each arm, kind and cause; a whole document before the beginning of
        one."""
        documented = self.arms.documented.get(blame.arm, [])
        witness = Witness(
            case_id=self.case.id,
            case=self.case.name,
            suite=self.suite,
            vocabulary=self.vocabulary,
            arm=blame.arm,
            version=self.versions.get(blame.arm, ""),
            kind=blame.kind,
            cause=blame.cause,
            documented=blame.kind == "over_constrained" and are_documented(blame.cause, documented),
            document=document.hex(),
            prefix=origin.prefix,
            token=origin.token.hex(),
            other=blame.other,
            refused_at=blame.refused_at,
            judge=verdict.judge,
            second=verdict.second,
            formats=self.validators.formats,
            decided_by=blame.decided_by,
        )
        known = self.witnesses.setdefault((blame.arm, blame.kind, blame.cause), witness)
        if known is not witness:
            best = min(known, witness, key=_rank)
            self.witnesses[blame.arm, blame.kind, blame.cause] = replace(best, count=known.count + 1)


def _rank(witness: Witness) -> tuple[bool, int, str]:
    return witness.decided_by == "automaton", len(witness.document), witness.document
