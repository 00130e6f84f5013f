"""Seeded random walks under the backend's own mask: they must end, and what they wrote must be in the
grammar's language.

A walk leans towards closing, more with every token, because a mask that keeps a promise only at the end of a
document (a required property, a minimum of items) shows its fault nowhere else. Strings, digits and
whitespace may be unbounded, so a walk that is not done after LAST tokens says nothing; one that is offered
nothing but whitespace for TRAP tokens does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.backend.grammar import GrammarObject
from harness.backend.vocabulary import Vocabulary
from harness.checks.documents import documents_of_case
from harness.checks.looking import first_bytes
from harness.checks.readings import reading_of
from harness.checks.subject import NotApplicable, Subject
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.fewest_tokens import any_text, fewest_tokens
from harness.oracle.judge import Unjudgeable, is_json
from harness.oracle.repeated_names import has_repeated_a_name, may_repeat_a_name
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.walk.watched import collecting

CATEGORY = "documents"

WALKS = 20
SOFT = (0, 4, 16, 64)
"""After so many tokens a walk only closes; the walks of a case take them by turns."""
LAST = 300
TRAP = 100
EXCERPT = 160
"""Characters of a walk's text that a finding quotes."""
LONGEST_TOKEN = 7  # longer ones rank as if they were no longer

WHITESPACE = b" \t\n\r"

End = Literal["ended", "unended", "dead_end", "trapped", "refused"]
"""`unended`: not done after LAST tokens. `refused`: a token that the mask allows was not accepted."""


@dataclass(frozen=True)
class Walk:
    """The tokens that a walk added (end-of-sequence only where it was refused), their bytes, and how it
    ended."""

    tokens: tuple[int, ...]
    text: bytes
    end: End


def check_walks_end_and_validate(subject: Subject) -> Iterator[Finding]:
    """A walk comes to an end, and what it wrote is valid: for JSON Schema by the judge, else by the reference
    automaton."""
    faults: list[tuple[int, Finding]] = []
    with collecting() as late:
        for number in range(WALKS if subject.effort is None else subject.effort):
            source = subject.random(f"walk {number}")
            walk = lean_walk(subject, subject.compiled.start(), source, SOFT[number % len(SOFT)])
            if (fault := _fault(subject, walk)) is not None:
                cause, text = fault
                finding = Finding(
                    position=len(walk.tokens),
                    text=f"{text}: {_excerpt(walk.text)}",
                    cause=cause,
                    examples=(walk.text.hex(),),
                    walk=walk.tokens,
                )
                faults.append((len(walk.text), finding))
    yield from (finding for _, finding in sorted(faults, key=lambda fault: fault[0]))
    late.again()


def _fault(subject: Subject, walk: Walk) -> tuple[str, str] | None:
    """Returns the cause and a sentence; None where there is none, or nobody knows."""
    match walk.end:
        case "dead_end" | "trapped" if not _can_be_finished(subject, walk):
            return None
        case "dead_end":
            return "cannot_end", "no token is allowed here, and the output may not end"
        case "trapped":
            return "does_not_end", f"nothing but whitespace was allowed for {TRAP} tokens"
        case "refused":
            return "refused_own_token", f"token {walk.tokens[-1]} is allowed by the mask and not accepted"
        case "unended":
            return None
    if subject.case.grammar.dialect == "json_schema":
        return _json_fault(subject, walk.text)
    if subject.case.grammar.dialect == "structural_tag":
        return _tag_fault(subject, walk)
    try:
        accepted = subject.language.accepts(walk.text)
    except (NotApplicable, NoOracle):
        return None
    if accepted:
        return None
    cause = reading_of(subject, lambda other: other.accepts(walk.text))
    return cause or "invalid", "the walk ended, and its text is not in the language"


def _can_be_finished(subject: Subject, walk: Walk) -> bool:
    """Returns whether the vocabulary can spell an end of what the walk has begun, so that it is the backend's
    fault if there is none; False where nobody knows.

    No right backend ends by writing a name once more in an object, so such an end counts only where the walk
    itself has repeated a name. In a structural tag that is seen only if the name is listed. Where no output
    begins like the walk, it is the backend that led there.
    """
    ids = subject.vocabulary.ids_by_bytes
    if all(bytes([byte]) in ids for byte in range(256)):
        return True

    def is_new(rest: bytes) -> bool:
        return not may_repeat_a_name(subject.case.grammar.dialect, walk.text + rest)

    try:
        for repeats_names in (False, True):
            for outputs in _outputs(subject, repeats_names):
                state = subject.state_behind(outputs, walk.tokens)
                if state != DEAD:
                    repeated = repeats_names or _repeats_a_name(subject, walk)
                    is_output = any_text if repeated else is_new
                    fewest = fewest_tokens(outputs, state, subject.trie, is_output=is_output)
                    return fewest is not None and fewest.most is not None
    except (NotApplicable, NoOracle):
        return False
    return True


