"""A model on a static cache with a position for each row, which the decode loop calls
(`harness.walk.loop.forward`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput
from harness.serve.decode.model import attention
from harness.serve.decode.model.cache import CachePlace, memory_bytes, row_cache
from harness.serve.decode.model.fused import limit_positions, see_alone, working_kernels
from harness.serve.decode.model.graphs import Direct, Size, Static
from harness.serve.decode.model.memory import is_out_of_memory
from harness.serve.decode.model.pretrained import load_pretrained
from harness.serve.decode.model.shapes import SHAPES, build_shape
from harness.text import one_line

if TYPE_CHECKING:
    import torch

CHUNK, LEAST_CHUNK = 256, 64
"""The tokens of a wide pass over all rows, and the least of each row. With few rows one pass takes a short
prompt and the text that a grammar forces at its end."""


def load_model(
    name: str,
    vocabulary_size: int,
    *,
    rows: int,
    positions: int,
    chunk: int | None = None,
    device: str = "cpu",
    dtype: str | None = None,
    graphs: bool = True,
) -> Model:
    """Returns a shape (tiny, 0.5b, 1b, 8b), or a real model by folder or hub name, checked against its own
    plain forward pass.

    A pass feeds at most `chunk` tokens of a row; None means CHUNK shared out over the rows. `dtype` None
    means float32 on a CPU and bfloat16 elsewhere. Raises BadInput.
    """
    for module in ("torch", "transformers"):
        if find_spec(module) is None:
            raise BadInput(
                f"decoding needs {module}, which is not installed; pip install 'grammarbench[decode]'"
            )
    import torch

    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise BadInput(f'"{device}" is no device; name cpu or cuda') from error
    if where.type == "cuda" and not torch.cuda.is_available():
        raise BadInput("there is no CUDA device here; use the device cpu")
    kind = getattr(torch, dtype or ("float32" if where.type == "cpu" else "bfloat16"), None)
    if not isinstance(kind, torch.dtype) or not kind.is_floating_point:
        raise BadInput(f'"{dtype}" is no dtype of weights; name float32, bfloat16 or float16')
    attention.register()
    if chunk is None:
        chunk = max(CHUNK // max(rows, 1), LEAST_CHUNK)
    build = build_shape if name in SHAPES else load_pretrained
    try:
        network = build(name, vocabulary_size, where, kind, attention.GROUPED)
        model = Model(network, name, rows=rows, positions=positions, chunk=chunk, graphs=graphs)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadInput(
            f'"{name}" with {rows} rows of {positions} positions does not fit into the memory of {device}; '
            "ask for less"
        ) from error
    return model


class Network:
    """One pass from token ids and positions to logits. It reads no value of its inputs, so that it can be
    captured and run on `meta`."""

    def __init__(self, model: Any, rows: int, positions: int, chunk: int) -> None:
        import torch

        config = model.config.get_text_config()
        self.model = model
        self.windows = attention.windows(config)
        self.device, self.dtype = model.device, model.dtype
        self.last_position = positions - 1
        limit_positions(model, positions)
        # Padding and rows that only keep the batch whole write behind the last position, where nothing is
        # ever seen.
        self.capacity = -(-(positions + chunk) // 64) * 64
        self.cache = row_cache(config.num_hidden_layers, rows, self.capacity)
        named = signature(type(model).forward).parameters
        self.cache_is = "cache" if "cache" in named else "past_key_values"
        """The model's name for its cache: `cache` from transformers 5.24 on, which warns of the older one."""
        self.slots = torch.arange(self.capacity, device=self.device)
        self.row_numbers = torch.arange(rows, device=self.device)
        self.seen = torch.zeros((), dtype=self.dtype, device=self.device)
        self.unmasked = self.seen.view(1, 1, 1, 1)
        """What stands for a mask where the layers take none."""
        # Finite: a row that only fills up the pass may see nothing at all, and the NaN of an empty softmax,
        # written to the cache, would spoil what never sees it (0 times NaN). Half of the least, so that
        # adding a score does not overflow.
        self.hidden = torch.full((), torch.finfo(self.dtype).min / 2, dtype=self.dtype, device=self.device)
        self.chosen: tuple[torch.Tensor, ...] = ()
        # Before the head, so that logits are computed only where they are asked for, whatever a model does
        # with them afterwards.
        model.get_output_embeddings().register_forward_pre_hook(self._choose)

    def __call__(self, inputs: torch.Tensor, size: Size) -> torch.Tensor:
        """Returns the float32 logits [rows, vocabulary], or [rows, width, vocabulary] if `size.every`, for
        inputs as in `graphs.input_length`."""
        tokens = size.rows * size.width
        first, slot, last = inputs[tokens:].view(3, size.rows)
        at = first[:, None] + self.slots[: size.width]
        rows = self.row_numbers if size.whole else slot
        self.cache.place = CachePlace(rows, at, size.span, size.whole)
        order = slot if size.whole else self.row_numbers[: size.rows]
        span = self.slots[: size.span]
        self.chosen = (order,) if size.every else (order, last)
        logits = self.model(
            input_ids=inputs[:tokens].view(size.rows, size.width),
            position_ids=at.clamp(max=self.last_position),
            attention_mask=self.unmasked
            if see_alone(self.model, size.width)
            else attention.masks(self.windows, at, span, self.seen, self.hidden),
            use_cache=True,
            **{self.cache_is: self.cache},
        ).logits
        self.chosen = ()
        return (logits if size.every else logits[:, 0]).float()  # type: ignore[no-any-return]

    def _choose(self, _: Any, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        if not self.chosen:
            return None
        states = given[0][self.chosen]
        return (states if states.dim() == 3 else states[:, None],)


class Model:
    """Implements `Forward` for a causal LM of transformers."""

    def __init__(self, model: Any, name: str, *, rows: int, positions: int, chunk: int, graphs: bool) -> None:
        limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        if min(rows, positions, chunk) < 1:
            raise BadInput(f"rows ({rows}), positions ({positions}) and chunk ({chunk}) must be at least 1")
        if limit and positions > limit:
            raise BadInput(
                f'"{name}" was made for {limit:,} positions, {positions:,} were asked for; ask for fewer'
            )
        self.name, self.rows, self.positions, self.chunk = name, rows, positions, min(chunk, positions)
        model.eval().requires_grad_(False)
        self.network = Network(model, rows, positions, self.chunk)
        self.device: torch.device = self.network.device
        self.vocabulary_size = int(model.get_output_embeddings().weight.shape[0])
        self._lengths = [0] * rows
        self._runner: Direct | Static = Direct(self.network, self.device)
        self._check()
        if graphs and self.device.type == "cuda":
            self._runner = Static(self.network, self.device, capture=True)

    @property
    def began(self) -> Any:
        """Returns when the last pass began, as `Forward.began` says."""
        return self._runner.began

    @property
    def captured(self) -> int:
        """Returns how many sizes of pass were captured as graphs so far."""
        return self._runner.captured

    def extend(self, tokens: Mapping[int, Sequence[int]], *, every: bool = False) -> torch.Tensor:
        """Append tokens and return logits, as `Forward.extend` says. Raises ValueError for too many or no
        tokens, IndexError for a row that does not exist."""
        return self._extended(tokens, every, None)

    def extend_unseen(self, rows: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        """Append a token of the device to each row and return logits, as `Forward.extend_unseen` says. Raises
        as `extend` does."""
        return self._extended(dict.fromkeys(rows, (0,)), False, tokens)

    def _extended(
        self, tokens: Mapping[int, Sequence[int]], every: bool, unseen: torch.Tensor | None
    ) -> torch.Tensor:
        """Returns what `extend` returns; `unseen` takes the place of the one token of each row."""
        import torch

        lengths, named = self._lengths, len(tokens)
        longest, span = 0, 0
        for row, ids in tokens.items():
            count = len(ids)
            end = lengths[row] + count
            if not 0 < count <= self.chunk or end > self.positions or row < 0:
                raise ValueError(
                    f"row {row} holds {lengths[row]} of {self.positions} positions; it cannot "
                    f"be extended by {count} tokens"
                )
            longest, span = max(longest, count), max(span, end)
        if not named:
            raise ValueError("no row is named")
        size = self._runner.size(self.rows, named, longest, span, every, self.network.capacity, self.chunk)
        with torch.no_grad():  # not inference mode, whose tensors the caller could not overwrite
            logits = self._runner.run(size, self._inputs(tokens, size), unseen)
            if self._runner.static:
                logits = (logits[:named, :longest] if every else logits[:named]).clone()
        for row, ids in tokens.items():
            lengths[row] += len(ids)
        return logits

    def _inputs(self, tokens: Mapping[int, Sequence[int]], size: Size) -> list[int]:
        """Returns the inputs of a pass, in the order of `graphs.input_length`. Rows that only fill up the
        pass write behind their last token."""
        count, lengths = size.width, self._lengths
        order = [*tokens]
        if size.rows > len(order):
            order += [row for row in range(self.rows) if row not in tokens][: size.rows - len(order)]
        places: Sequence[int] = range(self.rows) if size.whole else order
        if count == 1:  # most passes, beside which the host has the least time
            values = [tokens[row][0] if row in tokens else 0 for row in places]
            lasts = [0] * len(order)
        else:
            values = []
            for row in places:
                ids = tokens.get(row, ())
                values += ids
                values += [0] * (count - len(ids))
            lasts = [max(len(tokens.get(row, ())) - 1, 0) for row in order]
        return [*values, *(lengths if size.whole else (lengths[row] for row in places)), *order, *lasts]

    def prepare(self, prompt: int, draft_tokens: int = 0) -> None:
        """Capture the passes of one token and those that a prompt of so many tokens takes, for each number of
        rows and each span, so that none of them is captured during a run. Passes of several tokens with
        logits at each, and with whole drafts of so many tokens, are captured at their first use."""
        if not isinstance(self._runner, Static):
            return
        import torch

        self._runner.drafted = draft_tokens + 1 if draft_tokens else 0
        rest = (prompt - 1) % self.chunk + 1  # what is left for the prompt's last pass
        counts = sorted({1, rest, min(prompt, self.chunk)})
        doubled = (1 << power for power in range(self.positions.bit_length()))
        sizes = dict.fromkeys(
            self._runner.size(self.rows, rows, count, span, False, self.network.capacity, self.chunk)
            for rows, count, span in product(range(1, self.rows + 1), counts, (*doubled, self.positions))
        )
        with torch.no_grad():
            for size in sizes:
                self._runner.run(size, self._inputs({}, size))
        self.finish()

    def length(self, row: int) -> int:
        """Returns how many tokens the row holds."""
        return self._lengths[row]

    def rollback(self, row: int, length: int) -> None:
        """Keep the row's first `length` tokens. Raises ValueError if it has fewer."""
        if not 0 <= length <= self._lengths[row]:
            raise ValueError(
                f"row {row} holds {self._lengths[row]} tokens; it cannot be rolled back to {length}"
            )
        self._lengths[row] = length

    def finish(self) -> None:
        """Wait for the device."""
        import torch

        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def peak_bytes(self) -> int | None:
        """Returns the highest device memory of this process's tensors, in bytes; None on a CPU, where the
        process's resident memory stands for it."""
        import torch

        return int(torch.cuda.max_memory_allocated(self.device)) if self.device.type == "cuda" else None

    def describe(self) -> dict[str, Any]:
        """Returns what the model is, with sizes in bytes. `read_bytes` are the weights that a pass of one
        token reads, without a table of input embeddings that is not also the head's."""
        model = self.network.model
        weights = {
            id(parameter): parameter.numel() * parameter.element_size() for parameter in model.parameters()
        }
        table, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        held = memory_bytes(self.network.cache)
        shape = SHAPES.get(self.name)
        return {
            "name": self.name,
            "kind": "shape" if shape else "real",
            "like": shape.like if shape else self.name,
            "type": model.config.model_type,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "weight_bytes": sum(weights.values()),
            "read_bytes": sum(weights.values()) - (0 if table is head else weights[id(table)]),
            "cache_bytes_per_token": held // (self.rows * self.network.capacity),
            "cache_bytes": held,
            "rows": self.rows,
            "positions": self.positions,
            "chunk": self.chunk,
            "vocabulary_size": self.vocabulary_size,
            "dtype": str(self.network.dtype).removeprefix("torch."),
            "device": str(self.device),
            "device_name": self._device_name(),
            "attention": model.config._attn_implementation,
            "graphs": self._runner.static,
            "kernels": bool(shape) and self.device.type == "cuda" and working_kernels() is not None,
            "torch": version("torch"),
            "transformers": version("transformers"),
        }

    def _device_name(self) -> str:
        import torch

        return (
            str(torch.cuda.get_device_name(self.device)) if self.device.type == "cuda" else self.device.type
        )

    def _check(self) -> None:
        """Check that the model gives the same logits over the cache as without it: with our attention or, if
        it cannot run that, with its own.

        Raises BadInput if neither agrees, whatever state the model keeps or however it counts positions,
        because the loop's figures would be those of another model.
        """
        why = ""
        for name in (attention.GROUPED, attention.EAGER):
            try:
                self.network.model.set_attn_implementation(name)
                apart = self._apart()
            except (NotImplementedError, ValueError, KeyError) as error:
                why = one_line(str(error))
                continue
            except (RuntimeError, TypeError, AttributeError, IndexError, AssertionError) as error:
                if is_out_of_memory(error):
                    raise
                why = one_line(str(error))
                continue
            if apart <= (1e-3 if self.network.dtype.itemsize == 4 else 0.1):
                return
            why = f"its logits over the cache differ from its own by {apart:.2g}"
        raise BadInput(
            f'"{self.name}" cannot be driven by the decode loop: {why[:200]}; name a model that '
            "keeps only keys and values"
        )

    def _apart(self) -> float:
        """Returns the relative distance between a ragged run with a rollback and the model's own plain
        pass."""
        import torch

        if self.device.type == "meta":
            return 0.0
        text = [(7 * position + 3) % self.vocabulary_size for position in range(8)]
        row, most = self.rows - 1, min(len(text), self.positions)
        for begin in (0, most // 2):
            self.rollback(row, min(begin, self._lengths[row]))
            while self._lengths[row] < most:
                length = self._lengths[row]
                stop = min(length + (3 if begin else 2), length + self.chunk, most)
                logits = self.extend({row: text[length:stop]})[0]
        self.rollback(row, 0)
        used = self.network.model.config._attn_implementation
        self.network.model.set_attn_implementation(attention.EAGER)
        with torch.no_grad():
            own = (
                self.network.model(input_ids=torch.tensor([text[:most]], device=self.device), use_cache=False)
                .logits[0, -1]
                .float()
            )
        self.network.model.set_attn_implementation(used)
        return float((logits - own).norm() / own.norm())
