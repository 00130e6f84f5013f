"""Adapters for one JSON Schema: a right one, and some that are wrong in what they let a walk write or a
document say."""

from __future__ import annotations

import json
from typing import ClassVar

import regex

from harness.backend.grammar import Grammar, UnsupportedGrammar

from .harmful import Hangs
from .reference import Reference, ReferenceGrammar, ReferenceObject

READING = {
    "type": "object",
    "properties": {"n": {"type": "number"}, "s": {"type": "string"}},
    "required": ["n", "s"],
    "additionalProperties": False,
}
"""The one schema."""

SPACE = rb"[ \t\r\n]*"
NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
CHARACTER = rb"[ !#-\[\]-\x7f]|[\xc3-\xc5][\x80-\xbf]"
ESCAPE = rb'\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}'


class Reading(Reference):
    """Right: any whitespace, either order, every escape and number form; no letters beyond U+017F."""

    space: ClassVar[bytes] = SPACE
    number: ClassVar[bytes] = NUMBER
    string: ClassVar[bytes] = rb'"(?:' + CHARACTER + b"|" + ESCAPE + rb')*"'
    names: ClassVar[tuple[bytes, bytes]] = (rb'"(?:n|\\u006[eE])"', rb'"(?:s|\\u0073)"')
    comma: ClassVar[bytes] = b","
    either_order: ClassVar[bool] = True
    all_required: ClassVar[bool] = True

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if json.loads(grammar.text) != READING:
            raise UnsupportedGrammar("only READING")
        return ReferenceGrammar(self, regex.compile(self.pattern()))

    def pattern(self) -> bytes:
        space = self.space
        members = [
            space + name + space + b":" + space + value + space
            for name, value in zip(self.names, self.values(), strict=True)
        ]
        pairs = [self.comma.join(members), self.comma.join(members[::-1])][: 1 + self.either_order]
        less = [] if self.all_required else [space, *members]
        return space + rb"\{(?:" + b"|".join(pairs + less) + rb")\}" + space

    def values(self) -> tuple[bytes, bytes]:
        return self.number, self.string


class Twin(Reading):
    """Is as right as `Reading`."""


class ForgetsRequired(Reading):
    """`{}` too."""

    all_required = False


class TakesUndefined(Reading):
    """Values that are no JSON."""

    number = b"(?:" + NUMBER + b"|undefined)"


class RefusesNegative(Reading):
    number = NUMBER[2:]


class RefusesExponents(Reading):
    number = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"


class TakesFormats(Reading):
    """Takes a schema with a format for READING."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return super().compile(Grammar("json_schema", json.dumps(READING)))


class InOrder(Reading):
    either_order = False


class Compact(Reading):
    space = b""


class CompactInOrder(Compact):
    either_order = False


class RefusesEscapes(Reading):
    string = rb'"(?:' + CHARACTER + rb')*"'
    names = (b'"n"', b'"s"')


class NeverCloses(Reading):
    """Allows nothing but whitespace after the members."""

    def pattern(self) -> bytes:
        return super().pattern().replace(rb")\}", rb")[ \n]*(?!)")


class StopsAtColon(Reading):
    class Stopped(ReferenceObject):
        """Allows nothing after `:`."""

        def may_take(self, token: int) -> bool:
            return not self.text.endswith(b":") and super().may_take(token)

    object_class = Stopped


class RefusesItsColon(Reading):
    class Refusing(ReferenceObject):
        """Accepts no `:`, which its mask allows."""

        def accept_token(self, token: int) -> bool:
            return self.vocabulary.tokens[token] != b":" and super().accept_token(token)

    object_class = Refusing


class TakesOneTokenization(Reading):
    class Canonical(ReferenceObject):
        """Right in what it lets be written, but never begins with the token `{` alone."""

        def may_take(self, token: int) -> bool:
            return not (self.text == b"" and self.vocabulary.tokens[token] == b"{") and super().may_take(
                token
            )

    object_class = Canonical


class HangsAtBoom(Reading):
    class Hanging(ReferenceObject):
        """Hangs in native code when a text has come to `boom`."""

        def accept_token(self, token: int) -> bool:
            if self.text.endswith(b"boo"):
                Hangs.harm(self.compiled.adapter)  # type: ignore[arg-type]
            return super().accept_token(token)

    object_class = Hanging


OPEN = {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}
"""A schema that lets a document have any further properties."""


class Open(Reference):
    """Right for OPEN: the member `s` and any number of further members behind it, with any strings and a few
    other values."""

    character: ClassVar[bytes] = CHARACTER
    name_escape: ClassVar[bytes] = ESCAPE
    escape: ClassVar[bytes] = ESCAPE
    further: ClassVar[bytes] = rb"*"
    """How many further members there may be, as a quantifier."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if json.loads(grammar.text) != OPEN:
            raise UnsupportedGrammar("only OPEN")
        string = rb'"(?:' + self.character + b"|" + self.escape + rb')*"'
        name = rb'"(?:' + self.character + b"|" + self.name_escape + rb')*"'
        value = b"(?:" + string + b"|" + NUMBER + rb"|true|null|\[" + SPACE + rb"\]|\{" + SPACE + rb"\})"
        space, colon = SPACE, SPACE + b":" + SPACE
        member = b"," + space + name + colon + value + space
        first = rb'"(?:s|\\u0073)"' if self.name_escape == ESCAPE else b'"s"'
        whole = (
            space
            + rb"\{"
            + space
            + first
            + colon
            + string
            + space
            + b"(?:"
            + member
            + b")"
            + self.further
            + rb"\}"
            + space
        )
        return ReferenceGrammar(self, regex.compile(whole))


class RefusesRawDelete(Open):
    """No U+007F as itself, in names and values alike."""

    character = CHARACTER.replace(rb"\x7f", rb"\x7e")


class RefusesEscapesInNames(Open):
    name_escape = b"(?!)"


class RefusesEscapesAnywhere(Open):
    name_escape = escape = b"(?!)"


class RefusesUnlistedNames(Open):
    further = b"{0}"


class RefusesNumbersAsWell(Open):
    """Unlisted members whose value is a number are refused; the names are not to blame."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)
        return ReferenceGrammar(self, regex.compile(compiled.pattern.pattern.replace(b"|" + NUMBER, b"")))
