"""One case before its arms: where their masks differ, a document is finished from the token in question, judged and replayed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harness.adjudicate.causes import place, simpler
from harness.adjudicate.disputes import Dispute, some_disputes, some_positions
from harness.adjudicate.verdicts import Validators, Verdict
from harness.adjudicate.witness import Kind, Summary, Witness
from harness.case import Case
from harness.checks.subject import LONGEST_WALK
from harness.oracle.trie import TokenSet
from harness.service.child import Answer
from harness.service.client import Lost, Service, ask_all
from harness.vocabulary import Vocabulary

INSTANCES = 6
"""Of a case, the valid ones first."""
ALONE = (16, 2, 48)
"""The documents that each arm writes by itself: after how many tokens the walk closes."""
FINISHING = (0, 8, 24)
"""The same for the walks from a disputed token, by try."""
TIRESOME = 4
"""After so many tokens that the same arms refused for the tokenization's sake alone, one of so many of these is followed up."""
MOST_BYTES = 20_000
"""Of a document; longer ones are left out."""
RESPELLED = 200
"""Spellings that one arm is asked about in one case; what it refuses after that only repeats what is known."""


@dataclass(frozen=True)
class Settings:
    """How much is looked at in one case."""

    positions: int | None
    """Of a text, at which masks are compared; None: all."""
    followed: int
    """Disputed tokens that are followed up."""
    tries: int
    """Documents that are finished from one disputed token."""
    timeout_s: float
    """For one answer of an arm."""
    compile_s: float


@dataclass(frozen=True)
class Origin:
    """Where a document comes from: how many tokens precede the disputed one, that token's bytes, and the arm that wrote the rest."""

    prefix: int = 0
    token: bytes = b""
    by: str = ""


@dataclass(frozen=True)
class Replayed:
    """Is the document valid (None: nobody knows), and which arms refuse its canonical tokens, at which one?"""

    valid: bool | None
    refused_at: Mapping[str, int]


