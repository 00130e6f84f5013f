"""The quick set through pytest-benchmark: what its files say is what was measured, and nothing is lost or
compared on the way silently."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT

from harness.cases.plan import Profile, write_plan
from harness.cases.suite import find_suite
from harness.measure.protocol import MeasuredArm
from harness.measure.record import Measurement, MeasureRecorder, Slot, Trace
from harness.rows.machine import hardware, hardware_key

ITEMS = ROOT / "benchmarks" / "test_speed.py"
MOST_ITEMS = 300

FORKS, ROUNDS, TOKENS = 3, 2, 24
ARMS = [
    MeasuredArm("plain", "plain", "plain", "1.0", "", "reference", sys.executable),
    MeasuredArm("other:mode=b", "other:mode=b", "other", "2.0", "mode=b", "arm", sys.executable),
    MeasuredArm("plain (again)", "plain", "plain", "1.0", "", "a/a", sys.executable),
]
CASES = ["both", "one arm only", "lost"]


def cell(arm: str, case: int, fork: int, number: int) -> int:
    """The base of a made-up figure, in nanoseconds."""
    noise = {"plain": 0, "plain (again)": 1, "other:mode=b": 400}[arm]
    return 1_000 + 100 * case + 3 * fork + number + noise


def stored(folder: Path, slower: float = 1.0, **changes: Any) -> Path:
    """A measurement that nobody made, of three cases; all figures of the second arm are `slower` times as
    large."""
    folder.mkdir()
    lines = [json.dumps({"suite": "made-up", "version": "1", "description": ""})]
    for number, name in enumerate(CASES):
        lines.append(
            json.dumps(
                {
                    "description": name,
                    "regex": f"a{{{number + 1}}}",
                    "tests": [{"text": "a" * (number + 1), "valid": True}],
                }
            )
        )
    suite = folder / "made-up.jsonl"
    suite.write_text("\n".join(lines))
    plan = write_plan([find_suite(str(suite))], Profile(None, 5.0, ("bytes",)), 0, folder / "cases.jsonl")
    ids = [json.loads(line)["id"] for line in (folder / "cases.jsonl").read_text().splitlines()]
    everyone = tuple(each.name for each in ARMS)
    solved = [everyone, ("plain", "plain (again)"), everyone]
    traces = tuple(
        Trace(plan.offsets[i], "made-up", "made-up", ids[i], CASES[i], 0, solved[i], "") for i in range(3)
    )
    unsolved = {"other:mode=b": {ids[1]: "timeout"}}
    measurement = Measurement(
        "run-1",
        "2026-11-21",
        "quick",
        "bytes",
        tuple(ARMS),
        traces,
        unsolved,
        "hard",
        "work",
        {"python": "3"},
        cpu=None,
        forks=FORKS,
    )
    with MeasureRecorder(folder, replace(measurement, **changes)) as recorder:
        for fork in range(FORKS):
            for number in range(ROUNDS):
                for case in range(3):
                    for arm in everyone:
                        if arm in solved[case] and (arm, CASES[case]) != ("other:mode=b", "lost"):
                            slot = Slot(
                                fork, number, 0, 0, arm, ids[case], True, 1, TOKENS, 1, 1, 0, 0.0, 0.0, (0, 0)
                            )
                            line = {name: value for name, value in asdict(slot).items() if name != "figures"}
                            base = cell(arm, case, fork, number) * (slower if arm == "other:mode=b" else 1.0)
                            recorder.append("slot", line, figures(round(base)))
            recorder.append(
                "fork", {"fork": fork, "confirming": False, "load_s": 0.0, "measure_s": 0.0, "clock_ns": {}}
            )
        recorder.append(
            "lost", {"arm": "other:mode=b", "case_id": ids[2], "fork": 0, "text": "killed by SIGSEGV"}
        )
        recorder.finish("2026-11-21")
    return folder


def figures(base: int) -> bytes:
    """One fresh slot with one warm pass: compile 100 bases, every fill one base warm and twice that cold,
    every accept half of one."""
    warm, cold = np.tile([base, base // 2], TOKENS), np.tile([2 * base, base // 2], TOKENS)
    sums = [TOKENS * base, TOKENS * (base // 2)]
    return np.array([100 * base, 7, *cold, 7, *warm, *sums], "<i8").tobytes()


def run(*arguments: str | Path, program: str | None = None) -> subprocess.CompletedProcess[str]:
    """pytest in a process of its own, as at a prompt."""
    leave = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
    environment = {name: value for name, value in os.environ.items() if name not in leave}
    start = ["-m", "pytest"] if program is None else ["-c", program]
    command = [
        sys.executable,
        *start,
        "-p",
        "no:cacheprovider",
        "-q",
        "-rs",
        "--benchmark-columns",
        "median",
        *map(str, arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=120)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stored measurement, replayed once beside a test of a user: `out.json` and `saved/`."""
    folder = tmp_path_factory.mktemp("front")
    stored(folder / "measured")
    (folder / "test_of_a_user.py").write_text(
        "def test_plain(benchmark):\n    assert benchmark(sum, [1, 2]) == 3\n"
    )
    options: list[str | Path] = [
        "--benchmark-json",
        folder / "out.json",
        "--benchmark-storage",
        f"file://{folder / 'saved'}",
        "--benchmark-save",
        "base",
    ]
    done = run(
        ITEMS,
        folder / "test_of_a_user.py",
        "--measurement",
        folder / "measured",
        "--benchmark-max-time",
        "0.01",
        *options,
    )
    (folder / "said").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def written(base: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((base / "out.json").read_text(), parse_constant=pytest.fail)
    return found


def items(written: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in written["benchmarks"]}


def test_the_curated_set_is_small_and_its_ids_can_be_read() -> None:
    done = run(ITEMS, "--collect-only")
    found = [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert len(found) == 4 * 4 * 15 <= MOST_ITEMS
    assert (
        "test_fill[speed-tool call-xgrammar]" in found
        and ("test_cold_fill[speed-SQL subset-lm-format-enforcer]") in found
    )


@pytest.mark.parametrize(
    ("metric", "of_base"),
    [
        ("compile", lambda base: 100 * base),
        ("cold_fill", lambda base: 2 * TOKENS * base),
        ("fill", lambda base: TOKENS * base),
        ("accept", lambda base: TOKENS * (base // 2)),
    ],
)
def test_a_sample_is_the_figure_of_one_fork_and_round(
    written: dict[str, Any], metric: str, of_base: Callable[[int], int]
) -> None:
    found = items(written)[f"test_{metric}[made-up-both-other:mode=b]"]
    expected = [
        of_base(cell("other:mode=b", 0, fork, number)) / 1e9
        for fork in range(FORKS)
        for number in range(ROUNDS)
    ]
    assert found["stats"]["data"] == expected and found["stats"]["rounds"] == len(expected)
    assert found["options"]["timer"] == "grammarbench_engine"


def test_backends_stand_side_by_side(written: dict[str, Any]) -> None:
    groups = {each["name"]: each["group"] for each in written["benchmarks"]}
    ours = ["test_fill[made-up-both-plain]", "test_fill[made-up-both-other:mode=b]"]
    assert {groups.pop(each) for each in ours} == {
        "fill made-up-both"
    } and "fill made-up-both" not in groups.values()


def test_what_was_not_solved_or_was_lost_is_skipped_with_the_reason(
    base: Path, written: dict[str, Any]
) -> None:
    said = (base / "said").read_text()
    assert (
        "SKIPPED [4]" in said
        and "other:mode=b: not solved: timeout" in said
        and ("no figure: killed by SIGSEGV") in said
    )
    assert len(written["benchmarks"]) == 4 * (2 + 1 + 1) + 1


def test_an_item_says_what_the_engine_concluded(written: dict[str, Any]) -> None:
    other = items(written)["test_fill[made-up-both-other:mode=b]"]["extra_info"]
    ratio = other["ratio_to_reference"]
    assert other["reference"] == "plain" and ratio["forks"] == FORKS
    assert ratio["low"] <= ratio["ratio"] <= ratio["high"] and 1.38 < ratio["ratio"] < 1.41
    assert other["judged"]["verdict"] == "regressed" and other["judged"]["head"] == "other:mode=b"
    assert (other["hardware"], other["workload"], other["version"], other["software"]) == (
        "hard",
        "work",
        "2.0",
        {"python": "3"},
    )
    reference = items(written)["test_fill[made-up-both-plain]"]["extra_info"]
    assert reference["ratio_to_reference"] is None and reference["judged"]["head"] == "plain (again)"


def test_percentiles_are_those_that_ten_tokens_lie_beyond(written: dict[str, Any]) -> None:
    found = items(written)
    assert TOKENS == 24
    warm = found["test_fill[made-up-both-plain]"]["extra_info"]["per_token_ns"]
    assert warm == {"n": 24, "avg": 1000.0, "p50": 1000.0, "p100": 1000.0}
    assert found["test_cold_fill[made-up-both-plain]"]["extra_info"]["per_token_ns"]["p50"] == 2 * 1003.5
    assert found["test_compile[made-up-both-plain]"]["extra_info"]["per_token_ns"] is None


def test_the_file_says_what_was_measured_and_on_what(base: Path, written: dict[str, Any]) -> None:
    block = written["grammarbench"]
    assert (block["run"], block["hardware"], block["workload"], block["forks"]) == (
        "run-1",
        "hard",
        "work",
        FORKS,
    )
    assert block["measurement"] == str(base / "measured") and block["unsolved"] == {
        "other:mode=b": {"made-up-one arm only": "timeout"}
    }
    assert {(each["head"], each["metric"]) for each in block["comparisons"]} >= {
        ("plain (again)", "fill"),
        ("other:mode=b", "fill"),
    }
    assert written["machine_info"]["hardware_key"] == "hard"
    assert "cpu" not in written["machine_info"], "this machine's processor is not the one that was measured"


def test_the_plain_fixture_stays_usable_beside_ours(written: dict[str, Any]) -> None:
    plain = items(written)["test_plain"]
    assert (
        plain["options"]["timer"] != "grammarbench_engine"
        and plain["stats"]["min"] > 0
        and plain["extra_info"] == {}
    )


def compared(base: Path, measured: Path, *options: str) -> subprocess.CompletedProcess[str]:
    storage = ["--benchmark-storage", f"file://{base / 'saved'}", "--benchmark-compare", "0001"]
    return run(ITEMS, "--measurement", measured, *storage, *options)


def test_compare_fail_is_silent_on_the_same_and_names_what_is_slower(base: Path, tmp_path: Path) -> None:
    same = compared(base, base / "measured", "--benchmark-compare-fail", "median:10%")
    assert same.returncode == 0, same.stdout + same.stderr
    slow = compared(base, stored(tmp_path / "slow", slower=1.3), "--benchmark-compare-fail", "median:10%")
    said = slow.stdout + slow.stderr
    assert slow.returncode != 0 and "Performance has regressed" in said
    named = {line.split(" (")[0].strip() for line in said.splitlines() if "Field 'median' has failed" in line}
    assert named == {
        f"test_{metric}[made-up-both-other:mode=b]" for metric in ("compile", "cold_fill", "fill", "accept")
    }


@pytest.mark.parametrize("what", ["hardware", "workload"])
def test_other_hardware_or_another_workload_is_not_compared(base: Path, tmp_path: Path, what: str) -> None:
    done = compared(
        base,
        stored(tmp_path / "elsewhere", 1.0, **{what: "different"}),
        "--benchmark-json",
        str(tmp_path / "out.json"),
    )
    said = done.stdout + done.stderr
    assert (
        done.returncode == pytest.ExitCode.USAGE_ERROR
        and f"its {what} is" in said
        and "Traceback" not in said
    )
    assert not (tmp_path / "out.json").exists()


def test_a_workload_that_is_known_only_once_measured_is_not_compared_either(
    base: Path, tmp_path: Path
) -> None:
    """The measuring itself is replaced; what it comes back with is another workload than that of the file."""
    file = json.loads((base / "out.json").read_text())
    file["grammarbench"] |= {"hardware": hardware_key(hardware()), "workload": "different"}
    saved = tmp_path / "Linux-CPython-3.11-64bit" / "0001_other.json"
    saved.parent.mkdir()
    saved.write_text(json.dumps(file))
    program = (
        "import sys, pytest; from pathlib import Path; from harness.measure import session;"
        f"session.measure = lambda request, say: (Path({str(base / 'measured')!r}), []); "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    options: list[str | Path] = [
        "--backends",
        "reference,unconstrained",
        "--benchmark-compare",
        str(saved),
        "--benchmark-json",
        tmp_path / "out.json",
    ]
    done = run(ITEMS, *options, program=program)
    said = done.stdout + done.stderr
    assert (
        done.returncode == pytest.ExitCode.USAGE_ERROR
        and "its workload is different, this one's work" in said
    )
    assert not (tmp_path / "out.json").exists()


def test_under_xdist_the_run_fails_and_writes_nothing(base: Path, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = run(
        ITEMS, "--measurement", base / "measured", "--benchmark-json", tmp_path / "out.json", "-n", "1"
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "leave -n out" in done.stderr
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--measurement", "{tmp}/nothing"], "no measurement here"),
        (
            ["--measurement", "{base}", "--backends", "unconstrained", "--profile", "quick"],
            "leave --backends and --profile out to replay it",
        ),
        (["--backends", "nobody"], 'no backend "nobody"'),
        (["--measurement", "{tmp}/killed"], "it was killed"),
    ],
)
def test_bad_input_is_one_line(base: Path, tmp_path: Path, options: list[str], said: str) -> None:
    if "killed" in options[1]:
        rounds = stored(tmp_path / "killed") / "rounds.jsonl"
        rounds.write_text("".join(rounds.read_text().splitlines(keepends=True)[:-1]))
    done = run(ITEMS, *(each.format(tmp=tmp_path, base=base / "measured") for each in options))
    assert (
        done.returncode == pytest.ExitCode.USAGE_ERROR and said in done.stderr and done.stderr.count("\n") < 4
    )


def test_without_a_stored_measurement_all_backends_are_measured_once(tmp_path: Path) -> None:
    """The real engine, made short: the same figures come out of the folder that it measured into."""
    program = (
        "import sys, pytest; from dataclasses import replace; from harness.measure.protocol import PROFILES "
        "as p;"
        "p['quick'] = replace(p['quick'], forks=1, most_forks=1, rounds=2, pass_seconds=0.001, "
        "batch_sizes=());"
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    made: list[str | Path] = ["--measurement", tmp_path / "made"]
    options = [
        "--backends",
        "reference,unconstrained",
        "--vocabularies",
        "bytes",
        "-k",
        "ISO and reference or JSON and unconstrained",
    ]
    first = run(ITEMS, *made, *options, "--benchmark-json", tmp_path / "first.json", program=program)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "fork 1:" in first.stdout and "unconstrained: not solved: under_constrained" in first.stdout
    again = run(ITEMS, *made, "-k", "ISO and reference", "--benchmark-json", tmp_path / "again.json")
    assert again.returncode == 0, again.stdout + again.stderr
    files = [json.loads((tmp_path / name).read_text()) for name in ("first.json", "again.json")]
    series = [{each["fullname"]: each["stats"]["data"] for each in file["benchmarks"]} for file in files]
    assert (
        series[0] == series[1] and len(series[0]) == 4 and all(min(each) > 0 for each in series[0].values())
    )
    info = files[0]["machine_info"]
    assert info["hardware_key"] == files[0]["grammarbench"]["hardware"] and "hz_actual" not in info["cpu"]
