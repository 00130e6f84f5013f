"""The result of a run in the forms that CI tools read: each accepted by its consumer's own schema
or parser.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import synthetic
from compared import COPY, HEAD, OLD, REFERENCE, measured_run, write_run
from junitparser import Failure, JUnitXml, Skipped
from measured import steady, write_measurement
from synthetic import HOSTILE, info, row, synthetic_run

from harness.cli.main import main
from harness.outcomes.outcome import summed
from harness.outcomes.result import Change, Gate, Result, result_of
from harness.report.export import FORMS, OURS, summary, workflow_commands, write
from harness.report.figures import estimates
from harness.report.paper import FORMS as PAPER
from harness.report.values import percent
from harness.rows.writer import Writer
from harness.running.leftovers import HEAD_BYTES
from harness.text import markdown

BENCHER = {
    "$schema": "http://json-schema.org/draft-07/schema",
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "number"},
                        "lower_value": {"type": "number"},
                        "upper_value": {"type": "number"},
                    },
                    "required": ["value"],
                }
            },
        }
    },
}
"""As https://bencher.dev/bmf.json has it; the limits of names are in its reference."""

COMMAND = re.compile(r"::(error|warning|notice)(?: (?P<properties>[^:]*))?::(?P<text>.*)")
"""How the runner reads a workflow command: properties end at the first `::`, and are divided by commas."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return result_of(synthetic_run(tmp_path_factory.mktemp("run") / "run", cases=40))


def test_page_and_forms_for_tools_tell_of_one_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def seen(run: Path, *others: Any, **options: Any) -> Result:
        made.append(run)
        return result_of(run, *others, **options)

    monkeypatch.setattr("harness.outcomes.result.result_of", seen)
    monkeypatch.setattr("harness.report.page.inputs.result_of", seen)
    run = synthetic_run(tmp_path / "run", cases=4)
    assert main(["report", str(run), "--format", "html,json,summary"]) == 0 and made == [run]
    assert main(["report", str(run), "--format", "html,json", "--time"]) == 0 and made == [run] * 3, "gated"


def test_counts_add_up_and_agree_with_the_rows(hostile: Result) -> None:
    for each in hostile.counts:
        assert each.cases == each.works + each.failed + each.refused + each.not_judged + each.not_measured
        mine = Counter(
            one.outcome for one in hostile.failing if (one.arm, one.suite) == (each.arm, each.suite)
        )
        assert (mine["refused"], mine["failed"]) == (each.refused, each.failed)
    assert sum(each.cases for each in hostile.counts) == 40 * 4
    assert {fault for each in hostile.failing for fault in each.faults} >= {
        "declined",
        "crash",
        "timeout",
        "over_constrained",
    }
    coverage = {each.arm: each.value for each in hostile.figures if each.name == "conformance"}
    assert len(coverage) == 4 and all(0 < each < 1 for each in coverage.values())


def test_a_case_that_we_lost_is_not_the_backends(tmp_path: Path) -> None:
    run = write_run(tmp_path, {OLD: {"status": "harness_error", "accepted": None}})
    (count,) = result_of(run).counts
    assert (count.works, count.failed, count.not_measured) == (1, 0, 1)


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_are_text_in_every_form(hostile: Result, form: str, tmp_path: Path) -> None:
    gate = Gate("failed", HOSTILE[0], HOSTILE)
    changes = tuple(
        Change("worse", one, other) for one, other in zip(HOSTILE, reversed(HOSTILE), strict=True)
    )
    for path in write(replace(hostile, gate=gate, changes=changes, run=HOSTILE[7]), [form], tmp_path):
        said = path.read_bytes().decode("utf-8")
        if path.suffix in (".md", ".xml"):
            assert "<script" not in said and "<img" not in said and "<svg" not in said
        if path.suffix == ".json":
            json.loads(said)
        else:
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", said)


@pytest.mark.parametrize("form", FORMS)
def test_every_file_is_known_for_ours_by_its_beginning(hostile: Result, form: str) -> None:
    """One that is not would be refused by the next report into its folder."""
    bare = replace(hostile, counts=(), figures=(), failing=())
    for result in (hostile, replace(hostile, sample=HOSTILE[0]), bare):
        files = FORMS[form](result)
        assert files.keys() == OURS[form].keys()
        for name, text in files.items():
            assert not text or re.match(OURS[form][name], text.encode("utf-8", "replace")[:HEAD_BYTES]), name


def test_junit_holds_no_character_that_xml_does_not_have(hostile: Result, tmp_path: Path) -> None:
    (path,) = write(replace(hostile, started="2026\x0111\ud800"), ["junit"], tmp_path)
    JUnitXml.fromfile(str(path))


def test_junit_is_read_by_a_parser_and_says_the_same(hostile: Result, tmp_path: Path) -> None:
    (path,) = write(hostile, ["junit"], tmp_path)
    read = JUnitXml.fromfile(str(path))
    suites = [each for each in read if each.name != "gate"]
    assert len(suites) == len(hostile.counts)
    for suite, count in zip(suites, hostile.counts, strict=True):
        kinds = [type(result) for case in suite for result in case.result]
        skipped = count.refused + bool(count.not_judged) + bool(count.not_measured)
        assert (suite.failures, suite.skipped, suite.tests) == (
            count.failed,
            skipped,
            count.failed + skipped + 1,
        )
        assert (kinds.count(Failure), kinds.count(Skipped)) == (count.failed, skipped)
    assert read.tests == sum(each.tests for each in read) and read.failures == sum(
        each.failures for each in read
    )
    written = (read.tests, read.failures, read.skipped)
    read.update_statistics()  # type: ignore[no-untyped-call]
    assert written == (read.tests, read.failures, read.skipped)
    for suite, count in zip(suites, hostile.counts, strict=True):
        told = {one.name: one.value for one in suite.properties()}  # type: ignore[no-untyped-call]
        assert told["cases"] == str(count.cases) and told["works"] == str(count.works)
        (solved,) = [
            one.value
            for one in hostile.figures
            if (one.arm, one.name, one.family) == (count.arm, "solved", "all")
        ]
        assert told["all_suites_solved"] == repr(solved) and "solved" not in told, "it is of all suites"
    commands = [
        result.text
        for suite in suites
        for case in suite
        for result in case.result
        if isinstance(result, Failure)
    ]
    assert all(each.startswith("grammarbench repro ") for each in commands)


def test_bencher_takes_it(tmp_path: Path) -> None:
    (path,) = write(result_of(measured_run(tmp_path / "run", 1.2)), ["bencher"], tmp_path)
    found = json.loads(path.read_text())
    jsonschema.validate(found, BENCHER)
    assert all(
        len(name) <= 1024 and all(len(measure) <= 64 for measure in each) for name, each in found.items()
    )
    fill = found["toy 2 tiny / speed"]["fill_ratio"]
    assert fill["lower_value"] <= fill["value"] <= fill["upper_value"] and fill["value"] == pytest.approx(
        1.2, rel=0.02
    )


def test_conformance_has_one_interval_on_every_surface(tmp_path: Path) -> None:
    """Wilson's, of the judged cases, as the page has it."""
    run = synthetic_run(tmp_path / "run", cases=40)
    result = result_of(run)
    files = {path.name: path.read_text() for path in write(result, ["csv", "bencher", "markdown"], tmp_path)}
    lines = csv.DictReader(files["figures.csv"].splitlines())
    told = {line["arm"]: line for line in lines if line["name"] == "conformance"}
    for figure in result.figures:
        if figure.name == "conformance":
            counts = summed(one for one in result.counts if one.arm == figure.arm)
            page = estimates.conformance(counts)
            assert page is not None and (figure.low, figure.high) == page.bounds
            assert figure.values == counts.judged
            assert told[figure.arm]["low"] == repr(figure.low)
            measure = json.loads(files["bencher.json"])[f"{figure.arm} / all"]["conformance"]
            assert (measure["lower_value"], measure["upper_value"]) == page.bounds
            low, high = map(percent, page.bounds)
            assert f"| Conformance | {percent(page.value)} | {low} to {high} | higher |" in files["tables.md"]


