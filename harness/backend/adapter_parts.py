"""What several adapters need besides the contract: choices and structural tags read from a grammar's text,
the checked place of a bitmask, the kernels that come in one form, and the text of a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from string import Template
from typing import Any, Generic, TypeVar

import numpy as np

from harness.backend.grammar import Bitmask, InvalidGrammar, Kernel
from harness.backend.vocabulary import Vocabulary

T = TypeVar("T")


def choices_of(text: str) -> list[str]:
    """Returns the strings of a `choice`. Raises InvalidGrammar if the text is no JSON array of strings, if
    the array is empty, or if a string is no Unicode text."""
    try:
        choices = json.loads(text)
        if not isinstance(choices, list) or not choices:
            raise TypeError("no array of at least one string")
        "".join(choices).encode()
    except (ValueError, TypeError) as error:
        raise InvalidGrammar(f"choice: {error}") from error
    return choices


@dataclass(frozen=True)
class Tag:
    """One structure of a structural tag: the text that begins it, its schema, and the text that ends it."""

    begin: str
    schema: Any
    end: str


def structural_tag_of(text: str) -> tuple[list[str], list[Tag]]:
    """Returns the triggers and the structures of a `structural_tag`. Raises InvalidGrammar."""
    try:
        form = json.loads(text)
        triggers = form["triggers"]
        tags = [Tag(part["begin"], part["schema"], part["end"]) for part in form["structures"]]
        if not isinstance(triggers, list):
            raise TypeError("triggers are no array")
        "".join([*triggers, *(tag.begin + tag.end for tag in tags)])  # all of them must be text
        return triggers, tags
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidGrammar(f"structural_tag: {error!r}") from error


def plain_tokens(vocabulary: Vocabulary) -> dict[int, bytes]:
    """Returns the bytes of each token that is text: no end-of-sequence, special, padding or empty token."""
    left_out = {vocabulary.eos_token, *vocabulary.special_tokens, *vocabulary.padding_tokens}
    return {token: text for token, text in enumerate(vocabulary.tokens) if text and token not in left_out}


class LastBitmask(Generic[T]):
    """What a library takes for a bitmask, its address or a tensor, made by `convert` and remembered for the
    last bitmask, because fills are timed."""

    def __init__(self, words: int, convert: Callable[[Bitmask], T]) -> None:
        self._words = words
        self._convert = convert
        self._last: tuple[Bitmask, T] | None = None  # one pair, so that threads never see half of it

    def of(self, bitmask: Bitmask) -> T:
        """Returns the converted bitmask. Raises ValueError if it is not what the library writes into."""
        last = self._last
        if last is None or last[0] is not bitmask:
            flags = bitmask.flags
            if (
                bitmask.dtype != np.int32
                or bitmask.shape[-1] != self._words
                or not (flags.c_contiguous and flags.writeable)
            ):
                raise ValueError(
                    f"a bitmask is a contiguous, writable int32 array of {self._words} words a row"
                )
            self._last = last = bitmask, self._convert(bitmask)
        return last[1]


def require_a_row_for_each(objects: int, bitmasks: Bitmask) -> None:
    """Raises ValueError unless a batch has as many bitmasks as objects."""
    if objects != len(bitmasks):
        raise ValueError(f"{objects} objects for {len(bitmasks)} bitmasks")


def kernels_in_torch_and_numpy(package: str) -> Mapping[str, Kernel]:
    """Returns the kernels of a library with the modules `<package>.torch` and `<package>.numpy`, each with
    a function `apply_token_bitmask_inplace(logits, bitmask)`."""

    def load_torch() -> Callable[..., object]:
        function: Callable[..., object] = import_module(f"{package}.torch").apply_token_bitmask_inplace
        return function

    def load_numpy() -> Callable[..., object]:
        function = import_module(f"{package}.numpy").apply_token_bitmask_inplace
        return lambda logits, bitmask: function(logits.numpy(), bitmask.numpy())

    return {
        "torch": Kernel(
            load_torch, frozenset({"cpu", "cuda"}), frozenset({"float32", "float16", "bfloat16"})
        ),
        "numpy": Kernel(load_numpy, frozenset({"cpu"}), frozenset({"float32", "float16"})),
    }


def script_of(backend: str, **parts: str) -> str:
    """Returns the script `adapters/scripts/<backend>.txt` with each `$name` replaced by the part of that name
    (see `Adapter.script`)."""
    text = files("harness.adapters").joinpath("scripts", f"{backend}.txt").read_text("utf-8")
    return Template(text).substitute(parts)
