"""What the records of mask kernels say: which are right, and how long one call takes over batch sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.errors import BadInput
from harness.measure.kernels.session import FILE
from harness.measure.kernels.stored import Row, StoredKernels
from harness.measure.kernels.table import DISTURBED, OUTCOMES
from harness.measure.kernels.timing import COPY
from harness.report.figures import charts, plots
from harness.report.page.chart import Chart
from harness.report.page.inputs import Inputs
from harness.text import counted, duration

MOST = 16
"""Kernels of a record, and shares with a chart."""


@dataclass(frozen=True)
class KernelStyle(charts.Styled):
    """One kernel: the same colour, dash and marker in all charts of its record.

    It is no arm's: a backend may bring several.
    """

    position: int
    label: str


@dataclass(frozen=True)
class Applied:
    """The kernels of one record."""

    title: str
    about: str
    kernels: tuple[KernelStyle, ...]
    charts: tuple[Chart, ...]
    outcomes: tuple[str, ...]
    probes: tuple[tuple[str, tuple[int, ...], str], ...]
    """For each kernel, how many probes had each outcome, and what it does wrong."""


def applied(inputs: Inputs) -> list[Applied]:
    """Returns what is shown of each record: the fewest threads, the first element type, the largest
    vocabulary. Raises BadInput.

    Raises BadInput.
    """
    figures = []
    for number, (path, stored) in enumerate(inputs.kernels):
        try:
            figures.append(_applied(number, path.name, stored))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadInput(
                f"{path / FILE} has a line that `grammarbench measure kernels` does not write: {error!r:.200}"
            ) from error
    return figures


def _applied(number: int, name: str, stored: StoredKernels) -> Applied:
    timed = [row for row in stored.times if row.get("median_ns", 0) > 0 and row["batch"] > 0]
    threads = min((row["threads"] for row in timed), default=1)
    dtypes = list(dict.fromkeys(row["dtype"] for row in timed))
    vocabulary = max((row["vocabulary"] for row in timed), default=0)
    shown = [
        row
        for row in timed
        if (row["threads"], row["vocabulary"]) == (threads, vocabulary) and row["dtype"] == dtypes[0]
    ]
    names = [kernel for kernel in dict.fromkeys(row["kernel"] for row in shown) if kernel != COPY][:MOST]
    kernels = tuple(KernelStyle(position, name[:60]) for position, name in enumerate(names))
    shares = sorted({row["share"] for row in shown})[:MOST]
    drawn = tuple(
        _chart(f"kernels{number}x{place}", share, [row for row in shown if row["share"] == share], kernels)
        for place, share in enumerate(shares)
    )
    probes: dict[str, Counter[str]] = {}
    wrong: dict[str, dict[str, None]] = {}
    for row in stored.probes:
        probes.setdefault(row["kernel"], Counter())[row["outcome"]] += 1
        if row["outcome"] not in ("passed", "refused"):
            wrong.setdefault(row["kernel"], {})[
                f"{row['probe'].replace('_', ' ')}{' (documented)' if row['documented'] else ''}"
            ] = None
    for kernel in probes:
        if points := stored.wrong_when_timed(kernel):
            wrong.setdefault(kernel, {})[f"its result at {counted(points, 'timed point')}"] = None
    outcomes = tuple(outcome for outcome in OUTCOMES if any(outcome in counts for counts in probes.values()))
    machine, on = stored.run["machine"], stored.run["on"]
    where = on["name"] or machine.get("cpu_model_name", "CPU")
    about = (
        f"On {stored.run['device']} ({str(where)[:80]}), torch {str(on['torch'])[:40]}, "
        f"{counted(threads, 'thread')}"
    )
    about += (
        f"; {dtypes[0]}, vocabulary {vocabulary:,}. Dashed grey: a copy that touches as many bytes."
        if dtypes
        else "; nothing was timed."
    )
    about += "" if stored.end else " Incomplete: its file has no end."
    return Applied(
        name,
        about,
        kernels,
        drawn,
        outcomes,
        tuple(
            (kernel[:60], tuple(counts[one] for one in outcomes), ", ".join(wrong.get(kernel, {}))[:600])
            for kernel, counts in probes.items()
        ),
    )


def _chart(name: str, share: float, rows: Sequence[Row], kernels: Sequence[KernelStyle]) -> Chart:
    title = f"{share * 100:g} % of the tokens allowed"
    runs = []
    for kernel in (*kernels, None):
        mine = sorted(
            (row for row in rows if row["kernel"][:60] == (kernel.label if kernel else COPY)),
            key=lambda row: row["batch"],
        )
        points = tuple((row["batch"], row["median_ns"], row["median_ns"], row["median_ns"]) for row in mine)
        runs.append(
            plots.Ribbon(
                None if kernel is None else kernel.position, kernel.label if kernel else COPY, points
            )
        )
    svg = plots.over_batches(
        name, f"{title}: one line per kernel", "one call, median", runs, times=True, what="kernel"
    )
    batches = sorted({row["batch"] for row in rows})
    cells = {(row["kernel"][:60], row["batch"]): _cell(row) for row in rows}
    table = tuple((run.label, *(cells.get((run.label, batch), "–") for batch in batches)) for run in runs)
    return Chart(title, Markup(svg), "", ("Kernel", *(f"batch {batch}" for batch in batches)), table)


def _cell(row: Row) -> str:
    """Returns a cell as `grammarbench measure kernels --show` writes it: the median, what a copy would take
    of the minimum, and what is wrong."""
    mark = "~" if row["median_ns"] > DISTURBED * row["min_ns"] else ""
    share = f" · {row['of_copy']:.0%} of a copy's speed" if "of_copy" in row and row["kernel"] != COPY else ""
    return f"{mark}{duration(row['median_ns'])}{share}{' · wrong' if row['outcome'] == 'wrong' else ''}"
