"""A backend that is the reference automaton itself, and ones that jump wrongly, each in one way."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    UnsupportedGrammar,
)
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.choice import choice_automaton
from harness.oracle.forced_text.retokenize import follows_from, retokenize
from harness.oracle.language import language_of
from harness.oracle.trie import trie_of

JUMPERS: dict[type[Adapter], dict[str, set[str]]] = {}
"""Each wrong adapter, and the names of exactly the checks that find something, with the causes that they
give."""


def jumping_vocabulary() -> Vocabulary:
    """Bytes, longer tokens across characters and inside them, specials; tokenizes by longest match."""
    texts = ["ab", "abc", "cd", " p", "please", "日本", "本語", "x😀", "e, ", "s, p"]
    pieces = ["日本".encode()[:4], "😀".encode()[:3], "語".encode()[1:]]
    tokens = (*(bytes([byte]) for byte in range(256)), *(text.encode() for text in texts), *pieces, b"", b"")
    return Vocabulary(
        "jumping", tokens, (len(tokens) - 2,), {len(tokens) - 2: "</s>", len(tokens) - 1: "<tool>"}
    )


class ExactObject(GrammarObject):
    """The automaton's state after each token."""

    def __init__(self, grammar: ExactGrammar) -> None:
        self.grammar = grammar
        self.language = grammar.language
        self.vocabulary = grammar.vocabulary
        self.taken: list[int] = []
        self.states = [self.language.start]
        self.terminated = False

    @property
    def state(self) -> int:
        return self.states[-1]

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bits = np.zeros(len(bitmask) * 32, dtype=np.bool_)
        bits[: self.vocabulary.size] = trie_of(self.vocabulary).mask(self.language, self.state)
        bitmask[:] = np.packbits(bits, bitorder="little").view(np.int32)

    def accept_token(self, token: int) -> bool:
        ends = token == self.vocabulary.eos_token
        text = self.vocabulary.tokens[token]
        after = self.language.run(self.state, text) if text else DEAD
        if self.terminated or (not self.is_accepting() if ends else after == DEAD):
            return False
        self.terminated = ends
        self.taken.append(token)
        self.states.append(self.state if ends else after)
        return True

    def is_accepting(self) -> bool:
        return self.language.accepting(self.state)

    def is_terminated(self) -> bool:
        return self.terminated

    def rollback(self, count: int) -> None:
        self.terminated = self.terminated and not count
        del self.taken[len(self.taken) - count :], self.states[len(self.states) - count :]

    def jump_forward(self) -> bytes:
        return self.language.forced(self.state)

    def fast_forward_tokens(self) -> list[int]:
        forced = self.language.forced(self.state)
        follows = follows_from(self.language, self.language.run(self.state, forced))
        keep, ids = retokenize(self.vocabulary, self.taken, forced, follows=follows)
        return ids if keep == len(self.taken) else []


class ExactGrammar(CompiledGrammar):
    def __init__(self, adapter: Exact, language: Automaton[Any]) -> None:
        self.adapter = adapter
        self.vocabulary = adapter.vocabulary
        self.language = language

    def start(self) -> ExactObject:
        return self.adapter.object_class(self)


class Exact(Adapter):
    """All dialects that have a reference automaton, and the JSON Schema `enum`, for which the checks have
    none."""

    distribution = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset({"regex", "ebnf", "choice", "json_schema"})
    object_class: ClassVar[type[ExactObject]] = ExactObject

    def compile(self, grammar: Grammar) -> ExactGrammar:
        try:
            if grammar.dialect == "json_schema":
                texts = [json.dumps(value, ensure_ascii=False) for value in json.loads(grammar.text)["enum"]]
                return ExactGrammar(self, choice_automaton(json.dumps(texts)))
            return ExactGrammar(self, language_of(grammar))
        except NoOracle as why:
            raise UnsupportedGrammar(str(why)) from why


def registers(
    table: dict[type[Adapter], dict[str, set[str]]], /, **causes_by_check: str
) -> Callable[[type[ExactObject]], type[ExactObject]]:
    """Enters an adapter with objects of this class; `who="cause cause"` for each that finds something."""

    def register(wrong: type[ExactObject]) -> type[ExactObject]:
        table[type(wrong.__name__, (Exact,), {"object_class": wrong})] = {
            name: set(causes.split()) for name, causes in causes_by_check.items()
        }
        return wrong

    return register


found_by = partial(registers, JUMPERS)
"""Enters an adapter into JUMPERS with the causes that each check finds."""


# Unsound


@found_by(forced_bytes_are_truly_forced="past_a_choice")
class JumpsPastAChoice(ExactObject):
    """The first branch is as good as any."""

    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        after = self.language.run(self.state, forced)
        self.language.step(after, 0)
        following = np.flatnonzero(self.language.table[after])
        return (
            forced + bytes(following[:1].tolist())
            if len(following) > 1 and not self.language.accepting(after)
            else forced
        )


@found_by(forced_bytes_are_truly_forced="past_a_possible_end")
class JumpsPastAPossibleEnd(ExactObject):
    """The only byte that can follow is taken for the only way to go on."""

    def jump_forward(self) -> bytes:
        forced = bytearray()
        state = self.state
        while True:
            self.language.step(state, 0)
            following = np.flatnonzero(self.language.table[state]).tolist()
            if len(following) != 1:
                return bytes(forced)
            forced += bytes(following)
            state = self.language.step(state, following[0])


@found_by(forced_bytes_are_truly_forced="impossible")
class JumpsIntoNothing(ExactObject):
    def jump_forward(self) -> bytes:
        return super().jump_forward() + b"\x01"


# Incomplete


