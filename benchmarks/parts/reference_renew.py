"""The tables of a published folder of benchmarks/reference.py, written anew from its rows: after the harness
has changed a word or a table, or after notes were written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from reference_page import MARK, TABLES, section
from reference_runs import PARTS
from reference_sums import damage, read_sums, write_sums
from reference_verify import differences, make_tables, parts_in

from harness.errors import BadInput


def renew(published: Path, say: Callable[[str], None]) -> None:
    """Writes the tables that the rows give into the folder and its README, and the checksums; says of each
    file that comes out otherwise how it does. Rows, pages and notes stay as they are.

    Raises BadInput, and writes nothing, where there is no published folder with checksums, or where rows,
    pages or other files that are not made anew are not as they were published.
    """
    parts = parts_in(published)
    anew = {"README.md", *(f"{part}/{name}" for part in parts for name in TABLES)}
    for name, wrong in damage(published, read_sums(published)):
        if name not in anew:
            raise BadInput(f"{published}: {name} {wrong}; put that right first, because no row gives it")
    readme = published / "README.md"
    text = readme.read_text("utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        for part in parts:
            made = Path(scratch) / part
            tables = make_tables(published, part, made)
            for problem in differences(published, part, made, tables):
                say(f"{part}: {problem}")
            text = _with_section(text, part, section(part, tables))
        for part in parts:
            shutil.copytree(Path(scratch) / part, published / part, dirs_exist_ok=True)
    readme.write_text(text, "utf-8", newline="\n")
    write_sums(published)


def _with_section(text: str, part: str, made: str) -> str:
    """Returns the README's text with the section of a part put in place of the one there. Raises BadInput
    where there is none."""
    notes, mark, written = text.partition(MARK)
    before, head, below = written.partition(f"\n## {PARTS[part]}\n")
    if not head:
        raise BadInput(f"README.md has no section {PARTS[part]}; make the folder anew with --page")
    _, begins, others = below.partition("\n## ")
    return f"{notes}{mark}{before}\n{made}{begins}{others}"
