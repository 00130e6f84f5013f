"""What the README of benchmarks/reference.py says of the runs beside its tables: by which commands, on what
machines, in what time."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from reference_runs import (
    PARTS,
    SESSIONS,
    Case,
    is_sample,
    no_schemas_in,
    shares_of,
    stored,
    timeouts,
    walked_again,
)

from harness.backend.arm import arm
from harness.rows.row import RunInfo
from harness.rows.store import PACKED, read_end, read_info

LONGEST, WIDTH = 220, 200
"""A line of more characters is cut into lines of at most so many."""


def wrapped(line: str) -> str:
    """Returns a line of a README as lines that are not long, the later ones indented as in a list; a line of
    code or of a table stays."""
    if len(line) <= LONGEST or line.startswith(("    ", "|")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def about(out: Path, runs: Mapping[str, Path], left_out: Sequence[str]) -> str:
    """Returns what, on what machine, with which versions and deadlines, in what time, and what is missing."""
    infos = {part: read_info(where) for part, where in runs.items()}
    every = {PARTS[part]: info for part, info in infos.items()}
    for part in runs:
        if second := walked_again(out, part):
            every[f"{PARTS[part]}, once more"] = read_info(second)
    days = sorted({info.started[:10] for info in every.values()})
    has_taken = any(taken_from(info.argv) for info in every.values())
    has_checks = any(info.checks for info in infos.values())
    lines = [
        f"## The run of {days[0]}" if len(days) == 1 else f"## The runs of {days[0]} to {days[-1]}",
        "",
        *commands(every),
        *of_each("Machine", {name: machine_text(info.machine) for name, info in every.items()}),
        f"- Begun: {'; '.join(f'{name} {begun(info)}' for name, info in every.items())}.",
        *(
            ["- These are of the last command of each; what was taken over was walked by earlier ones."]
            * has_taken
        ),
        *of_each("Versions", {name: versions_text(info) for name, info in every.items()}),
        *of_each("Vocabularies", {PARTS[part]: walks_text(info) for part, info in infos.items()}),
        *(f"- {PARTS[part]}: {run_line(out, part, runs[part], info)}" for part, info in infos.items()),
        *(f"- Deadlines in {PARTS[part]}: {deadline_line(out, part)}" for part in runs),
        "- **Quote outcomes, not times.** Workers ran side by side, and whatever else the machine did is in "
        "the times. A `timeout` depends "
        "on the machine too: on a quieter one there are fewer.",
        "- Where a suite is a sample, its conformance has the interval of the share in brackets (99 %, "
        "Wilson's).",
        f"- Not here: the samples of times (`samples.i64`){''.join(f', {name}' for name in left_out)}.",
        "- In each folder: `report.html`, the page, `tables.md`, `cases.csv` (cases by suite), "
        f"`figures.csv`, and `{PACKED}` (every row); `failing.csv.xz` has every failed or refused case, "
        "what was said, and a command that shows it in the run, which `--out DIR` with `--take-over` of "
        "this folder makes in minutes"
        + (
            "."
            if has_checks
            else "; `outcomes.json.xz` has expected outcomes for `grammarbench compare`, once unpacked."
        ),
        "- The tables follow from the rows, and `SHA256SUMS` has the checksum of every file: `python "
        "benchmarks/reference.py --verify FOLDER`.",
    ]
    return "\n".join(map(wrapped, lines)) + "\n"


def commands(infos: Mapping[str, RunInfo]) -> Iterator[str]:
    """Yields the command of each run, once where several have the same."""
    distinct = dict.fromkeys(info.argv for info in infos.values())
    for argv in distinct:
        if len(distinct) > 1:
            yield "; ".join(name for name, info in infos.items() if info.argv == argv) + ":"
            yield ""
        yield f"    python benchmarks/reference.py {shlex.join(argv)}"
        yield ""


def of_each(title: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Yields a line for each text, which names its runs where it is not that of all."""
    distinct = dict.fromkeys(texts.values())
    for text in distinct:
        names = "; ".join(name for name, other in texts.items() if other == text)
        yield f"- {title}{f' ({names})' if len(distinct) > 1 else ''}: {text}"


def of_machines(machine: Mapping[str, Any], name: str) -> list[str]:
    """Returns what is known of that name; several where shares were put together, whose machines differ."""
    return str(machine.get(name) or "unknown").split(" | ")


def machine_text(machine: Mapping[str, Any]) -> str:
    told = {name: " and ".join(of_machines(machine, name)) for name in machine}
    sizes = [
        f"{int(size) / 1e9:.0f}" if size.isdigit() else size for size in of_machines(machine, "memory_bytes")
    ]
    memory = " and ".join(dict.fromkeys(sizes))
    return (
        f"{told.get('cpu_model_name', 'unknown processor')}, {told.get('cpus_usable')} processors, "
        f"{memory} GB, {told.get('platform', '')}, Python {told.get('python')}."
    )


