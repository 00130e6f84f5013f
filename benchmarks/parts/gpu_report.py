"""The page of what benchmarks/gpu.py measured, as Markdown; and its beginning, which is printed."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping

from gpu_anchors import ANCHORS, NOT, Anchor
from gpu_figures import Figure, Figures
from gpu_paths import slow_paths
from gpu_plan import PARTS
from gpu_store import Store, failed
from gpu_tables import cold, cost, floor, kernels, lost, moves, probes, share, strategies
from gpu_text import noise, plain, shown, table

COLUMNS = 100
"""The width of what is printed."""


def summary(stores: Mapping[str, Store]) -> str:
    """Returns what the reader came for, in lines of at most COLUMNS: what was asked and whether it is kept,
    and ours beside what others published."""
    figures = Figures(stores)
    lines = [line for text in head(stores, figures) for line in wrapped(text.lstrip("# "), "")]
    lines += ["What was asked", ""]
    known, unknown = judged(figures)
    for figure in known:
        measured = f"{shown(figure.estimate)}, asked {figure.asked}"
        measured += f"; identical arms differ by up to {noise(figure.noise)}" if figure.noise else ""
        lines += wrapped(f"{figure.verdict:20} {figure.where}: {figure.asked.what}: {measured}", " " * 23)
    lines += wrapped(unknown, "")
    lines += ["", "Beside what others published (model, engine and machine differ from ours)", ""]
    answered, open_questions = beside(figures)
    for anchor, ours in answered:
        lines += wrapped(anchor.what, "")
        lines += wrapped(f"    ours       {ours}", " " * 15)
        lines += wrapped(f"    published  {anchor.published}; {anchor.setup} ({anchor.source})", " " * 15)
    lines += wrapped(open_questions, "")
    return "\n".join(lines)


def judged(figures: Figures) -> tuple[list[Figure], str]:
    """Returns the figures that were measured, and a sentence that names the others; empty without any."""
    known, missing = [], defaultdict[str, list[str]](list)
    for figure in figures.asked():
        if figure.estimate is None:
            missing[figure.asked.what].append(figure.where)
        else:
            known.append(figure)
    told = [f"{what} ({'; '.join(wheres)})" for what, wheres in missing.items()]
    return known, f"Not measured yet: {', '.join(told)}." if told else ""


def beside(figures: Figures) -> tuple[list[tuple[Anchor, str]], str]:
    """Returns the anchors of which we have a figure, each with ours, and a sentence that names the others;
    empty without any."""
    ours = [(anchor, anchor.ours(figures)) for anchor in ANCHORS]
    missing = [anchor.what for anchor, figure in ours if figure == NOT]
    known = [(anchor, figure) for anchor, figure in ours if figure != NOT]
    return known, f"Not measured yet: {'; '.join(missing)}." if missing else ""


def wrapped(text: str, indent: str) -> list[str]:
    """Returns the text in lines of at most COLUMNS, all but the first indented; an empty line stays one."""
    return textwrap.wrap(text, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]


def page(stores: Mapping[str, Store]) -> str:
    """Returns the whole page."""
    figures = Figures(stores)
    sections = (floor, cost, strategies, lost, cold, share, kernels, moves, probes, commands)
    tables = [line for section in sections for line in section(figures)]
    return "\n".join([*head(stores, figures), *asked(figures), *anchors(figures), *tables, ""])


def is_worse(stores: Mapping[str, Store]) -> bool:
    """Returns whether a figure is worse than what was asked."""
    return any(figure.verdict == "NOT KEPT" for figure in Figures(stores).asked())


def head(stores: Mapping[str, Store], figures: Figures) -> Iterator[str]:
    """Yields what was measured on, with what, and how much of it is done."""
    here = next(iter(stores.values())).environment
    versions = ", ".join(f"{name} {version or 'missing'}" for name, version in here["versions"].items())
    packages = ", ".join(f"{name} {version}" for name, version in here["packages"].items() if version)
    yield f"# {here['device']}"
    yield ""
    if figures.device == "cpu":
        yield "No GPU: this shows that the script works, and says nothing about a GPU."
        yield ""
    driver = f", driver {here['driver']}" if here.get("driver") else ""
    cuda = f" with CUDA {here['cuda']}" if here.get("cuda") else ""
    commit = here["commit"] or "unknown"
    yield f"torch {here['torch']}{cuda}{driver}; {versions}; {packages}; commit {commit}."
    for part, what in PARTS.items():
        if part not in stores:
            yield f"- `{part}` ({what}): not begun"
            continue
        open_cells, cells = stores[part].missing(), figures.plan.cells(part)
        known = {name: stores[part].cells[name] for name in open_cells if name in stores[part].cells}
        yield f"- `{part}` ({what}): {len(cells) - len(open_cells)} of {len(cells)} cells"
        for name, result in known.items():
            if failed(result):
                yield f"  - `{name}` failed: {plain(result['error'])}"
            else:
                yield f"  - `{name}` is partial, and is measured again: {plain(result['partial'])}"
    yield ""
    yield from slow(figures)


def slow(figures: Figures) -> Iterator[str]:
    """Yields the models that were not on the fast paths, by shape; nothing where all were."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, model in figures.models().items():
        if paths := "; ".join(slow_paths(model)):
            found[model.get("name", ""), paths].append(f"`{name}`")
    for (shape, paths), names in found.items():
        yield f"**{shape} was not on the fast paths** ({', '.join(names)}): {plain(paths)}."
        yield ""


def asked(figures: Figures) -> Iterator[str]:
    """Yields the table of what was asked."""
    yield "## What was asked"
    yield ""
    yield "Estimates are judged; in brackets the interval (99 %) over the forks, where there are enough."
    yield "`a/a`: the most by which two identical arms differ in TPOT, over the settings of the figure; where"
    yield "a figure is nearer to what was asked, it is undecided whether that is kept."
    yield ""
    known, unknown = judged(figures)
    rows = [
        [
            figure.asked.what,
            figure.where,
            shown(figure.estimate),
            noise(figure.noise),
            str(figure.asked),
            figure.verdict,
        ]
        for figure in known
    ]
    yield from table(["figure", "where", "measured", "a/a", "asked", "verdict"], rows)
    yield from (unknown, "") if unknown else ()


def anchors(figures: Figures) -> Iterator[str]:
    """Yields ours beside the published figures."""
    yield "## Beside what others published"
    yield ""
    yield "Anchors, not baselines: model, engine and machine differ from ours."
    yield ""
    answered, open_questions = beside(figures)
    rows = [
        [anchor.what, ours, anchor.published, f"{anchor.setup} ({anchor.source})"]
        for anchor, ours in answered
    ]
    yield from table(["question", "ours", "published", "by whom, on what"], rows)
    yield from (open_questions, "") if open_questions else ()


def commands(figures: Figures) -> Iterator[str]:
    """Yields the commands that filled the files."""
    yield "## Commands"
    yield ""
    for part, store in figures.stores.items():
        for command in store.commands:
            code = command["commit"] or f"code {command['code_sha256'][:12]}"
            yield f"- {command['at']} `{part}` ({code}): `{plain(' '.join(command['argv']))}`"
