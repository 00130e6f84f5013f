"""What a token id means in bytes, and how bytes become ids."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiktoken
import tiktoken.load
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.vocabulary import (
    Vocabulary,
    byte_vocabulary,
    load_vocabulary,
    prepare_vocabulary,
    vocabulary_names,
)
from harness.errors import BadInput

TEKKEN = load_vocabulary("tekken")
MISTRAL_V3 = load_vocabulary("mistral-v3")
PROBE = load_vocabulary("probe")
BUILT_IN = [
    pytest.param(vocabulary, id=vocabulary.name)
    for vocabulary in (TEKKEN, MISTRAL_V3, PROBE, byte_vocabulary())
]

# Plain text beside what tokenizers treat in a special way: markers, specials' names, byte pieces, white
# space, joined characters.
AWKWARD = [
    *("▁", "</s>", "<s>", "[INST]", "<pad>", "<0x0A>", "<tool_call>", "\n", "  ", "\r\n", "\t", '"}'),
    *("日本", "👩\u200d💻", "e\u0301", "\0", "\ufeff", "1234"),
]
texts = st.lists(st.one_of(st.text(max_size=20), st.sampled_from(AWKWARD)), max_size=8).map("".join)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every attempt to reach another machine fails at once; caches are empty."""

    def refuse(*_: object) -> None:
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


# --- the model ---


@pytest.mark.parametrize("vocabulary", BUILT_IN)
@settings(max_examples=150, deadline=None)
@given(text=texts)
def test_text_survives_encode_and_decode(vocabulary: Vocabulary, text: str) -> None:
    tokens = vocabulary.encode(text.encode())
    assert vocabulary.decode(tokens) == text.encode()
    assert vocabulary.special_tokens.keys().isdisjoint(tokens)
    assert vocabulary.padding_tokens.isdisjoint(tokens)


@pytest.mark.parametrize("vocabulary", BUILT_IN)
@settings(max_examples=150, deadline=None)
@given(text=st.binary(max_size=40))
def test_bytes_that_are_no_utf8_survive_encode_and_decode(vocabulary: Vocabulary, text: bytes) -> None:
    assert vocabulary.decode(vocabulary.encode(text)) == text


@pytest.mark.parametrize("vocabulary", BUILT_IN)
def test_every_split_of_a_character_encodes(vocabulary: Vocabulary) -> None:
    for character in ("é", "日", "😀"):
        for end in range(1, len(character.encode())):
            head, tail = character.encode()[:end], character.encode()[end:]
            assert vocabulary.decode(vocabulary.encode(b'"' + head)) == b'"' + head
            assert vocabulary.decode(vocabulary.encode(tail + b'"')) == tail + b'"'


@pytest.mark.parametrize("vocabulary", BUILT_IN)
def test_specials_and_padding_have_no_bytes_and_do_not_overlap(vocabulary: Vocabulary) -> None:
    assert vocabulary.eos_token in vocabulary.special_tokens
    assert vocabulary.padding_tokens.isdisjoint(vocabulary.special_tokens)
    for token in (*vocabulary.special_tokens, *vocabulary.padding_tokens):
        assert vocabulary.tokens[token] == b""


@pytest.mark.parametrize("vocabulary", BUILT_IN)
def test_every_byte_has_a_token(vocabulary: Vocabulary) -> None:
    assert {bytes([byte]) for byte in range(256)} <= vocabulary.ids_by_bytes.keys()


def test_text_around_broken_bytes_stays_canonical() -> None:
    before, after = b'{"name": ', b' "value"}'
    assert TEKKEN.encode(before + b"\xff" + after) == TEKKEN.encode(before) + TEKKEN.encode(
        b"\xff"
    ) + TEKKEN.encode(after)


def test_longest_match_takes_the_longest_token_that_fits() -> None:
    vocabulary = Vocabulary("tiny", (b"a", b"aa", b"aaaa", b"b", b""), (4,), {4: "</s>"})
    assert vocabulary.encode(b"aaaaaaab") == [2, 1, 0, 3]


def test_longest_match_ignores_specials_padding_and_empty_tokens() -> None:
    vocabulary = Vocabulary("tiny", (b"", b"ab", b"ab", b"a", b"b", b"ab"), (1,), {1: "ab"}, frozenset({2}))
    assert vocabulary.encode(b"ab") == [5]
    assert vocabulary.ids_by_bytes == {b"a": 3, b"b": 4, b"ab": 5}


def test_a_byte_without_a_token_is_named() -> None:
    vocabulary = Vocabulary("tiny", (b"a", b""), (1,), {1: "</s>"})
    with pytest.raises(ValueError, match="vocabulary tiny has no token for byte 0x62"):
        vocabulary.encode(b"ab")


def test_a_tokenizer_that_changes_the_text_is_not_believed() -> None:
    vocabulary = Vocabulary(
        "tiny", (b"a", b"A", b""), (2,), {2: "</s>"}, tokenize=lambda text: [0] * len(text)
    )
    assert vocabulary.encode(b"aa") == [0, 0]
    assert vocabulary.encode(b"aA") == [0, 1]


