"""A stored run for people: what is wrong first, then the times."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence

from harness.measure.kernels.session import FILE
from harness.measure.kernels.stored import Row, StoredKernels
from harness.measure.kernels.timing import COPY
from harness.text import counted, csv_text, duration, grid, markdown, markdown_table, one_line

WIDTH = 100
OUTCOMES = ("passed", "failed", "refused", "crashed", "harness_error")
COLUMNS = (
    "threads", "dtype", "vocabulary", "batch", "share", "allowed", "kernel", "form", "outcome", "text",
    "calls", "samples", "median_ns", "min_ns", "bytes", "gb_per_s", "of_copy", "first_ns", "no_graph",
    "alone",
)  # fmt: skip

MOST_SAID = 2000
"""Characters of one text in Markdown and CSV."""

DISTURBED = 2.0
"""A median that is so many times the minimum is marked: something else had the machine."""

LEGEND = """\
Time: median of one call; ~ where it is more than twice the minimum, which something else on the machine will have caused;
! where the result is not masked_fill's. Share: the time that a copy of the bytes that count (the forbidden logits, written once,
and the mask, read once) would take, at the bandwidth that a copy of the same footprint had in the same rounds, over the kernel's;
of both the minimum. 100% is a copy's speed. No share where the copy itself was disturbed in every sample."""  # noqa: E501


