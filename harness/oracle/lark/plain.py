"""Whether every dialect reads the regular expressions of a grammar alike, but for its letters' case and its
tables of Unicode."""

from __future__ import annotations

import re
from functools import lru_cache

from harness.oracle.automaton import NoOracle
from harness.oracle.lark.tokens import tokens_of

_ESCAPE = r"\\(?:[!-/:;=?@\[-`{-~]|[nrtfv]|x[0-9A-Fa-f]{2}|u(?![Dd][89A-Fa-f])[0-9A-Fa-f]{4})"
"""All of ASCII's punctuation but `\\<` and `\\>`, which Rust reads otherwise, and no surrogate."""
_CLASS = rf"\[\^?+(?:[^\\\[\]&~-]|&(?!&)|~(?!~)|-(?!-)|{_ESCAPE})++\]"
_COUNT = r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})(?![*+?{])"
_PLAIN = re.compile(
    rf"(?:\((?:\?:)?+|\||(?:{_CLASS}|{_ESCAPE}|[^\\\[\]{{}}(|^$*+?])(?:{_COUNT})?+)*+", re.DOTALL
)
"""Characters, escapes and classes that are the same everywhere, counted once at most, in groups and
alternatives. What is left out need not differ: then readings are tried that say the same."""


@lru_cache(maxsize=16)
def are_read_alike(text: str) -> bool:
    """Is every regular expression of a Lark grammar plain? A text that cannot be read has no reading at
    all."""
    try:
        patterns = [token.text for token in tokens_of(text) if token.kind == "pattern"]
    except NoOracle:
        return True
    return all(_PLAIN.fullmatch(pattern, 1, pattern.rindex("/")) for pattern in patterns)