@pytest.mark.parametrize("copy", [1.0, 1.3])
def test_an_unproven_ratio_has_no_interval_and_says_why(copy: float, tmp_path: Path) -> None:
    """Where identical code does not come out as equal, `compare` and the page conclude nothing."""
    result = result_of(measured_run(tmp_path / "run", 1.2, copy=copy))
    ratios = [one for one in result.figures if one.unit == "ratio" and one.arm == "toy 2 tiny"]
    assert {one.name for one in ratios} >= {"fill_ratio", "compile_ratio"}
    files = {path.name: path.read_text() for path in write(result, list(FORMS), tmp_path)}
    lines = list(csv.DictReader(files["figures.csv"].splitlines()))
    exported = json.loads(files["result.json"])["figures"]
    bencher = json.loads(files["bencher.json"])["toy 2 tiny / speed"]
    (line,) = (line for line in lines if (line["arm"], line["name"]) == ("toy 2 tiny", "fill_ratio"))
    (one,) = (one for one in exported if (one["arm"], one["name"]) == ("toy 2 tiny", "fill_ratio"))
    why = "unproven: two arms of identical code were not equivalent here" if copy > 1 else ""
    assert one["why"] == line["why"] == why
    assert (one["low"] is None) == (line["low"] == "") == ("lower_value" not in bencher["fill_ratio"])
    assert (one["low"] is None) == bool(why) and float(line["value"]) == pytest.approx(1.2, rel=0.02)
    assert (f"| 1.2 | {why} | lower |" in files["tables.md"]) == bool(why)
    reference = next(one for one in result.figures if (one.arm, one.name) == ("toy 1 tiny", "fill_ratio"))
    assert (reference.value, reference.low, reference.high, reference.why) == (1, 1, 1, "")


