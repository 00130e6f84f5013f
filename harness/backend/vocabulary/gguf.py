"""The vocabulary of a GGUF file, as llama.cpp and its descendants serve it.

Three kinds of tokenizers are read: byte-level BPE (`gpt2` in the file), SentencePiece's BPE by scores
(`llama`), and BPE by merges over characters with byte fallback (`gemma4`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backend.vocabulary.byte_level import bytes_of_letters
from harness.backend.vocabulary.families import Family
from harness.backend.vocabulary.gguf_reader import read_metadata
from harness.backend.vocabulary.metaspace import MARKER, byte_of_piece, spelling_markers
from harness.backend.vocabulary.model import Vocabulary
from harness.backend.vocabulary.special_ids import (
    CL100K_PATTERN,
    DEEPSEEK_PATTERNS,
    GPT2_PATTERN,
    O200K_PATTERN,
    QWEN35_PATTERN,
    QWEN_PATTERN,
)
from harness.errors import BadInput
from harness.paths import existing_file
from harness.text import one_line

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Kinds of tokens, as the format numbers them, and SentencePiece too."""

ENDS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")
"""The keys that name an id with which an output may end."""

NAMES_OF_ENDS = frozenset(
    ("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<turn|>",
     "<end_of_turn>", "<|tool_response>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]",
     "[EOS]", "<eos>", "[e~[", "<|end_of_text|>", "<end_of_utterance>", "<｜end▁of▁sentence｜>")
)  # fmt: skip
"""Names of tokens with which an output ends for llama.cpp, whatever else the file says of them
(`special_eog_ids` of src/llama-vocab.cpp; asked of llama-cpp-python 0.3.36, name by name)."""
END_UNLESS: dict[str, tuple[set[str], ...]] = {
    "<|end|>": ({"<|return|>", "<|flush|>"}, {"<|call|>", "<|calls|>"}),
    "</s>": ({"<|tool_response>"},),
}
"""Names that llama.cpp takes for no end in some files: for each of them sets of other names, of every one of
which such a file has at least one."""

FIM_ENDS: dict[str, tuple[str, ...]] = {
    "tokenizer.ggml.fim_pad_token_id": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "tokenizer.ggml.fim_rep_token_id": (
        "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>",
    ),
    "tokenizer.ggml.fim_sep_token_id": ("<|file_sep|>",),
}  # fmt: skip
"""Tokens between the files of a repository (*fill in the middle*), with which an output ends for llama.cpp
too: keys that name one, and for each the names by which it is looked for where the file has no such key. Of
several names in a file llama.cpp takes the one that its hash table yields first; here all are ends, and the
adapter leaves out those that the library does not know."""

PATTERNS: dict[bytes, tuple[str, ...]] = {
    b"llama-bpe": (CL100K_PATTERN,),
    b"qwen2": (QWEN_PATTERN,),
    b"qwen35": (QWEN35_PATTERN,),
    b"gpt-2": (GPT2_PATTERN,),
    b"gpt-4o": (O200K_PATTERN,),
    b"deepseek-v3": DEEPSEEK_PATTERNS,
    b"command-r": (r"\p{N}", GPT2_PATTERN),
    b"starcoder": (r"\p{N}", GPT2_PATTERN),
    b"refact": (r"\p{N}", GPT2_PATTERN),
}
"""How the byte-level tokenizers of each name split a text, one pattern after the other, as the models' own
`tokenizer.json` says."""

WHOLE_PIECES_FIRST = (b"llama-bpe", b"gpt-4o")
"""The tokenizers that take a part of a text for one token wherever it is one, whatever the merges say."""


def prepare(source: str) -> str:
    """Returns the file's absolute path. Raises BadInput if there is none."""
    return str(existing_file(source, "gguf"))


def load(source: str) -> Vocabulary:
    """Returns the vocabulary of the file. Raises BadInput."""
    return _loaded(f"gguf:{source}", Path(prepare(source)), ())


def load_family(family: Family, path: Path) -> Vocabulary:
    """Returns the vocabulary of a family that was fetched as a GGUF file. Raises BadInput."""
    return _loaded(family.name, path, tuple(family.eos))


