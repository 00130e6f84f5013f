"""The pages for other eyes, hands and windows: axe-core, 400 pixels, the keyboard, no script, paper.

See tox.ini's `browser`.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

import pytest
import synthetic as synthetic_runs
from browser import Browser
from histories import entry, write_conformance, write_entries
from report_folders import measured_run, played, write_decoding, write_kernels, write_rows
from synthetic import synthetic_run

from harness.backend.arm import Arm
from harness.cli.main import main
from harness.report.page.page import write_report
from harness.report.site.dashboard import write_dashboard

AXE = Path(os.environ.get("AXE", "axe.min.js"))
"""axe-core's script, from npm."""
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="no axe-core: AXE names no axe.min.js (tox run -e browser brings it)"
)

GRAVE = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
.filter((each) => each.impact === "serious" || each.impact === "critical")
.map((each) => `${each.id} (${each.nodes.length}): ${each.nodes[0].html.slice(0, 200)} ${each.nodes[0].failureSummary}`))"""  # noqa: E501
LOOKS = [(width, dark) for width in (1280, 400) for dark in (False, True)]
SECTIONS = (
    "answer",
    "verdict",
    "summary",
    "times",
    "masks",
    "compiling",
    "matrix",
    "batches",
    "jumps",
    "comparison",
    "environment",
)
"""0 to 8 and 11, which need no script."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The address of each kind of page; of a case that fails on some arm and of the list of cases, too."""
    here = tmp_path_factory.mktemp("pages")
    rows = synthetic_run(here / "rows", cases=15, hostile=False)
    measured = measured_run(synthetic_runs, here / "measured", 1.5)
    past = here / "past"
    steps = [
        entry(day, 1.3 if day > 20 else 1.0 + 0.01 * (day % 3), version="1" if day < 12 else "2")
        for day in range(32)
    ]
    write_entries(past, steps)
    for number, works in enumerate((3, 1)):
        write_conformance(
            past,
            number,
            {"": {"works": works, "breaks": 3 - works}, "type": {"works": 2}},
            version=f"1.{number}",
        )
    report = write_report([rows, measured, write_decoding(here / "decode", played())], here / "report", past)
    arms = [Arm("alpha", version, "", "alpha", ("json_schema",), "bitmask") for version in ("1", "2")]
    base, head = (
        write_rows(synthetic_runs, here / each.version, (each,), cases=20, wrong=wrong)
        for each, wrong in zip(arms, (0, 9), strict=True)
    )
    main(["compare", str(measured), "--html", str(here / "compare.html")])
    named = [f"{name}-{number}-with-a-long-name" for name in ("one", "two", "wide") for number in range(4)]
    crowd = write_rows(
        synthetic_runs,
        here / "crowd",
        tuple(Arm(each, "1", "", each, (), "bitmask") for each in named),
        cases=20,
        wrong=9,
    )
    return {
        "many arms": write_report([crowd, write_kernels(here / "kernels")], here / "many").as_uri(),
        "report": report.as_uri(),
        "cases": report.as_uri() + "#/cases",
        "case": report.as_uri() + "#/case/",
        "two runs": write_report([base, head], here / "both").as_uri(),
        "compare --html": (here / "compare.html").as_uri(),
        "dashboard": write_dashboard(past, here / "site").as_uri(),
    }


def shown(browser: Browser, address: str, **look: Any) -> None:
    """The page, and in the explorer what it is to show."""
    browser.open(address.partition("#")[0], **look)
    state = address.partition("#")[2]
    if state:
        browser.go("/cases?state=failing")
        if state == "/case/":
            browser.go(f"/case/{browser.ask('index.cases.id[list.order[0]]')}")


WHOLE = """document.documentElement.classList.remove('tabbed');
for (const each of document.querySelectorAll('details')) each.open = true; 0"""
"""Shows all tabs of the page at once, and all that is folded."""

KINDS = ("report", "cases", "case", "two runs", "compare --html", "dashboard")


