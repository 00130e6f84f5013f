"""Writes a family that comes as a file of ranks as a Hugging Face tokenizer too.

Libraries and serving engines load such folders themselves, and `hf:FOLDER` reads them: what they make of a
tokenizer can be held against the ranks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.backend.vocabulary.byte_level import letters_of_bytes
from harness.backend.vocabulary.families import Family

CONFIG = "tokenizer_config.json"
"""It is written last: a folder without it is not whole."""


def write_tokenizer_files(family: Family, folder: Path, ranks: Mapping[bytes, int]) -> None:
    """Writes what stands beside a `tokenizer.json` in the folder of a model, and that file itself where there
    are ranks to write."""
    if ranks:
        document = json.dumps(tokenizer_document(family, ranks), ensure_ascii=False)
        (folder / "tokenizer.json").write_text(document, "utf-8")
    ends = {"eos_token_id": list(family.eos)}
    (folder / "generation_config.json").write_text(json.dumps(ends), "utf-8")
    # A folder without a version is taken by transformers for an old one whose pattern may be wrong.
    config = {"vocab_size": family.width, "transformers_version": "5.0.0"}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    first = next(iter(family.eos.values()))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": first}
    (folder / CONFIG).write_text(json.dumps(named), "utf-8")


def tokenizer_document(family: Family, ranks: Mapping[bytes, int]) -> dict[str, Any]:
    """Returns the `tokenizer.json` of a byte-level BPE that merges as the ranks say.

    A merge is every pair of tokens whose bytes together are a token, in the order of what they become: so do
    the converters of transformers.
    """
    letters = {token: letters_of_bytes(token) for token in ranks}
    merges = []
    for token in sorted(ranks, key=ranks.__getitem__):
        pairs = [
            (token[:place], token[place:])
            for place in range(1, len(token))
            if token[:place] in ranks and token[place:] in ranks
        ]
        pairs.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [[letters[left], letters[right]] for left, right in pairs]
    added = [(token, name, True) for token, name in family.specials.items()]
    added += [(token, name, False) for token, name in family.added.items()]
    vocab = {letters[token]: rank for token, rank in ranks.items()}
    # The library numbers added tokens from the model's last id on, whatever the file says; where ids are left
    # out between, the model must know them itself.
    if sorted(token for token, _, _ in added) != list(range(len(ranks), len(ranks) + len(added))):
        vocab |= {name: token for token, name, _ in added}
    split = {"type": "Split", "pattern": {"Regex": family.pattern}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token,
                "content": name,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": special,
            }
            for token, name, special in sorted(added)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": vocab,
            "merges": merges,
        },
    }
