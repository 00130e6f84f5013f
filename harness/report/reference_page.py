"""docs/reference.md out of the code's own definitions: `python -m harness.report.reference_page >
docs/reference.md`."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from harness import errors
from harness.backend import contract
from harness.backend.arm import Arm
from harness.measure import estimate
from harness.measure import figures as measured_figures
from harness.measure.kernels.correctness import Outcome as KernelOutcome
from harness.measure.record import Measurement, Slot, Trace
from harness.outcomes import gate, summary
from harness.outcomes.case_state import CaseState
from harness.outcomes.history.alert_rule import State as AlertState
from harness.outcomes.keywords import STATES
from harness.outcomes.metrics import DISTRIBUTIONS, METRICS, QUANTILES
from harness.outcomes.result import parts
from harness.rows import row
from harness.serve.decode import goodness
from harness.serve.decode.conclude import DefaultAdvice, Effect
from harness.serve.decode.record import Child, DecodedBatch, DecodeSetup, Judged
from harness.serve.decode.setting import Setting
from harness.serve.live import answer as lived
from harness.serve.live import conformance as live_conformance
from harness.serve.live import record as live_record
from harness.serve.requests.titles import FIGURES
from harness.walk.loop import outcome as decoded

STATUSES: dict[row.Status, str] = {
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

VERDICTS: dict[row.Verdict, str] = {
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

CHANGES: dict[estimate.Verdict, str] = {
    "regressed": "The whole interval lies above 1 + margin: slower.",
    "improved": "The whole interval lies below 1 - margin.",
    "equivalent": "The whole interval lies within the margin: no change was shown, which is a finding.",
    "inconclusive": "The interval lies across the margin; or a change did not stand at the false discovery "
    "rate, or was not confirmed.",
    "unproven": "Two arms of identical code were not equivalent in this figure and family; nothing is said "
    "of others. Or, between versions of one backend, cases have too few figures to be judged; they may have "
    "become slower.",
}

ENDS: dict[decoded.End, str] = {
    "end_of_sequence": "It came to its end.",
    "limit": "It reached the limit of output tokens.",
    "refused": "The mask forbids the reference token, or allows nothing.",
    "cancelled": "It was cancelled.",
    "fault": "The backend raised in mid-stream.",
    "aborted": "No grammar could be had for it, and requests without theirs are not wanted (`--fallback "
    "abort`).",
}

LIVE_ENDS: dict[lived.End, str] = {
    "finished": "The model came to its end.",
    "truncated": "It came to the limit of tokens.",
    "refused": "Status 4xx, or the same said within the stream before any text (SGLang).",
    "failed": "Another status than 200, no connection, or an error told within the stream.",
    "dropped": "The connection ended before the answer did.",
    "malformed": "What came is no stream of events that this interface has, or more than we take.",
    "timeout": "A deadline passed; `phase` says which.",
    "aborted": "The server ended the stream properly, without a reason or with another one.",
    "cancelled": "We went away.",
    "harness_error": "It was us.",
}

LIVE_CONFORMANCE: dict[live_conformance.Finding, str] = {
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
    "alert": "The smallest of the last three ratios exceeds by more than five percent what eight runs in a "
    "row had kept to.",
    "better": "The same the other way.",
    "quiet": "Neither.",
    "no baseline": "Fewer than eleven runs: neutral.",
}

GATES: dict[gate.Verdict, str] = {
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


def page() -> str:
    """Returns the whole page, Markdown."""
    return "\n".join(
        [
            "# Reference: every outcome, figure and field",
            "",
            "Made from the definitions in the code by `python -m harness.report.reference_page`; a test "
            "holds it against them. How things are",
            "found out is on other pages: [checks](checks.md), [times](measuring.md), "
            "[decoding](decoding.md), [kernels](kernels.md).",
            "",
            *_outcomes(),
            *_metrics(),
            *_times(),
            *_decoding(),
            *_results(),
            *_on_disk(),
        ]
    )


def _outcomes() -> list[str]:
    # In MaskBench's words an error is a metric of the same name here: how many cases have it.
    failures = {name: METRICS[name].definition for name in get_args(summary.MaskbenchError)}
    return [
        *_section("Status of a row", "What happened.", _explained(get_args(row.Status), STATUSES)),
        *_section("Verdict of a walk",
        "What the row says of the backend; a function of status, `valid` and `accepted`.",
                  _explained(row.VERDICTS, VERDICTS)),
        *_section("Errors of a case", "In MaskBench's terms, of all walks of a case together.", failures),
        *_section("Outcome of a check",
        "Of each check on each case, in the row of mode `checks` (see [checks](checks.md)).", CHECKED),
        *_section("Outcome of a contract check", "Of `grammarbench check`.",
                  _explained(get_args(get_type_hints(contract.CheckResult)["status"]), CONTRACT)),
        *_section("State of a case",
        "What a case is like on one backend, the worst first, on every surface. The first five make a case "
        "`failed`, which its `outcome` says; the others are outcomes themselves.",
                  {state.value: f"{state.words.title[0].upper()}{state.words.title[1:]}: "
                   f"{state.words.meaning}." for state in CaseState}),
        *_section("State of a keyword", "Of `grammarbench table RUN keywords`, worst first.",
                  {f"{name} ({short})" if short != name else name: meaning for name, (short,
                  meaning) in STATES.items()}),
        *_section("Outcome of a kernel's probe", "Of `grammarbench measure kernels`.",
        _explained(get_args(KernelOutcome), KERNEL_OUTCOMES)),
    ]  # fmt: skip


def _metrics() -> list[str]:
    of_runs = [
        (f"`{metric.name}`", metric.title, metric.unit, metric.better, _line(metric.definition))
        for metric in METRICS.values()
    ]
    distributions = [
        (f"`{distribution.name}`", distribution.title, _line(distribution.definition))
        for distribution in DISTRIBUTIONS.values()
    ]
    return [
        "## Metrics of a run",
        "",
        "One number per backend with options, version and vocabulary.",
        "",
        *_table(("name", "title", "unit", "better", "definition"), of_runs),
        "## Distributions of a run",
        "",
        f"Many times each; given as number (`_n`), mean (`_avg_us`) and {', '.join(QUANTILES)} (`_p50_us`, "
        "...), in microseconds.",
        "A percentile is an observed value: the smallest that the share of values lies at or below.",
        "`~` marks one beyond which fewer than ten values lie.",
        "",
        *_table(("name", "title", "definition"), distributions),
    ]


def _times() -> list[str]:
    margin = (
        f"The margin is {estimate.SMALLEST_MARGIN:.0%}, or {estimate.FLOORS:g} times the noise floor "
        "if that is more."
    )
    measured = "Of `grammarbench measure`, per case, nanoseconds, lower is better."
    history = "Of `grammarbench history`; the rule is in [histories](history.md)."
    return [
        *_section("Figures of a measurement", measured, measured_figures.METRICS),
        *_section("Verdict of a comparison", margin, _explained(get_args(estimate.Verdict), CHANGES)),
        *_section("State of a series", history, _explained(get_args(AlertState), ALERTS)),
    ]


def _decoding() -> list[str]:
    figures = [
        (f"`{name}`", figure.title, figure.unit, figure.better, figure.definition, figure.alias)
        for name, figure in FIGURES.items()
    ]
    return [
        "## Figures of decoding",
        "",
        "Of `grammarbench decode`; choices and limits are in [decoding](decoding.md).",
        "",
        *_table(("name", "title", "unit", "better", "definition", "elsewhere"), figures),
        *_section("End of a request", "", _explained(get_args(decoded.End), ENDS)),
        *_section(
            "Effect of a mechanism",
            "Of `grammarbench decode --profile mechanisms`.",
            _explained(get_args(Effect), EFFECTS),
        ),
        *_fields("The advice on a mechanism", DefaultAdvice),
        *_fields("Account of a request's ids", decoded.Account),
        *_columns_of_a_step(),
        *_columns_of_a_place(),
        *_section(
            "End of a request to a live server",
            "Of `grammarbench live`; see [live](live.md).",
            _explained(lived.ENDS, LIVE_ENDS),
        ),
        *_section(
            "Does a live server keep the grammar?",
            "By dialect of grammar.",
            _explained(get_args(live_conformance.Finding), LIVE_CONFORMANCE),
        ),
    ]


def _results() -> list[str]:
    lines = [
        *_section(
            "Verdict of a gate",
            "Of `grammarbench compare --gate`, and of every form of a report.",
            _explained(get_args(gate.Verdict), GATES),
        )
    ]
    for title, of in (
        ("result.json", parts.Result), ("A figure in it", parts.Figure), ("A failing case in it", parts.Failing),  # noqa: E501
        ("A change in it", parts.Change), ("Counts in it", parts.Counts), ("The gate in it", gate.Gate),
    ):  # fmt: skip
        lines += _fields(title, of)
    return [
        *lines,
        *_section("Exit codes", "Of every command.", {str(code): meaning for code, meaning in EXITS.items()}),
    ]


def _on_disk() -> list[str]:
    lines = _section(
        "Files of a run",
        "What was seen is appended to and never rewritten, and holds no mean, percentile or verdict. The "
        "files that are called a conclusion hold these, and each time the command writes them anew.",
        FILES,
    )
    for title, of in (
        ("A row", row.Row), ("A finding of a row", row.Finding), ("A case before it", row.Before),
        ("The first line of rows.jsonl", row.RunInfo),
        ("An arm of a run", Arm), ("The last line", row.End),
        ("The first line of rounds.jsonl", Measurement), ("A case that is measured", Trace), ("A slot", Slot),
        ("The first line of decode.jsonl", DecodeSetup), ("A setting", Setting), ("A child", Child), ("A batch", DecodedBatch),  # noqa: E501
        ("A judged request", Judged), ("A completed request", decoded.Completed),
        ("The scores of a setting", goodness.Goodness), ("A scored text", goodness.ScoredText),
        ("The first line of live.jsonl", live_record.LiveSetup), ("An answer of a live server", lived.Answer),
        ("An exchange with it", lived.Heard), ("A judgement of it", live_record.Judgement),
    ):  # fmt: skip
        lines += _fields(title, of)
    return lines


def _columns_of_a_place() -> list[str]:
    described = _docs(ast.parse(inspect.getsource(goodness)).body)["PLACE_COLUMNS"]
    return _section("Columns of a place of a scored text", _line(described), goodness.PLACE_COLUMNS)


def _columns_of_a_step() -> list[str]:
    described = _docs(ast.parse(inspect.getsource(decoded)).body)["STEP_COLUMNS"]
    return _section("Columns of a step", _line(described), decoded.STEP_COLUMNS)


def _section(title: str, about: str, meanings: Mapping[str, str]) -> list[str]:
    head = [f"## {title}", "", *([*_wrapped(about), ""] if about else [])]
    return [
        *head,
        *_table(("name", "meaning"), [(f"`{name}`", _line(meaning)) for name, meaning in meanings.items()]),
    ]


def _fields(title: str, of: type[Any]) -> list[str]:
    """Returns the fields of a dataclass with their types and what the code says of them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(of))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs = _docs(body.body)
    annotated = [statement for statement in body.body if isinstance(statement, ast.AnnAssign)]
    types = {ast.unparse(field_line.target): ast.unparse(field_line.annotation) for field_line in annotated}
    return [
        f"## {title}", "", *_wrapped(inspect.getdoc(of) or ""), "",
        *_table(("field", "type", ""), [(f"`{name}`", f"`{kind}`", _line(docs.get(name, ""))) for name,
        kind in types.items()]),
    ]  # fmt: skip


def _docs(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Returns the string that stands below each assignment, by the assigned name."""
    docs = {}
    for statement, below in pairwise(body):
        targets = (
            [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else statement.targets
            if isinstance(statement, ast.Assign)
            else []
        )
        if (
            targets
            and isinstance(targets[0], ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            docs[targets[0].id] = str(below.value.value)
    return docs


def _explained(names: Iterable[str], meanings: Mapping[Any, str]) -> dict[str, str]:
    """Returns the entries in the code's order. Raises KeyError for a name that nobody has explained."""
    return {name: meanings[name] for name in names}


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    return [line(head), line(["---"] * len(head)), *map(line, rows), ""]


def _wrapped(text: str) -> list[str]:
    """Returns the text in lines of at most 160 characters."""
    return textwrap.wrap(_line(text), 160, break_long_words=False, break_on_hyphens=False)


def _line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(page(), end="")
