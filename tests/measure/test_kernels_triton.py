"""Kernels written in Triton, run by Triton's interpreter on a CPU: what they compute is probed here, and how
fast they are only a GPU can tell."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from places import SUPPORT

pytest.importorskip("triton")

FAILS = {
    "one_row_without_a_batch_is_masked",
    "logits_beyond_the_mask_are_forbidden",
    "columns_may_lie_apart",
    "logits_may_be_transposed",
    "a_mask_may_be_transposed",
    "a_given_row_outside_the_batch_is_refused",
    "a_mask_of_fewer_rows_is_refused",
}
"""What xgrammar's kernel does wrong; docs/kernels.md tells of it. When a release mends one, tell it there."""

Outcomes = dict[str, list[tuple[str, str, str, str]]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """Probe, type of logits, outcome and text by kernel. It takes a process of its own, because Triton's own
    functions are interpreted only if that was asked for before it was imported."""
    program = [sys.executable, str(SUPPORT / "interpreted.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    found: Outcomes = json.loads(done.stdout.splitlines()[-1])
    return found


def test_xgrammars_kernel_passes_all_but_what_is_known(outcomes: Outcomes) -> None:
    results = outcomes["xgrammar"]
    failed = {probe for probe, _, outcome, _ in results if outcome == "failed"}
    assert failed == FAILS and {outcome for _, _, outcome, _ in results} == {"passed", "failed"}
    assert {dtype for _, dtype, outcome, _ in results if outcome == "passed"} == {
        "float32",
        "bfloat16",
        "float16",
    }
    (one_row,) = (text for probe, _, _, text in results if probe == "one_row_without_a_batch_is_masked")
    assert "to be left alone and changed, first [0, 32]" in one_row


def test_a_wrong_kernel_is_caught_in_the_interpreter_too(outcomes: Outcomes) -> None:
    caught = {probe: text for probe, dtype, outcome, text in outcomes["wrong"] if outcome == "failed"}
    assert "written outside the logits" in caught["the_last_word_may_be_partial"]
    assert "a_batch_is_masked" not in caught
