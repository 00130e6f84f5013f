"""Jump-forward: what is said to be forced is forced, all of it is said, and saying so does no harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.backend.grammar import GrammarObject, overrides, shared_length
from harness.checks.documents import documents_of_case
from harness.checks.forced_by_masks import Objection, by_masks, by_trial
from harness.checks.forced_text import (
    Fault,
    as_bytes,
    as_tokens,
    ask,
    asked_at,
    cut,
    end_of,
    forced_by_reference,
    reference,
    why_refused,
)
from harness.checks.layouts import declared_layout
from harness.checks.looking import name_of
from harness.checks.readings import reading_of
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.automaton import DEAD, Automaton
from harness.oracle.forced_text.compressed_fsm import split_jump
from harness.rows.row import Finding
from harness.text import counted
from harness.walk.watched import collecting

CATEGORY = "jump-forward"

SHOWN_BYTES = 512


# Soundness


def check_forced_bytes_are_truly_forced(subject: Subject) -> Iterator[Finding]:
    """The bytes of `jump_forward` have no alternative, and the output cannot end before them."""
    for place, grammar_object, _ in asked_at(subject, "forced bytes", "jump_forward"):
        forced = ask(grammar_object.jump_forward, as_bytes)
        if isinstance(forced, Fault) or not forced:
            continue
        objection = _objection(subject, place, forced)
        if objection:
            yield _finding(subject, place, f"says that {cut(forced)} is forced", objection)


def check_fast_forward_tokens_are_truly_forced(subject: Subject) -> Iterator[Finding]:
    """The tokens of `fast_forward_tokens` spell forced bytes (which of their spellings is the backend's
    choice), and are accepted. Where tokens are meant by their ids, nothing but them may come by the mask."""
    for place, grammar_object, _ in asked_at(subject, "forced tokens", "fast_forward_tokens"):
        tokens = ask(grammar_object.fast_forward_tokens, as_tokens(subject.vocabulary.size))
        if isinstance(tokens, Fault) or not tokens:
            continue
        claim = f"says that the tokens {tokens[:12]} come next"
        ends = tokens[-1] in subject.vocabulary.eos_tokens
        forced = subject.vocabulary.decode(tokens)
        if subject.is_about_tokens:
            objection = by_masks(subject, place, tokens)
        elif not all(subject.vocabulary.tokens[token] for token in tokens[: len(tokens) - ends]):
            objection = Objection("special_token", "one of them is no text", b"")
        else:
            objection = _objection(subject, place, forced) or (
                _objection_to_the_end(subject, place, tokens, forced) if ends else None
            )
        if objection:
            yield _finding(subject, place, claim, objection)
            continue
        taken = grammar_object.accept_tokens(tokens)
        if taken < len(tokens):
            text = place.text + subject.vocabulary.decode(tokens[: taken + 1])
            objection = Objection(why_refused(subject, text), f"it accepts only {taken} of them", forced)
            yield _finding(subject, place, claim, objection)


def _objection(subject: Subject, place: Place, forced: bytes) -> Objection | None:
    language = reference(subject)
    if language is None:
        return by_trial(subject, place, forced)
    objection = _by_reference(subject, language, place, forced)
    if objection is None:
        return None
    # In another dialect it may be right.
    dialect = reading_of(
        subject, lambda other: other.forced(other.run(other.start, place.text), len(forced)) == forced
    )
    return replace(objection, cause=dialect or objection.cause)


def _by_reference(
    subject: Subject, language: Automaton[Any], place: Place, forced: bytes
) -> Objection | None:
    state = subject.state_of(place.text)
    if state == DEAD:
        return None  # the backend went where no sentence goes, which another check tells
    at = shared_length(language.forced(state, len(forced)), forced)
    if at == len(forced):
        return None
    here = language.run(state, forced[:at])
    possible = language.step(here, forced[at])
    other = next((byte for byte in np.flatnonzero(language.table[here]).tolist() if byte != forced[at]), None)
    if language.accepting(here) and (possible or other is None):
        cause = "past_a_possible_end" if possible else "impossible"
        return Objection(cause, f"the output may end after {cut(forced[:at])}", forced[:at], ends=True)
    assert other is not None  # no state is without both
    witness = forced[:at] + bytes([other])
    if possible:
        return Objection("past_a_choice", f"{cut(witness)} may come instead", witness)
    return Objection("impossible", f"{cut(forced[: at + 1])} cannot come, but {cut(witness)} can", witness)


def _objection_to_the_end(
    subject: Subject, place: Place, tokens: Sequence[int], forced: bytes
) -> Objection | None:
    """Is end-of-sequence, the last of the tokens, the only thing that may follow the others? Without a
    reference the backend's own mask tells."""
    language = reference(subject)
    if language is None:
        return _objection_of_the_mask(subject, place, tokens[:-1], forced)
    state = subject.state_of(place.text + forced)
    if state == DEAD:
        return None
    language.expand(np.array([state], dtype=np.int32))
    following = np.flatnonzero(language.table[state]).tolist()
    if not language.accepting(state):
        return Objection("impossible", "the output cannot end there", forced)
    witness = forced + bytes(following[:1])
    return (
        Objection("past_a_choice", f"the output may end there, or go on with {cut(witness)}", witness)
        if following
        else None
    )


