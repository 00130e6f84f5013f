"""Adjudicates one case: where the masks of its arms differ, a document is finished from the token in
question, judged and replayed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harness.backend.grammar import are_documented
from harness.backend.process.child import Answer
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service, ask_all
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case
from harness.checks.subject import LONGEST_WALK
from harness.diagnose.adjudicate.causes import (
    ESCAPED_NAMES,
    ESCAPES,
    Experiment,
    experiments,
    names_alone,
    place,
)
from harness.diagnose.adjudicate.disputes import Dispute, some_disputes, some_positions
from harness.diagnose.adjudicate.verdicts import DocumentVerdict, Validators
from harness.diagnose.adjudicate.witness import Kind, Summary, Witness
from harness.oracle.trie import TokenSet

INSTANCES = 6
"""Most instances of a case that are looked at; valid ones come first."""
ALONE = (16, 2, 48)
"""Each arm writes one document by itself for each of these: the number of tokens after which the walk begins
to close."""
FINISHING = (0, 8, 24)
"""A walk from a disputed token is tried once for each of these numbers of tokens, after which it begins to
close."""
FOLLOW_UP_LIMIT = 4
"""After this many tokenization-only refusals by the same arms, only every n-th is followed up, with the same
n."""
MOST_BYTES = 20_000
"""Most bytes of a document; longer ones are left out."""
RESPELLED = 200
"""Most spellings that one arm is asked about in one case; what it refuses after that only repeats what is
known."""


@dataclass(frozen=True)
class Settings:
    """How much is looked at in one case."""

    positions: int | None = 8
    """The number of positions of a text at which masks are compared; None means all."""
    followed: int = 24
    """The number of disputed tokens of a case that are followed up."""
    tries: int = 3
    """The number of documents that are finished from one disputed token."""
    timeout_s: float = 10.0
    """The seconds that one answer of an arm or a validator may take."""
    compile_s: float = 10.0
    """The seconds that a compile may take; an adjudication allows at least what its run allowed."""
    formats: bool = False
    """Whether formats are assertions."""


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


@dataclass(frozen=True)
class Blame:
    """What a document shows to be wrong, and with which arm."""

    arm: str
    """The arm's name; empty where the validators disagree and no arm is blamed."""
    kind: Kind
    cause: str
    other: str = ""
    """An arm that agrees with the validators; empty if none does."""
    refused_at: int | None = None
    """The index of the canonical token that the arm refuses; None if it refuses none."""