def test_a_dashboard_is_told_what_a_ratio_comes_from_and_that_it_is_unproven(tmp_path: Path) -> None:
    families = ["one", "two"]
    result = result_of(measured_run(tmp_path / "run", 1.2, copy=1.3, families=families))
    smaller, bigger = write(result, ["benchmark-action"], tmp_path)
    said = {one["name"]: one for path in (smaller, bigger) for one in json.loads(path.read_text())}
    ratio = said["toy 2 tiny / all / fill, ratio to toy==1"]
    assert "range" not in ratio and ratio["extra"].startswith("from 5 forks; unproven: two arms of identical")
    assert said[f"{result.arms[0].name} / all / Under-constrained"]["extra"] == "from 2 cases"


@pytest.mark.parametrize(("families", "family"), [(["speed"], "speed"), (["one", "two"], "all")])
def test_ratios_over_all_cases_are_headline_figures(families: list[str], family: str, tmp_path: Path) -> None:
    """A run of one suite and one dialect has no family of all cases: its own is that of all."""
    result = result_of(measured_run(tmp_path / "run", 1.2, families=families))
    found = {(one.name, one.family) for one in result.figures if one.headline and one.unit == "ratio"}
    assert found == {("compile_ratio", family), ("fill_ratio", family)}
    files = {path.name: path.read_text() for path in write(result, ["summary", "benchmark-action"], tmp_path)}
    assert f"| toy 2 tiny | {family} | fill, ratio to toy==1 |" in files["summary.md"]
    assert f'"toy 2 tiny / {family} / fill, ratio to toy==1"' in files["benchmark-smaller-is-better.json"]


def test_measured_figures_are_of_the_arms_whose_rows_they_are(tmp_path: Path) -> None:
    """They were of arms that no list names, so JUnit had none of them, and a dashboard two names for one
    arm."""
    result = result_of(measured_run(tmp_path / "run", 1.2, families=["first", "other"]))
    assert {one.arm for one in result.figures} == {arm.name for arm in result.arms}
    (path,) = write(result, ["junit"], tmp_path)
    told = [
        {one.name: one.value for one in suite.properties()}  # type: ignore[no-untyped-call]
        for suite in JUnitXml.fromfile(str(path))
        if suite.name != "gate"
    ]
    ratios = {one.arm: one.value for one in result.figures if (one.name, one.family) == ("fill_ratio", "all")}
    assert [one["all_suites_fill_ratio"] for one in told] == [repr(ratios[arm.name]) for arm in result.arms]
    assert all("fill_ratio" in one for one in told), "the suite's own"


def test_nanoseconds_say_of_how_many_cases_they_are_the_mean(tmp_path: Path) -> None:
    """An arm that solves fewer cases has a mean over others, so that two arms' do not compare."""
    unsolved = {"toy==2": {"speed1": "timeout"}}
    result = result_of(measured_run(tmp_path / "run", 1.2, cases=3, unsolved=unsolved))
    said = {one.arm: (one.title, one.values) for one in result.figures if one.name == "compile_ns"}
    assert said == {
        "toy 1 tiny": ("compile, geometric mean over its 3 cases", 3),
        "toy 2 tiny": ("compile, geometric mean over its 2 cases", 2),
    }


