"""vLLM-style backends as adapters, the vocabulary as a Hugging Face tokenizer, and packages without their
start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter_tools import AB, AB_AGAIN, BYTES, EOS, SMALL, allowed, failed

from harness.backend.bridge.bare_package import bare_package, stand_in
from harness.backend.bridge.huggingface import huggingface_tokenizer
from harness.backend.bridge.twins import Twins, twins
from harness.backend.contract import check_adapter, check_name, checks
from harness.backend.grammar import Adapter, Grammar, InvalidGrammar, UnsupportedGrammar, allocate_bitmask
from harness.backend.registry import installed_version, make, parse_spec, recorded_version
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.errors import BadInput

pytest.importorskip("torch")
import vllm_stand_ins as stand_ins


@pytest.mark.parametrize(
    "backend_class", [stand_ins.StandInBackend, stand_ins.WideBackend], ids=lambda each: each.__name__
)
@pytest.mark.parametrize("vocabulary", [BYTES, SMALL], ids=lambda each: each.name)
def test_a_backend_becomes_an_adapter_that_keeps_the_contract(
    backend_class: Any, vocabulary: Vocabulary
) -> None:
    results = check_adapter(stand_ins.wrapped(backend_class=backend_class)(vocabulary))
    assert [result for result in results if result.status in ("failed", "error")] == []
    assert sum(result.status == "passed" for result in results) >= 20


WRONG = {
    stand_ins.wrapped(stand_ins.EndsOnRefusedEnd): "a_refused_end_of_sequence_does_not_move",
    stand_ins.wrapped(stand_ins.BreaksOnRefusal): "a_refused_token_does_not_move",
    stand_ins.wrapped(stand_ins.StaysEnded): "rollback_past_end_of_sequence_restores",
    stand_ins.wrapped(stand_ins.NeverEnds): "end_of_sequence_terminates",
    stand_ins.wrapped(stand_ins.TakesAll): "the_mask_says_what_accept_token_does",
    stand_ins.wrapped(stand_ins.AddsToMask): "a_fill_overwrites_every_bit",
    stand_ins.wrapped(stand_ins.GoesBackOneLess): "rollback_restores",
    stand_ins.wrapped(backend_class=stand_ins.SharingBackend): "starts_are_independent",
    stand_ins.Unchecked: "a_malformed_grammar_is_declined",
}


@pytest.mark.parametrize("adapter_class", WRONG, ids=lambda each: each.__name__)
def test_what_a_wrapper_breaks_is_seen(adapter_class: type[Adapter]) -> None:
    (check,) = [each for each in checks() if check_name(each) == WRONG[adapter_class]]
    (result,) = check_adapter(adapter_class(BYTES), [check])
    assert result.status == "failed", result


def test_what_is_not_a_word_about_the_request_is_the_backends_fault() -> None:
    class Panics(stand_ins.Wrapped):
        def request(self, grammar: Grammar) -> tuple[object, str]:
            raise RuntimeError("check failed")

    with pytest.raises(RuntimeError, match="check failed"):
        Panics(BYTES).compile(Grammar("regex", "a"))


@pytest.mark.parametrize(
    ("grammar", "error", "message"),
    [
        (Grammar("structural_tag", "{}"), UnsupportedGrammar, "does not support"),
        (Grammar("regex", "("), InvalidGrammar, "Invalid grammar specification"),
    ],
    ids=lambda each: each.dialect if isinstance(each, Grammar) else "",
)
def test_a_refused_request_is_what_the_engine_says_it_is(
    grammar: Grammar, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        stand_ins.Wrapped(BYTES).compile(grammar)


def test_a_mask_of_the_backends_width_is_filled_without_a_copy() -> None:
    grammar_object: Any = stand_ins.Wrapped(BYTES).compile(Grammar("regex", "ab")).start()
    bitmask = allocate_bitmask(BYTES.size)
    grammar_object.fill_bitmask(bitmask)
    assert grammar_object._view.data_ptr() == bitmask.ctypes.data


def test_going_back_further_than_the_start_is_refused() -> None:
    grammar_object = stand_ins.Wrapped(BYTES).compile(Grammar("regex", "ab")).start()
    assert grammar_object.accept_token(ord("a"))
    with pytest.raises(ValueError, match="cannot roll back 2 of 1"):
        grammar_object.rollback(2)
    grammar_object.rollback(1)
    assert allowed(grammar_object) == {ord("a")}


# Twins


def test_a_twin_is_an_id_whose_bytes_a_lower_one_has() -> None:
    assert twins(SMALL) == {AB_AGAIN: AB}
    assert twins(BYTES) == {}


class Twinless(stand_ins.Wrapped):
    """Its backend's vocabulary has a hole where a twin is."""

    def make_backend(self) -> stand_ins.StandInBackend:
        self.twins = Twins(twins(self.vocabulary))
        tokens = [
            b"" if token in self.twins.first else text for token, text in enumerate(self.vocabulary.tokens)
        ]
        holes = self.vocabulary.padding_tokens | self.twins.first.keys()
        specials = self.vocabulary.special_tokens
        return stand_ins.StandInBackend(
            Vocabulary("holes", tuple(tokens), (self.vocabulary.eos_token,), specials, holes)
        )


