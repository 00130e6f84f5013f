"""Reads files that hold nothing but a grammar, by how their names end."""

from __future__ import annotations

import re
from pathlib import Path

from harness.backend.grammar import Dialect, Grammar
from harness.cases.case import Case, case_id
from harness.cases.names import writable
from harness.errors import BadInput

GRAMMARS: dict[str, Dialect] = {".lark": "lark", ".gbnf": "ebnf", ".ebnf": "ebnf"}
"""The dialect of a grammar by how the file's name ends, in lower case."""
ROOT = re.compile(r"^[ \t]*root[ \t]*::=", re.MULTILINE)
"""The first rule of GBNF and of the common form of EBNF."""


def case_of_grammar(path: Path, text: str) -> Case:
    """Returns the case of a file that ends as GRAMMARS says. Raises BadInput for EBNF of another form."""
    grammar = Grammar(GRAMMARS[path.suffix.lower()], text)
    if grammar.dialect == "ebnf" and not ROOT.search(text):
        raise BadInput(
            f'{path}: no line begins with "root ::="; EBNF is read as GBNF has it (docs/ebnf.md): write its '
            "rules so, and call the first one root"
        )
    return Case(case_id(grammar), writable(path.stem), grammar)


def is_of_another_form(path: Path) -> bool:
    """Is this EBNF of another form by its name and its text, such as ISO 14977's in the description of a
    language? A folder may hold it beside its cases. No other dialect shares its ending with another form."""
    if path.suffix.lower() != ".ebnf":
        return False
    try:
        return not ROOT.search(path.read_text("utf-8-sig", errors="replace"))
    except OSError:
        return False  # who reads its case says why it cannot be read
