"""A backend with the methods of SGLang's grammars, written for the tests from the documented names, and wrong
ones.

Behind each is the reference automaton, so that what is wrong is the wrapper's alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from harness.backend.bridge.from_sglang import SGLangAdapter
from harness.backend.grammar import Grammar, GrammarObject
from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference


class StandIn:
    """One request's grammar; it refuses by raising."""

    def __init__(self, vocabulary: Vocabulary, inner: GrammarObject) -> None:
        self.vocabulary, self.inner = vocabulary, inner
        self.words = (vocabulary.size + 31) // 32

    def accept_token(self, token: int) -> Any:
        if not self.inner.accept_token(token):
            raise ValueError(f"not accepted: {token}")

    def rollback(self, k: int) -> None:
        self.inner.rollback(k)

    def is_terminated(self) -> bool:
        return self.inner.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: str) -> torch.Tensor:
        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        self.inner.fill_bitmask(vocab_mask[idx].numpy())

    def copy(self) -> StandIn:
        return type(self)(self.vocabulary, self.inner.copy())

    def try_jump_forward(self, tokenizer: object) -> tuple[list[int], str] | None:
        return None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return helper[1], -1


class Refused:
    """What stands for a grammar that did not compile."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message


class Backend:
    """The engine's side: the arguments of its wrappers, and one way in for all kinds of grammars.

    `tokenizer` is a vocabulary here.
    """

    grammar_class: type[StandIn] = StandIn

    def __init__(self, tokenizer: Vocabulary, **options: object) -> None:
        self.reference, self.options = Reference(tokenizer), options

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        kind, text = key
        dialect: Any = kind
        if dialect not in Reference.dialects:
            return Refused(f"{kind} is not supported")
        try:
            compiled = self.reference.compile(Grammar(dialect, text))
        except Exception as error:
            return Refused(f"wrong: {error}")
        return self.grammar_class(self.reference.vocabulary, compiled.start())

    def dispatch_regex(self, key_string: str) -> Any:
        return self._init_value_dispatch(("regex", key_string), False)

    def dispatch_ebnf(self, key_string: str) -> Any:
        return self._init_value_dispatch(("ebnf", key_string), False)

    def dispatch_json(self, key_string: str) -> Any:
        return self._init_value_dispatch(("json", key_string), False)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        return self._init_value_dispatch(("structural_tag", key_string), False)


class Unchecked(Backend):
    """Reads a request's text before it looks whether it can be read."""

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        compiled = super()._init_value_dispatch(key, require_reasoning)
        if isinstance(compiled, Refused) and compiled.error_message.startswith("wrong"):
            raise AttributeError("no such attribute")
        return compiled


class TakesAll(StandIn):
    """A state machine that is never asked whether there is a way on."""

    def accept_token(self, token: int) -> None:
        self.inner.accept_token(token)


class BreaksOnRefusal(StandIn):
    """A refusal leaves the parser in an error, which every later call raises."""

    broken = False

    def accept_token(self, token: int) -> None:
        self.broken = self.broken or not self.inner.accept_token(token)
        self.raise_error()

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        super().fill_vocab_mask(vocab_mask, idx)
        self.raise_error()

    def raise_error(self) -> None:
        if self.broken:
            raise ValueError("the parser is in an error")


class NeverGoesBack(StandIn):
    """The base class's rollback."""

    def rollback(self, k: int) -> None:
        raise NotImplementedError


class GoesBackOneLess(StandIn):
    """Its count of tokens does not include the last."""

    def rollback(self, k: int) -> None:
        super().rollback(k - 1)


class AddsToMask(StandIn):
    """Sets bits, and clears none: whose mask was there before shows."""

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        before = vocab_mask[idx].clone()
        super().fill_vocab_mask(vocab_mask, idx)
        vocab_mask[idx] |= before


