"""A version that is told is that of the code that ran, or the run says that it may not be."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from places import SUPPORT

from harness.backend.describe import describe
from harness.backend.registry import parse_spec
from harness.cli.main import main
from harness.errors import BAD_INPUT, BadInput
from harness.measure.growth.session import GrowthSession
from harness.running import looking
from harness.serve.decode import session as decode_session

TOY = """
from miniatures.reference import Reference

class Toy(Reference):
    distribution = "toy-shadow"
"""


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A folder in which the distribution is installed, and a checkout of it."""
    site, checkout = tmp_path / "site", tmp_path / "checkout"
    for folder in (site, checkout):
        (folder / "toy_shadow").mkdir(parents=True)
        (folder / "toy_shadow" / "__init__.py").write_text(TOY)
    about = site / "toy_shadow-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-shadow\nVersion: 1.2\n")
    (about / "RECORD").write_text("toy_shadow/__init__.py,,\ntoy_shadow-1.2.dist-info/METADATA,,\n")
    return site, checkout


def use(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    paths = [*map(str, folders), str(SUPPORT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def test_a_checkout_before_the_installed_distribution_is_told(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, checkout = places
    use(monkeypatch, checkout, site)
    described = describe(["toy_shadow:Toy", "miniatures:Reference"], [])
    (said,) = described.shadowed
    assert described.arms[0].version == "1.2"
    assert said.startswith("toy-shadow 1.2 is installed, and toy_shadow is imported from ")
    assert str(checkout) in said
    told: list[str] = []
    looking.look_at([parse_spec("toy_shadow:Toy")], [], told.append)
    assert said in told


@pytest.mark.parametrize("editable", [False, True])
def test_what_is_installed_plainly_or_for_editing_is_not(
    places: tuple[Path, Path], editable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, checkout = places
    if editable:
        url = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
        (site / "toy_shadow-1.2.dist-info" / "direct_url.json").write_text(json.dumps(url))
    use(monkeypatch, *((checkout, site) if editable else (site, checkout)))
    described = describe(["toy_shadow:Toy"], [])
    assert described.arms[0].version == "1.2" and not described.shadowed


def test_the_backends_that_are_installed_here_are_what_they_say() -> None:
    assert not describe(["xgrammar", "llguidance", "outlines-core", "lm-format-enforcer"], []).shadowed


def enough(*_: Any) -> None:
    raise BadInput("that is all that is asked for")


GROWTH = ["measure", "growth", "enum", "--most", "1", "--forks", "1", "--vocabularies", "probe", "--backends"]
DECODE = ["decode", "speed", "--profile", "quick", "--vocabularies", "probe", "--backends"]


@pytest.mark.parametrize("command", [GROWTH, DECODE], ids=["growth", "decode"])
def test_each_command_that_stores_figures_of_a_version_looks_at_its_backends(
    command: list[str],
    places: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site, checkout = places
    monkeypatch.setattr(GrowthSession, "run", enough)
    monkeypatch.setattr(decode_session, "_run", enough)
    for number, folders in enumerate([(checkout, site), (site, checkout)]):
        use(monkeypatch, *folders)
        assert main([*command, "toy_shadow:Toy", "--out", str(tmp_path / str(number))]) == BAD_INPUT
        said = capsys.readouterr().err
        assert "that is all that is asked for" in said
        assert ("toy_shadow is imported from" in " ".join(said.split())) == (folders[0] == checkout)


@pytest.mark.parametrize("command", [GROWTH, DECODE], ids=["growth", "decode"])
def test_one_arm_under_two_names_is_asked_for_once(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(GrowthSession, "run", enough)
    monkeypatch.setattr(decode_session, "_run", enough)
    twice = f"llguidance,llguidance=={version('llguidance')}"
    assert main([*command, twice, "--out", str(tmp_path / "out")]) == BAD_INPUT
    assert "asked for twice" in " ".join(capsys.readouterr().err.split())
