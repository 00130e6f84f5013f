"""Any failure made small: in its grammar, its instance and its vocabulary, with the same outcome.

A failure is shrunk by trying smaller ones. Whether a smaller instance is valid is judged anew each time, never taken over; and each is
tried in a process of its own, which a crash or a hang ends without harm.
"""

from __future__ import annotations

from harness.shrink.fault import Fault as Fault
from harness.shrink.fault import Outcome as Outcome
from harness.shrink.fault import Shrunk as Shrunk
from harness.shrink.fault import outcome_of as outcome_of
from harness.shrink.search import shrink as shrink
