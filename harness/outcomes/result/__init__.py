"""One object of a run, for machines that read on: its figures, its failing cases, what changed, and whether a
gate holds."""

from __future__ import annotations

from harness.outcomes.gate import Gate as Gate
from harness.outcomes.result.build import Noticed as Noticed
from harness.outcomes.result.build import held_to_pairs as held_to_pairs
from harness.outcomes.result.build import result_of as result_of
from harness.outcomes.result.parts import Arm as Arm
from harness.outcomes.result.parts import Change as Change
from harness.outcomes.result.parts import Failing as Failing
from harness.outcomes.result.parts import Figure as Figure
from harness.outcomes.result.parts import Result as Result
