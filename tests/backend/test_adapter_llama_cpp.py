"""The llama.cpp adapter, with the library itself."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from adapter_tools import (
    AB,
    AB_AGAIN,
    BYTES,
    EMPTY,
    EOS,
    HALF_KANJI,
    KANJI,
    PADDING,
    SMALL,
    SPECIAL,
    Tools,
    allowed,
    maker,
)
from gguf_bytes import write_gguf
from gguf_model import write_model
from tokenizers import pre_tokenizers

from harness.backend.contract import check_adapter, checks
from harness.backend.grammar import (
    Dialect,
    Grammar,
    InvalidGrammar,
    UnsupportedGrammar,
    UnsupportedVocabulary,
    allocate_bitmask,
)
from harness.backend.token_bytes.look import reading_of, wrong_of
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.backend.vocabulary.gguf import NAMES_OF_ENDS
from harness.backend.vocabulary.gguf_file import Shape, write_vocabulary
from harness.cli.main import main
from harness.oracle.language import language_of
from harness.oracle.trie import trie_of
from harness.rows.store import read_rows

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed (extra llama)")
pytest.importorskip("gguf", reason="gguf is not installed (extra llama)")

make = maker("llama_cpp", "LlamaCpp")
start, holds = Tools(make).start, Tools(make).holds


def piece(vocabulary: Any, token: int, special: bool) -> bytes:
    """The token's bytes as the library has them."""
    buffer = ctypes.create_string_buffer(4096)
    length = llama_cpp.llama_token_to_piece(vocabulary, token, buffer, len(buffer), 0, special)
    assert length >= 0
    return buffer.raw[:length]


@pytest.mark.parametrize("name", ["bytes", "probe", "mistral-v3", "tekken"])
def test_every_token_has_our_bytes(name: str, tmp_path: Path) -> None:
    vocabulary = load_vocabulary(name)
    write_vocabulary(vocabulary, tmp_path / "vocabulary.gguf")
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(os.fsencode(tmp_path / "vocabulary.gguf"), parameters)
    tokens = llama_cpp.llama_model_get_vocab(model)
    assert llama_cpp.llama_vocab_n_tokens(tokens) == vocabulary.size
    assert llama_cpp.llama_vocab_eos(tokens) == vocabulary.eos_token
    for token, content in enumerate(vocabulary.tokens):
        assert piece(tokens, token, False) == content
        if token in vocabulary.special_tokens:
            assert piece(tokens, token, True) == vocabulary.special_tokens[token].encode()
    llama_cpp.llama_model_free(model)


