"""Scores texts that were written: each is fed to the model once more, with a fresh grammar object beside it.

This is a pass of its own, made after the last timed run of a process. The decode loop knows nothing of it,
and keeps neither logits nor masks for it. So it scores what any strategy wrote, at any batch, on any device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.backend.bridge.reasoning import ReasoningObject, with_reasoning
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    MaskFormat,
    UnsupportedGrammar,
)
from harness.backend.process.child import Answer
from harness.backend.vocabulary import Vocabulary
from harness.oracle.tokenizations import drift
from harness.rows.appending import Integers
from harness.serve.decode.goodness import NAT, PLACE_COLUMNS
from harness.walk.loop.active import allowed_by
from harness.walk.loop.faults import BackendFault, as_accepted, attribution
from harness.walk.loop.outcome import places_written
from harness.walk.loop.request import Request

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from harness.walk.loop.forward import Forward

ROW = 0
"""The row of the model that is used; all rows are empty between runs."""


class NotScorable(Exception):
    """A text has no score; the message says why."""


def scored(
    model: Forward,
    adapter: Adapter,
    requests: Sequence[Request],
    outputs: Sequence[Mapping[str, Any]],
    think_end: Sequence[int] | None,
) -> Answer:
    """Returns the scores of outputs, each a mapping with the `number` of its request, its `ids` and its
    `moves`.

    The answer has `texts`, the fields of `ScoredText` with the number of places for `places`, and `left_out`;
    its bytes are the places of all texts in turn. What a backend does wrong here leaves out its text only.
    """
    compiled: dict[Grammar, CompiledGrammar] = {}
    thinking = with_reasoning(adapter, think_end) if think_end is not None else None
    texts, tables, left_out = [], [np.zeros((0, len(PLACE_COLUMNS)), np.int64)], Counter[str]()
    for output in outputs:
        request, ids = requests[output["number"]], output["ids"]
        grammar = request.grammar
        assert grammar is not None
        try:
            if grammar not in compiled:
                compiled[grammar] = _compiled(adapter, grammar)
            thinks = thinking is not None and request.reasoning
            whole = thinking.wrap(compiled[grammar]) if thinking and thinks else compiled[grammar]
            with attribution("start"):
                started = whole.start()
            places = score(model, adapter.vocabulary, request.prompt, ids, started, adapter.mask_format)
        except (BackendFault, NotScorable) as error:
            left_out[error.why if isinstance(error, BackendFault) else str(error)] += 1
            continue
        thought = len(ids) - len(places)
        places[[place - thought for place in places_written(output["moves"]) if place >= thought], -1] = 1
        texts.append({"name": request.name, "places": len(places), **_spelling(adapter.vocabulary, ids)})
        tables.append(places)
    return {"texts": texts, "left_out": dict(left_out)}, np.concatenate(tables).astype("<i8").tobytes()


def _compiled(adapter: Adapter, grammar: Grammar) -> CompiledGrammar:
    try:
        with attribution("compile"):
            return adapter.compile(grammar)
    except BackendFault as fault:
        if isinstance(fault.__cause__, (UnsupportedGrammar, InvalidGrammar)):
            raise NotScorable("the grammar is refused when it is compiled again") from fault
        raise


def _spelling(vocabulary: Vocabulary, ids: Sequence[int]) -> dict[str, int | None]:
    plain = [token for token in ids if vocabulary.tokens[token]]
    try:
        return {"ids": len(plain), "other": drift(vocabulary, ids)}
    except ValueError:
        return {"ids": len(plain), "other": None}


def score(
    model: Forward,
    vocabulary: Vocabulary,
    prompt: Sequence[int],
    ids: Sequence[int],
    started: GrammarObject,
    mask_format: MaskFormat,
) -> Integers:
    """Returns the columns of PLACE_COLUMNS for every id behind the thinking part, int64 `[places, columns]`,
    with 0 for `written`.

    The model is asked once for the logits of all places. Probabilities are those of a softmax at temperature
    1 over the vocabulary's ids, before any mask. Raises NotScorable and BackendFault.
    """
    fed = [*prompt, *ids[:-1]]
    tables = [np.zeros((0, len(PLACE_COLUMNS)), np.int64)]
    try:
        for start in range(0, len(fed), model.chunk):
            part = fed[start : start + model.chunk]
            first = start - len(prompt) + 1
            """The place of the id that the first logits of this part are about."""
            logits = model.extend({ROW: part}, every=True)[0]
            places = range(max(first, 0), first + len(part))
            allowed, answered = [], []
            for place in places:
                mask = _mask_before(started, ids[place], vocabulary, mask_format, place)
                if mask is not None:
                    allowed.append(mask)
                    answered.append(place)
            if answered:
                rows = logits[[place - first for place in answered], : vocabulary.size]
                tables.append(_scores(rows, np.stack(allowed), [ids[place] for place in answered]))
    finally:
        model.rollback(ROW, 0)
    return np.concatenate(tables)


def _mask_before(
    grammar_object: GrammarObject, token: int, vocabulary: Vocabulary, mask_format: MaskFormat, place: int
) -> NDArray[np.bool_] | None:
    """Returns the mask before this token, and advances the object past it; None if the object thinks. Raises
    NotScorable if the token is refused."""
    thinks = isinstance(grammar_object, ReasoningObject) and grammar_object.thinks
    mask = None if thinks else allowed_by(grammar_object, vocabulary.size, mask_format)
    with attribution("accept"):
        accepted: Any = grammar_object.accept_token(token)
    if not as_accepted(accepted):
        raise NotScorable(f"a fresh object refuses id {place} of the output, which was written under it")
    if mask is not None and not mask.any():
        raise NotScorable(f"the mask allows nothing at id {place} of the output")
    return mask


def _scores(logits: torch.Tensor, allowed: NDArray[np.bool_], ids: Sequence[int]) -> Integers:
    """Returns the columns for unmasked logits `[places, vocabulary]`, the masks bool `[places, vocabulary]`,
    and the ids that were written. Raises NotScorable where the model gives an id no probability."""
    import torch

    exact = logits.double()
    kept = exact.masked_fill(~torch.from_numpy(allowed).to(exact.device), float("-inf"))
    whole = exact.logsumexp(1)
    own = exact[torch.arange(len(ids)), torch.tensor(ids)]
    columns = torch.stack([whole - kept.logsumexp(1), whole - own, kept.amax(1) < exact.amax(1)]).T
    if not bool(columns.isfinite().all()):
        raise NotScorable("the model gives an id of the output, or all that its mask allows, no probability")
    table = np.zeros((len(ids), len(PLACE_COLUMNS)), np.int64)
    table[:, :2] = np.rint(columns[:, :2].clamp(min=0).cpu().numpy() * NAT)
    table[:, 2] = columns[:, 2].cpu().numpy()
    return table
