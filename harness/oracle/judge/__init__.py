"""An independent verdict on one instance: is this output in the language of this grammar?

`is_valid` answers here and takes the time that it takes; `Judge` asks a process that can be killed.
"""

from __future__ import annotations

from harness.oracle.judge.asked import Judge as Judge
from harness.oracle.judge.schema import check_schema as check_schema
from harness.oracle.judge.strict_json import is_json as is_json
from harness.oracle.judge.unjudgeable import Unjudgeable as Unjudgeable
from harness.oracle.judge.verdict import is_valid as is_valid
