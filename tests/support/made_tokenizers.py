"""Made-up Hugging Face tokenizers, one of each kind, with the ids over which loaders stumble."""

from __future__ import annotations

import json
from pathlib import Path


def byte_level(folder: Path) -> Path:
    """A byte-level BPE. Among its added tokens are a special one, text beyond ASCII in angle brackets, once
    all in letters that stand for bytes, text with spaces, and the end; the model is wider than the tokenizer.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = [("Ġ", "a"), ("a", "b"), ("Ġ", "ab"), ("æ", "Ĺ"), ("æĹ", "¥")]
    pieces = [*letters, *("".join(pair) for pair in merged)]
    model = models.BPE({piece: token for token, piece in enumerate(pieces)}, merged)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    added = ("<tool_é>", "<tool_日>", "  two", "<0x41>")
    tokenizer.add_tokens([AddedToken(text, special=False) for text in added])
    tokenizer.add_special_tokens(["<|start|>", "<|endoftext|>"])
    return _saved(tokenizer, folder, end="<|endoftext|>", width=300)


def metaspace(folder: Path) -> Path:
    """A SentencePiece BPE: `▁` for a space, a piece for each byte, a space put before each text."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    words = ["▁", "a", "b", "ab", "▁a", "▁ab", "é", "日", "▁▁", "\n", "<tool>"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    merges = [("a", "b"), ("▁", "a"), ("▁", "ab"), ("▁", "▁")]
    ids = {piece: token for token, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return _saved(tokenizer, folder, end="</s>", width=288)


def _saved(tokenizer: object, folder: Path, *, end: str, width: int) -> Path:
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))  # type: ignore[attr-defined]
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"vocab_size": width}))
    return folder
