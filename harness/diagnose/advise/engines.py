"""What a serving engine offers: its backends as arms of a run, each with the engine's option for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.backend.registry import parse_spec, parse_specs
from harness.errors import BadInput, did_you_mean
from harness.shape import shaped


@dataclass(frozen=True)
class EngineFacts:
    """What an adapter says of an engine beside its backends (`Adapter.engine_facts`)."""

    release: str = ""
    """The release of which it is said, such as `engine 1.2`."""
    tool_backends: dict[str, str] = field(default_factory=dict)
    """The only backends that take the engine's tool calls, each with the options for them; empty where that
    is no matter of the backend."""
    of_tools: str = ""
    """What the engine makes of tools, in sentences."""
    of_schemas: str = ""
    """What holds of JSON Schemas alone, in sentences."""
    unread: tuple[str, ...] = ()
    """How those fields of requests begin that hold an answer to something, and that the engine ignores."""
    instead: str = ""
    """What to write in their place."""


@dataclass(frozen=True)
class Offer:
    """The arms that stand for an engine's backends."""

    arms: dict[str, str]
    """For each arm, as `--backends` takes it, the option of the engine that chooses it; empty where the
    engine has nothing else."""
    are_wrappers: bool
    """Are the arms the engine's own wrapper classes? Otherwise they are the libraries behind them."""
    missing: tuple[str, ...]
    """Further backends of the engine, whose libraries are not installed here; its wrapper classes are none of
    them."""
    has_wrappers: bool = True
    """Does the engine have wrapper classes that an adapter stands for, whether installed or not?"""
    facts: EngineFacts = field(default_factory=EngineFacts)
    is_for_tools: bool = False
    """Are the arms the only ones that take the engine's tool calls?"""

    def as_set(self, backends: str) -> str:
        """Returns the backends as the engine sets them: one of its libraries that is named without options
        gets those by which the engine has it. Raises BadInput where the text cannot be read."""
        if self.are_wrappers:
            return backends
        options = {spec.name: spec.options for spec in map(parse_spec, self.arms)}
        named = parse_specs(backends)
        as_set = (str(replace(one, options=one.options or options.get(one.name, ()))) for one in named)
        return ",".join(dict.fromkeys(as_set))  # one may have been named both ways


def engines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the names of the engines that some backend of the catalogue is served by."""
    return sorted({engine for entry in entries for engine in entry["engines"]})


def facts_of(engine: str, entries: Sequence[Mapping[str, Any]]) -> EngineFacts:
    """Returns what an adapter of the catalogue says of the engine; nothing where none does. Raises
    BadInput."""
    for entry in entries:
        if engine in entry["engine_facts"]:
            try:
                return shaped(EngineFacts, entry["engine_facts"][engine])
            except ValueError as error:
                raise BadInput(f"{entry['name']}: engine_facts of {engine}: {error}") from error
    return EngineFacts()


def offer_of(engine: str, entries: Sequence[Mapping[str, Any]], *, for_tools: bool = False) -> Offer:
    """Returns what the engine offers with the backends that are installed; `for_tools`, only what takes its
    tool calls, where that is not all. Raises BadInput where that is nothing.

    Where the engine's own wrappers are installed they are taken, for they refuse and break what the libraries
    behind them do not; otherwise the libraries are. An adapter of the engine's own distribution is a wrapper.
    """
    known = engines(entries)
    if engine not in known:
        # An adapter that cannot be imported does not say of which engine it is.
        silent = [entry["name"] for entry in entries if entry["problem"] and not entry["engines"]]
        may_have = (
            f"; {', '.join(silent)} cannot be loaded here and may be of it: `grammarbench list backends` "
            "says why"
        )
        raise BadInput(f'unknown engine "{engine}"{did_you_mean(engine, known)}{may_have * bool(silent)}')
    wrappers: dict[str, str] = {}
    libraries: dict[str, str] = {}
    missing: list[str] = []
    missing_wrappers: list[str] = []
    has_wrappers = False
    facts = facts_of(engine, entries)
    is_for_tools = for_tools and bool(facts.tool_backends)
    for entry in entries:
        is_wrapper = entry["distribution"] == engine
        of_engine = entry["engines"].get(engine, {})
        has_wrappers |= is_wrapper and bool(of_engine)
        if is_for_tools:
            name = entry["name"]
            takes_tools = name in facts.tool_backends
            of_engine = {facts.tool_backends[name]: "".join(of_engine.values())} if takes_tools else {}
        for options, chosen in of_engine.items():
            if entry["problem"] or not entry["version"]:
                (missing_wrappers if is_wrapper else missing).append(entry["name"])
            else:
                arm = f"{entry['name']}:{options}" if options else entry["name"]
                (wrappers if is_wrapper else libraries)[arm] = chosen
    if not wrappers and not libraries:
        raise BadInput(
            f"no backend of {engine}{' that takes its tool calls' * is_for_tools} is installed here "
            f"({', '.join(dict.fromkeys([*missing_wrappers, *missing]))}); "
            "`grammarbench list backends` says how to install them"
        )
    return Offer(
        wrappers or libraries,
        bool(wrappers),
        tuple(dict.fromkeys(missing)),
        has_wrappers,
        facts,
        is_for_tools,
    )
