"""The content folder's templates, and what every one of them may use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from harness.outcomes import metrics
from harness.report.cases.failing import CASE_KINDS, KINDS
from harness.report.page.cells import GLYPHS
from harness.report.values import number
from harness.rows.row import OURS, VERDICTS, contested_lines
from harness.running.leftovers import refuse_to_replace
from harness.text import counted, duration, listed, visible

PAGE = rb"(?s).*<title>GrammarBench"
"""How every page of ours begins."""


def refuse_no_page(path: Path, option: str) -> None:
    """Raises BadInput if the page to write, which the option names, would overwrite anything but one."""
    refuse_to_replace(path, PAGE, option, "page of GrammarBench")


def asset(name: str) -> str:
    """Returns the text of a file of the content folder, or of another folder on the path of
    `harness.reports`."""
    folders = [Path(folder) for folder in import_module("harness.reports").__path__]
    return next(
        (folder / name for folder in folders if (folder / name).is_file()), folders[0] / name
    ).read_text("utf-8")


def template_environment() -> jinja2.Environment:
    """Returns what all templates are rendered with: they escape what they show, and an unknown name fails."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value, unit: "–" if value is None else number(value, unit),
        "duration": lambda us: "–" if us is None else duration(us * 1e3),
        "code": code_spans,
        "counted": counted,
        "listed": listed,
        "address": address,
    }
    environment.globals |= {
        "glyphs": GLYPHS,
        "kinds": KINDS,
        "case_kinds": CASE_KINDS,
        "verdicts": VERDICTS,
        "ours": OURS,
        "contested_lines": contested_lines,
        "distributions": metrics.DISTRIBUTIONS,
        "levels": ("avg", *metrics.QUANTILES),
        "few": metrics.few,
    }
    environment.globals["m"] = environment.get_template("macros.html.j2").module
    return environment


def address(text: str) -> str:
    """Returns the text as a part of an address; a lone surrogate, which no address holds, becomes `?`."""
    return quote(text.encode("utf-8", "replace"), safe="")


def code_spans(text: str) -> Markup:
    """Returns the text as HTML in which what stands between backticks is code."""
    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # a backtick without its twin is itself
        parts[-2:] = [f"{parts[-2]}`{parts[-1]}"]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


def _shown(value: Any) -> Any:
    """Returns what every expression of the template goes through: strings from outside may hold anything."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
