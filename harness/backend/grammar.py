"""The contract between the harness and a backend: two classes to subclass, and the value between them.

Four sentences hold for every adapter and are checked by `grammarbench check`:
a refused token does not move the object; accepting is not terminated;
end-of-sequence is accepted exactly when accepting; after termination only `rollback` may be called.

A vocabulary has one id of end-of-sequence or several (`Vocabulary.eos_tokens`), and what is said of
end-of-sequence holds for each of them. An adapter whose library knows one only says so (`knows_one_end`).

An adapter makes the *calling convention* the same everywhere, never the *language*: it does not hide a
backend's fault. It holds no clock, writes nothing and sees no expected result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from harness.backend.layout import Layout
from harness.backend.vocabulary import Vocabulary

Dialect = Literal["json_schema", "regex", "ebnf", "lark", "choice", "structural_tag"]
DIALECTS: tuple[Dialect, ...] = ("json_schema", "regex", "ebnf", "lark", "choice", "structural_tag")

MaskFormat = Literal["bitmask", "bool"]

KnownBy = Literal["library", "bytes", ""]

Bitmask = NDArray[np.int32]
"""Shape `[words]`, 32 tokens a word, least significant bit first, 1 = allowed (the layout that the backends'
own kernels share). Bits of the last word behind the last id mean nothing: no logit stands there."""

BoolMask = NDArray[np.bool_]
"""Shape `[vocabulary.size]`, True = forbidden (the layout of engines that scatter a list of ids)."""


class UnsupportedGrammar(Exception):
    """The backend says that it cannot enforce this grammar."""


class InvalidGrammar(Exception):
    """The backend says that this grammar is wrong."""


class UnsupportedVocabulary(Exception):
    """The library's own loader refuses the tokenizer. An adapter raises it when it is made, and then every
    grammar is declined with its text (`harness.backend.registry.make`)."""


@dataclass(frozen=True)
class Grammar:
    """A constraint as text, in one dialect.

    `text` is for `json_schema` the schema as JSON text (`true` and `{"type": "object"}` are schemas too), for
    `regex` the pattern (it describes the whole output), for `ebnf` GBNF rules whose start rule is `root`, for
    `lark` a grammar of Lark's language whose start rule is `start` (docs/lark.md), for `choice` a JSON array
    of strings, for `structural_tag` a JSON object: `{"triggers": [...], "structures": [{"begin", "schema",
    "end"}]}` or, in the new form, `{"format": ...}` (docs/structural_tags.md).
    """

    dialect: Dialect
    text: str


class GrammarObject(ABC):
    """A compiled grammar, at one position in one output."""

    @abstractmethod
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        """Overwrites the whole bitmask: sets a bit for each token that may come next, and clears all others.
        Once end-of-sequence has been accepted it allows nothing, or end-of-sequence alone, or raises."""

    @abstractmethod
    def accept_token(self, token: int) -> bool:
        """Advances past the token and returns True, or returns False and does not move."""

    @abstractmethod
    def is_accepting(self) -> bool:
        """Returns whether the output could end here."""

    @abstractmethod
    def is_terminated(self) -> bool:
        """Returns whether end-of-sequence has been accepted, whichever of its ids."""

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        """Returns a call that does what `fill_bitmask(bitmask)` does, from wherever the object then stands;
        what it returns means nothing.

        It is for loops that time a fill: an adapter binds here once what `fill_bitmask` must look up each
        time. The call may be made only while the object and the bitmask live. A fault that the backend tells
        only when asked may wait for the object's next call.
        """
        return partial(self.fill_bitmask, bitmask)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        """Overwrites the whole mask, with True for each token that may *not* come next. Called only with the
        `bool` mask format."""
        raise NotImplementedError

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        """Advances past the tokens until one is refused; returns how many were accepted."""
        for count, token in enumerate(tokens):
            if not self.accept_token(token):
                return count
        return len(tokens)

    def rollback(self, count: int) -> None:
        """Takes back the last `count` accepted tokens, end-of-sequence included."""
        raise NotImplementedError

    def copy(self) -> GrammarObject:
        """Returns a clone at the current position, independent of this object."""
        raise NotImplementedError

    def fill_draft(self, tokens: Sequence[int], bitmasks: Bitmask) -> int:
        """Fills row i of `bitmasks` (shape `[len(tokens) + 1, words]`) with the mask behind the first i
        tokens, without moving; returns how many of the tokens may come. Rows behind a token that may not
        come, and behind end-of-sequence, mean nothing.

        It is for an engine's own way of trying a draft. Without it a draft is tried by accepting its tokens
        and taking them back.
        """
        raise NotImplementedError

    def jump_forward(self) -> bytes:
        """Returns the bytes that must come next, without moving; may end inside a character; `b""` if none.
        What is missed fails a case; a library without jump-forward leaves this out (docs/checks.md)."""
        return b""

    def fast_forward_tokens(self) -> list[int]:
        """Returns the tokens that the backend would force next, chosen so as to stay canonical, without
        moving."""
        return []


FLOATS = frozenset({"float32", "float16", "bfloat16"})
"""The types of logits, by torch's names."""


