"""The documentation says what is so: its commands, links, names and examples."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import miniatures
import pages
import pytest

from harness.case import Case
from harness.checks import Subject, checks, run_check
from harness.cli import main, parser
from harness.contract import ContractBroken, check_name
from harness.contract import checks as contract_checks
from harness.errors import GATE_FAILED, OK, UNPROVEN, BadInput
from harness.grammar import Grammar
from harness.metrics import METRICS, summary
from harness.oracle.reference import Reference
from harness.reference_page import page as reference_page
from harness.registry import GROUP, load, parse_specs
from harness.result import result_of
from harness.seen import read_arms
from harness.vocabulary import byte_vocabulary

FOLDERS = ("adapters", "benchmarks", "docs", "harness", "reports", "results", "suites", "tests", ".github")
"""What a path in backticks begins with, if it is one of ours."""

OTHERS_OPTIONS = frozenset({"--adapter", "--file"})
"""Options that pages name of programs that are not ours."""


def names_of(paths: list[Path]) -> list[str]:
    return [str(each.relative_to(pages.ROOT)) for each in paths]


each_page = pytest.mark.parametrize("page", pages.PAGES, ids=names_of(pages.PAGES))


# ------------------------------------------------------------------------------------------------- commands


def problem(command: pages.Command, written: dict[str, str]) -> str:
    """What is wrong with a command; empty if nothing is. `written`: files that the page has written before."""
    program, *arguments = command.words
    if program == "grammarbench":
        return wrong_arguments(arguments)
    if program == "pytest":
        if unknown := [each for each in arguments if each.startswith("--") and each.partition("=")[0] not in pytest_options()]:
            return f"unknown options {unknown}"
        return next((f"no {each}" for each in arguments if each.startswith(("tests/", "benchmarks/")) and not exists(each)), "")
    if program == "tox":
        return (
            ""
            if arguments == ["run", "-e", arguments[-1]] and f"[testenv:{arguments[-1]}]" in text_of("tox.ini")
            else "no such environment"
        )
    if program == "python":
        if arguments[0] == "-m":
            return "" if find_spec(arguments[1]) else f"no module {arguments[1]}"
        return "" if arguments[0] in written or exists(arguments[0]) else f"no {arguments[0]}"
    if extras := re.search(r"\.\[([\w,]+)\]", command.text):
        known = text_of("pyproject.toml")
        return next((f"no extra {each}" for each in extras[1].split(",") if f"\n{each} = [" not in known), "")
    return ""


def wrong_arguments(arguments: list[str]) -> str:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            options = parser().parse_args(arguments)
        if isinstance(backends := getattr(options, "backends", None), str):
            parse_specs(backends)
    except SystemExit:
        return said.getvalue().strip().splitlines()[-1]
    except BadInput as error:
        return str(error)
    return "" if options.command else "no command"


def exists(path: str) -> bool:
    return (pages.ROOT / path).exists()


def text_of(path: str) -> str:
    return (pages.ROOT / path).read_text("utf-8")


def pytest_options() -> set[str]:
    """Everything that pytest takes beside our benchmarks."""
    if not _OPTIONS:
        told = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ".", "benchmarks", "--help"],
            capture_output=True, text=True, check=True, cwd=pages.ROOT,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        )  # fmt: skip
        _OPTIONS.update(re.findall(r"--[\w-]+", told.stdout))
    return _OPTIONS


_OPTIONS: set[str] = set()


def commands_of(text: str) -> Iterator[tuple[pages.Command, dict[str, str]]]:
    written: dict[str, str] = {}
    for block in pages.blocks(text):
        written |= pages.heredocs(block.text)[1]
        for command in pages.commands(block):
            if "--script" in command.words:
                written[command.words[command.words.index("--script") + 1]] = ""
            yield command, written


@each_page
def test_every_command_is_one(page: Path) -> None:
    wrong = [
        (command.line, command.text, said) for command, files in commands_of(page.read_text("utf-8")) if (said := problem(command, files))
    ]
    assert wrong == []


def test_the_commands_are_found() -> None:
    """Else the test above would say nothing."""
    found = [command for page in pages.PAGES for command, _ in commands_of(page.read_text("utf-8"))]
    assert len(found) > 90
    assert {command.words[0] for command in found} == set(pages.PROGRAMS)
    used = {command.words[1] for command in found if command.words[0] == "grammarbench"}
    verbs = next(each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)).choices
    assert used == set(verbs), "commands that no page shows"


@pytest.mark.parametrize(
    "line",
    [
        "grammarbench rum my_schemas --backends llguidance",
        "grammarbench run my_schemas --backend xgrammar --no-such-option",
        "grammarbench run my_schemas --backends xgrammer",
        "grammarbench table my_run --format yaml",
        "grammarbench",
        "pytest benchmarks/no_such_file.py",
        "pytest benchmarks/test_speed.py --no-such-option",
        "tox run -e no-such-environment",
        "python no_such_file.py",
        "python -m no_such_module",
        "pip install -e '.[no_such_extra]'",
    ],
)
def test_a_planted_wrong_command_is_seen(line: str) -> None:
    text = f"# A page\n\nSome words:\n\n    {line}   # what it does\n"
    ((command, files),) = commands_of(text)
    assert problem(command, files)


# ------------------------------------------------------------------------------------------------- links and names


def broken_links(page: Path, text: str) -> list[str]:
    wrong = []
    for link in pages.links(text):
        if not re.match(r"[a-z]+:", link):
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            if not target.exists() or (anchor and anchor not in pages.anchors(target.read_text("utf-8"))):
                wrong.append(link)
    return sorted(wrong)


def unknown_names(text: str) -> list[str]:
    """Paths of ours that are not there, and options that nobody has, in backticks."""
    wrong = []
    for span in pages.spans(text):
        if re.fullmatch(rf"(?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*", span) and not exists(span):
            wrong.append(span)
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", span):
            if option not in our_options() and option not in pytest_options() and option not in OTHERS_OPTIONS:
                wrong.append(option)
    return sorted(wrong)


def our_options() -> set[str]:
    top = parser()
    verbs = next(each for each in top._actions if isinstance(each, argparse._SubParsersAction)).choices
    return {option for each in (top, *verbs.values()) for option in each._option_string_actions}


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text("utf-8")) == []


@each_page
def test_paths_and_options_in_backticks_exist(page: Path) -> None:
    assert unknown_names(page.read_text("utf-8")) == []


def test_planted_links_and_names_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    linked = "[a](#one-heading) [b](#two) [c](gone.md) [d](https://x.org)"
    text = f"# One heading\n\n{linked} `harness/gone.py` `--gone` `--backends` `harness/cli.py`\n"
    page.write_text(text, "utf-8")
    assert broken_links(page, text) == ["#two", "gone.md"]
    assert unknown_names(text) == ["--gone", "harness/gone.py"]


def test_every_page_is_in_the_index() -> None:
    linked = pages.links(text_of("docs/README.md"))
    assert {each.name for each in pages.PAGES if each.parent.name == "docs"} - {"README.md"} <= linked


# ------------------------------------------------------------------------------------------------- pages that follow the code


def test_the_reference_is_that_of_the_code() -> None:
    assert text_of("docs/reference.md") == reference_page(), "run: python -m harness.reference_page > docs/reference.md"


def entries(text: str) -> set[str]:
    """The facts that have a row with how they are tried and what cannot be seen."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].replace(" ", "_") for cells in rows if len(cells) == 3 and all(len(each) > 5 for each in cells[1:])}


