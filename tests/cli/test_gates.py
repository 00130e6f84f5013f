"""A gate walks all that it names: the steps of the action (action.yml), run here with two releases of a
backend."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import toy_releases
import yaml
from junitparser import JUnitXml
from places import ROOT
from synthetic import ARMS, info, row, write_run
from toy_releases import RIGHT, SOURCE, wheel

from harness.cases.plan import PROFILES, write_plan
from harness.cases.suite import find_suite, read_cases
from harness.cli.main import main
from harness.rows.sample import sample
from harness.rows.store import read_info
from harness.running.session import SEED

ACTION = ROOT / "action.yml"

SUITE = "choice_and_tags"

MISSED = "sentiment labels"
"""A case that is not in the sample of the profile `default`."""

FAULT = (
    'return self.text in self.choices or (b"positive" in self.choices and b"positive".startswith(self.text))'
)
"""A fault that shows in that case only: the output may end anywhere inside the label."""

PART = {"version": "1", "sha256": "cd" * 32, "instances": 6}


@dataclass(frozen=True)
class Repository:
    """A backend's repository with a record of its release 1.0, and how its workflow is run with another
    release."""

    folder: Path
    old: Path
    new: Path

    def command(
        self, python: Path, *arguments: str, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["grammarbench", *arguments],
            cwd=folder or self.folder,
            env=self.environ(python),
            capture_output=True,
            text=True,
        )

    def shell(self, python: Path, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environ(python), capture_output=True, text=True
        )

    def environ(self, python: Path) -> dict[str, str]:
        """`grammarbench` is the command of that environment."""
        programs = self.folder / f"programs-{python.parents[1].name}"
        if not programs.exists():
            programs.mkdir()
            (programs / "grammarbench").write_text(f'#!/bin/sh\nexec "{python}" -P -m harness "$@"\n')
            (programs / "grammarbench").chmod(0o755)
        own = toy_releases.environ(self.folder / "index", self.folder / "cache")
        return own | {"PATH": f"{programs}{os.pathsep}{own['PATH']}"}

    def gated(self, python: Path, record: str, job: str, **inputs: str) -> tuple[int, str]:
        """The exit code of the action's step that walks and exports, and the summary that it wrote."""
        action = yaml.safe_load(ACTION.read_text("utf-8"))
        (step,) = [each for each in action["runs"]["steps"] if "grammarbench run" in each.get("run", "")]
        here = self.folder / job
        here.mkdir(exist_ok=True)
        defaults = {name: given["default"] for name, given in action["inputs"].items()}
        inputs = defaults | inputs | {"record": record}
        given = {name: inputs[value.split(".")[1].strip(" }")] for name, value in step["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=here,
            env=self.environ(python)
            | given
            | {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "outputs"},
            capture_output=True,
            text=True,
        )
        summary = here / "summary.md"
        return done.returncode, summary.read_text() if summary.exists() else done.stdout + done.stderr


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """With a record of release 1.0, made as docs/ci.md says, but without checks and of short choices: the
    backend is slow."""
    here = tmp_path_factory.mktemp("repository")
    quick = SOURCE.replace('if grammar.dialect != "choice":', "if len(grammar.text) > 200:")
    first = wheel(here / "index", "1.0", quick)
    second = wheel(here / "index", "1.1", quick.replace(RIGHT, FAULT))
    made = Repository(
        here, toy_releases.environment(here / "old", first), toy_releases.environment(here / "new", second)
    )
    done = made.command(
        made.old,
        "run",
        SUITE,
        "--backends",
        "toy-choice",
        "--effort",
        "0",
        "--out",
        "recorded",
        "--record",
        "known.json",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_the_case_is_one_that_a_sample_misses(tmp_path: Path) -> None:
    suite = find_suite(SUITE)
    assert MISSED in [case.name for case in read_cases(suite)]
    plan = write_plan([suite], PROFILES["default"], SEED, tmp_path / "plan")
    assert MISSED not in (tmp_path / "plan").read_text("utf-8")
    assert sample(plan.suites) == f"a sample: 12 of 66 cases of {SUITE}"


def test_a_record_is_of_whole_suites(repository: Repository) -> None:
    recorded = json.loads((repository.folder / "known.json").read_text())
    digest = recorded["suites"][SUITE].pop("sha256")
    assert recorded["profile"] == "gate" and recorded["suites"] == {SUITE: {"cases": 66, "cases_in_all": 66}}
    assert len(digest) == 64


@pytest.mark.long
def test_the_action_passes_the_release_that_is_recorded(repository: Repository) -> None:
    code, said = repository.gated(repository.old, "../known.json", "as-recorded")
    assert code == 0, said
    assert said.startswith("## GrammarBench: ✅ ok") and "a sample" not in said


def test_the_action_fails_a_release_that_is_wrong_where_a_sample_does_not_look(
    repository: Repository,
) -> None:
    code, said = repository.gated(repository.new, "../known.json", "worse")
    assert code == 1, said
    assert said.startswith("## GrammarBench: ❌ failed") and MISSED in said
    would_be = json.loads((repository.folder / "worse" / "grammarbench" / "record.json").read_text())
    assert would_be["arms"][0]["version"] == "1.1" and "under_constrained" in str(
        would_be["arms"][0]["cases"]
    )


def test_the_action_says_in_one_line_what_is_wrong_with_its_inputs(repository: Repository) -> None:
    code, said = repository.gated(repository.old, "none.json", "no-record")
    assert (code, said.count("\n")) == (2, 1) and "none.json: cannot be read" in said


def test_the_action_reports_no_run_of_an_earlier_use(repository: Repository) -> None:
    """Another name is another folder."""
    stored = repository.folder / "twice" / "grammarbench" / "run" / "rows.jsonl"
    stored.parent.mkdir(parents=True)
    stored.write_text("of yesterday")
    code, said = repository.gated(repository.old, "../known.json", "twice")
    assert (code, said.count("\n")) == (2, 1) and "grammarbench/run is there already" in said
    assert not (repository.folder / "twice" / "outputs").exists()
    code, said = repository.gated(repository.old, "none.json", "twice", name="second")
    assert code == 2 and "none.json: cannot be read" in said
    assert (repository.folder / "twice" / "outputs").read_text() == "folder=second\n"


def test_the_action_ends_as_the_report_does_that_cannot_be_written(
    repository: Repository, tmp_path: Path
) -> None:
    """A folder of that name stands in the way of the summary."""
    (repository.folder / "no-page" / "grammarbench" / "summary.md").mkdir(parents=True)
    code, said = repository.gated(repository.old, "../known.json", "no-page")
    assert code == 2, said
    assert (repository.folder / "no-page" / "grammarbench" / "record.json").is_file()


def test_a_sample_asked_for_by_name_is_walked_said_and_proves_nothing(repository: Repository) -> None:
    quick = (
        "run",
        SUITE,
        "--backends",
        "toy-choice",
        "--profile",
        "default",
        "--vocabularies",
        "probe",
        "--out",
        "sampled",
    )
    done = repository.command(repository.new, *quick, "--expect", "known.json")
    assert done.returncode == 4 and f"a sample: 12 of 66 cases of {SUITE}" in done.stdout
    gated = repository.command(repository.new, "compare", "known.json", "sampled", "--gate")
    assert gated.returncode == 4
    written = repository.command(
        repository.new,
        "report", "sampled", "--against", "known.json", "--format", "summary", "--out", "exported",
    )  # fmt: skip
    assert written.returncode == 0, written.stderr
    assert (
        (repository.folder / "exported" / "summary.md").read_text().startswith("## GrammarBench: ⚠️ unproven")
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--effort", "2"], "recorded with effort 0, walked with 2"),
        (["--vocabularies", "bytes"], "recorded on probe, walked on bytes"),
        (["--vocabularies", "probe,bytes"], "recorded on probe, and not on bytes"),
        (["--seed", "7"], "recorded with seed 0, walked with 7"),
        (["--decode"], "recorded with decode false, walked with true"),
        (["--spellings"], "--spellings walks other instances"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_what_is_not_as_recorded_is_refused_before_anything_is_walked(
    repository: Repository, options: list[str], told: str
) -> None:
    done = repository.command(repository.new, "run", "--expect", "known.json", *options, "--out", "refused")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and told in line
    assert not (repository.folder / "refused").exists()


def test_the_gate_takes_everything_from_the_record(repository: Repository) -> None:
    """Suites, backends, tokenizers, effort and timeout; from another folder too."""
    elsewhere = repository.folder / "else" / "where"
    elsewhere.mkdir(parents=True)
    done = repository.command(
        repository.old, "run", "--expect", "../../known.json", "--out", "walked", folder=elsewhere
    )
    assert done.returncode == 0, done.stdout + done.stderr
    then, now = read_info(repository.folder / "recorded"), read_info(elsewhere / "walked")
    for name in ("arms", "vocabularies", "suites", "effort", "timeout_s", "seed", "decode"):
        assert getattr(now, name) == getattr(then, name), name


def test_the_command_that_a_failing_gate_prints_shows_the_failure_as_it_is_printed(
    repository: Repository,
) -> None:
    done = repository.command(repository.new, "run", "--expect", "known.json", "--out", "worse than ever")
    assert done.returncode == 1, done.stdout + done.stderr
    printed = done.stdout.partition("to see the worst new failure:\n")[2]
    assert printed.startswith("grammarbench repro ")
    shown = repository.shell(repository.new, printed)
    assert shown.returncode == 0, shown.stderr
    assert MISSED in shown.stdout and "under_constrained" in shown.stdout


# -------------------------------------------------------------------------------------- every surface says it


@pytest.mark.parametrize(
    ("suites", "said"),
    [
        ({"a": {"cases": 12, "cases_in_all": 407}}, "a sample: 12 of 407 cases of a"),
        (
            {
                "a": {"cases": 12, "cases_in_all": 407},
                "b": {"cases": 5, "cases_in_all": 5},
                "c": {"cases": 2, "cases_in_all": 1200},
            },
            "a sample: 19 of 1,612 cases: 12 of 407 of a, 2 of 1,200 of c",
        ),
        ({"a": {"cases": 12, "cases_in_all": 12}}, ""),
        ({"a": {"cases": 12}}, ""),
    ],
)
def test_the_words(suites: dict[str, Any], said: str) -> None:
    assert sample(suites) == said


SAID = "a sample: 1 of 30 cases of first"


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    return write_run(
        tmp_path / "run",
        [[(row(), b"")]],
        info(ARMS[:1], suites={"first": PART | {"cases": 1, "cases_in_all": 30}}),
    )


@pytest.mark.parametrize(
    "words",
    [["table"], ["table", "summary"], ["table", "--format", "markdown"], ["table", "faults"]],
    ids=lambda each: " ".join(each),
)
def test_the_first_line_of_a_table_says_it(
    sampled: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([words[0], str(sampled), *words[1:]]) == 0
    assert capsys.readouterr().out.splitlines()[0] == SAID


def test_tables_for_machines_stay_what_they_are(sampled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(sampled), "--format", "csv"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("backend,") and SAID in told.err
    assert main(["table", str(sampled), "summary", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sample"] == SAID


def test_every_export_says_it(sampled: Path, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    assert main(["report", str(sampled), "--format", "all", "--out", str(out)]) == 0
    assert SAID in (out / "summary.md").read_text().splitlines()[0].replace("\\", "")
    assert (out / "tables.md").read_text().replace("\\", "").startswith(SAID)
    assert json.loads((out / "result.json").read_text())["sample"] == SAID
    assert SAID in (out / "figures.csv").read_text().splitlines()[1]
    assert SAID in str(JUnitXml.fromfile(str(out / "junit.xml")).name)
    assert f'name="sample" value="{SAID}"' in (out / "junit.xml").read_text()


def test_the_gate_against_another_run_says_it(
    sampled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(sampled), str(sampled), "--gate"]) == 0
    assert SAID in capsys.readouterr().out.splitlines()[0]


def test_the_page_says_it_in_its_headline(sampled: Path, tmp_path: Path) -> None:
    assert main(["report", str(sampled), "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert SAID in page[: page.index("</header>")]


def test_a_history_and_its_dashboard_say_it(
    sampled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(tmp_path / "past"), "--add", str(sampled)]) == 0
    assert SAID in capsys.readouterr().out
    assert main(["report", "--history", str(tmp_path / "past"), "--out", str(tmp_path / "site")]) == 0
    assert SAID in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.long
def test_an_older_llguidance_fails_the_committed_record(tmp_path: Path) -> None:
    """It is installed into an environment of its own; a sample of 12 cases took it for as good as the
    recorded 1.9.1."""
    record = str(ROOT / "results" / "baseline" / "default.json")
    run = str(tmp_path / "run")
    assert (
        main(["run", "json_schema", "--backends", "llguidance==1.6.1", "--out", run, "--expect", record]) == 1
    )
    assert main(["compare", record, run, "--gate"]) == 1
    out = str(tmp_path / "exported")
    assert main(["report", run, "--against", record, "--format", "summary", "--out", out]) == 0
    said = (tmp_path / "exported" / "summary.md").read_text()
    assert said.startswith("## GrammarBench: ❌ failed") and "multipleOf integer" in said