def _loaded(name: str, path: Path, ends: tuple[int, ...]) -> Vocabulary:
    metadata = read_metadata(path)
    model = metadata.get("tokenizer.ggml.model")
    if not isinstance(model, bytes) or model not in TOKENIZERS:
        known = ", ".join(sorted(one.decode() for one in TOKENIZERS))
        raise BadInput(f"{path}: its tokenizer ({one_line(repr(model), 60)}) is none that is read ({known})")
    try:
        texts: list[bytes] = metadata["tokenizer.ggml.tokens"]
        pieces = [text.decode() for text in texts]
        kinds: Sequence[int] = metadata["tokenizer.ggml.token_type"]
        if len(kinds) != len(pieces):
            raise ValueError(f"{len(pieces)} tokens and {len(kinds)} types")
        ends = ends or _ends(pieces, metadata)
        if not ends or not all(_is_id(end, pieces) for end in ends):
            raise ValueError(f"it names no token with which an output ends ({', '.join(ENDS)})")
        return replace(_vocabulary(name, pieces, kinds, ends, model, metadata), gguf=path)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except (KeyboardInterrupt, SystemExit):
        raise
    # what a file of another shape can raise: a missing key, a text for a list; and where Rust panics a
    # BaseException
    except BaseException as error:
        raise BadInput(f"{path}: not a tokenizer ({one_line(repr(error), 300)})") from error


def _ends(pieces: list[str], metadata: dict[str, Any]) -> tuple[int, ...]:
    """Returns the ids with which an output ends: those that the file names, and those whose name says so to
    llama.cpp. Without the first there are none: then the file says too little of its model."""
    ends = [metadata[key] for key in ENDS if key in metadata]
    if ends:
        found = NAMES_OF_ENDS.union(*FIM_ENDS.values()).intersection(pieces)
        named = found & NAMES_OF_ENDS
        named -= {name for name, others in END_UNLESS.items() if all(named & each for each in others)}
        for key, names in FIM_ENDS.items():
            if _is_id(metadata.get(key), pieces):
                ends.append(metadata[key])
            else:
                named |= found.intersection(names)
        ends += sorted(pieces.index(name) for name in named)
    return tuple(dict.fromkeys(ends))


def _is_id(token: object, pieces: list[str]) -> bool:
    return type(token) is int and 0 <= token < len(pieces)


def _vocabulary(
    name: str,
    pieces: list[str],
    kinds: Sequence[int],
    ends: tuple[int, ...],
    model: bytes,
    metadata: dict[str, Any],
) -> Vocabulary:
    tokens = [b""] * len(pieces)
    specials: dict[int, str] = {}
    padding = set()
    for token, (piece, kind) in enumerate(zip(pieces, kinds, strict=True)):
        if token in ends:
            specials[token] = piece
        # The converters of llama.cpp fill ids that the tokenizer lacks with such names, under several kinds.
        elif kind == UNUSED or (kind != NORMAL and piece == f"[PAD{token}]"):
            padding.add(token)
        elif kind in (CONTROL, UNKNOWN):
            specials[token] = piece
        elif kind == USER_DEFINED:
            tokens[token] = piece.encode()
        else:
            tokens[token] = bytes_of_letters(piece) if model == b"gpt2" else _bytes_of_piece(piece, kind)
    plain = [token for token, kind in enumerate(kinds) if kind == USER_DEFINED and tokens[token]]
    tokenize = TOKENIZERS[model](pieces, [pieces[token] for token in plain], kinds, metadata)
    if model != b"gpt2":
        byte_ids = {tokens[token]: token for token, kind in enumerate(kinds) if kind == BYTE}
        marker = [byte_ids.get(bytes([byte]), -1) for byte in MARKER.encode()]
        tokenize = spelling_markers(tokenize, marker) if min(marker) >= 0 else tokenize
    return Vocabulary(
        name=name,
        tokens=tuple(tokens),
        eos_tokens=ends,
        special_tokens=specials,
        padding_tokens=frozenset(padding),
        tokenize=tokenize,
    )


def _bytes_of_piece(piece: str, kind: int) -> bytes:
    byte = byte_of_piece(piece) if kind == BYTE else None  # to llama.cpp another kind's `<0x0A>` is text
    return byte or piece.replace(MARKER, " ").encode()


