"""Objects on several threads: what differs is found, in the way in which it differs, and nothing else is."""

from __future__ import annotations

import json
from functools import partial

import miniatures
import numpy as np
import pytest
from miniatures import wrong_on_threads
from miniatures.wrong_on_threads import WRONG, DiesOnAThread, IsNeverTheSame, RaisesBesideOthers

from harness.backend.grammar import Adapter, Grammar
from harness.backend.registry import make, parse_spec
from harness.backend.threads import SAMPLES, THREADS, WAYS, Rounds, Step, Track, _difference
from harness.backend.vocabulary import byte_vocabulary
from harness.cli.main import main
from harness.oracle.judge import is_valid
from harness.oracle.language import outputs_of


def rounds(adapter: Adapter) -> dict[str, tuple[int, int, list[str]]]:
    """Returns what one round of each way shows: the number of walks, of those that went otherwise, and
    what is said of them."""
    looking = Rounds(adapter)
    assert looking.answer({"way": ""}, b"")[0]["compiled"] > 0
    answers = {way: looking.answer({"way": way}, b"")[0] for way in WAYS}
    return {way: (answer["walks"], answer["otherwise"], answer["shown"]) for way, answer in answers.items()}


@pytest.mark.parametrize("adapter", WRONG, ids=lambda adapter: adapter.__name__)
def test_what_is_wrong_on_threads_is_found_in_its_ways(adapter: type[Adapter]) -> None:
    seen = rounds(adapter(miniatures.small_vocabulary()))
    ways, word = WRONG[adapter]
    assert {way for way, (_, otherwise, _) in seen.items() if otherwise} == ways
    assert any(word in text for way in ways for text in seen[way][2])


@pytest.mark.parametrize("mask", ["bitmask", "bool"])
def test_a_right_adapter_goes_as_alone(mask: str) -> None:
    seen = rounds(make(parse_spec(f"miniatures:Reference:mask={mask}"), miniatures.small_vocabulary()))
    assert all(walks >= THREADS and not otherwise for walks, otherwise, _ in seen.values())


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance", "outlines-core", "reference"])
def test_real_backends_go_as_alone(backend: str) -> None:
    seen = rounds(make(parse_spec(backend), byte_vocabulary()))
    assert all(walks >= THREADS and not otherwise for walks, otherwise, _ in seen.values()), seen


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_the_samples_are_outputs_of_their_grammars(number: int) -> None:
    grammar, outputs = SAMPLES[number]
    if grammar.dialect == "structural_tag":
        assert all(outputs_of(grammar).accepts(output) for output in outputs)
    else:
        assert all(is_valid(grammar, output) for output in outputs)


def test_what_differs_on_one_thread_is_told_of_no_threads() -> None:
    looking = Rounds(IsNeverTheSame(miniatures.small_vocabulary()))
    answer = looking.answer({"way": ""}, b"")[0]
    assert len(answer["unsteady"]) == answer["compiled"] > 0
    assert looking.answer({"way": WAYS[0]}, b"")[0] == {"walks": 0, "otherwise": 0, "shown": []}


# --- the command ---

CHECK = ("--threads", "--vocabularies", "bytes", "--seconds", "0.3")


def named(adapter: type[Adapter]) -> str:
    return f"{wrong_on_threads.__name__}:{adapter.__name__}"


def test_the_command_says_first_that_what_found_nothing_is_a_sample(
    capsys: pytest.CaptureFixture[str], importable_miniatures: None
) -> None:
    assert main(["check", "llguidance", *CHECK]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("llguidance behaves on 8 threads as on one in ") and "a sample" in first


def test_the_command_names_what_differs(
    capsys: pytest.CaptureFixture[str], importable_miniatures: None
) -> None:
    assert main(["check", named(RaisesBesideOthers), *CHECK]) == 1
    said = capsys.readouterr().out
    assert "behaves differently on 8 threads than on one in" in said.splitlines()[0]
    assert r"raises RuntimeError: already\n\x1b[31mborrowed" in said
    assert main(["check", named(RaisesBesideOthers), *CHECK, "--json"]) == 1
    seen = json.loads(capsys.readouterr().out)
    assert [way["way"] for way in seen["ways"]] == [*WAYS] and seen["threads"] == THREADS


def test_a_backend_that_dies_on_threads_is_lost_there(
    capsys: pytest.CaptureFixture[str], importable_miniatures: None
) -> None:
    assert main(["check", named(DiesOnAThread), *CHECK]) == 1
    said = capsys.readouterr().out
    assert "is lost on 8 threads, and not on one" in said and "SIGSEGV" in said


def test_what_cannot_be_compared_is_not_called_right(
    capsys: pytest.CaptureFixture[str], importable_miniatures: None
) -> None:
    assert main(["check", named(IsNeverTheSame), *CHECK]) == 4
    said = capsys.readouterr().out
    assert "nothing is known of" in said and "two walks on one thread differ" in said


def test_one_thing_is_asked_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "llguidance", "--threads", "--tokens"])
    assert ended.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err


def test_a_difference_is_told_where_it_is_first_seen() -> None:
    def step(*allowed: int, may_end: bool = False) -> Step:
        bits = np.isin(np.arange(257), [ord("a") + token for token in allowed])
        return np.packbits(bits).tobytes(), may_end

    alone = [step(0, 1, 2), step(0), step(may_end=True)]
    track = Track(Grammar("regex", "bc"), tuple(b"bc"), alone)
    told = partial(_difference, byte_vocabulary(), track)
    assert told(alone) == ""
    assert told([step(0)]).endswith("after b'' the mask allows 0 tokens more and 2 fewer than alone")
    assert told(alone[:2]) == "regex: after b'b' b'c' is refused"
    assert told([*alone[:2], step()]).endswith("after b'bc' is_accepting() is False")
