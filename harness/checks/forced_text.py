"""Where forced text is asked for, and what comes for an answer: what the checks of jump-forward share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from harness.backend.grammar import GrammarObject, are_tokens, overrides
from harness.checks import is_ours
from harness.checks.readings import reading_of
from harness.checks.subject import LONGEST_WALK, NotApplicable, Place, Subject
from harness.errors import OutOfTime, error_text
from harness.oracle.automaton import Automaton
from harness.oracle.forced_text.compressed_fsm import split_jump
from harness.walk.watched import BrokenAnswer, shown

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Fault:
    """What came instead of an answer."""

    cause: str
    text: str


def places_and_insides(subject: Subject, purpose: str) -> Iterator[Place]:
    """Yields the subject's places, and as many again that lie inside a character of an instance."""
    vocabulary = subject.vocabulary
    # The keys are digests, because all texts together grow with the square of an instance's length.
    inside: dict[bytes, tuple[int, int]] = {}
    for number in subject.numbers:
        content, read = _content(subject, number), blake2b(digest_size=16)
        for at, byte in enumerate(content):
            if 0x80 <= byte < 0xC0:
                inside.setdefault(read.digest(), (number, at))
            read.update(content[at : at + 1])
    for place in subject.places(purpose):
        inside.pop(blake2b(place.text, digest_size=16).digest(), None)
        yield place
    found = list(inside.values())
    if subject.effort is not None and len(found) > subject.effort:
        found = [
            found[at]
            for at in sorted(subject.random(f"{purpose} inside").sample(range(len(found)), subject.effort))
        ]
    for number, end in found:
        content = _content(subject, number)
        text, start = content[:end], _character_start(content, end)
        before, single = subject.spell(text[:start]) or (), single_bytes(subject, text[start:])
        if single is not None and vocabulary.decode(before) == text[:start]:
            yield Place(number, (*before, *single), text)


def _content(subject: Subject, number: int) -> bytes:
    """Returns the bytes of an instance in which such places are sought; none where it is said by its
    tokens."""
    instance = subject.case.instances[number]
    return b"" if instance.tokens else instance.content[: LONGEST_WALK * 4]


def _character_start(text: bytes, at: int) -> int:
    """Returns where the character begins to which the continuation byte at `at` belongs, if it is one."""
    start = at
    while start > 0 and at - start < 3 and 0x80 <= text[start] < 0xC0:
        start -= 1
    return start


def asked_at(
    subject: Subject, purpose: str, *methods: str
) -> Iterator[tuple[Place, GrammarObject, list[str]]]:
    """Yields places, each with an object there and those of the methods that the object has.

    Raises NotApplicable if the backend has none of them.
    """
    start = subject.compiled.start()
    has = [method for method in methods if overrides(start, method)]
    if not has:
        raise NotApplicable("no " + " and no ".join(methods))
    for place in places_and_insides(subject, purpose):
        grammar_object = subject.reach(place.tokens)
        if grammar_object is not None:
            yield place, grammar_object, has


def ask(question: Callable[[], Any], convert: Callable[[Any], Answer | Fault]) -> Answer | Fault:
    """Returns the backend's answer, or what it raised."""
    try:
        answer = question()
    except (KeyboardInterrupt, SystemExit, MemoryError, OutOfTime):
        raise
    except BrokenAnswer as error:
        answer = error.answer
    except BaseException as error:  # a panic in Rust is no Exception
        if is_ours(error):
            raise
        cause = "unicode_decode_error" if isinstance(error, UnicodeDecodeError) else "raised"
        return Fault(cause, f"raises {error_text(error)}"[:500])
    return convert(answer)


def as_bytes(answer: Any) -> bytes | Fault:
    """Returns the answer where it is bytes, and else what is wrong with it."""
    return (
        answer
        if isinstance(answer, bytes)
        else Fault("not_bytes", f"gives {type(answer).__name__}, not bytes")
    )


def as_tokens(size: int) -> Callable[[Any], list[int] | Fault]:
    """Returns what takes an answer for the ids of tokens of a vocabulary of that size, and returns else what
    is wrong with it."""

    def convert(answer: Any) -> list[int] | Fault:
        return (
            list(map(int, answer))
            if are_tokens(answer, size)
            else Fault("not_tokens", f"gives {shown(answer)}, no list of token ids")
        )

    return convert


def reference(subject: Subject) -> Automaton[Any] | None:
    try:
        return subject.language
    except NotApplicable:
        return None


def forced_by_reference(subject: Subject, place: Place) -> bytes:
    """Returns what the reference says is forced; empty if there is none."""
    language = reference(subject)
    if language is None:
        return b""
    state = subject.state_of(place.text)
    return language.forced(state)


def why_refused(subject: Subject, text: bytes) -> str:
    """Returns the cause, where a backend refuses the last token of a text that the reference goes along
    with."""
    dialect = reading_of(subject, lambda other: other.viable(text) < len(text))
    return dialect or ("partial_utf8" if split_jump(text).begun else "refused")


def single_bytes(subject: Subject, text: bytes) -> tuple[int, ...] | None:
    """Returns the text as single-byte tokens; None if the vocabulary lacks one."""
    ids = subject.vocabulary.ids_by_bytes
    tokens = [ids.get(bytes([byte])) for byte in text]
    return None if None in tokens else tuple(token for token in tokens if token is not None)


def cut(text: bytes) -> str:
    return repr(text if len(text) <= 60 else text[:57] + b"...")


def end_of(grammar_object: GrammarObject) -> tuple[bool, bool]:
    """Returns whether the object is accepting, and whether it is terminated."""
    return grammar_object.is_accepting(), grammar_object.is_terminated()
