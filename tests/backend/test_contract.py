"""The checklist: a right adapter passes it, each wrong one fails exactly its own checks, and every real one
keeps the contract."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import NoReturn

import miniatures
import pytest
from miniatures import wrong_ends
from places import SUPPORT

from harness.backend import registry
from harness.backend.contract import LONGEST, Check, check_adapter, check_name, checks, checkup
from harness.backend.grammar import Adapter, Grammar
from harness.backend.options import option_table
from harness.backend.process.lost import Lost
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.errors import BadInput

VOCABULARIES = {"bytes": byte_vocabulary, "small": miniatures.small_vocabulary}


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("name", ["Reference", "JsonOnly"])
def test_a_right_adapter_passes_every_check(name: str, vocabulary: str) -> None:
    results = check_adapter(getattr(miniatures, name)(VOCABULARIES[vocabulary]()))
    skipped = {result.check for result in results if result.status != "passed"}
    without = {"special_and_padding_tokens_are_never_allowed"} if vocabulary == "bytes" else set()
    assert skipped == without | {"each_id_of_end_of_sequence_ends_alike"}


@pytest.mark.parametrize("mutant", miniatures.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_adapter_fails_exactly_its_own_checks(mutant: type[Adapter]) -> None:
    vocabulary = miniatures.small_vocabulary()
    results = [check_adapter(mutant(vocabulary), [check])[0] for check in checks()]
    assert {result.check for result in results if result.status in ("failed", "error")} == miniatures.MUTANTS[
        mutant
    ]
    assert all(result.text for result in results if result.status != "passed")


def test_every_check_fails_on_some_wrong_adapter() -> None:
    noticed = set().union(*miniatures.MUTANTS.values(), *wrong_ends.MUTANTS.values())
    assert noticed >= {check_name(check) for check in checks()}


def test_each_check_has_its_own_name() -> None:
    found = [check_name(check) for check in checks()]
    assert len(found) == len(set(found)) > 25


def test_what_a_wrapped_backend_cannot_do_is_skipped() -> None:
    class CannotGoBack(miniatures.reference.ReferenceObject):
        def rollback(self, count: int) -> None:
            raise NotImplementedError

        def copy(self) -> NoReturn:
            raise NotImplementedError

    class Wrapper(miniatures.Reference):
        object_class = CannotGoBack

    results = {result.check: result for result in check_adapter(Wrapper(miniatures.small_vocabulary()))}
    going_back = {name for name in results if "rollback" in name or "copy" in name}
    skipped = {name for name, result in results.items() if result.status == "skipped"}
    assert skipped == going_back | {"each_id_of_end_of_sequence_ends_alike"}
    assert all("does not implement" in results[name].text for name in going_back)
    assert not {result.status for result in results.values()} & {"failed", "error"}


def test_what_a_backend_says_at_length_is_cut() -> None:
    class Jumps(miniatures.reference.ReferenceObject):
        def jump_forward(self) -> bytes:
            return b"a" * 1_000_000

        def rollback(self, count: int) -> NoReturn:
            raise RuntimeError("x<y>\n" * 1_000_000)

    class Talks(miniatures.Reference):
        object_class = Jumps

    texts = [result.text for result in check_adapter(Talks(miniatures.small_vocabulary())) if result.text]
    assert max(map(len, texts)) == LONGEST and all(text.isprintable() for text in texts)
    lost = checkup._lost("it_compiles", Lost("x" * 2000))
    assert (len(lost.text), lost.text[-1]) == (LONGEST, "…")


def test_what_a_backend_raises_is_an_error_in_one_line() -> None:
    class Panic(BaseException):
        """As Rust's panics, no Exception."""

    class Panics(miniatures.Reference):
        def compile(self, grammar: Grammar) -> NoReturn:
            raise Panic("index out of\nbounds")

    results = check_adapter(Panics(miniatures.small_vocabulary()))
    told, *others = sorted(
        results, key=lambda result: result.check != "distribution_and_dialects_are_declared"
    )
    assert told.status == "passed", "for this nothing is compiled"
    assert {(result.status, result.text) for result in others} == {("error", "Panic: index out of bounds")}