@needs_axe
@pytest.mark.parametrize("kind", KINDS)
def test_axe_sees_nothing_grave(kind: str, pages: dict[str, str], browser: Browser) -> None:
    for width, dark in LOOKS:
        shown(browser, pages[kind], width=width, dark=dark)
        browser.ask(WHOLE)
        browser.ask(AXE.read_text("utf-8") + ";0")
        assert browser.ask(GRAVE) == [], f"{width} pixels, {'dark' if dark else 'light'}"


@needs_axe
def test_axe_sees_what_is_grave(pages: dict[str, str], browser: Browser) -> None:
    shown(browser, pages["report"])
    browser.ask(
        "document.documentElement.style.setProperty('--muted', '#cccccc'); "
        "document.documentElement.lang = ''; 0"
    )
    browser.ask(AXE.read_text("utf-8") + ";0")
    assert {each.partition(" ")[0] for each in browser.ask(GRAVE)} == {"color-contrast", "html-has-lang"}


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_silent_ask_for_nothing_and_fit_the_window(
    kind: str, pages: dict[str, str], browser: Browser
) -> None:
    for width, dark in ((1280, False), (400, True)):
        shown(browser, pages[kind], width=width, dark=dark)
        assert browser.ask("document.documentElement.scrollWidth <= innerWidth"), (
            f"{width} pixels: wider than the window"
        )
        assert browser.console == [] and set(browser.requested) == {pages[kind].partition("#")[0]}
        assert browser.ask("getComputedStyle(document.body).backgroundColor") == (
            "rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)"
        )


OVERFLOWING = """[...document.querySelectorAll('body *')].filter((each) => {
if (!each.getClientRects().length || each.closest('svg') !== null && each.tagName !== 'svg') return false;
for (let box = each.parentElement; box !== document.body; box = box.parentElement)
  if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(box).overflowX)) return false;
const edge = each.getBoundingClientRect();
return edge.right > document.documentElement.clientWidth + 1 || edge.left < -1 && !each.classList.contains('skip');
}).map((each) => `${each.closest('section')?.id} ${each.tagName} ${each.className}: ${each.innerText?.slice(0, 60)}`)"""  # noqa: E501
"""What reaches beyond the window and stands in no box of its own that scrolls."""
TOO_WIDE = """[...document.querySelectorAll('#answer .scroll, #summary .scroll, #comparison .scroll')]
.filter((each) => each.scrollWidth > each.clientWidth + 1)
.map((each) => `${each.getAttribute('aria-label')}: ${each.scrollWidth} of ${each.clientWidth}`)"""
"""The first tables that anybody reads, if a part of them is reached only by scrolling."""


@pytest.mark.parametrize("kind", [*KINDS, "many arms"])
def test_nothing_is_cut_off_at_the_right(kind: str, pages: dict[str, str], browser: Browser) -> None:
    for width, dark in ((400, False), (1280, True), (1600, False)):  # a colour moves nothing
        look = f"{width} pixels, {'dark' if dark else 'light'}"
        shown(browser, pages[kind], width=width, dark=dark)
        browser.ask(WHOLE)
        assert browser.ask(OVERFLOWING) == [], look
        assert browser.ask("document.documentElement.scrollWidth <= innerWidth"), look
        assert width < 1280 or kind == "many arms" or browser.ask(TOO_WIDE) == [], look


def test_what_reaches_out_is_seen(pages: dict[str, str], browser: Browser) -> None:
    browser.open(pages["report"])
    browser.ask(WHOLE)
    browser.ask("document.querySelector('#overview td').style.minWidth = '1400px'; 0")
    assert browser.ask(OVERFLOWING) == [] and len(browser.ask(TOO_WIDE)) == 1
    browser.ask("overview.parentElement.style.overflow = 'visible'; 0")
    assert any(each.startswith("summary TABLE overview") for each in browser.ask(OVERFLOWING))


