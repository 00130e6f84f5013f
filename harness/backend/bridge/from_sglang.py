"""A backend written for SGLang becomes an adapter.

    class Foo(SGLangAdapter):
        distribution = "foo"

        def make_backend(self) -> SGLangBackend:
            return FooGrammarBackend(tokenizer, vocab_size=self.vocabulary.size)

or `Foo = adapt_sglang(make_backend)`. A backend is known by its methods only; SGLang need not be installed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.backend.bridge.twins import NO_TWINS, Twins
from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    MaskFormat,
    UnsupportedGrammar,
    is_allowed,
    is_bool,
    pack_mask,
    unpack_mask,
)
from harness.backend.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

SGLangGrammar = Any
"""An object with SGLang's `BaseGrammarObject` methods, or what stands for a grammar that did not compile."""


class SGLangBackend(Protocol):
    """What we call of a `BaseGrammarBackend`; each returns a grammar, or None or an object with an
    `error_message`."""

    def dispatch_json(self, key_string: str, /) -> SGLangGrammar: ...
    def dispatch_regex(self, key_string: str, /) -> SGLangGrammar: ...
    def dispatch_ebnf(self, key_string: str, /) -> SGLangGrammar: ...
    def dispatch_structural_tag(self, key_string: str, /) -> SGLangGrammar: ...


_DISPATCH: dict[Dialect, str] = {
    "json_schema": "dispatch_json",
    "regex": "dispatch_regex",
    "ebnf": "dispatch_ebnf",
    "structural_tag": "dispatch_structural_tag",
}

_PROBES = (
    ("dispatch_regex", "a"),
    ("dispatch_json", '{"type": "integer"}'),
    ("dispatch_ebnf", 'root ::= "a"\n'),
)
"""Grammars which nearly every backend compiles, and at once."""


class SGLangAdapter(Adapter):
    """A backend with SGLang's methods, as an adapter; a subclass says how to make it.

    Which mask it fills is seen from the masks that it allocates.
    """

    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset(_DISPATCH)
    twins: Twins = NO_TWINS
    """Ids that the backend's tokenizer cannot have beside others; set in `make_backend`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._backend = self.make_backend()
        self.mask_format = self._probe()

    @abstractmethod
    def make_backend(self) -> SGLangBackend:
        """Returns the backend, for `self.vocabulary`."""

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        if grammar.dialect not in _DISPATCH:
            raise UnsupportedGrammar(f"the interface has no {grammar.dialect}")
        dispatch: Callable[[str], SGLangGrammar] = getattr(self._backend, _DISPATCH[grammar.dialect])
        template = dispatch(grammar.text)
        message = _refusal(template)
        if message is not None:
            says_cannot = not message or any(
                word in message.lower() for word in ("unsupported", "not support", "not implement", "unknown")
            )
            raise (UnsupportedGrammar if says_cannot else InvalidGrammar)(
                message or "the backend returned no grammar and no reason"
            )
        try:
            self.mask_format = _Masks(template, self.vocabulary.size).kind
        except NotImplementedError as error:
            # Older backends return a bare base class for a grammar that did not compile.
            raise UnsupportedGrammar(
                "the backend returned a grammar without methods, and no reason"
            ) from error
        tokenizer = getattr(self._backend, "tokenizer", None)
        again = partial(dispatch, grammar.text)
        return _Compiled(grammar, template, again, self.vocabulary, tokenizer, self.twins)

    def _probe(self) -> MaskFormat:
        for dispatch, text in _PROBES:
            try:
                grammar = getattr(self._backend, dispatch)(text)
                if _refusal(grammar) is None:
                    return _Masks(grammar, self.vocabulary.size).kind
            except Exception:  # the fault, if it is one, shows when a case asks for this dialect
                continue
        return "bitmask"


def adapt_sglang(
    make_backend: Callable[[Vocabulary], SGLangBackend], *, distribution: str = ""
) -> type[SGLangAdapter]:
    """Returns an adapter class for the backends that the function makes; bind it to a name in an adapter's
    module."""

    def make(self: SGLangAdapter) -> SGLangBackend:
        return make_backend(self.vocabulary)

    name = "".join(part.capitalize() for part in make_backend.__name__.strip("_").split("_"))
    return type(
        name,
        (SGLangAdapter,),
        {"make_backend": make, "distribution": distribution, "__module__": make_backend.__module__},
    )


def _refusal(grammar: SGLangGrammar) -> str | None:
    """Returns why there is no grammar (empty if the backend does not say), or None if there is one."""
    if grammar is None:
        return ""
    message: str | None = getattr(grammar, "error_message", None)
    return message


class _Masks:
    """The backend's own mask of one row, and the way from it to ours."""

    def __init__(self, grammar: SGLangGrammar, size: int, *, opens: bool = False) -> None:
        """With `opens` everything is allowed before each fill, as in a mask that the engine has just made:
        a grammar that constrains nothing leaves it alone."""
        import torch

        self._opens = opens
        self._from_numpy = torch.from_numpy
        self._mask: torch.Tensor = grammar.allocate_vocab_mask(size, 1, "cpu")
        self._width = self._mask.shape[-1]
        self.kind: MaskFormat = "bool" if self._mask.dtype == torch.bool else "bitmask"
        self._dtype = self._mask.numpy().dtype
        self._array: NDArray[Any] | None = None
        self._row = self._mask

    def fill(self, grammar: SGLangGrammar, array: NDArray[Any], kind: MaskFormat) -> None:
        """Fills our array, without a copy where the backend's mask is of its kind and width."""
        if self._opens and array.dtype == self._dtype:
            array.fill(0 if self.kind == "bool" else -1)
        if array is self._array:
            grammar.fill_vocab_mask(self._row, 0)
        elif (
            kind == self.kind
            and array.shape == (self._width,)
            and array.dtype == self._dtype
            and array.flags.carray
        ):
            self._array, self._row = array, self._from_numpy(array).unsqueeze(0)
            grammar.fill_vocab_mask(self._row, 0)
        elif array.dtype != (np.bool_ if kind == "bool" else np.int32):
            raise ValueError(f"{array.dtype} is not what a {kind} mask is made of")
        else:
            filled = self._filled(grammar)
            if kind != self.kind:
                packed = np.ascontiguousarray(filled)
                filled = ~unpack_mask(packed, 32 * len(packed)) if kind == "bool" else pack_mask(~filled)
            array.fill(kind == "bool")  # ids which the backend has no place for are forbidden
            shared = min(len(array), len(filled))
            array[:shared] = filled[:shared]

    def allows(self, grammar: SGLangGrammar, token: int) -> bool:
        """Returns whether the token is allowed next."""
        filled = self._filled(grammar)
        return not filled[token] if self.kind == "bool" else is_allowed(filled, token)

    def _filled(self, grammar: SGLangGrammar) -> NDArray[Any]:
        if self._opens:
            self._mask.fill_(0 if self.kind == "bool" else -1)
        grammar.fill_vocab_mask(self._mask, 0)
        filled: NDArray[Any] = self._mask[0].numpy()
        return filled


