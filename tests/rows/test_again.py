"""Commands that are printed about a run carry what the run was given, and run as they are printed."""

from __future__ import annotations

import html
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from decode_runs import Played, decoding
from html_page import render
from report_folders import STEPWISE, TEXTS, write_decoding, write_rows

from harness.backend.arm import Arm
from harness.cli.main import main, parser
from harness.rows.again import how_to_complete, more, resume_command, spec_of, suites_of
from harness.rows.row import RunInfo
from harness.rows.store import read_info

CASES = [
    {
        "description": "two",
        "choice": ["a", "b"],
        "tests": [{"text": "a", "valid": True}, {"text": "c", "valid": False}],
    }
]
ARMS = (
    Arm("xgrammar", "0.2.8", "any_whitespace=false", "xgrammar", (), "bitmask"),
    Arm("my_module:Mine", "", "", "", (), "bitmask"),
    Arm("vllm", "0.33+xgrammar-0.2.8", "wrapper=xgrammar", "vllm", (), "bitmask"),
)


def info(*argv: str, **fields: object) -> RunInfo:
    made: RunInfo = synthetic.info(
        ARMS, vocabularies={"hf:my tokenizer": {}, "probe": {}}, suites={"x": {}, "regex": {}}
    )
    asked = ("my suite/", "tools.json") if argv == RUN else ()
    return replace(made, argv=argv, asked=asked, **fields)  # type: ignore[arg-type]


RUN = (
    "run",
    "my suite/",
    "tools.json",
    "--backends",
    "xgrammar",
    "--vocabularies",
    "hf:my tokenizer,probe",
    "--out",
    "first run",
)


PRINTED = r'<code(?: class="repro")?>(grammarbench \w+ [^<]*--out [^<]*)</code>'


def test_suites_are_told_as_they_were_given() -> None:
    assert suites_of(info(*RUN)) == ["my suite/", "tools.json"]
    assert suites_of(info("run", "--backends", "a")) == ["regex"], (
        "none was named: those of ours that were walked"
    )
    assert suites_of(info("pytest", "-q")) == ["regex"]


