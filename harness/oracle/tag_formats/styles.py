"""How the styles of XML write an object member by member: the texts around names and values, and how a value
is read (docs/structural_tags.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Reading: TypeAlias = Literal["string", "number", "boolean", "null", "object", "array"]
"""What kind of value a text stands for. A string stands there as it is, anything else as JSON."""

OTHERS: tuple[Reading, ...] = ("number", "boolean", "null", "object", "array")
"""The kinds of values that are written as JSON."""
ANY: tuple[Reading, ...] = ("string", *OTHERS)

FIRST_BYTES: dict[Reading, bytes] = {
    "number": b"-0123456789",
    "boolean": b"tf",
    "null": b"n",
    "object": b"{",
    "array": b"[",
}
"""The bytes with which the JSON of each kind begins."""


@dataclass(frozen=True)
class Middle:
    """What stands between a name and its value, and as what it has the value read."""

    text: bytes
    readings: tuple[Reading, ...]
    space_at: int | None = None
    """White space may stand before this byte of the text; None: nowhere."""


@dataclass(frozen=True)
class Style:
    """A member is written `before`, its name, one of `middles`, its value, `behind`."""

    before: bytes
    behind: bytes
    """What ends a value at the first place where it stands. It does not end as it begins, so that two of
    these cannot overlap."""
    name_end: bytes
    """What all middles begin with: it ends a name at the first place where it stands, and does not end as it
    begins either."""
    middles: tuple[Middle, ...]
    entities: tuple[tuple[bytes, bytes], ...] = ()
    """Bytes that stand in a name as another text only."""


def dsml(gap: str) -> Style:
    """Returns the style of DeepSeek's models; V4.1 has a blank before the word."""
    return Style(
        f'<｜DSML｜{gap}parameter name="'.encode(),
        f"</｜DSML｜{gap}parameter>".encode(),
        b'"',
        (Middle(b'" string="true">', ("string",)), Middle(b'" string="false">', OTHERS)),
    )


STYLES: dict[str, Style] = {
    "qwen_xml": Style(b"<parameter=", b"</parameter>", b">", (Middle(b">", ANY),)),
    "minimax_xml": Style(b'<parameter name="', b"</parameter>", b'"', (Middle(b'">', ANY),)),
    "glm_xml": Style(
        b"<arg_key>",
        b"</arg_value>",
        b"</arg_key>",
        (Middle(b"</arg_key><arg_value>", ANY, space_at=len(b"</arg_key>")),),
    ),
    "deepseek_xml": dsml(""),
    "deepseek_v4_1_xml": dsml(" "),
    "kimi_k3_xml": Style(
        b'<|open|>argument key="',
        b"<|close|>argument<|sep|>",
        b'"',
        tuple(Middle(f'" type="{kind}"<|sep|>'.encode(), (kind,)) for kind in ANY),
        entities=((b"&", b"&amp;"), (b'"', b"&quot;")),
    ),
}
"""The styles that have a reference."""


def first_bytes(readings: Iterable[Reading]) -> bytes:
    """Returns the bytes with which values of these kinds begin; none for strings."""
    return b"".join(FIRST_BYTES[each] for each in readings if each != "string")