def test_github_action_benchmark_takes_it(hostile: Result, tmp_path: Path) -> None:
    """Its extractor reads name, value and unit of each entry, and range and extra as text."""
    smaller, bigger = write(hostile, ["benchmark-action"], tmp_path)
    for path, better in ((smaller, "lower"), (bigger, "higher")):
        found = json.loads(path.read_text())
        assert 0 < len(found) <= 40 and len({each["name"] for each in found}) == len(found)
        for each in found:
            assert (
                isinstance(each["value"], float)
                and isinstance(each["unit"], str)
                and isinstance(each.get("range", ""), str)
            )
        titles = {each.title for each in hostile.figures if each.headline and each.better == better}
        assert {each["name"].rpartition(" / ")[2] for each in found} == titles


def test_annotations_are_at_most_five_commands(hostile: Result) -> None:
    changes = tuple(Change("worse", "toy, 2: a", f"case {number}%\n::error::gone") for number in range(9))
    lines = workflow_commands.lines(
        replace(hostile, changes=changes, gate=Gate("failed", "", ("it is worse",)))
    )
    assert len(lines) == 5 and "and 6 more" in lines[-1]
    for line in lines:
        command = COMMAND.fullmatch(line)
        assert command is not None and command[1] == "error"
        properties = command["properties"].split(",")
        assert len(properties) == 1 and properties[0].startswith("title=")


def test_without_a_change_the_failing_cases_are_told(hostile: Result) -> None:
    lines = workflow_commands.lines(hostile)
    assert len(lines) == 4 and all(each.startswith("::notice ") for each in lines)


def test_a_summary_is_cut_between_lines_and_says_so(hostile: Result) -> None:
    changes = tuple(Change("worse", f"arm {number}", "ж" * 290) for number in range(100))
    figures = tuple(
        replace(hostile.figures[0], title=f"{number} {'ж' * 100}", headline=True) for number in range(300)
    )
    (said,) = summary.files(replace(hostile, changes=changes, figures=figures)).values()
    assert (
        len(said.encode()) <= 60_000
        and said.rstrip().endswith("the report has all of it")
        and "and 60 more" in said
    )
    (short,) = summary.files(hostile).values()
    assert "the report has all of it" not in short
    assert short.startswith("## GrammarBench: nothing to compare the run with\n") and "ok" not in short[:60]


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", {OLD: {"accepted": False, "stopped_at": 1, "text": "=cmd|' /C calc'!A0"}}
    )
    _, _, failing = write(result_of(run), ["csv"], tmp_path)
    (line,) = csv.DictReader(failing.open())
    assert (
        line["said"] == "'=cmd|' /C calc'!A0"
        and line["faults"] == "over_constrained"
        and line["repro"].startswith("grammarbench repro")
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a|b", "a\\|b"),
        ("<b>", "&lt;b&gt;"),
        ("[x](y)", "\\[x\\](y)"),
        ("@me", "\\@me"),
        ("outlines-core 0.2 (strict), min_length: 3", "outlines-core 0.2 (strict), min_length: 3"),
        ("- a list", "\\- a list"),
        ("_emphasis_", "\\_emphasis\\_"),
        ("https://a.b and :smile: and www.a", "https\\://a.b and \\:smile: and www\\.a"),
        ("two\nlines", "two\\\\nlines"),
    ],
)
def test_markdown_cells_are_text(said: str, shown: str) -> None:
    assert markdown(said) == shown