@pytest.mark.parametrize("verb", ["run", "measure", "decode", "kernels"])
def test_a_command_carries_suites_vocabularies_versions_and_options(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = [spec_of(arm, arm.version, bool(arm.distribution)) for arm in ARMS]
    words = shlex.split(more(verb, [(Path("first run"), info(*RUN))], specs))
    told = vars(parser().parse_args(words[1:]))
    assert told["backends"] == "xgrammar==0.2.8:any_whitespace=false,my_module:Mine,vllm:wrapper=xgrammar"
    if verb != "kernels":
        assert (told.get("suites") or told["workloads"]) == ["my suite/", "tools.json"]
        assert "hf:my tokenizer" in (told.get("vocabulary"), *(told.get("vocabularies") or ()))
    assert capsys.readouterr().out == ""


def test_a_run_is_completed_by_its_own_command() -> None:
    assert shlex.split(resume_command(Path("elsewhere"), info(*RUN)))[1:] == [*RUN, "--resume"]
    advice = ("advise", "tools.json", "--out", "x")
    assert shlex.split(resume_command(Path("x"), info(*advice)))[1:] == [*advice, "--resume"]
    assert shlex.split(resume_command(Path("runs/x y"), info("run", "--backends", "a")))[-3:] == [
        "--resume",
        "--out",
        "runs/x y",
    ]


def test_a_run_that_was_put_together_is_completed_by_what_it_holds(tmp_path: Path) -> None:
    merged = info("merge", str(tmp_path), "a")
    assert shlex.split(resume_command(tmp_path, merged))[1:] == ["run", "--resume", "--out", str(tmp_path)]
    (tmp_path / "experiment.toml").touch()
    assert shlex.split(resume_command(tmp_path, merged))[1:3] == ["run", f"{tmp_path}/experiment.toml"]
    assert "cannot be resumed" in how_to_complete(tmp_path, info("live", "--url", "http://x"))
    assert how_to_complete(tmp_path, merged) == f"`{resume_command(tmp_path, merged)}` completes it"


def test_the_page_s_commands_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would measure mask times, on the user's own suite and vocabulary; run in the folder in which the
    run was made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my cases.json").write_text(json.dumps(CASES))
    words = [
        "run",
        "my cases.json",
        "--backends",
        "reference",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
        "--out",
        "my run",
    ]
    monkeypatch.setattr("sys.argv", ["grammarbench", *words])
    assert main(words) == 0 and main(["report", "my run"]) == 0
    page = (tmp_path / "my run" / "report" / "report.html").read_text("utf-8")
    printed = {html.unescape(each) for each in re.findall(PRINTED, page)}
    measure = [
        shlex.split(each)
        for each in printed
        if each.startswith("grammarbench measure ") and " kernels " not in each
    ]
    assert measure == [
        [
            "grammarbench",
            "measure",
            "my cases.json",
            "--backends",
            "reference",
            "--vocabularies",
            "bytes",
            "--out",
            "my run-measured",
        ]
    ]
    decode = next(shlex.split(each) for each in printed if each.startswith("grammarbench decode"))
    assert decode[2] == "my cases.json" and decode[decode.index("--vocabularies") + 1] == "bytes"
    assert not any("DIR" in each or "…" in each for each in printed)
    assert (
        main([*measure[0][1:], "--forks", "1"]) in (0, 4) and read_info(tmp_path / "my run-measured").suites
    )


def printed_on(*folders: Path) -> set[str]:
    return {html.unescape(each) for each in re.findall(PRINTED, render(list(folders)))}


def test_no_command_measures_a_live_server(tmp_path: Path) -> None:
    engine = Arm("engine", "0.12", "", "", ("json_schema",), "bitmask")
    header = synthetic.info([engine], run="session", argv=("live", "http://x"))
    row = synthetic.row(backend="engine", backend_version="0.12")
    live = synthetic.write_run(tmp_path / "live", [[(row, b"")]], header)
    assert printed_on(live) == set(), "a run on the server's model was printed"
    rows = write_rows(synthetic, tmp_path / "run", cases=2)
    assert printed_on(live, rows) == printed_on(rows) and len(printed_on(rows)) == 3


def test_suites_of_bare_schemas_are_not_decoded(tmp_path: Path) -> None:
    """Their documents are made, and `decode` makes none: the command ended with 2."""
    bare = {"s": {"version": "", "sha256": "", "cases": 1, "instances": 9, "generated": 9}}
    for number, suites in enumerate((bare, bare | {"t": bare["s"] | {"instances": 10}})):
        walks = [[(synthetic.row(), b"")]]
        run = synthetic.write_run(tmp_path / str(number), walks, synthetic.info(suites=suites))
        assert not any(each.startswith("grammarbench decode") for each in printed_on(run))


def test_a_decoding_says_its_suites_and_vocabulary_where_there_is_no_run(tmp_path: Path) -> None:
    record = decoding({STEPWISE: {"alpha": Played(TEXTS)}})
    settings = (replace(STEPWISE, rate=9.0, workload="mine"), replace(STEPWISE, rate=9.0, workload="enums"))
    argv = ("decode", "my suites/mine.jsonl", "enums", "--backends", "alpha")
    setup = replace(record.setup, settings=settings, argv=argv)
    folder = write_decoding(tmp_path / "d", replace(record, setup=setup))
    assert printed_on(folder) == {
        "grammarbench run 'my suites/mine.jsonl' decode --backends alpha==1 --vocabularies tekken "
        "--out d-walked",
        "grammarbench measure 'my suites/mine.jsonl' decode --backends alpha==1 --vocabularies tekken "
        "--out d-measured",
        "grammarbench decode 'my suites/mine.jsonl' enums --backends alpha==1 --vocabularies tekken "
        "--strategies stepwise,jump_forward --out d-decoded",
        "grammarbench measure kernels --backends alpha==1 --out d-kernels",
    }
