"""How many token ids each library's own loader reads wrongly, by family:
`python benchmarks/token_loaders.py DIR [BACKENDS [FAMILY ...]]`.

The table of docs/tokenizers.md. A family that was fetched as a GGUF file is written to DIR in the form of
its copy on the hub, for loaders that read nothing else: the same ids, names, added tokens and decoder.
Merges and patterns are left out; they split texts, and say nothing of the bytes of an id. Only what is
installed is asked. Each line is printed as soon as it is known, and each reading is kept in DIR as JSON, so
that several environments can fill one folder. At the end stands the table of all that DIR has, in Markdown,
and DIR/readings.json has its figures with a few ids of each kind.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.process.short_child import answer_of_a_child
from harness.backend.registry import make, parse_specs
from harness.backend.token_bytes.compare import kinds_text
from harness.backend.token_bytes.look import example, summary_of, wrong_of
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.backend.vocabulary.families import BYTE_LEVEL, FAMILIES, Family
from harness.backend.vocabulary.fetched import folder_of, is_fetched
from harness.backend.vocabulary.gguf_reader import read_metadata
from harness.errors import OK, BadInput, did_you_mean, error_text

BACKENDS = "xgrammar,llguidance,outlines-core,lm-format-enforcer,llama-cpp"
SECONDS = 900.0
USER_DEFINED = 4
"""The type, in a GGUF file, of a token that stands for a text as it is."""


def hub_folder(family: Family, vocabulary: Vocabulary, to: Path) -> Path:
    """Returns a folder of the family in the form of its copy on the hub: its own where it has one, else one
    that is written below `to`."""
    if vocabulary.folder is not None:
        return vocabulary.folder
    folder = to / family.name
    folder.mkdir(parents=True, exist_ok=True)
    metadata = read_metadata(folder_of(family) / "vocabulary.gguf")
    by_kind = _by_letters if family.kind == BYTE_LEVEL else _by_characters
    document = by_kind(vocabulary, metadata)
    ends = list(vocabulary.eos_tokens)
    files = {
        "tokenizer": document,
        "tokenizer_config": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": vocabulary.special_tokens[ends[0]],
        },
        "generation_config": {"eos_token_id": ends},
        "config": {"vocab_size": vocabulary.size},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return folder


def _by_letters(vocabulary: Vocabulary, metadata: dict[str, Any]) -> dict[str, Any]:
    pieces, user = _pieces(vocabulary, metadata)
    plain = {piece: token for token, piece in pieces.items() if vocabulary.tokens[token]}
    names = vocabulary.special_tokens | {token: pieces[token] for token in user}
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": plain, "merges": []}
    return _document(model, _added(names, user), pre_tokenizer=step, decoder=step)


def _pieces(vocabulary: Vocabulary, metadata: dict[str, Any]) -> tuple[dict[int, str], set[int]]:
    """Returns the piece of each id that is no padding, and the ids that stand for a text as it is."""
    pieces = {token: text.decode() for token, text in enumerate(metadata["tokenizer.ggml.tokens"])}
    kinds = metadata["tokenizer.ggml.token_type"]
    user = {token for token in pieces if kinds[token] == USER_DEFINED and vocabulary.tokens[token]}
    return {token: piece for token, piece in pieces.items() if token not in vocabulary.padding_tokens}, user


def _by_characters(vocabulary: Vocabulary, metadata: dict[str, Any]) -> dict[str, Any]:
    pieces, user = _pieces(vocabulary, metadata)
    ids = {piece: token for token, piece in pieces.items()}
    names = vocabulary.special_tokens | {token: pieces[token] for token in user}
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    spaces: list[dict[str, Any]] = [{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    if metadata["tokenizer.ggml.model"] == b"llama":
        spaces.insert(0, {"type": "Prepend", "prepend": "▁"})
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    model = {
        "type": "BPE",
        "vocab": ids,
        "merges": [],
        "byte_fallback": True,
        "fuse_unk": True,
        "unk_token": pieces[metadata.get("tokenizer.ggml.unknown_token_id", 0)],
    }
    return _document(
        model,
        _added(names, user),
        normalizer={"type": "Sequence", "normalizers": spaces},
        decoder={"type": "Sequence", "decoders": steps},
    )


def _added(names: dict[int, str], plain: set[int]) -> list[dict[str, Any]]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [
        {"id": token, "content": name, **flags, "special": token not in plain}
        for token, name in sorted(names.items())
    ]


def _document(model: dict[str, Any], added: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor"))
    return {"version": "1.0", **nothing, "added_tokens": added, "model": model, **parts}


READ_GGUF = ("llama-cpp",)
"""The backends whose own loader reads a GGUF file; the others read the hub's form."""