def _repeats_a_name(subject: Subject, walk: Walk) -> bool:
    """Returns whether the text of a walk that began like an output has a name twice in one object; False for
    structural tags, whose text is not all JSON."""
    return subject.case.grammar.dialect == "json_schema" and has_repeated_a_name(walk.text)


def _outputs(subject: Subject, repeats_names: bool) -> Iterator[Automaton[Any]]:
    """Yields the automaton of the case's outputs: that of the layout that the backend declares, if it does,
    and that of every spelling. Raises NotApplicable where there is none."""
    if subject.case.grammar.dialect not in ("json_schema", "structural_tag"):
        yield subject.language
        return
    for layout in dict.fromkeys((subject.layout, None)):
        yield documents_of_case(
            subject.case, repeats_names=repeats_names, layout=layout, vocabulary=subject.vocabulary
        )


def _json_fault(subject: Subject, text: bytes) -> tuple[str, str] | None:
    try:
        if not is_json(text):
            return "no_json", "the walk ended, and its text is no JSON"
    except (Unjudgeable, RecursionError):
        return None
    return (
        ("invalid", "the walk ended, and its text violates the schema")
        if subject.judged(text) is False
        else None
    )


def _tag_fault(subject: Subject, walk: Walk) -> tuple[str, str] | None:
    """Returns the cause and a sentence. A name that stands twice in one object is no fault here: JSON Schema
    does not say what it means."""
    try:
        documents = documents_of_case(subject.case, repeats_names=True, vocabulary=subject.vocabulary)
        if documents.accepting(subject.state_behind(documents, walk.tokens)):
            return None
    except (NotApplicable, NoOracle):
        return None
    try:
        walk.text.decode()
    except UnicodeDecodeError:
        return "invalid_utf8", "the walk ended, and its text is no UTF-8"
    return "invalid", "the walk ended, and its text is no output of the structural tag"


def _excerpt(text: bytes) -> str:
    shown = text.decode("utf-8", "backslashreplace")
    return shown if len(shown) <= EXCERPT else f"{shown[:EXCERPT]}... ({len(text)} bytes)"


def lean_walk(
    subject: Subject, grammar_object: GrammarObject, source: random.Random, soft: int, text: bytes = b""
) -> Walk:
    """Walks on from where the object stands, after `text`; from `soft` tokens on nearly always with a token
    that closes soonest. Tokens without text are taken only where tokens are meant by their ids."""
    vocabulary = subject.vocabulary
    leaning = leaning_of(vocabulary)
    is_json_text = subject.case.grammar.dialect == "json_schema"
    inside = InString()
    inside.read(text)
    may_come = np.ones(vocabulary.size, dtype=np.bool_) if subject.is_about_tokens else leaning.has_text
    tokens: list[int] = []
    out = bytearray()
    blank = 0  # for how many tokens there was only whitespace

    def done(end: End) -> Walk:
        return Walk(tuple(tokens), bytes(out), end)

    while len(tokens) < LAST:
        mask = subject.allowed(grammar_object)
        ends = [end for end in vocabulary.eos_tokens if mask[end]]
        mask[ends] = False
        ids = np.flatnonzero(mask & may_come)
        may_end = bool(ends)
        if may_end and (not len(ids) or len(tokens) >= soft or source.random() < 0.3):
            end = ends[len(tokens) % len(ends)]  # now one of its ids, now another
            if grammar_object.accept_token(end):
                return done("ended")
            tokens.append(end)
            return done("refused")
        if not len(ids):
            return done("ended" if grammar_object.is_accepting() else "dead_end")
        blank = 0 if inside.string or may_end or not leaning.blank[ids].all() else blank + 1
        if is_json_text and blank == TRAP:
            return done("trapped")
        ranks = (leaning.inside if inside.string else leaning.outside) if is_json_text else leaning.plain
        # Never quite 1: what closes soonest may lead round in a circle.
        token = _choose(source, ids, leaning, ranks, min(0.9, (len(tokens) + 1) / (soft + 1)))
        tokens.append(token)
        if not grammar_object.accept_token(token):
            return done("refused")
        out += vocabulary.tokens[token]
        inside.read(vocabulary.tokens[token])
    return done("unended")


