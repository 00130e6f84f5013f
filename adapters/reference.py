"""The perfect backend: the reference automaton itself.

What the harness holds against other backends, it must find nothing of here.
"""

from __future__ import annotations

from harness.oracle import reference


class Reference(reference.Reference):
    """Regular expressions, EBNF and choices, exactly; `mask=bool` fills the second mask format."""

    is_ours = True
