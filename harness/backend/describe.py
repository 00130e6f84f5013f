"""Finds out what the backends and vocabularies of a run are, in a process of its own so that the coordinator
imports no backend."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness.backend.arm import Arm
from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.process.short_child import answer_of_a_child
from harness.errors import BadInput, error_text

if TYPE_CHECKING:
    from harness.backend.grammar import Adapter
    from harness.backend.registry import BackendSpec
    from harness.backend.vocabulary import Vocabulary

SECONDS = 300.0
"""The time for importing every backend and loading every vocabulary of a run."""
PROBE_SECONDS = 10.0
"""The time that a backend has to show its version of Unicode."""


@dataclass(frozen=True)
class Description:
    """Arms in the order asked for, and vocabularies by name (`size`, `sha256`, `eos_tokens`: the printed form
    of each id with which an output may end, the first that which the harness sends)."""

    arms: tuple[Arm, ...]
    vocabularies: dict[str, dict[str, Any]]
    readings: tuple[dict[str, Any], ...] = ()
    """What each arm takes the tokens of each vocabulary for, where that was asked: the arm's `backend`,
    `version` and `options`, the `vocabulary`, the fields of `harness.backend.token_bytes.look.Reading`, and
    `problem`, which says why nothing is known (then those are missing)."""
    shadowed: tuple[str, ...] = ()
    """A sentence for each distribution whose code was imported from elsewhere than where it is installed."""


def describe(
    specs: Sequence[str], vocabularies: Sequence[str], pythons: Sequence[str] = (), *, reads: bool = False
) -> Description:
    """Asks a process of each environment; `pythons` has the interpreter of each backend, where that is not
    always ours. With `reads`, each backend is asked what it takes the tokens of each vocabulary for.

    Raises BadInput for an option, version or vocabulary that is not to be had.
    """
    pythons = pythons or [sys.executable] * len(specs)
    arms: dict[int, Arm] = {}
    vocabularies_found: dict[str, dict[str, Any]] = {}
    readings: list[dict[str, Any]] = []
    others: dict[str, None] = {}
    for python in dict.fromkeys([sys.executable, *pythons]):
        ours = python == sys.executable
        asked = [place for place, interpreter in enumerate(pythons) if interpreter == python]
        answer = _ask_about_arms(
            python,
            [specs[place] for place in asked],
            vocabularies=list(vocabularies) if ours else [],
            read=list(vocabularies) if reads else [],
        )
        readings += answer["readings"]
        others |= dict.fromkeys(answer["shadowed"])
        for place, fields in zip(asked, answer["arms"], strict=True):
            arms[place] = Arm.from_json(fields | {"python": "" if ours else python})
        vocabularies_found |= answer["vocabularies"]
    ordered = tuple(arms[place] for place in range(len(specs)))
    return Description(ordered, vocabularies_found, tuple(readings), tuple(others))


def places(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns the distribution of each backend and its version here, both empty for none.

    Raises BadInput for one that cannot be imported.
    """
    try:
        answer = _ask(sys.executable, op="places", names=list(names))
    except NoAnswer:  # one of them ends the process that imports it: which one?
        for name in names:
            _ask(sys.executable, f'backend "{name}"', op="places", names=[name])
        raise
    return {name: (distribution, version) for name, (distribution, version) in answer["places"].items()}


def catalogue() -> list[dict[str, Any]]:
    """Returns every adapter that can be found: `name`, `distribution`, `version`, `problem` (why it cannot be
    used), `dialects`, `options`, `engines`, `engine_facts` and `knows_one_end` (as the class says them, see
    `Adapter`)."""
    entries: list[dict[str, Any]]
    try:
        entries = _ask(sys.executable, op="catalogue")["catalogue"]
    except BadInput:  # one of them ends the process that imports it: which one?
        entries = [_entry_of(name) for name in _ask(sys.executable, op="names")["names"]]
    return entries


def _entry_of(name: str) -> dict[str, Any]:
    """Returns one backend's entry of the catalogue, from a process of its own."""
    try:
        entry: dict[str, Any] = _ask(sys.executable, op="entry", name=name)["entry"]
    except BadInput as lost:
        return _empty_entry(name, str(lost))
    return entry


class NoAnswer(BadInput):
    """A backend or a vocabulary has ended the process that loaded it, or has kept it from answering."""


