"""What each word of docs/reference.md means that the code defines as a name alone: a type checker and a test
hold the names against the definitions."""

from __future__ import annotations

from harness import errors
from harness.measure.estimate import Verdict as ChangeVerdict
from harness.measure.kernels.correctness import Outcome as KernelOutcome
from harness.outcomes.gate import Verdict as GateVerdict
from harness.outcomes.history.alert_rule import State as AlertState
from harness.rows.row import Status, Verdict
from harness.serve.decode.conclude import Effect
from harness.serve.live.answer import End as LiveEnd
from harness.serve.live.conformance import Finding as LiveFinding
from harness.walk.loop.outcome import End as RequestEnd

STATUSES: dict[Status, str] = {
    "ok": "The walk took place and said what mask and accept do; `accepted` and `stopped_at` say what.",
    "unsupported": "The backend says that it cannot enforce this grammar, or its adapter does not have the "
    "dialect.",
    "invalid": "The backend says that the grammar is wrong.",
    "backend_error": "Another exception came out of the backend.",
    "crash": "The backend's process died; `signal` says of what.",
    "timeout": "The backend did not answer within the deadline, and its process was ended.",
    "oom": "The process reached its limit of memory.",
    "harness_error": "A failure of ours; never counted against a backend.",
    "skipped": "We did not walk it; `text` says why.",
}

VERDICTS: dict[Verdict, str] = {
    "pass": "The instance was judged as the grammar says, end of the output included.",
    "over_constrained": "Mask or accept refuse an instance that the grammar allows.",
    "under_constrained": "An instance that the grammar forbids was let through to its end.",
    "declined": "Status `unsupported` or `invalid`: honest, not wrong.",
    "broken": "Status `backend_error`, `crash`, `timeout` or `oom`.",
    "unjudged": "Nobody said whether the instance is valid, or the walk is missing through our fault.",
}

CHECKED = {
    "passed": "The fact holds at every place looked at.",
    "failed": "It does not; each place is a finding.",
    "skipped: why": "There was nothing to check, or the checks of this case had taken their time.",
    "harness_error": "The check itself failed; never counted against a backend.",
}

CONTRACT = {
    "passed": "The fact holds.",
    "failed": "It does not.",
    "skipped": "There was nothing to try it on.",
    "error": "The adapter or its backend raised what the contract does not name, or ended the process.",
    "timeout": "The check was not over in time, and says nothing of its fact.",
}

CHANGES: dict[ChangeVerdict, str] = {
    "regressed": "The whole interval lies above 1 + margin: slower.",
    "improved": "The whole interval lies below 1 - margin.",
    "equivalent": "The whole interval lies within the margin: no change beyond it was shown, which is a "
    "finding.",
    "inconclusive": "The interval lies across the margin; or a change did not stand at the false discovery "
    "rate, or was not confirmed.",
    "unproven": "Two arms of identical code were not equivalent in this figure and family, or no case of "
    "theirs is judged there; nothing is said of others. Or, between versions of one backend, cases have too "
    "few figures to be judged, so that they may have become slower, or an arm was lost while a change was "
    "measured once more.",
}

ENDS: dict[RequestEnd, str] = {
    "end_of_sequence": "It came to its end.",
    "limit": "It reached the limit of output tokens.",
    "refused": "The mask forbids the reference token, or allows nothing.",
    "cancelled": "It was cancelled.",
    "fault": "The backend raised in mid-stream.",
    "aborted": "No grammar could be had for it, and requests without theirs are not wanted (`--fallback "
    "abort`).",
}

LIVE_ENDS: dict[LiveEnd, str] = {
    "finished": "The model came to its end.",
    "truncated": "It came to the limit of tokens, or a content filter cut it off.",
    "refused": "Status 4xx, or the same said within the stream before any text (SGLang).",
    "failed": "Another status than 200, no connection, or an error told within the stream.",
    "dropped": "The connection ended before the answer did.",
    "malformed": "What came is no stream of events that this interface has, or more than we take.",
    "timeout": "A deadline passed; `phase` says which.",
    "aborted": "The server ended the stream properly, without a reason or with another one.",
    "cancelled": "We went away.",
    "harness_error": "It was us.",
}