@dataclass(eq=False)
class Trial:
    """The state of one case's adjudication; `run` returns the witnesses."""

    case: Case
    suite: str
    offset: int
    """Where the case begins in the run's `cases.jsonl`."""
    vocabulary: Vocabulary
    arms: dict[str, Service]
    """By name; one that is lost leaves the case."""
    versions: Mapping[str, str]
    validators: Validators
    settings: Settings
    summary: Summary
    witnesses: dict[tuple[str, Kind, str], Witness] = field(default_factory=dict)
    known: dict[bytes, Replayed] = field(default_factory=dict)
    respelled: Counter[str] = field(default_factory=Counter)

    def run(self) -> list[Witness]:
        """Compile, judge the case's instances and what the arms write alone, then dispute along all of these."""
        for name, (answer, _) in self._ask({"op": "compile", "offset": self.offset}, seconds=self.settings.compile_s).items():
            if "declined" in answer:
                del self.arms[name]
        self.summary.cases += bool(self.arms)
        instances = sorted(self.case.instances, key=lambda each: not each.valid)
        texts = [each.content for each in instances if len(each.content) <= MOST_BYTES][:INSTANCES]
        for text in texts:
            self._consider(text, Origin())
        for name in list(self.arms):
            for soft in ALONE:
                if (document := self._complete(name, [], "alone", soft)) is not None:
                    self._consider(document, Origin(by=name))
                    texts.append(document)
        disputes = [each for text in dict.fromkeys(texts) for each in self._disputes(text)]
        self._random("disputes").shuffle(disputes)
        self._follow_up(disputes)
        return sorted(self.witnesses.values(), key=lambda each: (each.arm, each.kind, each.cause))

    def _random(self, purpose: str) -> random.Random:
        return random.Random(self._seed(purpose))

    def _seed(self, purpose: str) -> str:
        return f"adjudicate {self.case.id} {self.vocabulary.name} {purpose}"

    # Questions to the arms

    def _ask(
        self, message: dict[str, Any], blob: bytes = b"", arms: Sequence[str] | None = None, seconds: float | None = None
    ) -> dict[str, Answer]:
        """The answers of the arms (by default all); those that give none leave the case."""
        asked = {name: self.arms[name] for name in (list(self.arms) if arms is None else arms) if name in self.arms}
        answers: dict[str, Answer] = {}
        for name, answer in ask_all(asked, message, blob, seconds=seconds or self.settings.timeout_s).items():
            if isinstance(answer, Lost):
                del self.arms[name]
                self.summary.lose(name, f"{self.case.name}: {name} in {message['op']}: {answer}")
            else:
                answers[name] = answer
        return answers

    def _complete(self, name: str, tokens: list[int], purpose: str, soft: int) -> bytes | None:
        """A document that the arm makes of the tokens, if its walk comes to an end."""
        message = {"op": "complete", "tokens": tokens, "seed": self._seed(f"{purpose} {soft}"), "soft": soft}
        for answer, document in self._ask(message, arms=[name]).values():
            if answer["end"] == "ended" and len(document) <= MOST_BYTES:
                return document
            self.summary.unfinished += 1
            self.summary.dead_ends[name] += answer["end"] in ("dead_end", "trapped")
        return None

    # Disputes

    def _disputes(self, text: bytes) -> list[tuple[list[int], Dispute]]:
        """Compare the masks at positions along a text that was considered: what the arms do not agree on, each after its prefix."""
        tokens = self.vocabulary.encode(text)[:LONGEST_WALK]
        always = [min(each, len(tokens)) for each in self.known[text].refused_at.values()]
        positions = some_positions(self._random(f"positions {tokens}"), len(tokens), self.settings.positions, always)
        masks: dict[int, dict[str, TokenSet]] = {}
        for name, (answer, blob) in self._ask({"op": "masks", "tokens": tokens, "positions": positions}).items():
            packed = np.frombuffer(blob, dtype=np.uint8).reshape(answer["reached"], -1)
            for position, row in zip(positions, packed, strict=False):
                masks.setdefault(position, {})[name] = np.unpackbits(row)[: self.vocabulary.size].view(np.bool_)
        found: list[tuple[list[int], Dispute]] = []
        for position, by_arm in masks.items():
            if len(by_arm) > 1:
                self.summary.positions += 1
                following = tokens[position] if position < len(tokens) else None
                source = self._random(f"tokens {tokens[:position]}")
                found += [(tokens[:position], each) for each in some_disputes(source, self.vocabulary, by_arm, following)]
        return found

    def _follow_up(self, disputes: Sequence[tuple[list[int], Dispute]]) -> None:
        """As many of them as the settings allow; fewer of those that are about tokenization only."""
        followed = 0
        tiresome: Counter[frozenset[str]] = Counter()
        passed_over: Counter[frozenset[str]] = Counter()
        for prefix, dispute in disputes:
            if followed == self.settings.followed:
                break
            if tiresome[dispute.forbidding] >= TIRESOME:
                passed_over[dispute.forbidding] += 1
                if passed_over[dispute.forbidding] % TIRESOME:
                    continue
            followed += 1
            self.summary.tokens += 1
            if self._is_about_tokenization(prefix, dispute):
                self.summary.tokenization_only += 1
                tiresome[dispute.forbidding] += 1

    def _is_about_tokenization(self, prefix: list[int], dispute: Dispute) -> bool:
        """Finish documents from the token, until a valid one shows that it is right to allow it. Is that one accepted by all that
        forbid the token, in its canonical tokens?"""
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
            replayed = self._consider(document, Origin(len(prefix), self.vocabulary.tokens[dispute.token], by))
            if replayed.valid:
                return not replayed.refused_at.keys() & dispute.forbidding
        return False

    # Documents

    def _consider(self, document: bytes, origin: Origin) -> Replayed:
        """Judge the document and replay it on all arms; keep what that shows."""
        if document in self.known:
            return self.known[document]
        replays = {name: answer for name, (answer, _) in self._ask({"op": "replay"}, document).items()}
        refused_at = {name: answer["refused_at"] for name, answer in replays.items() if answer["refused_at"] is not None}
        refusing, accepting = refused_at.keys(), replays.keys() - refused_at.keys()
        verdict = self.validators.verdict(self.case, self.offset, document)
        self.known[document] = Replayed(verdict.valid, refused_at)
        self.summary.judged(verdict.valid, verdict.formats_decide, verdict.disagree)
        if verdict.disagree:
            self._keep(document, origin, verdict, "", "validators_disagree", verdict.keyword)
        elif verdict.valid is False:
            right = min(refusing - {origin.by}, default="")
            for name in sorted(accepting | ({origin.by} & self.arms.keys())):
                self._keep(document, origin, verdict, name, "under_constrained", verdict.keyword, right)
        elif verdict.valid:
            right = min(accepting, default="")
            for name in sorted(refusing - {origin.by}):
                if self.respelled[name] < RESPELLED:
                    cause = self._cause(name, document, replays[name]["bytes"])
                    self._keep(document, origin, verdict, name, "over_constrained", cause, right, refused_at[name])
        return self.known[document]

    def _cause(self, name: str, document: bytes, accepted: int) -> str:
        """How the document must be told for the arm to accept it; if nothing helps, where it is refused."""
        if self._accepts(name, document, by_byte=True):
            return "canonical_tokens"
        for cause, texts in simpler(self.case.grammar.text, document):
            helps = any(self._accepts(name, text) for text in texts)
            if helps and cause:
                return cause
            if not helps and not cause:
                break
        return place(document, accepted)

    def _accepts(self, name: str, text: bytes, by_byte: bool = False) -> bool:
        self.respelled[name] += 1
        answers = self._ask({"op": "replay", "by_byte": by_byte}, text, arms=[name])
        return any(answer["refused_at"] is None for answer, _ in answers.values())

    def _keep(
        self,
        document: bytes,
        origin: Origin,
        verdict: Verdict,
        name: str,
        kind: Kind,
        cause: str,
        other: str = "",
        refused_at: int | None = None,
    ) -> None:
        """The shortest document of each arm, kind and cause."""
        assert verdict.judge is not None and verdict.second is not None
        documented = self.arms[name].said["documented"] if name in self.arms else []
        witness = Witness(
            case_id=self.case.id,
            case=self.case.name,
            suite=self.suite,
            vocabulary=self.vocabulary.name,
            arm=name,
            version=self.versions.get(name, ""),
            kind=kind,
            cause=cause,
            documented=kind == "over_constrained" and all(part in documented for part in cause.split("+")),
            document=document.hex(),
            prefix=origin.prefix,
            token=origin.token.hex(),
            other=other,
            refused_at=refused_at,
            judge=verdict.judge,
            second=verdict.second,
            formats=self.validators.formats,
        )
        known = self.witnesses.setdefault((name, kind, cause), witness)
        if known is not witness:
            shortest = min(known, witness, key=lambda each: (len(each.document), each.document))
            self.witnesses[name, kind, cause] = replace(shortest, count=known.count + 1)