@pytest.mark.parametrize(
    ("changed", "options", "code", "verdict"),
    [
        ({}, (), 0, "ok"),
        ({"accepted": False, "stopped_at": 2}, (), 1, "failed"),
        ({"accepted": False, "stopped_at": 2, "status": "timeout"}, (), 0, "ok"),
        ({}, ("--time",), 4, "unproven"),
    ],
)
def test_the_gate_against_another_run(
    tmp_path: Path,
    changed: dict[str, Any],
    options: tuple[str, ...],
    code: int,
    verdict: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    base, head = write_run(tmp_path / "base", {OLD: {}}), write_run(tmp_path / "head", {OLD: changed})
    assert main(["compare", str(base), str(head), "--gate", *options]) == code
    said = capsys.readouterr().out
    assert verdict.upper() in said.partition("gate --time:" if options else "gate:")[2].split("\n")[0]
    forms = ["--against", str(base), "--format", "json,junit", "--out", str(tmp_path / "out"), *options]
    assert main(["report", str(head), *forms]) == 0, "a report shows what a gate says, and is none"
    assert json.loads((tmp_path / "out" / "result.json").read_text())["gate"]["verdict"] == verdict
    assert JUnitXml.fromfile(str(tmp_path / "out" / "junit.xml")).failures == (verdict != "ok") + bool(
        changed
    )


def test_versions_in_one_run_gate_without_a_base(tmp_path: Path) -> None:
    assert main(["compare", str(measured_run(tmp_path / "slow", 1.2)), "--gate"]) == 0
    for name, ratio, copy, code, verdict in (
        ("slower", 1.2, 1.0, 1, "failed"),
        ("same", 1.0, 1.0, 0, "ok"),
        ("noisy", 1.2, 1.3, 4, "unproven"),
    ):
        run, out = str(measured_run(tmp_path / name, ratio, copy=copy)), tmp_path / f"{name}-out"
        assert main(["compare", run, "--gate", "--time"]) == code
        assert main(["report", run, "--time", "--format", "json", "--out", str(out)]) == 0
        assert json.loads((out / "result.json").read_text())["gate"]["verdict"] == verdict


def test_the_gate_against_a_record(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", {OLD: {}})
    record = str(tmp_path / "record.json")
    assert main(["compare", str(base), "--record", record]) == 0
    assert main(["compare", record, str(base), "--gate"]) == 0
    worse = write_run(tmp_path / "worse", {OLD: {"accepted": False, "stopped_at": 2}})
    assert main(["compare", record, str(worse)]) == 0, "without --gate it only shows"
    assert main(["compare", record, str(worse), "--gate"]) == 1
    forms = ["--against", record, "--format", "summary", "--out", str(tmp_path)]
    assert main(["report", str(worse), *forms]) == 0
    assert "1 new failure that the record does not have" in (tmp_path / "summary.md").read_text()


def test_two_runs_without_a_common_case_prove_nothing(tmp_path: Path) -> None:
    base = synthetic.write_run(tmp_path / "base", [[(row(), b"")]])
    head = synthetic.write_run(tmp_path / "head", [[(row(suite="another"), b"")]])
    assert main(["compare", str(base), str(head), "--gate"]) == 4


def test_the_page_and_all_forms_are_written_in_one_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = synthetic_run(tmp_path / "run", cases=3)
    assert main(["report", str(run), "--format", "all"]) == 0
    told = capsys.readouterr().out
    written = {path.name for path in (run / "report").iterdir()}
    assert {"report.html", "result.json", "junit.xml", "summary.md"} <= written
    assert all(f"report/{name}" in told for name in written - {"report.json"})


def test_the_help_names_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert all(form in said for form in (*FORMS, *PAPER, "html", "all"))


def test_an_incomplete_run_never_passes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {OLD: {}}, finish=False)
    assert main(["report", str(run), "--format", "json", "--out", str(tmp_path)]) == 3
    assert json.loads((tmp_path / "result.json").read_text())["gate"]["verdict"] == "incomplete"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "junt"], 'did you mean "junit"?'),
        (["--format", "json", "--out", "/proc/nowhere"], "cannot be written"),
        (["--time"], "--time has no effect on the page"),
        (["--against", "x.json"], "x.json: cannot be read"),
        (["--against", "x.json", "--format", "svg"], "--against has no effect on charts and tables"),
        (["--against", "x.json", "OTHER"], "--against holds one run against another"),
        (["--format", "json", "--split"], "--split is an option of the page"),
        (["--format", "html,json", "OTHER"], "takes one run"),
        (["--format", "json", "--against", "nosuch.json"], "nosuch.json"),
        (["--history", "past"], "give runs or --history, not both"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", {OLD: {}})
    given = [str(run) if word == "OTHER" else word for word in arguments]
    assert main(["report", str(run), "--out", str(tmp_path), *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_masks_that_differ_where_a_fault_went_are_not_worse(tmp_path: Path) -> None:
    """Another mask gates, unless the case has lost a fault and got none."""
    for changed, code in (({}, 1), ({"mended": True}, 0)):
        folder = tmp_path / str(code)
        wrong = {"accepted": False, "stopped_at": 2} if changed else {}
        folder.mkdir()
        with Writer(folder, info((OLD, replace(OLD, version="2")))) as writer:
            for version, fields in (("1", wrong), ("2", {})):
                writer.append(
                    [(row(backend="toy", backend_version=version, case_id="0" * 12, **fields), b"")]
                )
            writer.finish("2026-11-21T12:00:00Z")
        arms = {REFERENCE: steady(1, seed=1), HEAD: steady(1, seed=2), COPY: steady(1, seed=3)}
        write_measurement(
            folder,
            arms,
            families=["0" * 11],
            cases=1,
            counts={"toy==2": {"masks_sha256": "01", "allowed": 11}},
        )
        assert main(["compare", str(folder), "--gate"]) == code