def read(spec: str, own: Vocabulary, on_hub: Vocabulary | None) -> str:
    """Returns the reading as JSON, with every wrong id: of the family in the form that the backend's own
    loader reads, which is the fetched GGUF file or the form of the hub. The latter is None where not every id
    would be the same in it."""
    (backend,) = parse_specs(spec)
    form = own if backend.name in READ_GGUF else on_hub
    if form is None or (form is own and own.gguf is None):
        return json.dumps({"problem": "its own loader reads no form in which this family is at hand"})
    try:
        begun = perf_counter()
        adapter = make(backend, form)
        seconds = perf_counter() - begun
    except Exception as error:
        return json.dumps({"problem": error_text(error)[:500]})
    wrong = wrong_of(adapter)
    ids = [example(each) for each in wrong or ()]
    return json.dumps(asdict(summary_of(adapter, wrong)) | {"seconds": seconds, "ids": ids})


SHORT = {
    "special_as_text": "control",
    "padding_as_text": "padding",
    "empty_as_text": "empty",
    "text_as_special": "never text",
    "leading_space_lost": "space lost",
    "leading_space_added": "space added",
    "marker_kept": "marker",
    "byte_as_text": "name of a byte",
    "letters_kept": "letters",
    "text_as_letters": "read as letters",
    "replacement_character": "U+FFFD",
    "text_of_another": "another's",
    "other": "other",
}
"""A word for each kind of difference, explained below the table of docs/tokenizers.md."""


def readings_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns what is known of each family (in the order of their table) and backend, without the list of all
    wrong ids and the time."""
    found: dict[str, dict[str, Any]] = {}
    for name in FAMILIES:
        for path in sorted(folder.glob(f"{name}.*.json")):
            reading = json.loads(path.read_text())
            for left_out in ("ids", "seconds"):  # all wrong ids are many, and the machine is not said
                reading.pop(left_out, None)
            found.setdefault(name, {})[path.name.removeprefix(f"{name}.").removesuffix(".json")] = reading
    return found


def table_of(readings: dict[str, dict[str, Any]]) -> str:
    """Returns the table in Markdown: wrong ids by family and backend."""
    backends = sorted({backend for by_backend in readings.values() for backend in by_backend})
    lines = [
        ["family", "ids", *(backend.replace(".", ":", 1) for backend in backends)],
        ["---"] * (2 + len(backends)),
    ]
    for name, by_backend in readings.items():
        cells = [_cell(by_backend.get(backend)) for backend in backends]
        lines.append([name, f"{FAMILIES[name].width:,}", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(reading: dict[str, Any] | None) -> str:
    if reading is None or "problem" in reading:
        return "–"
    if reading["refused"]:
        return "refused"
    return ", ".join(f"{count:,} {SHORT[kind]}" for kind, count in reading["kinds"].items()) or "0"


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("to", type=Path, metavar="DIR")
    parser.add_argument("backends", nargs="?", default=BACKENDS, metavar="BACKENDS")
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    options = parser.parse_args(arguments)
    to: Path = options.to
    specs = [str(spec) for spec in parse_specs(options.backends)]
    for name in options.families:
        if name not in FAMILIES:
            raise BadInput(f'there is no family "{name}"{did_you_mean(name, list(FAMILIES))}')
    to.mkdir(parents=True, exist_ok=True)
    for name in options.families or FAMILIES:
        family = FAMILIES[name]
        if not is_fetched(family):
            continue
        own = load_vocabulary(name)
        folder = hub_folder(family, own, to / "hub")
        vocabulary = load_vocabulary(f"hf:{folder}")
        differing = [
            token
            for token, text in enumerate(own.tokens)
            if token >= vocabulary.size or vocabulary.tokens[token] != text
        ]
        note = "its own files" if own.folder else "written in that form"
        if differing:
            note = f"as it was fetched only: {len(differing)} ids would be others in that form"
        print(f"{name} ({note})", flush=True)
        for spec in specs:
            kept = to / f"{name}.{spec.replace(':', '.')}.json"
            if not kept.exists():
                answer = answer_of_a_child(
                    partial(read, spec, own, None if differing else vocabulary), SECONDS
                )
                kept.write_text(answer or '{"problem": "lost, or not answered in time"}')
            reading = json.loads(kept.read_text())
            why = reading.get("problem") or reading["refused"]
            counts = why or f"{reading['wrong']} wrong ({kinds_text(reading['kinds'])})"
            print(f"  {spec}: {counts} [{reading.get('seconds', 0):.1f} s]", flush=True)
    readings = readings_in(to)
    (to / "readings.json").write_text(json.dumps(readings, indent=1) + "\n", "utf-8")
    print(table_of(readings))
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
