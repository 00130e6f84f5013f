"""A version that is told is that of the code that ran, or the run says that it may not be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from places import SUPPORT

from harness.backend.describe import describe
from harness.backend.registry import parse_spec
from harness.running import looking

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