def test_without_a_script_the_summary_is_there(pages: dict[str, str], browser: Browser) -> None:
    for width in (1280, 400):
        browser.open(pages["report"], width=width, scripts=False)
        for each in SECTIONS:
            assert browser.ask(
                f"document.getElementById('{each}').getClientRects().length > 0 && "
                f"{each}.innerText.length > 20"
            ), each
        assert browser.ask("document.querySelectorAll('#overview tbody tr').length") >= 4
        assert browser.ask("document.querySelectorAll('main svg[role=img]').length") >= 8
        assert not browser.ask(
            "document.querySelectorAll('.js-only, #explorer, #theme').values().some((each) => "
            "each.getClientRects().length)"
        )


def test_on_paper_the_page_is_light_and_whole(pages: dict[str, str], browser: Browser) -> None:
    """Also where the reader has it dark, by the system or by the button."""
    for by_button in (False, True):
        browser.open(pages["report"], dark=not by_button)
        if by_button:
            browser.ask("document.documentElement.dataset.theme = 'dark'; 0")
        browser.on_paper(dark=not by_button)
        colours = "getComputedStyle(document.documentElement)"
        assert [
            browser.ask(f"{colours}.getPropertyValue('--{each}')") for each in ("page", "text", "q4")
        ] == ["#fff", "#000", "#d7efe5"]
        assert browser.ask("document.querySelector('nav').getClientRects().length") == 0
        for each in SECTIONS:
            assert browser.ask(f"document.getElementById('{each}').getClientRects().length") > 0, each


PAPERS = {"A4 across": 1047, "A4": 718, "Letter across": 980, "Letter": 740}
"""Pixels between margins of 10 mm."""
CUT_OFF = """[...document.querySelectorAll('section[id], header, footer, table, pre, figure, svg[role=img]')].filter((each) => {
const box = each.getBoundingClientRect();
return box.width && (box.left < -1 || box.right > innerWidth + 1 || each.tagName !== 'svg' && each.scrollWidth > each.clientWidth + 1);
}).map((each) => `${each.closest('section')?.id} ${each.tagName} ${each.className} ${each.scrollWidth} of ${each.clientWidth}`)"""  # noqa: E501


@pytest.mark.parametrize("kind", [*KINDS, "many arms"])
def test_on_paper_nothing_is_cut_off(kind: str, pages: dict[str, str], browser: Browser) -> None:
    shown(browser, pages[kind], width=max(PAPERS.values()))
    browser.ask(WHOLE)
    browser.on_paper()
    for paper, width in PAPERS.items():
        browser.resize(width)
        assert browser.ask(CUT_OFF) == [], paper
        assert browser.ask("document.documentElement.scrollWidth <= innerWidth"), paper


def test_what_is_cut_off_on_paper_is_seen(pages: dict[str, str], browser: Browser) -> None:
    shown(browser, pages["report"], width=718)
    browser.on_paper()
    browser.ask(
        "document.querySelector('#overview td').style.setProperty('min-width', '900px', 'important'); 0"
    )
    assert any(each.startswith("summary TABLE overview") for each in browser.ask(CUT_OFF))


def test_a_pdf_of_the_page_has_wide_pages(pages: dict[str, str], browser: Browser) -> None:
    browser.open(pages["report"])
    made = browser.send("Page.printToPDF", preferCSSPageSize=True)["data"]
    boxes = re.findall(rb"/MediaBox *\[0 0 ([0-9.]+) ([0-9.]+)\]", base64.b64decode(made))
    assert len(boxes) > 3 and all(float(width) > float(height) for width, height in boxes)


LABELS = """(() => {
const chart = document.querySelector('#pareto svg'), frame = chart.getBoundingClientRect(), boxes = (each) => each.getBoundingClientRect();
const dots = [...chart.querySelectorAll("g[id*='-arm-']:not([id$='bubble'])")].map(boxes);
const names = [...chart.querySelectorAll('text')].filter((each) => /^(one|two|wide)-/.test(each.textContent)).map(boxes);
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const inside = (a) => a.left >= frame.left && a.right <= frame.right && a.top >= frame.top && a.bottom <= frame.bottom;
const clear = (a, i) => !names.some((b, j) => j < i && meet(a, b)) && !dots.some((b) => meet(a, b));
return [dots.length, names.length, names.filter(inside).length, names.filter(clear).length];
})()"""  # noqa: E501
"""Points, labels, labels inside the chart, labels that cover nothing."""


