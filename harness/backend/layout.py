"""Layouts: subsets of the spellings of JSON, such as the one that a library writes.

A layout says how a document is written, and not which documents there are, with two exceptions: a character
that it cannot spell stands in no string, and a name that the schema does not list may be forbidden.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Characters: the first and the last code point of each range, both included; ascending and disjoint."""

LAST = 0x10FFFF
UNESCAPED: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, LAST))
"""The characters that may stand in a string as they are (RFC 8259, section 7)."""
SHORT_ESCAPES = b'"\\/bfnrt'
"""What may stand behind a backslash, but for the `u` (RFC 8259, section 7)."""


@dataclass(frozen=True)
class Layout:
    """Each field leaves out spellings; without any, every spelling is meant."""

    whitespace: bytes = b" \t\n\r"
    """The characters of which white space consists."""
    longest_run: int | None = None
    """How many of them may stand between two tokens of JSON at most; None is any number."""
    separators: tuple[bytes, bytes] | None = None
    """If given, exactly this white space stands behind each comma and behind each colon, and no other stands
    inside the document: `(b"", b"")` for none at all."""
    is_surrounded: bool = True
    """White space may stand before and behind the document."""
    order: Literal["any", "listed", "required_first"] = "any"
    """`listed`: the names that the schema lists come in the order in which its `properties` have them;
    `required_first`: those that the object must have come before the others, and each kind in that order."""
    alternatives_agree: bool = False
    """The order is right by each alternative of the schema (`anyOf`) that could apply: names that one does
    not list come behind those that it lists. Without it, the names of all alternatives have one order. With
    it, a beginning that all orders allow need have no end that all of them allow."""
    unlisted: Literal["anywhere", "last", "asked", "never"] = "anywhere"
    """Where names stand that no subschema lists that could apply to the object; `last`: behind all listed
    ones; `asked`: there too, and only names of which `patternProperties`, or an `additionalProperties` or
    `unevaluatedProperties` that is written, asks something or says that they may be; `never`: nowhere."""
    further_items: bool = True
    """Behind the items that the schema lists one by one (`prefixItems`, or `items` as a list) there may be
    others of which it asks nothing. A layout without these has no names of which it says nothing either."""
    raw: Ranges = UNESCAPED
    """The characters that may stand in a string as they are; never others than RFC 8259 allows."""
    short_escapes: bytes = SHORT_ESCAPES
    """What may stand behind a backslash, but for the `u`."""
    hex_escapes: Ranges = ((0, LAST),)
    """The characters that may be written as `\\uXXXX`, or as two of these."""
    hex_digits: Literal["any", "lower"] = "any"
    """The case of the hexadecimal digits."""
    exponents: Literal["any", "signed", "none"] = "any"
    """Whether numbers may have an exponent; `signed`: only with `+` or `-`."""
    integers_are_digits: bool = False
    """A number whose value is an integer has neither a fraction nor an exponent."""
    has_last_zeros: bool = True
    """A fraction may end with 0. Without these, integers are digits only and there are no exponents, so that
    a number has one spelling."""
    has_minus_zero: bool = True
    """Zero may have the sign `-`."""

    def __post_init__(self) -> None:
        if b"".join(self.separators or ()).strip(b" \t\n\r"):
            raise ValueError(
                f"separators are the white space behind the comma and the colon; these are {self.separators}"
            )
        if not self.has_last_zeros and not (self.integers_are_digits and self.exponents == "none"):
            raise ValueError("a layout without last zeros has integers as digits, and no exponents")
        if not self.further_items and self.unlisted not in ("asked", "never"):
            raise ValueError("a layout without further items has no names of which the schema says nothing")

    def to_json(self) -> dict[str, Any]:
        """Returns the layout as a JSON object, for another process; bytes become text of Latin-1."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Layout:
        """Returns the layout of which `to_json` made the object."""
        separators = fields["separators"]
        return Layout(
            **{
                **fields,
                **{name: fields[name].encode("latin-1") for name in ("whitespace", "short_escapes")},
                **{name: tuple(map(tuple, fields[name])) for name in ("raw", "hex_escapes")},
                "separators": separators and tuple(text.encode("latin-1") for text in separators),
            }
        )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


EVERY_SPELLING = Layout()
COMPACT = Layout(
    separators=(b"", b""),
    is_surrounded=False,
    order="listed",
    unlisted="last",
    short_escapes=b'"\\bfnrt',
    hex_escapes=((0, 7), (11, 11), (14, 31)),
    hex_digits="lower",
    exponents="none",
    integers_are_digits=True,
    has_last_zeros=False,
    has_minus_zero=False,
)
WHITE_SPACED = replace(COMPACT, separators=None)
"""This layout is `COMPACT`, but that any white space may stand where JSON lets it."""
LayoutName = Literal["any", "compact", "spaced"]
LAYOUTS: dict[LayoutName, Layout] = {
    "any": EVERY_SPELLING,
    "compact": COMPACT,
    "spaced": replace(COMPACT, separators=(b" ", b" ")),
}
"""`compact` is what `json.dumps(value, ensure_ascii=False, separators=(",", ":"))` writes where names have
the schema's order and numbers no exponent; `spaced` is that with Python's usual separators."""


def with_delete_escaped(layout: Layout) -> Layout:
    """Returns the layout with U+007F written as `\\u007f` only."""
    return replace(
        layout,
        raw=(*layout.raw[:-1], (0x5D, 0x7E), (0x80, LAST)),
        hex_escapes=(*layout.hex_escapes, (0x7F, 0x7F)),
    )


STRICT = replace(with_delete_escaped(WHITE_SPACED), unlisted="asked", further_items=False)
"""This layout has any white space, U+007F escaped, and no properties and items but those of which the schema
says something."""
