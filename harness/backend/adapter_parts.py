"""What several adapters need besides the contract, so that each of them holds little but its options, its
`compile` and its object: checked options, the text of a grammar read or refused, the place of a bitmask,
kernels, and the text of a script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.resources import files
from string import Template
from typing import Any, Generic, TypeVar

import numpy as np

from harness.backend.grammar import FLOATS, Bitmask, Grammar, InvalidGrammar, Kernel, UnsupportedGrammar
from harness.backend.layout import Layout
from harness.backend.tag_formats import Format, has_format, read_tag
from harness.backend.tag_formats.forms import has_tokens

T = TypeVar("T")

MOST_BLANKS = 1_000_000
MOST_THREADS = 1024
"""More of either is a mistake in an option, and not a wish."""


def option_value(option: str, chosen: str, values: Mapping[str, T]) -> T:
    """Returns what an option's chosen name stands for. Raises ValueError, which lists the names that there
    are, if it is none of them."""
    if chosen not in values:
        raise ValueError(f"{option} is {chosen!r}; it must be one of {', '.join(values)}")
    return values[chosen]


def bounded_white_space(layout: Layout, most: int) -> Layout:
    """Returns the layout with white space in runs of `most` characters at most; 0 is no bound.

    Raises ValueError for a negative number or one beyond MOST_BLANKS, and where the layout leaves white space
    no freedom.
    """
    if not 0 <= most <= MOST_BLANKS:
        raise ValueError(
            f"max_whitespace is {most}; it must be a number of characters, {MOST_BLANKS:,} at most, or 0 for "
            "no bound"
        )
    if most and (layout.separators is not None or layout.longest_run is not None):
        raise ValueError("max_whitespace bounds any white space; leave it or the other option out")
    return replace(layout, longest_run=most) if most else layout


def thread_count(threads: int) -> int:
    """Returns the number of threads. Raises ValueError for one below 1 or beyond MOST_THREADS, before the
    library is asked, against which its answer to such a number would count."""
    if not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"threads is {threads}; it must be from 1 to {MOST_THREADS:,}")
    return threads


def refusal(reason: str, unsupported: re.Pattern[str]) -> UnsupportedGrammar | InvalidGrammar:
    """Returns the exception for a grammar that the library refused, for a library whose errors differ in
    their words alone: UnsupportedGrammar if `unsupported` is found in the reason, else InvalidGrammar."""
    return (UnsupportedGrammar if unsupported.search(reason) else InvalidGrammar)(reason)


def require_unicode(text: str) -> None:
    """Raises InvalidGrammar if the text holds half of a surrogate pair, for which no UTF-8 exists."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidGrammar(f"no Unicode text: {error}") from error


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
    """Returns the triggers and the structures of a `structural_tag` in the old form. Raises
    UnsupportedGrammar for the new form, and InvalidGrammar for what is neither."""
    if format_of(text) is not None:
        raise UnsupportedGrammar("no structural tags in the new form, with a format")
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


def format_of(text: str) -> Format | None:
    """Returns the format of a `structural_tag` in the new form; None for the old form. Raises
    InvalidGrammar."""
    try:
        form = json.loads(text)
        return read_tag(form) if has_format(form) else None
    except (ValueError, RecursionError) as error:
        raise InvalidGrammar(f"structural_tag: {error}") from error


def reads_tokens(grammar: Grammar) -> bool:
    """Returns whether the grammar is a structural tag that names tokens by their ids. Raises
    InvalidGrammar."""
    format = format_of(grammar.text) if grammar.dialect == "structural_tag" else None
    return format is not None and has_tokens(format)


def require_place(bitmask: Bitmask, words: int) -> None:
    """Raises ValueError if a bitmask, or the rows of a batch, are not what a library takes them for, which
    writes there without looking: a writable, contiguous int32 array of so many words a row."""
    flags = bitmask.flags
    if (
        bitmask.dtype != np.int32
        or bitmask.shape[-1] != words
        or not (flags.c_contiguous and flags.writeable)
    ):
        raise ValueError(
            f"a bitmask must be a writable, contiguous int32 array of {words} words a row, not "
            f"{bitmask.dtype} {bitmask.shape}"
        )


def address_of(bitmask: Bitmask, shape: tuple[int, ...]) -> int:
    """Returns where the memory of a bitmask, or of the rows of a batch, begins. Raises ValueError if the
    array has another shape, or cannot be written into."""
    require_place(bitmask, shape[-1])
    if bitmask.shape != shape:
        raise ValueError(f"a bitmask must be a contiguous int32 array of shape {shape}, not {bitmask.shape}")
    return int(bitmask.ctypes.data)


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
            require_place(bitmask, self._words)
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
        "torch": Kernel(load_torch, frozenset({"cpu", "cuda"})),
        "numpy": Kernel(load_numpy, frozenset({"cpu"}), FLOATS - {"bfloat16"}),
    }


def script_of(backend: str, **parts: str) -> str:
    """Returns the script `adapters/scripts/<backend>.txt` with each `$name` replaced by the part of that name
    (see `Adapter.script`)."""
    text = files("harness.adapters").joinpath("scripts", f"{backend}.txt").read_text("utf-8")
    return Template(text).substitute(parts)
