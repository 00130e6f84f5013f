"""What can be found here, where a third party's adapter breaks the contract or ends the process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.backend import registry
from harness.backend.contract.checkup import run_checks, spellings_kept
from harness.backend.declared import wrongly_declared
from harness.backend.describe import catalogue, describe, places
from harness.backend.installed import chosen_backends
from harness.backend.threads import on_threads
from harness.backend.token_bytes.look import look
from harness.backend.vocabulary import byte_vocabulary
from harness.errors import BadInput
from harness.oracle.reference import Reference

ADAPTER = """
from harness import Adapter
{first}
class Toy(Adapter):
    {distribution}
    dialects = {dialects}
    def __init__(self, vocabulary, *, {option}):
        super().__init__(vocabulary)
    def compile(self, grammar):
        raise NotImplementedError
"""
RIGHT = {
    "first": "",
    "distribution": "distribution = 'numpy'",
    "dialects": "{'choice'}",
    "option": "size: int = 1",
}
WRONG = {
    "exits": ({"first": "raise SystemExit('no GPU here')"}, "cannot be imported: SystemExit: no GPU here"),
    "nameless": ({"distribution": "pass"}, "breaks the contract: distribution must be a text"),
    "texts": (
        {"dialects": "'choice'"},
        "breaks the contract: dialects must be a set of names; it is 'choice'",
    ),
    "unknown": (
        {"dialects": "{'peg', 'choice'}"},
        "breaks the contract: dialects has peg; the known ones are",
    ),
    "floats": (
        {"option": "scale: float = 1.0"},
        'breaks the contract: TypeError: option "scale" is annotated',
    ),
    "bare": ({"option": "size=1"}, 'TypeError: option "size" has no annotation; it must be bool, int'),
}


def plug_in(folder: Path, name: str, **wrong: str) -> None:
    (folder / f"{name}.py").write_text(ADAPTER.format(**RIGHT | wrong))
    announced = folder / f"{name}-1.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (announced / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = {name}:Toy\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages can be imported from, here and in other processes."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(registry.NO_PLUGINS, raising=False)
    return tmp_path


def test_a_broken_plug_in_is_one_line_beside_the_others(folder: Path) -> None:
    plug_in(folder, "right")
    for name, (wrong, _) in WRONG.items():
        plug_in(folder, name, **wrong)
    entries = {entry["name"]: entry for entry in catalogue()}
    assert (entries["right"]["problem"], entries["right"]["options"]) == ("", ["size=int (default 1)"])
    for name, (_, problem) in WRONG.items():
        assert problem in entries[name]["problem"] and "\n" not in entries[name]["problem"]
    said: list[str] = []
    taken = chosen_backends(list(entries.values()), said.append).split(",")
    assert "right" in taken and not WRONG.keys() & set(taken)
    assert "xgrammar" in entries and "exits" in said[0]


@pytest.mark.long
def test_a_plug_in_that_ends_the_process_is_one_line_beside_the_others(folder: Path) -> None:
    plug_in(folder, "right")
    plug_in(folder, "aborts", first="import os; os.abort()")
    entries = {entry["name"]: entry for entry in catalogue()}
    assert entries["right"]["problem"] == ""
    assert "a backend ended the process that loaded it (killed by SIGABRT)" in entries["aborts"]["problem"]


def test_a_backend_that_ends_the_process_is_named(folder: Path) -> None:
    plug_in(folder, "right")
    plug_in(folder, "ends", first="import os; os._exit(0)")
    for ask in (lambda: describe(["right", "ends"], ["bytes"]), lambda: places(["right", "ends"])):
        with pytest.raises(BadInput, match=r'backend "ends" ended the process .*exit code 0'):
            ask()


PANICS = """
class PanicException(BaseException):
    "What pyo3 makes of a panic."
