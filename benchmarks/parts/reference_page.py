"""What benchmarks/reference.py publishes of its runs: pages, tables, outcomes, and a README under what was
written there by hand."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from states import state_counts

from harness.backend.arm import arm
from harness.outcomes.case_state import CaseState
from harness.outcomes.expected import write_record
from harness.outcomes.result import Result, result_of
from harness.report.export import markdown, write
from harness.report.page.inputs import read_inputs
from harness.report.page.page import write_report
from harness.rows.row import CHECKS_MODE, VERDICTS, RunInfo
from harness.rows.store import PACKED, case_identity, has_begun, packed, read_end, read_info, read_rows
from harness.text import markdown as cell

PARTS = {
    "maskbench": "MaskBench",
    "jsts": "JSON-Schema-Test-Suite, drafts 4 to 2020-12",
    "ours": "our suites",
}

MOST_BYTES = 8_000_000
"""A packed file of more than this is not published."""

LEFT_OUT = "left_out.json"
"""The names of the schemas that no run can have."""

MARK = "<!-- From here on benchmarks/reference.py writes; what stands above is kept. -->"

Case = tuple[str, ...]
"""A case as one backend walked it on one vocabulary: what `case_identity` returns."""


def publish(out: Path, parts: Sequence[str]) -> Path:
    """Writes it of what was run, complete or not, into `out`/published, anew but for what was written by
    hand; returns the folder."""
    old, folder = out / "published", out / "published.new"
    notes = notes_of(old / "README.md")
    shutil.rmtree(folder, ignore_errors=True)
    runs = {part: out / "runs" / part for part in parts}
    left_out, tables = [], []
    for part, where in runs.items():
        # A page of each: together they would be held against each other, and have no case in common.
        write_report(read_inputs([where], to_be_published=True), folder / part / "report.html")
        shutil.copyfile(where / "rows.jsonl", folder / part / "rows.jsonl")
        too_large = pack(folder / part / "rows.jsonl")
        left_out += too_large
        source = where if too_large else folder / part
        result = result_of(source)
        write(result, ["markdown", "csv"], folder / part)
        name_run(folder / part / "failing.csv", source, part)
        tables.append(
            f"## {PARTS[part]}\n\nWalks:\n\n{verdicts(result)}\n\nCases:\n\n{markdown.counts(result)}\n"
        )
        if read_end(where) and not read_info(where).checks:
            write_record(where, folder / part / "outcomes.json")
        left_out += pack(folder / part / "failing.csv") + pack(folder / part / "outcomes.json")
        if second := walked_again(out, part):
            beside = folder / second.name
            beside.mkdir()
            shutil.copyfile(second / "rows.jsonl", beside / "rows.jsonl")
            left_out += pack(beside / "rows.jsonl")
            tables.append(f"With a longer deadline:\n\n{deadlines(where, second)}\n")
    (folder / "README.md").write_text(
        "\n".join([notes + MARK, "", about(out, runs, left_out), *tables]), "utf-8"
    )
    shutil.rmtree(old, ignore_errors=True)
    folder.rename(old)
    return old


def name_run(failing: Path, source: Path, part: str) -> None:
    """Puts the run into the commands of the table, in place of the folder on this machine: as it lies under
    the folder DIR that whoever repeats it gives as `--out`."""
    text = failing.read_text("utf-8")
    failing.write_text(text.replace(f"repro {shlex.quote(str(source))} ", f"repro DIR/runs/{part} "), "utf-8")


def problem_of(folder: Path) -> str:
    """Returns how the figures of a published part differ from those that its rows give now; empty if they do
    not. Raises BadInput where the rows are not there, or damaged."""
    written = (folder / "figures.csv").read_text("utf-8").splitlines()
    with tempfile.TemporaryDirectory() as scratch:
        write(result_of(folder), ["csv"], Path(scratch))
        anew = (Path(scratch) / "figures.csv").read_text("utf-8").splitlines()
    different = [(old, new) for old, new in zip_longest(written, anew, fillvalue="") if old != new]
    second = folder.with_name(again_name(folder.name))
    if second.is_dir() and deadlines(folder, second) not in (folder.parent / "README.md").read_text("utf-8"):
        return f"README.md has another table of deadlines than the rows of {folder.name} and {second.name}"
    if not different:
        return ""
    (old, new), *others = different
    more = f", and {len(others)} more lines differ" if others else ""
    return f"figures.csv has «{old}» where the rows give «{new}»{more}"


def notes_of(readme: Path) -> str:
    """Returns what stands above MARK; empty where there is no such file.

    A README without MARK is all notes, for nobody else wrote it.
    """
    return readme.read_text("utf-8").partition(MARK)[0] if readme.exists() else ""


def again(out: Path, part: str) -> Path:
    """Where the run lies in which the cases that met a deadline are walked once more."""
    return out / "runs" / again_name(part)


def again_name(part: str) -> str:
    return f"{part}-again"


def walked_again(out: Path, part: str) -> Path | None:
    """Returns the run of the part with the second deadline, if it is there and complete."""
    second = again(out, part)
    return second if has_begun(second) and read_end(second) else None


def pack(path: Path) -> list[str]:
    """Replaces the file by a packed one that is the same whenever it is made; returns what is said where that
    is too large, and left out."""
    if not path.exists():
        return []
    small = packed(path.read_bytes())
    path.unlink()
    if len(small) > MOST_BYTES:
        return [f"{path.parent.name}/{path.name} ({len(small) / 1e6:.1f} MB packed)"]
    path.with_name(f"{path.name}.xz").write_bytes(small)
    return []


def verdicts(result: Result) -> str:
    """Walks by verdict, a line per arm."""
    values = {
        (figure.arm, figure.name): int(figure.value) for figure in result.figures if figure.family == "all"
    }
    lines = [
        "| backend | pass | over-constrained | under-constrained | declined | broken | unjudged |",
        "| --- " + "| ---: " * len(VERDICTS) + "|",
    ]
    for name in dict.fromkeys(figure.arm for figure in result.figures):
        lines.append(
            f"| {cell(name)} | "
            + " | ".join(f"{values[name, f'walks_{verdict}']:,}" for verdict in VERDICTS)
            + " |"
        )
    return "\n".join(lines)


def about(out: Path, runs: dict[str, Path], left_out: Sequence[str]) -> str:
    """Returns what, on what machine, with which versions and deadlines, in what time, and what is missing."""
    infos = {part: read_info(where) for part, where in runs.items()}
    first = next(iter(infos.values()))
    machine, packages = first.machine, first.machine.get("packages", {})
    versions = [f"{arm(run_arm)} {run_arm.version}" for run_arm in first.arms] + [
        f"{name} {packages[name]}" for name in sorted(packages)
    ]
    lines = [
        f"## The run of {first.started[:10]}",
        "",
        f"    python benchmarks/reference.py {' '.join(first.argv)}",
        "",
        f"- Machine: {machine.get('cpu_model_name', 'unknown processor')}, {machine.get('cpus_usable')} "
        "processors, "
        f"{int(machine.get('memory_bytes', 0)) / 1e9:.0f} GB, {machine.get('platform', '')}, Python "
        f"{machine.get('python')}; "
        f"load when it began {machine.get('load_avg_1min', 'unknown')}.",
        f"- Versions: {', '.join(versions)}; harness {first.harness}.",
        f"- Vocabularies: {', '.join(first.vocabularies)}. {first.jobs} workers at a time, "
        f"{first.memory_bytes / 1e9:g} GB each; a verdict on every instance"
        + (
            f", and whole masks at {first.effort} places of each case that has a reference."
            if first.effort
            else "."
        ),
        *(f"- {PARTS[part]}: {run_line(out, part, runs[part], info)}" for part, info in infos.items()),
        *(f"- Deadlines in {PARTS[part]}: {deadline_line(out, part)}" for part in runs),
        "- **Quote outcomes, not times.** Workers ran side by side, and whatever else the machine did is in "
        "the times. A `timeout` depends "
        "on the machine too: on a quieter one there are fewer.",
        f"- Not here: the samples of times (`samples.i64`){''.join(f', {name}' for name in left_out)}.",
        "- In each folder: `report.html`, the page, `tables.md`, `cases.csv` (cases by suite), "
        f"`figures.csv`, and `{PACKED}` (every row);\n  `failing.csv.xz` has every failed or refused case, "
        "what was said, and a command that shows it in the run, which `--out DIR` with `--take-over` of "
        "this folder makes in minutes"
        + (
            "."
            if first.checks
            else ";\n  `outcomes.json.xz` has expected outcomes for `grammarbench compare`, once unpacked."
        ),
        "- The figures follow from the rows: `python benchmarks/reference.py --verify FOLDER`.",
    ]
    return "\n".join(lines) + "\n"


def run_line(out: Path, part: str, folder: Path, info: RunInfo) -> str:
    """Size, deadline and time of one run."""
    cases, instances = (sum(suite[name] for suite in info.suites.values()) for name in ("cases", "instances"))
    in_all = sum(suite.get("cases_in_all", suite["cases"]) for suite in info.suites.values())
    sizes = ", ".join(f"{name} {suite['cases']}" for name, suite in info.suites.items())
    end = read_end(folder)
    sentence = f"{end.rows} rows" if end else "**interrupted, not all of it was run**"
    seconds = [session["seconds"] for session in stored(out / "sessions.jsonl") if session["part"] == part]
    guess = sum(
        estimate["seconds"] for estimate in stored(out / "estimate.jsonl") if estimate["part"] == part
    )
    has_none = part == "maskbench" and (out / LEFT_OUT).exists()
    none = json.loads((out / LEFT_OUT).read_text()) if has_none else []
    walked = f"{cases} cases"
    if cases + len(none) < in_all:
        walked = f"a stratified sample of {cases} of {in_all} cases"
    elif cases < in_all:
        walked = f"all {in_all} cases but {', '.join(none)}, whose schemas are none by their own draft"
    text = (
        f"{walked} ({sizes}), {instances} instances; {info.timeout_s:g} s for a compile and for each "
        f"walk; {sentence} "
        f"in {minutes(sum(seconds))}"
    )
    if len(seconds) > 1:
        text += f" ({len(seconds)} sessions)"
    return text + (f"; a sample had said {minutes(guess)}" if guess else "") + "."


def deadline_line(out: Path, part: str) -> str:
    """Returns how many cases met one in a verdict, and in what time they were walked again."""
    first = timeouts(out / "runs" / part)
    if not first:
        return "no case met one."
    text = f"cases that met {read_info(out / 'runs' / part).timeout_s:g} s: {counted(first)}."
    if not (second := walked_again(out, part)):
        return text
    sessions = stored(out / "sessions.jsonl")
    took = sum(session["seconds"] for session in sessions if session["part"] == second.name)
    return f"{text} Walked once more in {minutes(took)}: the table under those of this part."


def deadlines(first: Path, second: Path) -> str:
    """Returns what became of the cases whose verdicts met the deadline of the first run in the second, which
    has a longer one, no checks, and maybe not all of them: a line for each arm and vocabulary."""
    late = timeouts(first)
    counts = state_counts(second, late)
    shown = [state for state in reversed(CaseState) if any(count[state] for count in counts.values())]
    walked = sum(count.total() for count in counts.values())
    lines = [
        f"Of {len(late)} cases of which a verdict met {read_info(first).timeout_s:g} s, "
        f"{walked} were walked once more, for verdicts alone and with "
        f"{read_info(second).timeout_s:g} s. They come to:",
        "",
        f"| arm | vocabulary | cases | {' | '.join(state.words.title for state in shown)} |",
        "| --- | --- " + "| ---: " * (1 + len(shown)) + "|",
    ]
    for (vocabulary, name), count in counts.items():
        numbers = [count.total(), *(count[state] for state in shown)]
        lines.append(f"| {cell(name)} | {cell(vocabulary)} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def timeouts(run: Path) -> set[Case]:
    """Returns the cases, each of one backend and vocabulary, of which a verdict was ended by a deadline."""
    return {
        case_identity(row) for row in read_rows(run) if row.status == "timeout" and row.mode != CHECKS_MODE
    }


def counted(cases: set[Case]) -> str:
    """Returns the number of cases of each backend, in words."""
    return ", ".join(
        f"{backend} {count}" for backend, count in sorted(Counter(case[0] for case in cases).items())
    )


def minutes(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else (f"{seconds / 3600:.1f} h")
    )


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
