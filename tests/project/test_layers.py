"""Who may import whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from places import ROOT

from harness import LATER
from harness.backend.registry import load

TOP = ["errors", "text", "shape", "paths", "whole_files"]
"""The modules beside the rooms: every room may import them, and they import one another from the left."""

ROOMS = [
    "backend", "oracle", "cases", "rows", "walk", "checks", "running", "measure", "serve", "outcomes",
    "diagnose", "report", "cli"
]  # fmt: skip
"""The rooms of `harness`; each imports only from those before it."""

ORDER = [*TOP, *ROOMS]

KERNELS = ("harness.serve.decode.model.kernels", "harness.serve.decode.model.few")
"""Modules of nothing but kernels in Triton, which they have to import. Others import them where they run
one."""

BACKENDS = ("xgrammar", "llguidance", "outlines", "outlines_core", "lmformatenforcer", "llama_cpp")
"""The libraries of our adapters, by import name."""


def sources(node: str) -> list[Path]:
    folder = ROOT / "harness" / node
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def nodes() -> set[str]:
    entries = (ROOT / "harness").iterdir()
    found = {
        path.stem for path in entries if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))
    }
    return found - {"__init__", "__main__"}


@cache
def parsed(path: Path) -> ast.Module:
    """The file's tree, which several tests look at."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, on_import_only: bool = False) -> Iterator[str]:
    """The dotted names that a file imports, anywhere or only what runs when it is imported."""
    tree = parsed(path)
    for statement in _at_import(tree.body) if on_import_only else ast.walk(tree):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0 or path.parent == ROOT / "adapters", f"{path}: relative import"
            package = "harness.adapters." if statement.level else ""
            yield from (f"{package}{statement.module}.{alias.name}" for alias in statement.names)


def _at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements outside of functions and of `if TYPE_CHECKING`."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING"):
            yield from _at_import(statement.orelse)
            continue
        yield statement
        for field in ("body", "orelse", "finalbody"):
            yield from _at_import(getattr(statement, field, []))
        for handler in getattr(statement, "handlers", []):
            yield from _at_import(handler.body)


def top(name: str) -> str:
    return name.partition(".")[0]


def test_harness_is_thirteen_rooms() -> None:
    assert len(ROOMS) == 13
    assert sorted(ORDER) == sorted(nodes())


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for(room: str) -> None:
    """What goes in and what comes out, in its docstring; and the map in `harness/__init__` names it."""
    said = ast.get_docstring(ast.parse((ROOT / "harness" / room / "__init__.py").read_text("utf-8"))) or ""
    assert "In: " in said and "Out: " in said
    assert re.search(
        rf"^    {room}  ",
        ast.get_docstring(ast.parse((ROOT / "harness" / "__init__.py").read_text("utf-8"))) or "",
        re.M,
    )


@pytest.mark.parametrize("node", ORDER)
def test_a_room_imports_only_from_those_before_it(node: str) -> None:
    left = {*ORDER[: ORDER.index(node)], node}
    for path in sources(node):
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("harness.")}
        assert ours & set(ORDER) <= left, f"{path} imports {ours & set(ORDER) - left}"


def test_the_public_names_come_from_the_left_end() -> None:
    found = {
        name.split(".")[1]
        for name in imports(ROOT / "harness" / "__init__.py", on_import_only=True)
        if name.startswith("harness.")
    }
    assert found <= {"backend"}


CONTRACT = (
    "harness.backend.grammar.",
    "harness.backend.layout.",
    "harness.backend.adapter_parts",
    "harness.backend.known_tokens",
    "harness.backend.vocabulary.",
)
"""What every adapter may import of ours."""

ADAPTERS = sorted((ROOT / "adapters").glob("*.py"))
LONGEST_ADAPTER = 200
"""The most lines that a stranger reads in one go."""