"""


@pytest.mark.parametrize(
    "made",
    [
        "raise PanicException('no such id')",
        "raise SystemExit(3)",
        "raise KeyboardInterrupt()",
        "import os; os.abort()",
        "import os; os._exit(0)",
    ],
)
def test_a_backend_that_cannot_be_made_with_few_tokens_refuses_no_run(folder: Path, made: str) -> None:
    """Perhaps it can with those of the run: its worker will tell."""
    plug_in(folder, "right")
    plug_in(folder, "panics", first=PANICS)
    code = (folder / "panics.py").read_text()
    (folder / "panics.py").write_text(
        code.replace("super().__init__(vocabulary)", f"super().__init__(vocabulary)\n        {made}")
    )
    found = describe(["right", "panics"], ["bytes"], reads=True)
    assert list(found.vocabularies) == ["bytes"]
    assert [(arm.backend, arm.dialects) for arm in found.arms] == [
        (n, ("choice",)) for n in ("right", "panics")
    ]


def test_each_is_asked_alone_once_for_its_place(folder: Path) -> None:
    plug_in(folder, "right")
    note = f"open({str(folder / 'asked')!r}, 'a').write('.'); import os; os._exit(0)"
    plug_in(folder, "ends", first=note)
    with pytest.raises(BadInput, match='backend "ends" ended'):
        places(["right", "ends"])
    assert (folder / "asked").read_text() == ".."  # with the other, and alone


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("import time; time.sleep(600)", "did not load within 3 s"),
        ("raise KeyboardInterrupt", "does not load: it raised KeyboardInterrupt"),
    ],
)
def test_a_backend_that_gives_no_answer_is_named(
    first: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.backend.describe.SECONDS", 3.0)
    plug_in(folder, "right")
    plug_in(folder, "silent", first=first)
    with pytest.raises(BadInput) as caught:
        describe(["right", "silent"], ["bytes"])
    assert str(caught.value).startswith(f'backend "silent" {said}')


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("documented", {1: "x"}, "documented must map causes to sentences; it is {1: 'x'}"),
        ("documented", None, "documented must map causes to sentences; it is None"),
        ("knows_one_end", True, "knows_one_end must be a text, empty where there is none; it is True"),
        ("refused_vocabulary", None, "refused_vocabulary must be a text, empty where there is none; it is"),
        ("wraps", None, "wraps must be a text, empty where there is none; it is None"),
        ("loader", "mine", "loader must be one of 'library', 'bytes', ''; it is 'mine'"),
        ("mask_format", "packed", "mask_format must be one of 'bitmask', 'bool'; it is 'packed'"),
        ("layout", "compact", "layout must be a Layout, or None; it is 'compact'"),
        ("layout_in_tags", 1, "layout_in_tags must be a Layout, or None; it is 1"),
    ],
)
def test_a_field_against_the_contract_is_told(field: str, value: object, said: str) -> None:
    adapter = Reference(byte_vocabulary())
    assert wrongly_declared(adapter) == wrongly_declared(Reference) == ""
    setattr(adapter, field, value)
    assert wrongly_declared(adapter).startswith(said)


def test_an_adapter_that_is_made_with_a_wrong_field_is_bad_input(folder: Path) -> None:
    plug_in(folder, "mine")
    code = (folder / "mine.py").read_text()
    made = "super().__init__(vocabulary)\n        self.loader = 'mine'"
    (folder / "mine.py").write_text(code.replace("super().__init__(vocabulary)", made))
    with pytest.raises(BadInput, match='backend "mine" breaks the contract: loader must be one of'):
        describe(["mine"], ["bytes"])


def test_a_backend_that_refuses_few_tokens_is_only_refused_with_its_options(folder: Path) -> None:
    plug_in(folder, "mine")
    code = (folder / "mine.py").read_text()
    made = "if vocabulary.size < 300:\n            raise ValueError('too few ids')\n        "
    (folder / "mine.py").write_text(code.replace("super()", f"{made}super()"))
    (arm,) = describe(["mine"], ["bytes"]).arms
    assert arm.backend == "mine"
    with pytest.raises(BadInput, match='"mine:size=2": too few ids'):
        describe(["mine:size=2"], ["bytes"])


@pytest.mark.parametrize("name", ["exits", "nameless", "texts", "unknown"])
def test_a_broken_adapter_that_is_named_is_bad_input(folder: Path, name: str) -> None:
    wrong, problem = WRONG[name]
    plug_in(folder, name, **wrong)
    for ask in (lambda: describe([name], []), lambda: places([name])):
        with pytest.raises(BadInput) as caught:
            ask()
        assert str(caught.value).startswith(f'backend "{name}" {problem}')


@pytest.fixture
def deadly(folder: Path) -> str:
    """A vocabulary whose library ends the process that loads it, as a damaged tokenizer can."""
    (folder / "tokenizers.py").write_text(
        "import os, sys\nprint('panicked. aborting.', file=sys.stderr, flush=True)\nos.abort()\n"
    )
    (folder / "deadly").mkdir()
    (folder / "deadly" / "tokenizer.json").write_text("{}")
    return f"hf:{folder / 'deadly'}"


def test_a_vocabulary_that_ends_the_process_is_named(folder: Path, deadly: str) -> None:
    """The line tells what its library printed, and not what faulthandler did."""
    plug_in(folder, "right")
    told = f'vocabulary "{deadly}" ended the process that loaded it (killed by SIGABRT): panicked. aborting.'
    for ask in (
        lambda: describe(["right"], ["bytes", deadly]),
        lambda: describe(["right"], [deadly], reads=True),
        lambda: list(run_checks("right", deadly, 60.0, sys.executable)),
        lambda: list(spellings_kept("right", deadly, 60.0, sys.executable)),
        lambda: look("right", deadly, 60.0, sys.executable),
        lambda: on_threads("right", deadly, 1.0, 60.0, sys.executable),
    ):
        with pytest.raises(BadInput) as caught:
            ask()
        assert str(caught.value) == told


def test_a_backend_that_is_lost_with_few_tokens_does_not_hide_the_vocabulary(
    folder: Path, deadly: str
) -> None:
    plug_in(folder, "panics")
    code = (folder / "panics.py").read_text()
    made = "super().__init__(vocabulary)\n        import os; os.abort()"
    (folder / "panics.py").write_text(code.replace("super().__init__(vocabulary)", made))
    with pytest.raises(BadInput, match=r'^vocabulary "hf:.*deadly" ended the process'):
        describe(["panics"], [deadly])