def test_a_tokenizer_that_adds_specials_is_not_believed() -> None:
    vocabulary = Vocabulary("tiny", (b"a", b""), (1,), {1: "<s>"}, tokenize=lambda text: [1, 0])
    assert vocabulary.encode(b"a") == [0]


class Panic(BaseException):
    """What a panic of Rust is: no Exception."""


@pytest.mark.parametrize("error", [Exception, ValueError, Panic])
def test_a_tokenizer_that_raises_has_no_answer(error: type[BaseException]) -> None:
    def tokenize(text: str) -> list[int]:
        if "b" in text:
            raise error("no unknown token")
        return [2] if text == "aa" else [0]

    vocabulary = Vocabulary("tiny", (b"a", b"b", b"aa", b""), (3,), {3: "</s>"}, tokenize=tokenize)
    assert vocabulary.encode(b"aa") == [2] and vocabulary.encode(b"ab") == [0, 1]
    with pytest.raises(ValueError, match="vocabulary tiny has no token for byte 0x63"):
        vocabulary.encode(b"bc")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_ends_the_process_is_no_answer_of_a_tokenizer(error: type[BaseException]) -> None:
    def tokenize(text: str) -> list[int]:
        raise error

    with pytest.raises(error):
        Vocabulary("tiny", (b"a", b""), (1,), {1: "</s>"}, tokenize=tokenize).encode(b"a")


@pytest.mark.parametrize(
    "other",
    [
        Vocabulary("other", (b"a", b"c", b""), (2,), {2: "</s>"}),
        Vocabulary("other", (b"ab", b"", b""), (2,), {2: "</s>"}),
        Vocabulary("other", (b"a", b"b", b"", b""), (2,), {2: "</s>", 3: "<end>"}),
        Vocabulary("other", (b"a", b"b", b"", b""), (3, 2), {2: "</s>", 3: "<end>"}),
        Vocabulary("other", (b"a", b"b", b""), (2,), {1: "<s>", 2: "</s>"}),
        Vocabulary("other", (b"a", b"b", b""), (2,), {2: "</s>"}, frozenset({1})),
    ],
)
def test_hash_sees_bytes_and_kinds(other: Vocabulary) -> None:
    this = Vocabulary("this", (b"a", b"b", b""), (2,), {2: "</s>"})
    several = Vocabulary("this", (b"a", b"b", b"", b""), (2, 3), {2: "</s>", 3: "<end>"})
    assert other.sha256 not in (this.sha256, several.sha256)
    assert this.sha256 == Vocabulary("that", (b"a", b"b", b""), (2,), {2: "</s>"}).sha256


@pytest.mark.parametrize("ends", [(), (2, 2), (2, 1), (4,)])
def test_the_ids_of_end_of_sequence_are_special_tokens_each_once(ends: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="vocabulary ab: its ids of end-of-sequence"):
        Vocabulary("ab", (b"a", b"b", b"", b""), ends, {2: "</s>", 3: "<end>"})


def test_the_first_id_of_end_of_sequence_is_the_one_that_is_sent() -> None:
    assert Vocabulary("ab", (b"a", b"b", b"", b""), (3, 2), {2: "</s>", 3: "<end>"}).eos_token == 3


# --- the built-in vocabularies ---


def test_importing_loads_no_tokenizer_library() -> None:
    heavy = (
        "{'torch', 'tiktoken', 'sentencepiece', 'tokenizers', 'huggingface_hub', 'mistral_common', 'pandas'}"
    )
    check = f"import sys, harness.backend.vocabulary; print(sorted({heavy} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_loading_mistrals_files_does_not_import_mistral_common() -> None:
    load = (
        "from harness.backend.vocabulary import load_vocabulary as load; load('tekken'); load('mistral-v3')"
    )
    check = f"import sys; {load}; print('mistral_common' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


@pytest.mark.parametrize("name", vocabulary_names())
def test_every_built_in_name_loads_under_its_own_name(name: str) -> None:
    assert load_vocabulary(name).name == name


@pytest.mark.parametrize("name", ["mistral_v3", "Mistral-V3", "MISTRAL_V3"])
def test_case_and_underscore_do_not_matter(name: str) -> None:
    assert load_vocabulary(name).sha256 == MISTRAL_V3.sha256
    assert prepare_vocabulary(name) == "mistral-v3"


def mistral_data(file: str) -> Path:
    spec = find_spec("mistral_common")
    assert spec and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], "data", file)


def test_tekken_is_mistral_commons_own() -> None:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    own = Tekkenizer.from_file(mistral_data("tekken_240911.json"))
    assert TEKKEN.size == own.n_words == 131_072
    assert TEKKEN.eos_token == own.eos_id
    assert TEKKEN.special_tokens == {token: own.id_to_piece(token) for token in range(own.num_special_tokens)}
    for token in random.Random(0).sample(range(own.num_special_tokens, own.n_words), 2000):
        assert TEKKEN.tokens[token] == own.id_to_byte_piece(token)
    for text in ('{"name": "日本", "x": [1234, -0.5]}\n\n', *AWKWARD):
        assert TEKKEN.encode(text.encode()) == own.encode(text, bos=False, eos=False)


