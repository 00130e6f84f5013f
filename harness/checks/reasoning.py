"""Requests that think first: the grammar begins behind the end of the thinking, whatever came before, and
however the tokens come. docs/reasoning.md has the definition.

An engine has its own means for this (`Adapter.reasoning`). Other backends have none: to them drafts and
rollbacks over the end come by ours, because their objects go back to the start there; of the rest nothing
could be found that is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from harness.backend.contract.place import accepted, take_back
from harness.backend.grammar import GrammarObject, allocate_bitmask, overrides, unpack_mask
from harness.checks.drafts import fed
from harness.checks.looking import change, look, name_of
from harness.checks.subject import NotApplicable, Subject
from harness.checks.thoughts import Thought, thoughts, thoughts_reached, without_an_end
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding

CATEGORY = "reasoning"


def check_reasoning_is_not_constrained(subject: Subject) -> Iterator[Finding]:
    """While it thinks, every token of text is allowed and taken, nothing is forced, and the object has not
    ended: also where the thinking holds a trigger, or a whole output."""
    for thought in thoughts(subject, "reasoning_is_not_constrained"):
        grammar_object, wanted = thought.compiled.start(), _stops(subject, len(thought.thinking))
        for position in range(thought.begun):
            if position in wanted:
                wrong = list(thought.wrong(position, grammar_object, "in the thinking"))
                forced = (grammar_object.jump_forward(), grammar_object.fast_forward_tokens())
                if not wrong and any(forced):
                    wrong = [thought.finding(position, f"{forced!r} is forced", cause="constrained")]
                yield from wrong
                if wrong:
                    break
            token = thought.tokens[position]
            if not grammar_object.accept_token(token):
                text = f"{name_of(subject, token)} is refused while it thinks"
                yield thought.finding(position, text, (token,), "constrained")
                break


def check_the_output_does_not_end_while_it_reasons(subject: Subject) -> Iterator[Finding]:
    """End-of-sequence is not allowed before the thinking has ended: the output would have no answer."""
    purpose = "the_output_does_not_end_while_it_reasons"
    for thought, grammar_object in thoughts_reached(subject, purpose, lambda thought: len(thought.thinking)):
        for position, at_place in ((0, thought.compiled.start()), (len(thought.thinking), grammar_object)):
            allowed = subject.allowed(at_place)
            ends = [eos for eos in subject.vocabulary.eos_tokens if allowed[eos]]
            if ends:
                text = "end-of-sequence is allowed while it thinks"
                yield thought.finding(position, text, (ends[0],), "end_of_sequence")
                return


def check_the_answer_begins_behind_the_end_of_reasoning(subject: Subject) -> Iterator[Finding]:
    """Right behind the end of the thinking, and along the answer, the masks are those of the grammar without
    any thinking, whatever the thinking held."""
    for thought in thoughts(subject, "the_answer_begins_behind_the_end_of_reasoning"):
        grammar_object = thought.reach(thought.begun)
        if grammar_object is None:
            yield thought.finding(0, "a token of the thinking or of its end is refused", walk=thought.tokens)
            continue
        wanted = {thought.begun + at for at in _stops(subject, len(thought.answer.tokens))}
        for position in range(thought.begun, len(thought.tokens) + 1):
            wrong: list[Finding] = []
            if position in wanted:
                wrong = list(thought.wrong(position, grammar_object, "behind the thinking"))
            if not wrong and position < len(thought.tokens):
                token = thought.tokens[position]
                if not grammar_object.accept_token(token):
                    wrong = [thought.finding(position, f"{name_of(subject, token)} is refused", (token,))]
            yield from wrong
            if wrong:
                break


def check_only_the_first_end_of_reasoning_counts(subject: Subject) -> Iterator[Finding]:
    """A second end in the answer is the grammar's to allow or to refuse, and what follows is as without any
    thinking."""
    purpose = "only_the_first_end_of_reasoning_counts"
    for thought, _ in thoughts_reached(subject, purpose, lambda thought: thought.begun):
        for at in sorted(_stops(subject, len(thought.answer.tokens))):
            position = thought.begun + at
            grammar_object, plain = thought.reach(position), subject.reach(thought.answer.tokens[:at])
            if grammar_object is None or plain is None:
                break  # the_answer_begins_behind_the_end_of_reasoning reports it
            taken, expected = accepted(grammar_object, thought.end), accepted(plain, thought.end)
            text = "the end of the thinking comes a second time"
            if taken != expected:
                sentence = f"{text}: {taken} of its ids are taken, and {expected} without thinking"
                yield thought.finding(position, sentence, thought.end)
                break
            if expected < len(thought.end):
                continue  # what an object is worth behind a refusal is no matter of the thinking
            there, now = look(subject, plain), look(subject, grammar_object)
            if now != there:
                sentence = f"{text}, and is taken: {change(subject, there, now)}"
                yield thought.finding(position, sentence, thought.end)
                break


def check_a_draft_may_cross_the_end_of_reasoning(subject: Subject) -> Iterator[Finding]:
    """The masks along a draft with the end of the thinking in it are open up to there and the grammar's
    behind it; trying it moves nothing, any number of its tokens may be taken in one call, and nothing behind
    end-of-sequence."""

    def before_the_end(thought: Thought) -> int:
        return max(0, len(thought.thinking) - 2)

    purpose = "a_draft_may_cross_the_end_of_reasoning"
    for thought, reached in thoughts_reached(subject, purpose, before_the_end, ours=True):
        start, grammar_object = before_the_end(thought), reached
        draft = thought.tokens[start : thought.begun + thought.answer.allowed]
        masks = _tried(subject, grammar_object, draft)
        wrong: list[Finding] = []
        for ahead, allowed in enumerate(masks or ()):
            wrong = wrong or list(thought.wrong_mask(start + ahead, allowed, f"in a draft from {start} on"))
        if masks is not None and len(masks) <= len(draft) and not wrong:
            position = start + len(masks) - 1
            text = f"in a draft from {start} on, {name_of(subject, draft[len(masks) - 1])} may not come"
            wrong = [thought.finding(position, text, draft[len(masks) - 1 :][:1])]
        wrong = wrong or list(thought.wrong(start, grammar_object, "once a draft was tried"))
        for count in sorted(_stops(subject, len(draft)) - {0}, reverse=True):  # first where it was tried
            if wrong:
                break
            taken = grammar_object.accept_tokens(list(draft[:count]))
            how = f"once {count} drafted tokens were taken in one call"
            if taken < count:
                wrong = [thought.finding(start, f"{taken} of {count} drafted tokens are taken", draft)]
            else:
                wrong = list(thought.wrong(start + count, grammar_object, how))
            fresh = thought.reach(start)
            if fresh is None:
                break  # the same tokens are refused: objects_of_one_grammar_are_independent reports it
            grammar_object = fresh
        yield from wrong or _ended_in_a_draft(thought, start)


def _ended_in_a_draft(thought: Thought, start: int) -> Iterator[Finding]:
    """Yields a finding if a draft that holds the end of the thinking, a whole answer, end-of-sequence and
    more is taken otherwise than up to end-of-sequence; raising for what is behind it is fine."""
    grammar_object, answer = thought.reach(start), thought.answer
    if grammar_object is None or not answer.is_whole or not answer.look(len(answer.tokens)).accepting:
        return
    ending = (*thought.tokens[start:], thought.subject.vocabulary.eos_token)
    try:
        taken = grammar_object.accept_tokens([*ending, *answer.tokens[:1], ending[-1]])
    except Exception:
        grammar_object = thought.reach(start)
        taken = grammar_object.accept_tokens(list(ending)) if grammar_object is not None else len(ending)
    if taken != len(ending):
        text = f"of a draft with end-of-sequence as number {len(ending)}, {taken} tokens are taken"
        yield thought.finding(start, text, ending)
    elif grammar_object is not None and not grammar_object.is_terminated():
        yield thought.finding(start, "end-of-sequence in a draft is taken, and it has not ended", ending)


def _tried(subject: Subject, grammar_object: GrammarObject, draft: Sequence[int]) -> list[TokenSet] | None:
    """Returns the masks along a draft, up to the token that its mask forbids; None if the object cannot try
    one. An engine's own way of trying is taken where there is one."""
    if overrides(grammar_object, "fill_draft") and subject.adapter.mask_format == "bitmask":
        size = subject.vocabulary.size
        bitmasks = np.stack([allocate_bitmask(size) for _ in range(len(draft) + 1)])
        count = grammar_object.fill_draft(draft, bitmasks)
        return [unpack_mask(row, size) for row in bitmasks[: count + 1]]
    if not overrides(grammar_object, "rollback"):
        return None
    masks = [subject.allowed(grammar_object)]
    for token in draft:
        if not masks[-1][token] or not grammar_object.accept_token(token):
            break
        masks.append(subject.allowed(grammar_object))
    if len(masks) > 1:
        take_back(grammar_object, len(masks) - 1)
    return masks


