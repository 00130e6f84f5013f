"""A special token's text is text like any other; only its id is special.

With an effort of e, the text of e / 2 special tokens is tried, end-of-sequence always; each costs about 6
masks, 26 at most.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.backend.tag_formats import has_format
from harness.backend.vocabulary import Vocabulary
from harness.checks.documents import documents_of_case
from harness.checks.looking import name_of
from harness.checks.subject import NotApplicable, Subject
from harness.checks.tokenization import accepted_instances
from harness.oracle.automaton import DEAD
from harness.rows.row import Finding

CATEGORY = "special tokens"


SPECIALS = 20
"""Special tokens whose text is tried, where the effort has no limit."""

TRIES = 2
"""Places at which the text of one special token is tried, until one takes a text of its shape."""

LETTERS = bytes(range(ord("a"), ord("z") + 1))

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)


@dataclass(frozen=True)
class Spot:
    """A position in free text: the tokens before it and their bytes."""

    instance: int | None
    tokens: tuple[int, ...]
    text: bytes
    behind: bytes = b""
    """What must follow what is written here, up to the end of the output; empty if that is not known."""


def check_special_token_text_is_plain_text(subject: Subject) -> Iterator[Finding]:
    """In free text, `</s>` in characters is taken like any other text, and the id of that special token is
    refused."""
    spots = _spots(subject)
    tried = False
    for number, (token, name) in enumerate(_names(subject)):
        tries = 0
        for spot in spots[number % len(spots) :] + spots[: number % len(spots)] if spots else []:
            if tries == TRIES:
                break
            if not _may_be_written(subject, spot, name) or (wrong := _wrong_id(subject, spot, token)) is None:
                continue
            tries += 1
            tried = True
            yield from wrong
            if (refused := _refused_text(subject, spot, name)) is not None:
                yield from refused
                break
    if not tried:
        raise NotApplicable("no place was found where the text of a special token may stand")


def _names(subject: Subject) -> list[tuple[int, bytes]]:
    """Returns some special tokens that can be spelled in bytes, and their text; end-of-sequence first."""
    vocabulary = subject.vocabulary
    plain = {
        token: name
        for token, name in vocabulary.special_tokens.items()
        if name.isprintable() and not set(name) & set('"\\')
    }
    names = [(token, name.encode()) for token, name in plain.items() if name]
    names = [(token, name) for token, name in names if _has_all_bytes(vocabulary, name)]
    subject.random("specials").shuffle(names)
    names.sort(key=lambda name: name[0] not in vocabulary.eos_tokens)
    return names[: SPECIALS if subject.effort is None else max(1, subject.effort // 2)]


def _spots(subject: Subject) -> list[Spot]:
    """Returns the places where free text may be: any place of a grammar with a reference automaton, strings
    of valid JSON, the start before a tag."""
    dialect = subject.case.grammar.dialect
    if dialect == "structural_tag":
        return [Spot(None, (), b"")]
    if dialect == "json_schema":
        spots = [spot for number in accepted_instances(subject) for spot in _strings(subject, number)]
    else:
        places = subject.places("specials", None if subject.effort is None else 4 * subject.effort)
        spots = [Spot(place.instance, place.tokens, place.text) for place in places]
    subject.random("spots").shuffle(spots)
    return spots


def _strings(subject: Subject, number: int) -> Iterator[Spot]:
    """Yields the contents of the string values of a valid instance."""
    content = subject.case.instances[number].content
    for match in _STRING.finditer(content):
        if match[1] is None:
            before, behind = content[: match.start() + 1], content[match.end() - 1 :]
            tokens = subject.spell(before)
            if tokens is not None and subject.spell(behind) is not None:
                yield Spot(number, tokens, before, behind)


def _may_be_written(subject: Subject, spot: Spot, text: bytes) -> bool:
    """Is it free text there? What JSON Schema says of a string is asked later, because that takes longer."""
    match subject.case.grammar.dialect:
        case "json_schema":
            return True
        case "structural_tag":
            try:
                form = json.loads(subject.case.grammar.text)
                if has_format(form):
                    return _goes_on(subject, spot, text)
                triggers = [trigger.encode() for trigger in form["triggers"]]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise NotApplicable(f"the triggers are no texts: {error}") from error
            return not any(_is_begun(trigger, text) for trigger in triggers)
        case _:
            state = subject.state_of(spot.text)
            return state != DEAD and subject.language.run(state, text) != DEAD


def _goes_on(subject: Subject, spot: Spot, text: bytes) -> bool:
    """Is there an output of the structural tag, of the new form, in which the text stands there as text, and
    that may end behind it?"""
    outputs = documents_of_case(subject.case, vocabulary=subject.vocabulary)
    if outputs.reads_tokens:
        raise NotApplicable("its special tokens are meant by their ids")
    state = subject.state_behind(outputs, spot.tokens)
    return outputs.accepting(state) and outputs.accepting(outputs.run(state, text))


def _is_begun(trigger: bytes, text: bytes) -> bool:
    """Is the trigger, or its beginning at the very end, in the text?"""
    return trigger in text or any(text.endswith(trigger[:size]) for size in range(1, len(trigger)))


def _is_valid(subject: Subject, spot: Spot, text: bytes) -> bool:
    """Is the text valid there, in the judge's eyes? False if nobody knows."""
    if subject.case.grammar.dialect != "json_schema":
        return True  # `_may_be_written` has said so
    return subject.judged(spot.text + text + spot.behind) is True