@dataclass(eq=False)
class Trial:
    """The state of one case's adjudication; `run` returns the witnesses."""

    case: Case
    suite: str
    offset: int
    """Where the case begins in the run's `cases.jsonl`."""
    vocabulary: Vocabulary
    arms: dict[str, Service]
    """The services of the arms by name; an arm that is lost leaves the case."""
    versions: Mapping[str, str]
    validators: Validators
    settings: Settings
    summary: Summary
    witnesses: dict[tuple[str, Kind, str], Witness] = field(default_factory=dict)
    known: dict[bytes, Replayed] = field(default_factory=dict)
    respelled: Counter[str] = field(default_factory=Counter)
    found_valid: dict[bytes, bool] = field(default_factory=dict)

    def run(self) -> list[Witness]:
        """Compiles the case, judges its instances and what the arms write alone, then follows up the disputes
        along all of these.
        """
        for name, (answer, _) in self._ask(
            {"op": "compile", "offset": self.offset}, seconds=self.settings.compile_s
        ).items():
            if "declined" in answer:
                del self.arms[name]
        self.summary.cases += bool(self.arms)
        instances = sorted(self.case.instances, key=lambda instance: not instance.valid)
        texts = [instance.content for instance in instances if len(instance.content) <= MOST_BYTES]
        texts = texts[:INSTANCES]
        for text in texts:
            self._consider(text, Origin())
        for name in list(self.arms):
            for soft in ALONE:
                if (document := self._complete(name, [], "alone", soft)) is not None:
                    self._consider(document, Origin(by=name))
                    texts.append(document)
        disputes = [dispute for text in dict.fromkeys(texts) for dispute in self._disputes(text)]
        self._random("disputes").shuffle(disputes)
        self._follow_up(disputes)
        return sorted(self.witnesses.values(), key=lambda witness: (witness.arm, witness.kind, witness.cause))

    def _random(self, purpose: str) -> random.Random:
        return random.Random(self._seed(purpose))

    def _seed(self, purpose: str) -> str:
        return f"adjudicate {self.case.id} {self.vocabulary.name} {purpose}"

    # Questions to the arms

    def _ask(
        self,
        message: dict[str, Any],
        blob: bytes = b"",
        arms: Sequence[str] | None = None,
        seconds: float | None = None,
    ) -> dict[str, Answer]:
        """Returns the answers of the arms (by default all); those that give none leave the case."""
        asked = {
            name: self.arms[name] for name in (list(self.arms) if arms is None else arms) if name in self.arms
        }
        answers: dict[str, Answer] = {}
        for name, answer in ask_all(asked, message, blob, seconds=seconds or self.settings.timeout_s).items():
            if isinstance(answer, Lost):
                del self.arms[name]
                self.summary.lose(name, f"{self.case.name}: {name} in {message['op']}: {answer}")
            else:
                answers[name] = answer
        return answers

    def _complete(self, name: str, tokens: list[int], purpose: str, soft: int) -> bytes | None:
        """Returns a document that the arm makes of the tokens, if its walk comes to an end."""
        message = {"op": "complete", "tokens": tokens, "seed": self._seed(f"{purpose} {soft}"), "soft": soft}
        for answer, document in self._ask(message, arms=[name]).values():
            if answer["end"] == "ended" and len(document) <= MOST_BYTES:
                return document
            self.summary.unfinished += 1
            self.summary.dead_ends[name] += answer["end"] in ("dead_end", "trapped")
        return None

    # Disputes

    def _disputes(self, text: bytes) -> list[tuple[list[int], Dispute]]:
        """Compares the masks at positions along a text that was considered; returns what the arms do not
        agree on, each with the tokens before it."""
        tokens = self.vocabulary.encode(text)[:LONGEST_WALK]
        always = [min(position, len(tokens)) for position in self.known[text].refused_at.values()]
        positions = some_positions(
            self._random(f"positions {tokens}"), len(tokens), self.settings.positions, always
        )
        masks: dict[int, dict[str, TokenSet]] = {}
        for name, (answer, blob) in self._ask(
            {"op": "masks", "tokens": tokens, "positions": positions}
        ).items():
            packed = np.frombuffer(blob, dtype=np.uint8).reshape(answer["reached"], -1)
            for position, row in zip(positions, packed, strict=False):
                masks.setdefault(position, {})[name] = np.unpackbits(row)[: self.vocabulary.size].view(
                    np.bool_
                )
        disputes: list[tuple[list[int], Dispute]] = []
        for position, by_arm in masks.items():
            if len(by_arm) > 1:
                self.summary.positions += 1
                following = tokens[position] if position < len(tokens) else None
                source = self._random(f"tokens {tokens[:position]}")
                disputes += [
                    (tokens[:position], dispute)
                    for dispute in some_disputes(source, self.vocabulary, by_arm, following)
                ]
        return disputes

    def _follow_up(self, disputes: Sequence[tuple[list[int], Dispute]]) -> None:
        """Follows up as many disputes as the settings allow; fewer of those that are about tokenization
        only."""
        followed = 0
        refusals: Counter[frozenset[str]] = Counter()
        passed_over: Counter[frozenset[str]] = Counter()
        for prefix, dispute in disputes:
            if followed == self.settings.followed:
                break
            if refusals[dispute.forbidding] >= FOLLOW_UP_LIMIT:
                passed_over[dispute.forbidding] += 1
                if passed_over[dispute.forbidding] % FOLLOW_UP_LIMIT:
                    continue
            followed += 1
            self.summary.tokens += 1
            if self._is_about_tokenization(prefix, dispute):
                self.summary.tokenization_only += 1
                refusals[dispute.forbidding] += 1

    def _is_about_tokenization(self, prefix: list[int], dispute: Dispute) -> bool:
        """Finishes documents from the token, until a valid one shows that it is right to allow it.

        Returns whether that document is accepted, in its canonical tokens, by all arms that forbid the
        token.
        """
        if dispute.token == self.vocabulary.eos_token:
            self._consider(self.vocabulary.decode(prefix), Origin(len(prefix), b"", min(dispute.allowing)))
            return False
        for number in range(self.settings.tries):
            able = sorted(dispute.allowing & self.arms.keys())
            if not able:
                break
            by = able[number % len(able)]
            tokens = [*prefix, dispute.token]
            document = self._complete(by, tokens, f"{tokens} {number}", FINISHING[number % len(FINISHING)])
            if document is None:
                continue
            replayed = self._consider(
                document, Origin(len(prefix), self.vocabulary.tokens[dispute.token], by)
            )
            if replayed.valid:
                return not replayed.refused_at.keys() & dispute.forbidding
        return False

    # Documents

    def _consider(self, document: bytes, origin: Origin) -> Replayed:
        """Judges the document and replays it on all arms; keeps what that shows."""
        if document in self.known:
            return self.known[document]
        replays = {name: answer for name, (answer, _) in self._ask({"op": "replay"}, document).items()}
        refused_at = {
            name: answer["refused_at"] for name, answer in replays.items() if answer["refused_at"] is not None
        }
        refusing, accepting = refused_at.keys(), replays.keys() - refused_at.keys()
        verdict = self.validators.verdict(self.case, document)
        self.known[document] = Replayed(verdict.valid, refused_at)
        self.summary.judged(verdict.valid, verdict.formats_decide, verdict.disagree)
        if verdict.disagree:
            self._keep(document, origin, verdict, Blame("", "validators_disagree", verdict.keyword))
        elif verdict.valid is False:
            right = min(refusing - {origin.by}, default="")
            for name in sorted(accepting | ({origin.by} & self.arms.keys())):
                blame = Blame(name, "under_constrained", verdict.keyword, right)
                self._keep(document, origin, verdict, blame)
        elif verdict.valid:
            right = min(accepting, default="")
            for name in sorted(refusing - {origin.by}):
                if self.respelled[name] < RESPELLED:
                    cause = self._cause(name, document, replays[name]["bytes"])
                    blame = Blame(name, "over_constrained", cause, right, refused_at[name])
                    self._keep(document, origin, verdict, blame)
        return self.known[document]

    def _cause(self, name: str, document: bytes, accepted: int) -> str:
        """Returns what must be taken from the document for the arm to accept it; if nothing is known, where
        it is refused."""
        if self._accepts(name, document, by_byte=True):
            return "canonical_tokens"
        for experiment in experiments(self.case.grammar.text, document):
            succeeds = self._succeeds(name, experiment)
            if succeeds and experiment.cause:
                return self._narrowed(name, document, experiment.cause)
            if not succeeds and not experiment.cause:
                break
        return place(document, accepted)

    def _succeeds(self, name: str, experiment: Experiment) -> bool:
        """Does the arm accept the document without the cause, and refuse the bare ones with it?"""
        if not any(self._is_valid(text) and self._accepts(name, text) for text in experiment.without):
            return False
        bare = [text for text in experiment.bare if self._is_valid(text)]
        return not experiment.bare or (bool(bare) and not any(self._accepts(name, text) for text in bare))

    def _narrowed(self, name: str, document: bytes, cause: str) -> str:
        """Returns the cause, narrowed to escapes in names where escapes are refused there and nowhere
        else."""
        if ESCAPES in cause.split("+") and (respelled := names_alone(document)) is not None:
            in_names, in_values = respelled
            if (
                all(map(self._is_valid, respelled))
                and self._accepts(name, in_values)
                and not self._accepts(name, in_names)
            ):
                return "+".join(ESCAPED_NAMES if part == ESCAPES else part for part in cause.split("+"))
        return cause

    def _accepts(self, name: str, text: bytes, by_byte: bool = False) -> bool:
        self.respelled[name] += 1
        answers = self._ask({"op": "replay", "by_byte": by_byte}, text, arms=[name])
        return any(answer["refused_at"] is None for answer, _ in answers.values())

    def _is_valid(self, document: bytes) -> bool:
        """Do both validators call the document valid?

        Their answers are remembered, because each arm's experiments are on the same documents."""
        if document not in self.found_valid:
            self.found_valid[document] = self.validators.verdict(self.case, document).valid is True
        return self.found_valid[document]

    def _keep(self, document: bytes, origin: Origin, verdict: DocumentVerdict, blame: Blame) -> None:
        """Keeps the shortest document of each arm, kind and cause."""
        assert verdict.judge is not None and verdict.second is not None
        documented = self.arms[blame.arm].description["documented"] if blame.arm in self.arms else []
        witness = Witness(
            case_id=self.case.id,
            case=self.case.name,
            suite=self.suite,
            vocabulary=self.vocabulary.name,
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
        )
        known = self.witnesses.setdefault((blame.arm, blame.kind, blame.cause), witness)
        if known is not witness:
            shortest = min(known, witness, key=lambda witness: (len(witness.document), witness.document))
            self.witnesses[blame.arm, blame.kind, blame.cause] = replace(shortest, count=known.count + 1)