def test_every_check_is_told_with_what_it_cannot_see() -> None:
    of_cases, of_adapters = text_of("docs/checks.md").split("## The contract checks")
    heads = {"the_fact"}
    assert entries(of_cases) - heads == set(checks())
    assert entries(of_adapters) - heads == set(map(check_name, contract_checks()))


def test_an_entry_that_says_nothing_is_none() -> None:
    assert entries("| a fact | how | |\n| another fact | how it goes | no limit |\n") == {"another_fact"}


# ------------------------------------------------------------------------------------------------- examples that are run


@dataclass
class Ran:
    """A page's commands, run one after the other in one folder."""

    folder: Path
    codes: dict[str, int]
    said: dict[str, str]


SMALLER = {
    "tekken": "probe",
    "xgrammar,llguidance": "unconstrained,llguidance",
    "--out my_run": "--effort 0 --out my_run",
    "--out my_tokenizers": "--effort 0 --out my_tokenizers",
    "my_schemas my_cases.jsonl --backends llguidance,xgrammar": "my_cases.jsonl --backends llguidance --vocabulary probe --forks 1",
    "--out my_decode": "--forks 1 --rounds 1 --batch 1 --strategies stepwise --texts 1 --prompt-tokens 4 --limit 8 --out my_decode",
    "adjudicate my_run": "adjudicate my_run --effort 1 --tries 1",
}
"""What the test runs instead, so that it is quick. Each must occur."""