def begun(info: RunInfo) -> str:
    """Returns when the run was begun, and the loads of the machine at the beginnings of its sessions."""
    loads = of_machines(info.machine, "load_avg_1min")
    numbers = sorted((load for load in loads if load.replace(".", "", 1).isdigit()), key=float)
    load = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else " and ".join(loads)
    return f"at {info.started[:16].replace('T', ' ')} with a load of {load}"


def versions_text(info: RunInfo) -> str:
    packages = info.machine.get("packages", {})
    versions = [f"{arm(run_arm)} {run_arm.version}" for run_arm in info.arms] + [
        f"{name} {' and '.join(of_machines(packages, name))}" for name in sorted(packages)
    ]
    return f"{', '.join(versions)}; harness {info.harness}."


def walks_text(info: RunInfo) -> str:
    places = f", and whole masks at {info.effort} places of each case that has a reference."
    return (
        f"{', '.join(info.vocabularies)}. {info.jobs} workers at a time, {info.memory_bytes / 1e9:g} GB "
        f"each; a verdict on every instance{places if info.effort else '.'}"
    )


def run_line(out: Path, part: str, folder: Path, info: RunInfo) -> str:
    """Returns size, deadline and time of one run."""
    cases, instances = (sum(suite[name] for suite in info.suites.values()) for name in ("cases", "instances"))
    in_all = sum(suite.get("cases_in_all", suite["cases"]) for suite in info.suites.values())
    sizes = ", ".join(f"{name} {suite['cases']}" for name, suite in info.suites.items())
    end = read_end(folder)
    sentence = f"{end.rows} rows" if end else "**interrupted, not all of it was run**"
    guess = sum(
        estimate["seconds"] for estimate in stored(out / "estimate.jsonl") if estimate["part"] == part
    )
    none = no_schemas_in(out, part)
    walked = f"{cases} cases"
    if any(is_sample(suite, none) for suite in info.suites.values()):
        walked = f"a stratified sample of {cases} of {in_all} cases"
    elif none:
        walked = f"all {cases + len(none)} cases but {', '.join(none)}"
        walked += ", whose schemas are none by their own draft"
    text = (
        f"{walked} ({sizes}), {instances} instances; {info.timeout_s:g} s for a compile and for each "
        f"walk; {sentence} {time_text(out, part, info)}"
    )
    if guess and not shares_of(out, part):  # what was estimated of a share says nothing of the whole
        text += f"; a sample had said {minutes(guess)}"
    return f"{text}."


def time_text(out: Path, name: str, info: RunInfo) -> str:
    """Returns what the sessions of the run, or of its shares, took together, without what no session here
    had a part in: shares of another machine, and cases that were taken over."""
    sessions = [one for one in stored(out / SESSIONS) if one["part"].partition(".")[0] == name]
    shares = [share.name for share in shares_of(out, name)]
    text = "in a time that is not stored here"
    if sessions:
        text = f"in {minutes(sum(one['seconds'] for one in sessions))}"
        if len(sessions) > 1:
            of_shares = f" of {len(shares)} shares" if shares else ""
            text += f" ({len(sessions)} sessions{of_shares})"
        if missing := [share for share in shares if share not in {one["part"] for one in sessions}]:
            text += f", without {', '.join(missing)}, whose time is not stored here"
    noted = {one["part"]: one for one in sessions if "taken_over" in one}
    count, source = sum(one["taken_over"] for one in noted.values()), taken_from(info.argv)
    if count:
        sources = " and ".join(dict.fromkeys(one["from"] for one in noted.values()))
        text += f", without the time of the {count:,} (cases on a backend and a vocabulary) taken over"
        text += f" from {sources}"
    elif source and not noted:
        text += f"; how many of them were taken over from {source} is not stored"
        text += ", and their time is not in this" if sessions else ""
    return text


def taken_from(argv: Sequence[str]) -> str:
    """Returns the folder that the command takes rows over from; empty where it names none."""
    words = [word for given in argv for word in given.split("=", 1)]
    return next((folder for word, folder in pairwise(words) if word == "--take-over"), "")


def deadline_line(out: Path, part: str) -> str:
    """Returns how many cases met one in a verdict, and in what time they were walked again."""
    first = timeouts(out / "runs" / part)
    if not first:
        return "no case met one."
    text = f"cases that met {read_info(out / 'runs' / part).timeout_s:g} s: {counted(first)}."
    if not (second := walked_again(out, part)):
        return text
    took = time_text(out, second.name, read_info(second))
    return f"{text} Walked once more {took}: the table under those of this part."


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
