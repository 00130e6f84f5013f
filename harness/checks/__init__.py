"""The checks on a compiled case.

A check is a function `check_<fact>(subject)` in a module of this folder, found without a list; its name
without `check_` is its id everywhere. A module whose checks are made, not written, has a function `checks()`
that yields them. Each module names its `CATEGORY`, and a module whose checks tell whether the backend allows
exactly what it should names the dialects in which they do (`JUDGES`).

In: a case that one backend compiled. Out: findings. A check yields a Finding (position, text, cause and
counts) for each place where the fact does not hold, and raises NotApplicable where there is nothing to check;
`run_check` adds the check's name and whether the backend documents the cause. What escapes from the backend
becomes a finding; what escapes from our own code is our failure.
"""

from __future__ import annotations

import math
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from time import perf_counter
from types import ModuleType

from harness.backend.vocabulary import Vocabulary
from harness.checks.subject import NotApplicable as NotApplicable
from harness.checks.subject import Place as Place
from harness.checks.subject import Subject as Subject
from harness.errors import BadInput, OutOfTime, did_you_mean, error_text
from harness.oracle.automaton import NoOracle
from harness.oracle.trie import trie_of
from harness.rows.row import OUT_OF_TIME, Finding

Check = Callable[[Subject], Iterator[Finding]]

BACKEND_ERROR = "backend_error"
MASKS = "masks"
"""The category of the checks that compare masks."""
DECODING = "decoding"
"""The category of the checks that decode."""
WRITES = "_writes_the_instance"
"""A strategy's name plus this suffix is the name of its check."""
MOST_FINDINGS = 6
"""Most findings that are kept of one check on one case; one more says how many there were beyond them."""
LONGEST_TEXT = 1000
"""Characters of a finding's text; the rest is cut off."""

SLOW = 3
"""One check, and all walks of a case together, may take this many deadlines of a call by the clock: a backend
whose calls are slow without being late would have no end."""

WATCHED = "harness.walk.watched"

NEITHERS = sys.stdlib_module_names | {"numpy", "torch"}
"""Modules whose errors are those of whoever called them."""


class OurFailure(Exception):
    """A check of ours failed in itself."""


def prepare(vocabulary: Vocabulary, *, decode: bool = False) -> None:
    """Makes now, before any child is forked, what the checks need of a vocabulary: calls each module's
    `prepare`."""
    trie_of(vocabulary)
    for module in _modules():
        if hasattr(module, "prepare") and (decode or getattr(module, "CATEGORY", "") != DECODING):
            module.prepare(vocabulary)


@cache
def _modules() -> list[ModuleType]:
    """Returns the modules with checks, by name; those of masks come first, because the time for a case's
    checks may be up before the last."""
    found = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return sorted(found, key=lambda module: getattr(module, "CATEGORY", "") != MASKS)


@cache
def checks() -> dict[str, Check]:
    """Returns all checks by name, module by module, in each in the order in which they are written."""
    return {
        check.__name__.removeprefix("check_"): check for module in _modules() for check in checks_of(module)
    }


def checks_of(module: ModuleType) -> Iterator[Check]:
    """Yields the functions `check_...` of a module, and the checks that its function `checks` yields."""
    yield from (value for name, value in vars(module).items() if name.startswith("check_"))
    if hasattr(module, "checks"):
        yield from module.checks()


@cache
def made(effort: int, decode: bool, only: tuple[str, ...] = ()) -> dict[str, Check]:
    """Returns the checks that a run of this effort makes; those of decoding only if it decodes, and where
    `only` names some, none but these."""
    return {
        name: check
        for name, check in checks().items()
        if (decode if category(name) == DECODING else effort != 0) and (not only or name in only)
    }


def named_checks(wanted: Sequence[str]) -> tuple[str, ...]:
    """Returns the checks that are meant by their names or categories (`-` and `_` are the same), each once,
    in the order in which they are made. Raises BadInput for what is neither."""
    known = {name: {name} for name in checks()}
    for name in checks():
        known.setdefault(category(name).replace(" ", "_").replace("-", "_").lower(), set()).add(name)
    chosen: set[str] = set()
    for word in wanted:
        key = word.strip().replace(" ", "_").replace("-", "_").lower()
        if key not in known:
            categories = ", ".join(dict.fromkeys(map(category, checks())))
            raise BadInput(
                f'unknown check "{word}"{did_you_mean(key, list(known))} (categories: {categories})'
            )
        chosen |= known[key]
    return tuple(name for name in checks() if name in chosen)


