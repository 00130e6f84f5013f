"""The checks on a compiled case. A check is a function `check_<fact>(subject)` in a module of this folder, found without a list.

It yields a Finding for each place where the fact does not hold, and raises NotApplicable where there is nothing to check. What
escapes from the backend becomes a finding; what escapes from ours is ours.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from harness.checks.subject import NotApplicable as NotApplicable
from harness.checks.subject import Place as Place
from harness.checks.subject import Subject as Subject
from harness.oracle.automaton import NoOracle
from harness.oracle.trie import trie_of
from harness.row import Finding
from harness.vocabulary import Vocabulary

Check = Callable[[Subject], Iterator[Finding]]

BACKEND_ERROR = "backend_error"
DECODING = "decoding"
"""The category of the checks that decode."""
WRITES = "_writes_the_instance"
"""Behind a strategy's name, its check's."""
MOST_FINDINGS = 6
"""Of one check on one case; the last one says that there are more."""

NEITHERS = sys.stdlib_module_names | {"numpy", "torch"}
"""Modules whose errors are those of whoever called them."""


class OurFailure(Exception):
    """A check of ours failed in itself."""


def prepare(vocabulary: Vocabulary, *, decode: bool = False) -> None:
    """Make now, before any child is forked, what the checks need of a vocabulary: each module's `prepare`."""
    trie_of(vocabulary)
    for module in _modules():
        if hasattr(module, "prepare") and (decode or getattr(module, "CATEGORY", "") != DECODING):
            module.prepare(vocabulary)


@cache
def _modules() -> list[ModuleType]:
    return [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]


@cache
def checks() -> dict[str, Check]:
    """All checks by name, module by module in the order in which they are written."""
    modules = _modules()
    return {name.removeprefix("check_"): each for module in modules for name, each in vars(module).items() if name.startswith("check_")}


@cache
def made(effort: int, decode: bool) -> dict[str, Check]:
    """Those that a run of this effort makes: the checks of decoding only where it was told to."""
    return {name: each for name, each in checks().items() if (decode if category(name) == DECODING else effort != 0)}


def category(name: str) -> str:
    """What a check is about, in a word or two; empty for a name that is no check of today."""
    check = checks().get(name)
    return str(sys.modules[check.__module__].CATEGORY) if check is not None else ""


def asks_for_forced_text(name: str) -> bool:
    """Does the check ask the backend what must come next?"""
    return category(name) == "jump-forward" or name == f"jump_forward{WRITES}"


def run_check(name: str, check: Check, subject: Subject) -> tuple[str, list[Finding]]:
    """`passed`, `failed` or `skipped: why`, and the findings. Raises OurFailure."""
    findings: list[Finding] = []
    more = 0
    try:
        for finding in check(subject):
            if len(findings) < MOST_FINDINGS:
                findings.append(finding)
            else:
                more += 1
    except (NotApplicable, NoOracle) as why:
        if not findings:
            return f"skipped: {why}", []
    except BaseException as error:  # a panic in Rust and a backend's sys.exit() are no Exception
        if is_ours(error):
            raise OurFailure(f"check {name}: {type(error).__name__}: {error}") from error
        findings.append(Finding(name, None, f"the backend raised {type(error).__name__}: {error}"[:500], cause=BACKEND_ERROR))
    if more:
        findings.append(Finding(name, None, f"and {more} more places", cause="more"))
    return ("failed" if findings else "passed"), findings


def is_ours(error: BaseException) -> bool:
    """Is the innermost frame, but for those of the standard library and numpy, one of the harness (adapters are not)?"""
    ours = False
    trace = error.__traceback__
    while trace is not None:
        package, _, rest = str(trace.tb_frame.f_globals.get("__name__")).partition(".")
        if package not in NEITHERS:
            ours = package == "harness" and not rest.startswith("adapters.")
        trace = trace.tb_next
    return ours
