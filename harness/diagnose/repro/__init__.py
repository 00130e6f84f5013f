"""One failing case of a run: walked again step by step, made small, and shown by a script that needs nothing
of ours."""

from __future__ import annotations

from harness.diagnose.repro.find import Failure as Failure
from harness.diagnose.repro.find import find_failure as find_failure
from harness.diagnose.repro.show import replayed as replayed
from harness.diagnose.repro.show import show as show
from harness.diagnose.repro.show import to_json as to_json
from harness.diagnose.repro.shrunk import show_shrunk as show_shrunk
from harness.diagnose.repro.shrunk import shrink_failure as shrink_failure
from harness.diagnose.repro.shrunk import shrunk_script as shrunk_script
from harness.diagnose.repro.shrunk import shrunk_to_json as shrunk_to_json
from harness.diagnose.repro.standalone import SCRIPT as SCRIPT
