"""Two releases of a backend as two runs, and as arms of one measurement: on the command line, in the browser,
over time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
import toy_releases
from browser import Browser
from toy_releases import FAULT, RIGHT, SOURCE, wheel

from harness.cli.main import main
from harness.report.page.inputs import read_inputs
from harness.report.page.verdict import verdict
from harness.report.site.atom import ATOM


def choice(name: str, *texts: str) -> dict[str, object]:
    """The first text is valid; without its end it is not, unless an output may end anywhere."""
    tests = [{"text": texts[0], "valid": True}, {"text": texts[0][:-1], "valid": False}]
    return {"description": name, "choice": list(texts), "tests": tests, "tags": ["choice"]}


CASES = [
    choice("two choices", "ab", "abc"),
    choice("one choice", "hello"),
    {
        "description": "no way to end too early",
        "choice": ["a", "aa"],
        "tests": [{"text": "a", "valid": True}],
    },
]

pytestmark = pytest.mark.long
"""Environments are made: half a minute on a busy machine."""

BOTH = "toy-choice==1.0,toy-choice==2.0"


@dataclass(frozen=True)
class Made:
    """Where the runs are, and the command in an environment that has release 1.0 installed."""

    old: Path
    new: Path
    suite: Path
    command: Callable[..., int]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Runs of 1.0, and of 2.0, which lets outputs end too early."""
    pytest.importorskip("pip")
    here = tmp_path_factory.mktemp("here")
    first = wheel(here / "index", "1.0", requires=["grammarbench"])
    wheel(here / "index", "2.0", SOURCE.replace(RIGHT, FAULT), ["grammarbench"])
    python = toy_releases.environment(here / "env", first)
    suite = here / "suite.json"
    suite.write_text(json.dumps(CASES))

    def command(*arguments: object, codes: tuple[int, ...] = (0,)) -> int:
        done = toy_releases.grammarbench(
            python, *map(str, arguments), index=here / "index", cache=here / "cache"
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.returncode

    for folder, backend in ((here / "old", "toy-choice==1.0"), (here / "new", "toy-choice==2.0")):
        command(
            "run", suite, "--backends", backend, "--vocabularies", "bytes", "--effort", "0", "--out", folder
        )
    return Made(here / "old", here / "new", suite, command)


def test_on_the_command_line(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = str(made.old), str(made.new)
    assert main(["compare", old, new]) == 0
    told = capsys.readouterr().out
    assert "3 cases compared, 2 came out differently" in told and "right -> under_constrained" in told
    assert "toy-choice 1.0 -> toy-choice 2.0" in told
    assert main(["compare", old, new, "--gate"]) == 1
    assert main(["compare", new, old, "--gate"]) == 0
    capsys.readouterr()
    assert main(["compare", old, new, "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)
    assert (pair["base"]["version"], pair["head"]["version"]) == ("1.0", "2.0")
    assert {each["case"]: each["kind"] for each in pair["outcomes"]} == {
        "suite: two choices": "worse",
        "suite: one choice": "worse",
    }


def test_in_the_browser(made: Made, browser: Browser, tmp_path: Path) -> None:
    assert main(["report", str(made.old), str(made.new), "--out", str(tmp_path)]) == 0
    browser.open((tmp_path / "report.html").as_uri())
    assert "REGRESSED" in browser.ask("verdict.innerText") and "one choice" in browser.ask(
        "verdict.innerText"
    )
    assert "toy-choice 1.0 → toy-choice 2.0" in browser.ask("comparison.innerText")
    # From the comparison to the case, where both releases stand side by side.
    browser.ask(
        "[...document.querySelectorAll('#comparison tbody a')].find((each) => "
        "each.innerText.includes('one choice')).click(); 0"
    )
    browser.until("location.hash.startsWith('#/case/') && explorer.querySelector('.came-out')")
    rows = browser.ask(
        "[...explorer.querySelectorAll('.came-out tbody tr')].map((each) => "
        "each.innerText.replace(/\\s+/g, ' '))"
    )
    assert len(rows) == 2 and "1.0 ✓ works" in rows[0] and "2.0 ▲ silently wrong" in rows[1]
    assert browser.console == []


def test_over_time(made: Made, tmp_path: Path) -> None:
    past, site = tmp_path / "past", tmp_path / "site"
    for run in (made.old, made.new):
        assert main(["history", str(past), "--add", str(run)]) == 0
    assert main(["report", "--history", str(past), "--out", str(site)]) == 0
    page = (site / "index.html").read_text("utf-8")
    assert "toy-choice 2.0 works on at least 2 cases fewer" in page and "✖ at least 2" in page
    assert "3/3" in page and "1/3" in page
    (entry,) = ElementTree.parse(site / "feed.xml").iter(f"{{{ATOM}}}entry")
    assert "works on at least 2 cases fewer" in (entry.findtext(f"{{{ATOM}}}title") or "")
    assert (
        json.loads((site / "badges" / "toy-choice.json").read_text())["message"]
        == "works on 33.3 % of 3 judged (no checks)"
    )


def test_a_release_is_a_regression_and_a_setting_is_none(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`lower` refuses what has an upper case letter: a fault of the setting that is no change of
    a version.
    """
    suite = tmp_path / "suite.json"
    suite.write_text(
        json.dumps(
            [*CASES, {"description": "upper", "choice": ["A"], "tests": [{"text": "A", "valid": True}]}]
        )
    )
    for name, backends, code, word in (
        ("settings", "toy-choice,toy-choice:lower=true", 4, "NO BASELINE"),
        ("releases", BOTH, 1, "REGRESSED"),
    ):
        run = tmp_path / name
        made.command(
            "run", suite, "--backends", backends, "--vocabularies", "bytes", "--effort", "0", "--out", run
        )
        assert main(["compare", str(run), "--gate"]) == code
        assert f"new faults: {'1 case' if name == 'settings' else '2 cases'}" in capsys.readouterr().out
        assert verdict(read_inputs([run])).word == word


def test_as_arms_of_one_measurement(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured, past, site = tmp_path / "measured", tmp_path / "past", tmp_path / "site"
    made.command(
        "measure",
        made.suite,
        "--backends",
        BOTH,
        "--vocabularies",
        "bytes",
        "--forks",
        2,
        "--out",
        measured,
        codes=(0, 4),
    )
    assert main(["compare", str(measured), "--gate"]) == 1  # the outcomes, whatever the times are
    told = capsys.readouterr().out
    assert "toy-choice==1.0  ->  toy-choice==2.0" in told and "new faults: 2 cases" in told
    assert main(["report", str(measured), "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "report.html").read_text("utf-8")
    assert (
        "<h3>toy-choice==1.0 → toy-choice==2.0: times</h3>" in page
        and "toy-choice==2.0: outcomes</h3>" in page
        and "REGRESSED" in page
    )
    assert main(["history", str(past), "--add", str(measured)]) == 0
    assert main(["report", "--history", str(past), "--out", str(site)]) == 0
    assert (site / "index.html").read_text("utf-8").count('<figure class="trend"') >= 3
