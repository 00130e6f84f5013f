"""The most that jumping forward can gain along one output: three ceilings, counted with the true masks and
the true forced bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from harness.oracle.automaton import DEAD, Automaton
from harness.oracle.forced_text.compressed_fsm import JumpMap
from harness.oracle.forced_text.retokenize import follows_from, retokenize
from harness.oracle.trie import TokenTrie


@dataclass(frozen=True)
class Ceilings:
    """Counts along outputs; they add up over outputs.

    End-of-sequence is no step, and a mask of it alone forces no token.
    """

    steps: int = 0
    """Tokens of the output up to the first that the language refuses."""
    singletons: int = 0
    """Steps whose mask has exactly one token. A decoder that only looks at the mask saves these."""
    bytes: int = 0
    forced_bytes: int = 0
    """Bytes that had no alternative. A decoder that jumps over text saves these, whatever tokens the text
    becomes."""
    fast_forward: int = 0
    """Tokens that can be emitted without asking the model, such that the ids stay canonical
    (`retokenize`)."""

    def __add__(self, other: Ceilings) -> Ceilings:
        return Ceilings(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def singleton_share(self) -> float | None:
        """Returns the share of the steps whose mask has one token; None if there are no steps."""
        return self.singletons / self.steps if self.steps else None

    @property
    def forced_byte_share(self) -> float | None:
        return self.forced_bytes / self.bytes if self.bytes else None

    @property
    def fast_forward_share(self) -> float | None:
        return self.fast_forward / self.steps if self.steps else None


def ceilings(language: Automaton[Any], trie: TokenTrie, tokens: Sequence[int]) -> Ceilings:
    """Returns the three ceilings along one output, up to the first token that the language refuses.

    One true mask a step, and one tokenization of the output so far where something is forced. Raises NoOracle
    if the automaton becomes too large.
    """
    states = list(_states(language, trie, tokens))
    walked = tokens[: len(states) - 1]
    text = trie.vocabulary.decode(walked)
    singletons = sum(_is_singleton(language, trie, state) for state in states[: len(walked)])
    return Ceilings(
        len(walked),
        singletons,
        len(text),
        _forced_bytes(language, text),
        _fast_forward(JumpMap(language), trie, walked, states),
    )


def _states(language: Automaton[Any], trie: TokenTrie, tokens: Sequence[int]) -> Iterator[int]:
    """Yields the automaton's states before each token and after the last, up to the first token that is
    refused."""
    state = language.start
    yield state
    for token in tokens:
        text = trie.vocabulary.tokens[token]
        state = language.run(state, text) if text else DEAD
        if state == DEAD:
            return
        yield state


def _is_singleton(language: Automaton[Any], trie: TokenTrie, state: int) -> bool:
    mask = trie.mask(language, state)
    return int(mask.sum()) == 1 and not mask[list(trie.vocabulary.eos_tokens)].any()


def _forced_bytes(language: Automaton[Any], text: bytes) -> int:
    count, state = 0, language.start
    for byte in text:
        count += len(language.forced(state, 1))
        state = language.step(state, byte)
    return count


def _fast_forward(jumps: JumpMap, trie: TokenTrie, tokens: Sequence[int], states: Sequence[int]) -> int:
    """Counts the tokens that a decoder emits without the model: it emits what it can, then lets the model
    choose one token, and so on.

    Ids that are not those of the output itself end a jump: the decoder would have gone another way from
    there.
    """
    count = at = 0
    while at < len(tokens):
        jumped = 0
        forced = jumps.jump_bytes(states[at])
        if forced:
            follows = follows_from(jumps.automaton, jumps.automaton.run(states[at], forced))
            keep, ids = retokenize(trie.vocabulary, tokens[:at], forced, follows=follows)
            if keep == at:
                ahead = tokens[at : at + len(ids)]
                jumped = next(
                    (same for same, pair in enumerate(zip(ids, ahead, strict=False)) if pair[0] != pair[1]),
                    len(ahead),
                )
        count += jumped
        at += jumped or 1
    return count
