"""Interleaved: the fixed blocks of a JSON Schema's template are written at once, and only its slots are
decoded, under the grammar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.backend.vocabulary import Vocabulary
from harness.walk.loop.following import Following
from harness.walk.loop.respelling import follows_in, prepare, respell
from harness.walk.loop.strategies.base import Move, Strategy
from harness.walk.loop.template import Template, template_of

if TYPE_CHECKING:
    from harness.backend.grammar import Grammar
    from harness.walk.loop.active import ActiveRequest


@dataclass
class _Place:
    """The state of one request."""

    following: Following
    start: int
    """The index of the answer's first token."""
    is_replayed: bool
    reference: bytes
    """The text of the answer that is replayed."""
    text: bytes = b""
    """The answer as far as `following` has read it."""


class Interleaved(Strategy):
    """Writes a block when the value before it is complete and the grammar accepts the block.

    The rest of a request is decoded stepwise where the grammar refuses the block (because of other blanks
    than the template's, for one), where the object can neither roll back nor be copied, where a replayed text
    is another, and where the output has left the template. The last tokens of a block, which may merge with
    the value behind it, are left to the model, as in `jump_forward`; where the model chooses something else
    there, it is overruled.
    """

    name: ClassVar[str] = "interleaved"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._templates: dict[Grammar, Template | None] = {}
        self._places: dict[int, _Place | None] = {}
        """The state of each request, by identity; None if the rest is decoded stepwise."""

    def prepare(self, grammar: Grammar) -> None:
        prepare(self.vocabulary)
        self._template(grammar)

    def advance(self, active: ActiveRequest) -> Move | None:
        if active.object is None or (start := active.answer_at()) is None:
            return None
        if id(active) not in self._places:
            self._places[id(active)] = self._begin(active, start)
        place = self._places[id(active)]
        if place is None:
            return None
        output = self.vocabulary.decode(active.ids[place.start :])
        held, new = place.following.rest(), output[len(place.text) :]
        if held and new and not place.is_replayed and not (held.startswith(new) or new.startswith(held)):
            move = self._overrule(active, place, held)
        elif not output.startswith(place.text):
            move = None
        else:
            self._read(place, output)
            if place.following.is_lost or place.following.is_done:
                move = None
            elif not (block := place.following.rest()):
                return None
            else:
                move = self._write(active, place, output, block)
        if move is None:
            self._places[id(active)] = None
            return None
        self._read(place, self.vocabulary.decode([*active.ids[place.start : move.keep], *move.ids]))
        return move

    def finished(self, active: ActiveRequest) -> None:
        self._places.pop(id(active), None)

    def _begin(self, active: ActiveRequest, start: int) -> _Place | None:
        template = self._template(active.request.grammar) if active.request.grammar else None
        if template is None:
            return None
        reference = self.vocabulary.decode((active.reference or ())[start:])
        return _Place(Following(template), start, active.reference is not None, reference)

    def _write(self, active: ActiveRequest, place: _Place, output: bytes, block: bytes) -> Move | None:
        """Returns the move that writes the settled part of the block, which may be nothing; None if the block
        cannot come next."""
        if place.is_replayed and not place.reference.startswith(output + block):
            return None
        try:
            allowed = active.allowed_behind(self.vocabulary.encode(block))
            if allowed is None:
                return None
            move = respell(
                self.vocabulary, active.ids[place.start :], block, follows_in(self.vocabulary, allowed)
            )
        except ValueError:  # the vocabulary cannot spell it
            return None
        return Move(place.start + move.keep, move.ids) if move else Move(len(active.ids), ())

    def _overrule(self, active: ActiveRequest, place: _Place, held: bytes) -> Move | None:
        """Returns the move that puts the held end of a block in the place of what the model chose; None if
        the model's text began before it.

        The grammar has accepted this text.
        """
        keep, length = place.start, 0
        while keep < len(active.ids) and length < len(place.text):
            length += len(self.vocabulary.tokens[active.ids[keep]])
            keep += 1
        return Move(keep, self.vocabulary.encode(held)) if length == len(place.text) else None

    def _read(self, place: _Place, output: bytes) -> None:
        place.following.read(output[len(place.text) :])
        place.text = output

    def _template(self, grammar: Grammar) -> Template | None:
        if grammar not in self._templates:
            self._templates[grammar] = template_of(grammar)
        return self._templates[grammar]
