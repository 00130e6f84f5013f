"""The tables of a published folder of benchmarks/reference.py, written anew from its rows: after the harness
has changed a word or a table, or after notes were written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from reference_page import MARK, section, tables_of, write_tables
from reference_runs import PARTS, again_name, no_schemas_in
from reference_sums import read_sums, write_sums
from reference_verify import parts_in, problems_of

from harness.errors import BadInput
from harness.outcomes.result import result_of
from harness.rows.store import has_rows


def renew(published: Path, say: Callable[[str], None]) -> None:
    """Writes the tables that the rows give into the folder and its README, and the checksums; says of each
    file that comes out otherwise how it does. Rows, pages and notes stay as they are. Raises BadInput where
    there is no published folder with checksums, or where a part has no rows."""
    parts = parts_in(published)
    read_sums(published)
    if without := [part for part in parts if not has_rows(published / part)]:
        raise BadInput(f"{published / without[0]}: its rows are not here, and nothing follows without them")
    for part in parts:
        for problem in problems_of(published, part):
            say(f"{part}: {problem}")
        _renew_part(published, part)
    write_sums(published)


def _renew_part(published: Path, part: str) -> None:
    """Writes the tables of one part, and its section of the README."""
    folder, second = published / part, published / again_name(part)
    none, result = no_schemas_in(published, part), result_of(folder)
    with tempfile.TemporaryDirectory() as scratch:
        write_tables(result, part, folder, none, Path(scratch))
        for made in Path(scratch).iterdir():
            shutil.copyfile(made, folder / made.name)
    made_anew = section(part, tables_of(result, folder, second if has_rows(second) else None, none))
    readme = published / "README.md"
    notes, mark, written = readme.read_text("utf-8").partition(MARK)
    before, head, below = written.partition(f"\n## {PARTS[part]}\n")
    if not head:
        raise BadInput(f"{readme} has no section {PARTS[part]}; make the folder anew with --page")
    _, begins, others = below.partition("\n## ")
    readme.write_text(f"{notes}{mark}{before}\n{made_anew}{begins}{others}", "utf-8", newline="\n")
