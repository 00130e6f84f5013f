"""A run whose every name is hostile, through every surface: no markup, formula, command or escape of theirs
comes out anywhere."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import synthetic
from browser import CHROMIUM, Browser
from refused import behind_progress
from synthetic import row

from harness.backend.arm import Arm
from harness.cli.main import main
from harness.rows.row import Finding
from harness.text import SURROGATES

NAMES = (
    "</script><script>alert(1)</script>", '" onmouseover="alert(2)', "' onfocus='alert(2)' autofocus='",
    "javascript:alert(3)",
    "{{7*7}}${7*7}<%= 7*7 %>", "a|b`c`|", "[x](javascript:alert(4))", "<img src=x onerror=alert(5)>", "=1+1",
    "+1+1", "-1+1",
    "@SUM(1)", "\t=1+1", "\r=1+1", "＝1+1", "x\x00\x01\x08\x0b\ufffe\uffff", "::error::x", "%0A::error::x",
    "##[error]x",
    "x\n::set-output name=a::b", "\n::error::y", "\x1b]0;owned\x07\x1b[2J\x1b[31m", "\x9b31m\x85\x90",
    "a\u202eb\u2066c",
    "l\u2028::error::p\u2029", "\ud800x\udfff", "N" * 10_000, "../../x", "/etc/passwd",
    'x"\nimport os\nos.system("touch owned")\n"',
    "'''\nimport os\n'''", "<!--<script>", "]]>", "--index-url=http://x", "-rf", "__proto__", "\\",
    "$(touch owned)`touch owned`",
)  # fmt: skip

ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]")


def name(number: int) -> str:
    return NAMES[number % len(NAMES)]


def key(number: int) -> str:
    """The name of that number as places take it that refuse lone surrogates: a question mark stands
    for each.
    """
    return SURROGATES.sub("?", name(number))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms, and each name in each place, beside other names."""
    arms = [
        Arm(name(at + 1), name(at + 2), name(at + 3), name(at + 4), ("json_schema",), "bitmask")
        for at in (0, 18)
    ]
    cases, groups = [], []
    for number, each in enumerate(NAMES):
        case = synthetic.case(
            number,
            [(each, each.encode("utf-8", "replace"), True)],
            each,
            json.dumps({"const": each}),
            [each, name(number + 3), f"keyword:{each[:200]}", f"decides:{each[:200]}"],
        )
        suite = key(number + 5)[:200]
        cases.append((suite, case))
        for place, arm in enumerate(arms):
            finding = Finding(
                name(number + 8)[:300],
                0,
                name(number + 9)[:2000],
                cause=name(number + 10)[:100],
                instance=0,
                over=3,
            )
            fields: dict[str, Any] = {
                "backend": arm.backend, "backend_version": arm.version, "options": arm.options,
                "vocabulary": key(9), "suite": suite,
                "suite_version": name(number + 6), "case": case.name, "case_id": case.id, "tags": case.tags,
                "instance_name": each,
            }  # fmt: skip
            match (number + place) % 4:
                case 0:
                    fields |= {
                        "status": "backend_error",
                        "phase": name(number + 11),
                        "signal": name(number + 12),
                        "accepted": None,
                    }
                    fields |= {"text": name(number + 13)[:2000], "findings": (finding,)}
                case 1:
                    fields |= {"accepted": False, "stopped_at": 1, "findings": (finding,)}
                case 2:
                    fields |= {
                        "status": "unsupported",
                        "phase": "compile",
                        "text": name(number + 13)[:2000],
                        "accepted": None,
                    }
            groups.append([(row(**fields), synthetic.ns(1_000, 10, 3_000, 10))])
    suites = {
        suite: {"version": name(at), "sha256": name(at), "cases": 1, "instances": 1}
        for at, (suite, _) in enumerate(cases)
    }
    header = synthetic.info(
        arms, run=name(0), harness=name(1), profile=name(2), argv=NAMES, suites=suites,
        vocabularies={key(9): {"size": 300, "sha256": name(3)}}, machine={"cpu": name(7), key(8): key(9),
        "packages": {key(4): name(5)}},
    )  # fmt: skip
    return synthetic.write_run(tmp_path_factory.mktemp("hostile") / "run", groups, header, cases)


