"""benchmarks/reference.py --verify: a copy of what was published that was altered anywhere fails."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from reference_corpora import arguments
from reference_sums import write_sums

from harness.errors import BAD_INPUT, OK

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def published(reference: ModuleType, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is published of two parts, of which one has a second walk with a longer deadline."""
    out = tmp_path_factory.mktemp("out")
    for part in ("maskbench", "jsts"):
        assert reference.main(arguments(corpora, out, "--only", part)) == OK
    rows = out / "runs" / "maskbench" / "rows.jsonl"
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    lines[4] |= {"status": "timeout", "phase": "fill", "accepted": None}
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert reference.main(arguments(corpora, out, "--only", "maskbench", "--again")) == OK
    return out / "published"


def test_what_was_checked_is_said(
    reference: ModuleType, published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reference.main(["--verify", str(published)]) == OK
    said = capsys.readouterr().out
    assert said.count("every figure follows from the published rows") == 2
    assert "Checked: the 16 files by SHA256SUMS; computed anew from the rows: tables.md, cases.csv," in said


def changed(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Returns what alters a text, packed or not."""

    def alter(folder: Path) -> None:
        path = folder / name
        is_packed = path.suffix == ".xz"
        text = (lzma.decompress(path.read_bytes()) if is_packed else path.read_bytes()).decode()
        assert old in text
        altered = text.replace(old, new, 1).encode()
        path.write_bytes(lzma.compress(altered) if is_packed else altered)

    return alter


def gone(name: str) -> Callable[[Path], None]:
    """Returns what removes a file or a folder."""

    def remove(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def compile_time(folder: Path) -> None:
    """Alters a time, which is in no table."""
    path = folder / "jsts" / "rows.jsonl.xz"
    lines = [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
    lines[1]["compile_ns"] += 1
    path.write_bytes(lzma.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))


FIGURES = {
    "a count of cases.csv": (changed("maskbench/cases.csv", ",5,5,", ",6,5,"), "maskbench: cases.csv has «"),
    "a count of tables.md": (changed("maskbench/tables.md", "| 5 |", "| 6 |"), "maskbench: tables.md has «"),
    "a figure": (changed("jsts/figures.csv", ",0.0,", ",0.5,"), "jsts: figures.csv has «"),
    "a failing case": (
        changed("maskbench/failing.csv.xz", "file_1", "file_2"),
        "maskbench: failing.csv.xz has «",
    ),
    "a walk of the README": (
        changed("README.md", "- bytes | 5 | 0 |", "- bytes | 6 | 0 |"),
        "another table of walks",
    ),
    "a share of the README": (changed("README.md", "| 0.0 % |", "| 9.9 % |"), "another table of cases"),
    "a late case of the README": (
        changed("README.md", "| bytes | 1 | 1 |", "| bytes | 1 | 0 |"),
        "another table of deadlines",
    ),
    "a line more in the README": (
        changed("README.md", "\nWalks:", "\n| one | more |\n\nWalks:"),
        "README.md has «",
    ),
    "the second walk": (gone("maskbench-again"), "and the rows of maskbench-again are missing"),
    "a table": (gone("jsts/tables.md"), "jsts: tables.md is missing"),
    "the README": (gone("README.md"), "README.md is missing"),
    "the rows": (gone("jsts/rows.jsonl.xz"), "jsts: its rows are not here"),
}
ONLY_CHECKSUMS: dict[str, Callable[[Path], object]] = {
    "the page": changed("maskbench/report.html", "<body", "<body data-other"),
    "no page": gone("jsts/report.html"),
    "a time in the rows": compile_time,
    "what the README says": changed("README.md", "Quote outcomes, not times", "Quote times"),
    "a part": gone("jsts"),
    "a file more": lambda folder: (folder / "jsts" / "more.csv").write_text("1\n"),
}


@pytest.fixture
def copy(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "copy"))


@pytest.mark.parametrize("what", FIGURES)
def test_a_wrong_figure_fails_even_with_new_checksums(
    reference: ModuleType, copy: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    alter, expected = FIGURES[what]
    alter(copy)
    assert reference.main(["--verify", str(copy)]) == 1
    assert "SHA256SUMS is another one" in (said := capsys.readouterr().out) or "is missing" in said
    write_sums(copy)
    assert reference.main(["--verify", str(copy)]) == 1
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("what", ONLY_CHECKSUMS)
def test_what_no_row_tells_fails_by_its_checksum(
    reference: ModuleType, copy: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    ONLY_CHECKSUMS[what](copy)
    assert reference.main(["--verify", str(copy)]) == 1
    said = capsys.readouterr().out
    assert any(words in said for words in ("SHA256SUMS is another one", "is missing", "is not in SHA256SUMS"))
    assert "every figure follows" in said


def test_damaged_rows_and_checksums_are_one_line(
    reference: ModuleType, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = copy / "jsts" / "rows.jsonl.xz"
    rows.write_bytes(rows.read_bytes()[:200])
    assert reference.main(["--verify", str(copy)]) == 1
    assert "jsts: " in capsys.readouterr().out
    (copy / "SHA256SUMS").write_text("no checksum\n")
    assert reference.main(["--verify", str(copy)]) == BAD_INPUT
    assert "SHA256SUMS: line 1 is no checksum" in capsys.readouterr().err


def test_tables_are_written_anew_and_notes_stay(
    reference: ModuleType, published: Path, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what in ("a count of cases.csv", "a figure", "a table", "a walk of the README"):
        FIGURES[what][0](copy)
    readme = copy / "README.md"
    readme.write_text(f"A note.\n\n{readme.read_text('utf-8')}", "utf-8")
    assert reference.main(["--renew", str(copy)]) == OK
    assert "maskbench: cases.csv has «" in capsys.readouterr().out
    assert reference.main(["--verify", str(copy)]) == OK
    assert readme.read_text("utf-8") == f"A note.\n\n{(published / 'README.md').read_text('utf-8')}"


@pytest.mark.parametrize("what", [name for name in ONLY_CHECKSUMS if name != "what the README says"])
def test_what_no_row_gives_is_never_called_right_anew(
    reference: ModuleType, copy: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    ONLY_CHECKSUMS[what](copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert reference.main(["--renew", str(copy)]) == BAD_INPUT
    assert "put that right first" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_a_folder_without_checksums_is_not_called_verified(
    reference: ModuleType, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / "SHA256SUMS").unlink()
    for option in ("--verify", "--renew"):
        assert reference.main([option, str(copy)]) == BAD_INPUT
        assert "SHA256SUMS is not there" in (said := capsys.readouterr()).err and not said.out
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert reference.main(["--verify", str(folder)]) == BAD_INPUT


def test_checksums_are_those_that_sha256sum_knows(published: Path, copy: Path) -> None:
    lines = (published / "SHA256SUMS").read_text().splitlines()
    assert [line[64:66] for line in lines] == ["  "] * 16 and "SHA256SUMS" not in " ".join(lines)
    write_sums(copy)
    assert (copy / "SHA256SUMS").read_text().splitlines() == lines
