"""The options that several commands share, each with one spelling and one meaning, and short ways to add an
option with its default in the help.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.cli.values import names, one_vocabulary, positive, positive_number
from harness.errors import BadInput

if TYPE_CHECKING:
    from harness.serve.decode.setting import Arrivals

Options: TypeAlias = "argparse._ActionsContainer"
"""A parser, or a group of its options; argparse has no public name for both."""


# -------------------------------------------------------------------------------------- ways to add an option


def add_number(
    to: Options,
    option: str,
    kind: Callable[[str], Any],
    help: str,
    *,
    default: float | None = None,
    metavar: str = "N",
) -> None:
    """Adds an option with a number; a default is told in the help."""
    shown = help if default is None else f"{help} (default: {default:g})"
    to.add_argument(option, type=kind, default=default, metavar=metavar, help=shown)


def add_choice(
    to: Options, option: str, choices: Sequence[str], help: str, *, default: str | None = None
) -> None:
    """Adds an option with one of a few words; a default is told in the help."""
    shown = help if default is None else f"{help} (default: {default})"
    to.add_argument(option, choices=choices, default=default, help=shown)


def add_switch(to: Options, option: str, help: str, *, default: str) -> None:
    """Adds an option that is `on` or `off`."""
    add_choice(to, option, ["on", "off"], help, default=default)


# --------------------------------------------------------------------------------------- what goes into a run


def add_suites(to: Options, default: str, more: str = "") -> None:
    """Adds the positional words that say which cases are walked."""
    help = f"a suite's name, a folder or a file of cases (default: {default}){more}"
    to.add_argument("suites", nargs="*", metavar="SUITE", help=help)


def add_backends(
    to: Options,
    help: str = "the backends, with versions and options (default: all that are installed)",
    *,
    metavar: str = "A,B==1.2,C:OPTION=VALUE",
) -> None:
    """Adds `--backends`, for a command that takes several."""
    to.add_argument("--backends", metavar=metavar, help=help)


def asked_backends(options: argparse.Namespace, say: Callable[[str], None]) -> str:
    """Returns what `--backends` names, or all backends that are installed, saying which. Raises BadInput.

    An empty text is not the default: a script whose variable is empty must not run everything. A mistyped
    suite is told before all backends are looked at.
    """
    from harness.backend.installed import installed_backends
    from harness.cases.suite import find_suite

    if options.backends is not None:
        return str(options.backends)
    for name in getattr(options, "suites", ()):
        find_suite(name)
    return installed_backends(say)


def add_backend(to: Options, help: str, *, required: bool) -> None:
    """Adds `--backends` for a command that works on one backend; it becomes `options.backend`."""
    to.add_argument("--backends", dest="backend", required=required, metavar="B", help=help)


def add_vocabularies(to: Options) -> None:
    """Adds `--vocabularies`, for a command that takes several."""
    to.add_argument(
        "--vocabularies",
        type=names,
        metavar="NAME,...",
        help="names (grammarbench list vocabularies), all that were fetched (all), hf:NAME_OR_FOLDER, "
        "tiktoken:NAME_OR_FILE, gguf:FILE (default: the profile's)",
    )


def add_vocabulary(to: Options, help: str, *, default: str | None = None) -> None:
    """Adds `--vocabularies` for a command that works on one vocabulary; it becomes `options.vocabulary`."""
    to.add_argument(
        "--vocabularies",
        dest="vocabulary",
        type=one_vocabulary,
        default=default,
        metavar="NAME",
        help=help if default is None else f"{help} (default: {default})",
    )


def add_profile(to: Options, choices: Sequence[str], default: str, more: str = "") -> None:
    """Adds `--profile`, which says how much is done."""
    help = f"how much is done (default: {default}){more}"
    to.add_argument("--profile", choices=choices, default=default, help=help)


# ----------------------------------------------------------------------------------------- limits and results


def add_memory(to: Options, default: float) -> None:
    """Adds `--memory`."""
    help = "most resident memory of a child process, in gigabytes"
    add_number(to, "--memory", positive_number, help, default=default, metavar="GB")


def add_timeout(to: Options, help: str, *, default: float | None = None) -> None:
    """Adds `--timeout`, in seconds."""
    add_number(to, "--timeout", positive_number, help, default=default, metavar="S")


def add_forks(to: Options, help: str) -> None:
    """Adds `--forks`."""
    add_number(to, "--forks", positive, help)


def add_run_folder(to: Options) -> None:
    """Adds `--out`, for a command that makes a run."""
    help = "the folder that the run is written to (default: results/runs/<run>)"
    to.add_argument("--out", type=Path, metavar="DIR", help=help)


def add_resume(to: Options) -> None:
    """Adds `--resume`, for a command that makes a run and can continue it."""
    to.add_argument("--resume", action="store_true", help="continue the run in --out that was interrupted")


def add_run(to: Options, help: str = "the run's folder") -> None:
    """Adds the positional folder of a stored run."""
    to.add_argument("run", type=Path, metavar="RUN", help=help)


def add_means(to: Options) -> None:
    """Adds `--means`."""
    to.add_argument("--means", action="store_true", help="show the ratio of the means too")


# ------------------------------------------------------------------------------------------ loads of requests


ARRIVALS: Arrivals = "poisson"
"""How requests arrive with --rate where nothing else is said."""


def add_arrivals(to: Options) -> None:
    """Adds `--arrivals`, which `arrivals_of` reads."""
    help = f"how requests arrive with --rate (default: {ARRIVALS})"
    add_choice(to, "--arrivals", ["poisson", "gamma", "fixed"], help)


def arrivals_of(options: argparse.Namespace) -> Arrivals:
    """Returns how requests arrive. Raises BadInput if that is said and there is no rate."""
    if options.arrivals and options.rate is None:
        raise BadInput("--arrivals says how requests arrive with --rate; give it too")
    arrivals: Arrivals | None = options.arrivals
    return arrivals or ARRIVALS


def add_objectives(to: Options) -> None:
    """Adds `--objectives`."""
    to.add_argument(
        "--objectives",
        metavar="O",
        default="",
        help="limits in milliseconds within which a request counts for goodput, such as 'ttft:500 tpot:50 "
        "e2e:2000' (default: ttft:500 tpot:50; with --show those that were asked for)",
    )