@dataclass(frozen=True)
class Kernel:
    """A library's own function that applies masks to logits, under one calling convention.

    `load` imports what the function needs and gives it; ImportError says why it is not to be had here. The
    function works in place on a torch tensor `logits` (`[batch, vocabulary]` or `[vocabulary]`, of any
    strides) with a packed `bitmask` (int32, `[batch, words]` or `[words]`, of any strides) on the same
    device. Where `indices`, it takes a third argument, a list of the only rows to touch; row i of the bitmask
    is that of row i of the logits. What it returns means nothing. What it does not support it refuses by
    raising.
    """

    load: Callable[[], Callable[..., object]]
    devices: frozenset[str]
    """Kinds of devices on which it exists: `cpu`, `cuda`."""
    dtypes: frozenset[str] = FLOATS
    """The types of logits that it takes."""
    indices: bool = False
    documented: Mapping[str, str] = field(default_factory=dict)
    """Divergences that the library's own documentation states: the name of a probe, and a sentence with its
    source."""


class CompiledGrammar(ABC):
    """A grammar, compiled for one vocabulary."""

    @abstractmethod
    def start(self) -> GrammarObject:
        """Returns a fresh object at the start; cheap."""

    def serialize(self) -> bytes:
        """Returns the compiled grammar in the library's own stored form, where it has one; for its size."""
        raise NotImplementedError


