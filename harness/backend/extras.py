"""Says how the library behind one of our adapters is installed, without importing the adapter."""

from __future__ import annotations

import ast
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def how_to_install(adapter: Path) -> str:
    """Returns the pip command that installs what the adapter in this file needs: the extra of ours that has
    its distribution, or else the distribution itself."""
    distribution = _distribution_in(adapter)
    extra = _extra_with(distribution)
    return (
        f'pip install "grammarbench[{extra}]"' if extra else f"pip install {distribution or 'what it needs'}"
    )


def _distribution_in(adapter: Path) -> str:
    """Returns the `distribution` that the adapter's class states; empty if none is stated as a text."""
    for node in ast.walk(ast.parse(adapter.read_text("utf-8"))):
        if (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == "distribution" for target in node.targets)
            and isinstance(node.value, ast.Constant)
        ):
            return str(node.value.value)
    return ""


def _extra_with(distribution: str) -> str:
    """Returns the first extra of grammarbench that requires the distribution; empty if none does."""
    try:
        extras = metadata("grammarbench").get_all("Provides-Extra") or []
        requirements = [Requirement(text) for text in requires("grammarbench") or []]
    except PackageNotFoundError:
        return ""
    for extra in extras:
        for requirement in requirements:
            if (
                canonicalize_name(requirement.name) == canonicalize_name(distribution)
                and requirement.marker is not None
                and requirement.marker.evaluate({"extra": extra})
            ):
                return str(extra)
    return ""
