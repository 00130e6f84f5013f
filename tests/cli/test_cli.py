"""The command line, run as a user runs it, with real backends."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from places import SUPPORT
from refused import behind_progress, exit_code

from harness.cli.main import parser
from harness.rows.folder import locked
from harness.rows.row import verdict
from harness.rows.store import read_end, read_rows

SMALL = [
    {
        "description": "integer",
        "schema": {"type": "integer"},
        "tests": [{"data": 10, "valid": True}, {"data": "x", "valid": False}],
    },
    {
        "description": "month",
        "regex": "20[0-9]{2}-[01][0-9]",
        "tests": [{"text": "2026-11", "valid": True}, {"text": "2026-1", "valid": False}],
    },
    {
        "description": "sum",
        "ebnf": 'root ::= [0-9]+ ("+" root)?',
        "tests": [{"text": "1+22", "valid": True}, {"text": "1+", "valid": False}],
    },
]


def grammarbench(*arguments: object, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
    )


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """What `grammarbench` does, in the test's own process: importing pandas and the rest once more would take
    longer than all else, and says nothing."""

    def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        code = exit_code([*map(str, arguments)])
        assert isinstance(code, int)
        said = capsys.readouterr()
        return subprocess.CompletedProcess([*map(str, arguments)], code, said.out, said.err)

    return run


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run of real backends."""
    folder = tmp_path_factory.mktemp("stored")
    write(folder / "small.json", SMALL)
    backends = "xgrammar,llguidance:threads=1,outlines_core,lm-format-enforcer,unconstrained"
    done = grammarbench(
        "run",
        "small.json",
        "--backends",
        backends,
        "--vocabularies",
        "probe",
        "--out",
        "run",
        "--jobs",
        2,
        "--effort",
        0,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "5 backends" in done.stderr and "Compliance" in done.stdout and "\x1b" not in done.stdout
    return folder / "run"


def test_a_run_stores_a_row_for_every_instance_of_every_backend(stored: Path) -> None:
    rows = list(read_rows(stored))
    assert len(rows) == 5 * 6
    assert read_end(stored) is not None
    by = {(row.backend, row.case.split(": ")[1], row.instance): row for row in rows}
    for backend in ("xgrammar", "llguidance", "outlines-core"):
        for case in ("integer", "month"):
            for instance in (0, 1):
                row = by[backend, case, instance]
                assert verdict(row.status, row.valid, row.accepted) == "pass", row
    assert (
        by["outlines-core", "sum", 0].status == "unsupported"
        and by["outlines-core", "sum", 0].phase == "dialect"
    )
    assert verdict("ok", False, by["unconstrained", "month", 1].accepted) == "under_constrained"
    assert by["llguidance", "integer", 0].options == "threads=1"
    assert by["xgrammar", "month", 1].stopped_at == by["xgrammar", "month", 1].tokens, (
        "refused at end-of-sequence"
    )


def test_the_table_has_a_line_per_instance(stored: Path, command: Command) -> None:
    done = command("table", stored, "--format", "csv", cwd=stored)
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    wanted = (
        "backend backend_version vocabulary suite case instance status valid accepted verdict stopped_at "
        "compile_ns matcher_new_ns "
        "first_fill_ns tokens peak_rss_bytes"
    )
    assert done.returncode == 0 and len(lines) == 30 and set(wanted.split()) <= set(lines[0])
    listed = json.loads(command("table", stored, "--format", "json", cwd=stored).stdout)
    assert len(listed) == 30
    first = next(each for each in listed if each["backend"] == "xgrammar")
    assert (
        isinstance(first["compile_ns"], int)
        and first["compile_ns"] > 0
        and first["peak_rss_bytes"] > 1_000_000
    )
    assert first["stopped_at"] is None or isinstance(first["stopped_at"], int)
    assert "| backend" in command("table", stored, "--format", "markdown", cwd=stored).stdout


def test_the_report_is_one_page(stored: Path, command: Command) -> None:
    done = command("report", stored, "--out", "page", cwd=stored)
    assert done.returncode == 0, done.stderr
    (page,) = (stored / "page").glob("*.html")
    assert "<svg" in page.read_text()


def test_repro_shows_the_failure_and_a_script_that_shows_it_too(stored: Path) -> None:
    done = grammarbench(
        "repro", stored, "small: month", "--backends", "llguidance", "--instance", 1, cwd=stored
    )
    assert done.returncode == 0, done.stderr
    assert (
        "20[0-9]{2}-[01][0-9]" in done.stdout and "</s>" in done.stdout and "allowed there: " in done.stdout
    )
    script = done.stdout.partition("without GrammarBench:")[2]
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=stored)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1].split()[-2:] == ["False", "False"], shown.stdout
    assert "import harness" not in script and "from harness" not in script


