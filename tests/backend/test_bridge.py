"""SGLang-style backends as adapters, and adapters under SGLang's names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.bridge.from_sglang import SGLangAdapter, adapt_sglang
from harness.backend.bridge.to_sglang import BackendForSGLang, GrammarForSGLang, InvalidGrammarObject
from harness.backend.contract import check_adapter
from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    MaskFormat,
    UnsupportedGrammar,
    allocate_bitmask,
    allowed_tokens,
)
from harness.backend.vocabulary import Vocabulary, byte_vocabulary

torch = pytest.importorskip("torch")

BYTES = byte_vocabulary()
AB, LETTER, LETTER_BYTE, EOS = 256, 257, 258, 259
SMALL = Vocabulary(
    name="small",
    tokens=(*BYTES.tokens[:256], b"ab", "é".encode(), "é".encode()[:1], b"", *[b""] * 40),
    eos_tokens=(EOS,),
    special_tokens={EOS: "</s>"},
    padding_tokens=frozenset(range(260, 300)),
)


def next_tokens(pieces: tuple[bytes, ...], text: bytes, vocabulary: Vocabulary) -> list[int]:
    """Of a finite language, given by its outputs: what may follow the text."""
    plain = [
        token
        for token, each in enumerate(vocabulary.tokens)
        if each and any(piece.startswith(text + each) for piece in pieces)
    ]
    return plain + [vocabulary.eos_token] * (text in pieces)


def outputs(pattern: str) -> tuple[bytes, ...]:
    """The stand-ins' whole idea of a regular expression: alternatives."""
    return tuple(piece.encode() for piece in pattern.split("|"))


class StandIn:
    """A grammar object as the public interface describes it; written for these tests.

    Ids that are not text are never checked for.
    """

    def __init__(self, pieces: tuple[bytes, ...], vocabulary: Vocabulary) -> None:
        self.pieces, self.vocabulary, self.taken, self.finished = pieces, vocabulary, list[int](), False
        self.reasoning = True

    def maybe_init_reasoning(self, reasoning: bool) -> None:
        self.reasoning = reasoning

    def allowed(self) -> list[int]:
        if self.reasoning:
            return list(range(self.vocabulary.size))
        if self.is_terminated():
            raise RuntimeError("filled after the end")
        return next_tokens(self.pieces, self.vocabulary.decode(self.taken), self.vocabulary)

    def accept_token(self, token: int) -> None:
        if token not in self.allowed():
            raise ValueError(f"not accepted: {token}")
        self.taken.append(token)

    def rollback(self, k: int) -> None:
        del self.taken[-k:]

    def is_terminated(self) -> bool:
        return bool(self.taken) and self.taken[-1] == self.vocabulary.eos_token

    def try_jump_forward(self, tokenizer: object) -> tuple[list[int], str] | None:
        text = self.vocabulary.decode(self.taken)
        rest = [piece[len(text) :] for piece in self.pieces if piece.startswith(text)]
        return ([], rest[0].decode()) if len(rest) == 1 and rest[0] else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return helper[1], -1


class Packed(StandIn):
    """The packed family: `copy` is a fresh object at the start, and refusing raises."""

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: str) -> Any:
        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        vocab_mask[idx] = 0
        for token in self.allowed():
            vocab_mask[idx].numpy().view(np.uint32)[token // 32] |= 1 << token % 32

    def copy(self) -> Packed:
        return Packed(self.pieces, self.vocabulary)


class Wide(Packed):
    """A mask for more ids than the vocabulary has; `copy` is a clone; refusing returns False."""

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: str) -> Any:
        return super().allocate_vocab_mask(vocab_size + 64, batch_size, device)

    def accept_token(self, token: int) -> bool:  # type: ignore[override]
        if token not in self.allowed():
            return False
        self.taken.append(token)
        return True

    def copy(self) -> Wide:
        clone = Wide(self.pieces, self.vocabulary)
        clone.taken = self.taken.copy()
        return clone