def _objection_of_the_mask(
    subject: Subject, place: Place, tokens: Sequence[int], forced: bytes
) -> Objection | None:
    grammar_object = subject.reach((*place.tokens, *tokens))
    if grammar_object is None:
        return None
    allowed = np.flatnonzero(subject.allowed(grammar_object)).tolist()
    other = next((token for token in allowed if token not in subject.vocabulary.eos_tokens), None)
    if other is None:
        return None
    text = f"its mask allows {name_of(subject, other)} there too"
    return Objection("past_a_choice", text, forced, walk=(*tokens, other))


# Completeness


def check_forced_text_is_found(subject: Subject) -> Iterator[Finding]:
    """`jump_forward` finds all bytes that the reference says are forced; for each way to miss some, how many
    of how many.

    The reference of JSON Schema and structural tags is that of the backend's own layout; what its mask does
    not force is not forced there.
    """
    if not overrides(subject.compiled.start(), "jump_forward"):  # before the reference is made
        raise NotApplicable("no jump_forward")
    exact = reference(subject)
    language = exact or documents_of_case(
        subject.case, layout=declared_layout(subject), vocabulary=subject.vocabulary
    )
    bytes_forced = bytes_found = places = unanswered = 0
    missed: dict[str, list[tuple[int, Place, bytes, bytes]]] = {}
    with collecting() as late:
        for place, grammar_object, _ in asked_at(subject, "forced text", "jump_forward"):
            answer = ask(grammar_object.jump_forward, as_bytes)
            truth = language.forced(subject.state_behind(language, place.tokens))
            if isinstance(answer, Fault):
                unanswered += bool(truth)
                continue
            right = shared_length(truth, answer)
            if right < len(truth) and exact is None and by_trial(subject, place, truth) is not None:
                continue  # its layout is one of several in which it writes
            bytes_forced += len(truth)
            bytes_found += right
            places += bool(truth)
            if right < len(truth):
                cause = _why_missed(subject, place, truth, answer)
                missed.setdefault(cause, []).append((len(truth) - right, place, truth, answer))
    for cause, here in missed.items():
        _, place, truth, answer = max(here, key=lambda miss: miss[0])
        yield Finding(
            position=place.position,
            text=f"finds {bytes_found} of {bytes_forced} forced bytes; it misses some at {len(here)} of "
            f"{places} places, e.g. after "
            f"{place.text[-60:]!r} finds {cut(answer)} of {cut(truth)}",
            cause=cause,
            instance=place.instance,
            examples=(answer.hex(), truth[:SHOWN_BYTES].hex()),
            walk=place.tokens,
        )
    late.again()
    if not bytes_forced:
        raise NotApplicable(
            "it gives no answer where something is forced"
            if unanswered
            else "nothing is forced at these places"
        )


