"""A document that is accepted is accepted in its other spellings too: what JSON calls the same value is the
same output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from harness.backend.contract.place import accepted
from harness.cases.spelled_json import read_document
from harness.cases.spellings import FAMILY, LAYOUTS, RAW_DELETE, layouts, respelled
from harness.checks.subject import NotApplicable, Subject
from harness.rows.row import Finding
from harness.walk.watched import collecting

CATEGORY = "spellings"

POLICY = True
"""A spelling that is refused is a choice of the backend: the value can be written in the one that is
accepted."""

DELETE = b"\x7f"


def check_spellings_are_accepted(subject: Subject) -> Iterator[Finding]:
    """Every spelling of a valid instance that the judge finds valid too, where the backend takes the instance
    in some layout.

    One finding for each spelling that is refused, at the shortest document. Layouts are compared with the one
    that is taken, all other spellings are written in it. With an effort, that many documents are tried.
    """
    if subject.case.grammar.dialect != "json_schema":
        raise NotApplicable("only JSON has spellings")
    refused: dict[str, list[Finding]] = {}
    tried: Counter[str] = Counter()
    with collecting() as late:
        for number, name, text in islice(_documents(subject), subject.effort):
            tried.update({name, *([RAW_DELETE] if DELETE in text else [])})
            if (finding := _refusal(subject, name, text, number)) is not None:
                refused.setdefault(finding.cause, []).append(finding)
    for cause, findings in refused.items():
        shortest = min(findings, key=lambda finding: len(finding.examples[0]))
        yield replace(shortest, text=f"{shortest.text} ({len(findings)} of {tried[cause]} documents)")
    late.again()
    if not tried:
        raise NotApplicable("no valid instance that is accepted in any layout")


def _documents(subject: Subject) -> Iterator[tuple[int, str, bytes]]:
    """Yields instance, spelling and text, in an order that mixes both."""
    wanted = [(number, name) for number in subject.valid() for name in FAMILY]
    subject.random("spellings").shuffle(wanted)
    texts: dict[int, dict[str, bytes]] = {}
    for number, name in wanted:
        if number not in texts:
            texts[number] = _texts(subject, subject.case.instances[number].content)
        text = texts[number].get(name)
        if text is not None and subject.judged(text):
            yield number, name, text


def _texts(subject: Subject, content: bytes) -> dict[str, bytes]:
    """Returns the spellings of a document, if there is a layout in which it is accepted, but for that
    layout."""
    try:
        value = read_document(content)
    except ValueError:
        return {}
    plain = layouts(value)
    taken = next((name for name in plain if not _refused(subject, plain[name])), None)
    if taken is None:
        return {}
    others = {name: text for name, text in plain.items() if text != plain[taken]}
    return others | respelled(value, LAYOUTS[taken])


def _refused(subject: Subject, text: bytes) -> tuple[int, ...]:
    """Returns the text's canonical tokens and end-of-sequence up to the first one that is refused; none if
    all are accepted."""
    spelled = subject.spell(text)
    if spelled is None:
        return ()
    tokens = (*spelled, subject.vocabulary.eos_token)
    count = accepted(subject.compiled.start(), tokens)
    return tokens[: count + 1] if count < len(tokens) else ()


def _refusal(subject: Subject, name: str, text: bytes, instance: int) -> Finding | None:
    tokens = _refused(subject, text)
    if not tokens:
        return None
    documented = subject.adapter.documented
    # A spelling that undoes escapes may bring in the character; what the same spelling without it is accepted
    # for is not the spelling's.
    cause = RAW_DELETE if DELETE in text and not _refused(subject, text.replace(DELETE, rb"\u007f")) else name
    return Finding(
        position=len(tokens) - 1,
        text=f"the spelling {name} of a value that is accepted otherwise is refused",
        cause=cause,
        documented=not {f"spelling:{cause}", FAMILY.get(cause, cause)}.isdisjoint(documented),
        instance=instance,
        examples=(text.hex(),),
        walk=tokens,
    )
