"""Two arms of one run, or two runs: what came out differently, what was counted differently, and what takes
another time.

Outcomes and counts do not depend on the machine and may gate anywhere. Times are judged only where both arms
were measured in one interleaved run; between two runs they are told as ratios to the reference arm of each,
and never gate. `sides` reads an arm, `runs` says which runs are no match and what is missing in one, `pairs`
puts two arms together and gates, `counts` and `times` say what differs, `pairs_text` says it to people and
programs.
"""

from harness.outcomes.compare.counts import Counted as Counted
from harness.outcomes.compare.pairs import Pair as Pair
from harness.outcomes.compare.pairs import compare_arms as compare_arms
from harness.outcomes.compare.pairs import compare_runs as compare_runs
from harness.outcomes.compare.pairs import compare_versions as compare_versions
from harness.outcomes.compare.pairs import gate_pairs as gate_pairs
from harness.outcomes.compare.pairs_text import measured_text as measured_text
from harness.outcomes.compare.pairs_text import pairs_json as pairs_json
from harness.outcomes.compare.pairs_text import pairs_text as pairs_text
from harness.outcomes.compare.runs import not_compared as not_compared
from harness.outcomes.compare.runs import other_inputs_of as other_inputs_of