def _why_missed(subject: Subject, place: Place, truth: bytes, answer: bytes) -> str:
    """Returns the cause: `inside_a_character` if just a piece of one lacks, its end or its beginning;
    `starts_inside_a_character` if all lacks, where the place is inside one; else `incomplete`."""
    dialect = reading_of(subject, lambda other: other.forced(other.run(other.start, place.text)) == answer)
    if dialect:
        return dialect
    jump = split_jump(truth)
    right = shared_length(truth, answer)
    whole = len(jump.continuation) + len(jump.text.encode())
    if (truth[right:] == jump.begun and right == whole) or (truth == jump.continuation and not right):
        return "inside_a_character"
    return "starts_inside_a_character" if jump.continuation and not right else "incomplete"


# No harm


def check_forced_text_may_end_inside_a_character(subject: Subject) -> Iterator[Finding]:
    """Asking what is forced gives an answer everywhere, also where it begins or ends inside a character."""
    converts = _converts(subject)
    for place, grammar_object, methods in asked_at(subject, "forced text", *converts):
        for method in methods:
            answer: object = ask(getattr(grammar_object, method), converts[method])
            if isinstance(answer, Fault):
                truth = forced_by_reference(subject, place)
                after = f" (forced there: {cut(truth)})" if truth else ""
                yield Finding(
                    position=place.position,
                    text=f"after {place.text[-60:]!r}{after} {method} {answer.text}",
                    cause=answer.cause,
                    instance=place.instance,
                    examples=(truth[:SHOWN_BYTES].hex(),) if truth else (),
                    walk=place.tokens,
                )
                break  # the object may be broken now


def check_asking_for_forced_text_does_not_move(subject: Subject) -> Iterator[Finding]:
    """Mask, end and answer are the same before `jump_forward` and `fast_forward_tokens` as after them."""
    for place, grammar_object, methods in asked_at(
        subject, "forced text", "jump_forward", "fast_forward_tokens"
    ):
        for method in methods:
            wrong = _movement(subject, grammar_object, method)
            if wrong:
                yield Finding(
                    position=place.position,
                    text=f"after {place.text[-60:]!r} and {method}: {wrong}",
                    cause="moved",
                    instance=place.instance,
                    walk=place.tokens,
                )
                break


def _converts(subject: Subject) -> dict[str, Callable[[Any], Any]]:
    """Returns, for each method that says what is forced, what reads its answer."""
    return {"jump_forward": as_bytes, "fast_forward_tokens": as_tokens(subject.vocabulary.size)}


def _movement(subject: Subject, grammar_object: GrammarObject, method: str) -> str:
    """Returns what asking has changed; empty if nothing."""
    convert = _converts(subject)[method]

    def asked() -> object:
        return ask(getattr(grammar_object, method), convert)

    before, end_before = subject.allowed(grammar_object), end_of(grammar_object)
    first = asked()
    after, end_after = subject.allowed(grammar_object), end_of(grammar_object)
    if (before != after).any():
        return f"the mask has changed in {counted(int((before != after).sum()), 'token')}"
    if end_before != end_after:
        return f"(accepting, terminated) has changed from {end_before} to {end_after}"
    second = asked()
    return "" if first == second else f"it says {str(first)[:80]}, then {str(second)[:80]}"


def _finding(subject: Subject, place: Place, claim: str, objection: Objection) -> Finding:
    """Returns the finding that what the backend `said` is not so; its walk is the objection's witness."""
    walk = objection.walk
    if walk is None:
        end = (subject.vocabulary.eos_token,) if objection.ends else ()
        walk = (*(subject.spell(objection.witness) or ()), *end)
    return Finding(
        position=place.position,
        text=f"after {place.text[-60:]!r} it {claim}, but {objection.text}",
        cause=objection.cause,
        instance=place.instance,
        examples=(objection.witness.hex(),),
        walk=(*place.tokens, *walk),
    )
