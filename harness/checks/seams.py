"""Stretches of an output at which going back, or beginning in the middle, is most likely to go wrong: the
text around a tag, a character in several tokens; elsewhere drawn ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from harness.backend.contract.place import accepted
from harness.checks.looking import few, place_on, walkable
from harness.checks.subject import NotApplicable, Place, Subject

MOST_WAYS = 3
"""Instances along which stretches are sought, where the effort is limited."""
TAG_FIELDS = ("triggers", "begin", "end", "separator")
"""The fields of a structural tag whose texts stand in every output as they are."""


@dataclass(frozen=True)
class Seam:
    """A stretch of the tokens of one output: `tokens[first:last]`."""

    instance: int
    tokens: tuple[int, ...]
    first: int
    last: int
    what: str

    def place(self, subject: Subject, position: int) -> Place:
        return place_on(subject, self.instance, self.tokens, position)


def seams(subject: Subject, purpose: str) -> list[Seam]:
    """Returns a seeded sample of stretches, some of each kind that the case has, each with one more token on
    both sides where there is one; all of them with the effort `all`. Raises NotApplicable if the backend
    accepts no token of an instance."""
    found: dict[tuple[str, bytes, bytes, int], Seam] = {}
    for number, tokens in _ways(subject):
        ends = list(accumulate((len(subject.vocabulary.tokens[token]) for token in tokens), initial=0))
        text = subject.vocabulary.decode(tokens)
        for what, start, end in _spans(subject, purpose, text):
            first = max(index for index, place in enumerate(ends) if place <= start)
            last = next(index for index, place in enumerate(ends) if place >= end)
            seam = Seam(number, tokens, max(0, first - 1), min(len(tokens), last + 1), what)
            found.setdefault((what, text[:start], text[start:end], last - first), seam)
    if not found:
        raise NotApplicable("the backend accepts no token of an instance")
    most, kinds = few(subject), dict.fromkeys(seam.what for seam in found.values())
    chosen: list[Seam] = []
    for kind in kinds:
        mine = [seam for seam in found.values() if seam.what == kind]
        subject.random(f"{purpose} {kind}").shuffle(mine)
        chosen += mine if most is None else mine[: max(1, most // 2)]
    return chosen


def _ways(subject: Subject) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields instances as the tokenizer writes them and one token a byte, as far as the backend takes
    them."""
    ids, most = subject.vocabulary.ids_by_bytes, walkable(subject)
    numbers = [number for number, path in enumerate(subject.paths) if path]
    numbers.sort(key=lambda number: subject.case.instances[number].valid is not True)
    for number in numbers if subject.effort is None else numbers[:MOST_WAYS]:
        path = subject.paths[number][:most]
        yield number, tuple(path)
        if subject.case.instances[number].tokens:
            continue
        single = [ids.get(bytes([byte])) for byte in subject.vocabulary.decode(path)[:most]]
        spelled = [token for token in single if token is not None]
        if spelled != path and len(spelled) == len(single):
            yield number, tuple(spelled[: accepted(subject.compiled.start(), spelled)])


def _spans(subject: Subject, purpose: str, text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yields stretches of a text, as a kind, the place of the first byte and the one behind the last."""
    for marker in _markers(subject):
        start = text.find(marker)
        while start >= 0:
            yield "tag", start, start + len(marker)
            start = text.find(marker, start + len(marker))
    for start, byte in enumerate(text):
        if byte >= 0xC0:
            rest = text[start + 1 : start + 4]
            yield "character", start, start + 1 + len(rest) - len(rest.lstrip(bytes(range(0x80, 0xC0))))
    if text:
        drawn = subject.random(f"{purpose} {text!r}")
        for _ in range(2):
            start = drawn.randrange(len(text))
            yield "any", start, min(len(text), start + drawn.randint(1, 8))


def _markers(subject: Subject) -> list[bytes]:
    """Returns the texts of triggers, begins, ends and separators of a structural tag; none elsewhere."""
    grammar = subject.case.grammar
    texts: dict[str, None] = {}

    def gather(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name in TAG_FIELDS and isinstance(inner, str | list):
                    parts = inner if isinstance(inner, list) else [inner]
                    texts.update(dict.fromkeys(part for part in parts if isinstance(part, str) and part))
                if name not in ("schema", "json_schema"):
                    gather(inner)
        elif isinstance(value, list):
            for inner in value:
                gather(inner)

    if grammar.dialect == "structural_tag":
        gather(json.loads(grammar.text))
    return [text.encode("utf-8", "surrogatepass") for text in texts]


def others(subject: Subject, purpose: str, allowed: Sequence[int], known: int) -> list[int]:
    """Returns one of the allowed ids, drawn, that is not the known one and does not end the output, if there
    is one; two with the effort `all`."""
    ends = subject.vocabulary.eos_tokens
    left = [token for token in allowed if token != known and token not in ends]
    return subject.random(purpose).sample(left, min(1 if subject.effort else 2, len(left)))
