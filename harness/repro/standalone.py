"""The script that shows a failure with the backend's own library alone."""

from __future__ import annotations

import json
from dataclasses import dataclass

from harness.checks import asks_for_forced_text
from harness.grammar import FORCED, Grammar
from harness.shrink import Outcome

LONGEST_JUDGEMENT = 1000
"""Characters of the line that judges the instance; a longer one is left out."""


@dataclass(frozen=True)
class Shown:
    """What a script shows: a grammar, the tokens of a walk by their bytes, and what is wrong with it."""

    library: str
    """The backend's distribution and its version."""
    grammar: Grammar
    content: bytes | None
    valid: bool | None
    walk: tuple[bytes, ...]
    asserts_formats: bool
    ends: bool
    """Does end-of-sequence come last?"""
    outcome: Outcome
    text: str
    """What was seen, in words."""
    words: tuple[bytes, ...] | None
    """The tokens that the vocabulary must have besides every byte; None: those of the walk, for want of knowing better."""
    vocabulary: str
    """The run's vocabulary."""


def stand_alone(shown: Shown, body: str) -> str:
    """The adapter's lines under a vocabulary that holds only what the walk needs; empty if there are no lines."""
    if not body:
        return ""
    walked, _, forced = body.strip("\n").partition(f"\n{FORCED}")
    lines = [
        f"# {shown.library}",
        *_vocabulary(shown),
        f"grammar = {shown.grammar.text!r}",
        walked,
        *([forced] if forced and asks_for_forced_text(shown.outcome.check or "") else []),
        *(f"# {each}" for each in (*_notes(shown), *_judgement(shown), _expected(shown))),
    ]
    return "\n".join([*lines, ""])


def _vocabulary(shown: Shown) -> list[str]:
    """The tokens and the walk; single bytes are their own ids where there is nothing else."""
    words = shown.words if shown.words is not None else tuple(dict.fromkeys(shown.walk))
    if all(len(each) == 1 for each in (*words, *shown.walk)):
        end = ", 256" if shown.ends else ""
        return [
            "vocabulary = [bytes([byte]) for byte in range(256)] + [b'']",
            f"walk = [*{b''.join(shown.walk)!r}{end}]",
        ]
    ids = {each: number for number, each in enumerate(words)}
    for byte in range(256):
        ids.setdefault(bytes([byte]), len(ids))
    end = " + [len(vocabulary) - 1]" if shown.ends else ""
    return [
        f"vocabulary = {list(words)!r}",
        "vocabulary += [bytes([byte]) for byte in range(256) if bytes([byte]) not in vocabulary] + [b'']",
        f"walk = {[ids[each] for each in shown.walk]!r}{end}",
    ]


def _notes(shown: Shown) -> list[str]:
    if shown.words is None:
        return [f"seen with the vocabulary {_line(shown.vocabulary)}; the few tokens of this script may not be enough to show it"]
    return []


def _judgement(shown: Shown) -> list[str]:
    """A line that somebody can run who does not believe us."""
    if shown.valid is None or shown.content is None:
        return []
    line = ""
    if shown.grammar.dialect == "json_schema":
        try:
            schema, instance = json.loads(shown.grammar.text), json.loads(shown.content)
            formats = ", format_checker=jsonschema.FormatChecker()" if shown.asserts_formats else ""
            line = f"jsonschema.validate({instance!r}, {schema!r}{formats}) {'raises nothing' if shown.valid else 'raises ValidationError'}"
        except (ValueError, RecursionError):
            line = f"json.loads({shown.content!r}) {'raises nothing' if shown.valid else 'raises ValueError'}"
    elif shown.grammar.dialect == "regex":
        try:
            line = f"regex.fullmatch({shown.grammar.text!r}, {shown.content.decode()!r}) {'matches' if shown.valid else 'is None'}"
        except UnicodeDecodeError:
            line = f"{shown.content!r}.decode() raises UnicodeDecodeError"
    return [line] if 0 < len(line) <= LONGEST_JUDGEMENT else []


WHY = {
    "json_schema": ("jsonschema says that the instance is valid", "jsonschema says that the instance is not valid"),
    "regex": ("the expression matches the whole text", "the expression does not match the whole text"),
    "ebnf": ("the text is a sentence of the grammar", "the text is no sentence of the grammar"),
    "choice": ("it is one of the choices", "it is none of the choices"),
    "structural_tag": ("the text is what the structural tag wants", "the text is not what the structural tag wants"),
}


def _expected(shown: Shown) -> str:
    outcome = shown.outcome
    why = WHY[shown.grammar.dialect]
    said = f"; seen: {_line(shown.text)}" if shown.text else ""
    if outcome.check:
        match outcome.check, outcome.direction:
            case "mask_accept_mismatch", _:
                return f"expected: both answers of the last line are the same{said}"
            case _, "over":
                return f"expected: the last token is allowed and accepted, because an output can go on with it{said}"
            case _, "under":
                return f"expected: the last token is refused, because no output goes on with it{said}"
        return f"expected: {outcome.check.replace('_', ' ')}{said}"
    match outcome.verdict:
        case "over_constrained":
            return f"expected: accepted to the end (True True on every line), because {why[0]}"
        case "under_constrained":
            return f"expected: refused somewhere (False False on the last line), because {why[1]}"
        case "declined":
            return f"expected: it compiles, because it is a right {shown.grammar.dialect}{said}"
        case "broken":
            return f"expected: it ends, and without an error (not: {outcome}){said}"
    if shown.valid is None:
        return "expected: nothing in particular; nobody said whether the instance is valid"
    return f"expected: {'accepted' if shown.valid else 'refused'}, because {why[0] if shown.valid else why[1]}"


def _line(text: str, limit: int = 300) -> str:
    """The text as part of a comment: one line, nothing that ends it."""
    shown = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
    return shown if len(shown) <= limit else f"{shown[:limit]} ..."