@pytest.mark.long
@pytest.mark.parametrize("backend", ["xgrammar", "llguidance", "outlines-core", "lm-format-enforcer"])
def test_every_script_runs_by_itself(stored: Path, backend: str) -> None:
    done = grammarbench("repro", stored, "small: integer", "--backends", backend, "--instance", 0, cwd=stored)
    script = done.stdout.partition("without GrammarBench:")[2]
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=stored)
    assert shown.returncode == 0, shown.stderr
    said, *walked = shown.stdout.splitlines()
    assert said == "jsonschema.Draft202012Validator: the instance is valid"
    assert {tuple(line.split()[-2:]) for line in walked} == {("True", "True")}, shown.stdout


def test_check_passes_the_baseline(tmp_path: Path) -> None:
    done = grammarbench("check", "unconstrained", "--vocabularies", "bytes", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "keeps the contract" in done.stdout


def test_check_names_a_broken_fact_and_survives_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    done = grammarbench(
        "check", "miniatures.unruly:CrashesInRollback", "--vocabularies", "bytes", cwd=tmp_path
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "killed by SIGSEGV" in done.stdout and done.stdout.count("passed") > 5


@pytest.mark.parametrize("name", ["ExitsWhenMade", "ExitsInACheck"])
def test_check_is_not_passed_by_a_process_that_ends_with_0(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    done = grammarbench("check", f"miniatures.unruly:{name}", "--vocabularies", "bytes", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    ended = {"ExitsWhenMade": "the process ended with 0 while it loaded", "ExitsInACheck": "with exit code 0"}
    assert ended[name] in done.stdout


def test_a_run_of_a_backend_that_ends_its_process_when_it_is_made_has_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    (tmp_path / "mine.json").write_text('[{"regex": "a+", "tests": [{"text": "aa", "valid": true}]}]')
    backend = ("--backends", "miniatures.unruly:ExitsWhenMade", "--vocabularies", "bytes")
    done = grammarbench("run", "mine.json", *backend, "--out", "made", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    told = {(row.status, row.phase, row.text) for row in read_rows(tmp_path / "made")}
    assert told == {("crash", "load", "the process ended with 0 while it loaded the backend")}


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "RefusesAll",
            4,
            r"nothing is known of untold:RefusesAll: it compiles none of the sample grammars \(declared, but "
            r"with these options unsupported: regex: not today.*\)$",
        ),
        (
            "Hangs",
            1,
            r"untold:Hangs: \d checks did not end in time \(--timeout\); \d\d passed; \d had nothing to try$",
        ),
    ],
)
def test_check_tells_what_it_could_not_try_from_what_is_kept_and_broken(
    name: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "untold.py").write_text(
        "import time\n"
        "from harness import UnsupportedGrammar\n"
        "from miniatures.reference import Reference, ReferenceObject\n"
        "class RefusesAll(Reference):\n"
        "    def compile(self, grammar):\n"
        "        raise UnsupportedGrammar('not today')\n"
        "class Object(ReferenceObject):\n"
        "    def rollback(self, count):\n"
        "        time.sleep(60)\n"
        "class Hangs(Reference):\n"
        "    object_class = Object\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(SUPPORT), str(tmp_path))))
    program = ("check", f"untold:{name}", "--vocabularies", "bytes", "--timeout", "2")
    done = grammarbench(*program, cwd=tmp_path)
    assert done.returncode == code and re.match(said, done.stdout.splitlines()[-1]), done.stdout + done.stderr
    answer = json.loads(grammarbench(*program, "--json", cwd=tmp_path).stdout) if code == 4 else {}
    assert not answer.get("keeps_the_contract")


def test_lists_say_what_is_there(tmp_path: Path, command: Command) -> None:
    backends = command("list", "backends", cwd=tmp_path).stdout
    assert "outlines-core" in backends and "whitespace=" in backends and "json_schema" in backends
    suites = command("list", "suites", cwd=tmp_path).stdout
    assert "json_schema" in suites and "instances" in suites
    vocabularies = command("list", "vocabularies", cwd=tmp_path).stdout
    assert "131,072" in vocabularies and "mistral-v3" in vocabularies and "probe" in vocabularies


def test_help_is_quick_and_imports_little(tmp_path: Path) -> None:
    def used() -> float:
        return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

    seconds = []
    for _ in range(3):
        before = used()
        assert "run" in grammarbench("--help", cwd=tmp_path).stdout
        seconds.append(used() - before)  # of a processor: the machine may be busy with something else
    assert min(seconds) < 0.6
    code = (
        "import sys, harness.cli.main; sys.exit(bool({'torch', 'pandas', 'matplotlib', 'xgrammar'} & "
        "set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0


def test_ctrl_c_while_the_command_line_is_imported_is_one_line(tmp_path: Path) -> None:
    code = (
        "import runpy, sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'harness.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "runpy.run_module('harness', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "grammarbench: interrupted\n")


BAD: dict[str, tuple[list[str], str]] = {
    "backend": (["run", "small.json", "--backends", "xgramar"], 'did you mean "xgrammar"?'),
    "version": (
        ["run", "small.json", "--backends", "llguidance==newest"],
        '"newest" is no version of llguidance',
    ),
    "option": (["run", "small.json", "--backends", "llguidance:thread=1"], 'did you mean "threads"?'),
    "value": (["run", "small.json", "--backends", "llguidance:whitespace=none"], "any"),
    "vocabulary": (
        ["run", "small.json", "--backends", "unconstrained", "--vocabularies", "teken"],
        'did you mean "tekken"?',
    ),
    "suite": (["run", "regexx", "--backends", "unconstrained"], 'did you mean "regex"?'),
    "json": (["run", "broken.json", "--backends", "unconstrained"], "broken.json:2:1: malformed JSON"),
    "grammar": (["run", "none.json", "--backends", "unconstrained"], "a case without grammar"),
    "schema": (["run", "noschema.json", "--backends", "unconstrained"], "not a JSON Schema"),
    "bare schema": (["run", "bare.json", "--backends", "unconstrained"], "not a JSON Schema"),
    "output": (
        ["run", "small.json", "--backends", "unconstrained", "--out", "/proc/nowhere"],
        "cannot be written",
    ),
    "report output": (["report", "{stored}", "--out", "/proc/nowhere"], "/proc/nowhere"),
    "over a run": (
        ["run", "small.json", "--backends", "unconstrained", "--out", "{stored}"],
        "holds a run already",
    ),
    "no run": (["table", "."], "no run here"),
    "a folder of runs": (["table", "{stored}/.."], "; but in"),
    "no case": (
        ["repro", "{stored}", "small: mnth", "--backends", "xgrammar"],
        'did you mean "small: month"?',
    ),
    "no such arm": (["repro", "{stored}", "small: month", "--backends", "xgr"], 'did you mean "xgrammar"?'),
    "case": (
        ["run", "small.json", "--backends", "unconstrained", "--case", "mnth"],
        'no case "mnth" in small; did you mean "small: month"?',
    ),
    "check": (["check", "llguidence"], 'did you mean "llguidance"?'),
    "jobs": (["run", "small.json", "--backends", "unconstrained", "--jobs", "0"], "whole number above 0"),
    "measured": (
        ["measure", "broken.json", "--backends", "unconstrained", "--base", "unconstrained"],
        "broken.json:2:1: malformed JSON",
    ),
}
BEFORE_BACKENDS = ("suite", "json", "grammar", "case", "vocabulary", "jobs", "measured")
"""What is told before backends are looked at, which takes seconds."""


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    name: str, stored: Path, tmp_path: Path, command: Command
) -> None:
    write(tmp_path / "small.json", SMALL)
    write(tmp_path / "broken.json", '{"regex":\n}')
    write(tmp_path / "none.json", {"description": "x", "tests": []})
    write(tmp_path / "noschema.json", {"schema": {"type": "strin"}})
    write(tmp_path / "bare.json", {"type": "object", "required": "name"})
    before = (stored / "rows.jsonl").read_bytes()
    arguments, said = BAD[name]
    done = command(*(each.replace("{stored}", str(stored)) for each in arguments), cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = behind_progress(done.stderr.strip())
    assert said in lines[-1] and "Traceback" not in done.stderr
    assert len(lines) == 1 or lines[0].startswith("usage:")
    assert name not in BEFORE_BACKENDS or "looking at" not in done.stderr
    assert (stored / "rows.jsonl").read_bytes() == before


def test_what_cannot_be_a_path_and_what_is_not_there_is_told(tmp_path: Path, command: Command) -> None:
    write(tmp_path / "small.json", SMALL)
    (tmp_path / "file").touch()
    for arguments in (
        ["run", "x" * 300, "--backends", "unconstrained"],
        ["run", "smal.json"],  # before all backends are looked at, of which a line would tell
        ["measure", "smal.json"],
        ["run", "small.json", "--backends", "unconstrained", "--vocabularies", "~nosuch/x"],
        ["run", "small.json", "--backends", ""],
        ["run", "small.json", "--backends", "unconstrained", "--out", "file"],
        ["run", "small.json", "--backends", "unconstrained", "--out", "new", "--resume"],
    ):
        done = command(*arguments, cwd=tmp_path)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_file_beside_the_cases_is_not_imported(tmp_path: Path) -> None:
    write(tmp_path / "small.json", SMALL[:1])
    for name in ("json.py", "numpy.py", "regex.py"):
        write(tmp_path / name, "import pathlib\npathlib.Path('owned').touch()\n")
    # As the installed command does: without the current folder on the path.
    command = [
        sys.executable,
        "-P",
        "-m",
        "harness",
        "run",
        "small.json",
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
    ]
    done = subprocess.run([*command, "--out", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "owned").exists()


def test_a_run_that_is_being_written_is_left_alone(stored: Path, tmp_path: Path, command: Command) -> None:
    write(tmp_path / "small.json", SMALL)
    with locked(stored):
        done = command(
            "run",
            "small.json",
            "--backends",
            "unconstrained",
            "--effort",
            0,
            "--out",
            stored,
            "--resume",
            cwd=tmp_path,
        )
    assert done.returncode == 2 and "being written by another process" in done.stderr


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    write(tmp_path / "small.json", SMALL)
    command = (
        f"{sys.executable} -m harness run small.json --backends unconstrained --vocabularies bytes "
        "--out run | head -n 1"
    )
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    assert read_end(tmp_path / "run") is not None


def test_a_run_killed_before_its_header_is_started_anew(tmp_path: Path) -> None:
    write(tmp_path / "small.json", SMALL[:1])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rows.jsonl").write_text('{"kind":"ru')
    (tmp_path / "run" / "samples.i64").write_bytes(b"123")
    done = grammarbench(
        "run",
        "small.json",
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        0,
        "--out",
        "run",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert len(list(read_rows(tmp_path / "run"))) == 2


def copy_of(stored: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("rows.jsonl", "samples.i64", "cases.jsonl"):
        (folder / name).write_bytes((stored / name).read_bytes())
    return folder


def test_a_cut_off_run_is_told_and_resumed(tmp_path: Path, command: Command) -> None:
    """Cut in the middle of a line: what is whole is shown as an incomplete run, exit 3; --resume completes it
    with the same rows."""
    write(tmp_path / "small.json", SMALL)
    walked = [
        "run",
        "small.json",
        "--backends",
        "llguidance:threads=1,unconstrained",
        "--vocabularies",
        "probe",
    ]
    walked += ["--effort", "0", "--out"]
    assert grammarbench(*walked, "whole", cwd=tmp_path).returncode == 0
    run = copy_of(tmp_path / "whole", tmp_path / "cut")
    whole = run.joinpath("rows.jsonl").read_bytes()
    inside_a_line = whole.index(b"\n", len(whole) * 2 // 3) - 5
    run.joinpath("rows.jsonl").write_bytes(whole[:inside_a_line])
    for words in (["table", run], ["report", run]):
        told = command(*words, cwd=tmp_path)
        assert told.returncode == 3 and "incomplete" in told.stderr
    other = command(*walked, run, "--resume", "--timeout", 3, cwd=tmp_path)
    assert (
        other.returncode == 2
        and "other options" in other.stderr
        and "timeout_s 10.0; now 3.0" in other.stderr
    )
    done = grammarbench(*walked, run, "--resume", "--jobs", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    def seen(folder: Path) -> set[tuple[object, ...]]:
        return {
            (row.backend, row.case, row.instance, row.status, row.accepted, row.stopped_at, row.tokens)
            for row in read_rows(folder)
        }

    assert seen(run) == seen(tmp_path / "whole")


def test_an_incomplete_run_is_shown_with_exit_code_3(stored: Path, tmp_path: Path, command: Command) -> None:
    run = copy_of(stored, tmp_path / "open")
    lines = run.joinpath("rows.jsonl").read_bytes().splitlines(keepends=True)
    run.joinpath("rows.jsonl").write_bytes(b"".join(lines[:-1]))
    for words in (["table", run], ["report", run]):
        done = command(*words, cwd=tmp_path)
        assert done.returncode == 3 and "incomplete" in done.stderr


def test_damage_in_the_middle_is_told(stored: Path, tmp_path: Path, command: Command) -> None:
    run = copy_of(stored, tmp_path / "damaged")
    lines = run.joinpath("rows.jsonl").read_bytes().splitlines(keepends=True)
    run.joinpath("rows.jsonl").write_bytes(b"".join([lines[0], b'{"kind":"row"}\n', *lines[1:]]))
    done = command("table", run, cwd=tmp_path)
    assert done.returncode == 2 and "rows.jsonl:2" in done.stderr


@pytest.mark.long
def test_a_hostile_case_file_is_walked_and_shown_without_harm(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.1)
        secret = tmp_path / "secret.json"
        write(secret, {"const": "the secret"})
        script = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
        deep = "{" + '"items":{' * 10_000 + "}" * 10_000 + "}"
        hostile = [
            {
                "description": "../../../../tmp/owned",
                "schema": {"type": "string"},
                "tests": [{"description": script, "data": script, "valid": True}],
            },
            {
                "description": script,
                "regex": "</script>[a-z]+\u2028",
                "tests": [{"text": "</script>x\u2028", "valid": True}, {"text": "<!--", "valid": False}],
            },
            {
                "description": "\x1b]0;owned\x07\x1b[31m",
                "choice": [script],
                "tests": [{"text": script, "valid": True}],
            },
            {
                "description": "file ref",
                "schema": {"$ref": secret.as_uri()},
                "tests": [{"data": "the secret"}, {"data": 1}],
            },
            {
                "description": "http ref",
                "schema": {"$ref": f"http://127.0.0.1:{listener.getsockname()[1]}/s"},
                "tests": [{"data": 1}],
            },
            {
                "description": "catastrophic",
                "schema": {"pattern": "^(a+)+$"},
                "tests": [{"data": "a" * 40 + "!"}],
            },
        ]
        folder = tmp_path / "cases"
        folder.mkdir()
        write(folder / "..%2f..%2fowned.json", hostile)
        write(
            folder / "deep.json",
            f'{{"schema": {deep}, "tests": [{{"data": {"[" * 10_000 + "]" * 10_000}}}]}}',
        )
        backends = "llguidance,xgrammar,outlines-core,lm-format-enforcer,unconstrained"
        start = time.monotonic()
        done = grammarbench(
            "run",
            folder,
            "--backends",
            backends,
            "--vocabularies",
            "probe",
            "--timeout",
            2,
            "--effort",
            0,
            "--out",
            "run",
            "--jobs",
            2,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - start < 100
        assert "\x1b" not in done.stdout and "harness_error" not in done.stdout
        page = grammarbench("report", "run", "--out", "page", cwd=tmp_path)
        assert page.returncode == 0, page.stderr
        shown = grammarbench(
            "repro",
            "run",
            "..%2f..%2fowned: \x1b]0;owned\x07\x1b[31m",
            "--backends",
            "unconstrained",
            cwd=tmp_path,
        )
        assert shown.returncode == 0 and "\x1b" not in shown.stdout
        with pytest.raises(TimeoutError):
            listener.accept()
    rows = list(read_rows(tmp_path / "run"))
    references = [row for row in rows if row.case.endswith(("file ref", "http ref"))]
    assert references and all(row.valid is None for row in references), (
        "the judge must not have read what a $ref points to"
    )
    for backend in backends.split(","):
        # Who had read the file would take its text and nothing else; who ignores the reference takes both.
        secret_row, other_row = (
            row for row in references if row.backend == backend and row.case.endswith("file ref")
        )
        assert (secret_row.accepted, other_row.accepted) != (True, False)
    (html,) = (tmp_path / "page").glob("*.html")
    text = html.read_text()
    assert script not in text and "onerror=alert(1)>" not in text and "\x1b" not in text
    assert not (Path("/tmp") / "owned").exists() and sorted(os.listdir(tmp_path)) == [
        "cases",
        "page",
        "run",
        "secret.json",
    ]


def test_a_corpus_out_of_reach_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No proxy and no host: as on a machine without network.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url.http://127.0.0.1:9/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    done = grammarbench("fetch", "maskbench", cwd=tmp_path)
    assert (
        done.returncode == 2 and "is there a network?" in done.stderr and len(done.stderr.splitlines()) == 1
    )


def test_vocabularies_have_one_spelling_in_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Words copied from `run` are understood everywhere; where one vocabulary is meant, two are refused in
    one line."""
    verbs = next(
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    ).choices
    spelled = {
        verb: option
        for verb, each in verbs.items()
        for option in each._option_string_actions
        if option.startswith("--vocab")
    }
    assert set(spelled) >= {"run", "measure", "measure doctor", "check", "bisect", "decode", "repro"}
    assert set(spelled.values()) == {"--vocabularies"}
    for verb in set(spelled) - {"run", "measure growth"}:
        with pytest.raises(SystemExit):
            parser().parse_args([*verb.split(), "--vocabularies", "tekken,probe"])
        assert "works on one vocabulary; name one of tekken,probe" in capsys.readouterr().err, verb


@pytest.mark.parametrize("verb", ["run", "measure", "measure doctor", "check", "bisect", "decode", "repro"])
@pytest.mark.parametrize("given", ["", " ", "probe,,bytes"])
def test_an_empty_name_of_a_vocabulary_is_refused(
    verb: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script whose variable is empty would walk the default, and nobody would see it."""
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([*verb.split(), "--vocabularies", given])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "empty" in said or "works on one vocabulary" in said
