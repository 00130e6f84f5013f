"""Who may import whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from harness.registry import load

ROOT = Path(__file__).parents[1]

ORDER = [
    "errors",
    "terminal",
    "vocabulary",
    "tokenizations",
    "grammar",
    "oracle",
    "contract",
    "registry",
    "jump_forward",
    "bridge",
    "case",
    "suite",
    "judge",
    "row",
    "spellings",
    "walk",
    "loop",
    "checks",
    "store",
    "guard",
    "machine",
    "channel",
    "process",
    "worker",
    "service",
    "checkup",
    "describe",
    "scripts",
    "kernels",
    "overlay",
    "environments",
    "releases",
    "adjudicate",
    "plan",
    "booking",
    "run",
    "shard",
    "on_ray",
    "session",
    "merge",
    "measure",
    "decode",
    "live",
    "seen",
    "keywords",
    "ratchet",
    "differences",
    "bisect",
    "slowdown",
    "compare",
    "alert_rule",
    "history",
    "fates",
    "doctor",
    "metrics",
    "table",
    "brief",
    "faults",
    "spelling_table",
    "ceiling_table",
    "passes_table",
    "time_table",
    "result",
    "export",
    "report",
    "reference_page",
    "shrink",
    "repro",
    "corpora",
    "commands",
    "options",
    "cli",
    "plugin",
    "__main__",
]
"""The modules of `harness`, a folder as one; each imports from its left only."""

BACKENDS = ("xgrammar", "llguidance", "outlines", "outlines_core", "lmformatenforcer", "llama_cpp")
"""The libraries of our adapters, by import name."""


def sources(node: str) -> list[Path]:
    folder = ROOT / "harness" / node
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def nodes() -> set[str]:
    entries = (ROOT / "harness").iterdir()
    return {path.stem for path in entries if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))} - {"__init__"}


def imports(path: Path, *, on_import_only: bool = False) -> Iterator[str]:
    """The dotted names that a file imports, anywhere or only what runs when it is imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement in _at_import(tree.body) if on_import_only else ast.walk(tree):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}: relative import"
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


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


def test_every_module_has_its_place_in_the_line() -> None:
    assert len(ORDER) == len(set(ORDER))
    assert set(ORDER) == nodes()


@pytest.mark.parametrize("node", ORDER)
def test_a_module_imports_only_from_its_left(node: str) -> None:
    left = {*ORDER[: ORDER.index(node)], node}
    for path in sources(node):
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("harness.")}
        assert ours & set(ORDER) <= left, f"{path} imports {ours & set(ORDER) - left}"


def test_the_public_names_come_from_the_left_end() -> None:
    found = {name.split(".")[1] for name in imports(ROOT / "harness" / "__init__.py") if name.startswith("harness.")}
    assert found <= {"vocabulary", "grammar"}


OF_OURS = {
    "reference": ("harness.oracle",),
    "outlines_core": ("harness.oracle", "harness.jump_forward"),
    "sglang": ("harness.bridge",),
    "vllm": ("harness.bridge",),
    "llama_cpp": ("harness.oracle",),
}
"""The adapters whose library is in part our own."""


@pytest.mark.parametrize("name", [path.stem for path in sorted((ROOT / "adapters").glob("[!_]*.py"))])
def test_an_adapter_imports_its_own_library_and_the_contract(name: str) -> None:
    public = {f"harness.{each.rpartition('.')[2]}" for each in imports(ROOT / "harness" / "__init__.py")}
    strangers = set()
    for each in imports(ROOT / "adapters" / f"{name}.py"):
        if top(each) == "harness":
            own = OF_OURS.get(name, ())
            if each not in public and not each.startswith(("harness.grammar.", "harness.vocabulary.", *own)):
                strangers.add(each)
        elif top(each) not in {*sys.stdlib_module_names, "numpy", "torch", "referencing"}:  # what we require ourselves
            strangers.add(top(each))
    if name == "llama_cpp":
        pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed (extra llama)")
    assert not strangers or strangers <= own_library(load(name).distribution)


def own_library(distribution: str) -> set[str]:
    """The import names of the distribution and of what it requires itself."""
    if not distribution:
        return set()
    required = {re.split(r"[^\w.-]", line)[0] for line in requires(distribution) or []}
    owners = {_normal(each) for each in (distribution, *required)}
    return {name for name, found in packages_distributions().items() if owners & set(map(_normal, found))}


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_harness_names_no_backend() -> None:
    word = re.compile(r"xgrammar|llguidance|outlines|format.?enforcer", re.IGNORECASE)
    files = (ROOT / "harness").rglob("*.py")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if word.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("node", ORDER)
def test_importing_harness_loads_neither_torch_nor_a_backend(node: str) -> None:
    for path in sources(node):
        assert not {top(name) for name in imports(path, on_import_only=True)} & {"torch", "transformers", "ray", *BACKENDS}, path


@pytest.mark.parametrize("node", ORDER[: ORDER.index("table")])
def test_pandas_and_matplotlib_stand_right_of_the_rows(node: str) -> None:
    for path in sources(node):
        assert not {top(name) for name in imports(path)} & {"pandas", "matplotlib"}, path


@pytest.mark.parametrize("module", ["harness.cli", "harness.registry", "harness.run", "harness.worker"])
def test_the_start_is_light(module: str) -> None:
    heavy = {"torch", "transformers", "ray", "pandas", "matplotlib", *BACKENDS}
    program = f"import sys, {module}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("folder", ["suites", "results", "reports"])
def test_a_content_folder_holds_no_code(folder: str) -> None:
    assert [path.name for path in (ROOT / folder).rglob("*.py")] == ["__init__.py"]
    (docstring,) = ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8")).body
    assert isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant) and isinstance(docstring.value.value, str)


def test_the_adapters_folder_itself_is_only_a_docstring() -> None:
    assert len(ast.parse((ROOT / "adapters" / "__init__.py").read_text(encoding="utf-8")).body) == 1


def test_a_planted_backwards_import_is_seen(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("def late() -> None:\n    from harness.report import page\n    import torch\nif True:\n    import pandas.core\n")
    assert set(imports(planted)) == {"harness.report.page", "torch", "pandas.core"}
    assert set(imports(planted, on_import_only=True)) == {"pandas.core"}
