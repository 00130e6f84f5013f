"""The checks that every adapter must pass, on tiny grammars and on the adapter's own vocabulary.

They ask whether an adapter keeps the calling convention, not whether its backend keeps the grammar: a backend
that is stricter or looser than it should be passes, or is skipped where there is nothing to try. A check is a
function `check_<fact>(adapter)` in a module of this folder; it returns if the fact holds, and raises
`ContractBroken` or `NotApplicable`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from traceback import walk_tb
from typing import Literal

from harness.backend.contract.place import NOTHING_COMPILES as NOTHING_COMPILES
from harness.backend.contract.place import ContractBroken as ContractBroken
from harness.backend.contract.place import NotApplicable as NotApplicable
from harness.backend.contract.place import Place
from harness.backend.grammar import Adapter, Grammar
from harness.errors import error_text
from harness.text import one_line

Check = Callable[[Adapter], None]

LONGEST = 1000
"""The most characters of what a check says: a backend's own text in it may have any length."""


@dataclass(frozen=True)
class CheckResult:
    """What one check said about one adapter."""

    check: str
    status: Literal["passed", "failed", "skipped", "error", "timeout"]
    """`error`: the adapter or its backend raised what the contract does not name, or ended the process.
    `timeout`: the check was not over in time, and says nothing of its fact."""
    text: str
    """Why, in one line of at most LONGEST characters; empty if passed."""
    where: str = ""
    """The grammar with which an error was raised, where that is known; else empty."""


def checks() -> list[Check]:
    """Returns all checks, module by module in the order in which they are written."""
    modules = [import_module(f"{__name__}.{submodule.name}") for submodule in pkgutil.iter_modules(__path__)]
    return [value for module in modules for name, value in vars(module).items() if name.startswith("check_")]


def check_name(check: Check) -> str:
    """The fact, as pytest, rows and the command line print it."""
    return check.__name__.removeprefix("check_")


def check_adapter(adapter: Adapter, chosen: Sequence[Check] | None = None) -> list[CheckResult]:
    """The results of the chosen checks, or of all."""
    return [_run(check, adapter) for check in (checks() if chosen is None else chosen)]


def _run(check: Check, adapter: Adapter) -> CheckResult:
    try:
        check(adapter)
    except ContractBroken as broken:
        return CheckResult(check_name(check), "failed", cut(str(broken)))
    except NotApplicable as reason:
        return CheckResult(check_name(check), "skipped", cut(str(reason)))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        return CheckResult(check_name(check), "error", cut(error_text(error)), cut(_grammar_at(error)))
    return CheckResult(check_name(check), "passed", "")


def _grammar_at(error: BaseException) -> str:
    """Returns the sample grammar at which the checks were when it was raised; empty if they were at none."""
    at = ""
    for frame, _ in walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            grammar = value.grammar if isinstance(value, Place) else value
            at = f"{grammar.dialect} {grammar.text.strip()}" if isinstance(grammar, Grammar) else at
    return at


def cut(text: str) -> str:
    """Returns the text as one line of at most LONGEST characters."""
    return one_line(text[: LONGEST + 1], LONGEST)