class AllowsSpecials(StandIn):
    """Special tokens are spelled like text to it."""

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        super().fill_vocab_mask(vocab_mask, idx)
        for token in self.vocabulary.special_tokens.keys() - {self.vocabulary.eos_token}:
            vocab_mask[idx].numpy().view(np.uint32)[token // 32] |= np.uint32(1 << token % 32)


class SharesItsCopies(StandIn):
    """A copy has the original's parser."""

    def copy(self) -> StandIn:
        return type(self)(self.vocabulary, self.inner)


class ReasonerGrammar:
    """A grammar that begins behind the first end of the thinking. While it thinks, a mask is left alone."""

    def __init__(self, grammar: StandIn, end: list[int]) -> None:
        self.grammar, self.end, self.ids, self.thinks_first = grammar, end, list[int](), False

    def maybe_init_reasoning(self, reasoning: bool) -> None:
        self.thinks_first = reasoning

    def answered(self) -> int | None:
        """Returns how many ids came behind the thinking; None while it thinks."""
        if not self.thinks_first:
            return len(self.ids)
        for at in range(len(self.end), len(self.ids) + 1):
            if self.ids[at - len(self.end) : at] == self.end:
                return len(self.ids) - at
        return None

    def accept_token(self, token: int) -> None:
        if self.answered() is not None:
            self.grammar.accept_token(token)
        self.ids.append(token)

    def rollback(self, k: int) -> None:
        back = min(k, self.answered() or 0)
        if back:
            self.grammar.rollback(back)
        del self.ids[len(self.ids) - k :]

    def is_terminated(self) -> bool:
        return self.answered() is not None and self.grammar.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: str) -> torch.Tensor:
        return self.grammar.allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        if self.answered() is not None:
            self.grammar.fill_vocab_mask(vocab_mask, idx)

    def copy(self) -> ReasonerGrammar:
        return type(self)(self.grammar.copy(), self.end)

    def try_jump_forward(self, tokenizer: object) -> tuple[list[int], str] | None:
        return None


class NeverTakesItsGrammarBack(ReasonerGrammar):
    """A rollback over the end of the thinking leaves the grammar where it is."""

    def rollback(self, k: int) -> None:
        answered = self.answered()
        if answered is not None and k > answered:
            del self.ids[len(self.ids) - k :]
        else:
            super().rollback(k)


class ShowsTheEndToItsGrammar(ReasonerGrammar):
    """What the grammar takes of the thinking, it is shown."""

    def accept_token(self, token: int) -> None:
        if self.answered() is None:
            self.grammar.inner.accept_token(token)
        super().accept_token(token)


class ReasonerGrammarBackend:
    """The engine's backend of grammars that think first, around another."""

    grammar_class: type[ReasonerGrammar] = ReasonerGrammar

    def __init__(self, grammar_backend: Backend, reasoning_parser: Any, tokenizer: Any) -> None:
        self.grammar_backend = grammar_backend
        self.end = reasoning_parser.detector.get_think_end_token_ids(tokenizer)

    def _init_value_dispatch(self, key: tuple[str, str], reasoning: bool) -> Any:
        found = self.grammar_class(self.grammar_backend._init_value_dispatch(key, reasoning), self.end)
        found.maybe_init_reasoning(reasoning)
        return found


class Wrapped(SGLangAdapter):
    """A stand-in as an adapter."""

    backend_class: type[Backend] = Backend
    grammar_class: type[StandIn] = StandIn

    def make_backend(self) -> Backend:
        backend = self.backend_class(self.vocabulary)
        backend.grammar_class = self.grammar_class
        return backend


def wrapped(grammar_class: type[StandIn] = StandIn, backend_class: type[Backend] = Backend) -> type[Wrapped]:
    """Returns an adapter class for this combination."""
    chosen = grammar_class if grammar_class is not StandIn else backend_class
    return type(
        f"Stand{chosen.__name__}",
        (Wrapped,),
        {"grammar_class": grammar_class, "backend_class": backend_class},
    )
