"""What a reader must know of an answer about an engine: how the engine was stood in for, and what it makes of
the requests themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harness.diagnose.advise.asked import Asked
from harness.diagnose.advise.engines import Offer
from harness.text import listed, one_line, some

MOST_NAMES = 4
"""Cases that are named of those whose field the engine does not read."""


def untried(engine: str, offer: Offer | None) -> str:
    """Returns what of the engine was not tried, as a clause that says why the answer is not sure; empty where
    its own classes were tried, or where no engine was asked about."""
    if offer is None or offer.are_wrappers:
        return ""
    own = f"{engine}'s own classes" if offer.has_wrappers else f"{engine} itself"
    return f"{own} {'were' if offer.has_wrappers else 'was'} not tried"


def on_requests(engine: str, offer: Offer | None, asked: Asked) -> Iterator[str]:
    """Yields what the engine makes of tools, and which cases stand in a field that it does not read."""
    if offer is None:
        return
    facts = offer.facts
    if asked.tools and facts.of_tools:
        yield facts.of_tools
    if asked.tools and asked.others and offer.is_for_tools:
        those = "are no tools: ask about these"
        yield (
            f"{asked.others:,} of the cases {'is no tool: ask about it' if asked.others == 1 else those} "
            f"alone too, because {engine} has further backends for what is no tool, and checks a request "
            "before them."
        )
    if unread := asked.names_at(facts.unread):
        places = listed(f"`{place}`" for place in unread)
        names = [one_line(name, 30) for names in unread.values() for name in names]
        yield (
            f"{facts.release or engine} does not read {places}, so that nothing constrains the answer there "
            f"({some(names, MOST_NAMES)}). Write {facts.instead}."
        )


def stand_ins(engine: str, offer: Offer | None, tried: Collection[str], has_schemas: bool) -> Iterator[str]:
    """Yields how the engine was stood in for, of which these arms were tried."""
    if offer is None:
        return
    known = {arm.partition(":")[0] for arm in offer.arms}
    if any(name.partition(":")[0] in known for name in tried):
        yield _behind(engine, offer)
        if has_schemas and offer.facts.of_schemas:
            yield offer.facts.of_schemas
        # Who names backends leaves others out, whether these are installed or not.
        if offer.missing and not offer.are_wrappers and offer.arms.keys() <= set(tried):
            yield f"Not installed, so not tried: {', '.join(offer.missing)}."
    for name in sorted(set(tried) - offer.arms.keys()):
        if name.partition(":")[0] in known:
            yield f"{name} has options of its own, for which no option of {engine} is known."
        elif offer.is_for_tools:
            yield f"{engine} does not hand the tool calls of most models to {name} as it was tried here."
        elif offer.are_wrappers:
            yield f"{name} was tried by itself, not through {engine}."
        else:
            yield f"{name} is no backend of {engine}."


def _behind(engine: str, offer: Offer) -> str:
    """Returns what stands behind the name of a backend."""
    if offer.are_wrappers:
        return f"The backends are {engine}'s own wrapper classes, with the libraries installed here."
    if not offer.has_wrappers:
        return f"What was tried is the grammar code that {engine} runs, as a library has it here."
    if offer.is_for_tools:
        return (
            f"What was tried is the library that {engine} gives tool calls to, as installed here, with the "
            "schemas of the tools alone and not with the text around a call."
        )
    release = offer.facts.release
    checks = f", and what the check of requests of {release} refuses is refused here" if release else ""
    return (
        f"The backends are the libraries that {engine} has, as installed here, with the settings that it "
        f"gives them{checks}. Its own wrappers can refuse and break more: docs/engines.md says how to "
        "install those."
    )