def _wrong_id(subject: Subject, spot: Spot, token: int) -> list[Finding] | None:
    """Returns a finding for special ids that are taken in free text; None if the place is not reached."""
    vocabulary = subject.vocabulary
    grammar_object = subject.reach(spot.tokens)
    if grammar_object is None:
        return None
    allowed = subject.allowed(grammar_object)
    may_end = not spot.behind  # inside a JSON string it may not, elsewhere this is not asked here
    wrong = [
        special_token
        for special_token in vocabulary.special_tokens
        if allowed[special_token] and not (may_end and special_token in vocabulary.eos_tokens)
    ]
    if not wrong and not (may_end and token in vocabulary.eos_tokens) and grammar_object.accept_token(token):
        wrong = [token]
    who = "the mask allows" if wrong and allowed[wrong[0]] else "accept_token takes"
    texts = [
        f"after {spot.text[-40:]!r}, in free text, {who} the id of {vocabulary.special_tokens[token]!r}"
        for token in wrong[:1]
    ]
    return [_finding(subject, spot, text, "special_id_allowed", (*spot.tokens, wrong[0])) for text in texts]


def _refused_text(subject: Subject, spot: Spot, name: bytes) -> list[Finding] | None:
    """Returns a finding if the special token's name is refused where another text of its shape is taken,
    spelled by the tokenizer (and under the mask) or byte by byte; None if that text is refused too, or the
    vocabulary can spell none."""
    ids = subject.vocabulary.ids_by_bytes
    control = _control(subject, name)
    taken = False
    for look in (True, False):

        def spelled(text: bytes, look: bool = look) -> list[int]:
            return subject.vocabulary.encode(text) if look else [ids[bytes([byte])] for byte in text]

        refused = _first_refused(subject, spot, spelled(name), look)
        if refused is None:
            taken = True
        elif (
            control is not None
            and _first_refused(subject, spot, spelled(control), look) is None
            and _is_valid(subject, spot, name)
        ):
            before = subject.vocabulary.decode(refused[:-1])
            refusal = (
                f"after {before[-40:]!r}, {name_of(subject, refused[-1])} of the text {name!r} is "
                f"refused; {control!r} is taken there"
            )
            return [_finding(subject, spot, refusal, "special_text_refused", refused)]
    return [] if taken else None


def _finding(subject: Subject, spot: Spot, text: str, cause: str, walk: tuple[int, ...]) -> Finding:
    """Returns the finding about the last token of the walk."""
    return Finding(
        position=len(walk) - 1,
        text=text,
        cause=cause,
        instance=spot.instance,
        examples=subject.hex_of(walk[-1:]),
        walk=walk,
    )


def _control(subject: Subject, name: bytes) -> bytes | None:
    """Returns a text of the same shape that is no special token's and that the vocabulary can spell byte by
    byte; None if there is none."""
    specials = {special_token.encode() for special_token in subject.vocabulary.special_tokens.values()}
    turned = [LETTERS[shift:] + LETTERS[:shift] for shift in range(1, 26)]
    controls = [
        name.translate(bytes.maketrans(LETTERS + LETTERS.upper(), letters + letters.upper()))
        for letters in turned
    ]
    possible = (control for control in (*controls, b"x" * len(name)) if control not in specials)
    return next((control for control in possible if _has_all_bytes(subject.vocabulary, control)), None)


def _has_all_bytes(vocabulary: Vocabulary, text: bytes) -> bool:
    """Has the vocabulary a token for every single byte of the text?"""
    return all(bytes([byte]) in vocabulary.ids_by_bytes for byte in text)


def _first_refused(subject: Subject, spot: Spot, tokens: list[int], look: bool) -> tuple[int, ...] | None:
    """Returns the walk to the first token that is refused; the mask is looked at for these tokens only, if
    at all."""
    vocabulary = subject.vocabulary
    behind = [*vocabulary.encode(spot.behind), vocabulary.eos_token] if spot.behind else []
    walk = [*spot.tokens, *tokens, *behind]
    looked = range(len(spot.tokens), len(spot.tokens) + len(tokens) if look else 0)
    grammar_object = subject.compiled.start()
    for index, token in enumerate(walk):
        if (
            index in looked and not subject.allowed(grammar_object)[token]
        ) or not grammar_object.accept_token(token):
            return tuple(walk[: index + 1])
    return None