class InString:
    """Is the end of a JSON text inside of a string?"""

    def __init__(self) -> None:
        self.string = False
        self._escaped = False

    def read(self, text: bytes) -> None:
        for byte in text:
            if self._escaped:
                self._escaped = False
            elif self.string and byte == 0x5C:
                self._escaped = True
            elif byte == 0x22:
                self.string = not self.string


LETTERS = bytes(byte for byte in range(128) if chr(byte).isalnum() and not chr(byte).isdigit())
DIGITS = b"0123456789"
HIGH = bytes(range(128, 256))
"""The bytes of characters beyond ASCII; one that has begun must be completed."""
KINDS = (b"}]", b'"', b")>'", b":,;", DIGITS, b"-+", LETTERS, b"[{", b"(<", WHITESPACE, HIGH)
"""Kinds of first bytes; a choice is between these before it is between bytes, so that `null` is as likely as
some number."""
OTHERS = bytes(byte for byte in range(256) if all(byte not in kind for kind in KINDS))

INSIDE = (b'"', LETTERS + DIGITS, OTHERS.replace(b"\\", b"") + b" }]:,;-+[{()<>'", HIGH)
OUTSIDE = (b"}]", b":,", b'"-.eE+' + DIGITS + LETTERS, b"[{", WHITESPACE)
PLAIN = (b")]}\"'>", b";,:", LETTERS + DIGITS, OTHERS + b"-+[{(< ", HIGH)
"""First bytes of what closes soonest, then next, and so on: inside and outside of strings of JSON, and in any
other text."""


@dataclass(frozen=True)
class _Leaning:
    """What a walk asks of each token: arrays by id."""

    has_text: TokenSet
    blank: TokenSet
    """Whether the token is whitespace only."""
    first: NDArray[np.uint8]
    """The token's first byte."""
    kind: NDArray[np.uint8]
    """The kind of the first byte, as a place in KINDS."""
    inside: NDArray[np.int16]
    """How late the token closes: a low rank is taken first."""
    outside: NDArray[np.int16]
    plain: NDArray[np.int16]


@lru_cache(maxsize=4)
def leaning_of(vocabulary: Vocabulary) -> _Leaning:
    texts = vocabulary.tokens
    has_text = first_bytes(vocabulary) >= 0
    blank = np.array([not text.strip(WHITESPACE) for text in texts], dtype=np.bool_)
    first = np.array([text[0] if text else 0 for text in texts], dtype=np.uint8)
    lengths = np.array([min(len(text), LONGEST_TOKEN) for text in texts], dtype=np.int16)

    def ranks(classes: tuple[bytes, ...]) -> NDArray[np.int16]:
        """Returns the rank of each token: by the class of its first byte, then by length."""
        by_class: NDArray[np.int16] = _class_of(classes)[first] * (LONGEST_TOKEN + 1) + lengths
        return by_class

    kind = _class_of(KINDS)[first].astype(np.uint8)
    return _Leaning(
        has_text, blank, first, kind, inside=ranks(INSIDE), outside=ranks(OUTSIDE), plain=ranks(PLAIN)
    )


def _class_of(classes: tuple[bytes, ...]) -> NDArray[np.int16]:
    """Returns the class index of each byte; bytes of no class share one extra class."""
    of_byte = np.full(256, len(classes), dtype=np.int16)
    for number, members in enumerate(classes):
        of_byte[np.frombuffer(members, dtype=np.uint8)] = number
    return of_byte


def _choose(
    source: random.Random, ids: NDArray[np.intp], leaning: _Leaning, ranks: NDArray[np.int16], lean: float
) -> int:
    """Returns one of the ids: with the probability `lean` one of those that close soonest, else any; in most
    cases each kind of them is as likely."""
    if source.random() < lean:
        chosen_ranks = ranks[ids]
        ids = ids[chosen_ranks == chosen_ranks.min()]
    if source.random() < 0.7:
        ids = _any_group(source, ids, leaning.kind[ids])
        ids = _any_group(source, ids, leaning.first[ids])
    return int(ids[source.randrange(len(ids))])


def _any_group(source: random.Random, ids: NDArray[np.intp], groups: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Returns the ids of one group; each group is as likely, however many ids are in it."""
    present = np.flatnonzero(np.bincount(groups))
    chosen: NDArray[np.intp] = ids[groups == present[source.randrange(len(present))]]
    return chosen