def test_labels_of_the_pareto_chart_are_inside_it_and_apart(pages: dict[str, str], browser: Browser) -> None:
    for width in (1280, 400):
        shown(browser, pages["many arms"], width=width)
        browser.ask(WHOLE)
        assert browser.ask(LABELS) == [12, 12, 12, 12], f"{width} pixels"


def walked(browser: Browser, most: int = 400) -> list[str]:
    """What the tab key leads to, from the beginning of the page until it is there again."""
    browser.ask("document.activeElement.blur(); getSelection().removeAllRanges(); 0")
    found: list[str] = []
    told = """((each) => [each === document.body, getComputedStyle(each).outlineStyle,
    `${each.tagName} ${each.name || each.className || each.id || each.getAttribute('href') || ''}`])(document.activeElement)"""  # noqa: E501
    for _ in range(most):
        browser.press("Tab")
        is_begin, outline, of = browser.ask(told)
        if is_begin:
            break
        assert outline != "none", f"{of}: no sign of the focus"
        found.append(of)
    return found


def test_everything_is_reached_by_the_keyboard(pages: dict[str, str], browser: Browser) -> None:
    shown(browser, pages["report"])
    browser.ask("document.documentElement.classList.remove('tabbed'); 0")
    found = walked(browser, 600)
    assert found[0] == "A skip" and {
        "BUTTON theme",
        "BUTTON sort",
        "A preset",
        "DIV scroll chart",
        "DIV scroll",
    } <= set(found)
    assert any(each.startswith("A #/cases?backend=") for each in found), "no cell of the heat map"
    shown(browser, pages["cases"])
    found = walked(browser)
    assert {"INPUT q", "SELECT backend", "SELECT state", "DIV rows"} <= set(found) and any(
        each.startswith("A #/case/") for each in found
    )
    browser.ask("explorer.querySelector('.rows td a').focus(); 0")
    browser.press("Enter")
    browser.until("location.hash.startsWith('#/case/') && explorer.querySelector('.came-out')")
    assert browser.ask("document.activeElement.tagName") == "H2", "the focus is where the new page begins"
    browser.press("Tab")
    assert browser.ask("document.activeElement.closest('#explorer') !== null")


SEEN = (
    "[...document.querySelectorAll('.tab')].filter((tab) => tab.getClientRects().length).map((tab) => tab.id)"
)


def test_one_tab_is_seen_at_a_time_and_an_address_opens_its_own(
    pages: dict[str, str], browser: Browser
) -> None:
    browser.open(pages["report"])
    assert browser.ask(SEEN) == ["tab-answer"]
    current = "document.querySelector('nav [aria-current]').textContent"
    for place, tab in (("masks", "Figures"), ("checks", "Right or wrong"), ("definitions", "Method")):
        if not browser.ask(f"document.getElementById('{place}') !== null"):
            continue
        browser.ask(f"location.hash = '#{place}'; 0")
        browser.until(f"{current} === '{tab}'")
        assert len(browser.ask(SEEN)) == 1
        assert browser.ask(f"document.getElementById('{place}').getClientRects().length > 0")
    browser.go("/cases?state=failing")
    assert browser.ask(current) == "Cases"


def test_the_theme_is_a_button_that_says_what_it_does(pages: dict[str, str], browser: Browser) -> None:
    browser.open(pages["report"])
    browser.ask("theme.focus(); 0")
    browser.press("Enter")
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert browser.ask("theme.getAttribute('aria-label')") == "Switch to the light theme"
    browser.press("Enter")
    assert (
        browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        and browser.console == []
    )
