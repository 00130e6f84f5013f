"""These tests say what tells one environment for another version of a backend from the next, and what is
installed into it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from toy_releases import SOURCE, wheel

from harness.backend.environments import build as environments
from harness.backend.environments.overlay import missing
from harness.backend.environments.source import source_of
from harness.backend.registry import MARKER, BackendSpec
from harness.backend.vocabulary import load_vocabulary
from harness.errors import BadInput


def test_a_path_is_known_by_its_content(tmp_path: Path) -> None:
    one = source_of("toy-backend", str(wheel(tmp_path, "1.0")))
    assert source_of("toy-backend", str(wheel(tmp_path / "copy", "1.0"))).digest == one.digest
    assert source_of("toy-backend", str(wheel(tmp_path, "1.0", SOURCE + "#"))).digest != one.digest
    checkout = tmp_path / "checkout"
    (checkout / "build").mkdir(parents=True)
    (checkout / "code.py").touch()
    before = source_of("toy-backend", str(checkout))
    (checkout / "build" / "output").touch()
    assert source_of("toy-backend", str(checkout)) == before, "what building writes is no change"
    (checkout / "code.py").write_text("x = 1")
    assert source_of("toy-backend", str(checkout)).digest != before.digest


@pytest.mark.parametrize("name", ["package/target/x.py", "package/build/x.py", "package/link.py"])
def test_what_only_looks_built_is_source(tmp_path: Path, name: str) -> None:
    checkout, file = tmp_path / "checkout", tmp_path / "checkout" / name
    file.parent.mkdir(parents=True)
    if file.name == "link.py":
        (tmp_path / "elsewhere.py").touch()
        file.symlink_to(tmp_path / "elsewhere.py")
    file.touch()
    (checkout / "gone.py").symlink_to("nowhere")
    before = source_of("toy-backend", str(checkout))
    file.write_text("x = 1")
    assert source_of("toy-backend", str(checkout)).digest != before.digest


@pytest.mark.parametrize("mark", ["CACHEDIR.TAG", "CMakeCache.txt"])
def test_what_cargo_or_cmake_has_written_is_no_source_wherever_it_is(tmp_path: Path, mark: str) -> None:
    (tmp_path / "rust" / "out" / "deep").mkdir(parents=True)
    (tmp_path / "rust" / "out" / mark).touch()
    before = source_of("toy-backend", str(tmp_path))
    (tmp_path / "rust" / "out" / "deep" / "object.o").touch()
    assert source_of("toy-backend", str(tmp_path)) == before


@pytest.mark.parametrize("change", ["taken away", "an older one in its place", "renamed", "longer"])
def test_a_checkout_is_known_by_every_file_of_it(tmp_path: Path, change: str) -> None:
    for number, name in enumerate(("old.py", "middle.py", "new.py"), 1):
        (tmp_path / name).write_text("x = 1")
        os.utime(tmp_path / name, (number, number))
    before = source_of("toy-backend", str(tmp_path))
    old = tmp_path / "old.py"
    if change == "taken away":
        old.unlink()
    elif change == "renamed":
        old.rename(tmp_path / "other.py")
    else:
        old.write_text("x = 2" if change == "an older one in its place" else "x = 1 + 1")
        os.utime(old, (0, 0) if change == "an older one in its place" else (1, 1))
    assert source_of("toy-backend", str(tmp_path)).digest != before.digest, "the newest file is as it was"


def test_an_environment_under_another_interpreter_is_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(environments.CACHE, str(tmp_path))
    source = source_of("toy-backend", "1.0")
    folders = {
        environments.folder_of(each)
        for each in (source, source_of("toy-backend", "1.1"), replace(source, digest="x"))
    }
    assert len(folders) == 3
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    assert environments.folder_of(source) not in folders


@pytest.mark.parametrize("variable", ["PIP_FIND_LINKS", "UV_FIND_LINKS"])
def test_a_wheel_that_was_built_anew_under_its_version_is_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    source = source_of("toy-backend", "1.0")
    usual = environments.folder_of(source)
    monkeypatch.setenv(variable, str(tmp_path))
    (tmp_path / "other-1.0-py3-none-any.whl").touch()
    named = environments.folder_of(source)
    (tmp_path / "other-1.0-py3-none-any.whl").write_bytes(b"longer")
    assert environments.folder_of(source) == named != usual
    made = tmp_path / "toy_backend-1.0-py3-none-any.whl"
    made.touch()
    before = environments.folder_of(source)
    os.utime(made, (1, 1))
    assert len({named, before, environments.folder_of(source)}) == 3


def metadata(folder: Path, name: str, version: str, *requires: str) -> None:
    """Writes what the installation of a distribution leaves."""
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {text}" for text in requires)]
    (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
    (folder / f"{name}-{version}.dist-info" / "METADATA").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", ["numpy", "NumPy", "Torch"])
def test_what_all_arms_share_is_not_installed_however_it_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    metadata(tmp_path, "toy_backend", "1.0", f"{name}>=999")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="which all arms of a run share"):
        missing("toy-backend")


def test_what_an_extra_of_a_requirement_needs_is_missing_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    metadata(tmp_path, "toy_backend", "1.0", "toy_a[fast]", "toy_a")
    metadata(tmp_path, "toy_a", "1.0", "toy_b>=2; extra == 'fast'", "toy_c; extra == 'slow'", "toy_a[fast]")
    monkeypatch.syspath_prepend(tmp_path)
    assert missing("toy-backend") == ["toy_b>=2"]


@pytest.mark.parametrize(
    "marker", ["{", "[]", '{"distribution": "toy-backend"}', "whole, but without python"]
)
def test_an_environment_that_is_damaged_is_built_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, marker: str
) -> None:
    monkeypatch.setenv(environments.CACHE, str(tmp_path))
    source, built = source_of("toy-backend", "1.0"), []
    folder = environments.folder_of(source)
    (folder / "bin").mkdir(parents=True)
    if marker[0] != "w":
        (folder / "bin" / "python").touch()
    else:
        marker = '{"distribution": "toy-backend", "version": "1.0", "from": "toy-backend==1.0"}'
    (folder / MARKER).write_text(marker)
    monkeypatch.setattr(environments, "_build", lambda *_: built.append(1))
    environments.build(source, lambda _: None)
    assert built == [1]


def test_an_installed_version_that_is_no_version_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def build(*arguments: object) -> None:
        asked.append(arguments)
        raise BadInput("built")

    monkeypatch.setattr(environments, "build", build)
    with pytest.raises(BadInput, match="built"):
        environments.place(BackendSpec("toy", "1.0"), "toy-backend", "2024.x_dev", print)


def test_a_home_folder_that_nobody_has_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="nobody's home folder"):
        source_of("toy-backend", "~nobody-of-that-name/x")
    monkeypatch.setenv(environments.CACHE, "~nobody-of-that-name/x")
    with pytest.raises(BadInput, match="nobody's home folder"):
        environments.environments_folder()
    for kind in ("hf", "tiktoken", "gguf"):
        with pytest.raises(BadInput, match="nobody's home folder"):
            load_vocabulary(f"{kind}:~nobody-of-that-name/x")
