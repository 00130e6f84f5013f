"""The content folder's templates, and what every one of them may use."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from harness import metrics
from harness.report import charts, sections
from harness.report.failing import KINDS
from harness.row import OURS, VERDICTS
from harness.table import number, visible


def asset(name: str) -> str:
    """A file of the content folder."""
    return (files("harness.reports") / name).read_text("utf-8")


def template_environment() -> jinja2.Environment:
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
        "duration": lambda us: "–" if us is None else charts.duration(us * 1e3),
    }
    environment.globals |= {
        "glyphs": sections.GLYPHS,
        "kinds": KINDS,
        "verdicts": VERDICTS,
        "ours": OURS,
        "metrics": metrics.METRICS,
        "distributions": metrics.DISTRIBUTIONS,
        "levels": ("avg", *metrics.QUANTILES),
        "few": metrics.few,
    }
    return environment


def _shown(value: Any) -> Any:
    """What every expression of the template goes through: strings from outside may hold anything."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