def check_rollback_crosses_the_end_of_reasoning(subject: Subject) -> Iterator[Finding]:
    """Taken back over the end of the thinking, or to the middle of it, the output thinks on; its next end
    begins the grammar anew."""
    purpose = "rollback_crosses_the_end_of_reasoning"
    for thought, grammar_object in thoughts_reached(
        subject, purpose, lambda thought: len(thought.tokens), ours=True
    ):
        length = len(thought.tokens)
        if not overrides(grammar_object, "rollback"):
            raise NotApplicable("the adapter does not implement rollback")
        inside = sorted({0, len(thought.thinking), thought.begun - 1, thought.begun, thought.begun + 1})
        for position in (position for position in inside if position < length):
            how = f"reached by rollback({length - position}) from position {length}"
            take_back(grammar_object, length - position)
            wrong = list(thought.wrong(position, grammar_object, how))
            if not wrong and position < thought.begun:  # think on, and end anew
                before = thought.tokens[:position]
                further = without_an_end(subject, thought.end, before, thought.thinking[:3])
                more = (*further, *thought.end)
                if (taken := accepted(grammar_object, more)) < len(more):
                    text = f"{how}, {taken} of {len(more)} further tokens of thinking are taken"
                    wrong = [thought.finding(position, text, more)]
                else:
                    how = f"{how}, and having thought on"
                    wrong = list(thought.wrong(thought.begun, grammar_object, how))
                    take_back(grammar_object, len(more))
            rest = thought.tokens[position:]
            if not wrong and (taken := accepted(grammar_object, rest)) < len(rest):
                wrong = [thought.finding(position, f"{how}, {taken} of {len(rest)} are taken again", rest)]
            yield from wrong or thought.wrong(length, grammar_object, f"reached again, {how}")
            if wrong:
                break


def check_a_request_that_reasons_is_taken_up_anew(subject: Subject) -> Iterator[Finding]:
    """A fresh object that is fed the ids so far, at once or one by one, thinks or answers where the output
    did."""
    for thought in thoughts(subject, "a_request_that_reasons_is_taken_up_anew"):
        places = {len(thought.thinking), thought.begun - 1, thought.begun, thought.begun + 1}
        for position in sorted({min(place, len(thought.tokens)) for place in (*places, thought.begun + 9)}):
            tokens, wrong = thought.tokens[:position], list[Finding]()
            for way, count, fresh in fed(thought.compiled.start, tokens):
                if count < len(tokens):
                    wrong = [
                        thought.finding(position, f"fed the ids {way}, {count} of {len(tokens)} are taken")
                    ]
                wrong = wrong or list(thought.wrong(position, fresh, f"fed the ids {way}"))
            yield from wrong
            if wrong:
                break


def _stops(subject: Subject, length: int) -> set[int]:
    """Returns where to look along so many tokens: at the start, the end and behind the first, and with the
    effort `all` everywhere."""
    return set(range(length + 1)) if subject.effort is None else {0, min(1, length), length // 2, length}