def test_the_first_of_twins_speaks_for_the_others() -> None:
    assert failed(Twinless(SMALL)) == set()
    grammar_object = Twinless(SMALL).compile(Grammar("regex", "(ab)+c")).start()
    assert allowed(grammar_object, SMALL) == {ord("a"), AB, AB_AGAIN}
    assert grammar_object.accept_token(AB_AGAIN) and grammar_object.accept_token(ord("c"))
    assert allowed(grammar_object, SMALL) == {EOS}
    mask = np.array([token != AB for token in range(SMALL.size)])
    Twins(twins(SMALL)).spread_forbidden(mask)
    assert np.flatnonzero(~mask).tolist() == [AB, AB_AGAIN]


# The vocabulary as a tokenizer


@pytest.mark.parametrize("name", ["small", "probe"])
def test_a_made_tokenizer_has_the_vocabularys_ids(name: str) -> None:
    pytest.importorskip("transformers")
    vocabulary = SMALL if name == "small" else load_vocabulary(name)
    tokenizer = huggingface_tokenizer(vocabulary)
    assert tokenizer.eos_token_id == vocabulary.eos_token
    empty = {token for token, text in enumerate(vocabulary.tokens) if not text} - vocabulary.padding_tokens
    assert set(tokenizer.all_special_ids) == empty | twins(vocabulary).keys()
    assert set(tokenizer.get_vocab().values()) == set(range(vocabulary.size)) - vocabulary.padding_tokens
    assert tokenizer.encode("ab abc", add_special_tokens=False) == vocabulary.encode(b"ab abc")
    text = "日本 😀 ab"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


@pytest.mark.long
def test_backends_read_the_vocabularys_bytes_from_the_made_tokenizer() -> None:
    pytest.importorskip("transformers")
    xgrammar = pytest.importorskip("xgrammar")
    vocabulary = load_vocabulary("probe")
    info = xgrammar.TokenizerInfo.from_huggingface(
        huggingface_tokenizer(vocabulary), vocab_size=vocabulary.size
    )
    plain = set(vocabulary.ids_by_bytes.values())
    wrong = [
        token
        for token, text in enumerate(vocabulary.tokens)
        if token in plain and info.decoded_vocab[token] != text
    ]
    assert wrong == []
    assert info.stop_token_ids == [vocabulary.eos_token]


# Packages without their start


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    inner = tmp_path / "heavy_engine" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("raise ImportError('no accelerator')\n")
    (inner / "__init__.py").write_text("raise ImportError('no kernels')\n")
    (inner / "light.py").write_text(
        "from heavy_engine.inner.args import Arguments\nVALUE = Arguments.__name__\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield "heavy_engine"
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_is_imported_without_its_packages_start(package: str) -> None:
    with pytest.raises(ImportError, match="no accelerator"):
        __import__("heavy_engine.inner.light")
    bare_package(package, f"{package}.inner")
    stand_in(f"{package}.inner.args", ["Arguments"])
    assert sys.modules[package].__path__
    __import__("heavy_engine.inner.light")
    assert sys.modules["heavy_engine.inner.light"].VALUE == "Arguments"
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        bare_package("nowhere_at_all")


# The adapters of the engines


@pytest.mark.parametrize("spec", ["sglang:wrapper=xgrammar", "vllm:wrapper=guidance"])
def test_an_engine_that_is_absent_is_bad_input(spec: str) -> None:
    name = spec.partition(":")[0]
    if installed_version(name):
        pytest.skip(f"{name} is installed")
    with pytest.raises(BadInput, match=f'backend "{spec}" needs a library that cannot be imported: .*{name}'):
        make(parse_spec(spec), BYTES)


def test_the_recorded_version_names_the_wrapped_library() -> None:
    class Wraps(stand_ins.Wrapped):
        distribution = "numpy"

    adapter = Wraps(BYTES)
    assert recorded_version(adapter) == np.__version__
    adapter.wraps = "torch"
    assert recorded_version(adapter) == f"{np.__version__}+torch-{installed_version('torch')}"
    adapter.wraps = "no-such-distribution"
    assert recorded_version(adapter) == np.__version__
