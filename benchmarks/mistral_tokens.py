"""What vLLM's wrappers make of Mistral's own tokenizer: `python benchmarks/mistral_tokens.py`.

Mistral's models are served with the tokenizer of the package mistral-common (`--tokenizer-mode mistral`),
which is none of transformers' classes, so that each wrapper of vLLM reads it in a way of its own (vLLM's pull
requests 14625 and 52720, issue 15551). Each line holds the ids that a wrapper reads wrongly, as
`grammarbench check BACKEND --tokens` counts them for tokenizers of transformers. It needs vLLM, of which
nothing is started, and what docs/engines.md installs beside it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xgrammar

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.bridge.bare_package import bare_package
from harness.backend.token_bytes.compare import counts_of, kinds_text, wrong_tokens
from harness.backend.vocabulary import load_vocabulary
from harness.backend.vocabulary.mistral import MISTRAL_V3_FILE, TEKKEN_FILE, file_of
from harness.errors import OK, BadInput, error_text

FILES = {"tekken": (TEKKEN_FILE, "tekken.json"), "mistral-v3": (MISTRAL_V3_FILE, "tokenizer.model.v3")}
"""For each vocabulary its file in mistral-common, and the file's name in a model's folder."""


def own_tokenizer(name: str) -> Any:
    """Returns vLLM's object for `--tokenizer-mode mistral`. Raises BadInput where vLLM cannot be imported."""
    try:
        bare_package("vllm", "vllm.v1", "vllm.v1.structured_output")
        from vllm.tokenizers.mistral import MistralTokenizer  # type: ignore[import-not-found]
    except ImportError as error:
        raise BadInput(f"{error}; docs/engines.md says how vLLM is installed for this") from error

    with tempfile.TemporaryDirectory() as folder:
        packaged, in_folder = FILES[name]
        shutil.copy(file_of(packaged), Path(folder) / in_folder)
        return MistralTokenizer.from_pretrained(folder)


def by_xgrammar(tokenizer: Any) -> list[bytes]:
    """Returns the bytes of each id as `XgrammarBackend.__post_init__` hands them to the library."""
    info = xgrammar.TokenizerInfo(
        encoded_vocab=tokenizer.vocab,
        vocab_type=xgrammar.VocabType.RAW if tokenizer.is_tekken else xgrammar.VocabType.BYTE_FALLBACK,
        vocab_size=len(tokenizer.vocab),
        stop_token_ids=[tokenizer.eos_token_id],
        add_prefix_space=True,
    )
    read = [bytes(text) for text in info.decoded_vocab]
    read[tokenizer.eos_token_id] = b""
    return read


def by_outlines(tokenizer: Any) -> list[bytes]:
    """Returns the bytes of each id in the table that `get_outlines_vocabulary` makes."""
    from vllm.v1.structured_output.utils import _reduced_vocabulary  # type: ignore[import-not-found]

    read = [b""] * len(tokenizer.vocab)
    for text, ids in _reduced_vocabulary(tokenizer).items():
        for token in ids:
            read[token] = text
    return read


def by_guidance(tokenizer: Any) -> list[bytes]:
    """Returns the bytes of each id in the tokenizer that `GuidanceBackend` takes."""
    made = tokenizer.llg_tokenizer
    return [
        b"" if made.is_special_token(token) else made.decode_bytes([token])
        for token in range(len(tokenizer.vocab))
    ]


def lines(name: str) -> Iterator[str]:
    """Yields a line for each wrapper, and behind it three examples of each kind of wrong ids."""
    vocabulary, tokenizer = load_vocabulary(name), own_tokenizer(name)
    for wrapper, read in (("xgrammar", by_xgrammar), ("outlines", by_outlines), ("guidance", by_guidance)):
        try:
            wrong = wrong_tokens(vocabulary, read(tokenizer))
        except Exception as error:
            yield f"vllm:wrapper={wrapper} on {name}: it raises {error_text(error)}"
            continue
        kinds = counts_of(wrong)
        yield f"vllm:wrapper={wrapper} on {name}: {len(wrong):,} ids wrong ({kinds_text(kinds) or 'none'})"
        for kind in kinds:
            for each in [each for each in wrong if each.kind == kind][:3]:
                yield f"  {each.token}: {each.true!r} is read as {each.read!r}"


@script
def main() -> int:
    """Exit code: 0, or 2 without vLLM."""
    for name in FILES:
        print(*lines(name), sep="\n", flush=True)
    return OK


if __name__ == "__main__":
    sys.exit(main())