class _Object(GrammarObject):
    def __init__(self, compiled: _Compiled) -> None:
        self._compiled = compiled
        self._grammar = compiled.fresh()
        self._masks = _Masks(self._grammar, compiled.vocabulary.size, opens=compiled.reasons)
        self._accepted: list[int] = []

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.is_terminated():  # most backends raise here
            bitmask.fill(0)
        else:
            self._masks.fill(self._grammar, bitmask, "bitmask")
            self._compiled.twins.spread(bitmask)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        if self.is_terminated():
            mask.fill(True)
        else:
            self._masks.fill(self._grammar, mask, "bool")
            self._compiled.twins.spread_forbidden(mask)

    def accept_token(self, token: int) -> bool:
        if self.is_terminated():
            return False
        token = self._compiled.twins.first.get(token, token)
        # The interface names no way to refuse: some raise, some return False, and some take any token, which
        # then is the finding.
        try:
            answer = self._grammar.accept_token(token)
        except (ValueError, AssertionError):
            return False
        refused = is_bool(answer) and not answer
        if not refused:
            self._accepted.append(token)
        return not refused

    def is_accepting(self) -> bool:
        # The interface cannot say it, except by a bit of end-of-sequence.
        return not self.is_terminated() and self._masks.allows(
            self._grammar, self._compiled.vocabulary.eos_token
        )

    def is_terminated(self) -> bool:
        # Its default is a silent False, because the engine ends a request at end-of-sequence by itself.
        ended = bool(self._accepted) and self._accepted[-1] in self._compiled.vocabulary.eos_tokens
        return ended or bool(self._grammar.is_terminated())

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._accepted):
            raise ValueError(f"cannot roll back {count} of {len(self._accepted)} tokens")
        if count:
            self._grammar.rollback(count)
            del self._accepted[-count:]

    def copy(self) -> GrammarObject:
        clone = _Object(self._compiled)
        for token in self._accepted:
            clone._grammar.accept_token(token)
        clone._accepted = self._accepted.copy()
        return clone

    def jump_forward(self) -> bytes:
        tokens, text = self._jump()
        return self._compiled.vocabulary.decode(tokens) + text.encode()

    def fast_forward_tokens(self) -> list[int]:
        tokens, text = self._jump()
        return [] if text else tokens

    def _jump(self) -> tuple[list[int], str]:
        """Returns the tokens that come first and the text after them: some backends give tokens only, some
        text only, some both."""
        try:
            helper = (
                None if self.is_terminated() else self._grammar.try_jump_forward(self._compiled.tokenizer)
            )
        except NotImplementedError:
            helper = None
        if helper is None:
            return [], ""
        text, _ = self._grammar.jump_forward_str_state(helper)
        return list(helper[0]), text


class _Compiled(CompiledGrammar):
    reasons = False
    """Whether its requests think first: masks are then what they were while nothing is constrained."""

    def __init__(
        self,
        grammar: Grammar,
        template: SGLangGrammar,
        compile_again: Callable[[], SGLangGrammar],
        vocabulary: Vocabulary,
        tokenizer: object,
        twins: Twins,
    ) -> None:
        self.twins = twins
        self.grammar = grammar
        self._template = template
        self._compile_again = compile_again
        self.vocabulary = vocabulary
        self.tokenizer = tokenizer

    def start(self) -> GrammarObject:
        return _Object(self)

    def fresh(self) -> SGLangGrammar:
        """Returns a grammar at the start.

        `copy()` gives one at the start in some backends, at the current position in others, and itself by
        default; of the template, which never moves, the first two are the same, and the third has to be
        compiled again.
        """
        try:
            grammar = self._template.copy()
        except NotImplementedError:
            grammar = self._template
        if grammar is self._template:
            grammar = self._compile_again()
        if hasattr(grammar, "maybe_init_reasoning"):
            # A reasoning wrapper constrains nothing until it is told that nobody reasons.
            grammar.maybe_init_reasoning(self.reasons)
        return grammar

    def thinking(self, compile_again: Callable[[], SGLangGrammar]) -> _Compiled:
        """Returns the same grammar for requests that think first, as the engine's reasoning wrapper gives
        it."""
        found = _Compiled(
            self.grammar, compile_again(), compile_again, self.vocabulary, self.tokenizer, self.twins
        )
        found.reasons = True
        return found
