"""The perfect backend on structural tags whose tokens are meant by their ids, as it is and saying which id is
forced; and ones that are wrong about ids in one way each."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from harness.backend.grammar import Bitmask, Grammar, allocate_bitmask, allowed_tokens, pack_mask, unpack_mask
from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject

CALL = 257


def calling_vocabulary() -> Vocabulary:
    """Bytes, end-of-sequence, the special token `<call>`, and the text `ab` twice."""
    single = tuple(bytes([byte]) for byte in range(256))
    return Vocabulary("calling", (*single, b"", b"", b"ab", b"ab"), (256,), {256: "</s>", CALL: "<call>"})


def form(format: dict[str, Any]) -> Grammar:
    return Grammar("structural_tag", json.dumps({"format": format}))


TOKEN = {"type": "token", "token": "<call>"}
TEXT = {"type": "const_string", "value": "ab"}
CALLS = form({"type": "sequence", "elements": [TOKEN, TEXT]})
"""The id of `<call>`, and `ab` behind it."""
EITHER = form({"type": "or", "elements": [TOKEN, TEXT]})


class IdObject(ReferenceObject):
    """Knows the tokens that it has taken."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.taken: list[int] = []

    def accept_token(self, token: int) -> bool:
        is_taken = super().accept_token(token)
        self.taken += [token] if is_taken else []
        return is_taken

    def rollback(self, count: int) -> None:
        super().rollback(count)
        del self.taken[len(self.taken) - count :]

    def copy(self) -> IdObject:
        clone = type(self)(self._adapter, self._language)
        clone._states, clone.taken = self._states.copy(), self.taken.copy()
        clone._is_terminated = self._is_terminated
        return clone

    def allowed(self) -> list[int]:
        bitmask = allocate_bitmask(self._adapter.vocabulary.size)
        self.fill_bitmask(bitmask)
        return [int(token) for token in allowed_tokens(bitmask, self._adapter.vocabulary.size)]


class IdGrammar(ReferenceGrammar):
    _adapter: RightAboutIds

    def start(self) -> ReferenceObject:
        return self._adapter.object_class(self._adapter, self._language)


class RightAboutIds(Reference):
    object_class: ClassVar[type[IdObject]] = IdObject

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return IdGrammar(self, super().compile(grammar)._language)


class _ForcesIds(IdObject):
    def fast_forward_tokens(self) -> list[int]:
        return [CALL] if self.allowed() == [CALL] else super().fast_forward_tokens()


class ForcesIds(RightAboutIds):
    """Right: says of an id that it is forced, where nothing else may come."""

    object_class = _ForcesIds


class _TakesAnyTextBehindAnId(IdObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        if self.taken[-1:] == [CALL]:
            allowed = unpack_mask(bitmask, self._adapter.vocabulary.size).copy()
            allowed[:256] = True
            bitmask[:] = pack_mask(allowed)

    def accept_token(self, token: int) -> bool:
        if self.taken[-1:] == [CALL] and token < 256 and token != ord("a"):
            self._states.append(self._states[-1])
            self.taken.append(token)
            return True
        return super().accept_token(token)


class TakesAnyTextBehindAnId(RightAboutIds):
    object_class = _TakesAnyTextBehindAnId


class _ForcesTextBesideAnId(IdObject):
    def jump_forward(self) -> bytes:
        return super().jump_forward() if self.taken else b"ab"

    def fast_forward_tokens(self) -> list[int]:
        return super().fast_forward_tokens() if self.taken else [258]


class ForcesTextBesideAnId(RightAboutIds):
    """Says that `ab` is forced, where `<call>` may come instead."""

    object_class = _ForcesTextBesideAnId


class _ForcesAnIdBesideText(IdObject):
    def fast_forward_tokens(self) -> list[int]:
        return super().fast_forward_tokens() if self.taken else [CALL]


class ForcesAnIdBesideText(RightAboutIds):
    """Says that `<call>` is forced, where `ab` may come instead."""

    object_class = _ForcesAnIdBesideText


class _ForcesAnIdTooMany(IdObject):
    def fast_forward_tokens(self) -> list[int]:
        forced = super().fast_forward_tokens()
        return [*forced, CALL] if forced else []


class ForcesAnIdTooMany(RightAboutIds):
    """Says that `<call>` is forced behind forced text, where the output ends."""

    object_class = _ForcesAnIdTooMany