def test_mistral_v3_is_sentencepieces_own() -> None:
    from sentencepiece import SentencePieceProcessor

    own = SentencePieceProcessor(model_file=str(mistral_data("mistral_instruct_tokenizer_240323.model.v3")))
    assert MISTRAL_V3.size == own.get_piece_size() == 32_768
    assert MISTRAL_V3.eos_token == own.eos_id()
    assert {0: "<unk>", 1: "<s>", 2: "</s>", 3: "[INST]"}.items() <= MISTRAL_V3.special_tokens.items()
    letter = own.encode("a")
    for token in range(own.get_piece_size()):
        if token not in MISTRAL_V3.special_tokens and not own.is_byte(token):
            assert MISTRAL_V3.tokens[token] == own.decode([*letter, token]).removeprefix("a").encode()
    # Byte pieces merge with nothing: what follows one is what the tokenizer gives where a text goes on.
    for text in ("name", " name", "  x", "日本", "\n", "</s>", "é", "\0", "[INST]", "12", '{"a": [1, 2]}'):
        assert own.encode("\x01" + text) == [*own.encode("\x01"), *MISTRAL_V3.encode(text.encode())]


def test_mistral_v3_does_not_put_a_space_before_the_text() -> None:
    assert [MISTRAL_V3.tokens[token] for token in MISTRAL_V3.encode(b"name")] == [b"name"]
    assert [MISTRAL_V3.tokens[token] for token in MISTRAL_V3.encode(b" name")] == [b" name"]


def test_mistral_v3_tells_its_marker_from_a_space() -> None:
    assert MISTRAL_V3.encode("a▁b".encode()) != MISTRAL_V3.encode(b"a b")
    assert MISTRAL_V3.encode("name▁ name".encode())[:1] == MISTRAL_V3.encode(b"name")
    assert MISTRAL_V3.encode("name▁ name".encode())[-1:] == MISTRAL_V3.encode(b" name")


@pytest.mark.parametrize(
    "vocabulary", [TEKKEN, MISTRAL_V3, PROBE], ids=lambda vocabulary: str(vocabulary.name)
)
def test_names_of_specials_encode_as_plain_text(vocabulary: Vocabulary) -> None:
    for name in list(vocabulary.special_tokens.values())[:20]:
        tokens = vocabulary.encode(name.encode())
        assert vocabulary.decode(tokens) == name.encode()
        assert vocabulary.special_tokens.keys().isdisjoint(tokens)


def test_probe_is_the_same_every_time() -> None:
    assert load_vocabulary("probe").sha256 == PROBE.sha256
    assert 2000 < PROBE.size < 6000
    assert PROBE.tokenize is None


def test_probe_size_is_no_multiple_of_a_mask_word_and_is_padded() -> None:
    assert PROBE.size % 32 != 0
    assert PROBE.padding_tokens == frozenset(range(min(PROBE.padding_tokens), PROBE.size))
    assert len(PROBE.padding_tokens) > 32


@pytest.mark.parametrize("character", ["é", "日", "€", "😀", "\U0010ffff"])
def test_probe_has_every_piece_of_a_character(character: str) -> None:
    whole = character.encode()
    pieces = {whole[start:end] for start in range(len(whole)) for end in range(start + 1, len(whole) + 1)}
    assert pieces <= PROBE.ids_by_bytes.keys()


@pytest.mark.parametrize(
    "text",
    [
        '"}',
        '": "',
        '"},{"',
        "]}",
        '":',
        '"name"',
        '\\"',
        "true",
        "-",
        "-0",
        ".5",
        "e+",
        "123",
        "    ",
        ",\n",
        "</s>",
        "<tool_call>",
    ],
)
def test_probe_has_the_token(text: str) -> None:
    assert text.encode() in PROBE.ids_by_bytes


