"""Makes any failure small in its grammar, its instance and its vocabulary, with the same outcome.

A failure is shrunk by trying smaller ones. Whether a smaller instance is valid is judged anew each time, and
each candidate is tried in a process of its own, which a crash or a hang ends without harm.
"""

from __future__ import annotations

from harness.diagnose.shrink.fault import Fault as Fault
from harness.diagnose.shrink.fault import Outcome as Outcome
from harness.diagnose.shrink.fault import Shrunk as Shrunk
from harness.diagnose.shrink.fault import outcome_of as outcome_of
from harness.diagnose.shrink.search import shrink as shrink