class Page(HTMLParser):
    """What a page would run, or fetch from elsewhere."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[object] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "iframe", "object", "embed", "base", "form"):
            self.found.append((tag, attrs))
        for what, value in attrs:
            address = what in ("href", "src", "action", "formaction", "xlink:href", "srcdoc")
            strange = address and not re.fullmatch(r"#.*|data:,|[\w-][\w./=-]*(#.*)?", value or "", re.DOTALL)
            if what.startswith("on") or what == "autofocus" or strange:
                self.found.append((tag, what, value))


def look_at(path: Path) -> None:
    """Every file that was written, by its kind."""
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        assert not Page(text).found, path
    elif path.suffix in (".xml", ".svg"):
        for each in ElementTree.fromstring(text.encode()).iter():
            assert "script" not in each.tag and not any(what.startswith("on") for what in each.attrib), path
    elif path.suffix == ".csv":
        formulas = [
            cell
            for line in csv.reader(io.StringIO(text, newline=""))
            for cell in line
            if re.match("[=+@\t\r＝]|-(?![0-9.]+$)", cell)
        ]
        assert not formulas, path
    elif path.suffix == ".json":
        json.loads(text)
    elif path.name == "annotations.txt":
        assert all(re.match("::(notice|warning|error) title=[^:]*::", line) for line in text.splitlines())
    assert path.suffix in (".js", ".css") or not ESCAPES.search(text), path


COMMANDS = (
    "table RUN", "table RUN summary", "table RUN faults", "table RUN --format csv",
    "table RUN --format markdown", "table RUN --format json",
    "table RUN keywords", "compare RUN --html OUT/compare.html", "compare RUN --record OUT/record.json",
    "compare OUT/record.json RUN",
    "history OUT/history --add RUN", "report --history OUT/history --out OUT/site",
    "report RUN --format all --out OUT/export",
    "report RUN --out OUT/one", "report RUN --out OUT/split --split",
)  # fmt: skip


@pytest.fixture(scope="module")
def out(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that is written and printed."""
    folder = tmp_path_factory.mktemp("out")
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("here"))
    os.environ["GITHUB_ACTIONS"] = "true"
    printed, said = sys.stdout, sys.stderr
    try:
        for number, command in enumerate(COMMANDS):
            sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
            code = main(command.replace("RUN", str(run)).replace("OUT", str(folder)).split())
            suffix = "csv" if "csv" in command else "txt"
            (folder / f"printed-{number}.{suffix}").write_text(
                sys.stdout.getvalue() + sys.stderr.getvalue(), "utf-8"
            )
            assert code == 0, (command, sys.stderr.getvalue()[:500])
    finally:
        sys.stdout, sys.stderr = printed, said
        del os.environ["GITHUB_ACTIONS"]
        os.chdir(before)
    return folder


def test_nothing_hostile_comes_out_of_any_surface(out: Path, run: Path) -> None:
    files = [each for each in out.rglob("*") if each.is_file() and each.suffix not in (".gz", ".pdf")]
    assert {each.suffix for each in files} >= {".html", ".xml", ".csv", ".json", ".md", ".txt"}
    for each in files:
        look_at(each)
    assert {each.name for each in run.iterdir()} == {"rows.jsonl", "cases.jsonl", "samples.i64"}
    assert {each.name for each in run.parent.iterdir()} == {"run"} and not list(out.parent.rglob("owned"))


def test_no_printed_line_is_a_command_of_a_service(out: Path) -> None:
    for each in out.glob("printed-*"):
        for line in re.split("[\r\n]", each.read_text("utf-8")):
            assert not line.strip().startswith("::") and "##[" not in line, (each, line)