def test_probe_has_tokens_that_are_no_utf8_and_straddle_characters() -> None:
    malformed = [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
    straddling = ["日".encode()[-1:] + "本".encode()[:1], b'"' + "日".encode()[:1], "日".encode()[-1:] + b'"']
    assert {*malformed, *straddling} <= PROBE.ids_by_bytes.keys()


def test_probe_has_duplicates_an_empty_token_and_long_tokens() -> None:
    plain = [
        token
        for token in range(PROBE.size)
        if token not in PROBE.special_tokens and token not in PROBE.padding_tokens
    ]
    assert sum(PROBE.tokens[token] == b'"' for token in plain) == 2
    assert sum(PROBE.tokens[token] == b"" for token in plain) == 1
    assert sum(len(PROBE.tokens[token]) >= 200 for token in plain) >= 5
    assert set(PROBE.special_tokens.values()) >= {"<s>", "</s>", "<pad>", "<tool_call>"}


# --- Hugging Face ---


def add_config(folder: Path, **files: object) -> Path:
    for name, document in files.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder


@pytest.fixture
def byte_level_folder(tmp_path: Path) -> Path:
    """A trained byte-level BPE whose normal form puts a space before each text, with a special, a plain and
    an end token added."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=275, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<bos>"]
    )
    tokenizer.train_from_iterator(['{"name": "日本語 é"}', "name names named"] * 20, trainer)
    tokenizer.add_tokens([AddedToken("<tool_é>", special=False)])
    tokenizer.add_special_tokens(["<end>"])
    ends = [("<bos>", tokenizer.token_to_id("<bos>")), ("<end>", tokenizer.token_to_id("<end>"))]
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A <end>", special_tokens=ends)
    folder = tmp_path / "byte_level"
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    return add_config(folder, tokenizer_config={"eos_token": "<end>"}, config={"vocab_size": 333})


def metaspace_tokenizer_json(path: Path) -> None:
    """A SentencePiece-like BPE: `▁` for a space, a piece for each byte, a space put before each text."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "a",
        "b",
        "n",
        "ab",
        "▁a",
        "▁ab",
        "é",
        "▁▁",
    ]
    merges = [("a", "b"), ("▁", "a"), ("▁", "ab"), ("▁", "▁")]
    ids = {piece: token for token, piece in enumerate(pieces)}
    model = models.BPE(ids, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(str(path))


@pytest.fixture
def metaspace_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "metaspace"
    folder.mkdir()
    metaspace_tokenizer_json(folder / "tokenizer.json")
    return add_config(folder, special_tokens_map={"eos_token": {"content": "</s>"}})


def test_byte_level_folder_has_bytes_specials_padding_and_end(byte_level_folder: Path) -> None:
    vocabulary = load_vocabulary(f"hf:{byte_level_folder}")
    assert vocabulary.size == 333
    assert set(vocabulary.special_tokens.values()) == {"<bos>", "<end>"}
    assert vocabulary.special_tokens[vocabulary.eos_token] == "<end>"
    assert vocabulary.padding_tokens == frozenset(range(277, 333))
    assert {bytes([byte]) for byte in range(256)} <= vocabulary.ids_by_bytes.keys()
    assert b"<tool_\xe9>" in vocabulary.ids_by_bytes, "its decoder reads every letter of it as a byte"
    assert b" name" in vocabulary.ids_by_bytes


def test_byte_level_encoding_continues_a_text(byte_level_folder: Path) -> None:
    from tokenizers import Tokenizer

    vocabulary = load_vocabulary(str(byte_level_folder))
    own = Tokenizer.from_file(str(byte_level_folder / "tokenizer.json"))
    own_ids = own.encode("x name 日本", add_special_tokens=False).ids
    assert vocabulary.encode(b" x name \xe6\x97\xa5\xe6\x9c\xac") == own_ids, (
        "the tokenizer put the space before its text itself"
    )
    assert vocabulary.decode(vocabulary.encode(b"x")) == b"x"


@pytest.mark.parametrize(
    "text", [b"<end>", b"<bos> name", "<tool_é>".encode(), b"\xff name \xe6", b"  name", b""]
)
def test_byte_level_folder_spells_everything_without_specials(byte_level_folder: Path, text: bytes) -> None:
    vocabulary = load_vocabulary(str(byte_level_folder))
    tokens = vocabulary.encode(text)
    assert vocabulary.decode(tokens) == text
    assert vocabulary.special_tokens.keys().isdisjoint(tokens)


def test_metaspace_folder_has_spaces_and_bytes(metaspace_folder: Path) -> None:
    vocabulary = load_vocabulary(str(metaspace_folder))
    assert vocabulary.tokens[3:259] == tuple(bytes([byte]) for byte in range(256))
    assert [vocabulary.tokens[token] for token in vocabulary.encode(b"ab ab")] == [b"ab", b" ab"]
    assert vocabulary.special_tokens == {0: "<unk>", 1: "<s>", 2: "</s>"}
    assert vocabulary.eos_token == 2
    assert vocabulary.size == 268


@pytest.mark.parametrize("text", ["ab▁ab", "日本", " ab", "  ab ", "</s>", "<unk>", "<0x0A>", "\n", "é"])
def test_metaspace_folder_spells_everything_without_specials(metaspace_folder: Path, text: str) -> None:
    vocabulary = load_vocabulary(str(metaspace_folder))
    tokens = vocabulary.encode(text.encode())
    assert vocabulary.decode(tokens) == text.encode()
    assert vocabulary.special_tokens.keys().isdisjoint(tokens)


def test_metaspace_marker_keeps_the_text_around_it_canonical(metaspace_folder: Path) -> None:
    vocabulary = load_vocabulary(str(metaspace_folder))
    assert [vocabulary.tokens[token] for token in vocabulary.encode("ab▁ ab".encode())] == [
        b"ab",
        b"\xe2",
        b"\x96",
        b"\x81",
        b" ab",
    ]


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_metaspace_pre_tokenizer_puts_no_space_before_the_text(metaspace_folder: Path, scheme: str) -> None:
    document = json.loads((metaspace_folder / "tokenizer.json").read_text())
    document["normalizer"] = None
    document["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": scheme,
        "split": False,
    }
    document["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}
    add_config(metaspace_folder, tokenizer=document)
    vocabulary = load_vocabulary(str(metaspace_folder))
    assert [vocabulary.tokens[token] for token in vocabulary.encode(b"ab ab")] == [b"ab", b" ab"]


def test_a_piece_for_a_byte_has_the_bytes_that_the_decoder_gives_it(metaspace_folder: Path) -> None:
    """A decoder without byte fallback gives its name, though the model spells unknown characters in such."""
    from tokenizers import Tokenizer

    document = json.loads((metaspace_folder / "tokenizer.json").read_text())
    assert document["model"]["byte_fallback"]
    steps = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False}
    document |= {"normalizer": None, "pre_tokenizer": steps, "decoder": steps}
    add_config(metaspace_folder, tokenizer=document)
    vocabulary = load_vocabulary(str(metaspace_folder))
    own = Tokenizer.from_file(str(metaspace_folder / "tokenizer.json"))
    z = 3 + ord("z")
    assert own.encode("z", add_special_tokens=False).ids == [z]
    assert vocabulary.tokens[z].decode() == own.decode([z]) == "<0x7A>"
    with pytest.raises(ValueError, match="has no token for byte 0x7a"):
        vocabulary.encode(b"abz")


def unigram_folder(folder: Path, pieces: list[str], **model: object) -> Path:
    """Makes the folder of a Unigram model with these pieces; `</s>` is its end."""
    steps = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True}
    vocab = [[piece, -float(place)] for place, piece in enumerate(pieces)]
    whole = {"type": "Unigram", "unk_id": None, "byte_fallback": False, "vocab": vocab} | model
    end: dict[str, object] = {
        "id": pieces.index("</s>"),
        "content": "</s>",
        "special": True,
        "normalized": False,
    }
    end |= dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    document: dict[str, object] = {"version": "1.0", "added_tokens": [end], "model": whole, "decoder": steps}
    document |= {"pre_tokenizer": steps} | dict.fromkeys(("normalizer", "post_processor"))
    document |= dict.fromkeys(("truncation", "padding"))
    folder.mkdir()
    return add_config(folder, tokenizer=document, tokenizer_config={"eos_token": "</s>"})


