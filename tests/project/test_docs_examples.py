"""The Python of docs/extending.md does what the page says. Its commands are run by tests/docs_commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import miniatures
import pages
import pytest
from pages import text_of
from report_folders import write_rows

from harness.backend.contract import ContractBroken, check_name
from harness.backend.contract import checks as contract_checks
from harness.backend.grammar import Adapter, CompiledGrammar, Grammar, GrammarObject
from harness.backend.registry import GROUP, load
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case
from harness.checks import Subject, run_check
from harness.oracle.reference import Reference
from harness.outcomes.metrics import METRICS, values_of
from harness.outcomes.result import result_of
from harness.outcomes.summary import read_arms
from harness.report.page.content import Content
from harness.report.page.inputs import read_inputs
from harness.report.tables.instances import terminal_text
from harness.report.templates import template_environment


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


HOUSE = {"documents", "is_ours", "refused_vocabulary", "vocabulary"}
"""What an adapter has of its base and does not write: the harness asks or sets it."""


@pytest.mark.parametrize(
    ("owner", "base"),
    [("adapter", Adapter), ("compiled grammar", CompiledGrammar), ("object", GrammarObject)],
)
def test_the_page_says_what_is_required_and_what_is_optional(owner: str, base: type) -> None:
    page = text_of("docs/extending.md")
    required = re.search(r"\*\*Required\*\* are (.*?)\.", page, re.S)
    cells = re.findall(rf"^\| {owner} \| (.*?) \|", page, re.M)
    optional = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    abstract: frozenset[str] = base.__abstractmethods__  # type: ignore[attr-defined]
    assert required and all(f"`{name}`" in required[1] for name in abstract)
    assert optional == {name for name in vars(base) if not name.startswith("_")} - abstract - HOUSE


def test_the_example_check_finds_a_wrong_backend() -> None:
    check = example("harness/checks/empty_output.py")["check_the_empty_output_is_judged_rightly"]
    case = Case("0" * 12, "a case", Grammar("regex", "a+"))
    for adapter, said in (
        (Reference(byte_vocabulary()), "passed"),
        (load("unconstrained")(byte_vocabulary()), "failed"),
    ):
        subject = Subject(adapter, case, adapter.compile(case.grammar))
        assert run_check("the_empty_output_is_judged_rightly", check, subject)[0] == said


def test_the_example_contract_check_finds_a_wrong_adapter() -> None:
    check = example("harness/backend/contract/beginning.py")["check_a_new_object_has_not_ended"]
    check(Reference(byte_vocabulary()))

    class Ended(miniatures.reference.ReferenceObject):
        def is_terminated(self) -> bool:
            return True

    class Wrong(miniatures.Reference):
        object_class = Ended

    with pytest.raises(ContractBroken):
        check(Wrong(byte_vocabulary()))


def test_the_example_metric_is_a_column(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METRICS, "slowest_fill", METRICS["works"])  # is taken out again behind the test
    example("harness/outcomes/metrics.py")
    run = synthetic.synthetic_run(tmp_path / "run", cases=10)
    slowest = [values_of(each)["slowest_fill"] for each in read_arms(run)]
    assert [each for each in slowest if each] and all(each is None or each > 0 for each in slowest)
    assert re.search(r"^Slowest fill .*[0-9] [µm]s", terminal_text(run), re.MULTILINE)


def test_the_example_strategy_saves_passes_where_much_is_forced() -> None:
    from decode_tools import WORDS, replayed, serve

    strategy = example("harness/walk/loop/strategies/patient.py")["Patient"]
    forced = {text: Grammar("regex", text) for text in ("all of this is forced", "short")}
    served = serve(
        [replayed(text, grammar, text.encode()) for text, grammar in forced.items()],
        Reference(WORDS),
        strategy,
    )
    assert [(bytes(WORDS.decode(each.ids)).decode(), each.account.forced > 0) for each in served] == [
        (text, len(text) >= 8) for text in forced
    ]


def test_the_example_form_is_a_file(synthetic: ModuleType, tmp_path: Path) -> None:
    result = result_of(synthetic.synthetic_run(tmp_path / "run", cases=10))
    assert re.fullmatch(
        r"\S+: \w+, \d+ of 39 judged cases work\n",
        example("harness/report/export/one_line.py")["files"](result)["gate.txt"],
    )


def test_the_example_section_is_on_a_page(synthetic: ModuleType, tmp_path: Path) -> None:
    section = example("harness/report/page/sections/versions.py")["SECTION"]
    (template,) = [
        each.text for each in pages.blocks(text_of("docs/extending.md")) if each.language == "html"
    ]
    environment = template_environment()
    inputs = read_inputs([write_rows(synthetic, tmp_path / "run", cases=2)])
    content = Content(inputs, environment.get_template("case.html.j2"))
    html = environment.from_string(template).render(**section.values(content))
    assert "beta</span></span> 2</li>" in html and f'<section id="{section.id}">' in html


def test_the_example_vocabulary_can_be_used() -> None:
    vocabulary = example("harness/backend/vocabulary/digits.py")["digits_vocabulary"]()
    assert vocabulary.encode(b"x2026") == [120, 276, 282] and vocabulary.size == 358
    check = next(
        each
        for each in contract_checks()
        if check_name(each) == "special_and_padding_tokens_are_never_allowed"
    )
    check(Reference(vocabulary))
