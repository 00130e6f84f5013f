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
from harness.report import reference_meanings as meanings
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
    # An error is a metric of the same name: how many cases have it.
    failures = {name: METRICS[name].definition for name in get_args(summary.MaskbenchError)}
    return [
        *_section("Status of a row", "What happened.",
                  _explained(get_args(row.Status), meanings.STATUSES)),
        *_section("Verdict of a walk",
        "What the row says of the backend; a function of status, `valid` and `accepted`.",
                  _explained(row.VERDICTS, meanings.VERDICTS)),
        *_section("Errors of a case",
        "Of all walks of a case together. The names are MaskBench's, and the numbers are near its own: a "
        "case may count in several of these, and end-of-sequence is asked for. MaskBench counts a case once, "
        "by what ends it or by its last wrong instance, and never asks for end-of-sequence "
        "([its counts](results.md#beside-maskbenchs-own-table)).",
                  failures),
        *_section("Outcome of a check",
        "Of each check on each case, in the row of mode `checks` (see [checks](checks.md)).",
                  meanings.CHECKED),
        *_section("Outcome of a contract check", "Of `grammarbench check`.",
                  _explained(get_args(get_type_hints(contract.CheckResult)["status"]), meanings.CONTRACT)),
        *_section("State of a case",
        "What a case is like on one backend, the worst first, on every surface. The first five make a case "
        "`failed`, which its `outcome` says; the others are outcomes themselves.",
                  {state.value: f"{state.words.title[0].upper()}{state.words.title[1:]}: "
                   f"{state.words.meaning}." for state in CaseState}),
        *_section("State of a keyword", "Of `grammarbench table RUN keywords`, worst first.",
                  {f"{name} ({short})" if short != name else name: meaning for name, (short,
                  meaning) in STATES.items()}),
        *_section("Outcome of a kernel's probe", "Of `grammarbench measure kernels`.",
        _explained(get_args(KernelOutcome), meanings.KERNEL_OUTCOMES)),
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
    measured = (
        "Of `grammarbench measure`, per case in each round, nanoseconds, lower is better. Exports have two "
        "figures of each for every arm and family. `compile_ns`, `fill_ns`, ...: the geometric mean over the "
        "cases that this arm solves of the median over forks and rounds; of arms that solve different cases "
        "these do not compare. `compile_ratio`, `fill_ratio`, ...: the estimate over the cases that arm and "
        "reference both have ([how it is made](measuring.md#estimate-interval-verdict)), without its "
        "interval where the comparison is unproven."
    )
    history = "Of `grammarbench history`; the rule is in [histories](history.md)."
    return [
        *_section("Figures of a measurement", measured, measured_figures.METRICS),
        *_section(
            "Verdict of a comparison", margin, _explained(get_args(estimate.Verdict), meanings.CHANGES)
        ),
        *_section("State of a series", history, _explained(get_args(AlertState), meanings.ALERTS)),
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
        *_section("End of a request", "", _explained(get_args(decoded.End), meanings.ENDS)),
        *_section(
            "Effect of a mechanism",
            "Of `grammarbench decode --profile mechanisms`.",
            _explained(get_args(Effect), meanings.EFFECTS),
        ),
        *_fields("The advice on a mechanism", DefaultAdvice),
        *_fields("Account of a request's ids", decoded.Account),
        *_columns_of_a_step(),
        *_columns_of_a_place(),
        *_section(
            "End of a request to a live server",
            "Of `grammarbench live`; see [live](live.md).",
            _explained(lived.ENDS, meanings.LIVE_ENDS),
        ),
        *_section(
            "Does a live server keep the grammar?",
            "By dialect of grammar.",
            _explained(get_args(live_conformance.Finding), meanings.LIVE_CONFORMANCE),
        ),
    ]


def _results() -> list[str]:
    lines = [
        *_section(
            "Verdict of a gate",
            "Of `grammarbench compare --gate`, and of every form of a report.",
            _explained(get_args(gate.Verdict), meanings.GATES),
        )
    ]
    for title, of in (
        ("result.json", parts.Result), ("A figure in it", parts.Figure), ("A failing case in it", parts.Failing),  # noqa: E501
        ("A change in it", parts.Change), ("Counts in it", parts.Counts), ("The gate in it", gate.Gate),
    ):  # fmt: skip
        lines += _fields(title, of)
    return [
        *lines,
        *_section(
            "Exit codes",
            "Of every command.",
            {str(code): meaning for code, meaning in meanings.EXITS.items()},
        ),
    ]


def _on_disk() -> list[str]:
    lines = _section(
        "Files of a run",
        "What was seen is appended to and never rewritten, and holds no mean, percentile or verdict. The "
        "files that are called a conclusion hold these, and each time the command writes them anew.",
        meanings.FILES,
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
