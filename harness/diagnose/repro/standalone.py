"""Writes the script that shows a failure with the backend's own library alone. Before it a validator, if
it is installed, judges the instance."""

from __future__ import annotations

from dataclasses import dataclass

from harness.backend.grammar import Grammar
from harness.backend.scripts import parts_of_script
from harness.checks import asks_for_forced_text
from harness.diagnose.repro.evidence import Evidence, trials
from harness.diagnose.shrink import Outcome
from harness.diagnose.shrink.validity import Validity
from harness.oracle.judge import Judge
from harness.text import one_line

LONGEST_COMMENT = 600
"""The most characters of a comment: what is expected, and as much of what was seen as has room."""

JUDGE_SECONDS = 2.0
"""The seconds in which the judge must tell whether a grammar is one at all."""

SCRIPT = rb"(#[^\n]*\n)?vocabulary = \["
"""How a script begins: the library, where its version is known, and the tokens."""


@dataclass(frozen=True)
class Shown:
    """What a script shows: a grammar, the tokens of a walk by their bytes, and what is wrong with it."""

    library: str
    """The backend's distribution and its version, as far as it has them."""
    grammar: Grammar
    content: bytes | None
    valid: bool | None
    walk: tuple[bytes, ...]
    asserts_formats: bool
    ends: bool
    """Does end-of-sequence come last?"""
    outcome: Outcome
    text: str
    """What was observed, in words."""
    words: tuple[bytes, ...] | None
    """The tokens that the vocabulary must have besides every byte; None takes those of the walk."""
    vocabulary: str
    """The name of the run's vocabulary."""
    draft: str | None = None
    """The case's JSON Schema draft, where the schema does not name it."""


def stand_alone(shown: Shown, body: str) -> str:
    """Returns the script: a validator's verdict on the walked text, then the adapter's lines under a
    vocabulary that holds only what the walk needs. It is empty if there are no lines."""
    if not body:
        return ""
    walked, forced = parts_of_script(body)
    judged = None
    if (about := _to_be_judged(shown)) is not None:
        content, valid, called = about
        with trials() as tried:
            judged = tried.evidence(shown.grammar, content, valid, shown.draft, shown.asserts_formats, called)
    lines = [
        *([_comment(shown.library)] if shown.library else []),
        *_vocabulary(shown),
        f"grammar = {shown.grammar.text!r}",
        *((f"instance = {content!r}", *judged.lines) if judged else ()),
        walked,
        *([forced] if forced and asks_for_forced_text(shown.outcome.check or "") else []),
        *map(_comment, (*_notes(shown), _expected(shown, judged))),
    ]
    return "\n".join([*lines, ""])


def _to_be_judged(shown: Shown) -> tuple[bytes, bool, str] | None:
    """Returns the output that a validator is asked about, whether it is expected to be valid, and what it is
    called. None where the walk, which a check made, is not that of the instance: what is true of this one
    tells nothing of the walk."""
    walked = b"".join(shown.walk)
    if shown.outcome.shows_output:
        return walked, False, "the output"
    if shown.content is None or shown.valid is None:
        return None
    if not shown.outcome.check or shown.content == walked:
        return shown.content, shown.valid, "the instance"
    if walked and not shown.ends and shown.content.startswith(walked):
        return shown.content, shown.valid, "the instance, which begins with the walk,"
    return None


def _vocabulary(shown: Shown) -> list[str]:
    """Returns the lines that define the tokens and the walk; single bytes are their own ids where there are
    no other tokens."""
    words = shown.words if shown.words is not None else tuple(dict.fromkeys(shown.walk))
    if all(len(word) == 1 for word in (*words, *shown.walk)):
        end = ", 256" if shown.ends else ""
        return [
            "vocabulary = [bytes([byte]) for byte in range(256)] + [b'']",
            f"walk = [*{b''.join(shown.walk)!r}{end}]",
        ]
    ids = {word: number for number, word in enumerate(words)}
    for byte in range(256):
        ids.setdefault(bytes([byte]), len(ids))
    end = " + [len(vocabulary) - 1]" if shown.ends else ""
    return [
        f"vocabulary = {list(words)!r}",
        "vocabulary += [bytes([byte]) for byte in range(256) if bytes([byte]) not in vocabulary] + [b'']",
        f"walk = {[ids[token] for token in shown.walk]!r}{end}",
    ]


