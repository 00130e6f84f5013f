"""How an adapter's backend reads a vocabulary: what it says of itself, and what its masks say."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from harness.backend.declared import adapter_of, refuse_wrongly_declared
from harness.backend.describe import refuse_lost_vocabularies
from harness.backend.grammar import Adapter, InvalidGrammar, UnsupportedGrammar
from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.token_bytes.compare import KINDS, WrongToken, counts_of, wrong_tokens
from harness.errors import BadInput

PROBES = 96
"""How many ids are held against masks, one small grammar each."""
TRIES = 5
"""How many ids of one kind are tried before no wrong mask is shown for the kind."""
EXAMPLES = 3
"""How many ids of each kind a run keeps."""
LONGEST_TEXT = 2000
"""The most characters of a backend's sentence that a run keeps; libraries quote whole files."""


@dataclass(frozen=True)
class Reading:
    """What a backend takes the ids of a vocabulary for."""

    loader: str
    """See `Adapter.loader`."""
    refused: str
    """Why the backend's own loader refuses the vocabulary, cut at LONGEST_TEXT; empty if it does not."""
    stated: bool
    """Whether the backend shows the bytes of its tokens; if not, nothing is said of the rest."""
    wrong: int
    kinds: dict[str, int]
    """The number of ids by kind (`harness.backend.token_bytes.compare.KINDS`)."""
    examples: tuple[dict[str, Any], ...]
    """A few ids of each kind: `token`, `kind`, and the true bytes and those of the backend as hex."""
    ends: tuple[int, ...] = ()
    """The ids of end-of-sequence that the backend knows of the vocabulary."""
    knows_one_end: str = ""
    """See `Adapter.knows_one_end`: of this vocabulary, where an adapter finds it out with that; cut at
    LONGEST_TEXT."""


def reading_of(adapter: Adapter) -> Reading:
    """Returns what the backend says of itself. What it raises escapes."""
    return summary_of(adapter, wrong_of(adapter))


def wrong_of(adapter: Adapter) -> list[WrongToken] | None:
    """Returns the ids that the backend reads wrongly by what it shows; None if it shows nothing."""
    read = adapter.token_bytes()
    return None if read is None else wrong_tokens(adapter.vocabulary, read)


def summary_of(adapter: Adapter, wrong: Sequence[WrongToken] | None) -> Reading:
    """Returns the reading in numbers and examples, of the ids that `wrong_of` gave."""
    kept: dict[str, list[WrongToken]] = {kind: [] for kind in KINDS}
    for each in wrong or ():
        if len(kept[each.kind]) < EXAMPLES:
            kept[each.kind].append(each)
    return Reading(
        loader=adapter.loader,
        refused=adapter.refused_vocabulary[:LONGEST_TEXT],
        stated=wrong is not None,
        wrong=len(wrong or ()),
        kinds=counts_of(wrong or ()),
        examples=tuple(example(each) for of_kind in kept.values() for each in of_kind),
        ends=adapter.vocabulary.eos_tokens,
        knows_one_end=adapter.knows_one_end[:LONGEST_TEXT],
    )


def example(wrong: WrongToken) -> dict[str, Any]:
    """Returns the id with its two readings as JSON has them."""
    return {
        "token": wrong.token,
        "kind": wrong.kind,
        "true": wrong.true.hex(),
        "read": wrong.read.hex(),
    }


@dataclass(frozen=True)
class Looked:
    """A backend's reading of a vocabulary, every wrong id, and the masks that are wrong because of it."""

    size: int
    reading: Reading
    wrong: list[dict[str, Any]]
    """Each id as `Reading.examples` has it."""
    shown: dict[str, dict[str, Any]]
    """For each kind, where one is found, an id with the grammar whose mask is wrong: `token`, `choice`,
    `before` (hex: the bytes after which the mask was filled), `allowed`."""
    probed: int
    """How many ids were held against masks."""
    misread: list[dict[str, Any]] = field(default_factory=list)
    """The probed ids for which a mask is wrong although the backend shows the right bytes, or shows none."""
    lost: tuple[str, ...] = ()
    """What the backend did not survive."""