def run_page(text: str, folder: Path) -> Ran:
    """Write its files, run its commands but those that say that they are not. The current folder must be `folder`."""
    ran = Ran(folder, {}, {})
    for block in pages.blocks(text):
        if block.language or pages.NOT_RUN in block.above.lower():
            continue
        left, files = pages.heredocs(block.text)
        for name in re.findall(r"^mkdir (\S+)$", left, flags=re.MULTILINE):
            (folder / name).mkdir()
        for name, content in files.items():
            (folder / name).write_text(content, "utf-8")
        for command in pages.commands(block):
            words = shlex.split(smaller(command.text), comments=True)
            said = io.StringIO()
            if words[0] == "grammarbench":
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    code = main(words[1:])
            else:
                done = subprocess.run([sys.executable, *words[1:]], cwd=folder, capture_output=True, text=True)
                code = done.returncode
                said.write(done.stdout + done.stderr)
            ran.codes[command.text], ran.said[command.text] = code, said.getvalue()
    return ran


def smaller(command: str) -> str:
    for long, short in SMALLER.items():
        command = command.replace(long, short)
    return command


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The tutorial, run once."""
    folder = tmp_path_factory.mktemp("tutorial")
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        ran = run_page(text_of("docs/tutorial.md"), folder)
    return ran


def test_the_tutorial_runs(tutorial: Ran) -> None:
    may_be_noisy = {OK, UNPROVEN}
    wrong = {
        each: (code, tutorial.said[each][-500:])
        for each, code in tutorial.codes.items()
        if code not in (may_be_noisy if each.startswith("grammarbench measure") else {OK})
    }
    assert wrong == {}
    assert len(tutorial.codes) >= 19


def test_what_the_test_makes_smaller_is_there() -> None:
    assert [each for each in SMALLER if each not in text_of("docs/tutorial.md")] == []


# Of docs/extending.md: what is run as commands, and what is Python.


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The commands of the page on extending, run once."""
    folder = tmp_path_factory.mktemp("extending")
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("PYTHONPATH", str(folder))
        ran = run_page(text_of("docs/extending.md"), folder)
    return ran


def test_the_example_backend_keeps_the_contract_and_is_right(extended: Ran) -> None:
    checked, wrong, ran, faults = extended.codes
    assert [extended.codes[each] for each in (checked, wrong, ran, faults)] == [OK, GATE_FAILED, OK, OK], extended.said
    assert "keeps the contract" in extended.said[checked] and "is refused" in extended.said[wrong]
    arms = read_arms(extended.folder / "answered")
    assert [(each.name, each.outcomes["pass"]) for each in arms] == [("my_backend:Choices", 4), ("reference", 4)]
    assert [name for each in arms for name, check in each.checks.items() if check.failed] == []
    assert arms[0].checks["the_mask_is_exact"].passed == 2


