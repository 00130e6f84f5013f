"""Mistral's two tokenizers, from the files that mistral-common ships."""

from __future__ import annotations

import base64
import json
from importlib.util import find_spec
from pathlib import Path

from harness.backend.vocabulary.metaspace import MARKER, byte_of_piece, spelling_markers
from harness.backend.vocabulary.model import Vocabulary
from harness.errors import BadInput

TEKKEN_FILE = "tekken_240911.json"
MISTRAL_V3_FILE = "mistral_instruct_tokenizer_240323.model.v3"

# The file leaves them out: up to version v7 they are part of the format.
_TEKKEN_SPECIALS = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip


def tekken() -> Vocabulary:
    """Byte-level BPE, 131,072 ids of which the first 1,000 are specials."""
    import tiktoken

    document = json.loads(file_of(TEKKEN_FILE).read_bytes())
    config = document["config"]
    specials: int = config["default_num_special_tokens"]
    entries = document["vocab"][: config["default_vocab_size"] - specials]
    texts = tuple(base64.b64decode(entry["token_bytes"]) for entry in entries)
    encoding = tiktoken.Encoding(
        "tekken",
        pat_str=config["pattern"],
        mergeable_ranks={text: rank for rank, text in enumerate(texts)},
        special_tokens={},
    )

    def tokenize(text: str) -> list[int]:
        return [rank + specials for rank in encoding.encode_ordinary(text)]

    names = [*_TEKKEN_SPECIALS, *(f"<SPECIAL_{token}>" for token in range(len(_TEKKEN_SPECIALS), specials))]
    return Vocabulary(
        name="tekken",
        tokens=(b"",) * specials + texts,
        eos_tokens=(names.index("</s>"),),
        special_tokens=dict(enumerate(names)),
        tokenize=tokenize,
    )


def mistral_v3() -> Vocabulary:
    """SentencePiece BPE with byte fallback, 32,768 ids."""
    from sentencepiece import SentencePieceProcessor

    model = SentencePieceProcessor(model_file=str(file_of(MISTRAL_V3_FILE)))
    tokens: list[bytes] = []
    specials: dict[int, str] = {}
    byte_tokens: dict[bytes, int] = {}
    everything = range(model.get_piece_size())
    for token, piece in enumerate(model.id_to_piece(list(everything))):
        if model.is_control(token) or model.is_unknown(token):
            specials[token] = piece
            tokens.append(b"")
        elif model.is_byte(token):
            byte = byte_of_piece(piece) or b""
            byte_tokens[byte] = token
            tokens.append(byte)
        else:
            tokens.append(piece.replace(MARKER, " ").encode())

    # The model puts a space before every text. No piece holds a newline, so a newline keeps that space away
    # from the text: what follows these two tokens is what the tokenizer gives where a text goes on.
    newline = "\n"
    lead = len(model.encode(newline))

    def tokenize(text: str) -> list[int]:
        ids: list[int] = model.encode(newline + text)
        return ids[lead:]

    return Vocabulary(
        name="mistral-v3",
        tokens=tuple(tokens),
        eos_tokens=(model.eos_id(),),
        special_tokens=specials,
        tokenize=spelling_markers(tokenize, [byte_tokens[bytes([byte])] for byte in MARKER.encode()]),
    )


def file_of(name: str) -> Path:
    """Returns the path of a file of mistral-common's `data`, found without importing the package, which takes
    longer than loading the vocabulary. Raises BadInput if there is none."""
    spec = find_spec("mistral_common")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "data", name)
        if path.is_file():
            return path
    raise BadInput(f"the installed mistral-common does not hold data/{name}; install mistral-common>=1.8")
