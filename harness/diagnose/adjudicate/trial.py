"""Adjudicates one case: where the masks of its arms differ, the automaton of its documents decides; a
document with the token in question is judged and replayed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.backend.layout import COMPACT
from harness.backend.process.service import Service
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case
from harness.checks.subject import LONGEST_WALK
from harness.diagnose.adjudicate.arms import MOST_BYTES, Arms
from harness.diagnose.adjudicate.disputes import Dispute, some_disputes, some_positions
from harness.diagnose.adjudicate.evidence import Evidence, Origin
from harness.diagnose.adjudicate.reference import Answer, Reference
from harness.diagnose.adjudicate.verdicts import Validators
from harness.diagnose.adjudicate.witness import Decided, Summary, Witness
from harness.oracle.trie import TokenSet

INSTANCES = 6
"""Most instances of a case that are looked at: first those that the run decided wrongly, or in two ways, then
valid ones."""
ALONE = (16, 2, 48)
"""Each arm writes one document by itself for each of these: the number of tokens after which the walk begins
to close."""
FINISHING = (0, 8, 24)
"""A walk from a disputed token is tried once for each of these numbers of tokens, after which it begins to
close."""
FOLLOW_UP_LIMIT = 4
"""After this many tokenization-only refusals by the same arms, arms finish documents only for every n-th
dispute, with the same n."""


@dataclass(frozen=True)
class Settings:
    """How much is looked at in one case."""

    positions: int | None = 8
    """The number of positions of a text at which masks are compared; None means all."""
    tries: int = 3
    """The number of documents that are finished from one disputed token."""
    timeout_s: float = 10.0
    """The seconds that one answer of an arm or a validator may take."""
    compile_s: float = 10.0
    """The seconds that a compile may take; an adjudication allows at least what its run allowed."""
    formats: bool = False
    """Whether formats are assertions."""


FOLLOWED = 24
"""The number of disputed tokens of a case from which arms finish documents."""


@dataclass(eq=False)
class Trial:
    """The state of one case's adjudication; `run` returns the witnesses."""

    case: Case
    suite: str
    offset: int
    """Where the case begins in the run's `cases.jsonl`."""
    doubtful: frozenset[int]
    """The indices of the instances that the run decided wrongly, or in two ways."""
    vocabulary: Vocabulary
    services: dict[str, Service]
    """The services of the arms by name; an arm that is lost leaves the case."""
    versions: Mapping[str, str]
    validators: Validators
    settings: Settings
    summary: Summary
    arms: Arms = field(init=False)
    reference: Reference = field(init=False)
    evidence: Evidence = field(init=False)
    followed: int = 0
    """The number of disputes from which arms were asked to finish documents."""
    refusals: Counter[frozenset[str]] = field(default_factory=Counter)
    """The tokenization-only refusals, by the arms that refuse."""
    passed_over: Counter[frozenset[str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.arms = Arms(self.case.name, self.services, self.settings.timeout_s, self.summary)
        self.reference = Reference(self.case, self.validators.formats)
        self.evidence = Evidence(
            self.case,
            self.suite,
            self.vocabulary.name,
            self.arms,
            self.versions,
            self.validators,
            self.reference,
            self.summary,
        )

    def run(self) -> list[Witness]:
        """Compiles the case, judges its instances and what the arms write alone, then decides the disputes
        along all of these.
        """
        self.arms.compile(self.offset, self.settings.compile_s)
        self.summary.cases += bool(self.arms.names)
        ordered = sorted(
            enumerate(self.case.instances), key=lambda one: (one[0] not in self.doubtful, not one[1].valid)
        )
        instances = [instance for _, instance in ordered]
        texts = [instance.content for instance in instances if len(instance.content) <= MOST_BYTES]
        texts = texts[:INSTANCES]
        for text in texts:
            self.evidence.consider(text, Origin())
        for name in self.arms.names:
            for soft in ALONE:
                if (document := self._complete(name, [], "alone", soft)) is not None:
                    self.evidence.consider(document, Origin(by=name))
                    texts.append(document)
        disputes = [dispute for text in dict.fromkeys(texts) for dispute in self._disputes(text)]
        disputes = list(dict.fromkeys(disputes))
        self.summary.tokens += len(disputes)
        self._random("disputes").shuffle(disputes)
        decided = self._decide(disputes)
        if self.reference.contradicted:
            self.summary.contradicted += 1
            decided = ["open" if how == "automaton" else how for how in decided]
        elif self.reference.reason:
            self.summary.no_reference[self.reference.reason] += 1
        self.summary.decided.update(decided)
        witnesses = sorted(
            self.evidence.witnesses.values(), key=lambda witness: (witness.arm, witness.kind, witness.cause)
        )
        self.summary.disagreements += any(witness.kind == "validators_disagree" for witness in witnesses)
        return witnesses

    def _random(self, purpose: str) -> random.Random:
        return random.Random(self._seed(purpose))

    def _seed(self, purpose: str) -> str:
        return f"adjudicate {self.case.id} {self.vocabulary.name} {purpose}"

    def _complete(self, name: str, tokens: list[int], purpose: str, soft: int) -> bytes | None:
        """Returns a document that the arm makes of the tokens, if its walk comes to an end."""
        return self.arms.complete(name, tokens, self._seed(f"{purpose} {soft}"), soft)

    # Disputes

    def _disputes(self, text: bytes) -> list[Dispute]:
        """Compares the masks at positions along a text that was considered; returns what the arms do not
        agree on."""
        tokens = self.vocabulary.encode(text)[:LONGEST_WALK]
        refused_at = self.evidence.known[text].refused_at
        always = [min(position, len(tokens)) for position in refused_at.values()]
        positions = some_positions(
            self._random(f"positions {tokens}"), len(tokens), self.settings.positions, always
        )
        masks: dict[int, dict[str, TokenSet]] = {}
        for name, (answer, blob) in self.arms.ask(
            {"op": "masks", "tokens": tokens, "positions": positions}
        ).items():
            packed = np.frombuffer(blob, dtype=np.uint8).reshape(answer["reached"], -1)
            for position, row in zip(positions, packed, strict=False):
                masks.setdefault(position, {})[name] = np.unpackbits(row)[: self.vocabulary.size].view(
                    np.bool_
                )
        disputes: list[Dispute] = []
        for position, by_arm in masks.items():
            if len(by_arm) > 1:
                self.summary.positions += 1
                following = tokens[position] if position < len(tokens) else None
                source = self._random(f"tokens {tokens[:position]}")
                before = tuple(tokens[:position])
                disputes += some_disputes(source, self.vocabulary, by_arm, before, following)
        return disputes

    # Decisions

    def _decide(self, disputes: Sequence[Dispute]) -> list[Decided]:
        """Returns by what each dispute is decided; keeps the witnesses. All are first put to the automaton,
        so that what is looked for afterwards takes nothing from it."""
        answers = [self._with_token(dispute) for dispute in disputes]
        return [self._decided(dispute, answer) for dispute, answer in zip(disputes, answers, strict=True)]

    def _with_token(self, dispute: Dispute) -> Answer:
        """Does a document go on with the token, or end here if it is end-of-sequence?"""
        text = self.vocabulary.decode(dispute.before)
        if dispute.token == self.vocabulary.eos_token:
            return self.reference.is_document(text)
        return self.reference.goes_on(text + self.vocabulary.tokens[dispute.token])

    def _decided(self, dispute: Dispute, answer: Answer) -> Decided:
        if self.reference.reason:
            answer = "unknown"
        if answer == "formats":
            return "automaton"
        if answer == "no":
            return self._wrongly_allowed(dispute)
        if answer == "yes" and (decided := self._rightly_allowed(dispute)) is not None:
            return decided
        return "documents" if self._finished(dispute) else "open"

    def _wrongly_allowed(self, dispute: Dispute) -> Decided:
        """Accuses the arms that allow a token with which no document goes on."""
        text = self.vocabulary.decode(dispute.before)
        if (
            dispute.before and self.reference.goes_on(text) == "no"
        ):  # all that came as far are wrong, about an earlier token
            dispute = self._first_wrong(dispute)
            guilty = frozenset[str]()
        else:
            guilty = self._finished_wrongly(dispute)
            if self.reference.contradicted:  # by a document that was finished just now
                return "documents"
        unproven = dispute.allowing - guilty
        if not unproven:
            return "both"
        token = dispute.token
        before = self.vocabulary.decode(dispute.before)
        origin = Origin(len(dispute.before), self.vocabulary.tokens[token])
        cause = self.reference.cause(self.vocabulary, before, token)
        right = min(dispute.forbidding, default="")
        return "automaton" if self.evidence.accuse(unproven, before, origin, cause, right) else "open"

    def _first_wrong(self, dispute: Dispute) -> Dispute:
        """Returns the token behind which no document goes on any more, which all arms of the dispute allow:
        they have come beyond it."""
        before = dispute.before
        end = next(
            (
                end
                for end in range(1, len(before))
                if self.reference.goes_on(self.vocabulary.decode(before[:end])) == "no"
            ),
            len(before),
        )
        return Dispute(before[: end - 1], before[end - 1], dispute.allowing | dispute.forbidding, frozenset())

    def _finished_wrongly(self, dispute: Dispute) -> frozenset[str]:
        """Returns the arms that an invalid document, finished from the token, shows to be wrong."""
        if not self._is_followed(dispute):
            return frozenset()
        guilty: set[str] = set()
        for document, by in self._documents(dispute):
            guilty |= self.evidence.consider(document, self._origin(dispute, by)).guilty
            if guilty >= dispute.allowing:
                break
        return frozenset(guilty)

    def _rightly_allowed(self, dispute: Dispute) -> Decided | None:
        """Decides which arms are wrong to forbid a token with which a document goes on: those whose own
        layout has such a document, of which the shortest is judged and replayed.

        Returns None where no document was found, or it has no verdict.
        """
        text = self.vocabulary.decode(dispute.before)
        if not (is_end := dispute.token == self.vocabulary.eos_token):
            text += self.vocabulary.tokens[dispute.token]
        refusing: set[str] = set()
        judged = False
        for name in sorted(dispute.forbidding & {*self.arms.names}):
            layout = self.arms.layouts[name]
            ask = self.reference.is_document if is_end else self.reference.goes_on
            answer = ask(text, layout)
            if answer == "no":
                self.summary.freedoms[name] += 1
            if answer in ("no", "formats"):
                continue
            tried = [layout] if layout is not None else [COMPACT, None]
            found = (text if is_end else self.reference.document(text, layout) for layout in tried)
            document = next(filter(None, found), None)
            if document is None or len(document) > MOST_BYTES:
                return None
            replayed = self.evidence.consider(document, self._origin(dispute))
            if replayed.valid is None:
                return None
            judged = True
            refusing |= replayed.refused_at.keys() & {name}
        if judged and not refusing:
            self.summary.tokenization_only += 1
        return "both" if judged else "automaton"

    def _origin(self, dispute: Dispute, by: str = "") -> Origin:
        return Origin(len(dispute.before), self.vocabulary.tokens[dispute.token], by)

    # Documents that arms finish

    def _is_followed(self, dispute: Dispute) -> bool:
        """May arms be asked to finish documents from one more dispute?"""
        if self.followed == FOLLOWED:
            return False
        if self.refusals[dispute.forbidding] >= FOLLOW_UP_LIMIT:
            self.passed_over[dispute.forbidding] += 1
            if self.passed_over[dispute.forbidding] % FOLLOW_UP_LIMIT:
                return False
        self.followed += 1
        return True

    def _documents(self, dispute: Dispute) -> Iterator[tuple[bytes, str]]:
        """Yields documents that go on with the token, each with the arm that finished it."""
        if dispute.token == self.vocabulary.eos_token:
            yield self.vocabulary.decode(dispute.before), min(dispute.allowing)
            return
        for number in range(self.settings.tries):
            able = sorted(dispute.allowing & {*self.arms.names})
            if not able:
                return
            by = able[number % len(able)]
            tokens = [*dispute.before, dispute.token]
            document = self._complete(by, tokens, f"{tokens} {number}", FINISHING[number % len(FINISHING)])
            if document is not None:
                yield document, by

    def _finished(self, dispute: Dispute) -> bool:
        """Finishes documents from the token, until a valid one shows that it is right to allow it. Returns
        whether any of them was judged."""
        if not self._is_followed(dispute):
            return False
        judged = False
        for document, by in self._documents(dispute):
            replayed = self.evidence.consider(document, self._origin(dispute, by))
            judged = judged or replayed.valid is not None
            if replayed.valid:
                if dispute.token != self.vocabulary.eos_token and not (
                    replayed.refused_at.keys() & dispute.forbidding
                ):
                    self.summary.tokenization_only += 1
                    self.refusals[dispute.forbidding] += 1
                break
        return judged