@cache
def vocabulary_named(name: str) -> Vocabulary:
    return load_vocabulary(name)


@cache
def adapter_for(spec: str, vocabulary: str) -> Adapter:
    """Made once: with a large vocabulary this takes longer than the checks."""
    return registry.make(registry.parse_spec(spec), vocabulary_named(vocabulary))


def is_engine(name: str) -> bool:
    """Is it a wrapper of another backend's library, taken from a serving engine?"""
    return name in ("sglang", "vllm")


def specs_to_check(name: str) -> list[str]:
    """The adapter with its defaults, and with each other value of each of its options."""
    try:
        options = option_table(registry.load(name))
    except BadInput:
        return []  # its library is not installed here
    if is_engine(name):
        return []  # not ours to fix: docs/engines.md lists what they break
    others = [
        (option, choice)
        for option in options
        for choice in option.choices
        if choice != str(option.default).lower()
    ]
    return [name, *(f"{name}:{option.name}={choice}" for option, choice in others)]


BREAKS = {
    ("formatron", "bytes"): {"a_valid_output_is_accepted_to_its_end"},
    ("formatron", "probe"): {"a_valid_output_is_accepted_to_its_end", "the_mask_says_what_accept_token_does"},
}
"""What the library itself does not keep, by backend and vocabulary: docs/more_backends.md. Once it does, this
fails."""


def holds(spec: str, vocabulary: str, check: Check) -> None:
    """The check's outcome is the one that is known of this backend."""
    result = check_adapter(adapter_for(spec, vocabulary), [check])[0]
    if result.status == "skipped":
        pytest.skip(result.text)
    known = check_name(check) in BREAKS.get((spec, vocabulary), ())
    assert result.status == ("failed" if known else "passed"), result.text


@pytest.mark.parametrize("check", checks(), ids=check_name)
@pytest.mark.parametrize("spec", [spec for name in registry.names() for spec in specs_to_check(name)])
def test_every_adapter_keeps_the_contract(spec: str, check: Check) -> None:
    holds(spec, "bytes", check)


ENDS_THE_PROCESS = ("llama-cpp",)
"""Tokens of this vocabulary make the library end the process, this one too:
tests/backend/test_adapter_llama_cpp.py has it in another."""


@pytest.mark.parametrize("check", checks(), ids=check_name)
@pytest.mark.parametrize(
    "name", [name for name in registry.names() if specs_to_check(name) and name not in ENDS_THE_PROCESS]
)
def test_every_adapter_keeps_the_contract_on_a_vocabulary_with_everything(name: str, check: Check) -> None:
    holds(name, "probe", check)


@pytest.mark.parametrize(
    ("does", "status", "text"),
    [
        ("time.sleep(60)", "timeout", "it did not load within 2 s"),
        ("os.closerange(3, 64); time.sleep(60)", "error", "it closed the pipe on which it answers"),
        ("os.abort()", "error", "the process was killed by SIGABRT while it loaded"),
    ],
)
def test_a_backend_that_does_not_load_in_time_breaks_no_contract(
    does: str, status: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an error, like one that dies; of one that closed its pipes it was said that SIGKILL, which was
    ours, had killed it."""
    (tmp_path / "loading_plugin.py").write_text(
        "import os, time\n"
        "from miniatures.reference import Reference\n"
        "class Loads(Reference):\n"
        "    def __init__(self, vocabulary):\n"
        f"        {does}\n"
        "        super().__init__(vocabulary)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(SUPPORT), str(tmp_path))))
    (result,) = checkup.run_checks("loading_plugin:Loads", "bytes", 2.0, sys.executable)
    assert (result.check, result.status) == ("load", status) and result.text.startswith(text), result
