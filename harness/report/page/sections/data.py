"""Data: where the figures of the page lie as data, and commands that ask them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from markupsafe import Markup

from harness.measure.kernels.session import FILE as KERNELS
from harness.report.cases.explorer import STATED
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs
from harness.report.page.lines import RunSeen
from harness.report.page.section import Section, Values
from harness.serve.decode.record import LINES as DECODED


def values(page: Content) -> Values:
    """Returns the commands and which files they find, and the place for what the page had to leave off."""
    run = page.inputs.lines[0].run if page.inputs.lines else None
    found = records(page.inputs)
    return {
        "is_alone": page.is_alone,
        "rows_file": run.rows_file if run is not None else "",
        "records": [path.name for path in found],
        "is_beside": run is not None and run.is_to_be_published,
        "has_samples": run is not None and run.has_samples,
        "one_liners": _one_liners(run, page.is_alone) if run is not None else list(map(_kinds, found)),
        "stated": Markup(STATED),
    }


def records(inputs: Inputs) -> list[Path]:
    """Returns the files of the decodings and kernels on the page, which have no rows."""
    return [
        folder / name for folder in inputs.folders for name in (DECODED, KERNELS) if (folder / name).is_file()
    ]


def _kinds(record: Path) -> str:
    """Returns the command that counts the lines of a record by their kind."""
    path = json.dumps(str(record), ensure_ascii=False)
    read = f"[json.loads(line) for line in open({path}, encoding='utf-8')]"
    program = f"import json, pandas; print(pandas.DataFrame({read}).kind.value_counts())"
    return f"python -c {shlex.quote(program)}"


SECTION = Section("data", "Data", 130, values, "method")


OUTCOMES_FRAME = """\
import json, pandas, sys
sys.stdout.reconfigure(errors="backslashreplace")
page = json.load(open("report.json", encoding="utf-8"))
cases, suites = page["cases"], page["suites"]
names = {each["letter"]: each["name"] for each in page["states"]} | {".": None}
frame = pandas.DataFrame({"suite": [suites[each] for each in cases["suite"]], "name": cases["name"]}, index=cases["id"])
for arm, letters in zip(page["arms"], page["state"]):
    frame[arm["label"]] = [names[each] for each in letters]
print(frame)"""  # noqa: E501
"""Makes a data frame of a page's report.json: a line for each case, and for each arm a column with the
states' names."""


def _one_liners(run: RunSeen, is_alone: bool) -> list[str]:
    """Returns the commands that ask the data outside of the page; those about report.json are for the folder
    of the page, and left out where it `is_alone`."""
    folder = run.told_folder
    rows = str(folder / run.rows_file)
    # DuckDB does not read xz, and takes the signs of patterns in a file's name for a pattern.
    piped = "xz -dc" if run.is_packed else "cat" if re.search(r"[*?\[{]", rows) else ""
    unpacked = "/dev/stdin" if piped else rows.replace("'", "''")
    count = (
        f"SELECT backend, status, count(*) FROM read_json_auto('{unpacked}', union_by_name=true) WHERE kind "
        "= 'row' GROUP BY ALL"
    )
    frame = (
        f"import pandas; print(pandas.read_json({json.dumps(rows, ensure_ascii=False)}, lines=True)"
        '.groupby("backend").status.value_counts())'
    )
    return [
        f"{f'{piped} {shlex.quote(rows)} | ' if piped else ''}duckdb -c {shlex.quote(count)}",
        *([] if is_alone else [f"python -c {shlex.quote(OUTCOMES_FRAME)}"]),
        f"python -c {shlex.quote(frame)}",
        f"grammarbench table {shlex.quote(str(folder))} --format csv",
    ]