def category(name: str) -> str:
    """Returns what a check is about, in a word or two; empty for a name that no check has today."""
    check = checks().get(name)
    return str(sys.modules[check.__module__].CATEGORY) if check is not None else ""


@cache
def judging_dialects() -> dict[str, tuple[str, ...]]:
    """Returns, for each check that judges, the dialects in which its result tells whether the backend allows
    exactly what it should.

    A module says so of its checks by `JUDGES`.
    """
    judged = (
        (name, getattr(sys.modules[check.__module__], "JUDGES", ())) for name, check in checks().items()
    )
    return {name: tuple(dialects) for name, dialects in judged if dialects}


@cache
def judged_dialects() -> frozenset[str]:
    """Returns the dialects whose cases some check judges."""
    return frozenset(dialect for dialects in judging_dialects().values() for dialect in dialects)


def is_policy(name: str) -> bool:
    """Does the check find choices rather than faults?

    A module says so of its checks by `POLICY`; a check that is not known has none.
    """
    check = checks().get(name)
    return check is not None and getattr(sys.modules[check.__module__], "POLICY", False)


def asks_for_forced_text(name: str) -> bool:
    """Does the check ask the backend what must come next?"""
    return category(name) == "jump-forward" or name == f"jump_forward{WRITES}"


def run_check(name: str, check: Check, subject: Subject) -> tuple[str, list[Finding]]:
    """Returns `passed`, `failed` or `skipped: why`, and the findings. Raises OurFailure.

    A check whose calls of the backend take SLOW times the whole case's time together is ended, and what it
    has found by then is kept.
    """
    findings: list[Finding] = []
    more: list[Finding] = []
    subject.watch.until = perf_counter() + SLOW * subject.seconds
    try:
        for finding in stamped(name, check, subject):
            if len(findings) < MOST_FINDINGS:
                findings.append(finding)
                continue
            more.append(finding)
            if not finding.documented and findings[-1].documented:
                # One finding that the backend does not document decides about the case, so it is kept.
                findings[-1] = finding
    except (NotApplicable, NoOracle) as why:
        if not findings:
            return f"skipped: {why}", []
    except OutOfTime:
        if not findings:
            return OUT_OF_TIME, []
    except BaseException as error:  # a panic in Rust and a backend's sys.exit() are no Exception
        if subject.adapter.is_ours or is_ours(error):
            raise OurFailure(f"check {name}: {error_text(error)}") from error
        findings.append(
            Finding(name, None, f"the backend raised {error_text(error)}"[:500], cause=BACKEND_ERROR)
        )
    finally:
        subject.watch.until = math.inf
    if more:
        documented = all(finding.documented for finding in more)
        findings.append(
            Finding(name, None, f"and {len(more)} more places", cause="more", documented=documented)
        )
    return ("failed" if findings else "passed"), findings


def stamped(name: str, check: Check, subject: Subject) -> Iterator[Finding]:
    """Yields the check's findings with the check's name, and with `documented` set for causes that the
    backend documents; their texts are cut to LONGEST_TEXT. In a case without instances none is along one."""
    for finding in check(subject):
        yield replace(
            finding,
            check=name,
            text=finding.text[:LONGEST_TEXT],
            instance=finding.instance if subject.case.instances else None,
            documented=finding.documented or subject.adapter.documents(finding.cause),
        )


def is_ours(error: BaseException) -> bool:
    """Returns whether the innermost frame is one of the harness; those of the standard library and numpy do
    not count, nor do those of libraries that our reference calls before the backend is asked.

    Adapters are not ours, nor is what a watched call returns, or raises without a frame of its own. What an
    adapter from elsewhere raises is not ours, whatever function of ours it gave something wrong.
    """
    ours = is_watched = was_asked = is_reference = False
    trace = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        package, _, rest = module.partition(".")
        if package not in NEITHERS:
            if is_watched and package != "harness":
                return False
            is_watched = module == WATCHED
            was_asked = was_asked or is_watched
            if package == "harness":
                is_reference = rest.startswith("oracle.") and not was_asked
                ours = not rest.startswith("adapters.") and not is_watched
            else:
                ours = is_reference
        trace = trace.tb_next
    return ours