@found_by(forced_text_is_found="incomplete inside_a_character")
class DropsHalf(ExactObject):
    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        return forced[: len(forced) // 2]


@found_by(forced_text_is_found="inside_a_character")
class DropsTheBeginningOfACharacter(ExactObject):
    """A string cannot hold it."""

    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        start = next((at for at, byte in enumerate(forced) if not 0x80 <= byte < 0xC0), len(forced))
        return forced[:start] + forced[start:].decode(errors="ignore").encode()


@found_by(forced_text_is_found="starts_inside_a_character inside_a_character")
class FindsNothingInsideACharacter(ExactObject):
    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        return b"" if forced and 0x80 <= forced[0] < 0xC0 else forced


# Harmful


@found_by(forced_text_may_end_inside_a_character="unicode_decode_error")
class HasStringsOnly(ExactObject):
    def jump_forward(self) -> bytes:
        return super().jump_forward().decode().encode()


@found_by(forced_text_may_end_inside_a_character="raised")
class PanicsWhereNothingIsForced(ExactObject):
    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        if not forced:
            raise BaseException("panicked at 'called `Option::unwrap()` on a `None` value'")
        return forced


@found_by(forced_text_may_end_inside_a_character="not_bytes")
class GivesText(ExactObject):
    def jump_forward(self) -> bytes:
        text: Any = super().jump_forward().decode(errors="replace")
        answer: bytes = text
        return answer


@found_by(forced_text_may_end_inside_a_character="not_tokens")
class GivesTokensThatAreNone(ExactObject):
    jump_forward = GrammarObject.jump_forward  # it has no bytes, so that a decoding asks for its tokens

    def fast_forward_tokens(self) -> list[int]:
        return [self.vocabulary.size]


@found_by(asking_for_forced_text_does_not_move="moved")
class MovesOnJump(ExactObject):
    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        self.states[-1] = self.language.run(self.state, forced)
        return forced


@found_by(asking_for_forced_text_does_not_move="moved")
class EndsOnFastForward(ExactObject):
    def fast_forward_tokens(self) -> list[int]:
        tokens = super().fast_forward_tokens()
        self.terminated = bool(tokens)
        return tokens

    def accept_token(self, token: int) -> bool:
        self.terminated = False
        return super().accept_token(token)


@found_by(asking_for_forced_text_does_not_move="moved")
class AnswersOnce(ExactObject):
    asked = False

    def jump_forward(self) -> bytes:
        forced = b"" if self.asked else super().jump_forward()
        self.asked = True
        return forced


# Tokens


@found_by(fast_forward_tokens_are_truly_forced="past_a_choice past_a_possible_end")
class FastForwardsTheWholeFirstBranch(ExactObject):
    def fast_forward_tokens(self) -> list[int]:
        text, state = b"", self.state
        for _ in range(40):
            byte = next((byte for byte in range(256) if self.language.step(state, byte)), None)
            if byte is None:
                break
            text += bytes([byte])
            state = self.language.step(state, byte)
        return self.vocabulary.encode(text)


@found_by(fast_forward_tokens_are_truly_forced="impossible past_a_choice")
class FastForwardsTheEnd(ExactObject):
    def fast_forward_tokens(self) -> list[int]:
        return [*self.vocabulary.encode(self.language.forced(self.state)), self.vocabulary.eos_token]


@found_by(fast_forward_tokens_are_truly_forced="special_token")
class FastForwardsASpecialToken(ExactObject):
    def fast_forward_tokens(self) -> list[int]:
        return [self.vocabulary.size - 1, *super().fast_forward_tokens()]


@found_by(fast_forward_tokens_are_truly_forced="refused partial_utf8")
class RefusesItsOwnTokens(ExactObject):
    """It counts on being asked for the tokens that it forces, and never looks at them again."""

    asked = False

    def fast_forward_tokens(self) -> list[int]:
        self.asked = True
        return super().fast_forward_tokens()

    def accept_token(self, token: int) -> bool:
        return not self.asked and super().accept_token(token)


# Jumping


@found_by(retokenized_state_equals_a_replay="state")
class RollsBackNothing(ExactObject):
    def rollback(self, count: int) -> None:
        pass


@found_by(retokenized_state_equals_a_replay="state")
class RollsBackOneTooFew(ExactObject):
    def rollback(self, count: int) -> None:
        super().rollback(count - 1)


@found_by(retokenized_state_equals_a_replay="state")
class RemembersTheEndOverARollback(ExactObject):
    went_back = False

    def rollback(self, count: int) -> None:
        super().rollback(count)
        self.went_back = True

    def is_accepting(self) -> bool:
        return self.went_back or super().is_accepting()


@found_by(retokenized_state_equals_a_replay="refused")
class TakesNoLongTokens(ExactObject):
    """Along forced text it takes tokens of at most three bytes."""

    def accept_token(self, token: int) -> bool:
        return len(self.vocabulary.tokens[token]) < 4 and super().accept_token(token)

    def fast_forward_tokens(self) -> list[int]:
        return []


@found_by(retokenized_state_equals_a_replay="partial_utf8")
class TakesWholeCharactersOnly(ExactObject):
    def accept_token(self, token: int) -> bool:
        try:
            self.vocabulary.decode([*self.taken, token]).decode()
        except UnicodeDecodeError:
            return False
        return super().accept_token(token)

    def fast_forward_tokens(self) -> list[int]:
        return []


@found_by(retokenized_state_equals_a_replay="backend_error")
class CannotGoBackFar(ExactObject):
    def rollback(self, count: int) -> None:
        if count > 2:
            raise RuntimeError("no history left")
        super().rollback(count)
