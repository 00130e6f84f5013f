"""What commands say: 80 columns in a pipe, colour on a terminal alone, one strict JSON document with
`--json`."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from json_keys import strict
from measured import arm, steady, write_measurement
from rich.cells import cell_len

from harness import text as terminal
from harness.backend.arm import Arm
from harness.cli.main import main, parser
from harness.cli.output import plain
from harness.cli.run import _summary as summarize
from harness.errors import BadInput
from harness.outcomes import compare
from harness.outcomes.case_state import CaseState
from harness.report import run_summary
from harness.text import PIPE, Console, command, grid, our_command, shorten, some

OLD = Arm("toy", "1", "", "toy", ("regex",), "bitmask")
NEW = replace(OLD, version="2")
EVIL = "\x1b[31m\u202e漢字" * 40 + "\nSLOWER\r" + "x" * 5_000
CASES = [
    {
        "description": "month",
        "regex": "20[0-9]{2}",
        "tests": [{"text": "2026", "valid": True}, {"text": "202", "valid": False}],
    }
]


@pytest.fixture(scope="module")
def pair(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions measured in one run, the second slower and wrong, under names that attack their reader."""
    folder: Path = tmp_path_factory.mktemp("pair")
    walks = []
    for each, changed in ((OLD, {}), (NEW, {"accepted": False, "stopped_at": 2})):
        who = {"backend": each.backend, "backend_version": each.version, "case": EVIL, "instance_name": EVIL}
        walks.append([(synthetic.row(**who, **changed), b"")])
    synthetic.write_run(folder, walks, synthetic.info((OLD, NEW)))
    arms = {
        arm("toy==1", "reference", "toy", "1"): steady(1, seed=1),
        arm("toy==2", "arm", "toy", "2"): steady(1.2, seed=2),
        arm("toy==1 (again)", "a/a", "toy", "1"): steady(1, seed=3),
    }
    write_measurement(folder, arms, families=("speed", "a family with a long long long name"))
    return folder


