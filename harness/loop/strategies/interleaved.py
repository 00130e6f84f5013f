"""Interleaved: the fixed blocks of a JSON Schema's template are written at once, and only its slots are decoded, under the grammar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.loop.following import Following
from harness.loop.respelling import follows_in, prepare, respell
from harness.loop.strategies.base import Move, Strategy
from harness.loop.template import Template, template_of
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    from harness.grammar import Grammar
    from harness.loop.live import Live


@dataclass
class _Place:
    """Of one request."""

    following: Following
    start: int
    """The index of the answer's first token."""
    is_replayed: bool
    reference: bytes
    """The text of the answer that is replayed."""
    text: bytes = b""
    """The answer, as far as `following` has read it."""


class Interleaved(Strategy):
    """Writes a block when the value before it is complete and the grammar accepts the block.

    Where it does not (other blanks than the template's, for one), where nobody can try it, where a replayed text is another, and where
    the output has left the template, the rest of the request is decoded stepwise. The last tokens of a block that may merge with the
    value behind it are left to the model, as in `jump_forward`; where it says something else there, it is overruled.
    """

    name: ClassVar[str] = "interleaved"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._templates: dict[Grammar, Template | None] = {}
        self._places: dict[int, _Place | None] = {}
        """None: decoded stepwise."""

    def prepare(self, grammar: Grammar) -> None:
        prepare(self.vocabulary)
        self._template(grammar)

    def advance(self, live: Live) -> Move | None:
        if live.object is None or (start := live.answer_at()) is None:
            return None
        if id(live) not in self._places:
            self._places[id(live)] = self._begin(live, start)
        place = self._places[id(live)]
        if place is None:
            return None
        said = self.vocabulary.decode(live.ids[place.start :])
        held, new = place.following.rest(), said[len(place.text) :]
        if held and new and not place.is_replayed and not (held.startswith(new) or new.startswith(held)):
            move = self._overrule(live, place, held)
        elif not said.startswith(place.text):
            move = None
        else:
            self._read(place, said)
            if place.following.is_lost or place.following.is_done:
                move = None
            elif not (block := place.following.rest()):
                return None
            else:
                move = self._write(live, place, said, block)
        if move is None:
            self._places[id(live)] = None
            return None
        self._read(place, self.vocabulary.decode([*live.ids[place.start : move.keep], *move.ids]))
        return move

    def finished(self, live: Live) -> None:
        self._places.pop(id(live), None)

    def _begin(self, live: Live, start: int) -> _Place | None:
        template = self._template(live.request.grammar) if live.request.grammar else None
        if template is None:
            return None
        reference = self.vocabulary.decode((live.reference or ())[start:])
        return _Place(Following(template), start, live.reference is not None, reference)

    def _write(self, live: Live, place: _Place, said: bytes, block: bytes) -> Move | None:
        """What is settled of the block, which may be nothing; None: the block cannot come next."""
        if place.is_replayed and not place.reference.startswith(said + block):
            return None
        try:
            allowed = live.allowed_behind(self.vocabulary.encode(block))
            if allowed is None:
                return None
            move = respell(self.vocabulary, live.ids[place.start :], block, follows_in(self.vocabulary, allowed))
        except ValueError:  # the vocabulary cannot spell it
            return None
        return Move(place.start + move.keep, move.ids) if move else Move(len(live.ids), ())

    def _overrule(self, live: Live, place: _Place, held: bytes) -> Move | None:
        """The held end of a block in the place of what the model said; None if that began before. The grammar has accepted this text."""
        keep, length = place.start, 0
        while keep < len(live.ids) and length < len(place.text):
            length += len(self.vocabulary.tokens[live.ids[keep]])
            keep += 1
        return Move(keep, self.vocabulary.encode(held)) if length == len(place.text) else None

    def _read(self, place: _Place, said: bytes) -> None:
        place.following.read(said[len(place.text) :])
        place.text = said

    def _template(self, grammar: Grammar) -> Template | None:
        if grammar not in self._templates:
            self._templates[grammar] = template_of(grammar)
        return self._templates[grammar]
