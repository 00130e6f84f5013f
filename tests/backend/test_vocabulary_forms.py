"""One tokenizer in several forms is one vocabulary: token for token, and text for text."""

from __future__ import annotations

import base64
import io
import json
import struct
from pathlib import Path

import pytest
from gguf_bytes import write_gguf
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.vocabulary import Vocabulary, gguf_reader, load_vocabulary, prepare_vocabulary
from harness.backend.vocabulary.byte_level import bytes_of_letters
from harness.backend.vocabulary.special_ids import CL100K_PATTERN
from harness.errors import BadInput

TRAINED_ON = [
    '{"name": "日本語 é", "items": [1, 23, 456]}',
    "name names named don't\r\n\n  return 12345",
    "▁ 👩\u200d💻 \t\tü",
] * 20
AWKWARD = [
    "▁",
    "<end>",
    "<tool>",
    "<0x0A>",
    "\n",
    "  ",
    "\r\n",
    '"}',
    "日本",
    "👩\u200d💻",
    "e\u0301",
    "\0",
    "12345",
]
texts = st.lists(st.one_of(st.text(max_size=12), st.sampled_from(AWKWARD + TRAINED_ON[:3])), max_size=6).map(
    "".join
)


def same(one: Vocabulary, other: Vocabulary) -> None:
    """Asserts that two vocabularies differ in nothing but their names and the names of ids that have none."""
    assert one.tokens == other.tokens
    assert one.eos_tokens == other.eos_tokens
    assert one.special_tokens == other.special_tokens
    assert one.padding_tokens == other.padding_tokens


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Vocabulary]:
    """A byte-level BPE as a folder of Hugging Face, as a GGUF file and, where it has no added text, as a file
    of ranks."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    folder = tmp_path_factory.mktemp("byte_level")
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(CL100K_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TRAINED_ON, trainer)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    pieces = [str(tokenizer.id_to_token(token)) for token in range(tokenizer.get_vocab_size())]
    ranks = b"".join(
        b"%s %d\n" % (base64.b64encode(bytes_of_letters(piece)), rank)
        for rank, piece in enumerate(pieces[:-1])
    )
    (folder / "one.tiktoken").write_bytes(ranks)
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}))
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabularies = {
        "plain": load_vocabulary(f"hf:{folder}"),
        "ranks": load_vocabulary(str(folder / "one.tiktoken")),
        "path": load_vocabulary(str(folder / "tokenizer.json")),
    }

    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    width = len(pieces) + 4
    config = {"vocab_size": width, "eos_token_id": [len(pieces) - 1]}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer.save(str(folder / "tokenizer.json"))
    padding = [f"[PAD{token}]" for token in range(len(pieces) + 1, width)]
    path = write_gguf(
        folder / "one.gguf",
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "llama-bpe",
            "tokenizer.ggml.tokens": [*pieces, "<tool>", *padding],
            "tokenizer.ggml.token_type": [*[1] * (len(pieces) - 1), 3, 4, *[4] * len(padding)],
            "tokenizer.ggml.merges": [" ".join(merge) for merge in merges],
            "tokenizer.ggml.eos_token_id": len(pieces) - 1,
            "tokenizer.ggml.eot_token_id": len(pieces) - 1,
            "tokenizer.ggml.add_bos_token": False,
        },
    )
    vocabularies["folder"] = load_vocabulary(str(folder))
    vocabularies["gguf"] = load_vocabulary(str(path))
    assert prepare_vocabulary(str(path)) == f"gguf:{path}"
    return vocabularies


def test_a_byte_level_tokenizer_is_the_same_in_every_form(byte_level: dict[str, Vocabulary]) -> None:
    same(byte_level["plain"], byte_level["ranks"])
    same(byte_level["plain"], byte_level["path"])
    same(byte_level["folder"], byte_level["gguf"])
    assert b"<tool>" in byte_level["gguf"].ids_by_bytes and len(byte_level["gguf"].padding_tokens) == 3


@settings(max_examples=200, deadline=None)
@given(text=texts)
def test_a_byte_level_tokenizer_spells_every_text_the_same(
    byte_level: dict[str, Vocabulary], text: str
) -> None:
    encoded = text.encode()
    assert byte_level["plain"].encode(encoded) == byte_level["ranks"].encode(encoded)
    assert byte_level["folder"].encode(encoded) == byte_level["gguf"].encode(encoded)


@pytest.fixture(scope="module")
def sentence_piece(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Vocabulary]:
    """A BPE of SentencePiece with byte fallback: the pieces and scores as a GGUF file, and the merges that
    follow from them as a folder of Hugging Face and as a GGUF file of the kind of Gemma 4."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
    from tokenizers import Tokenizer, decoders, models, normalizers

    folder = tmp_path_factory.mktemp("sentence_piece")
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINED_ON),
        model_writer=model,
        vocab_size=330,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        minloglevel=2,
    )
    processor = SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(token) for token in range(processor.get_piece_size())]
    scores = [float(processor.get_score(token)) for token in range(len(pieces))]
    kinds = [2 if piece == "<unk>" else 3 if piece in ("<s>", "</s>") else 1 for piece in pieces]
    kinds = [6 if processor.is_byte(token) else kind for token, kind in enumerate(kinds)]
    metadata: dict[str, object] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.unknown_token_id": pieces.index("<unk>"),
        "tokenizer.ggml.eos_token_id": pieces.index("</s>"),
    }
    by_scores = write_gguf(folder / "scores.gguf", metadata)

    ids = {piece: token for token, piece in enumerate(pieces)}
    merges = [
        (piece[:place], piece[place:])
        for _, piece in sorted(zip((-score for score in scores), pieces, strict=True))
        if kinds[ids[piece]] == 1
        for place in range(1, len(piece))
        if piece[:place] in ids and piece[place:] in ids
    ]
    metadata |= {"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.merges": [" ".join(one) for one in merges]}
    by_merges = write_gguf(folder / "merges.gguf", metadata)
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(["<s>", "</s>", "<unk>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
    return {
        "folder": load_vocabulary(str(folder)),
        "scores": load_vocabulary(f"gguf:{by_scores}"),
        "merges": load_vocabulary(f"gguf:{by_merges}"),
    }


def test_a_sentence_piece_tokenizer_is_the_same_in_every_form(sentence_piece: dict[str, Vocabulary]) -> None:
    same(sentence_piece["folder"], sentence_piece["scores"])
    same(sentence_piece["folder"], sentence_piece["merges"])
    assert b"\n" in sentence_piece["scores"].tokens and b" name" in sentence_piece["scores"].tokens


@settings(max_examples=200, deadline=None)
@given(text=texts)
def test_a_sentence_piece_tokenizer_spells_every_text_the_same(
    sentence_piece: dict[str, Vocabulary], text: str
) -> None:
    spellings = [vocabulary.encode(text.encode()) for vocabulary in sentence_piece.values()]
    assert spellings[0] == spellings[1] == spellings[2]


WHOLE: dict[str, object] = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": ["a", "b", "ab", "<end>"],
    "tokenizer.ggml.token_type": [1, 1, 1, 3],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 3,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"tokenizer.ggml.model": "bert"},
            "its tokenizer (b'bert') is none that is read (gemma4, gpt2, llama)",
        ),
        ({"tokenizer.ggml.model": ["gpt2"]}, "its tokenizer ([b'gpt2']) is none that is read"),
        ({"tokenizer.ggml.pre": "own"}, "how its tokenizer splits a text (b'own') is not known"),
        ({"tokenizer.ggml.pre": "own", "general.name": "x" * 9999}, "how its tokenizer splits a text"),
        ({"tokenizer.ggml.pre": "own", "general.name": 5}, "how its tokenizer splits a text"),
        ({"tokenizer.ggml.eos_token_id": 4}, "it names no token with which an output ends"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "4 tokens and 2 types"),
        ({"tokenizer.ggml.merges": ["ab"]}, "not a tokenizer"),
        ({"tokenizer.ggml.tokens": 5}, "not a tokenizer"),
    ],
)
def test_a_gguf_file_that_cannot_be_read_is_one_clear_line(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    assert load_vocabulary(str(write_gguf(tmp_path / "whole.gguf", WHOLE))).encode(b"ab") == [2]
    assert load_vocabulary(str(write_gguf(tmp_path / "CAPITALS.GGUF", WHOLE))).encode(b"ab") == [2]
    with pytest.raises(BadInput) as caught:
        load_vocabulary(str(write_gguf(tmp_path / "changed.gguf", WHOLE | changed)))
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'changed.gguf'}: ") and len(str(caught.value)) < 500


