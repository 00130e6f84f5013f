"""Vocabularies by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness.backend.garbage import no_garbage_collection
from harness.backend.vocabulary.families import FAMILIES
from harness.backend.vocabulary.fetched import load_family, require_fetched
from harness.backend.vocabulary.model import Vocabulary, byte_vocabulary
from harness.errors import BadInput, did_you_mean
from harness.paths import expanded

KINDS = ("hf", "tiktoken", "gguf")
"""What may stand in front of a colon: how the source behind it is read."""


def vocabulary_names() -> list[str]:
    """Returns the names that load on every installation. Families that were fetched, `hf:NAME_OR_FOLDER`,
    `tiktoken:NAME_OR_FILE`, `gguf:FILE` and paths load as well."""
    return sorted(_BUILT_IN)


def prepare_vocabulary(name: str) -> str:
    """Makes sure that the vocabulary's files are on this machine, and returns the name under which any
    process loads them.

    Downloads what comes from a hub; paths come back absolute, built-in names in their usual spelling.
    Raises BadInput if there is no such vocabulary or its hub is out of reach.
    """
    kind, source = vocabulary_kind(name)
    if kind == "hf":
        from harness.backend.vocabulary import huggingface

        return f"hf:{huggingface.prepare(source)}"
    if kind == "tiktoken":
        from harness.backend.vocabulary import tiktoken_encoding

        return f"tiktoken:{tiktoken_encoding.prepare(source)}"
    if kind == "gguf":
        from harness.backend.vocabulary import gguf

        return f"gguf:{gguf.prepare(source)}"
    if kind == "family":
        require_fetched(FAMILIES[source])
    return source


def recorded_name(name: str) -> str:
    """Returns the name under which a run records the vocabulary, as `prepare_vocabulary` does, but loads and
    downloads nothing. Raises BadInput for a name that is of no kind."""
    kind, source = vocabulary_kind(name)
    if kind not in KINDS:
        return source
    if kind == "tiktoken":
        from harness.backend.vocabulary import tiktoken_encoding

        return f"tiktoken:{tiktoken_encoding.named(source)}"
    path = expanded(source)
    if kind == "hf" and path.name == "tokenizer.json" and path.is_file():
        path = path.parent
    is_here = path.is_dir() if kind == "hf" else path.is_file()
    return f"{kind}:{path.absolute() if is_here else source}"


def load_vocabulary(name: str) -> Vocabulary:
    """Returns the vocabulary of that name, from files on this machine only.

    Raises BadInput if there is none, or if its files are not here yet (see `prepare_vocabulary`).
    """
    kind, source = vocabulary_kind(name)
    # A vocabulary is hundreds of thousands of objects, all kept: looking for garbage among them more than
    # doubles the time.
    with no_garbage_collection():
        if kind == "hf":
            from harness.backend.vocabulary import huggingface

            return huggingface.load(source)
        if kind == "tiktoken":
            from harness.backend.vocabulary import tiktoken_encoding

            return tiktoken_encoding.load(source)
        if kind == "gguf":
            from harness.backend.vocabulary import gguf

            return gguf.load(source)
        if kind == "family":
            return load_family(source)
        return _BUILT_IN[source]()


def vocabulary_kind(name: str) -> tuple[str, str]:
    """Returns the kind (`built-in`, `family`, or one of `KINDS`) and what to load of it; nothing is loaded.

    A path needs no kind in front of it: a folder or a `tokenizer.json` is a Hugging Face tokenizer, and
    files of ranks and GGUF files are known by their names' ends.

    Raises BadInput for a name that is of no kind.
    """
    prefix, colon, rest = name.partition(":")
    if colon and prefix.lower() in KINDS:
        if not rest:
            raise BadInput(f'vocabulary "{name}": nothing after the colon; write {prefix}:NAME')
        return prefix.lower(), rest
    plain = name.lower().replace("_", "-")
    if plain in _BUILT_IN:
        return "built-in", plain
    if plain in FAMILIES:
        return "family", plain
    with suppress(OSError, RuntimeError):  # what cannot be a path names no folder
        path = Path(name).expanduser()
        if name and path.is_dir():
            return "hf", name
        if path.name == "tokenizer.json":
            if not path.is_file():
                raise BadInput(f"{name}: no such file")
            return "hf", str(path.parent)
        if path.suffix.lower() in (".tiktoken", ".gguf"):
            return path.suffix[1:].lower(), name
    known = [*vocabulary_names(), "hf:NAME_OR_FOLDER", "tiktoken:NAME_OR_FILE", "gguf:FILE", *FAMILIES]
    raise BadInput(f'unknown vocabulary "{name}"{did_you_mean(plain, known)}')


def _tekken() -> Vocabulary:
    from harness.backend.vocabulary import mistral

    return mistral.tekken()


def _mistral_v3() -> Vocabulary:
    from harness.backend.vocabulary import mistral

    return mistral.mistral_v3()


def _probe() -> Vocabulary:
    from harness.backend.vocabulary import probe

    return probe.probe_vocabulary()


_BUILT_IN: dict[str, Callable[[], Vocabulary]] = {
    "bytes": byte_vocabulary,
    "mistral-v3": _mistral_v3,
    "probe": _probe,
    "tekken": _tekken,
}
