"""A decoding on disk: what was written is read back, and what cannot be read is said in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import BadInput
from harness.measure.protocol import MeasuredArm
from harness.serve.decode.mechanisms import experiment
from harness.serve.decode.profiles import PROFILES, settings
from harness.serve.decode.record import (
    FIGURES,
    LINES,
    Child,
    DecodedBatch,
    DecodeRecorder,
    DecodeSetup,
    Judged,
    Loss,
    read_decoding,
)
from harness.serve.decode.setting import Setting
from harness.serve.requests.latency import OBJECTIVES
from harness.serve.requests.words import Role
from harness.walk.loop.outcome import STEP, Account, Completed

SETTINGS = (
    Setting("enums"),
    Setting("enums", "jump_forward", overlap=False),
    Setting("enums", batch=8, rate=4.0),
)


def setup(**changed: Any) -> DecodeSetup:
    arm = MeasuredArm("a", "a:x=1", "a", "1.0", "x=1", "arm", "python")
    fields: dict[str, Any] = {
        "run": "r",
        "started": "2026-11-22T03:00:00+00:00",
        "harness": "0",
        "argv": ("decode",),
        "profile": "quick",
        "vocabulary": "probe",
        "sha256": "00",
        "model": "tiny",
        "device": "cpu",
        "dtype": None,
        "forks": 1,
        "rounds": 1,
        "arms": (arm,),
        "settings": SETTINGS,
        "machine": {},
        "hardware": "h",
        "mechanisms": ({"name": "overlap", "off": 1, "on": 0},),
        "objectives": OBJECTIVES,
    }
    return DecodeSetup(**{**fields, **changed})


def batch(number: int, role: Role, setting: int, ids: tuple[int, ...] = (5, 6, 2)) -> DecodedBatch:
    times = tuple(range(1000, 1000 + len(ids)))
    done = Completed(
        "one",
        "end_of_sequence",
        ids,
        4,
        Account(sampled=len(ids)),
        0,
        10,
        times,
        2000,
        grammar_ns=(7, 8),
        compile_state="hit",
    )
    refused = Completed("two", "refused", (), 4, Account(), 0, None, (), 50, why="no")
    judged = (Judged(done, "valid", True), Judged(refused, "unjudged", False))
    steps = np.arange(2 * len(STEP)).reshape(2, len(STEP)) + number
    counts = {"cache_hit": 1}
    return DecodedBatch(0, number, 0, "a", role, setting, 3000, 2, 12345, counts, judged, steps, 0, 0)


def write(folder: Path, *, finish: bool = True, **changed: Any) -> list[DecodedBatch]:
    written = [batch(number, role, 0) for number in (0, 1) for role in ("constrained", "none")]
    written += [batch(1, "constrained", 1), batch(1, "constrained", 2, ids=(9,))]
    with DecodeRecorder(folder, setup(**changed)) as recorder:
        recorder.child(
            Child(0, 0, "a", 1.5, 0.5, 1, {"name": "tiny"}, {"enums": [{"name": "one", "tokens": 3}]})
        )
        for each in written:
            recorder.batch(each)
        recorder.loss(Loss(0, "a", 2, "backend", "killed by SIGSEGV"))
        if finish:
            recorder.finish("2026-11-22T03:01:00+00:00")
    return written


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    written = write(tmp_path)
    found = read_decoding(tmp_path)
    assert found.is_complete and found.setup == setup()
    assert found.model == {"name": "tiny"} and found.workloads == {"enums": [{"name": "one", "tokens": 3}]}
    assert found.losses == (Loss(0, "a", 2, "backend", "killed by SIGSEGV"),)
    assert len(found.batches) == len(written)
    for ours, theirs in zip(written, found.batches, strict=True):
        assert np.array_equal(ours.steps, theirs.steps)
        assert ours.completed == theirs.completed
        same = (
            "fork",
            "round",
            "place",
            "arm",
            "role",
            "setting",
            "wall_ns",
            "passes",
            "peak_bytes",
            "counts",
        )
        assert all(getattr(ours, name) == getattr(theirs, name) for name in same)


def test_a_record_that_was_cut_off_is_read_as_far_as_it_goes_and_is_incomplete(tmp_path: Path) -> None:
    write(tmp_path)
    lines = (tmp_path / LINES).read_bytes().splitlines(keepends=True)
    (tmp_path / LINES).write_bytes(b"".join(lines[:4]) + lines[4][:-30])
    found = read_decoding(tmp_path)
    assert not found.is_complete and len(found.batches) == 2


def test_a_record_without_its_end_is_incomplete(tmp_path: Path) -> None:
    write(tmp_path, finish=False)
    assert not read_decoding(tmp_path).is_complete


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / LINES).unlink(), "no decoding here"),
        (lambda folder: (folder / LINES).write_bytes(b""), "did not start"),
        (lambda folder: write(folder, protocol=99), "a decoding by protocol 99"),
        (
            lambda folder: (folder / LINES).write_bytes((folder / LINES).read_bytes() + b"nonsense\n"),
            ":11: not JSON",
        ),
        (
            lambda folder: (folder / LINES).write_bytes(
                (folder / LINES).read_bytes() + b'{"kind":"loss","wh":1}\n'
            ),
            ":11: not a line",
        ),
        (
            lambda folder: (folder / LINES).write_bytes((folder / LINES).read_bytes() + b"[]\n"),
            ":11: not a line",
        ),
        (
            lambda folder: (folder / FIGURES).write_bytes((folder / FIGURES).read_bytes()[:100]),
            "ends before its figures",
        ),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, harm: Any, said: str) -> None:
    write(tmp_path)
    harm(tmp_path)
    with pytest.raises(BadInput, match=said) as raised:
        read_decoding(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_setting_says_what_is_unusual_about_it() -> None:
    setting = Setting("enums", "speculative", 8, overlap=False, most_polls=3, rate=2.5, mode="greedy")
    assert setting.name == "enums speculative batch 8 greedy 2.5/s poisson overlap=off most_polls=3"
    assert Setting("enums").name == "enums stepwise batch 1"
    assert setting.plain == Setting("enums", batch=8, rate=2.5, mode="greedy")
    assert Setting.from_json(setting.to_json()) == setting


def test_the_settings_of_a_load_stand_together() -> None:
    planned = settings(PROFILES["quick"], Setting("", cache=False), ("x", "y"))
    assert len(planned) == len(set(planned)) == 8
    assert all(each.texts >= each.batch and not each.cache for each in planned)
    loads = [each.plain for each in planned]
    assert loads == sorted(loads, key=loads.index)


def test_the_number_of_drafts_is_that_of_settings_which_draft() -> None:
    usual = Setting("", draft_tokens=8, texts=64)
    planned, switched = experiment(usual, ("x",))
    for each in (*planned, *settings(PROFILES["full"], usual, ("x",))):
        assert each.draft_tokens == (8 if each.strategy == "speculative" else 4)
    sides = [planned[each[side]] for each in switched for side in ("off", "on")]
    assert {each.texts for each in sides} == {64}, "what is asked for is asked of every mechanism"


def test_the_experiment_switches_one_knob_at_a_time() -> None:
    planned, switched = experiment(Setting("", prompt_tokens=16), ("x",))
    loads = [each.plain for each in planned]
    assert loads == sorted(loads, key=loads.index) and len(planned) == len(set(planned))
    assert len(switched) == 8 + 7, "at batch 1 there is nobody whom a compile could hold up"
    for each in switched:
        off, on = planned[each["off"]].to_json(), planned[each["on"]].to_json()
        assert len([name for name in off if off[name] != on[name]]) == 1, each["name"]