def test_of_a_gguf_file_the_tokenizer_alone_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_reader, "MOST_IDS", 9)
    more = {"general.numbers": [7] * 10, "general.tags": ["a", "b"], "general.name": "none"}
    path = write_gguf(tmp_path / "whole.gguf", more | WHOLE)
    assert gguf_reader.read_metadata(path).keys() == WHOLE.keys()
    assert load_vocabulary(str(path)).encode(b"ab") == [2]
    for key, value in (("general.tags", ["a"] * 10), ("tokenizer.ggml.token_type", [1] * 10)):
        path = write_gguf(tmp_path / "long.gguf", WHOLE | {key: value})
        with pytest.raises(BadInput, match=r"version 2 or 3 \(an array of 10 items"):
            load_vocabulary(str(path))
    path = write_gguf(tmp_path / "keys.gguf", WHOLE | {f"general.{number}": 0 for number in range(4)})
    with pytest.raises(BadInput, match=r"version 2 or 3 \(10 keys"):
        load_vocabulary(str(path))

    def without_memory(content: object) -> None:
        raise MemoryError

    monkeypatch.setattr(gguf_reader, "_metadata", without_memory)
    with pytest.raises(BadInput, match="more than this machine's memory"):
        load_vocabulary(str(path))


def test_a_piece_spelled_like_a_byte_is_text_in_a_gguf_file(tmp_path: Path) -> None:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "<0xab>", "<0xcd>"]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, 1, 4],
        "tokenizer.ggml.scores": [0.0] * len(pieces),
        "tokenizer.ggml.eos_token_id": 2,
    }
    vocabulary = load_vocabulary(str(write_gguf(tmp_path / "one.gguf", metadata)))
    assert vocabulary.tokens[3:] == (*(bytes([byte]) for byte in range(256)), b"<0xab>", b"<0xcd>")


