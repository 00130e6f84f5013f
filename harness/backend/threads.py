"""Do grammar objects on several threads behave as each does alone?

Engines fill the masks of large batches on several threads, and compile beside the loop that serves. A race
shows by luck only, so what is looked at is a sample, and is made again and again until the time is over.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Barrier, Thread
from typing import Any

import numpy as np

from harness.backend.contract.place import TAG, accepted
from harness.backend.declared import adapter_of, refuse_wrongly_declared
from harness.backend.describe import refuse_lost_vocabularies
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
)
from harness.backend.masks import allowed_mask
from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput, error_text
from harness.text import counted

THREADS = 8
SWITCH_SECONDS = 1e-5
"""How long Python lets a thread run before another one gets its turn: usually 5 ms, in which whole walks
would pass without a meeting."""

_SCHEMA = (
    '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": '
    '"integer"}, "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}}}, '
    '"required": ["name", "age"]}'
)
_OTHER_SCHEMA = (
    '{"type": "object", "properties": {"city": {"type": "string"}, "near": {"type": "array", "items": {'
    '"type": "object", "properties": {"km": {"type": "number"}}, "required": ["km"]}}}, "required": ["city"]}'
)
_SUMS = 'root ::= term ("+" term)*\nterm ::= [0-9]+ | "(" root ")"\n'

SAMPLES: tuple[tuple[Grammar, tuple[bytes, bytes]], ...] = (
    (
        Grammar("json_schema", _SCHEMA),
        (b'{"name": "Ann Lee", "age": 42, "tags": ["red", "blue"]}', b'{"name": "B\xc3\xa9", "age": 7}'),
    ),
    (
        Grammar("json_schema", _OTHER_SCHEMA),
        (b'{"city": "Oslo", "near": [{"km": 1.5}, {"km": 20}]}', b'{"city": "Bonn"}'),
    ),
    (Grammar("regex", r"[a-z]{1,12}@[a-z]{2,10}\.(com|org)"), (b"someone@example.org", b"abc@de.com")),
    (Grammar("ebnf", _SUMS), (b"1+(2+(34+5)+6)+7", b"((8))+90")),
    (Grammar("lark", "start: /[ab]/ /[0-9]+/\n"), (b"a123456", b"b7890")),
    (Grammar("choice", '["alpha", "alpine", "beta", "betray"]'), (b"alpine", b"betray")),
    (Grammar("structural_tag", TAG), (b"say <f>12</f> and <f>345</f>", b"<f>6</f>")),
)
"""Grammars, each with two outputs of it."""

WAYS = ("objects of one grammar", "objects of several grammars", "objects beside compiles")
"""What threads do at once: walk objects of one compiled grammar; walk objects, each of a grammar that was
compiled for it alone; walk objects of one grammar while every second thread compiles and then walks what it
has compiled."""

MOST_SHOWN = 3
"""The most differences of one way that are kept."""

Step = tuple[bytes, bool]
"""What is seen of an object at a place: its mask, one bit a token, and whether the output may end."""


@dataclass
class Way:
    """What was seen of one way."""

    way: str
    """One of WAYS."""
    walks: int = 0
    otherwise: int = 0
    """The number of walks that went otherwise than alone."""
    shown: list[str] = field(default_factory=list)
    """The first of them, a sentence each."""
    lost: str = ""
    """What the backend's process did that ended; empty if it did not."""


@dataclass(frozen=True)
class Threaded:
    """How a backend goes on several threads."""

    ways: list[Way]
    compiled: int
    """The number of sample grammars that it compiles."""
    unsteady: list[str]
    """The sample grammars that are left out, because walks on one thread differ already."""


def on_threads(spec: str, vocabulary: str, seconds: float, timeout_s: float, python: str) -> Threaded:
    """Returns what a backend does on THREADS threads, asked in a process of its own for so many seconds in
    all; `timeout_s` is for the loading and for each round of walks.

    Raises BadInput if the backend or the vocabulary is not to be had, or the backend is lost as it loads.
    """
    loader = f"{__name__}:{open_threads.__name__}"
    with Service(
        loader, {"spec": spec, "vocabulary": vocabulary}, python=python, load_seconds=timeout_s
    ) as service:
        try:
            service.wait()
            stated, _ = service.ask({"way": ""}, seconds=timeout_s)
        except Lost as lost:
            refuse_lost_vocabularies([vocabulary], python)
            raise BadInput(f"{spec}: {lost}") from lost
        ways = [Way(name) for name in WAYS]
        if stated["compiled"] > len(stated["unsteady"]):
            for way in ways:
                _look(service, way, seconds / len(ways), timeout_s)
    return Threaded(ways, stated["compiled"], stated["unsteady"])


def _look(service: Service, way: Way, seconds: float, timeout_s: float) -> None:
    """Goes one way, round after round, until the time is over or the process is lost."""
    until = time.monotonic() + seconds
    while True:
        try:
            answer, _ = service.ask({"way": way.way}, seconds=timeout_s)
        except Lost as lost:
            way.lost = str(lost)
            return
        way.walks += answer["walks"]
        way.otherwise += answer["otherwise"]
        way.shown = [*way.shown, *answer["shown"]][:MOST_SHOWN]
        if time.monotonic() > until:
            return