def test_a_run_is_as_recorded_whatever_its_faults_are_called(out: Path) -> None:
    assert "as recorded" in (out / "printed-9.txt").read_text("utf-8").splitlines()[-1]


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("table")])
def test_a_terminal_without_colours_gets_no_escape_at_all(
    command: str, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some names hold a colour of ours, which the gate of the streams lets through."""
    monkeypatch.setenv("NO_COLOR", "1")
    printed, said = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", printed)
    monkeypatch.setattr(sys, "stderr", said)
    assert main(command.replace("RUN", str(run)).split()) == 0
    assert printed.getvalue() and "\x1b" not in printed.getvalue() + said.getvalue()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_runs_nothing_of_theirs(out: Path, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        for page in ("one/report.html", "split/report.html", "site/index.html", "compare.html"):
            address = (out / page).as_uri()
            browser.send(
                "Page.addScriptToEvaluateOnNewDocument",
                source="window.alert = (x) => { document.title = 'owned'; };",
            )
            browser.open(address)
            assert browser.ask("document.title") != "owned" and not browser.console, (page, browser.console)
            assert not [
                each for each in browser.requested if not each.startswith(("file:", "data:", "about:"))
            ]


SLEEPER = """
import os
import time
from harness.adapters.unconstrained import *
from harness.adapters import unconstrained
from harness import Adapter
Base = next(each for each in vars(unconstrained).values() if isinstance(each, type) and issubclass(each, Adapter) and each is not Adapter)
class Slow(Base):
    def compile(self, grammar):
        time.sleep(float(os.environ.get("SLEEPS", "0")))
        return super().compile(grammar)
"""  # noqa: E501


@pytest.mark.parametrize(
    "sent", [signal.SIGTERM, signal.SIGHUP, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_run_that_is_ended_keeps_its_rows_and_goes_on(sent: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLEEPER)
    cases = [
        json.dumps({"schema": {"const": number}, "tests": [{"data": number, "valid": True}]})
        for number in range(8)
    ]
    (tmp_path / "cases.jsonl").write_text("\n".join(cases) + "\n")
    words = [
        sys.executable,
        "-P",
        "-m",
        "harness",
        "run",
        "cases.jsonl",
        "--backends",
        "slow:Slow",
        "--vocabularies",
        "bytes",
    ]
    words += ["--effort", "0", "--out", "run"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    rows = tmp_path / "run" / "rows.jsonl"
    process = subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment | {"SLEEPS": "0.7"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # What ignores a signal, as `nohup` does, has all that it starts ignore it.
        preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not (rows.exists() and rows.read_bytes().count(b"\n") > 2) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert behind_progress(said) == [
        "grammarbench: interrupted; what was measured is stored, and the same command goes on with --resume"
    ]
    kept = rows.read_bytes()
    assert kept.count(b"\n") > 2 and b'"kind":"end"' not in kept
    done = subprocess.run(
        [*words, "--resume"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (
        rows.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1]) and rows.read_bytes().count(b"\n") == 10
    )


def test_a_run_that_finds_no_room_says_so_in_one_line_and_goes_on_later(tmp_path: Path) -> None:
    cases = [
        json.dumps({"schema": {"const": number}, "tests": [{"data": number, "valid": True}]})
        for number in range(20)
    ]
    (tmp_path / "cases.jsonl").write_text("\n".join(cases) + "\n")
    program = (
        f"{sys.executable} -P -m harness run cases.jsonl --backends unconstrained --vocabularies "
        "bytes --effort 0 --out run"
    )
    full = subprocess.run(
        ["bash", "-c", f"ulimit -f 10; {program}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # which the limit would cut off
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert full.returncode in (2, 3)
    assert len(behind_progress(full.stderr)) == 1 and "Traceback" not in full.stderr, full.stderr
    assert "File too large: 'run/" in full.stderr
    again = subprocess.run(
        [*program.split(), "--resume"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert again.returncode == 0, again.stderr