def test_a_model_without_an_unknown_token_has_no_answer_for_unknown_text(tmp_path: Path) -> None:
    vocabulary = load_vocabulary(str(unigram_folder(tmp_path / "one", ["</s>", "▁", "a", "▁a", "b", "é"])))
    assert vocabulary.encode(b" a") == [3]
    with pytest.raises(ValueError, match="has no token for byte 0x7a"):
        vocabulary.encode(b"az")


def test_every_id_of_a_piece_that_stands_twice_is_text(tmp_path: Path) -> None:
    folder = unigram_folder(tmp_path / "one", ["<unk>", "</s>", "▁", "▁a", "a", "b", "▁a", "a"], unk_id=0)
    vocabulary = load_vocabulary(str(folder))
    assert vocabulary.tokens[2:] == (b" ", b" a", b"a", b"b", b" a", b"a")
    assert vocabulary.special_tokens == {0: "<unk>", 1: "</s>"}
    assert vocabulary.padding_tokens == frozenset()


def test_a_metaspace_decoder_replaces_one_text_after_the_other(metaspace_folder: Path) -> None:
    document = json.loads((metaspace_folder / "tokenizer.json").read_text())
    steps = [
        {"type": "Replace", "pattern": {"String": old}, "content": new}
        for old, new in (("▁", "_"), ("_", " "), ("▁", "lost"))
    ]
    decoder = {"type": "Sequence", "decoders": [*steps, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    before = load_vocabulary(str(metaspace_folder)).tokens
    add_config(metaspace_folder, tokenizer=document | {"decoder": decoder})
    assert load_vocabulary(str(metaspace_folder)).tokens == before


def test_specials_beyond_the_models_width_are_cut_off(byte_level_folder: Path) -> None:
    document = json.loads((byte_level_folder / "tokenizer.json").read_text())
    document["added_tokens"].append({**document["added_tokens"][0], "id": 277, "content": "<image>"})
    add_config(byte_level_folder, tokenizer=document, config={"vocab_size": 277})
    assert load_vocabulary(str(byte_level_folder)).size == 277
    add_config(byte_level_folder, tokenizer_config={"eos_token": "<image>"})
    assert load_vocabulary(str(byte_level_folder)).size == 278, "the end of the sequence is kept"


@pytest.mark.parametrize(
    "config",
    [
        {"text_config": {"vocab_size": 333}},
        {"vocab_size": 300, "text_config": {"vocab_size": 333}},
        {"vocab_size": 333, "text_config": {"hidden_size": 8}},
        {"thinker_config": {"text_config": {"vocab_size": 333}}, "talker_config": {"vocab_size": 300}},
        {"llm_config": {"vocab_size": 333}, "vision_config": {"vocab_size": 300}},
        {"language_config": {"vocab_size": 333}},
        {"encoder": {"vocab_size": 300}, "decoder": {"vocab_size": 333}},
    ],
    ids=str,
)
def test_the_width_is_that_of_the_part_about_text(byte_level_folder: Path, config: dict[str, object]) -> None:
    assert load_vocabulary(str(add_config(byte_level_folder, config=config))).size == 333


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config": {"eos_token": {"content": "<end>"}}},
        {"special_tokens_map": {"eos_token": "<end>"}},
        {"generation_config": {"eos_token_id": [276, 0]}},
        {"generation_config": {"eos_token_id": 276}},
        {"config": {"eos_token_id": 276}},
        {"config": {"text_config": {"eos_token_id": [276, 0]}}},
        {"config": {"eos_token_id": 276, "text_config": {"eos_token_id": 0}}},
        {"config": {"thinker_config": {"text_config": {"eos_token_id": 276}}}},
    ],
    ids=str,
)
def test_end_of_sequence_is_found_in_each_file(byte_level_folder: Path, files: dict[str, object]) -> None:
    for file in ("tokenizer_config.json", "config.json"):
        (byte_level_folder / file).unlink()
    assert load_vocabulary(str(add_config(byte_level_folder, **files))).eos_token == 276


