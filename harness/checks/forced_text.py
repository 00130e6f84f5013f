"""Where forced text is asked for, and what comes for an answer: what the checks of jump-forward share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from harness.checks import is_ours
from harness.checks.subject import LONGEST_WALK, NotApplicable, Place, Subject
from harness.grammar import GrammarObject, are_tokens, overrides
from harness.jump_forward.compressed_fsm import split_jump
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.regex import RegexDialect, regex_automaton

Answer = TypeVar("Answer")

OTHER_DIALECTS: tuple[RegexDialect, ...] = ("rust", "ecma")
"""Of regular expressions, beside the one of the reference."""


@dataclass(frozen=True)
class Fault:
    """What came instead of an answer."""

    cause: str
    text: str


def places_and_insides(subject: Subject, purpose: str) -> Iterator[Place]:
    """The subject's places, and as many again that lie inside a character of an instance."""
    vocabulary = subject.vocabulary
    inside: dict[bytes, tuple[int, int]] = {}
    for number, instance in enumerate(subject.case.instances):
        content = instance.content[: LONGEST_WALK * 4]
        for at, byte in enumerate(content):
            if 0x80 <= byte < 0xC0:
                inside.setdefault(content[:at], (number, _character_start(content, at)))
    for place in subject.places(purpose):
        inside.pop(place.text, None)
        yield place
    texts = list(inside)
    if subject.effort is not None and len(texts) > subject.effort:
        texts = [texts[at] for at in sorted(subject.random(f"{purpose} inside").sample(range(len(texts)), subject.effort))]
    for text in texts:
        number, start = inside[text]
        before, single = spell(subject, text[:start]), single_bytes(subject, text[start:])
        if single is not None and vocabulary.decode(before) == text[:start]:
            yield Place(number, (*before, *single), text)


def _character_start(text: bytes, at: int) -> int:
    """Of the character to which the continuation byte at `at` belongs, if it is one."""
    start = at
    while start > 0 and at - start < 3 and 0x80 <= text[start] < 0xC0:
        start -= 1
    return start


def asked_at(subject: Subject, purpose: str, *methods: str) -> Iterator[tuple[Place, GrammarObject, list[str]]]:
    """Places, with an object at each and those of the methods that it has. Raises NotApplicable if the backend has none of them."""
    start = subject.compiled.start()
    has = [method for method in methods if overrides(start, method)]
    if not has:
        raise NotApplicable("no " + " and no ".join(methods))
    for place in places_and_insides(subject, purpose):
        grammar_object = subject.reach(place.tokens)
        if grammar_object is not None:
            yield place, grammar_object, has


def ask(question: Callable[[], Any], convert: Callable[[Any], Answer | Fault]) -> Answer | Fault:
    """The backend's answer, or what it raised."""
    try:
        answer = question()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        if is_ours(error):
            raise
        cause = "unicode_decode_error" if isinstance(error, UnicodeDecodeError) else "raised"
        return Fault(cause, f"raises {type(error).__name__}: {error}"[:500])
    return convert(answer)


def as_bytes(answer: Any) -> bytes | Fault:
    return answer if isinstance(answer, bytes) else Fault("not_bytes", f"gives {type(answer).__name__}, not bytes")


def as_tokens(size: int) -> Callable[[Any], list[int] | Fault]:
    def convert(answer: Any) -> list[int] | Fault:
        return answer if are_tokens(answer, size) else Fault("not_tokens", f"gives {str(answer)[:80]}, no list of token ids")

    return convert


def reference(subject: Subject) -> Automaton[Any] | None:
    try:
        return subject.language
    except NotApplicable:
        return None


def forced_by_reference(subject: Subject, place: Place) -> bytes:
    """What the reference says is forced; empty if there is none."""
    language = reference(subject)
    if language is None:
        return b""
    state = subject.state_of(place.text)
    with subject.ours():
        return language.forced(state)


def regex_dialect(subject: Subject, explains: Callable[[Automaton[Any]], bool]) -> str:
    """The other dialect of regular expressions whose language explains what the backend does, as a cause; empty if none does."""
    grammar = subject.case.grammar
    if grammar.dialect == "regex":
        for dialect in OTHER_DIALECTS:
            with subject.ours():
                try:
                    if explains(_in_dialect(grammar.text, dialect)):
                        return f"regex_dialect_{dialect}"
                except NoOracle:
                    continue
    return ""


def why_refused(subject: Subject, text: bytes) -> str:
    """The cause, where a backend refuses the last token of a text that the reference goes along with."""
    dialect = regex_dialect(subject, lambda other: other.viable(text) < len(text))
    return dialect or ("partial_utf8" if split_jump(text).begun else "refused")


@lru_cache(maxsize=8)
def _in_dialect(pattern: str, dialect: RegexDialect) -> Automaton[Any]:
    return regex_automaton(pattern, dialect)


def single_bytes(subject: Subject, text: bytes) -> tuple[int, ...] | None:
    """The text as single-byte tokens; None if the vocabulary lacks one."""
    ids = subject.vocabulary.ids_by_bytes
    tokens = [ids.get(bytes([byte])) for byte in text]
    return None if None in tokens else tuple(token for token in tokens if token is not None)


def spell(subject: Subject, text: bytes) -> list[int]:
    """The text's usual tokens; none if the vocabulary cannot spell it."""
    try:
        return subject.vocabulary.encode(text)
    except ValueError:
        return []


def cut(text: bytes) -> str:
    return repr(text if len(text) <= 60 else text[:57] + b"...")


def shared_length(left: bytes, right: bytes) -> int:
    """How many bytes both begin with."""
    return next((at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one != other), min(len(left), len(right)))


def end_of(grammar_object: GrammarObject) -> tuple[bool, bool]:
    """Accepting, and terminated."""
    return grammar_object.is_accepting(), grammar_object.is_terminated()