class Adapter(ABC):
    """A backend, bound to one vocabulary; made once, used for many grammars.

    Options are the keyword-only parameters of `__init__`, annotated `bool`, `int`, `str` or `Literal[...]`,
    each with a default: `grammarbench run --backends name:option=value` checks and converts them by that
    signature.
    """

    distribution: ClassVar[str]
    """The distribution whose version is recorded; empty if there is none."""

    is_ours: ClassVar[bool] = False
    """The adapter's own code is the backend, and it is the harness's: whatever goes wrong in it is a failure
    of ours."""

    wraps: str = ""
    """For the wrapper of another library: that library's distribution, whose version is recorded too."""

    dialects: ClassVar[frozenset[Dialect]]

    documented: ClassVar[Mapping[str, str]] = {}
    """Divergences that the backend's own documentation states: the cause that a check finds, and a sentence
    with its source."""

    engines: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """The serving engines that have this backend: for each, the options of the adapter that stand for what
    the engine runs (empty for the defaults), with the option of the engine that chooses it; that is empty
    where the engine has nothing else. An adapter of the engine's own distribution wraps the engine's classes;
    any other has the library behind them, and its options are the settings that the engine gives it."""
    engine_facts: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """What else a user of an engine must know: for each, the fields of `advise`'s `EngineFacts`."""

    mask_format: MaskFormat = "bitmask"
    """The mask that the walk allocates; an adapter with a second format sets it by its `mask` option."""

    threads: int | None = None
    """On how many threads `fill_bitmasks` works, for adapters that have them; it may be set between two
    calls."""

    layout: Layout | None = None
    """How the backend writes JSON, by its documentation and its options: every document of a schema that is
    spelled so can be written. None if it says nothing of that."""
    layout_in_tags: Layout | None = None
    """How the backend writes the documents in structural tags; None if it says nothing of that."""

    loader: KnownBy = ""
    """How the library came to know the tokens: `library` if its own loader read the tokenizer's files,
    `bytes` if the adapter handed it the bytes of each id. Empty if the adapter does not say."""
    refused_vocabulary: str = ""
    """Why the library's own loader refuses the vocabulary; every grammar is declined then."""
    knows_one_end: str = ""
    """For a library that knows one id of end-of-sequence only, or some: a sentence that says so, with its
    source. Empty for one that takes all ids of a vocabulary."""

    vocabulary: Vocabulary
    """The vocabulary as the library knows it: where that knows one id of end-of-sequence only, the first is
    the only one unless the adapter says another (`take_ends`), and the others are special tokens like any
    other, allowed nowhere. A run says so once, and nothing is held against the backend for it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        if self.knows_one_end:
            self.take_one_end(self.knows_one_end)

    def take_one_end(self, why: str) -> None:
        """Says that the library knows one id of end-of-sequence only, as `knows_one_end` does, for what is
        found out with the vocabulary."""
        self.take_ends(why, self.vocabulary.eos_tokens[:1])

    def take_ends(self, why: str, ends: Sequence[int]) -> None:
        """Says which of a vocabulary's ids of end-of-sequence the library knows, where these are neither all
        of them nor the first alone; `why` as in `knows_one_end`."""
        self.knows_one_end, self.vocabulary = why, self.vocabulary.with_ends(tuple(ends))

    @abstractmethod
    def compile(self, grammar: Grammar) -> CompiledGrammar:
        """Returns the compiled grammar. Raises `UnsupportedGrammar` or `InvalidGrammar`; whatever else
        escapes is the backend's fault. A grammar without any output is invalid: compiled, it leaves an engine
        a mask without a token, which is a fault (`cannot_terminate`)."""

    def documents(self, cause: str) -> bool:
        """Returns whether every part of a cause (they are joined by `+`) is a divergence that the backend
        states of itself."""
        return are_documented(cause, self.documented)

    def script(self, grammar: Grammar) -> str:
        """Returns Python lines that show one walk with the backend's own library and nothing of ours; empty
        if the adapter has none.

        Above them stand `vocabulary: list[bytes]`, whose last entry is end-of-sequence (`b""`), `grammar:
        str` (this grammar's text) and `walk: list[int]`; for each token of `walk`, up to the first refusal,
        they print its bytes, whether the mask allows it, and whether it is accepted. A last line that begins
        with `# forced: ` is a comment in disguise: what follows prints the forced text where the walk has
        led, and stands in the scripts that are about forced text only.
        """
        return ""

    def token_bytes(self) -> list[bytes] | None:
        """Returns the bytes that the library takes each id of the vocabulary for, `b""` for an id that it
        never takes for text; None if the library does not show it. They are the library's own, not mended."""
        return None

    def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
        """Returns what was compiled, for requests that think first, up to and including the ids `end`, as
        the library does it by itself (docs/reasoning.md).

        Raises UnsupportedGrammar where it cannot with such an end, and NotImplementedError where the library
        knows nothing of thinking: then it is `harness.backend.bridge.reasoning` that puts it before.
        """
        raise NotImplementedError

    def kernels(self) -> Mapping[str, Kernel]:
        """Returns the library's own functions that apply masks to logits, by name; empty if it has none."""
        return {}

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        """Fills row i of `bitmasks` (shape `[batch, words]`) from `objects[i]`."""
        for grammar_object, row in zip(objects, bitmasks, strict=True):
            grammar_object.fill_bitmask(row)


UNICODE_VERSION = "unicode_version"
"""The cause of a finding that vanishes with the tables of the backend's own version of Unicode."""
ASSERTED_FORMAT = "asserted_format"
"""The cause of tokens that are missing because the backend takes `format` for a constraint. JSON Schema
leaves that to an implementation (Validation, draft 7 section 7.2; 2020-12 section 7.2.1)."""
NO_FAULTS = frozenset((UNICODE_VERSION, ASSERTED_FORMAT))
"""The causes that are no fault of any backend, and count as documented of each."""


def are_documented(cause: str, documented: Collection[str]) -> bool:
    """Returns whether every part of a cause (they are joined by `+`) is among the documented ones, or no
    fault of any backend. Behind the first keyword the others stand without `keyword_`."""
    parts = cause.split("+")
    begun = "keyword_" if any(part.startswith("keyword_") for part in parts) else ""
    return all(part in documented or part in NO_FAULTS or f"{begun}{part}" in documented for part in parts)


def forced_token(grammar: CompiledGrammar, tokens: Sequence[int], allowed: Sequence[int]) -> int | None:
    """Returns the only allowed token after `tokens`, if a fresh object says that it forces this one; else
    None."""
    if len(allowed) != 1:
        return None
    fresh = grammar.start()
    if all(fresh.accept_token(token) for token in tokens) and fresh.fast_forward_tokens()[:1] == [allowed[0]]:
        return allowed[0]
    return None


def shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Returns how many tokens, or bytes, both begin with."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def is_bool(answer: object) -> bool:
    """Returns whether a backend's answer is a bool, Python's or numpy's."""
    return isinstance(answer, (bool, np.bool_))


def is_count(answer: object, most: int) -> bool:
    """Returns whether a backend's answer is a whole number, Python's or numpy's, from 0 to `most`."""
    return isinstance(answer, (int, np.integer)) and bool(0 <= answer <= most)


def are_tokens(answer: object, size: int) -> bool:
    """Returns whether a backend's answer is a list of ids, Python's or numpy's integers, of a vocabulary of
    that size."""
    return isinstance(answer, list) and all(is_count(token, size - 1) for token in answer)


ALIGNMENT = 64
"""Where a bitmask begins is a multiple of this many bytes. An engine's masks come from torch, which aligns
them so, and a fill of others costs some percent more."""


def overrides(grammar_object: GrammarObject, method: str) -> bool:
    """Returns whether the object's class defines this optional method itself. For an object that stands for
    another it is the other's class that counts."""
    grammar_object = getattr(grammar_object, "stands_for", grammar_object)
    return getattr(type(grammar_object), method) is not getattr(GrammarObject, method)


def allocate_bitmask(vocabulary_size: int) -> Bitmask:
    """Returns a zeroed bitmask of `ceil(vocabulary_size / 32)` words, aligned to ALIGNMENT."""
    size = (vocabulary_size + 31) // 32 * 4
    memory = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(np.int32)


def is_allowed(bitmask: Bitmask, token: int) -> bool:
    """Returns the token's bit."""
    return bool(int(bitmask[token >> 5]) >> (token & 31) & 1)


def allowed_tokens(bitmask: Bitmask, vocabulary_size: int) -> NDArray[np.int64]:
    """Returns the ids of all set bits below `vocabulary_size`, ascending."""
    return np.flatnonzero(unpack_mask(bitmask, vocabulary_size))


def unpack_mask(bitmask: NDArray[Any], vocabulary_size: int) -> NDArray[np.bool_]:
    """Returns one bool for each token, True where its bit is set; the shape is `[..., vocabulary_size]`.

    The bitmask, or several rows of them, is contiguous and of shape `[..., words]`.
    """
    packed = bitmask.view(np.uint8)
    return np.unpackbits(packed, axis=-1, count=vocabulary_size, bitorder="little").view(np.bool_)


def pack_mask(allowed: NDArray[np.bool_]) -> Bitmask:
    """Returns the bitmask in which the tokens are set that are True here; the inverse of `unpack_mask`."""
    bitmask = allocate_bitmask(len(allowed))
    packed = np.packbits(allowed, bitorder="little")
    bitmask.view(np.uint8)[: len(packed)] = packed
    return bitmask
