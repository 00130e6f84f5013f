"""Whether a published folder of benchmarks/reference.py is as it was published, and its tables follow from
its rows."""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

from reference_page import HEADS, MARK, TABLES, section, tables_of, write_tables
from reference_runs import PARTS, again_name, no_schemas_in
from reference_sums import SUMS, damage, read_sums

from harness.errors import BadInput
from harness.outcomes.result import result_of
from harness.rows.store import DAMAGED, has_rows


def verified(published: Path, say: Callable[[str], None]) -> bool:
    """Says of each part of the folder whether its tables follow from its rows, of each file that is not as it
    was published that it is not, and what was looked at; returns whether all is well. Raises BadInput where
    there is nothing to verify."""
    parts = parts_in(published)
    sums = read_sums(published)
    problems = [f"{name} {wrong}" for name, wrong in damage(published, sums)]
    for problem in problems:
        say(problem)
    for part in parts:
        found = [f"{part}: {problem}" for problem in problems_of(published, part)]
        problems += found
        for line in found or [f"{part}: every figure follows from the published rows"]:
            say(line)
    say(
        f"Checked: the {len(sums)} files by {SUMS}; computed anew from the rows: {', '.join(TABLES)} and the "
        "tables of README.md. Checked by checksum alone: the rows, the pages, and what README.md says beside "
        "its tables."
    )
    return not problems


def parts_in(published: Path) -> list[str]:
    """Returns the parts that a published folder has. Raises BadInput where it is none."""
    if not published.is_dir():
        raise BadInput(f"{published}: no such folder")
    parts = [part for part in PARTS if (published / part).is_dir()]
    if not parts:
        raise BadInput(f"{published}: none of {', '.join(PARTS)} is here; name a published folder")
    return parts


def problems_of(published: Path, part: str) -> Iterator[str]:
    """Yields how the tables of a part differ from those that its rows give now."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            tables = make_tables(published, part, Path(scratch))
            yield from differences(published, part, Path(scratch), tables)
    except BadInput as error:
        yield str(error)


def make_tables(published: Path, part: str, into: Path) -> dict[str, str]:
    """Writes the tables that a part's rows give into a folder; returns those of the README, by what they are
    of. Raises BadInput where the rows are damaged or not there."""
    folder, second = published / part, published / again_name(part)
    if not has_rows(folder):
        raise BadInput("its rows are not here, and nothing follows without them")
    none, result = no_schemas_in(published, part), result_of(folder)
    write_tables(result, part, folder, none, into)
    return tables_of(result, folder, second if has_rows(second) else None, none)


def differences(published: Path, part: str, made: Path, tables: dict[str, str]) -> Iterator[str]:
    """Yields how the tables of a part differ from those that were made in a folder, and from the README's."""
    for path in sorted(made.iterdir()):
        yield from difference(path.name, lines_of(published / part / path.name), lines_of(path))
    yield from readme_problems(published / "README.md", part, tables)


def readme_problems(readme: Path, part: str, tables: dict[str, str]) -> Iterator[str]:
    """Yields how the README's section of a part differs from the one with these tables."""
    if not readme.is_file():
        yield f"{readme.name} is missing"
        return
    written = readme.read_text("utf-8", errors="replace").partition(MARK)[2]
    _, _, below = f"\n{written}".partition(f"\n## {PARTS[part]}\n")
    said = f"## {PARTS[part]}\n{below}".partition("\n## ")[0]
    if "deadlines" not in tables and HEADS["deadlines"] in said:
        yield f"{readme.name} has a table of deadlines, and the rows of {again_name(part)} are missing"
        return
    different = [of for of, table in tables.items() if f"{HEADS[of]}\n\n{table}\n" not in said]
    for of in different:
        yield f"{readme.name} has another table of {of} than the rows give"
    if not different:
        yield from difference(readme.name, said.split("\n"), section(part, tables).split("\n"))


def difference(name: str, written: list[str] | None, made: list[str] | None) -> Iterator[str]:
    """Yields the first line that differs, with how many others do."""
    if written is None:
        yield f"{name} is missing, or damaged"
        return
    pairs = [(old, new) for old, new in zip_longest(written, made or [], fillvalue="") if old != new]
    if pairs:
        (old, new), *others = pairs
        more = f", and {len(others)} more lines differ" if others else ""
        yield f"{name} has «{old}» where the rows give «{new}»{more}"


def lines_of(path: Path) -> list[str] | None:
    """Returns the lines of a text, packed or not; None where there is none that can be read."""
    try:
        content = path.read_bytes()
        text = lzma.decompress(content) if path.suffix == ".xz" else content
    except (OSError, *DAMAGED):
        return None
    return text.decode("utf-8", errors="replace").splitlines()