@pytest.mark.parametrize(
    ("named", "ends"),
    [
        (["<|im_end|>", "<tool>", "</s>"], (3, 4, 6)),
        (["<|end|>", "<|return|>", "<|call|>"], (3, 5, 6)),
        (["</s>", "<|tool_response>", "<|end|>"], (3, 5, 6)),
    ],
)
def test_tokens_whose_name_is_an_end_to_llama_cpp_end_outputs_of_its_file(
    tmp_path: Path, named: list[str], ends: tuple[int, ...]
) -> None:
    changed = {
        "tokenizer.ggml.tokens": ["a", "b", "ab", "<end>", *named],
        "tokenizer.ggml.token_type": [1, 1, 1, 3, 3, 3, 3],
    }
    vocabulary = load_vocabulary(str(write_gguf(tmp_path / "one.gguf", WHOLE | changed)))
    assert vocabulary.eos_tokens == ends and vocabulary.eos_token == 3


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGUF",
        b"GGUF\x01\0\0\0" + bytes(16),
        b"GGUF\x03\0\0\0" + struct.pack("<QQ", 0, 1 << 60),
        # a text, then an array, that claim to be longer than the file
        b"GGUF\x03\0\0\0" + struct.pack("<QQQ", 0, 1, 1 << 62),
        b"GGUF\x03\0\0\0" + struct.pack("<QQQ1sIIQ", 0, 1, 1, b"k", 9, 8, 1 << 40),
        b"GGUF\x03\0\0\0" + struct.pack("<QQQ1sI", 0, 1, 1, b"k", 99),
    ],
)
def test_what_is_no_whole_gguf_file_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "spoilt.gguf"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="no whole GGUF file"):
        load_vocabulary(str(path))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_gguf_file_is_a_vocabulary_or_one_clear_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = write_gguf(tmp_path_factory.mktemp("damaged") / "one.gguf", WHOLE)
    content = bytearray(whole.read_bytes()[: data.draw(st.integers(0, whole.stat().st_size))])
    for _ in range(data.draw(st.integers(0, 4)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    whole.write_bytes(content)
    try:
        load_vocabulary(str(whole))
    except BadInput as error:
        assert "\n" not in str(error) and str(whole) in str(error)


@pytest.mark.parametrize("name", ["gguf:none.gguf", "./none.gguf", "none.tiktoken", "none/tokenizer.json"])
def test_a_file_that_is_not_there_is_one_clear_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (prepare_vocabulary, load_vocabulary):
        with pytest.raises(BadInput, match=r"no such (file|folder)"):
            use(name)
