"""Every reader of files with thousands of changed files: it takes one or refuses it in one line, and does
nothing else.

The inputs are numbered (tests/support/fuzzing.py), so that a failure names one: `mutated(SEEDS[name], number,
folder)` writes it again.
"""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from fuzz_seeds import SEEDS, Seed, fresh, mutated, read_kernels
from fuzzing import wrong

from harness.backend.vocabulary import load_vocabulary
from harness.cases.case_line import case_from_line
from harness.cases.suite import find_suite, read_cases
from harness.errors import BadInput
from harness.measure import kernels
from harness.outcomes.history.files import MOST_BYTES, read_lines
from harness.rows import store
from harness.shape import DEEPEST, LONGEST_LINE, json_line, shaped

CHEAP = {"rows": 16, "measurement": 20, "decoding": 20, "kernels": 30, "suite": 30}
"""How many inputs of a seed the default test tries, where it is not USUAL: these take longer each. The long
test tries those that follow."""

USUAL = 60
MOST = 850
DEAR, FEWER = 15, 40
"""Every so many inputs, one is also read by what takes long, such as the page: of the first, and of the
others."""


def tried(seed: Seed, numbers: range, folder: Path, dear: int) -> list[str]:
    """What went wrong, by input."""
    found = []
    for number in numbers:
        name = mutated(seed, number, folder)
        read = seed.dear if seed.dear and number % dear == dear - 1 else seed.read
        if said := wrong(folder, lambda read=read: read(folder)):  # type: ignore[misc]
            found.append(f"input {number} ({name}): {said}")
    return found


@pytest.mark.parametrize("name", SEEDS)
def test_the_good_files_are_read(name: str, tmp_path: Path) -> None:
    seed = SEEDS[name]
    for read in (seed.read, seed.dear):
        if read is not None:
            fresh(seed, tmp_path / "in")
            read(tmp_path / "in")  # outside the guard, which takes a refusal for an answer


@pytest.mark.parametrize("name", SEEDS)
def test_a_changed_file_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    found = tried(SEEDS[name], range(CHEAP.get(name, USUAL)), tmp_path / "in", DEAR)
    assert not found, "\n\n".join(found[:5])


@pytest.mark.long
@pytest.mark.parametrize("name", SEEDS)
def test_many_more_changed_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    found = tried(SEEDS[name], range(CHEAP.get(name, USUAL), MOST), tmp_path / "in", FEWER)
    assert not found, "\n\n".join(found[:5])


def test_the_guard_sees_what_no_reader_may_do(tmp_path: Path) -> None:
    def writes() -> None:
        (tmp_path.parent / "outside.txt").write_text("x")

    def starts() -> None:
        subprocess.run([sys.executable, "-c", ""], check=True)

    def raises() -> None:
        raise KeyError("x")

    assert "what no reader may" in wrong(tmp_path / "in", writes) and "what no reader may" in wrong(
        tmp_path / "in", starts
    )
    assert "KeyError" in wrong(tmp_path / "in", raises)
    assert wrong(tmp_path, lambda: (tmp_path / "inside.txt").write_text("x")) == ""


# ----------------------------------------------------------------------------- what the fuzzer found, by name


def test_a_line_of_cases_that_is_no_case_is_refused() -> None:
    """It raised whatever the first wrong access did: KeyError, TypeError, binascii.Error."""
    for line in (b"", b"[]", b"{}", b'{"suite": 1}', b"[" * 5_000, b'{"instances": [["a", "%%%", true]]}'):
        with pytest.raises(BadInput, match=r"cases\.jsonl"):
            case_from_line(line)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2), "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN is no number"),
        ("9" * 5_000, "not JSON"),
        ("\x00", "not JSON"),
    ],
)
def test_a_line_that_python_reads_and_we_do_not_is_refused(value: str, said: str) -> None:
    """Nesting ended in a RecursionError, and NaN went into the figures."""
    with pytest.raises(BadInput, match=said):
        json_line(value, "x")


def test_numbers_that_cannot_be_counted_with_are_refused() -> None:
    """True was 1, and 2**70 ended in numpy's OverflowError."""
    assert shaped(tuple[int, float], [1, 2]) == (1, 2.0)
    for value in ([True, 1], [2**70, 1], [1.5, 1], [1, "1"], [1], None):
        with pytest.raises(ValueError, match=r"expected|beyond"):
            shaped(tuple[int, float], value)


def test_a_file_of_a_history_that_bursts_is_refused(tmp_path: Path) -> None:
    """It was unpacked whole, whatever its size; and damage within the packed bytes was a zlib.error."""
    path = tmp_path / "x.jsonl.gz"
    with gzip.open(path, "wb", 1) as file:
        for _ in range((MOST_BYTES >> 20) + 1):
            file.write(bytes(1 << 20))
    with pytest.raises(BadInput, match="unpacks to more"):
        read_lines(path)
    packed = bytearray(gzip.compress(b'{"history": 1}\n' * 100))
    packed[20] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(BadInput, match="no file of a history"):
        read_lines(path)