Tokenize = Callable[[str], list[int]]


def _by_letters(
    pieces: list[str], added: list[str], kinds: Sequence[int], metadata: dict[str, Any]
) -> Tokenize:
    """Returns the tokenizer of a byte-level BPE. Raises BadInput where its pattern is not known."""
    from tokenizers import Regex, pre_tokenizers

    name = metadata.get("tokenizer.ggml.pre", b"")
    if name not in PATTERNS:
        raise BadInput(
            f"how its tokenizer splits a text ({one_line(repr(name), 60)}) is not known; give the model's "
            "tokenizer.json instead"
        )
    tokenizer = _merging(pieces, metadata, ignore_merges=name in WHOLE_PIECES_FIRST)
    parts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PATTERNS[name]]
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*parts, letters])
    return _taking_whole(tokenizer, added)


def _by_characters(
    pieces: list[str], added: list[str], kinds: Sequence[int], metadata: dict[str, Any]
) -> Tokenize:
    """Returns the tokenizer of a BPE over characters, in which a space is `▁` and what is no piece is spelled
    by bytes."""
    from tokenizers import normalizers

    unknown = pieces[metadata["tokenizer.ggml.unknown_token_id"]]
    tokenizer = _merging(pieces, metadata, byte_fallback=True, fuse_unk=True, unk_token=unknown)
    tokenizer.normalizer = normalizers.Replace(" ", MARKER)
    return _taking_whole(tokenizer, added)


def _merging(pieces: list[str], metadata: dict[str, Any], **options: Any) -> Any:
    from tokenizers import Tokenizer, models

    ids = {piece: token for token, piece in enumerate(pieces)}
    merges = []
    for merge in metadata["tokenizer.ggml.merges"]:
        sides = merge.decode()
        middle = sides.index(" ", 1)  # a side is never empty, so a blank in front belongs to it
        merges.append((sides[:middle], sides[middle + 1 :]))
    return Tokenizer(models.BPE(ids, merges, **options))


def _taking_whole(tokenizer: Any, added: list[str]) -> Tokenize:
    from tokenizers import AddedToken

    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in added])

    def tokenize(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return tokenize


def _by_scores(
    pieces: list[str], added: list[str], kinds: Sequence[int], metadata: dict[str, Any]
) -> Tokenize:
    """Returns the tokenizer of a BPE of SentencePiece, which merges what has the highest score.

    It puts no space before a text: ours continues another text.
    """
    from sentencepiece import SentencePieceProcessor

    unknown = metadata.get("tokenizer.ggml.unknown_token_id", 0)
    model = bytearray()
    for token, (piece, score) in enumerate(zip(pieces, metadata["tokenizer.ggml.scores"], strict=True)):
        # SentencePiece wants one unknown piece; the converters give that kind to padding too.
        kind = UNKNOWN if token == unknown else CONTROL if kinds[token] == UNKNOWN else kinds[token]
        text = piece.replace(" ", MARKER).encode()
        entry = b"\n%s%s\x15%s\x18%s" % (_number(len(text)), text, struct.pack("<f", score), _number(kind))
        model += b"\n%s%s" % (_number(len(entry)), entry)
    # trainer: BPE (3 = 2) with byte fallback (35 = 1); normalizer: no prefix (3), spaces kept (4), written
    # as `▁` (5)
    trainer, normalizer = b"\x18\x02\x98\x02\x01", b"\x18\x00\x20\x00\x28\x01"
    model += b"\x12%s%s\x1a%s%s" % (_number(len(trainer)), trainer, _number(len(normalizer)), normalizer)
    encode: Tokenize = SentencePieceProcessor(model_proto=bytes(model)).encode
    return lambda text: encode(text)


def _number(value: int) -> bytes:
    """Returns a whole number from 0 as protocol buffers write it."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


TOKENIZERS: dict[bytes, Callable[[list[str], list[str], Sequence[int], dict[str, Any]], Tokenize]] = {
    b"gpt2": _by_letters,
    b"llama": _by_scores,
    b"gemma4": _by_characters,
}
"""What the file calls its tokenizer, and the function that makes one."""
