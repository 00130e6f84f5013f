"""Expected outcomes: what every case came to on the day it was recorded, and what has changed since, for the
worse or for the better.

A case's outcome is the set of its faults: the verdicts of its walks other than `pass`, and the findings by
check and cause. Faults that are not recorded fail; recorded faults that are gone fail too, so that the record
stays true. What the backend documents, and what is its choice, is no fault here: policy costs no pass
(harness/outcomes/outcome.py) and fails no gate. A timeout, and checks that were not begun because
the case had taken too long, depend on the machine: they are told, and fail nothing; but where every case of
an arm, or its checks, was lost to one, nothing is proven. What is wrong beside them and was right before
fails all the same, and so does what is wrong beside a failure of ours.

A run that is held against a record takes its settings from it; a run with other settings is refused. A run
that walked a sample of what is recorded proves nothing.
"""

from harness.outcomes.expected.arm_faults import TIMEOUT as TIMEOUT
from harness.outcomes.expected.arm_faults import WRONG_VERDICTS as WRONG_VERDICTS
from harness.outcomes.expected.arm_faults import Faults as Faults
from harness.outcomes.expected.arm_faults import RecordedArm as RecordedArm
from harness.outcomes.expected.arm_faults import arm_of_row as arm_of_row
from harness.outcomes.expected.arm_faults import changed_faults as changed_faults
from harness.outcomes.expected.arm_faults import fault_name as fault_name
from harness.outcomes.expected.arm_faults import faults_of_row as faults_of_row
from harness.outcomes.expected.arm_faults import faults_of_rows as faults_of_rows
from harness.outcomes.expected.arm_faults import gravity_of as gravity_of
from harness.outcomes.expected.arm_faults import is_cut_off as is_cut_off
from harness.outcomes.expected.arm_faults import state_of_name as state_of_name
from harness.outcomes.expected.arm_faults import undocumented_faults_of_row as undocumented_faults_of_row
from harness.outcomes.expected.record import Recorded as Recorded
from harness.outcomes.expected.record import is_record as is_record
from harness.outcomes.expected.record import late_in_words as late_in_words
from harness.outcomes.expected.record import read_record as read_record
from harness.outcomes.expected.record import recorded_faults as recorded_faults
from harness.outcomes.expected.record import refuse_no_record as refuse_no_record
from harness.outcomes.expected.record import write_record as write_record
from harness.outcomes.expected.verdict import Change as Change
from harness.outcomes.expected.verdict import compare_faults as compare_faults
from harness.outcomes.expected.verdict import compare_with_record as compare_with_record
from harness.outcomes.expected.verdict_text import change_in_words as change_in_words
from harness.outcomes.expected.verdict_text import states_in_words as states_in_words
from harness.outcomes.expected.verdict_text import verdict_json as verdict_json
from harness.outcomes.expected.verdict_text import verdict_text as verdict_text
