"""Which characters a layout (harness/backend/layout.py) can write, and how."""

from __future__ import annotations

from harness.backend.layout import Layout
from harness.oracle.utf8 import EVERY, Ranges, common, merged

ESCAPES = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 8, 0x66: 12, 0x6E: 10, 0x72: 13, 0x74: 9}
"""RFC 8259, section 7: the byte behind a backslash, and the character that both are."""


def escaped(layout: Layout) -> Ranges:
    """Returns the characters that have an escape."""
    shorts = tuple((ESCAPES[byte], ESCAPES[byte]) for byte in layout.short_escapes)
    return merged(layout.hex_escapes + shorts)


def characters(layout: Layout) -> Ranges:
    """Returns the characters that have any spelling."""
    return common(merged(layout.raw + escaped(layout)), EVERY)