@pytest.fixture
def served(tmp_path: Path) -> Vocabulary:
    """A SentencePiece vocabulary in a GGUF file, as models are served: control tokens, letters, bytes."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a", "<b>"]
    kinds = [2, 3, 3, *[6] * 256, 1, 1, 1, 4]
    path = write_gguf(
        tmp_path / "served.gguf",
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": pieces,
            "tokenizer.ggml.token_type": kinds,
            "tokenizer.ggml.scores": [-float(place) for place in range(len(pieces))],
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.unknown_token_id": 0,
        },
    )
    return load_vocabulary(str(path))


def test_its_own_loader_reads_the_models_file(served: Vocabulary) -> None:
    adapter = make(served)
    assert (adapter.loader, adapter.refused_vocabulary) == ("library", "")
    misread = {each.token: (each.true, each.read) for each in wrong_of(adapter) or ()}
    assert misread == {0: (b"", b"<unk>"), 1: (b"", b"<s>"), 3: (b"\0", b"")}
    walked = adapter.compile(Grammar("choice", '["<s>", " a"]')).start()
    assert allowed(walked, served) >= {1, served.tokens.index(b" a")}, "the control token is let through"


@pytest.mark.parametrize("without", [(), ("<|call|>", "<|calls|>", "<|tool_response>")])
def test_a_file_ends_for_us_where_it_ends_for_the_library(tmp_path: Path, without: tuple[str, ...]) -> None:
    letters = [str(letter) for letter in pre_tokenizers.ByteLevel.alphabet()]
    names = sorted({"<|tool|>", *NAMES_OF_ENDS}.difference(without))
    path = write_gguf(
        tmp_path / "named.gguf",
        {
            "general.architecture": "qwen2",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "qwen2",
            "tokenizer.ggml.tokens": [*letters, "ab", "<end>", *names],
            "tokenizer.ggml.token_type": [*[1] * (len(letters) + 1), 3, *[3] * len(names)],
            "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.eos_token_id": len(letters) + 1,
        },
    )
    vocabulary = load_vocabulary(str(path))
    adapter = make(vocabulary)
    ends: set[int] = vars(adapter)["ends"]
    assert adapter.loader == "library" and ends == set(vocabulary.eos_tokens)
    for end in (vocabulary.eos_token, len(letters) + 2 + names.index("<|im_end|>")):
        walked = adapter.compile(Grammar("choice", '["a"]')).start()
        assert walked.accept_token(letters.index("a")) and walked.accept_token(end)
        assert walked.is_terminated()


def test_of_more_ends_than_a_file_has_places_for_the_rest_is_said_to_be_unknown() -> None:
    ends = {256: "</s>", 257: "<|eot|>", 258: "<|call|>", 259: "<|stop|>"}
    whole = load_vocabulary("bytes")
    tokens = (*whole.tokens, b"", b"", b"")
    vocabulary = replace(whole, tokens=tokens, special_tokens=ends, eos_tokens=tuple(ends))
    adapter = make(vocabulary)
    reading = reading_of(adapter)
    assert adapter.vocabulary.eos_tokens == reading.ends == vocabulary.eos_tokens[:3]
    assert "places for three" in adapter.knows_one_end == reading.knows_one_end
    assert [result for result in check_adapter(adapter) if result.status in ("failed", "error")] == []
    walked = adapter.compile(Grammar("choice", '["a"]')).start()
    assert walked.accept_token(vocabulary.ids_by_bytes[b"a"])
    assert allowed(walked, vocabulary) == set(vocabulary.eos_tokens[:3])
    assert make(replace(vocabulary, eos_tokens=vocabulary.eos_tokens[:3])).knows_one_end == ""


def test_handed_bytes_are_read_but_for_control_tokens_and_nul(served: Vocabulary) -> None:
    adapter = make(served, loader="bytes")
    assert adapter.loader == "bytes"
    assert [each.token for each in wrong_of(adapter) or ()] == [0, 1, 3]


def test_a_file_that_the_library_refuses_declines_every_grammar(served: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "other.gguf").write_bytes(b"GGUF, but no file of it")
    with pytest.raises(UnsupportedVocabulary, match=r"does not load other\.gguf"):
        make(replace(served, gguf=tmp_path / "other.gguf"))


def test_a_vocabulary_that_no_file_can_spell_declines_every_grammar() -> None:
    whole = load_vocabulary("bytes")
    nul_twice = replace(whole, tokens=(*whole.tokens, b"\0"))
    with pytest.raises(UnsupportedVocabulary, match="more ids have the bytes of token 257 than a GGUF file"):
        make(nul_twice)
    assert make(replace(whole, tokens=(*whole.tokens, b"a"))).refused_vocabulary == ""


def test_a_model_of_random_weights_generates(tmp_path: Path) -> None:
    vocabulary = load_vocabulary("bytes")
    write_model(vocabulary, tmp_path / "model.gguf", Shape(context=256))
    model = llama_cpp.Llama(str(tmp_path / "model.gguf"), n_ctx=256, n_threads=1, verbose=False, seed=1)
    grammar = llama_cpp.LlamaGrammar.from_string('root ::= "yes" | "no"', verbose=False)
    for _ in range(3):
        answer = model.create_completion("A question", max_tokens=8, grammar=grammar, temperature=1.0)
        assert answer["choices"][0]["text"] in ("yes", "no")
        assert answer["choices"][0]["finish_reason"] == "stop"
    assert model.tokenize(b"A question", add_bos=False) == vocabulary.encode(b"A question")
    model.close()


@pytest.mark.parametrize("vocabulary", [BYTES, SMALL], ids=lambda each: each.name)
@pytest.mark.parametrize("ebnf", ["translated", "text"])
def test_the_contract_holds(vocabulary: Vocabulary, ebnf: str) -> None:
    results = check_adapter(make(vocabulary, ebnf=ebnf))
    assert [result for result in results if result.status in ("failed", "error")] == []
    assert sum(result.status == "passed" for result in results) >= 22
    assert any("does not implement rollback" in result.text for result in results)


@pytest.mark.parametrize(
    ("dialect", "text", "valid", "not_valid"),
    [
        ("regex", "a{2}b+", "aabb", "ab"),
        ("regex", r"^\d{4}-[a-f]*$", "2024-ef", "24-ef"),
        ("json_schema", '{"type": "integer"}', "10", "1x"),
        (
            "json_schema",
            '{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}',
            '{"a": null}',
            '{"b":null}',
        ),
        ("choice", '["a.c", "[x]", "日本", "a"]', "日本", "abc"),
        ("ebnf", 'root ::= "a" the_rest\nthe_rest ::= "" | "b" the_rest', "abb", "ba"),
    ],
)
def test_each_dialect_holds_its_outputs_and_no_others(
    dialect: Dialect, text: str, valid: str, not_valid: str
) -> None:
    assert holds(dialect, text, valid)
    assert not holds(dialect, text, not_valid)


def test_every_id_of_a_text_is_allowed_and_no_special_padding_or_empty_token_is() -> None:
    seen = allowed(start("regex", "ab|日", make(SMALL)), SMALL)
    assert seen == {ord("a"), 0xE6, AB, AB_AGAIN, KANJI, HALF_KANJI}
    assert not seen & {EOS, SPECIAL, PADDING, EMPTY}


def test_after_the_end_nothing_is_allowed() -> None:
    grammar_object = start("regex", "ab*")
    assert grammar_object.accept_tokens([*b"ab", BYTES.eos_token]) == 3
    assert grammar_object.is_terminated() and not grammar_object.is_accepting()
    assert not allowed(grammar_object) and not grammar_object.accept_token(ord("b"))


def test_a_copy_keeps_the_position_within_a_character() -> None:
    grammar_object = start("regex", "日[月本]")
    assert grammar_object.accept_tokens(list("日本".encode()[:4])) == 4
    clone = grammar_object.copy()
    assert clone.accept_tokens(list("日本".encode()[4:])) == 2 and clone.is_accepting()
    assert not grammar_object.is_accepting()


@pytest.mark.parametrize("pattern", ['[^"]*', "(abc|日本)+x?", "[a-f0-9]{2,5}", "é*"])
def test_masks_are_exact_on_whole_characters(pattern: str) -> None:
    """On bytes there is no token within which the library's reading of UTF-8 could go wrong, but for NUL,
    which it never allows."""
    automaton, trie = language_of(Grammar("regex", pattern)), trie_of(BYTES)
    grammar_object, state = start("regex", pattern), automaton.start
    for byte in "abc日本"[:4].encode():
        expected = set(trie.mask(automaton, state).nonzero()[0].tolist()) - {0}
        assert allowed(grammar_object) == expected
        if byte not in expected:
            break
        assert grammar_object.accept_token(byte)
        state = automaton.step(state, byte)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("regex", "(?=a)b|c"),
        ("regex", r"(a)\1"),
        ("regex", "a{3000}"),
        ("ebnf", 'root ::= root "a" | "a"'),
        ("json_schema", "true"),
        ("json_schema", '{"type": "string", "pattern": "a"}'),
        ("json_schema", '{"$ref": "https://example.com/schema"}'),
        ("structural_tag", '{"triggers": [], "structures": []}'),
    ],
)
def test_what_the_library_cannot_do_is_unsupported(dialect: Dialect, text: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=r"."):
        start(dialect, text)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("regex", "a("),
        ("json_schema", '{"type":'),
        ("json_schema", "3"),
        ("choice", "[]"),
        ("choice", '["a", 1]'),
        ("choice", '["a", "\\ud800"]'),
        ("ebnf", "root ::= other"),
        ("ebnf", ""),
    ],
)
@pytest.mark.parametrize("ebnf", ["translated", "text"])
def test_what_is_wrong_in_itself_is_invalid(dialect: Dialect, text: str, ebnf: str) -> None:
    with pytest.raises(InvalidGrammar, match=r"."):
        start(dialect, text, make(ebnf=ebnf))


def test_a_bitmask_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="9 words"):
        start("regex", "a").fill_bitmask(allocate_bitmask(1024))


ENDED = {
    "answers_are_bools_and_counts",
    "a_right_token_is_accepted_after_a_refused_one",
    "moving_a_copy_does_not_move_the_original",
    "moving_the_original_does_not_move_a_copy",
    "the_mask_says_what_accept_token_does",
}
"""Checks that come upon the token C0 80 of the vocabulary `probe`."""

ABORTS = """
import llama_cpp
from harness.adapters.llama_cpp import LlamaCpp
from harness.backend.grammar import Grammar
from harness.backend.vocabulary import byte_vocabulary
adapter = LlamaCpp(byte_vocabulary())
llama_cpp.llama_sampler_accept(adapter.compile(Grammar("regex", "ab")).start()._sampler, ord("x"))
"""


def test_the_library_ends_the_process_where_it_must_accept_what_it_forbids() -> None:
    """Why a token is tried first; and that this is quick: no debugger is started."""
    done = subprocess.run([sys.executable, "-c", ABORTS], capture_output=True, timeout=120)
    assert done.returncode < 0, done.stderr


def test_an_abort_costs_its_case_and_is_the_backends(tmp_path: Path) -> None:
    """The bytes C0 80 read as NUL, which marks the end of a token: the mask lets them through everywhere, and
    accepting them is fatal."""
    fatal = {
        "description": "overlong NUL",
        "regex": "ab",
        "tests": [{"description": "fatal", "bytes": "61c080", "valid": False}],
    }
    right = {
        "description": "plain",
        "regex": "ab",
        "tests": [{"description": "right", "text": "ab", "valid": True}],
    }
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, (fatal, right))))
    asked = [
        "run",
        str(tmp_path / "cases.jsonl"),
        "--backends",
        "llama-cpp",
        "--vocabularies",
        "probe",
        "--effort",
        "0",
        "--timeout",
        "60",
    ]
    main([*asked, "--out", str(tmp_path / "run")])
    rows = {row.case: row for row in read_rows(tmp_path / "run")}
    assert (rows["overlong NUL"].status, rows["overlong NUL"].signal) == ("crash", "SIGABRT")
    assert (rows["plain"].status, rows["plain"].accepted) == ("ok", True)


def test_the_checklist_names_the_facts_that_such_a_token_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "llama-cpp"]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    said = {
        words[1].rstrip(":"): (words[0], " ".join(words[2:])) for line in lines if (words := line.split())
    }
    assert {name for name, (outcome, _) in said.items() if outcome not in ("passed", "skipped")} == ENDED
    assert {said[name] for name in ENDED} == {("error", "killed by SIGABRT")}
    assert len(said) == len(checks()) and last == "llama-cpp breaks the contract in 5 checks"
