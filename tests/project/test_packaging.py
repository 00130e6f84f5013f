"""What is installed: one import name, with the content folders inside it."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

from places import ROOT

import harness


def test_the_content_folders_lie_inside_the_one_import_name() -> None:
    assert (files("harness.suites") / "json_schema.jsonl").is_file()
    assert (files("harness.adapters") / "scripts" / "xgrammar.txt").is_file()
    assert json.loads((files("harness.results") / "row.schema.json").read_text())["$defs"]["row"]
    assert any(each.name.endswith(".j2") for each in files("harness.reports").iterdir())
    assert (Path(str(files("harness"))) / "py.typed").is_file()


def test_the_command_and_the_version_are_installed() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="grammarbench")
    assert script.value == "harness.__main__:main"
    assert importlib.metadata.version("grammarbench") == harness.__version__


def test_no_top_level_name_but_harness_is_installed(tmp_path: Path) -> None:
    """AdapterHub's package is called `adapters`; ours must not stand in its place."""
    code = (
        "import importlib.util as u, sys; sys.exit(any(u.find_spec(n) for n in ('adapters', 'suites', "
        "'results', 'reports')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0


def test_python_dash_m_works_from_anywhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.strip() == f"grammarbench {harness.__version__}"


def test_every_folder_of_the_harness_is_in_the_wheel() -> None:
    """A folder without `__init__.py` works from the checkout and is missing from the wheel."""
    folders = {path.parent for path in (ROOT / "harness").rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []
    mapped = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-dir"]
    assert set(mapped) - {"harness"} == set(
        re.findall(r'"(harness\.\w+)"', (ROOT / "setup.py").read_text("utf-8"))
    )


def test_the_citation_is_that_of_the_methods_page_at_this_version() -> None:
    """cffconvert takes the file; here it is held against what else says the same."""
    lines = (ROOT / "CITATION.cff").read_text("utf-8").splitlines()
    said = {key: value for key, colon, value in (line.partition(": ") for line in lines) if colon}
    page = (ROOT / "docs" / "methods.md").read_text("utf-8")
    bibtex = dict(re.findall(r"^  (\w+) += \{+(.+?)\}+,?$", page, re.M))
    assert said["cff-version"] == "1.2.0" and said["type"] == "software" and said["message"]
    assert said["version"] == harness.__version__ == bibtex["version"]
    assert said["license"] == bibtex["license"] and said["  - name"] == bibtex["author"]
    assert said["title"].strip('"') == bibtex["title"]