def examples() -> dict[str, str]:
    """The Python of the page, by the file that its first line names."""
    fenced = [each.text for each in pages.blocks(text_of("docs/extending.md")) if each.language == "python"]
    return {re.match(r"# (\S+)", each)[1]: each for each in fenced}  # type: ignore[index]


def example(path: str) -> dict[str, Any]:
    """The names that the example defines, as if it were that file."""
    module = ModuleType(path.removesuffix(".py").replace("/", "."))
    exec(compile(examples()[path], path, "exec"), vars(module))
    return vars(module)


def test_every_example_is_tried_here() -> None:
    tried = re.findall(r'example\("(\S+?)"\)', Path(__file__).read_text("utf-8"))
    assert sorted(set(tried)) == sorted(examples())


def test_the_entry_point_has_our_group() -> None:
    (fenced,) = [each.text for each in pages.blocks(text_of("docs/extending.md")) if each.language == "toml"]
    (group,) = tomllib.loads(fenced)["project"]["entry-points"].items()
    assert group == (GROUP, {"choices": "my_backend:Choices"})


def test_the_example_check_finds_a_wrong_backend() -> None:
    check = example("harness/checks/empty_output.py")["check_the_empty_output_is_judged_rightly"]
    case = Case("0" * 12, "a case", Grammar("regex", "a+"))
    for adapter, said in ((Reference(byte_vocabulary()), "passed"), (load("unconstrained")(byte_vocabulary()), "failed")):
        subject = Subject(adapter, case, adapter.compile(case.grammar))
        assert run_check("the_empty_output_is_judged_rightly", check, subject)[0] == said


def test_the_example_contract_check_finds_a_wrong_adapter() -> None:
    check = example("harness/contract/beginning.py")["check_a_new_object_has_not_ended"]
    check(Reference(byte_vocabulary()))

    class Ended(miniatures.reference.ReferenceObject):
        def is_terminated(self) -> bool:
            return True

    class Wrong(miniatures.Reference):
        object_class = Ended

    with pytest.raises(ContractBroken):
        check(Wrong(byte_vocabulary()))


def test_the_example_metric_is_a_column(synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.metrics.METRICS", dict(METRICS))
    example("harness/metrics.py")
    arms = read_arms(synthetic.synthetic_run(tmp_path / "run", cases=10))
    slowest = [summary(each)["slowest_fill"] for each in arms]
    assert [each for each in slowest if each] and all(each is None or each > 0 for each in slowest)


def test_the_example_strategy_saves_passes_where_much_is_forced() -> None:
    from decode_tools import WORDS, replayed, serve

    strategy = example("harness/decode/strategies/patient.py")["Patient"]
    forced = {text: Grammar("regex", text) for text in ("all of this is forced", "short")}
    served = serve([replayed(text, grammar, text.encode()) for text, grammar in forced.items()], Reference(WORDS), strategy)
    assert [(bytes(WORDS.decode(each.ids)).decode(), each.account.forced > 0) for each in served] == [
        (text, len(text) >= 8) for text in forced
    ]


def test_the_example_form_is_a_file(synthetic: ModuleType, tmp_path: Path) -> None:
    result = result_of(synthetic.synthetic_run(tmp_path / "run", cases=10))
    assert re.fullmatch(r"\S+: \w+, \d+ of 40 cases pass\n", example("harness/export/one_line.py")["files"](result)["gate.txt"])


def test_the_example_vocabulary_can_be_used() -> None:
    vocabulary = example("harness/vocabulary/digits.py")["digits_vocabulary"]()
    assert vocabulary.encode(b"x2026") == [120, 276, 282] and vocabulary.size == 358
    check = next(each for each in contract_checks() if check_name(each) == "special_and_padding_tokens_are_never_allowed")
    check(Reference(vocabulary))