def kernels_text(stored: StoredKernels, form: str | None) -> str:
    """Returns the run in the form `csv` (a line for each timed kernel and point), `json` (everything) or
    `markdown`; with None for a terminal, in at most 100 columns."""
    if form == "csv":
        return _csv(stored)
    if form == "json":
        return (
            json.dumps(
                {
                    name: getattr(stored, name)
                    for name in ("run", "kernels", "probes", "times", "moves", "end")
                },
                indent=1,
            )
            + "\n"
        )
    head = _head(stored)
    parts = [
        markdown(" ".join(head.split()), MOST_SAID) if form == "markdown" else head,
        *_correctness(stored, form),
        *_times(stored, form),
        *_moves(stored, form),
    ]
    if stored.end is None:
        parts.append(f"INCOMPLETE: {FILE} has no end.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _csv(stored: StoredKernels) -> str:
    lines = []
    for row in stored.times:
        cells = {
            name: one_line(value, MOST_SAID, spelled=True) if isinstance(value, str) else value
            for name, value in row.items()
        } | {"samples": len(row.get("totals_ns", ()))}
        lines.append([cells.get(name, "") for name in COLUMNS])
    return csv_text([COLUMNS, *lines])


def _head(stored: StoredKernels) -> str:
    machine, on = stored.run["machine"], stored.run["on"]
    where = on["name"] or machine.get("cpu_model_name", "CPU")
    versions = ", ".join(
        f"{backend['backend']} {backend['version']}"
        for backend in stored.run["backends"]
        if backend["version"]
    )
    return "\n".join(
        textwrap.wrap(
            f"Kernels on {stored.run['device']} ({one_line(where)}, {machine['cpus_usable']} CPUs usable), "
            f"torch {on['torch']}; "
            f"{versions}; {stored.run['started']}",
            WIDTH,
        )
    )


def _title(title: str, form: str | None) -> str:
    return f"### {markdown(title)}" if form == "markdown" else title


def _correctness(stored: StoredKernels, form: str | None) -> Iterable[str]:
    """Yields what is wrong, what is refused, what is not here; then how many of each."""
    for outcome, title in (
        ("crashed", "CRASHED"),
        ("failed", "FAILED"),
        ("harness_error", "OUR OWN ERRORS"),
        ("refused", "REFUSED"),
    ):
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in stored.probes:
            if row["outcome"] == outcome:
                groups.setdefault((row["kernel"], row["probe"]), []).append(row)
        lines = [_about(rows) for rows in groups.values()]
        wrong = [
            f"{row['kernel']}: timed at {_where(row)}: {row['text']}"
            for row in stored.times
            if row["outcome"] == ("wrong" if outcome == "failed" else outcome)
        ]
        if lines or wrong:
            yield _list(title, [*lines, *wrong], form)
    missing = [f"{row['kernel']}: {one_line(row['problem'])}" for row in stored.kernels if row["problem"]]
    missing += [
        f"{backend['backend']}: {one_line(backend['problem'])}"
        for backend in stored.run["backends"]
        if backend["problem"]
    ]
    if missing:
        yield _list("NOT HERE", missing, form)
    probed = [row["kernel"] for row in stored.kernels if stored.outcomes(row["kernel"])]
    shown = [outcome for outcome in OUTCOMES if any(stored.outcomes(kernel)[outcome] for kernel in probed)]
    heads = [outcome.replace("_", " ") for outcome in shown]
    rows_shown = [
        [kernel, *(str(stored.outcomes(kernel)[outcome]) for outcome in shown)] for kernel in probed
    ]
    timed = [stored.wrong_when_timed(kernel) for kernel in probed]
    if any(timed):  # a kernel may pass every probe and be wrong at sizes that only a timing has
        heads.append("wrong when timed")
        rows_shown = [[*row, str(count)] for row, count in zip(rows_shown, timed, strict=True)]
    if rows_shown:
        yield _title("PROBES", form) + "\n" + _grid(heads, rows_shown, form)


def _about(rows: Sequence[Row]) -> str:
    """Returns one probe of one kernel in the element types in which it had the same outcome, with the text of
    the first."""
    first = rows[0]
    types = ", ".join(row["dtype"] for row in rows)
    sentence = f"{first['kernel']}: {first['probe'].replace('_', ' ')} ({types}): {one_line(first['text'])}"
    return f"{sentence} Documented: {first['documented']}" if first["documented"] else sentence


def _times(stored: StoredKernels, form: str | None) -> Iterable[str]:
    """Returns a table for each threads, element type, vocabulary and share; kernels down, batches across."""
    if stored.times:
        yield "\n".join(textwrap.wrap(LEGEND, WIDTH))
    for threads, dtype, vocabulary, share in dict.fromkeys(
        (row["threads"], row["dtype"], row["vocabulary"], row["share"]) for row in stored.times
    ):
        here = [
            row
            for row in stored.times
            if (row["threads"], row["dtype"], row["vocabulary"], row["share"])
            == (threads, dtype, vocabulary, share)
        ]
        batches = list(dict.fromkeys(row["batch"] for row in here))
        cells = {(row["kernel"], row["batch"]): _cell(row) for row in here}
        kernels = sorted(dict.fromkeys(row["kernel"] for row in here), key=lambda name: name == COPY)
        lines = [[kernel, *(cells.get((kernel, batch), "") for batch in batches)] for kernel in kernels]
        title = f"{dtype}, vocabulary {vocabulary:,}, {_allowed(share)}, {counted(threads, 'thread')}"
        yield _title(title, form) + "\n" + _grid([f"batch {batch}" for batch in batches], lines, form)


def _moves(stored: StoredKernels, form: str | None) -> Iterable[str]:
    """Returns a table for each vocabulary: kinds of copies down, batches across."""
    device = stored.run["device"]
    title = "from host to host" if device == "cpu" else "from host to device"
    for vocabulary in dict.fromkeys(row["vocabulary"] for row in stored.moves):
        here = [row for row in stored.moves if row["vocabulary"] == vocabulary]
        batches = list(dict.fromkeys(row["batch"] for row in here))
        kinds = list(dict.fromkeys(_kind(row) for row in here))
        times = {(_kind(row), row["batch"]): row for row in here}
        lines = [
            [kind, *(_move_cell(times, kind, batch) for batch in batches)]
            for kind in kinds
            if any("median_ns" in row for row in here if _kind(row) == kind)
        ]
        yield (
            _title(f"Copy of a mask {title} (device: {device}), vocabulary {vocabulary:,}", form)
            + "\n"
            + _grid([f"batch {batch}" for batch in batches], lines, form)
        )
    missing = dict.fromkeys(
        f"{row['memory'] if 'pinned' in row['text'] else 'beside a matmul'}: {row['text']}"
        for row in stored.moves
        if row["text"]
    )
    if missing:
        yield _list("Movement that was not measured", list(missing), form)


def _kind(row: Row) -> str:
    if not row["form"]:
        return "the matmul alone"
    return f"{row['form']}, {row['memory']}, {'alone' if row['company'] == 'alone' else 'beside the matmul'}"


def _move_cell(times: dict[tuple[str, int], Row], kind: str, batch: int) -> str:
    """Returns time and rate; beside the matmul, the time of both and how much of the copy it hides."""
    row = times.get((kind, batch), {})
    if "median_ns" not in row:
        return ""
    if row["company"] == "alone":
        return f"{duration(row['median_ns'])} {row['gb_per_s']:.1f} GB/s"
    alone = times.get((kind.replace("beside the matmul", "alone"), batch), {})
    matmul = times.get(("the matmul alone", batch), {})
    if row["form"] and "median_ns" in alone and "median_ns" in matmul:
        hidden = (alone["median_ns"] + matmul["median_ns"] - row["median_ns"]) / alone["median_ns"]
        return f"{duration(row['median_ns'])} {_percent(hidden)} hidden"
    return duration(row["median_ns"])


def _cell(row: Row) -> str:
    if "median_ns" not in row:
        return str(row["outcome"])
    if row["kernel"] == COPY:
        return ("" if "of_copy" in row else "~") + f"{row['gb_per_s']:.3g} GB/s"
    mark = "~" if row["median_ns"] > DISTURBED * row["min_ns"] else ""
    share = f" {_percent(row['of_copy'])}" if "of_copy" in row else ""
    return mark + duration(row["median_ns"]) + share + ("!" if row["outcome"] == "wrong" else "")


def _where(row: Row) -> str:
    return f"{row['batch']} x {row['vocabulary']} {row['dtype']}, {_allowed(row['share'])}"


def _allowed(share: float) -> str:
    return f"{share * 100:g}% allowed"


def _percent(share: float) -> str:
    """Returns the share in per cent with two digits, or more above a hundred."""
    value = share * 100
    return f"{value:.0f}%" if abs(value) >= 9.95 or value == 0 else f"{value:.2g}%"


def _list(title: str, lines: Sequence[str], form: str | None) -> str:
    if form == "markdown":
        return _title(title, form) + "\n\n" + "\n".join(f"- {markdown(line, MOST_SAID)}" for line in lines)
    return (
        title
        + "\n"
        + "\n".join(
            textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="      ") for line in lines
        )
    )


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], form: str | None) -> str:
    """Returns the rows in the form: their first cells to the left, the others to the right."""
    if form == "markdown":
        lines = [[markdown(cell) for cell in row] for row in rows]
        return "\n" + markdown_table(["", *map(markdown, heads)], lines, numbers=True).rstrip("\n")
    return grid("", heads, [[(row[0], row[1:]) for row in rows]], WIDTH, widest=None)