def open_threads(spec: str, vocabulary: str) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that walks on threads for one backend and one vocabulary. Raises BadInput."""
    adapter = adapter_of(spec, vocabulary)
    refuse_wrongly_declared(adapter, spec)
    sys.setswitchinterval(SWITCH_SECONDS)
    return Rounds(adapter).answer, {}


@dataclass(frozen=True)
class Track:
    """An output of a grammar in tokens, as far as the backend takes it, and what is seen along it alone."""

    grammar: Grammar
    tokens: tuple[int, ...]
    alone: list[Step]


class Rounds:
    """Walks of one adapter, on one thread once and then on several."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.tracks: dict[Grammar, list[Track]] = {}
        self.unsteady: list[str] = []
        self.compiled = 0

    def answer(self, question: dict[str, Any], blob: bytes) -> Answer:
        """Returns what a round of the way shows, or for no way what can be compared."""
        if not self.tracks and not self.unsteady:
            self._walk_alone()
        if not question["way"]:
            return {"compiled": self.compiled, "unsteady": self.unsteady}, b""
        differences: list[str] = []
        walks = 0
        for jobs in self._jobs(WAYS.index(question["way"])):
            walks += len(jobs)
            differences += _at_once(jobs)
        return {"walks": walks, "otherwise": len(differences), "shown": differences[:MOST_SHOWN]}, b""

    def _walk_alone(self) -> None:
        """Walks every output of the samples twice on this thread, each time in a grammar compiled anew."""
        for grammar, outputs in SAMPLES:
            try:
                compiled, again = self._compile(grammar), self._compile(grammar)
            except (UnsupportedGrammar, InvalidGrammar, NotImplementedError):
                continue
            self.compiled += 1
            tracks = []
            for output in outputs:
                tokens = self._tokens(compiled, output)
                tracks.append(Track(grammar, tokens, _walk(self.adapter, compiled.start(), tokens)))
            if all(track.alone == _walk(self.adapter, again.start(), track.tokens) for track in tracks):
                self.tracks[grammar] = tracks
            else:
                self.unsteady.append(f"{grammar.dialect} {grammar.text.strip()}")

    def _compile(self, grammar: Grammar) -> CompiledGrammar:
        if grammar.dialect not in self.adapter.dialects:
            raise UnsupportedGrammar(grammar.dialect)
        return self.adapter.compile(grammar)

    def _tokens(self, compiled: CompiledGrammar, output: bytes) -> tuple[int, ...]:
        tokens = self.adapter.vocabulary.encode(output)
        return tuple(tokens[: accepted(compiled.start(), tokens)])

    def _jobs(self, way: int) -> list[list[Callable[[], str]]]:
        """Returns what is to be done at once, by turns; each job returns a difference, or nothing."""
        if way == 1:
            every = [track for tracks in self.tracks.values() for track in tracks]
            chosen = [every[number % len(every)] for number in range(max(THREADS, len(every)))]
            parts = [chosen[first : first + THREADS] for first in range(0, len(chosen), THREADS)]
            return [[self._job(self._compile(track.grammar), track) for track in part] for part in parts]
        turns = []
        for grammar, tracks in self.tracks.items():
            shared = self._compile(grammar)
            jobs = []
            for number in range(THREADS):
                of = None if way == 2 and number % 2 else shared
                jobs.append(self._job(of, tracks[number // 2 % len(tracks)]))
            turns.append(jobs)
        return turns

    def _job(self, compiled: CompiledGrammar | None, track: Track) -> Callable[[], str]:
        """Returns a walk of the track in this grammar, or in one that it compiles itself."""

        def walk() -> str:
            try:
                of = self.adapter.compile(track.grammar) if compiled is None else compiled
                steps = _walk(self.adapter, of.start(), track.tokens)
            except BaseException as error:  # a panic in Rust is no Exception, and alone none of it was raised
                return f"{track.grammar.dialect}: raises {error_text(error, 200)}"
            return _difference(self.adapter.vocabulary, track, steps)

        return walk


def _at_once(jobs: Sequence[Callable[[], str]]) -> list[str]:
    """Does the jobs on a thread each, which begin together, and returns the differences."""
    barrier = Barrier(len(jobs))
    found: list[str] = []

    def work(job: Callable[[], str]) -> None:
        barrier.wait()
        if difference := job():
            found.append(difference)

    threads = [Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _walk(adapter: Adapter, grammar_object: GrammarObject, tokens: Sequence[int]) -> list[Step]:
    """Returns what is seen at the start and behind each token, until one is refused."""
    steps = [_seen(adapter, grammar_object)]
    for token in tokens:
        if not grammar_object.accept_token(token):
            break
        steps.append(_seen(adapter, grammar_object))
    return steps


def _seen(adapter: Adapter, grammar_object: GrammarObject) -> Step:
    allowed = allowed_mask(grammar_object, adapter.vocabulary.size, adapter.mask_format)
    return np.packbits(allowed).tobytes(), bool(grammar_object.is_accepting())


def _difference(vocabulary: Vocabulary, track: Track, steps: Sequence[Step]) -> str:
    """Returns where a walk first goes otherwise than alone, as a sentence; nothing if it does not."""
    for position, (mine, alone) in enumerate(zip(steps, track.alone, strict=False)):
        if mine != alone:
            where = f"{track.grammar.dialect}: after {vocabulary.decode(track.tokens[:position])!r}"
            if mine[0] == alone[0]:
                return f"{where} is_accepting() is {mine[1]}"
            old, new = (np.unpackbits(np.frombuffer(mask, np.uint8)) for mask in (alone[0], mine[0]))
            more, fewer = int(np.sum(new > old)), int(np.sum(old > new))
            return f"{where} the mask allows {counted(more, 'token')} more and {fewer:,} fewer than alone"
    if len(steps) < len(track.alone):
        taken = track.tokens[: len(steps) - 1]
        token = track.tokens[len(steps) - 1]
        text = vocabulary.tokens[token]
        return f"{track.grammar.dialect}: after {vocabulary.decode(taken)!r} {text!r} is refused"
    return ""