def _ask_about_arms(
    python: str, specs: list[str], vocabularies: list[str], read: list[str]
) -> dict[str, Any]:
    """Returns the answer on `arms`, in which a backend that keeps the process from answering is described
    without being made, as one is that raises: its worker will tell.

    Raises BadInput, which names the one of the specs that does so even then, or the vocabulary that does.
    """
    who = "a backend or a vocabulary" if vocabularies or read else "a backend"
    question = {"op": "arms", "vocabularies": vocabularies, "read": read}
    try:
        return _ask(python, who, **question, specs=specs, unmade=[])
    except NoAnswer:
        unmade = []
        for name in specs:
            alone = {"op": "arms", "vocabularies": [], "read": [], "specs": [name]}
            try:
                _ask(python, f'backend "{name}"', **alone, unmade=[])
            except NoAnswer:
                _ask(python, f'backend "{name}"', **alone, unmade=[name])
                unmade.append(name)
        if not unmade:
            refuse_lost_vocabularies([*vocabularies, *read], python)
            raise
    try:
        return _ask(python, who, **question, specs=specs, unmade=unmade)
    except NoAnswer:
        refuse_lost_vocabularies([*vocabularies, *read], python)
        raise


def refuse_lost_vocabularies(names: Sequence[str], python: str) -> None:
    """Loads each vocabulary in a process without a backend. Raises BadInput, which names the vocabulary,
    where that process gives no answer."""
    for name in dict.fromkeys(names):
        question = {"op": "arms", "specs": [], "vocabularies": [name], "read": [], "unmade": []}
        _ask(python, f'vocabulary "{name}"', **question)


def _ask(python: str, who: str = "a backend", /, **question: Any) -> dict[str, Any]:
    """Returns the answer of `_answer` in a process of its own: backends print, and can end the process that
    imports them. Raises BadInput."""
    loader = f"{__name__}:{open_service.__name__}"
    with Service(loader, python=python, keeps_output=True) as service:
        try:
            return service.ask(question, seconds=SECONDS)[0]
        except Lost as lost:
            text = f"{who} {_told(lost)}{lost.last_line()}"
            raise (BadInput if lost.cause in ("load", "request") else NoAnswer)(text) from lost


def _told(lost: Lost) -> str:
    """Returns what a backend or a vocabulary did whose process has given no answer."""
    if lost.cause == "timeout":
        return f"did not load within {SECONDS:g} s"
    if lost.cause == "raised":
        return f"does not load: {lost}"
    return f"ended the process that loaded it ({lost})"


