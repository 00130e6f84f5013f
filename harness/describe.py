"""What the backends and vocabularies of a run are, found out in a process of its own so that the coordinator imports none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput
from harness.process import ENVIRONMENT
from harness.row import Arm

if TYPE_CHECKING:
    from harness.grammar import Adapter
    from harness.registry import BackendSpec


@dataclass(frozen=True)
class Description:
    """Arms in the order asked for, and vocabularies by name (`size`, `sha256`)."""

    arms: tuple[Arm, ...]
    vocabularies: dict[str, dict[str, Any]]


def describe(specs: Sequence[str], vocabularies: Sequence[str], python: str = sys.executable) -> Description:
    """Ask that process. Raises BadInput for an option, version or vocabulary that is not to be had."""
    read, write = os.pipe()
    command = [python, "-m", "harness.describe", str(write), json.dumps([list(specs), list(vocabularies)])]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(write,),
        env={**os.environ, **ENVIRONMENT},
    ) as process:
        os.close(write)
        printed, _ = process.communicate()
    with open(read, "rb") as file:
        said = file.read()
    if not said:
        last = printed.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise BadInput(f"a backend ended the process that imported it (exit {process.returncode}): {''.join(last)}")
    answer = json.loads(said)
    if "bad_input" in answer:
        raise BadInput(answer["bad_input"])
    arms = tuple(Arm(**{**each, "dialects": tuple(each["dialects"])}) for each in answer["arms"])
    return Description(arms, answer["vocabularies"])


def main(arguments: list[str]) -> None:
    """`FD [SPECS, VOCABULARIES]`: writes one JSON object to the file descriptor."""
    from harness.registry import parse_specs
    from harness.vocabulary import load_vocabulary

    specs, names = json.loads(arguments[1])
    try:
        arms = [_arm(spec) for text in specs for spec in parse_specs(text)]
        vocabularies = {}
        for name in names:
            vocabulary = load_vocabulary(name)
            vocabularies[name] = {"size": vocabulary.size, "sha256": vocabulary.sha256}
        answer: dict[str, Any] = {"arms": [asdict(each) for each in arms], "vocabularies": vocabularies}
    except BadInput as error:
        answer = {"bad_input": str(error)}
    with open(int(arguments[0]), "w") as file:
        json.dump(answer, file)


def _arm(spec: BackendSpec) -> Arm:
    from harness.registry import installed_version, load, make
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
    version = installed_version(adapter.distribution) or ""
    return Arm(spec.name, version, options, adapter.distribution, tuple(sorted(adapter.dialects)), adapter.mask_format)


if __name__ == "__main__":
    main(sys.argv[1:])
