"""A conformance and benchmarking harness for grammar backends of constrained LLM decoding.

The program is one line of flow: case, compile, walk, observation, row, outcome, table, report. Its rooms
stand in the order in which they may import; each imports only from those above it
(tests/project/test_layers.py keeps this):

    errors, text, shape     the user's error and exit codes; text for people; records checked when they are read
    backend                 everything between us and a backend: contract, registry, vocabularies, processes, environments
    oracle                  what is true, told by no backend: automata, judges, tokenizations, forced text
    cases                   what goes in: cases, suites, corpora, spellings, generated instances, the plan of a run
    rows                    what was seen, on disk
    walk                    one output through one grammar: the replay, and the decode loop with its strategies
    checks                  facts about one compiled case, one function each
    running                 every case through every backend: coordinator, slots, workers, shards, Ray
    measure                 what a call costs: the measuring engine, statistics, mask kernels
    serve                   what a request costs: the decode loop with a model, and live servers
    outcomes                what rows mean: outcome, metrics, result, comparisons, expected outcomes, history
    diagnose                why, and since when: repro, shrink, adjudicate, bisect
    report                  how it is shown: the page, tables, figures, the site, exports
    cli                     the user's words: the commands, and the pytest plug-in

Adapters, suites, results and reports stand in folders of their own beside `harness/` and are installed inside
it. A file of `adapters/` is one backend; a file whose name begins with `_` belongs to the adapter of that name.
"""  # noqa: E501

from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.backend.grammar import Adapter as Adapter
    from harness.backend.grammar import CompiledGrammar as CompiledGrammar
    from harness.backend.grammar import Grammar as Grammar
    from harness.backend.grammar import GrammarObject as GrammarObject
    from harness.backend.grammar import InvalidGrammar as InvalidGrammar
    from harness.backend.grammar import Kernel as Kernel
    from harness.backend.grammar import UnsupportedGrammar as UnsupportedGrammar
    from harness.backend.layout import Layout as Layout
    from harness.backend.vocabulary import Vocabulary as Vocabulary
    from harness.checks.subject import NotApplicable as NotApplicable
    from harness.checks.subject import Subject as Subject
    from harness.diagnose.advise import Advice as Advice
    from harness.errors import BadInput as BadInput
    from harness.outcomes.metrics import metric as metric
    from harness.report.frames.load import Run as Run
    from harness.rows.row import Finding as Finding
    from harness.walk.loop.strategies.base import Strategy as Strategy

__version__ = "0.1.0"

LATER = {
    "Adapter": "harness.backend.grammar",
    "Advice": "harness.diagnose.advise",
    "BadInput": "harness.errors",
    "CompiledGrammar": "harness.backend.grammar",
    "Finding": "harness.rows.row",
    "Grammar": "harness.backend.grammar",
    "GrammarObject": "harness.backend.grammar",
    "InvalidGrammar": "harness.backend.grammar",
    "Kernel": "harness.backend.grammar",
    "Layout": "harness.backend.layout",
    "metric": "harness.outcomes.metrics",
    "NotApplicable": "harness.checks.subject",
    "Run": "harness.report.frames.load",
    "Strategy": "harness.walk.loop.strategies.base",
    "Subject": "harness.checks.subject",
    "UnsupportedGrammar": "harness.backend.grammar",
    "Vocabulary": "harness.backend.vocabulary",
}
"""What a new adapter, check, metric or strategy needs, and what `load` returns and raises, with the module of
each. It is imported when asked for, so that importing `harness` stays light: every process of ours does."""


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)


def load(path: str | PathLike[str]) -> "Run":
    """Returns what a folder holds as data frames of pandas: a run, a measurement or a decoding, as written or
    as published, or several of these below it.

    The tables are `.cases`, `.instances`, `.findings`, `.times` and `.scores`; docs/python.md lists
    their columns. Raises `harness.BadInput` if the folder holds nothing to load, or if a file
    in it was changed or damaged.
    """
    from harness.cli.from_python import loaded

    return loaded(path)


def run(*suites: str | PathLike[str], resume: bool = False, **options: Any) -> "Run":
    """Walks suites through backends as the command `grammarbench run` does, and returns what `load` returns.

    The options are those of the command by their names (`backends`, `vocabularies`, `profile`, `effort`,
    `timeout`, `out`, ...), with its defaults; `grammarbench run --help` explains them. A list may stand where
    the command takes names with commas, and True or False for a switch. What is left out or None is the
    command's default. `expect` and `record` belong to a gate and are left to the command. Progress is written
    to stderr. Raises `harness.BadInput` for what is wrong with an option, naming it.
    """
    from harness.cli.from_python import run as run_command

    return run_command(*suites, resume=resume, **options)


def advise(
    *sources: str | PathLike[str],
    engine: str = "",
    tokenizer: str | PathLike[str] = "",
    backends: str | Sequence[str] | None = None,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    jobs: int | None = None,
) -> "Advice":
    """Returns which backend to use for the cases of the sources, and what to change, as the command
    `grammarbench advise` does, with the same options. Progress is written to stderr. Raises
    `harness.BadInput`.
    """
    from harness.cli.from_python import advise as advise_command

    return advise_command(
        *sources, engine=engine, tokenizer=tokenizer, backends=backends, out=out, resume=resume, jobs=jobs
    )
