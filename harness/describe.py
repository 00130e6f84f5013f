"""What the backends and vocabularies of a run are, found out in a process of its own so that the coordinator imports none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput
from harness.guard import forbid_network
from harness.process import ENVIRONMENT, module
from harness.row import Arm

if TYPE_CHECKING:
    from harness.grammar import Adapter
    from harness.registry import BackendSpec


SECONDS = 300.0
"""For importing every backend and loading every vocabulary of a run."""


@dataclass(frozen=True)
class Description:
    """Arms in the order asked for, and vocabularies by name (`size`, `sha256`)."""

    arms: tuple[Arm, ...]
    vocabularies: dict[str, dict[str, Any]]


def describe(specs: Sequence[str], vocabularies: Sequence[str], pythons: Sequence[str] = ()) -> Description:
    """Ask a process of each environment; `pythons` has the interpreter of each backend, where that is not always ours.

    Raises BadInput for an option, version or vocabulary that is not to be had.
    """
    pythons = pythons or [sys.executable] * len(specs)
    arms: dict[int, Arm] = {}
    found: dict[str, dict[str, Any]] = {}
    for python in dict.fromkeys([sys.executable, *pythons]):
        ours = python == sys.executable
        asked = [place for place, each in enumerate(pythons) if each == python]
        answer = _ask(["arms", json.dumps([specs[place] for place in asked]), json.dumps(list(vocabularies) if ours else [])], python)
        if "bad_input" in answer:
            raise BadInput(answer["bad_input"])
        for place, each in zip(asked, answer["arms"], strict=True):
            arms[place] = Arm.from_json(each | {"python": "" if ours else python})
        found |= answer["vocabularies"]
    return Description(tuple(arms[place] for place in range(len(specs))), found)


def places(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The distribution of each backend and its version here, both empty for none. Raises BadInput for one that cannot be imported."""
    answer = _ask(["places", json.dumps(list(names))], sys.executable)
    if "bad_input" in answer:
        raise BadInput(answer["bad_input"])
    return {name: (each[0], each[1]) for name, each in answer["places"].items()}


def catalogue(python: str = sys.executable) -> list[dict[str, Any]]:
    """Every adapter that can be found: `name`, `distribution`, `version`, `problem` (why it cannot be used), `dialects`, `options`."""
    found: list[dict[str, Any]] = _ask(["catalogue"], python)
    return found


def _ask(arguments: list[str], python: str) -> Any:
    """What this module's `main` says, in a process of its own: backends print, and can end the process that imports them."""
    read, write = os.pipe()
    with subprocess.Popen(
        [*module("harness.describe", python), str(write), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(write,),
        env={**os.environ, **ENVIRONMENT},
    ) as process:
        os.close(write)
        try:
            printed, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
            printed += f"\nno answer after {SECONDS:.0f} s".encode()
    with open(read, "rb") as file:
        said = file.read()
    if not said:
        last = printed.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise BadInput(f"a backend ended the process that imported it (exit {process.returncode}): {''.join(last)}")
    return json.loads(said)


def main(arguments: list[str]) -> None:
    """`FD arms SPECS VOCABULARIES`, `FD places NAMES`, all as JSON lists, or `FD catalogue`: writes one JSON value to the descriptor."""
    forbid_network()
    answers: dict[str, Callable[..., Any]] = {"arms": _describe, "places": _places, "catalogue": _catalogue}
    answer = answers[arguments[1]](*map(json.loads, arguments[2:]))
    with open(int(arguments[0]), "w") as file:
        json.dump(answer, file)


def _catalogue() -> list[dict[str, Any]]:
    from harness.registry import installed_version, load, names, option_table

    found = []
    for name in names():
        entry: dict[str, Any] = {"name": name, "distribution": "", "version": "", "problem": "", "dialects": [], "options": []}
        try:
            adapter = load(name)
            entry["distribution"], entry["version"] = adapter.distribution, installed_version(adapter.distribution) or ""
            if adapter.distribution and not entry["version"]:
                entry["problem"] = f"{adapter.distribution} is not installed"
            entry["dialects"] = sorted(adapter.dialects)
            for option in option_table(adapter):
                entry["options"].append(f"{option.name}={'|'.join(option.choices) or option.kind} (default {option.default})")
        except BadInput as error:
            entry["problem"] = str(error)
        found.append(entry)
    return found


def _places(names: list[str]) -> dict[str, Any]:
    from harness.registry import installed_version, load

    try:
        found = {name: load(name).distribution for name in names}
    except BadInput as error:
        return {"bad_input": str(error)}
    return {"places": {name: [each, installed_version(each) or ""] for name, each in found.items()}}


def _describe(specs: list[str], names: list[str]) -> dict[str, Any]:
    from harness.registry import parse_specs
    from harness.vocabulary import load_vocabulary

    try:
        arms = [_arm(spec) for text in specs for spec in parse_specs(text)]
        vocabularies = {}
        for name in names:
            vocabulary = load_vocabulary(name)
            vocabularies[name] = {"size": vocabulary.size, "sha256": vocabulary.sha256}
    except BadInput as error:
        return {"bad_input": str(error)}
    return {"arms": [asdict(each) for each in arms], "vocabularies": vocabularies}


def _arm(spec: BackendSpec) -> Arm:
    from harness.registry import load, make, recorded_version
    from harness.vocabulary import byte_vocabulary

    adapter: Adapter | type[Adapter] = load(spec.name)
    try:
        adapter = make(spec, byte_vocabulary())
    except ValueError as error:
        raise BadInput(f'backend "{spec}": {error}') from error
    except BadInput:
        raise
    except Exception:
        pass  # not with 257 tokens, perhaps with the run's vocabulary: its worker will tell
    options = ":".join(f"{name}={value}" for name, value in spec.options)
    return Arm(
        spec.name,
        recorded_version(adapter),
        options,
        adapter.distribution,
        tuple(sorted(adapter.dialects)),
        adapter.mask_format,
        tuple(sorted(adapter.documented)),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
