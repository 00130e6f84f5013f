"""Outputs that never end: for how many tokens a mask lets white space, digits or one character of a string go
on, and whether grammar and layout let them.

A model that falls into such a run writes it until its tokens are used up, though each token is right. So a
run without end is no fault by itself: JSON has no bound on white space, nor a schema without `maxLength` on a
string. It is counted, and the table `endless` shows it. It is a fault where the backend says that its white
space is bounded, and where no document of the schema goes on so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from harness.backend.grammar import GrammarObject
from harness.backend.layout import EVERY_SPELLING, Layout
from harness.checks.documents import Outputs, documents_of_case
from harness.checks.subject import NotApplicable, Place, Subject
from harness.checks.walks import WHITESPACE, InString
from harness.oracle.automaton import DEAD, NoOracle
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = "documents"

Kind = Literal["white_space", "digits", "string"]
KINDS: tuple[Kind, ...] = ("white_space", "digits", "string")

RUNS_END = "runs_end_where_they_must"
"""The check's name, under which it counts, for each kind: places where a run can begin (`KIND_places`), and
those of these where it has no end within MOST_TOKENS (`KIND_endless`); the longest run that ended, in
characters (`KIND_longest`); and of the places where digits have no end, those where they have one if each
number is written in its shortest form (`digits_by_spelling`)."""

MOST_TOKENS = 200
"""A run that is not over after so many tokens of one character each has no end."""
MOST_PLACES = 8
"""Places of a case at which runs of one kind are measured, whatever the effort."""
MOST_LOOKED_AT = 40
"""Places of a case that are looked at for those where a run can begin."""

LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -"
"""The characters of which a run in a string may consist, in the order in which they are tried."""
ORDERS: dict[Kind, tuple[bytes, ...]] = {
    "white_space": tuple(bytes([first]) + WHITESPACE.replace(bytes([first]), b"") for first in b" \n\t\r"),
    "digits": (b"1234567890.", b"0123456789."),
    "string": (LETTERS,),
}
"""In which order the characters of a run are tried at each step; the longest run of these counts. In a string
the run consists of the first character that is allowed. Some backends bound blanks and line breaks apart
(llama.cpp), and a number may go on behind its point."""

NO_DOCUMENT, TOO_LONG, ENDLESS = "no_document", "longer_than_its_layout", "endless_beyond_its_layout"
WORDS: dict[Kind, str] = {"white_space": "white space", "digits": "digits", "string": "one character"}
WHY = {
    NO_DOCUMENT: " in all, although no document of the schema goes on so",
    TOO_LONG: " in all, which is longer than its declared layout allows",
    ENDLESS: " in all, which is longer than its declared layout allows",
}

NUMBERS_ONCE = replace(EVERY_SPELLING, exponents="none", integers_are_digits=True, has_last_zeros=False)
"""Every spelling, but of numbers the shortest without exponent."""


@dataclass(frozen=True)
class Run:
    """Tokens of one kind that a mask allows one after the other."""

    kind: Kind
    tokens: tuple[int, ...]
    is_endless: bool
    """It was not over after MOST_TOKENS."""


def check_runs_end_where_they_must(subject: Subject) -> Iterator[Finding]:
    """White space goes on no longer than the layout has it that the backend declares, and digits or one
    character of a string only as long as some document goes on so."""
    documents = _documents(subject, EVERY_SPELLING)
    if documents is None and subject.case.grammar.dialect != "json_schema":
        raise NotApplicable("whether it is inside of JSON, only a reference says, and there is none")
    for place, run in runs(subject, documents):
        beyond = None if documents is None else _beyond(subject, documents, place, run)
        _count(subject, place, run, is_in_schema=documents is not None and beyond is None)
        if beyond is not None:
            yield _finding(subject, place, run, beyond, NO_DOCUMENT)
        elif (beyond := _beyond_its_layout(subject, place, run)) is not None:
            yield _finding(subject, place, run, beyond, ENDLESS if run.is_endless else TOO_LONG)


def _beyond_its_layout(subject: Subject, place: Place, run: Run) -> int | None:
    """Returns the number of the first token of a run of white space that is longer than the declared layout
    has it; None where the layout has it all, or where that is not known."""
    layout = subject.layout
    bound = longest_white_space(layout)
    if layout is None or bound is None or run.kind != "white_space" or len(run.tokens) <= bound:
        return None
    if subject.case.grammar.dialect == "json_schema":
        return bound
    # Free text of a tag, and what stands between the members of an XML document, is no white space of JSON.
    outputs = _documents(subject, layout)
    return None if outputs is None else _beyond(subject, outputs, place, run)


def longest_white_space(layout: Layout | None) -> int | None:
    """Returns how many characters of white space may follow each other in a layout; None where it has no
    bound, or is not known."""
    if layout is None:
        return None
    return layout.longest_run if layout.separators is None else max(map(len, layout.separators))


def runs(subject: Subject, documents: Outputs | None) -> Iterator[tuple[Place, Run]]:
    """Yields the longest run of each kind at places of the case where one can begin: as many of each kind as
    the effort says, and MOST_PLACES at most. Raises NotApplicable for dialects other than those of JSON."""
    most = min(subject.effort or MOST_PLACES, MOST_PLACES)
    left = dict.fromkeys(KINDS, most)
    start, *others = subject.places("endless", MOST_LOOKED_AT)
    subject.random("endless").shuffle(others)
    for place in (start, *others):
        for kind in _kinds_at(subject, documents, place):
            if left[kind] and (run := longest_run(subject, place, kind)) is not None and run.tokens:
                left[kind] -= 1
                yield place, run
        if not any(left.values()):
            return


def _kinds_at(subject: Subject, documents: Outputs | None, place: Place) -> tuple[Kind, ...]:
    """Returns the kinds of runs that may begin at a place, by where in a JSON text it is. Outside of JSON, as
    in the free text of a structural tag, there are none."""
    if subject.case.grammar.dialect == "json_schema":
        inside = InString()
        inside.read(place.text)
        return ("string",) if inside.string else ("white_space", "digits")
    if documents is None or (state := subject.state_behind(documents, place.tokens)) == DEAD:
        return ()
    where = documents.place(state)
    if where in ("string", "name", "escape"):
        return ("string",)
    return ("white_space", "digits") if where in ("between", "number") else ()


def longest_run(subject: Subject, place: Place, kind: Kind) -> Run | None:
    """Returns the longest run of a kind behind a place; it is empty where none can begin, and None where the
    backend does not reach the place any more."""
    longest = None
    for order in ORDERS[kind]:
        grammar_object = subject.reach(place.tokens)
        if grammar_object is None:
            return None
        run = _run(subject, grammar_object, kind, order)
        if longest is None or len(run.tokens) > len(longest.tokens):
            longest = run
        if run.is_endless:
            break
    return longest


def _run(subject: Subject, grammar_object: GrammarObject, kind: Kind, order: bytes) -> Run:
    ids = subject.vocabulary.ids_by_bytes
    candidates = [ids[text] for byte in order if (text := bytes([byte])) in ids]
    tokens: list[int] = []
    while len(tokens) < MOST_TOKENS:
        mask = subject.allowed(grammar_object)
        token = next((token for token in candidates if mask[token]), None)
        if token is None or not grammar_object.accept_token(token):
            return Run(kind, tuple(tokens), False)
        tokens.append(token)
        if kind == "string":
            candidates = [token]
    return Run(kind, tuple(tokens), True)


def _count(subject: Subject, place: Place, run: Run, *, is_in_schema: bool) -> None:
    """Counts a run; `is_in_schema` says that some document is known to go on with all of it."""
    kind = run.kind
    subject.count(RUNS_END, **{f"{kind}_places": 1, f"{kind}_endless": int(run.is_endless)})
    if not run.is_endless:
        counts = subject.counted[RUNS_END]
        counts[f"{kind}_longest"] = max(counts.get(f"{kind}_longest", 0), len(run.tokens))
    elif kind == "digits" and is_in_schema:
        short = _documents(subject, NUMBERS_ONCE)
        if short is not None and _beyond(subject, short, place, run) is not None:
            subject.count(RUNS_END, digits_by_spelling=1)


def _documents(subject: Subject, layout: Layout) -> Outputs | None:
    """Returns the automaton of the case's documents in a layout; None where there is none. Raises
    NotApplicable for dialects other than those of JSON."""
    if subject.case.grammar.dialect not in ("json_schema", "structural_tag"):
        raise NotApplicable("only JSON has white space of which a backend decides how much there is")
    try:
        return documents_of_case(subject.case, layout=layout, vocabulary=subject.vocabulary)
    except NotApplicable:
        return None


def _beyond(subject: Subject, documents: Outputs, place: Place, run: Run) -> int | None:
    """Returns the number of the first token of the run with which no document goes on; None where one goes on
    with all of them, where none began like the place's text, or where the automaton becomes too large."""
    texts = subject.vocabulary.tokens
    try:
        state = subject.state_behind(documents, place.tokens)
        if state == DEAD:
            return None
        for number, token in enumerate(run.tokens):
            state = documents.after_token(state, token, texts[token])
            if state == DEAD:
                return number
    except NoOracle:
        pass
    return None


def _finding(subject: Subject, place: Place, run: Run, number: int, cause: str) -> Finding:
    """Returns a finding at the token of the run with that number, which should not be allowed."""
    before, token = run.tokens[:number], run.tokens[number]
    text = place.text + subject.vocabulary.decode(before)
    length = f"{'more than ' if run.is_endless else ''}{counted(len(run.tokens), 'character')}"
    return Finding(
        position=place.position + number,
        text=f"after {text[-60:]!r} it goes on with {WORDS[run.kind]}, for {length}{WHY[cause]}",
        cause=cause,
        instance=place.instance,
        under=int(cause == NO_DOCUMENT),
        examples=subject.hex_of([token]),
        walk=(*place.tokens, *before, token),
    )
