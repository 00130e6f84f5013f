"""Any adapter's grammars as logits processors: for transformers' `generate`, and as vLLM calls them, per
request or per batch.

A processor is given all ids of each row, and its grammar follows them (see `following`). Neither transformers
nor vLLM need be installed; their interfaces are kept by the methods' names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from harness.backend.bridge.following import Follower, Masking
from harness.backend.bridge.to_sglang import TokenRefused
from harness.backend.grammar import Adapter, CompiledGrammar

if TYPE_CHECKING:
    import torch


class GrammarLogitsProcessor:
    """A processor for transformers' `generate(logits_processor=[...])`; one for each call of generate.

    The first call's ids are the prompts, however they are padded. Rows keep their places: beams are refused.
    Where a shorter history comes back (a candidate was dropped), the grammars go back too.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        adapter: Adapter,
        grammars: CompiledGrammar | Sequence[CompiledGrammar | None],
        *,
        pad_token: int | None = None,
    ) -> None:
        """`grammars` are the adapter's: one for all rows, or one for each row, where None leaves its row
        free.

        A row that gets `pad_token` where its grammar refuses it has ended otherwise (by a stop string), and
        is left alone from then on.
        """
        self._adapter = adapter
        self._grammars = grammars
        self._pad_token = pad_token
        self._followers: dict[int, Follower] = {}
        self._ids: torch.Tensor | None = None
        self._prompt = 0
        self._masking = Masking()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Returns new scores, masked, `[batch, vocabulary]`.

        Raises ValueError if a row has got a token that its grammar refuses, or if the rows are not those of
        the last call; BackendFault if a backend raises.
        """
        if self._ids is None:
            self._begin(input_ids)
        else:
            self._follow(input_ids, self._ids)
        self._ids = input_ids
        if not self._followers:
            return scores
        masked = scores.clone()
        self._masking.apply(masked, self._followers)
        return masked

    def _begin(self, ids: torch.Tensor) -> None:
        batch, self._prompt = ids.shape
        if isinstance(self._grammars, CompiledGrammar):
            grammars: Sequence[CompiledGrammar | None] = [self._grammars] * batch
        else:
            grammars = self._grammars
            if len(grammars) != batch:
                raise ValueError(
                    f"{len(grammars)} grammars do not fit {batch} rows; give one for each "
                    "prompt, and use no beams"
                )
        self._followers = {
            row: Follower(self._adapter, grammar, f"row {row}")
            for row, grammar in enumerate(grammars)
            if grammar is not None
        }

    def _follow(self, ids: torch.Tensor, earlier: torch.Tensor) -> None:
        if (
            len(ids) != len(earlier)
            or ids.shape[1] < self._prompt
            or not _same(ids[:, : self._prompt], earlier[:, : self._prompt])
        ):
            raise ValueError(
                f"other prompts than in the first call ({len(earlier)} of {self._prompt} ids); make a new "
                "processor for each generate"
            )
        shared = min(ids.shape[1], earlier.shape[1])
        if _same(ids[:, :shared], earlier[:, :shared]) and ids.shape[1] >= earlier.shape[1]:
            for row, tokens in enumerate(ids[:, shared:].tolist()):
                self._lead(row, tokens, Follower.extend)
        elif ids.shape[1] > earlier.shape[1]:
            raise ValueError(
                "rows have changed behind the prompt while they grew: beam search is not "
                "supported, use num_beams=1"
            )
        else:
            for row, tokens in enumerate(ids[:, self._prompt :].tolist()):
                self._lead(row, tokens, Follower.go_to)

    def _lead(self, row: int, tokens: list[int], move: Callable[[Follower, Sequence[int]], None]) -> None:
        follower = self._followers.get(row)
        if follower is None:
            return
        try:
            move(follower, tokens)
        except ValueError as error:
            refused = error.__cause__
            if (
                self._pad_token is None
                or not isinstance(refused, TokenRefused)
                or refused.token != self._pad_token
            ):
                raise
            del self._followers[row]


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    return torch.equal(one, other)


class RequestLogitsProcessor:
    """vLLM's processor of one request: `processor(prompt_ids, output_ids, logits)` changes the logits,
    `[vocabulary]`, in place and returns them.

    Several sequences may share it (`n > 1`): whatever history comes, the grammar goes there. vLLM's
    `AdapterLogitsProcessor` takes it from `new_req_logits_processor`.
    """

    def __init__(self, adapter: Adapter, compiled: CompiledGrammar) -> None:
        """Raises BackendFault."""
        self._adapter = adapter
        self._compiled = compiled
        self._follower = Follower(adapter, compiled)
        self._masking = Masking()

    def __call__(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], logits: torch.Tensor
    ) -> torch.Tensor:
        """Raises ValueError if the grammar refuses an output id, BackendFault if the backend raises."""
        self._follower.go_to(output_ids)
        self._masking.apply(logits.unsqueeze(0), {0: self._follower})
        return logits

    def clone(self) -> RequestLogitsProcessor:
        """Returns a fresh processor, which vLLM asks for instead of a deep copy."""
        return RequestLogitsProcessor(self._adapter, self._compiled)


class BatchUpdate(Protocol):
    """vLLM's record of how its batch has changed; to be done in the order removed, added, moved."""

    @property
    def removed(self) -> Sequence[int]: ...
    @property
    def added(self) -> Sequence[tuple[int, Any, Sequence[int] | None, list[int]]]:
        """Index, sampling parameters, prompt ids, and the list to which output ids are appended."""

    @property
    def moved(self) -> Sequence[tuple[int, int, Any]]:
        """From, to, and an enum whose name is SWAP or UNIDIRECTIONAL."""


class BatchLogitsProcessor:
    """vLLM's processor of a batch (v1: `update_state`, `apply`), for a subclass of its LogitsProcessor to
    hand its calls to."""

    def __init__(self, adapter: Adapter, grammar_of: Callable[[Any], CompiledGrammar | None]) -> None:
        """`grammar_of` returns the adapter's grammar for a request's sampling parameters; None if the request
        has none."""
        self._adapter = adapter
        self._grammar_of = grammar_of
        self._requests: dict[int, tuple[Follower, list[int]]] = {}
        self._masking = Masking()

    def is_argmax_invariant(self) -> bool:
        """Returns whether greedy decoding may leave the processor out; it may not."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follows the requests to their places. Raises BackendFault."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._requests.pop(row, None)
        for row, params, _, output_ids in batch_update.added:
            compiled = self._grammar_of(params)
            self._requests.pop(row, None)
            if compiled is not None:
                self._requests[row] = (Follower(self._adapter, compiled), output_ids)
        for source, target, direction in batch_update.moved:
            moved, there = self._requests.pop(source, None), self._requests.pop(target, None)
            if moved is not None:
                self._requests[target] = moved
            if there is not None and direction.name == "SWAP":
                self._requests[source] = there

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Changes the logits, `[batch, vocabulary]`, in place and returns them.

        Raises what the processor of one request raises.
        """
        for follower, output_ids in self._requests.values():
            follower.go_to(output_ids)
        self._masking.apply(logits, {row: follower for row, (follower, _) in self._requests.items()})
        return logits
