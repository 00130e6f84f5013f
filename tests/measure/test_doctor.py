"""What doctor says of a machine: marks what should be mended, and promises no more than the noise allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from measured import arm, concluded, steady, write_measurement

from harness.cli.main import main
from harness.errors import BAD_INPUT, BadInput
from harness.measure import doctor
from harness.measure.doctor import Diagnosis, MachineState, diagnose, diagnosis_text, look
from harness.measure.estimate import is_proven
from harness.measure.protocol import PROFILES
from harness.measure.record import read_measurement


def diagnosis(folder: Path, noise: float, offset: float = 1.0) -> Diagnosis:
    arms = {
        arm("toy", "reference"): steady(1, noise, seed=1),
        arm("toy (again)", "a/a"): steady(offset, noise, seed=2),
    }
    write_measurement(folder, arms, forks=8)
    found = concluded(folder)
    return Diagnosis("h", (), "toy", folder, tuple(found), is_proven(found), 0.0, 0, 64)


def test_on_a_quiet_machine_small_changes_are_seen(tmp_path: Path) -> None:
    said = diagnosis_text(diagnosis(tmp_path, 0.002))
    assert "equivalent everywhere" in said and "a slower mask between two versions is detected from" in said
    assert "cannot be detected" not in said


def test_on_a_noisy_machine_it_says_so(tmp_path: Path) -> None:
    said = diagnosis_text(diagnosis(tmp_path, 0.12))
    assert "enough to tell backends apart, not versions" in said or "cannot be detected here" in said


def test_where_identical_code_differs_nothing_is_promised(tmp_path: Path) -> None:
    said = diagnosis_text(diagnosis(tmp_path, 0.002, offset=1.3))
    assert (
        "would be called unproven" in said
        and ("not equivalent in compile speed, ttfm speed, cold_fill speed") in said
    )
    assert "a slower mask between two versions cannot be detected here" in said


@pytest.mark.parametrize(
    ("machine", "what", "is_well"),
    [
        (
            {"cpu_config": "driver:intel_pstate, intel_pstate:turbo, governor:powersave"},
            "governor and turbo",
            False,
        ),
        ({"cpu_config": "driver:acpi-cpufreq, governor:performance"}, "governor and turbo", True),
        ({}, "governor and turbo", True),
    ],
)
def test_the_governor_is_looked_at(machine: dict[str, str], what: str, is_well: bool) -> None:
    assert {each.what: each.is_well for each in look(machine)}[what] is is_well


@pytest.mark.parametrize(
    ("config", "seen"),
    [
        ("0-3=driver:acpi-cpufreq, governor:performance; idle:acpi_idle", "performance"),
        ("0=governor:performance; 1=governor:powersave, isolated", "performance, powersave"),
    ],
)
def test_the_governor_is_named_first(config: str, seen: str) -> None:
    (state,) = (each for each in look({"cpu_config": config}) if each.what == "governor and turbo")
    assert state.seen.startswith(f"{seen} ({config})")


def test_load_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    assert MachineState("load", "9.00 over the last minute; end what else is running", False) in look({})
    monkeypatch.setattr(os, "getloadavg", lambda: (0.01, 0.0, 0.0))
    assert {each.what: each.is_well for each in look({})}["load"]


@pytest.mark.long
def test_it_measures_a_backend_against_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "measure",
        "doctor",
        "--backends",
        "llguidance",
        "--vocabularies",
        "bytes",
        "--forks",
        "2",
        "--out",
        str(tmp_path / "d"),
    ]
    assert main(command) in (0, 4)
    printed = capsys.readouterr()
    assert "noise floor" in printed.out and "smallest change that would be seen" in printed.out
    assert "processors: " in printed.err, "what is looked at first is progress, and not the answer"
    assert {each.role for each in read_measurement(tmp_path / "d").measurement.arms} == {"reference", "a/a"}


def test_without_a_backend_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "catalogue", lambda: [])
    with pytest.raises(BadInput, match="no backend is installed"):
        diagnose(None, "bytes", 1, None, lambda _: None)


@pytest.mark.parametrize(
    ("backends", "said"),
    [("llguidance,xgrammar", "one backend is measured against itself"), ("", 'backend "" cannot be read')],
)
def test_what_is_not_one_backend_is_refused_before_anything_is_measured(
    backends: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two were compared with each other, and what they differ by was taken for the machine's noise."""
    out = tmp_path / "d"
    assert main(["measure", "doctor", "--backends", backends, "--out", str(out)]) == BAD_INPUT
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1 and not out.exists()


def test_only_what_is_measured_against_itself_is_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = {
        arm("toy", "reference"): steady(1, 0.002, seed=1),
        arm("other"): steady(1.3, 0.002, seed=3),
        arm("toy (again)", "a/a"): steady(1, 0.002, seed=2),
    }
    write_measurement(tmp_path, arms, forks=8)
    monkeypatch.setattr(doctor, "measure", lambda *_: (tmp_path, concluded(tmp_path)))
    found = diagnose("unconstrained", "bytes", 1, None, lambda _: None)
    assert found.comparisons and {each.head for each in found.comparisons} == {"toy (again)"}


def test_the_help_names_the_forks_of_the_profile_that_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["measure", "doctor", "--help"])
    quick = PROFILES["quick"]
    said = " ".join(capsys.readouterr().out.split())
    assert f"those of the profile quick, {quick.forks} to {quick.most_forks}" in said