class Bools(StandIn):
    """The bool family: `copy` is the object itself, and the jump is tokens, without text."""

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: str) -> Any:
        return torch.zeros(batch_size, vocab_size, dtype=torch.bool)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        vocab_mask[idx].fill_(True)
        vocab_mask[idx, self.allowed()] = False

    def copy(self) -> Bools:
        return self

    def try_jump_forward(self, tokenizer: object) -> tuple[list[int], str] | None:
        helper = super().try_jump_forward(tokenizer)
        return (list(helper[1].encode()), "") if helper else None


class Refused:
    """What newer versions return for a grammar that did not compile."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message


class Bare:
    """What older versions return for it: the base class itself."""

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: str) -> Any:
        raise NotImplementedError


class StandInBackend:
    def __init__(self, vocabulary: Vocabulary, kind: type[StandIn]) -> None:
        self.vocabulary, self.kind = vocabulary, kind

    def dispatch_regex(self, key_string: str) -> Any:
        if key_string == "crash":
            raise MemoryError("a crash")
        try:
            re.compile(key_string)
        except re.error as error:
            return Refused(str(error))
        return self.kind(outputs(key_string), self.vocabulary)

    def dispatch_json(self, key_string: str) -> Any:
        return None

    def dispatch_ebnf(self, key_string: str) -> Any:
        return Bare()

    def dispatch_structural_tag(self, key_string: str) -> Any:
        return Refused("structural tags are not supported")


KINDS = [Packed, Wide, Bools]


def stand_in(kind: type[StandIn], vocabulary: Vocabulary = BYTES) -> Adapter:
    def make_backend(vocabulary: Vocabulary) -> StandInBackend:
        return StandInBackend(vocabulary, kind)

    return adapt_sglang(make_backend)(vocabulary)


class Finite(Adapter):
    """Our own side of the same language, with bytes forced up to where its outputs differ."""

    distribution = ""
    dialects = frozenset[Dialect]({"regex"})

    def __init__(self, vocabulary: Vocabulary, mask_format: MaskFormat = "bitmask") -> None:
        super().__init__(vocabulary)
        self.mask_format = mask_format

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        if grammar.dialect != "regex":
            raise UnsupportedGrammar(f"no {grammar.dialect}")
        if grammar.text == "(":
            raise InvalidGrammar("missing )")
        return FiniteCompiled(outputs(grammar.text), self.vocabulary)


class FiniteCompiled(CompiledGrammar):
    def __init__(self, pieces: tuple[bytes, ...], vocabulary: Vocabulary) -> None:
        self.pieces, self.vocabulary = pieces, vocabulary

    def start(self) -> GrammarObject:
        return FiniteObject(self)


class FiniteObject(GrammarObject):
    def __init__(self, compiled: FiniteCompiled) -> None:
        self.compiled, self.taken = compiled, list[int]()

    def allowed(self) -> list[int]:
        assert not self.is_terminated(), "after the end only rollback may be called"
        vocabulary = self.compiled.vocabulary
        return next_tokens(self.compiled.pieces, vocabulary.decode(self.taken), vocabulary)

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bits = np.zeros(32 * len(bitmask), dtype=np.bool_)
        bits[self.allowed()] = True
        bitmask[:] = np.packbits(bits, bitorder="little").view(np.int32)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        mask.fill(True)
        mask[self.allowed()] = False

    def accept_token(self, token: int) -> bool:
        if self.is_terminated() or token not in self.allowed():
            return False
        self.taken.append(token)
        return True

    def is_accepting(self) -> bool:
        return not self.is_terminated() and self.compiled.vocabulary.eos_token in self.allowed()

    def is_terminated(self) -> bool:
        return bool(self.taken) and self.taken[-1] == self.compiled.vocabulary.eos_token

    def rollback(self, count: int) -> None:
        del self.taken[len(self.taken) - count :]

    def copy(self) -> GrammarObject:
        clone = FiniteObject(self.compiled)
        clone.taken = self.taken.copy()
        return clone

    def jump_forward(self) -> bytes:
        text = self.compiled.vocabulary.decode(self.taken)
        rest = [piece[len(text) :] for piece in self.compiled.pieces if piece.startswith(text)]
        return next(
            rest[0][:size]
            for size in range(len(rest[0]), -1, -1)
            if all(piece.startswith(rest[0][:size]) for piece in rest)
        )


def wrapped(
    pattern: str, vocabulary: Vocabulary = BYTES, mask_format: MaskFormat = "bitmask"
) -> GrammarForSGLang:
    grammar = BackendForSGLang(Finite(vocabulary, mask_format)).dispatch_regex(pattern)
    assert isinstance(grammar, GrammarForSGLang)
    return grammar


def accept(grammar: GrammarForSGLang, text: bytes) -> GrammarForSGLang:
    for token in text:
        grammar.accept_token(token)
    return grammar


def bits(grammar_object: GrammarObject, vocabulary: Vocabulary = BYTES) -> list[int]:
    bitmask = np.full_like(allocate_bitmask(vocabulary.size), -1)
    grammar_object.fill_bitmask(bitmask)
    ids: list[int] = allowed_tokens(bitmask, vocabulary.size).tolist()
    return ids


def open_columns(grammar: GrammarForSGLang, width: int) -> list[int]:
    """What is left of a row of logits."""
    mask = grammar.allocate_vocab_mask(width, 2, "cpu")
    grammar.fill_vocab_mask(mask, 1)
    logits = torch.zeros(2, width)
    grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(mask, "cpu"))
    assert not logits[0].isinf().any(), "a row without a grammar was touched"
    columns: list[int] = torch.nonzero(logits[1] == 0).flatten().tolist()
    return columns


# From SGLang


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocabulary", [BYTES, SMALL], ids=lambda each: each.name)
def test_a_backend_becomes_an_adapter_that_keeps_the_contract(
    kind: type[StandIn], vocabulary: Vocabulary
) -> None:
    class Sampled(SGLangAdapter):
        """The contract's sample patterns, spelled out for the stand-in."""

        def make_backend(self) -> StandInBackend:
            return StandInBackend(self.vocabulary, kind)

        def compile(self, grammar: Grammar) -> CompiledGrammar:
            samples = {"[ab][0-9]+": "a1|a12|a13|b1|b2", "(abc|abd)[0-9]": "abc1|abc2|abd1|abd2"}
            return super().compile(Grammar(grammar.dialect, samples.get(grammar.text, grammar.text)))

    results = check_adapter(Sampled(vocabulary))
    assert [result for result in results if result.status in ("failed", "error")] == []
    assert sum(result.status == "passed" for result in results) >= 20


