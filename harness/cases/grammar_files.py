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
        raise BadInput(f'{path}: no line begins with "root ::="; EBNF is read as GBNF has it (docs/ebnf.md)')
    return Case(case_id(grammar), writable(path.stem), grammar)
