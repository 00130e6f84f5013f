"""Answers for one arm in a service of its own: masks along a text, a document completed under the mask, a
document replayed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from harness.backend.grammar import Adapter, InvalidGrammar, UnsupportedGrammar
from harness.backend.process.child import Answer, Handler
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case_line import case_at
from harness.checks import Subject
from harness.checks.walks import lean_walk, leaning_of


def load_arm(spec: str, vocabulary: str, cases: str) -> tuple[Handler, dict[str, Any]]:
    """Returns a handler with the backend's adapter loaded, and the adapter's documented causes and its layout
    (null if it declares none); `cases` is the path of the run's `cases.jsonl`."""
    (backend,) = parse_specs(spec)
    adapter = make(backend, load_vocabulary(vocabulary))
    leaning_of(adapter.vocabulary)
    layout = adapter.layout.to_json() if adapter.layout is not None else None
    return AdjudicateHandler(adapter, cases), {"documented": sorted(adapter.documented), "layout": layout}


class AdjudicateHandler:
    """Answers questions about the case that was compiled last."""

    def __init__(self, adapter: Adapter, cases: str) -> None:
        self.adapter, self.cases = adapter, cases
        self.subject: Subject | None = None

    def __call__(self, message: dict[str, Any], blob: bytes) -> Answer:
        answers = {
            "compile": self.compile,
            "masks": self.masks,
            "complete": self.complete,
            "replay": self.replay,
        }
        return answers[message["op"]](message, blob)

    def compile(self, message: dict[str, Any], _: bytes) -> Answer:
        """Compiles the case that begins at `offset`; `declined` in the answer says why there is no
        grammar."""
        case = case_at(self.cases, message["offset"])
        self.subject = None
        try:
            self.subject = Subject(self.adapter, case, self.adapter.compile(case.grammar))
        except (UnsupportedGrammar, InvalidGrammar) as why:
            return {"declined": str(why)}, b""
        return {}, b""

    def compiled(self) -> Subject:
        """Returns the subject of the case that was compiled last."""
        if self.subject is None:
            raise RuntimeError("no case was compiled")
        return self.subject

    def masks(self, message: dict[str, Any], _: bytes) -> Answer:
        """Returns the masks before the tokens at `positions` (ascending), as far as the tokens are accepted;
        bits packed by numpy's `packbits`, one mask after another."""
        subject, tokens = self.compiled(), message["tokens"]
        grammar_object = subject.compiled.start()
        at = 0
        masks: list[bytes] = []
        for position in message["positions"]:
            while at < position and grammar_object.accept_token(tokens[at]):
                at += 1
            if at < position:
                break
            masks.append(np.packbits(subject.allowed(grammar_object)).tobytes())
        return {"reached": len(masks)}, b"".join(masks)

    def complete(self, message: dict[str, Any], _: bytes) -> Answer:
        """Returns the document that a walk makes of the tokens; `end` says how the walk ended, and is
        `refused` if the tokens were."""
        subject, tokens = self.compiled(), message["tokens"]
        grammar_object = subject.reach(tuple(tokens))
        if grammar_object is None:  # the mask allows a token that is not accepted
            return {"end": "refused"}, b""
        text = subject.vocabulary.decode(tokens)
        walk = lean_walk(subject, grammar_object, random.Random(message["seed"]), message["soft"], text)
        return {"end": walk.end}, text + walk.text

    def replay(self, message: dict[str, Any], blob: bytes) -> Answer:
        """Replays the canonical tokens of the document, or with `by_byte` one token for each byte, and
        end-of-sequence behind them. The answer holds the index of the first refused token (None if no token
        is refused) and how many bytes were accepted."""
        subject = self.compiled()
        vocabulary = subject.vocabulary
        if message.get("by_byte"):
            tokens = [vocabulary.ids_by_bytes.get(bytes([byte]), vocabulary.eos_token) for byte in blob]
        else:
            tokens = vocabulary.encode(blob)
        tokens.append(vocabulary.eos_token)
        grammar_object = subject.compiled.start()
        at = 0
        while (
            at < len(tokens)
            and not grammar_object.is_terminated()
            and grammar_object.accept_token(tokens[at])
        ):
            at += 1
        return {
            "refused_at": at if at < len(tokens) else None,
            "bytes": len(vocabulary.decode(tokens[:at])),
        }, b""
