"""One object of a run, for machines that read on: its figures, its failing cases, what changed, and whether a gate holds."""

from __future__ import annotations

from harness.result.build import Noticed as Noticed
from harness.result.build import result_of as result_of
from harness.result.parts import Arm as Arm
from harness.result.parts import Change as Change
from harness.result.parts import Failing as Failing
from harness.result.parts import Figure as Figure
from harness.result.parts import Gate as Gate
from harness.result.parts import Result as Result
