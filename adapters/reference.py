"""The perfect backend: the reference automaton itself.

The harness must find none of the faults here that it looks for in other backends.
"""

from __future__ import annotations

from harness.oracle import reference


class Reference(reference.Reference):
    """JSON Schemas, regular expressions, EBNF and choices, exactly. `mask=bool` fills the second mask format;
    `formats=assert` makes `format` a constraint; `layout=compact` and `layout=spaced` allow a JSON document
    one spelling, as Python writes it."""

    is_ours = True