def test_a_published_run_that_bursts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line was read whole, and so was the file where its end was looked for; 40 kB could fill
    any memory.
    """
    fresh(SEEDS["published run"], tmp_path / "in")
    (path,) = (tmp_path / "in").rglob("rows.jsonl.xz")
    content = lzma.decompress(path.read_bytes())
    with lzma.open(path, "wb", preset=0) as file:
        file.write(content.splitlines(keepends=True)[0])
        for _ in range((LONGEST_LINE >> 20) + 1):
            file.write(b" " * (1 << 20))
    tracemalloc.start()
    with pytest.raises(BadInput, match="a line of more than 32 MiB"):
        list(store.read_rows(path.parent))
    assert store.read_end(path.parent) is None
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * LONGEST_LINE
    monkeypatch.setattr(store, "MOST_UNPACKED", 8 << 20)
    with pytest.raises(BadInput, match="unpacks to more than"):
        store.read_end(path.parent)


def test_a_long_line_is_read_or_refused_in_time(tmp_path: Path) -> None:
    """Ten megabytes in a name, in white space, in brackets and in a number; in a run's rows and in
    a suite.
    """
    fresh(SEEDS["rows"], tmp_path / "in")
    rows, suite = tmp_path / "in" / "rows.jsonl", tmp_path / "long.jsonl"
    head = rows.read_bytes().splitlines(keepends=True)[0]
    for content in (b'"%s"' % (b"x" * 10_000_000), b" " * 10_000_000, b"[" * 10_000_000, b"9" * 10_000_000):
        rows.write_bytes(head + b'{"kind": ' + content + b"}\n")
        suite.write_bytes(b'{"description": ' + content + b', "regex": "a"}\n')
        for read in (
            lambda: list(store.read_rows(rows.parent)),
            lambda: list(read_cases(find_suite(str(suite)))),
        ):
            assert wrong(tmp_path / "in", read) == "", content[:10]


@pytest.mark.parametrize("width", [10**12, -1, "300", 2.5, [300]])
def test_a_width_that_no_memory_holds_or_that_is_none_is_refused(width: object, tmp_path: Path) -> None:
    """A file of a few bytes asked for a list of 10**12 tokens."""
    fresh(SEEDS["byte-level tokenizer"], tmp_path / "in")
    (tmp_path / "in" / "config.json").write_text(json.dumps({"vocab_size": width}))
    with pytest.raises(BadInput, match=r"vocab_size|beyond any vocabulary"):
        load_vocabulary(f"hf:{tmp_path / 'in'}")


def test_a_rank_that_no_memory_holds_is_refused(tmp_path: Path) -> None:
    """tiktoken raised an OverflowError for some, and for smaller ones the list of tokens filled
    the memory.
    """
    fresh(SEEDS["tiktoken file"], tmp_path / "in")
    path = tmp_path / "in" / "mine.tiktoken"
    for rank in (10**12, 2**31):
        path.write_bytes(path.read_bytes() + b"enp6eg== %d\n" % rank)
        with pytest.raises(BadInput, match="beyond any vocabulary"):
            load_vocabulary(f"tiktoken:{path}")


def test_kernels_without_what_their_table_shows_are_refused(tmp_path: Path) -> None:
    """Every missing field was a KeyError of the table."""
    fresh(SEEDS["kernels"], tmp_path / "in")
    (path,) = (tmp_path / "in").iterdir()
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"kind": "time", "kernel": "x"}', ""]))
    with pytest.raises(BadInput, match=r"kernels\.jsonl:2: .* is missing"):
        read_kernels(tmp_path / "in")


def test_markdown_and_csv_of_kernels_hold_text_only(tmp_path: Path) -> None:
    """A kernel's name or what it said could end a cell, be a link, or be a formula in a spreadsheet."""
    fresh(SEEDS["kernels"], tmp_path / "in")
    (path,) = (tmp_path / "in").iterdir()
    evil = "=1+1|<img src=x>[a](javascript:alert(4))"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["kind"] in ("kernel", "probe", "time"):
            line |= {"kernel": evil} | (
                {"outcome": "failed", "text": evil} if line["kind"] == "probe" else {}
            )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read_kernels(tmp_path / "in")
    found = kernels.read(tmp_path / "in")
    assert "'=1+1|" in kernels.kernels_text(found, "csv")
    shown = kernels.kernels_text(found, "markdown")
    assert "=1+1\\|&lt;img src=x&gt;\\[a\\](" in shown and "<img" not in shown
