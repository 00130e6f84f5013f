"""A failing case with the backend's own library alone: what the page needs to write such a script, for the
first failure of each arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.backend.arm import Arm, version_key
from harness.backend.grammar import Grammar
from harness.backend.scripts import Scripts, parts_of_script, scripts
from harness.backend.vocabulary import Vocabulary
from harness.checks import asks_for_forced_text
from harness.report.cases.cases import WALK, first_note, vocabulary_of
from harness.report.cases.data import Explored
from harness.report.page.lines import Line

LONGEST_WALK = WALK
"""Tokens; with more of them nobody reads a script, and `grammarbench repro --script` writes it."""


def ask(explored: Explored, lines: Sequence[Line]) -> list[Scripts]:
    """Returns what the adapter of each line brings for the failing cases: seconds, for their libraries are
    imported."""
    grammars: dict[Arm, dict[Grammar, None]] = {}
    for line in lines:
        grammars.setdefault(_arm(line), {}).update(
            dict.fromkeys(grammar for _, _, grammar in _wanted(explored, line))
        )
    by_arm = dict(
        zip(grammars, scripts([(arm, list(wanted)) for arm, wanted in grammars.items()]), strict=True)
    )
    return [by_arm[_arm(line)] for line in lines]


def add_snippets(explored: Explored, lines: Sequence[Line], answers: Sequence[Scripts]) -> None:
    """Adds to the details of failing cases `snippets`: by arm, the adapter's lines and the walk; and to arms
    without any, why.

    The walk is that of the run's vocabulary, if it is here, and of single bytes if it is not. The page writes
    the rest: the vocabulary, which has only what the walk needs, and the grammar.
    """
    for line, of in zip(lines, answers, strict=True):
        if of.why and not of.of:
            explored.index["arms"][line.position]["no_snippet"] = of.why
            continue
        sha256 = str(line.run.info.vocabularies.get(line.arm.vocabulary, {}).get("sha256", ""))
        vocabulary = vocabulary_of(line.arm.vocabulary, sha256, explored.vocabularies)
        for detail, note, grammar in _wanted(explored, line):
            body = of.of.get(grammar)
            walk = None if body is None else _walk(note, detail, vocabulary)
            if body is not None and walk is not None:
                detail.setdefault("snippets", {})[str(line.position)] = {"lines": _for(note, body), **walk}


def _arm(line: Line) -> Arm:
    key = line.arm.key[:3]
    known = (arm for arm in line.run.info.arms if version_key(arm) == key)
    return next(known, Arm(*key, distribution="", dialects=(), mask_format=""))


Wanted = tuple[dict[str, Any], dict[str, Any], Grammar]
"""A case's details, the arm's first note of it, and the grammar."""


def _wanted(explored: Explored, line: Line) -> list[Wanted]:
    wanted = []
    for case, detail in zip(
        explored.cases[: explored.failing], explored.details[: explored.failing], strict=True
    ):
        note = first_note(detail, line.position)
        if note is not None and "grammar" in detail and "grammar_left_off" not in detail:
            wanted.append((detail, note, Grammar(case.dialect, detail["grammar"])))  # type: ignore[arg-type]
    return wanted


def _for(note: dict[str, Any], body: str) -> str:
    """Returns the lines; those about forced text only where that is in question."""
    walked, forced = parts_of_script(body)
    finding = _finding(note)
    asks = bool(finding) and asks_for_forced_text(finding["check"])
    return f"{walked}\n{forced}" if forced and asks else walked


def _finding(note: dict[str, Any]) -> dict[str, Any]:
    """Returns the finding that the script is to show, documented or not; an empty one where it is how the
    walk ended."""
    findings = note.get("findings", []) if note["kind"] in ("finding", "documented") else []
    return findings[0] if findings else {}


def _walk(
    note: dict[str, Any], detail: dict[str, Any], vocabulary: Vocabulary | None
) -> dict[str, Any] | None:
    """`pieces` (hex of each token) or `cuts` (how many bytes of the instance each token has; none: one each),
    and `end`.

    None where the walk cannot be told, or is too long to be read.
    """
    finding = _finding(note)
    if finding.get("walk"):
        return _of_ids(finding["walk"], vocabulary)
    if finding.get("at") == 0 and asks_for_forced_text(finding["check"]):
        return {"pieces": [], "end": False}
    number = note.get("instance", finding.get("instance"))
    if number is None:  # what fails is the compile, or nothing says how to see the finding
        return None if finding else {"pieces": [], "end": False}
    instance = next((instance for instance in detail["instances"] if instance["number"] == number), None)
    if instance is None or "left_off" in instance or "invalid_utf8" in instance:
        return None
    content = instance["content"].encode()
    at, count = note.get("at"), note.get("tokens", 0)
    if vocabulary is None:
        return {"instance": number, "end": True} if len(content) < LONGEST_WALK else None
    try:
        tokens = vocabulary.encode(content)
    except ValueError:
        return None
    if not finding and count and len(tokens) != count:
        return None  # another spelling was walked, or another tokenization
    if note["kind"] == "over_constrained" and at is not None and at < len(tokens):
        tokens = tokens[: at + 1]
        return _cuts(number, tokens, vocabulary, end=False)
    return _cuts(number, tokens, vocabulary, end=True)


def _cuts(number: int, tokens: Sequence[int], vocabulary: Vocabulary, end: bool) -> dict[str, Any] | None:
    if len(tokens) >= LONGEST_WALK:
        return None
    return {"instance": number, "cuts": [len(vocabulary.tokens[token]) for token in tokens], "end": end}


def _of_ids(walk: Sequence[int], vocabulary: Vocabulary | None) -> dict[str, Any] | None:
    """Returns the walk as the bytes of its tokens; None without a vocabulary, where the walk was cut, or
    where it has a special token, which no script can name."""
    if vocabulary is None or len(walk) >= WALK or not all(0 <= token < vocabulary.size for token in walk):
        return None
    end = walk[-1] == vocabulary.eos_token
    pieces = [vocabulary.tokens[token].hex() for token in (walk[:-1] if end else walk)]
    return {"pieces": pieces, "end": end} if all(pieces) else None