LIVE_CONFORMANCE: dict[LiveFinding, str] = {
    "kept": "Every judged output is valid.",
    "broken": "Some are not.",
    "ignored": "None is valid and no truncated one fits, or no larger a share than without the grammar.",
    "unproven": "No output is judged.",
}

EFFECTS: dict[Effect, str] = {
    "wins": "The whole interval of on over off lies below 0.98.",
    "loses": "It lies above 1.02, or fewer requests come out right.",
    "equal": "It lies between.",
    "undecided": "It lies across.",
}

KERNEL_OUTCOMES: dict[KernelOutcome, str] = {
    "passed": "The kernel did what `masked_fill` does and nothing else, or refused what it must refuse.",
    "failed": "It wrote something else, or elsewhere, or changed the mask.",
    "refused": "It raised where it should have worked; the buffer is as it was.",
    "crashed": "The device cannot be used after it.",
}

ALERTS: dict[AlertState, str] = {
    "alert": "The smallest of the last three ratios is more than five percent above all but the largest of "
    "eight runs in a row before them.",
    "better": "The same the other way.",
    "quiet": "Neither.",
    "no baseline": "Fewer than eleven runs: neutral.",
}

GATES: dict[GateVerdict, str] = {
    "ok": "Nothing is worse.",
    "failed": "An outcome or a count is worse, or not as recorded; with `--time` a proven slowdown.",
    "incomplete": "The run, or the measurement in it, has no end; it passes no gate.",
    "unproven": "Nothing can be said.",
}

EXITS = {
    errors.OK: "Done; a gate that was asked for holds.",
    errors.GATE_FAILED: "A gate failed: worse than before, not as recorded, an alert, or a broken contract.",
    errors.BAD_INPUT: "The command line, a file or a name is wrong; the one line on stderr says what to do.",
    errors.INCOMPLETE: "A run, a measurement, a decoding or one of kernels has no end, or was interrupted; "
    "what was measured is stored.",
    errors.UNPROVEN: "Nothing could be concluded.",
}

FILES = {
    "rows.jsonl": "The run, then a row per walk and case, then the end; [its "
    "schema](../results/row.schema.json).",
    "rows.jsonl.xz": "The same of a published run, mostly without the files below; it is read, and nothing "
    "is written beside it.",
    "samples.i64": "Nanoseconds of each fill and accept of `run`, little-endian 64-bit integers; a row "
    "names its slice.",
    "sessions.jsonl": "Of `run`: how it went on after an interruption, or what rows were taken over from: "
    "when, on which machine, with how many workers.",
    "cases.jsonl": "Every case once, so that a run is read, resumed and reproduced without the files it "
    "came from.",
    "experiment.toml": "What `run` walked: suites, backends with versions, tokenizers and every setting; "
    "`grammarbench run FILE --out FOLDER` walks the same again.",
    "rounds.jsonl": "Of `measure`: what is measured, then a slot per arm, case, fork and round, then the end.",  # noqa: E501
    "rounds.i64": "Its figures.",
    "decode.jsonl": "Of `decode`: the setup, then children, batches, scores of texts and losses, then the end.",  # noqa: E501
    "decode.i64": "Its figures: ids, times of ids, steps; the places of texts that were scored.",
    "live.jsonl": "Of `live`: the setup, then a line per answer and per judgement, then the end.",
    "live.i64": "Its figures: times of messages.",
    "kernels.jsonl": "Of `kernels`: each probe and each timing.",
    "growth.jsonl": "Of `measure growth`: what is measured, then a line per arm, axis, size and fork, then "
    "the end.",
    "growth.csv": "A conclusion of `measure growth`: a line each, with verdict, exponent and interval.",
    "growth.html": "A conclusion of `measure growth`: the page, with its charts beside it "
    "(`growth-0-compile.svg`, ...).",
    "rewrites.jsonl": "Of `advise`: the rewrites of cases that it tried; `rewrites/` is the run of them.",
    "advice.json": "A conclusion of `advise`: what it said of the engine, and of what to change.",
    "witnesses.jsonl": "A conclusion of `adjudicate`: the documents that show whose fault a disagreement is.",
    "report/": "A conclusion of `report`: the page, `report.json` (the cases on it) and `summary.md`, and "
    "beside them each form that `--format` names.",
}