OF_OURS = {
    "reference": ("harness.oracle",),
    "outlines_core": ("harness.oracle", "harness.oracle.forced_text"),
    "sglang": ("harness.backend.bridge",),
    "vllm": ("harness.backend.bridge",),
    "llama_cpp": ("harness.oracle",),
}
"""The adapters whose library is in part our own."""


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_is_read_in_one_go(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST_ADAPTER


NAMES = [path.stem for path in ADAPTERS if path.stem[0] != "_"]


def files_of(adapter: str) -> list[Path]:
    """The adapter's file, and those files beside it that begin with its name behind a `_`."""
    return [path for path in ADAPTERS if path.stem == adapter or path.stem.startswith(f"_{adapter}_")]


def test_every_file_is_an_adapter_or_belongs_to_one() -> None:
    assert sorted(path for name in NAMES for path in files_of(name)) == [
        path for path in ADAPTERS if path.stem != "__init__"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_imports_its_own_library_and_the_contract(name: str) -> None:
    public = {f"harness.{word}" for word, module in LATER.items() if f"{module}.".startswith(CONTRACT)}
    ours = (*CONTRACT, *OF_OURS.get(name, ()), f"harness.adapters._{name}_")
    required = {*sys.stdlib_module_names, "numpy", "torch", "referencing"}  # by us
    strangers = set()
    for module in (module for path in files_of(name) for module in imports(path)):
        if top(module) == "harness":
            if module not in public and not module.startswith(ours):
                strangers.add(module)
        elif top(module) not in required:
            strangers.add(top(module))
    if name == "llama_cpp":
        pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed (extra llama)")
    assert not strangers or strangers <= own_library(load(name).distribution)


def own_library(distribution: str) -> set[str]:
    """The import names of the distribution and of what it requires itself."""
    if not distribution:
        return set()
    required = {re.split(r"[^\w.-]", line)[0] for line in requires(distribution) or []}
    owners = {_normal(each) for each in (distribution, *required)}
    return {name for name, found in installed_packages() if owners & set(map(_normal, found))}


@cache
def installed_packages() -> tuple[tuple[str, list[str]], ...]:
    """Every import name with its distributions; to find them, all that is installed is read."""
    return tuple(packages_distributions().items())


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def of_examples(text: str) -> set[int]:
    """The lines of the examples that a command's help shows: only those may name a backend."""
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    shown = [word.value for call in calls for word in call.keywords if word.arg == "examples"]
    return {line for value in shown for line in range(value.lineno, (value.end_lineno or value.lineno) + 1)}


def test_harness_names_no_backend() -> None:
    word = re.compile(r"xgrammar|llguidance|outlines|format.?enforcer", re.IGNORECASE)
    found = []
    for path in (ROOT / "harness").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named = {number for number, line in enumerate(text.splitlines(), 1) if word.search(line)}
        if named and path.parent.name == "cli":
            named -= of_examples(text)
        found += [f"{path.relative_to(ROOT)}:{number}" for number in sorted(named)]
    assert found == []


@pytest.mark.parametrize("node", ORDER)
def test_importing_harness_loads_neither_torch_nor_a_backend(node: str) -> None:
    for path in sources(node):
        names = list(imports(path, on_import_only=True))
        if path in [ROOT / f"{module.replace('.', '/')}.py" for module in KERNELS]:
            continue
        assert not any(f"{name}.".startswith(f"{module}.") for name in names for module in KERNELS), path
        assert not {top(name) for name in names} & {"torch", "transformers", "ray", *BACKENDS}, path


@pytest.mark.parametrize("node", ORDER[: ORDER.index("outcomes")])
def test_pandas_and_matplotlib_stand_in_outcomes_and_right_of_it(node: str) -> None:
    for path in sources(node):
        assert not {top(name) for name in imports(path)} & {"pandas", "matplotlib"}, path


@pytest.mark.parametrize(
    "module",
    ["harness.cli.main", "harness.backend.registry", "harness.running.coordinator", "harness.running.worker"],
)
def test_the_start_is_light(module: str) -> None:
    heavy = {"torch", "transformers", "ray", "pandas", "matplotlib", *BACKENDS}
    program = f"import sys, {module}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("folder", ["suites", "results", "reports"])
def test_a_content_folder_holds_no_code(folder: str) -> None:
    assert [path.name for path in (ROOT / folder).rglob("*.py")] == ["__init__.py"]
    (docstring,) = ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8")).body
    assert (
        isinstance(docstring, ast.Expr)
        and isinstance(docstring.value, ast.Constant)
        and isinstance(docstring.value.value, str)
    )


def test_the_adapters_folder_itself_is_only_a_docstring() -> None:
    assert len(ast.parse((ROOT / "adapters" / "__init__.py").read_text(encoding="utf-8")).body) == 1


def test_a_planted_backwards_import_is_seen(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "def late() -> None:\n    from harness.report.page import page\n    import torch\nif True:\n    "
        "import pandas.core\n"
    )
    assert set(imports(planted)) == {"harness.report.page.page", "torch", "pandas.core"}
    assert set(imports(planted, on_import_only=True)) == {"pandas.core"}


@pytest.mark.long
def test_every_module_can_be_the_first_that_is_imported() -> None:
    """A circle of imports shows only where it is entered at the wrong place."""
    folder = ROOT / "harness"
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(folder.rglob("*.py"))
        if path.name != "__main__.py"
    ]
    failed = []
    for name in names:
        done = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, text=True)
        if done.returncode:
            failed.append(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    assert len(names) > 200 and failed == []
