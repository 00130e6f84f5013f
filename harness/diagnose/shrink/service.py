"""What runs in the process that holds the backend while a failure is shrunk: it tells what the backend makes
of one candidate. Each candidate has a child of its own, which may be lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal

from harness.backend.grammar import Adapter, Grammar
from harness.backend.process.child import Answer, Handler
from harness.backend.registry import library_of, load, make, parse_specs
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import OurFailure, Subject, checks, run_check, stamped
from harness.diagnose.shrink.fault import Outcome, outcome_of_finding
from harness.diagnose.shrink.stepping import small_vocabulary, spelled, stepped, tokens_of
from harness.outcomes.outcome import fault_of
from harness.rows.row import Finding
from harness.walk.replay import PHASES, Progress, compile_grammar, first_mask, walk

Loads = Literal["library", "vocabulary", "backend"]
"""What is loaded before the children: the backend's library alone, for vocabularies of a few words; or the
run's own vocabulary; or the backend with that vocabulary."""


@dataclass(frozen=True)
class Loaded:
    """What is loaded once, and shared by all candidates."""

    spec: str
    vocabulary: Vocabulary | None
    """The run's own vocabulary, where it is loaded."""
    adapter: Adapter | None
    """The backend with the run's own vocabulary, where it is loaded."""

    def vocabulary_of(self, words: list[str] | None) -> Vocabulary:
        """Returns the vocabulary of every byte, these tokens (as hex) and end-of-sequence; for None the run's
        own."""
        if words is not None:
            return small_vocabulary([bytes.fromhex(word) for word in words])
        assert self.vocabulary is not None
        return self.vocabulary

    def adapter_for(self, words: list[str] | None) -> Adapter:
        """Returns the adapter for the vocabulary of these words."""
        if words is not None:
            return make(parse_specs(self.spec)[0], self.vocabulary_of(words))
        assert self.adapter is not None
        return self.adapter


def open_shrinking(
    page: Progress, spec: str, vocabulary: str, loads: Loads
) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that tells what the backend makes of a candidate."""
    (backend,) = parse_specs(spec)
    load(backend.name)
    own = None if loads == "library" else load_vocabulary(vocabulary)
    adapter = make(backend, own) if loads == "backend" and own is not None else None
    return partial(_handle, Loaded(spec, own, adapter), page), {}


def _handle(loaded: Loaded, progress: Progress, question: dict[str, Any], blob: bytes) -> Answer:
    return answer(loaded, question, progress), b""


def answer(loaded: Loaded, question: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Returns what the backend makes of the candidate, by the question's kind.

    `walk`: the instance replayed; `check`: what a check finds along it; `script`: the adapter's lines;
    `tokens`: those of the instance, or these; `steps`: what becomes of these tokens, one by one; `layout`:
    how the backend says that it writes JSON.
    """
    content = None if question["content"] is None else bytes.fromhex(question["content"])
    if question["kind"] == "tokens":
        vocabulary = loaded.vocabulary_of(question["words"])
        tokens = question["tokens"] or [*vocabulary.encode(content or b""), vocabulary.eos_token]
        return {"status": "ok", "walk": spelled(vocabulary, tokens)}
    progress[0] = PHASES.index("start")
    adapter = loaded.adapter_for(question["words"])
    grammar = Grammar(question["dialect"], question["grammar"])
    if question["kind"] == "script":
        return {"status": "ok", "script": adapter.script(grammar), "library": library_of(adapter)}
    if question["kind"] == "layout":
        return {"status": "ok", "layout": adapter.layout.to_json() if adapter.layout is not None else None}
    if question["kind"] == "steps":
        steps = stepped(adapter, grammar, tokens_of(adapter.vocabulary, question["walk"]))
        return {"status": "ok", "steps": [[step.allowed, step.accepted] for step in steps]}
    progress[0] = PHASES.index("encode")
    tokens = adapter.vocabulary.encode(content or b"")
    shown = spelled(adapter.vocabulary, [*tokens, adapter.vocabulary.eos_token])
    compiled = compile_grammar(adapter, grammar, progress)
    if compiled.grammar is None:
        return {"status": compiled.status, "phase": "compile", "text": compiled.text, "walk": shown}
    if question["kind"] == "check":
        instances = () if content is None else (Instance("", content, question["valid"]),)
        case = Case(case_id(grammar), "shrunk", grammar, instances, options=question["options"])

        findings = _findings(
            Subject(adapter, case, compiled.grammar, progress=progress),
            question["check"],
            Outcome(**question["outcome"]),
        )
        return {
            "status": "ok",
            "findings": [vars(finding) for finding in findings],
            "walks": [
                _spelled_walk(adapter.vocabulary, finding) if finding.walk else shown for finding in findings
            ],
            "walk": shown,
        }
    if content is None:
        observation = first_mask(compiled.grammar, adapter.vocabulary, adapter.mask_format, progress)
    else:
        most_ns = math.inf if question["most_ns"] is None else question["most_ns"]
        observation = walk(
            compiled.grammar, adapter.vocabulary, tokens, adapter.mask_format, progress, most_ns
        )
    kept = {
        name: value
        for name, value in vars(observation).items()
        if name in ("status", "phase", "text", "accepted")
    }
    return {**kept, "findings": [vars(finding) for finding in observation.findings], "walk": shown}


def _spelled_walk(vocabulary: Vocabulary, finding: Finding) -> list[str] | None:
    """Returns the tokens that show the finding, behind those of a written output the end, where it must be
    refused at the latest."""
    end = [vocabulary.eos_token] if fault_of(finding).wrote else []
    return spelled(vocabulary, [*finding.walk, *end])


def _findings(subject: Subject, name: str, wanted: Outcome) -> list[Finding]:
    """Returns the first finding of the check that is as wanted, if there is one."""

    def wanted_only(subject: Subject) -> Iterator[Finding]:
        """Yields what the check finds, but ends early: what a run leaves out of many findings may be the
        one."""
        findings = stamped(name, checks()[name], subject)
        yield from islice((finding for finding in findings if outcome_of_finding(finding) == wanted), 1)

    try:
        return run_check(name, wanted_only, subject)[1]
    except OurFailure:  # then this candidate shows nothing
        return []