def _notes(shown: Shown) -> list[str]:
    if shown.words is None:
        return [
            f"seen with the vocabulary {shown.vocabulary}; the few tokens of this script may not "
            "be enough to show it"
        ]
    return []


_SENTENCE = ("the text is a sentence of the grammar", "the text is no sentence of the grammar")
WHY = {
    "ebnf": _SENTENCE,
    "lark": _SENTENCE,
    "choice": ("it is one of the choices", "it is none of the choices"),
    "structural_tag": (
        "the text is what the structural tag wants",
        "the text is not what the structural tag wants",
    ),
}
"""The reasons of the dialects for which GrammarBench's own oracle speaks."""


def _why(shown: Shown, judged: Evidence | None) -> str:
    """Returns why the instance is expected to be accepted, or refused."""
    word = "valid" if shown.valid else "not valid"
    if judged is not None and judged.agrees:
        return f"the instance is {word}, says {judged.who}"
    if judged is not None:
        return f"the case says that the instance is {word}; {judged.who} says the opposite"
    if shown.grammar.dialect in WHY:
        return WHY[shown.grammar.dialect][0 if shown.valid else 1]
    return f"GrammarBench took the instance for {word}; no validator that this script could ask says so"


def _expected(shown: Shown, judged: Evidence | None) -> str:
    outcome = shown.outcome
    observed = f"; seen: {shown.text}" if shown.text else ""
    if outcome.shows_output:
        says = f", says {judged.who}" if judged is not None and judged.agrees else ""
        return f"expected: refused, at the end at the latest, because the output is not valid{says}{observed}"
    if outcome.check:
        match outcome.check, outcome.direction:
            case "mask_accept_mismatch", _:
                return f"expected: both answers of the last line are the same{observed}"
            case _, "over":
                return (
                    "expected: the last token is allowed and accepted, because an output can go on with "
                    f"it{observed}"
                )
            case _, "under":
                return f"expected: the last token is refused, because no output goes on with it{observed}"
        return f"expected: {outcome.check.replace('_', ' ')}{observed}"
    match outcome.verdict:
        case "over_constrained":
            return (
                "expected: accepted to the end (True True on every line of a token), because "
                f"{_why(shown, judged)}"
            )
        case "under_constrained":
            return (
                f"expected: refused somewhere (False False on the last line), because {_why(shown, judged)}"
            )
        case "declined":
            return f"expected: it compiles{_why_it_compiles(shown)}{observed}"
        case "broken":
            return f"expected: it ends, and without an error (not: {outcome}){observed}"
    if shown.valid is None:
        return "expected: nothing in particular; the case does not say what is valid"
    return f"expected: {'accepted' if shown.valid else 'refused'}, because {_why(shown, judged)}"


def _why_it_compiles(shown: Shown) -> str:
    """Returns the rest of the sentence that a declined grammar compiles."""
    dialect = shown.grammar.dialect.replace("_", " ")
    with Judge(JUDGE_SECONDS) as judge:
        is_right = Validity(judge, {}).is_right(shown.grammar)
    if is_right:
        return f", because it is a right {dialect}"
    return f" if it is a right {dialect}; GrammarBench could not tell that it is one"


def _comment(text: str) -> str:
    """Returns the text as a comment of one line: nothing in it, whoever wrote it, becomes a line of code."""
    return f"# {one_line(text, LONGEST_COMMENT, spelled=True)}"