def test_the_mask_format_is_that_of_the_masks_which_the_backend_allocates() -> None:
    assert [stand_in(kind).mask_format for kind in KINDS] == ["bitmask", "bitmask", "bool"]


@pytest.mark.parametrize("kind", KINDS)
def test_both_mask_formats_are_filled_whatever_the_backend_has(kind: type[StandIn]) -> None:
    grammar_object = stand_in(kind, SMALL).compile(Grammar("regex", "ab|é")).start()
    assert bits(grammar_object, SMALL) == [ord("a"), 0xC3, AB, LETTER, LETTER_BYTE]
    mask = np.zeros(SMALL.size, dtype=np.bool_)
    for _ in range(2):
        grammar_object.fill_bool_mask(mask)
        assert np.flatnonzero(~mask).tolist() == [ord("a"), 0xC3, AB, LETTER, LETTER_BYTE]


def test_the_native_format_is_filled_without_a_copy() -> None:
    grammar_object = stand_in(Packed).compile(Grammar("regex", "ab")).start()
    bitmask = allocate_bitmask(BYTES.size)
    grammar_object.fill_bitmask(bitmask)
    theirs: Any = grammar_object
    assert theirs._masks._row.data_ptr() == bitmask.ctypes.data


@pytest.mark.parametrize("kind", KINDS)
def test_start_and_copy_are_independent_whatever_the_backends_copy_does(kind: type[StandIn]) -> None:
    compiled = stand_in(kind).compile(Grammar("regex", "abc|abd"))
    grammar_object = compiled.start()
    assert grammar_object.accept_tokens(list(b"ab")) == 2
    clone, fresh = grammar_object.copy(), compiled.start()
    assert clone.accept_token(ord("c"))
    assert (bits(grammar_object), bits(clone), bits(fresh)) == ([*b"cd"], [BYTES.eos_token], [ord("a")])
    clone.rollback(3)
    assert bits(clone) == [ord("a")]


