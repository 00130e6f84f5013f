"""A section of the page, and how all of them are found."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import jinja2
from markupsafe import Markup

from harness.report.page import sections
from harness.report.page.content import Content

TABS = {
    "answer": "Answer",
    "figures": "Figures",
    "right": "Right or wrong",
    "serving": "Serving",
    "changes": "Changes",
    "cases": "Cases",
    "method": "Method",
}
"""The titles of the page's tabs, in their order. With the page's script one tab is seen at a time; without
it, and on paper, they stand one below the other."""

Values = dict[str, object]
"""What a section's template shows, by the names that it uses."""


@dataclass(frozen=True)
class Section:
    """One part of the page: the `SECTION` of a module in `sections`.

    Its template is the file of the module's name in the content folder, e.g. `heat.html.j2`.
    """

    id: str
    """The anchor that the section's HTML begins with; links from outside name it."""
    title: str
    """The words that lead to it in the navigation."""
    place: int
    """Sections stand on the page by this number, the smallest first."""
    values: Callable[[Content], Values | None]
    """Returns what the template shows, or None where the section has nothing to show and is left off. Raises
    BadInput."""
    tab: str = "method"
    """The tab, one of TABS, on which the section stands."""


@dataclass(frozen=True)
class Rendered:
    """A section as it stands on the page."""

    id: str
    title: str
    html: Markup


@dataclass(frozen=True)
class Tab:
    """The sections of one tab."""

    id: str
    title: str
    sections: tuple[Rendered, ...]


def discovered_sections() -> dict[str, Section]:
    """Returns all sections in their order, by the names of their modules."""
    modules = [
        (module.name, import_module(f"{sections.__name__}.{module.name}"))
        for module in pkgutil.iter_modules(sections.__path__)
    ]
    return {
        name: module.SECTION
        for name, module in sorted(modules, key=lambda named: (named[1].SECTION.place, named[0]))
    }


def render_tabs(content: Content, environment: jinja2.Environment) -> list[Tab]:
    """Returns the tabs that have something to show, with their sections in order. Raises BadInput."""
    rendered: dict[str, list[Rendered]] = {tab: [] for tab in TABS}
    for name, section in discovered_sections().items():
        values = section.values(content)
        if values is not None:
            html = environment.get_template(f"{name}.html.j2").render(**values)
            rendered[section.tab].append(Rendered(section.id, section.title, Markup(html.strip("\n"))))
    return [Tab(tab, TABS[tab], tuple(sections)) for tab, sections in rendered.items() if sections]
