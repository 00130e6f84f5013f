"""The perfect backend: the reference automaton itself.

What the harness holds against other backends, it must find nothing of here.
"""

from __future__ import annotations

from harness.oracle import reference


class Reference(reference.Reference):
    """JSON Schemas (any spelling), regular expressions, EBNF and choices, exactly. `mask=bool` fills the
    second mask format; `formats=assert` makes `format` a constraint."""

    is_ours = True