def open_service() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler of the process that answers `arms`, `places`, `catalogue`, `names` and `entry`."""
    return _answer, {}


def _answer(question: dict[str, Any], blob: bytes) -> Answer:
    from harness.backend.registry import names

    if question["op"] == "arms":
        asked = [question[name] for name in ("specs", "vocabularies", "read", "unmade")]
        return _describe(*asked), b""
    if question["op"] == "places":
        return {"places": _places(question["names"])}, b""
    if question["op"] == "names":
        return {"names": names()}, b""
    if question["op"] == "entry":
        return {"entry": _entry(question["name"])}, b""
    return {"catalogue": [_entry(name) for name in names()]}, b""


def _entry(name: str) -> dict[str, Any]:
    """Returns one backend's entry of the catalogue. Whatever is wrong with it is its problem alone: others
    are listed beside it."""
    from harness.backend.declared import load_declared
    from harness.backend.options import option_table
    from harness.backend.registry import installed_version

    entry = _empty_entry(name)
    try:
        adapter = load_declared(name)
        entry["distribution"], entry["version"] = (
            adapter.distribution,
            installed_version(adapter.distribution) or "",
        )
        if adapter.distribution and not entry["version"]:
            entry["problem"] = f"{adapter.distribution} is not installed"
        entry["dialects"] = sorted(adapter.dialects)
        entry["engines"] = {engine: dict(options) for engine, options in adapter.engines.items()}
        entry["engine_facts"] = {engine: dict(facts) for engine, facts in adapter.engine_facts.items()}
        entry["knows_one_end"] = adapter.knows_one_end
        for option in option_table(adapter):
            entry["options"].append(
                f"{option.name}={'|'.join(option.choices) or option.kind} (default {option.default})"
            )
    except BadInput as error:
        entry["problem"] = str(error)
    except BaseException as error:
        # An adapter that breaks the contract may raise anything where it is looked at.
        entry["problem"] = f'backend "{name}" breaks the contract: {error_text(error, 300)}'
    return entry


def _empty_entry(name: str, problem: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "distribution": "",
        "version": "",
        "problem": problem,
        "dialects": [],
        "options": [],
        "engines": {},
        "engine_facts": {},
        "knows_one_end": "",
    }


def _places(names: list[str]) -> dict[str, tuple[str, str]]:
    from harness.backend.declared import load_declared
    from harness.backend.registry import installed_version

    distributions = {name: load_declared(name).distribution for name in names}
    return {
        name: (distribution, installed_version(distribution) or "")
        for name, distribution in distributions.items()
    }


def _describe(specs: list[str], names: list[str], read: list[str], unmade: list[str]) -> dict[str, Any]:
    from harness.backend.registry import parse_specs
    from harness.backend.shadowed import shadowed
    from harness.backend.vocabulary import load_vocabulary

    asked = [(spec, text not in unmade) for text in specs for spec in parse_specs(text)]
    arms = [_arm(spec, is_made) for spec, is_made in asked]
    shown = [(spec, arm) for (spec, is_made), arm in zip(asked, arms, strict=True) if is_made]
    loaded = {name: load_vocabulary(name) for name in dict.fromkeys([*names, *read])}
    vocabularies = {}
    for name in names:
        vocabulary = loaded[name]
        vocabularies[name] = {
            "size": vocabulary.size,
            "sha256": vocabulary.sha256,
            "tokenizer_sha256": vocabulary.tokenizer_sha256,
            "eos_tokens": {str(token): vocabulary.special_tokens[token] for token in vocabulary.eos_tokens},
        }
    return {
        "arms": [asdict(arm) for arm in arms],
        "vocabularies": vocabularies,
        "readings": _readings(shown, {name: loaded[name] for name in read}),
        "shadowed": [text for arm in arms if (text := shadowed(arm.distribution))],
    }


def _readings(
    arms: Sequence[tuple[BackendSpec, Arm]], vocabularies: Mapping[str, Vocabulary]
) -> list[dict[str, Any]]:
    if not vocabularies:
        return []
    from harness.backend.token_bytes.survey import readings_of, shows_tokens

    named = [
        (str(spec), {"backend": arm.backend, "version": arm.version, "options": arm.options})
        for spec, arm in arms
        if shows_tokens(spec.name)
    ]
    return readings_of(named, vocabularies)


def _arm(spec: BackendSpec, is_made: bool) -> Arm:
    from harness.backend.declared import load_declared, refuse_wrongly_declared
    from harness.backend.registry import recorded_version

    adapter: Adapter | type[Adapter] = load_declared(spec.name)
    if is_made:
        adapter = _made(spec) or adapter
    refuse_wrongly_declared(adapter, str(spec))
    return Arm(
        spec.name,
        recorded_version(adapter),
        spec.options_text,
        adapter.distribution,
        tuple(sorted(adapter.dialects)),
        adapter.mask_format,
        tuple(sorted(adapter.documented)),
        adapter.knows_one_end,
        unicode=_unicode_version(spec, adapter) if not isinstance(adapter, type) else "",
    )


def _made(spec: BackendSpec) -> Adapter | None:
    """Returns the adapter, bound to a vocabulary of 257 tokens; None if it cannot be made with that. Perhaps
    it can with the run's vocabulary: its worker will tell. Raises BadInput where the user gave options, whose
    values a ValueError is taken to be about."""
    from harness.backend.registry import make
    from harness.backend.vocabulary import byte_vocabulary

    try:
        return make(spec, byte_vocabulary())
    except ValueError as error:
        if not spec.options:
            return None
        raise BadInput(f'backend "{spec}": {error}') from error
    except BadInput:
        raise
    except BaseException:  # a panic of Rust and a backend's sys.exit() are no Exception
        return None


def _unicode_version(spec: BackendSpec, adapter: Adapter) -> str:
    """Returns the version of Unicode that the backend shows, or nothing if it dies or hangs.

    It is asked in a child, because a backend that dies where it compiles must not end the run. A thread that
    the adapter began is not in the child, so there another one is made."""
    from harness.backend.registry import make
    from harness.backend.unicode_age import unicode_version
    from harness.backend.vocabulary import byte_vocabulary

    is_whole = threading.active_count() == 1

    def ask() -> str:
        return unicode_version(adapter if is_whole else make(spec, byte_vocabulary()))

    return answer_of_a_child(ask, PROBE_SECONDS) or ""