def look(spec: str, vocabulary: str, timeout_s: float, python: str) -> Looked:
    """Returns how the backend reads the vocabulary, asked in a process of its own; `timeout_s` is for the
    loading and for each question.

    Raises BadInput if the backend or the vocabulary is not to be had, or the backend is lost as it loads.
    """
    loader = f"{__name__}:{open_looking.__name__}"
    arguments = {"spec": spec, "vocabulary": vocabulary}
    with Service(loader, arguments, python=python, load_seconds=timeout_s) as service:
        try:
            service.wait()
            stated, _ = service.ask({"op": "stated"}, seconds=timeout_s)
        except Lost as lost:
            refuse_lost_vocabularies([vocabulary], python)
            raise BadInput(f"{spec}: {lost}") from lost
        wrong = stated["wrong"]
        found, losses = _shown(service, wrong, timeout_s)
        known = {each["token"] for each in wrong}
        misread = []
        chosen = [] if stated["reading"]["refused"] else stated["sample"]
        probed = 0
        for token in chosen:
            try:
                answer, _ = service.ask({"op": "held", "token": token}, seconds=timeout_s)
            except Lost as lost:
                losses.append(str(lost))
                continue
            probed += answer["asked"]
            if answer["shown"] and token not in known:
                misread.append({"token": token, **answer["shown"]})
    fields = stated["reading"] | {name: tuple(stated["reading"][name]) for name in ("examples", "ends")}
    return Looked(
        stated["size"], Reading(**fields), wrong, found, probed, misread, tuple(dict.fromkeys(losses))
    )


def _shown(
    service: Service, wrong: list[dict[str, Any]], timeout_s: float
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Returns a wrong mask for each kind, where one is found among the first ids of it, and what was lost."""
    tries: dict[str, int] = {}
    found: dict[str, dict[str, Any]] = {}
    losses = []
    for each in wrong:
        kind = each["kind"]
        if kind in found or tries.get(kind, 0) >= TRIES:
            continue
        tries[kind] = tries.get(kind, 0) + 1
        try:
            answer, _ = service.ask({"op": "shown", **each}, seconds=timeout_s)
        except Lost as lost:
            losses.append(str(lost))
            continue
        if answer["shown"]:
            found[kind] = {"token": each["token"], **answer["shown"]}
    return found, losses


def open_looking(spec: str, vocabulary: str) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that answers for one backend and one vocabulary. Raises BadInput."""
    adapter = adapter_of(spec, vocabulary)
    refuse_wrongly_declared(adapter, spec)
    return Asked(adapter).answer, {}


class Asked:
    """Answers the questions about one adapter."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter

    def answer(self, question: dict[str, Any], blob: bytes) -> Answer:
        from harness.backend.token_bytes.probe import held, sample, shown

        if question["op"] == "stated":
            wrong = wrong_of(self.adapter)
            return {
                "size": self.adapter.vocabulary.size,
                "reading": vars(summary_of(self.adapter, wrong)),
                "wrong": [example(each) for each in wrong or ()],
                "sample": sample(self.adapter.vocabulary, PROBES),
            }, b""
        found, was_asked = None, False
        with suppress(UnsupportedGrammar, InvalidGrammar, ValueError):  # what is declined shows nothing
            if question["op"] == "shown":
                true, read = bytes.fromhex(question["true"]), bytes.fromhex(question["read"])
                found = shown(self.adapter, WrongToken(question["token"], question["kind"], true, read))
            else:
                was_asked, found = held(self.adapter, question["token"])
        masks = found and {"choice": found.choice, "before": found.before.hex(), "allowed": found.allowed}
        return {"shown": masks, "asked": was_asked}, b""
