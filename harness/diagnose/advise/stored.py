"""What an advice adds to its run, kept beside the rows so that the page can show it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.diagnose.advise.rewritten import Change
from harness.errors import BadInput
from harness.shape import LONGEST_LINE, json_line, shaped
from harness.text import listed, one_line
from harness.whole_files import write_whole

FILE = "advice.json"

MOST_NAMES = 6
"""Schemas that are named of those that no document fits."""

WHOSE = "your"
"""Whose the cases of an advice are, for its sentence."""


def choice_of(engine: str, is_recommended: bool) -> str:
    """Returns what stands before the option of the engine that chooses a backend."""
    return f"For {engine}, write:" if is_recommended else f"If it must be one, write for {engine}:"


def no_document_sentence(names: Sequence[str]) -> str:
    """Returns what is said of the schemas that no document fits; empty where there is none."""
    if not names:
        return ""
    shown = [one_line(name, 30) for name in names[:MOST_NAMES]]
    left = len(names) - MOST_NAMES
    fits = f"No document fits {listed([*shown, f'{left} more'] if left > 0 else shown)}"
    it, itself = ("it", "schema itself") if len(names) == 1 else ("them", "schemas themselves")
    return f"{fits}: a backend that refuses {it} is right, so look at the {itself}."


def verb_for(engine: str) -> str:
    """Returns what one does with a backend, of an engine or, where it is empty, in a program of one's own."""
    return "Set" if engine else "Use"


@dataclass(frozen=True)
class StoredAdvice:
    """The part of an advice that does not follow from the rows of its run."""

    engine: str
    engine_option: str
    notes: tuple[str, ...]
    changes: tuple[Change, ...]
    unchanged: tuple[str, ...]
    is_recommended: bool = True
    """Is the backend to be used, or only the least bad?"""
    not_looked_at: int = 0
    """The number of further cases for which no rewrite was looked for, because there are so many."""
    with_all: str = ""
    """What the backend to use comes to with all changes, as a clause; empty where it gains no case."""

    unsatisfiable: tuple[str, ...] = ()
    """The names of the schemas that no document fits."""
    untried: str = ""
    """What of the engine was not tried, as a clause, because of which the answer is not sure."""
    unfit: tuple[str, ...] = ()
    """The ids of the schemas that no document fits."""

    @property
    def telling(self) -> dict[str, Any]:
        """Returns what `answer_of` is told, so that it answers as the advice did."""
        return {"verb": self.verb, "whose": WHOSE, "untried": self.untried, "unfit": self.unfit}

    @property
    def no_document(self) -> str:
        """Returns what is said of the schemas that no document fits; empty where there is none."""
        return no_document_sentence(self.unsatisfiable)

    @property
    def choice(self) -> str:
        """Returns what stands before the engine's option."""
        return choice_of(self.engine, self.is_recommended)

    @property
    def verb(self) -> str:
        """Returns what one does with a backend: an engine is set to it."""
        return verb_for(self.engine)


def write_advice(folder: Path, advice: StoredAdvice) -> None:
    """Writes the advice into the folder of its run."""
    write_whole(folder / FILE, json.dumps(asdict(advice), indent=1) + "\n")


def stored_advice(folder: Path) -> StoredAdvice | None:
    """Returns the advice that lies in a run's folder; None where none does. Raises BadInput for a file that
    is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    if path.stat().st_size > LONGEST_LINE:
        raise BadInput(f"{path}: larger than any advice that we write; move it away")
    try:
        return shaped(StoredAdvice, json_line(path.read_bytes(), str(path)))
    except ValueError as error:
        raise BadInput(
            f"{path}: no advice of ours ({error}); the file is damaged, or is another; move it away"
        ) from error