@pytest.mark.parametrize(
    ("kind", "jump", "tokens"), [(Packed, "bé", []), (Wide, "bé", []), (Bools, "bé", list("bé".encode()))]
)
def test_a_jump_is_bytes_whether_the_backend_gives_text_or_tokens(
    kind: type[StandIn], jump: str, tokens: list[int]
) -> None:
    grammar_object = stand_in(kind).compile(Grammar("regex", "abé|c")).start()
    assert grammar_object.jump_forward() == b"" and grammar_object.fast_forward_tokens() == []
    assert grammar_object.accept_token(ord("a"))
    assert grammar_object.jump_forward() == jump.encode() and grammar_object.fast_forward_tokens() == tokens


@pytest.mark.parametrize(
    ("grammar", "error", "message"),
    [
        (Grammar("regex", "("), InvalidGrammar, r"missing \)"),
        (Grammar("json_schema", "{}"), UnsupportedGrammar, "no reason"),
        (Grammar("ebnf", "root ::= x"), UnsupportedGrammar, "without methods"),
        (Grammar("structural_tag", "{}"), UnsupportedGrammar, "not supported"),
        (Grammar("choice", '["a"]'), UnsupportedGrammar, "no choice"),
        (Grammar("regex", "crash"), MemoryError, "a crash"),
    ],
)
def test_a_grammar_that_did_not_compile_is_what_the_backend_says_it_is(
    grammar: Grammar, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        stand_in(Packed).compile(grammar)


def test_the_adapted_class_belongs_to_the_module_of_its_function() -> None:
    def make_my_backend(vocabulary: Vocabulary) -> StandInBackend:
        return StandInBackend(vocabulary, Packed)

    adapted = adapt_sglang(make_my_backend, distribution="mine")
    assert (adapted.__name__, adapted.__module__, adapted.distribution) == ("MakeMyBackend", __name__, "mine")


# To SGLang


def test_a_refused_token_raises_and_does_not_move() -> None:
    grammar = wrapped("abc")
    with pytest.raises(ValueError, match=r"token 98 \(b'b'\) is not allowed after 0"):
        grammar.accept_token(ord("b"))
    assert grammar.accepted_tokens == [] and open_columns(grammar, BYTES.size) == [ord("a")]


def test_tokens_after_the_end_are_ignored_and_rolled_back_as_if_they_were_not() -> None:
    grammar = accept(wrapped("a"), b"a")
    for token in (BYTES.eos_token, ord("x"), ord("y")):
        grammar.accept_token(token)
    assert grammar.is_terminated()
    grammar.rollback(2)
    assert grammar.is_terminated()
    grammar.accept_token(ord("x"))
    grammar.rollback(2)
    assert not grammar.is_terminated() and open_columns(grammar, BYTES.size) == [BYTES.eos_token]
    with pytest.raises(ValueError, match="cannot roll back 2 of 1"):
        grammar.rollback(2)


@pytest.mark.parametrize("mask_format", ["bitmask", "bool"])
@pytest.mark.parametrize("width", [300, 320, 333, 400])
def test_logits_wider_than_the_vocabulary_are_forbidden_past_it(mask_format: MaskFormat, width: int) -> None:
    assert open_columns(wrapped("ab|é", SMALL, mask_format), width) == [
        ord("a"),
        0xC3,
        AB,
        LETTER,
        LETTER_BYTE,
    ]


@pytest.mark.parametrize("mask_format", ["bitmask", "bool"])
def test_once_terminated_only_end_of_sequence_is_left(mask_format: MaskFormat) -> None:
    grammar = wrapped("a", SMALL, mask_format)
    for token in (ord("a"), EOS):
        grammar.accept_token(token)
    assert open_columns(grammar, 333) == [EOS]


@pytest.mark.parametrize("mask_format", ["bitmask", "bool"])
def test_a_mask_that_is_too_narrow_is_an_error(mask_format: MaskFormat) -> None:
    grammar = wrapped("a", SMALL, mask_format)
    with pytest.raises(ValueError, match="too narrow"):
        grammar.fill_vocab_mask(grammar.allocate_vocab_mask(200, 1, "cpu"), 0)
    with pytest.raises(ValueError, match="does not cover"):
        grammar.apply_vocab_mask(torch.zeros(1, 400), grammar.allocate_vocab_mask(300, 1, "cpu"))
    with pytest.raises(ValueError, match="does not cover"):
        grammar.apply_vocab_mask(torch.zeros(2, 300), grammar.allocate_vocab_mask(300, 1, "cpu"))


def test_alternating_masks_and_rows_are_each_filled() -> None:
    grammar = wrapped("ab")
    masks = [grammar.allocate_vocab_mask(BYTES.size, 2, "cpu") for _ in range(2)]
    for idx in (0, 1, 0):
        for mask in masks:
            mask.fill_(-1)
            grammar.fill_vocab_mask(mask, idx)
            assert allowed_tokens(mask[idx].numpy(), BYTES.size).tolist() == [ord("a")]
            assert (mask[1 - idx] == -1).all()


DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")],
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_both_mask_families_leave_exactly_the_allowed_logits(
    device: str, dtype: Any, data: st.DataObject
) -> None:
    width = data.draw(st.integers(1, 100))
    allowed = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=3))
    )
    padded = np.zeros((len(allowed), (width + 31) // 32 * 32), dtype=np.bool_)
    padded[:, :width] = allowed
    packed = torch.from_numpy(np.packbits(padded, axis=1, bitorder="little").view(np.int32))
    for mask in (packed, torch.from_numpy(~allowed)):
        logits = torch.arange(allowed.size).reshape(allowed.shape).to(device, dtype)
        expected = logits.cpu().masked_fill(torch.from_numpy(~allowed), float("-inf"))
        GrammarForSGLang.apply_vocab_mask(logits, GrammarForSGLang.move_vocab_mask(mask, device))
        assert torch.equal(logits.cpu(), expected)


def test_a_copy_is_at_the_current_position_and_independent() -> None:
    grammar = accept(wrapped("abc|abd"), b"ab")
    clone = grammar.copy()
    clone.accept_token(ord("c"))
    clone.rollback(3)
    assert open_columns(clone, BYTES.size) == [ord("a")] and open_columns(grammar, BYTES.size) == [*b"cd"]
    assert grammar.grammar_stats and clone.grammar_stats
    assert (grammar.grammar_stats.is_cache_hit, clone.grammar_stats.is_cache_hit) == (False, True)


def test_a_copy_after_the_end_rolls_back_as_the_original_does() -> None:
    grammar = accept(wrapped("a"), b"a")
    grammar.accept_token(BYTES.eos_token)
    grammar.accept_token(ord("x"))
    clone = grammar.copy()
    clone.rollback(2)
    assert not clone.is_terminated() and grammar.is_terminated()


@pytest.mark.parametrize(
    ("pattern", "taken", "helper"),
    [
        ("abé|abéc", b"", ([], "abé")),
        ("abc|d", b"", None),
        ("é|ê", b"", None),  # the first byte of a character is forced, but no character
        ("aé|aê", b"", ([], "a")),
        ("éa|éb", "é".encode()[:1], ([0xA9], "")),
        ("éab|éac", "é".encode()[:1], ([0xA9], "a")),
        ("a", b"a", None),
    ],
)
def test_a_jump_is_whole_characters_after_the_tokens_that_end_one(
    pattern: str, taken: bytes, helper: tuple[list[int], str] | None
) -> None:
    grammar = accept(wrapped(pattern), taken)
    found = grammar.try_jump_forward(None)
    assert found == helper
    if found:
        assert grammar.jump_forward_str_state(found) == (found[1], -1)


def test_a_backend_that_forces_tokens_only_gives_its_tokens() -> None:
    class Forcing(FiniteObject):
        def jump_forward(self) -> bytes:
            return b""

        def fast_forward_tokens(self) -> list[int]:
            return list(b"ab")

    compiled = FiniteCompiled((b"ab",), BYTES)
    grammar = GrammarForSGLang(compiled, BYTES, grammar_object=Forcing(compiled))
    assert grammar.try_jump_forward(None) == ([*b"ab"], "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([ord("a")], [AB, ord("c")]),
        ([ord("a"), ord("b")], [AB]),  # the new ids are fewer, which is an IndexError elsewhere
        ([ord("a"), ord("b")], [ord("a"), ord("b"), ord("c"), EOS]),
        ([AB], []),
        ([], [AB, ord("c")]),
        ([ord("a"), ord("b")], [ord("a"), ord("b")]),
    ],
)
@pytest.mark.parametrize("jumped", [[], [ord("c")]], ids=["accepted ids", "accepted ids and the jump's own"])
def test_retokenizing_ends_where_the_new_ids_lead(old: list[int], new: list[int], jumped: list[int]) -> None:
    grammar, fresh = wrapped("abc|abd", SMALL), wrapped("abc|abd", SMALL)
    for token in old:
        grammar.accept_token(token)
    grammar.jump_and_retokenize([*old, *jumped], new, -1)
    for token in new:
        fresh.accept_token(token)
    assert open_columns(grammar, SMALL.size) == open_columns(fresh, SMALL.size)
    grammar.rollback(len(new))
    assert open_columns(grammar, SMALL.size) == [ord("a"), AB]


def test_retokenizing_needs_no_rollback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(FiniteObject, "rollback")
    grammar = accept(wrapped("abc|abd", SMALL), b"abc")
    grammar.jump_and_retokenize([*b"abc"], [AB], -1)
    assert grammar.accepted_tokens == [AB] and open_columns(grammar, SMALL.size) == [*b"cd"]


@pytest.mark.parametrize("refusal", [False, np.False_])
def test_a_refusal_of_an_adapted_backend_is_one_whatever_its_kind(
    monkeypatch: pytest.MonkeyPatch, refusal: object
) -> None:
    adapted = stand_in(Packed).compile(Grammar("regex", "ab")).start()
    monkeypatch.setattr(Packed, "accept_token", lambda *_: refusal)
    assert adapted.accept_token(ord("x")) is False


def test_refused_retokenization_says_where_and_moves_nothing() -> None:
    grammar = accept(wrapped("abc|abd", SMALL), b"ab")
    with pytest.raises(
        ValueError,
        match=r"new_output_ids\[1\], token 120 \(b'x'\), is not allowed; nothing "
        r"has moved",
    ):
        grammar.jump_and_retokenize([*b"ab"], [AB, ord("x")], -1)
    assert grammar.accepted_tokens == [*b"ab"] and open_columns(grammar, SMALL.size) == [*b"cd"]
    grammar.rollback(1)
    assert open_columns(grammar, SMALL.size) == [ord("b")]


def test_refused_retokenization_moves_nothing_of_an_object_without_rollback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(FiniteObject, "rollback")
    for old in (b"", b"a"):
        grammar = accept(wrapped("abc|abd", SMALL), old)
        before = open_columns(grammar, SMALL.size)
        for new in (b"abx", b"ax"):
            with pytest.raises(ValueError, match="nothing has moved"):
                grammar.jump_and_retokenize([*old], [*new], -1)
            assert grammar.accepted_tokens == [*old] and open_columns(grammar, SMALL.size) == before


def test_old_ids_that_were_never_accepted_are_an_error() -> None:
    grammar = accept(wrapped("abc", SMALL), b"ab")
    with pytest.raises(ValueError, match="do not begin with the accepted tokens"):
        grammar.jump_and_retokenize([ord("a")], [AB], -1)
    assert open_columns(grammar, SMALL.size) == [ord("c")]


def test_a_declined_grammar_is_an_object_with_the_reason() -> None:
    backend = BackendForSGLang(Finite(BYTES))
    for answer, reason in (
        (backend.dispatch_json("$$ANY$$"), "unsupported json: no json_schema"),
        (backend.dispatch_ebnf("root ::= x"), "unsupported ebnf: no ebnf"),
        (backend.dispatch_structural_tag("{}"), "unsupported structural_tag: no structural_tag"),
        (backend.dispatch_regex("("), "invalid regex: missing )"),
    ):
        assert isinstance(answer, InvalidGrammarObject) and answer.copy().error_message == reason


def test_stats_say_how_long_the_compile_took() -> None:
    stats = wrapped("a").grammar_stats
    assert (
        stats
        and stats.dispatch_type == "regex"
        and stats.compilation_time is not None
        and 0 < stats.compilation_time < 10
    )


# There and back


class RoundTrip(SGLangAdapter):
    """An adapter, under SGLang's names, as an adapter again."""

    inner: Adapter

    def make_backend(self) -> BackendForSGLang:
        return BackendForSGLang(self.inner)


def round_trip(adapter: Adapter) -> Adapter:
    there: type[Adapter] = type("There", (RoundTrip,), {"inner": adapter})
    return there(adapter.vocabulary)


def real(name: str, vocabulary: Vocabulary, **options: Any) -> Adapter:
    module = {"outlines_core": "outlines_core", "lm_format_enforcer": "lmformatenforcer"}[name]
    pytest.importorskip(module)
    classes = vars(import_module(f"harness.adapters.{name}")).values()
    adapter: type[Adapter] = next(
        each
        for each in classes
        if isinstance(each, type) and issubclass(each, Adapter) and each is not Adapter
    )
    return adapter(vocabulary, **options)


@pytest.mark.parametrize("vocabulary", [BYTES, SMALL], ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("name", "options"),
    [("outlines_core", {}), ("outlines_core", {"mask": "bool"}), ("lm_format_enforcer", {})],
    ids=["packed", "bool", "enforcer"],
)
def test_there_and_back_gives_the_same_masks_and_verdicts(
    name: str, options: dict[str, str], vocabulary: Vocabulary
) -> None:
    direct = real(name, vocabulary, **options)
    back = round_trip(direct)
    assert back.mask_format == direct.mask_format
    schema = json.dumps({"type": "object", "properties": {"a": {"enum": ["ab", "é"]}}, "required": ["a"]})
    for grammar, texts in (
        (Grammar("regex", "(ab|aé)c*"), ("ab", "aécc", "abx", "", "é")),
        (Grammar("json_schema", schema), ('{"a": "ab"}', '{"a":"é"}', '{"b"', "{}")),
    ):
        one, other = direct.compile(grammar), back.compile(grammar)
        for text in texts:
            here, there = one.start(), other.start()
            for token in [*vocabulary.encode(text.encode()), vocabulary.eos_token]:
                assert bits(here, vocabulary) == bits(there, vocabulary)
                assert here.is_accepting() == there.is_accepting()
                accepted = here.accept_token(token)
                assert there.accept_token(token) == accepted
                assert here.is_terminated() == there.is_terminated()
                if not accepted:
                    break
            if here.is_terminated():
                here.rollback(2)
                there.rollback(2)
                assert bits(here.copy(), vocabulary) == bits(there.copy(), vocabulary)


def test_there_and_back_a_refusal_keeps_its_kind_and_reason() -> None:
    back = round_trip(Finite(BYTES))
    with pytest.raises(InvalidGrammar, match=r"missing \)"):
        back.compile(Grammar("regex", "("))
    with pytest.raises(UnsupportedGrammar, match="no ebnf"):
        back.compile(Grammar("ebnf", "root ::= x"))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text("abé", min_size=1, max_size=4), min_size=1, max_size=4, unique=True),
    st.sampled_from(["bitmask", "bool"]),
    st.data(),
)
def test_there_and_back_every_walk_sees_the_same(
    texts: list[str], mask_format: MaskFormat, data: st.DataObject
) -> None:
    direct = Finite(SMALL, mask_format)
    grammar = Grammar("regex", "|".join(texts))
    here, there = direct.compile(grammar).start(), round_trip(direct).compile(grammar).start()
    depth = 0
    for _ in range(12):
        if depth and (here.is_terminated() or data.draw(st.booleans())):
            count = data.draw(st.integers(1, depth))
            here.rollback(count)
            there.rollback(count)
            depth -= count
        else:
            token = data.draw(st.sampled_from([*bits(here, SMALL), ord("z"), EOS]))
            accepted = here.accept_token(token)
            assert there.accept_token(token) == accepted
            depth += accepted
        assert here.is_terminated() == there.is_terminated()
        if not here.is_terminated():
            assert bits(here, SMALL) == bits(there, SMALL) and here.is_accepting() == there.is_accepting()
            forced = here.jump_forward()
            assert forced.startswith(there.jump_forward()) and len(forced) - len(there.jump_forward()) <= 1


def test_importing_the_bridge_does_not_import_torch() -> None:
    code = (
        "import sys, harness.backend.bridge.from_sglang, harness.backend.bridge.to_sglang; assert "
        "'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