def test_end_of_sequence_is_a_special_even_if_its_entry_is_not(byte_level_folder: Path) -> None:
    vocabulary = load_vocabulary(
        str(add_config(byte_level_folder, tokenizer_config={"eos_token": "<tool_é>"}))
    )
    assert vocabulary.special_tokens[vocabulary.eos_token] == "<tool_é>"
    assert vocabulary.eos_token not in vocabulary.encode("<tool_é>".encode())


def without_end(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def broken_json(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


def no_object(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("[]")


def replaced(old: str, new: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
BYTES, FUSE, SPACE = {"type": "ByteFallback"}, {"type": "Fuse"}, replaced("▁", " ")


@pytest.mark.parametrize(
    ("steps", "is_read"),
    [
        ([SPACE, BYTES, FUSE], True),
        ([BYTES, SPACE, FUSE], True),
        ([replaced("é", "e"), BYTES], True),
        ([METASPACE, BYTES, FUSE], True),
        ([SPACE, FUSE, BYTES], False),
        ([BYTES, FUSE, METASPACE], False),
        ([replaced("x", "y"), BYTES], False),
        ([BYTES, replaced("x", "y")], False),
    ],
)
def test_a_decoder_whose_order_makes_other_texts_of_pieces_is_refused(
    metaspace_folder: Path, steps: list[dict[str, object]], is_read: bool
) -> None:
    document = json.loads((metaspace_folder / "tokenizer.json").read_text())
    add_config(metaspace_folder, tokenizer=document | {"decoder": {"type": "Sequence", "decoders": steps}})
    if is_read:
        assert b"x" in load_vocabulary(str(metaspace_folder)).tokens
    else:
        with pytest.raises(BadInput, match="the order of its decoder's steps"):
            load_vocabulary(str(metaspace_folder))


def other_decoder(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    add_config(
        folder, tokenizer=document | {"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}
    )


def decoder_with_a_pattern(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    steps = [
        {"type": "Replace", "pattern": {"Regex": "[▁_]"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    add_config(folder, tokenizer=document | {"decoder": {"type": "Sequence", "decoders": steps}})


def decoder_that_replaces_across_pieces(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    steps = [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "aa"}, "content": "b"}]
    add_config(folder, tokenizer=document | {"decoder": {"type": "Sequence", "decoders": steps}})


def decoder_that_strips_pieces(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    steps = [{"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    decoder = {"type": "Sequence", "decoders": [*steps, {"type": "Fuse"}]}
    add_config(folder, tokenizer=document | {"decoder": decoder})


def decoder_that_strips_the_end(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    steps = [{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1}]
    add_config(folder, tokenizer=document | {"decoder": {"type": "Sequence", "decoders": steps}})


def no_decoder(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    add_config(folder, tokenizer=document | {"decoder": None})


def broken_model(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    document["model"]["merges"] = [["no such", "piece"]]
    add_config(folder, tokenizer=document)


def other_shape(folder: Path) -> None:
    add_config(folder, tokenizer={"decoder": {"kind": "ByteLevel"}})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_end, "no end-of-sequence token found"),
        (without_tokenizer, r"tokenizer\.json: no such file"),
        (broken_json, r"tokenizer\.json: not a tokenizer"),
        (no_object, r"tokenizer\.json: not a tokenizer"),
        (other_decoder, r"decoder \(WordPiece\)"),
        (no_decoder, r"decoder \(none\)"),
        (decoder_with_a_pattern, r"tokenizer\.json: its decoder replaces what a pattern matches"),
        (decoder_that_replaces_across_pieces, r"its decoder replaces several characters"),
        (decoder_that_strips_pieces, r"its decoder takes away more than the beginning of the whole text"),
        (decoder_that_strips_the_end, r"its decoder takes away more than the beginning of the whole text"),
        (broken_model, r"tokenizer\.json: not a tokenizer"),
        (other_shape, r"tokenizer\.json: not a tokenizer"),
    ],
)
def test_spoilt_folder_is_bad_input(
    byte_level_folder: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(byte_level_folder)
    with pytest.raises(BadInput, match=message) as caught:
        load_vocabulary(str(byte_level_folder))
    assert "\n" not in str(caught.value)


def test_missing_extra_is_bad_input(byte_level_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(BadInput, match=r"grammarbench\[huggingface\]"):
        load_vocabulary(str(byte_level_folder))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadInput, match=r"grammarbench\[huggingface\]"):
        prepare_vocabulary("hf:some/name")


def test_folder_without_tokenizer_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"tokenizer\.json: no such file"):
        prepare_vocabulary(f"hf:{tmp_path}")


def test_prepared_folder_loads_from_anywhere(
    byte_level_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(byte_level_folder.parent)
    prepared = [
        prepare_vocabulary(name)
        for name in ("byte_level", "hf:byte_level", "./byte_level", "hf:byte_level/tokenizer.json")
    ]
    monkeypatch.chdir("/")
    assert {load_vocabulary(name).name for name in prepared} == {f"hf:{byte_level_folder}"}


@pytest.mark.usefixtures("no_network")
def test_unreachable_hub_is_one_clear_line() -> None:
    with pytest.raises(BadInput, match="hf:gpt2: download failed") as caught:
        prepare_vocabulary("hf:gpt2")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("no_network")
def test_hub_repository_without_tokenizer_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, allow_patterns: "")
    with pytest.raises(BadInput, match=r"hf:some/name: the hub's repository has no tokenizer\.json"):
        prepare_vocabulary("hf:some/name")


@pytest.mark.usefixtures("no_network")
def test_name_that_was_not_prepared_is_bad_input() -> None:
    with pytest.raises(BadInput, match="hf:some/name is not on this machine yet"):
        load_vocabulary("hf:some/name")
    with pytest.raises(BadInput, match="tiktoken:cl100k_base is not on this machine yet"):
        load_vocabulary("tiktoken:cl100k_base")


@pytest.mark.usefixtures("no_network")
def test_cached_hub_name_loads_without_network(byte_level_folder: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--some--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("c0ffee")
    (repository / "snapshots").mkdir()
    byte_level_folder.rename(repository / "snapshots" / "c0ffee")
    assert prepare_vocabulary("hf:some/name") == "hf:some/name"
    vocabulary = load_vocabulary("hf:some/name")
    assert (vocabulary.name, vocabulary.size) == ("hf:some/name", 333)


# --- tiktoken ---


def write_ranks(path: Path, extra: tuple[bytes, ...] = (b"na", b"me", b"name")) -> Path:
    tokens = [*(bytes([byte]) for byte in range(256)), *extra]
    path.write_text(
        "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens))
    )
    return path


@pytest.mark.usefixtures("no_network")
def test_tiktoken_file_loads(tmp_path: Path) -> None:
    path = write_ranks(tmp_path / "tiny.tiktoken")
    name = prepare_vocabulary(f"tiktoken:{path}")
    vocabulary = load_vocabulary(name)
    assert vocabulary.name == name == f"tiktoken:{path}"
    assert vocabulary.tokens[:256] == tuple(bytes([byte]) for byte in range(256))
    assert vocabulary.encode(b"name") == [258]
    assert vocabulary.special_tokens == {259: "<|endoftext|>"}
    assert vocabulary.eos_token == 259
    assert vocabulary.decode(vocabulary.encode(b"<|endoftext|> \xff")) == b"<|endoftext|> \xff"


@pytest.mark.usefixtures("no_network")
def test_tiktoken_file_follows_the_pattern_of_the_encoding_it_is_named_after(tmp_path: Path) -> None:
    text = b"1234"
    numbers = (b"12", b"34", b"1234")
    other = load_vocabulary(f"tiktoken:{write_ranks(tmp_path / 'other.tiktoken', numbers)}")
    r50k = load_vocabulary(f"tiktoken:{write_ranks(tmp_path / 'r50k_base.tiktoken', numbers)}")
    assert [other.tokens[token] for token in other.encode(text)] == [b"12", b"3", b"4"], (
        "cl100k_base splits numbers after three digits"
    )
    assert [r50k.tokens[token] for token in r50k.encode(text)] == [b"1234"]
    assert r50k.special_tokens == {50256: "<|endoftext|>"}
    assert r50k.padding_tokens == frozenset(range(259, 50256))
    gpt2 = load_vocabulary(f"tiktoken:{write_ranks(tmp_path / 'gpt2.tiktoken', numbers)}")
    assert (gpt2.encode(text), gpt2.special_tokens) == (r50k.encode(text), r50k.special_tokens)


@pytest.mark.usefixtures("no_network")
def test_a_special_of_tiktoken_may_be_spelled_like_a_plain_token(tmp_path: Path) -> None:
    path = write_ranks(tmp_path / "tiny.tiktoken", (b"na", b"<|endoftext|>"))
    path.write_text(f"{path.read_text()}\n")  # a blank line, which tiktoken's own reader passes over
    vocabulary = load_vocabulary(f"tiktoken:{path}")
    assert vocabulary.special_tokens == {258: "<|endoftext|>"} and vocabulary.eos_tokens == (258,)
    assert vocabulary.tokens[257:] == (b"<|endoftext|>", b"")
    assert 258 not in vocabulary.encode(b"<|endoftext|>")


@pytest.mark.usefixtures("no_network")
def test_tiktoken_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = write_ranks(tmp_path / "tiny.tiktoken")
    before = load_vocabulary(f"tiktoken:{path}").size
    write_ranks(path, (b"na",))
    assert load_vocabulary(f"tiktoken:{path}").size == before - 2


@pytest.mark.usefixtures("no_network")
def test_known_tiktoken_encoding_loads_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding(
        "cl100k_base", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 300}
    )
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {"cl100k_base": encoding})
    assert prepare_vocabulary("tiktoken:CL100k-base") == "tiktoken:cl100k_base"
    vocabulary = load_vocabulary("tiktoken:cl100k_base")
    assert (vocabulary.size, vocabulary.eos_token, len(vocabulary.padding_tokens)) == (301, 300, 44)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("specials", [{"<|endoftext|>": 259}, {"<end>": 259}], ids=str)
def test_cached_tiktoken_encoding_loads_without_network(
    specials: dict[str, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = "https://example.com/tiny.tiktoken"

    def tiny() -> dict[str, object]:
        return {
            "name": "tiny",
            "pat_str": r"\S+",
            "mergeable_ranks": tiktoken.load.load_tiktoken_bpe(address),
            "special_tokens": specials,
        }

    monkeypatch.setattr("tiktoken.registry.ENCODING_CONSTRUCTORS", {"tiny": tiny})
    with pytest.raises(BadInput, match="tiktoken:tiny is not on this machine yet"):
        load_vocabulary("tiktoken:tiny")
    (tmp_path / "tiktoken").mkdir()
    write_ranks(tmp_path / "tiktoken" / hashlib.sha1(address.encode()).hexdigest())
    if "<|endoftext|>" in specials:
        assert load_vocabulary("tiktoken:tiny").encode(b"name") == [258]
    else:
        with pytest.raises(BadInput, match="tiktoken:tiny: no end-of-sequence token"):
            load_vocabulary("tiktoken:tiny")


@pytest.mark.usefixtures("no_network")
def test_unreachable_tiktoken_download_is_one_clear_line() -> None:
    with pytest.raises(BadInput, match="tiktoken:cl100k_base: download failed") as caught:
        prepare_vocabulary("tiktoken:cl100k_base")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no token for byte 0x00"),
        ("AA== 0\n", "no token for byte 0x01"),
        ("AA== zero\n", ":1: not a token in base64"),
        ("AA== 0\n?? 1\n", ":2: not a token in base64"),
        ("AA==\n", ":1: not a token in base64"),
        ("AA== 0\nAQ== 0\n", ":2: rank 0"),
        ("AA== 0\nAA== 1\n", ":2: rank 1"),
        ("AA== -1\n", ":1: rank -1"),
    ],
)
def test_spoilt_tiktoken_file_is_bad_input(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tiny.tiktoken"
    path.write_text(content)
    with pytest.raises(BadInput, match=message):
        load_vocabulary(f"tiktoken:{path}")


# --- names ---


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tekkn", 'unknown vocabulary "tekkn"; did you mean "tekken"'),
        ("mistral", 'did you mean "mistral-v3"'),
        ("zzzz", "known: bytes, mistral-v3, probe, tekken, hf:NAME_OR_FOLDER, tiktoken:NAME_OR_FILE"),
        ("", "unknown vocabulary"),
        ("hf:", "nothing after the colon"),
        ("tiktoken:", "nothing after the colon"),
        ("tiktoken:cl100k", 'did you mean "cl100k_base"'),
        ("tiktoken:/no/such/file.tiktoken", "no such file"),
        ("hf:./no/such/folder", "no such folder"),
        ("hf:/no/such/folder", "no such folder"),
    ],
)
@pytest.mark.parametrize("use", [load_vocabulary, prepare_vocabulary])
def test_wrong_name_is_bad_input(use: Callable[[str], object], name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        use(name)
    assert "\n" not in str(caught.value)


def test_mistral_common_without_its_files_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.backend.vocabulary.mistral.find_spec", lambda name: None)
    with pytest.raises(BadInput, match="install mistral-common"):
        load_vocabulary("tekken")