@pytest.fixture(scope="module")
def run(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = synthetic.synthetic_run(tmp_path_factory.mktemp("run"))
    return path


def widest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


# ------------------------------------------------------------------------------------------------------- JSON


def test_every_command_takes_json() -> None:
    (verbs,) = (each for each in parser()._actions if each.dest == "command")
    assert isinstance(verbs.choices, dict)
    for name, verb in verbs.choices.items():
        assert "--json" in verb._option_string_actions, name


@pytest.mark.parametrize(
    ("words", "code", "keys"),
    [
        ("table RUN summary", 0, {"folder", "rows", "statuses", "backends", "worst", "next"}),
        ("table RUN", 0, {"backend", "verdict"}),
        ("table RUN faults", 0, {"category", "fault"}),
        ("compare RUN --record RECORD", 0, {"recorded", "file"}),
        ("compare RECORD RUN", 0, {"holds", "compared", "changes"}),
        ("compare RUN RUN", 0, {"base", "head", "outcomes", "worse"}),
        ("compare PAIR", 0, {"times", "worse"}),
        ("compare PAIR --gate", 1, {"times", "worse"}),
        ("report RUN --format all --out OUT", 0, {"written"}),
        ("history HISTORY --add PAIR", 0, {"hardware", "backend", "state"}),
        ("list backends", 0, {"name", "version", "dialects"}),
        ("list suites", 0, {"name", "cases", "instances"}),
        ("list vocabularies", 0, {"name", "size", "sha256"}),
        ("list axes", 0, {"name", "about", "dialect", "largest"}),
    ],
)
def test_the_answer_is_one_strict_document_and_nothing_else(
    words: str,
    code: int,
    keys: set[str],
    pair: Path,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"RUN": run, "PAIR": pair, "RECORD": run.parent / "record.json", "OUT": tmp_path / "out"}
    places["HISTORY"] = tmp_path / "history"
    assert main([*(str(places.get(word, word)) for word in words.split()), "--json"]) == code
    value = strict(capsys.readouterr().out)
    assert keys <= set(value[0] if isinstance(value, list) else value)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A real run with --json, and what it said; the backend is wrong on purpose."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "small.json").write_text(json.dumps(CASES))
    options = [
        "--backends",
        "unconstrained",
        "--vocabularies",
        "probe",
        "--effort",
        "0",
        "--out",
        "run",
        "--record",
        "record.json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "harness", "run", "small.json", *options, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "rows in" in done.stderr, "progress is told, beside the document"
    return folder / "run", strict(done.stdout)


def test_run_says_folder_rows_statuses_and_metrics(ran: tuple[Path, Any]) -> None:
    _, said = ran
    assert said["complete"] and said["rows"] == 2 and said["statuses"] == {"ok": 2} and said["recorded"] == 1
    (backend,) = said["backends"]
    assert backend["backend"] == "unconstrained" and backend["metrics"]["invalidation_error"] == 1
    assert said["worst"]["state"] == "silently_wrong" and said["worst"]["case"] == "small: month"


def test_the_repro_that_a_run_names_shows_that_failure(
    ran: tuple[Path, Any], capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    folder, said = ran
    monkeypatch.chdir(folder.parent)
    assert main([*said["next"]["repro"][1:], "--json"]) == 0
    shown = strict(capsys.readouterr().out)
    assert (
        shown["verdict"] == "under_constrained"
        and bytes.fromhex(shown["content"]) == b"202"
        and shown["grammar"] == "20[0-9]{2}"
    )
    assert all(each["allowed"] and each["accepted"] for each in shown["walked"]) and shown["walked"]


def test_report_says_what_it_wrote(
    pair: Path, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(_: object, out: Path, *__: object, **___: object) -> Path:
        page = out / "report.html"  # a real page takes long, and tests/report/test_report.py looks at many
        out.mkdir()
        page.write_bytes(b"x" * 123)
        return page

    monkeypatch.setattr("harness.report.page.page.write_report", write)
    assert main(["report", str(pair), "--out", str(tmp_path / "page"), "--json"]) == 0
    assert strict(capsys.readouterr().out) == {
        "written": [{"path": str(tmp_path / "page" / "report.html"), "bytes": 123}]
    }


def test_check_and_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "unconstrained", "--vocabularies", "bytes", "--json"]) == 0
    said = strict(capsys.readouterr().out)
    assert said["keeps_the_contract"] and len(said["checks"]) > 5
    assert main(["table", "nowhere", "--json"]) == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1


def test_what_json_cannot_say_is_null_or_replaced() -> None:
    value = plain(
        {"a": float("nan"), "b": (float("inf"), Path("x")), 3: "\ud800", "s": frozenset("ba"), "arm": OLD}
    )
    assert strict(json.dumps(value))["a"] is None
    assert (
        value["b"] == [None, "x"]
        and value["3"] == "\ufffd"
        and value["s"] == ["a", "b"]
        and value["arm"]["backend"] == "toy"
    )


# ------------------------------------------------------------------------------------------------------ width


@pytest.mark.parametrize("text", ["", "short", "x" * 81, "漢" * 60, EVIL, "e\u0301" * 90, "x" * 1_000_000])
@pytest.mark.parametrize("room", [1, 2, 20, 80])
def test_a_shortened_text_has_room_and_both_ends(text: str, room: int) -> None:
    shown = shorten(text, room)
    assert cell_len(shown) <= room and "\n" not in shown and "\x1b" not in shown
    if cell_len(text) <= room and text.isprintable():
        assert shown == text
    assert (
        shorten("begin" + "x" * 100 + "end", 20)[:5] == "begin"
        and shorten("begin" + "x" * 100 + "end", 20)[-3:] == "end"
    )


@pytest.mark.parametrize("line", ["word " * 60, "漢字" * 100, " " * 200 + "x", f"    {EVIL}"])
def test_a_folded_line_fits(line: str) -> None:
    for width in (40, 80, 133):
        folded = Console(width).fold(line)
        assert (
            max(map(cell_len, folded)) <= width
            and len(folded) <= 8
            and not any("\x1b" in each for each in folded)
        )


def test_comparisons_fit_80_columns_under_hostile_names(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ([], ["--means"]):
        assert main(["compare", str(pair), *options]) == 0
        shown = capsys.readouterr().out
        assert widest(shown) <= 80 and not set(shown) & set("\x1b\u202e\r")
        assert "\nSLOWER" not in shown, "a name must not begin a line of ours"
        assert "SLOWER" in shown and "a long long long" not in shown


def test_a_comparison_begins_with_what_matters(pair: Path) -> None:
    said = compare.pairs_text(compare.compare_arms(pair)).split("\n")
    assert said[0] == "toy==1 -> toy==2"
    assert said[1].split() == ["outcomes", "1", "worse,", "of", "1", "case"]
    assert "SLOWER" in said[2] and said[2].startswith("  times")
    assert said[3] == "gate: FAILED: toy==2 has new faults in 1 case"
    assert said.index("") < 8 and "new faults: 1 case" in said


def test_a_long_head_is_broken_at_a_hyphen_where_the_table_is_too_wide() -> None:
    def heads(width: int) -> list[str]:
        names = ["outlines-core", "lm-format-enforcer"]
        lines = grid("", names, [[("slowest compile", ["1.23 s", "9.05 ms"])]], width).splitlines()
        return [line.split("  ")[-1].strip() for line in lines if "-" in line or "enforcer" in line]

    assert heads(80) == ["lm-format-enforcer"]
    assert heads(48) == ["lm-format-", "enforcer"]


def test_a_summary_is_short_and_fits(run: Path, pair: Path) -> None:
    for folder in (run, pair):
        said = run_summary.summary_text(run_summary.read_summary(folder), PIPE)
        assert widest(said) <= 80 and not set(said) & set("\x1b\u202e\r")
        # The answer of at most nine lines, and every row there can be, but for one.
        assert said.startswith("Use ") and len(said.partition("\n\nworst")[0].split("\n")) <= 38
        for word in ("grammarbench report", "grammarbench repro", "--format all", "worst failure ("):
            assert word in " ".join(said.replace("\\\n", " ").split())


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (lambda _: [][1], "IndexError: list index out of range"),
        (lambda _: os._exit(3), "its process was lost"),
    ],
)
def test_a_summary_that_fails_takes_nothing_of_the_run_with_it(
    fails: Callable[[Path], Any], why: str, as_json: bool, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_summary, "read_summary", fails)
    with pytest.raises(BadInput) as told:
        summarize(run, as_json)
    expected = f"the summary of {run} failed ({why}); the run is stored there whole: grammarbench report"
    assert str(told.value).startswith(expected)


def test_the_worst_failure_is_by_kind_not_by_order(synthetic: ModuleType, tmp_path: Path) -> None:
    fates: list[dict[str, Any]] = [
        {"status": "timeout", "accepted": None},
        {"status": "harness_error", "accepted": None},
        {"valid": False},
        {"accepted": False},
    ]
    walks = [
        [(synthetic.row(case=str(number), case_id=f"{number:012}", **fate), b"")]
        for number, fate in enumerate(fates)
    ]
    folder = synthetic.write_run(tmp_path / "run", walks, synthetic.info(synthetic.ARMS[:1]))
    found = run_summary.read_summary(folder).worst
    assert found is not None and (found.state, found.case) == (CaseState.SILENTLY_WRONG, "2")
    ours = synthetic.write_run(tmp_path / "ours", walks[1:2], synthetic.info(synthetic.ARMS[:1]))
    assert run_summary.read_summary(ours).worst is None and "repro" not in run_summary.summary_text(
        run_summary.read_summary(ours), PIPE
    )
    torn = synthetic.write_run(
        tmp_path / "torn", walks[:1], synthetic.info(synthetic.ARMS[:1]), complete=False
    )
    assert "INCOMPLETE" in run_summary.summary_text(run_summary.read_summary(torn), PIPE)


def test_a_broken_command_is_the_same_for_a_shell() -> None:
    words = ["printf", "%s\\n", "a b", "$HOME", *("word" + "y" * 30 for _ in range(6)), "it's"]
    line = command(words, 60)
    assert max(map(len, line.split("\n"))) <= 60 and line.count("\\\n") > 1
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == words[2:]


# ----------------------------------------------------------------------------------------------------- colour


def on_a_terminal(arguments: list[str], **environment: str) -> str:
    """What the command shows on a pseudo-terminal of 100 columns."""
    master, slave = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    env = kept | {"TERM": "xterm-256color", "COLUMNS": "100"} | environment
    with subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments], stdin=slave, stdout=slave, stderr=slave, env=env
    ) as process:
        os.close(slave)
        said = b""
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # Linux says so at the end
                break
            if not data:
                break
            said += data
    os.close(master)
    assert process.returncode == 0, said
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("verb", ["compare", "table"])
def test_colour_is_for_terminals_and_no_color_stops_it(
    verb: str, pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [verb, str(pair), *(["summary"] if verb == "table" else [])]
    assert main(words) == 0
    assert "\x1b" not in capsys.readouterr().out
    coloured, bare = on_a_terminal(words), on_a_terminal(words, NO_COLOR="1")
    assert re.search(r"\x1b\[31m(1 worse|valid output refused)\x1b\[0m", coloured), coloured
    assert "\x1b" not in bare and "\x1b" not in on_a_terminal(words, TERM="dumb")
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert stripped == bare and 80 < widest(bare) <= 100, "the same words, in the terminal's width"
    assert "\u202e" not in coloured


def test_a_terminal_that_is_narrow_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "57")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.console() == Console(57, True)
    monkeypatch.setenv("COLUMNS", "3")
    assert terminal.console().width == terminal.NARROWEST


def test_a_command_of_ours_stands_in_a_sentence_as_a_shell_takes_it() -> None:
    assert our_command("measure", "--out", "my runs") == "`grammarbench measure --out 'my runs'`"


def test_names_beyond_a_few_are_counted() -> None:
    assert (some([], 2), some(["a", "b"], 2), some(["a", "b", "c"], 2)) == ("", "a, b", "a, b and 1 more")
    assert some(["a"] * 2000, 1, "; ") == "a and 1,999 more"
